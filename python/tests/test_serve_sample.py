"""Runs samples/serve/serve.py in a process that cannot import PyTorch, with two small functions instead of a language model."""
from __future__ import annotations

import base64
import json
import os
import pathlib
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import warmgraph as wg
from conftest import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "python/tests/gpu"))
import serve as case  # noqa: E402

SOURCE = """
__kernel void prompt(__global const long* tokens, __global const float* table, __global const long* frequency,
                     __global long* seen, __global long* next)
{
    for (int i = 0; i < 3; ++i) seen[0] += tokens[i] * frequency[0] + 1;
    next[0] = ((long)table[tokens[2]] + seen[0]) % 16;
}
__kernel void decode(__global const long* token, __global const long* position, __global const float* table,
                     __global const long* frequency, __global long* seen, __global long* next)
{
    seen[0] += token[0] * frequency[0] + position[0];
    next[0] = ((long)table[token[0]] + seen[0]) % 16;
}
"""
TABLE = ((np.arange(16) * 7 + 5) % 16).astype(np.float32)
FREQUENCY, PROMPT, COUNT = 3, [4, 9, 2], 6


def expected() -> list[int]:
    seen = sum(token * FREQUENCY + 1 for token in PROMPT)
    tokens = [int(TABLE[PROMPT[-1]] + seen) % 16]
    for position in range(len(PROMPT), len(PROMPT) + COUNT - 1):
        seen += tokens[-1] * FREQUENCY + position
        tokens.append(int(TABLE[tokens[-1]] + seen) % 16)
    return tokens


def record(device: wg.Device, cache: wg.Cache, name: str, inputs: dict[str, tuple[int, ...]]) -> None:
    program = device.program("model", SOURCE)
    states = {"embed.weight": device.array(TABLE), "frequency": device.array(np.array([FREQUENCY])), "seen": device.zeros(1, "i64")}
    metadata = json.dumps({
        "warmgraph.torch": 1, "result": {"output": 0}, "draws": 0, "outputs": [], "written": ["seen"], "aligned": {one: 8 for one in inputs},
        "aliases": {"embed.weight": [[tensor, 0, "f32", [16], [1]] for tensor in ("embed.weight", "head.weight")]},
        "contents": {"frequency": base64.b64encode(np.array([FREQUENCY]).tobytes()).decode()}})
    spec = wg.Spec({one: wg.Tensor(shape, "i64") for one, shape in inputs.items()}, {"result0": wg.Tensor((1, 1), "i64")}, states,
                   frozenset(("embed.weight", "frequency")), code=[program], version="1", metadata=metadata)

    def body(run: Any) -> None:
        def region(one: str) -> wg.Array:
            at = run.address(one)
            array = wg.Array(device, None, (at.base, at.offset), (1,), "i64")
            array._run = run
            return array

        program.launch(name, 1, 1, *(region(one) for one in (*inputs, "embed.weight", "frequency", "seen", "result0")))

    arrays = {one: device.array(np.ones(shape, np.int64)) for one, shape in inputs.items()}
    assert cache.wrap(name, device, spec, body)({**arrays, "result0": device.empty((1, 1), "i64")}) == "recorded"


def write_weights(path: pathlib.Path, name: str) -> None:
    header = json.dumps({name: {"dtype": "F32", "shape": [16], "data_offsets": [0, 64]}}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + TABLE.tobytes())


@pytest.fixture
def recorded(device: wg.Device, tmp_path: pathlib.Path) -> pathlib.Path:
    cache = wg.Cache("toy", cache_dir=tmp_path / "cache", dynamic=True)
    record(device, cache, "prompt", {"tokens": (1, 3)})
    record(device, cache, "decode", {"token": (1, 1), "position": (1,)})
    write_weights(tmp_path / "model.safetensors", "head.weight")
    golden = {"model": "toy", "prompt": PROMPT, "tokens": expected(), "first_token_ms": 1234.4}
    (tmp_path / "golden.json").write_text(json.dumps(golden))
    return tmp_path


def serve(folder: pathlib.Path, device: str = "opencl") -> subprocess.CompletedProcess[str]:
    script = str(REPOSITORY / "samples/serve/serve.py")
    return subprocess.run([sys.executable, "-c", case.WITHOUT_TORCH, script, str(folder), "--device", device], capture_output=True,
                          env={**os.environ, "WARMGRAPH_POLICY": "require_hit"}, text=True, timeout=100, check=False)


def test_it_generates_the_tokens_and_says_how_long_the_first_took(recorded):
    done = serve(recorded)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == f"tokens {' '.join(map(str, expected()))}: those that PyTorch generated"
    assert lines[3].split() == ["PyTorch", "1234"] and 0 < float(lines[4].split()[-1]) < 60_000


def test_other_tokens_are_a_failure(recorded):
    golden = json.loads((recorded / "golden.json").read_text())
    golden["tokens"][-1] += 1
    (recorded / "golden.json").write_text(json.dumps(golden))
    done = serve(recorded)
    assert done.returncode == 1 and ": not those that PyTorch generated" in done.stdout


def test_what_is_not_there_is_said_in_one_line(recorded):
    assert "no-such-device" in serve(recorded, "opencl:no-such-device").stderr
    write_weights(recorded / "model.safetensors", "other")
    done = serve(recorded)
    assert done.returncode == 1 and done.stderr.startswith("serve.py: the state embed.weight f32[16] is missing"), done.stderr


def test_the_process_cannot_import_pytorch(tmp_path):
    script = tmp_path / "imports.py"
    script.write_text("import torch")
    done = subprocess.run([sys.executable, "-c", case.WITHOUT_TORCH, str(script)], capture_output=True, text=True, check=False)
    assert done.returncode != 0 and "torch is imported by a process that serves" in done.stderr
