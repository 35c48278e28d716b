"""Fixtures that the tests share: a device, a program, a cache folder for each test, and a function that runs scripts in new processes."""
from __future__ import annotations

import itertools
import os
import pathlib
import subprocess
import sys
import textwrap
import threading
from typing import Any, Callable, Iterator

import hypothesis
import pytest

import warmgraph

# Hypothesis always uses the same examples; with HYPOTHESIS=random it looks for new ones.
hypothesis.settings.register_profile("same", derandomize=True)
hypothesis.settings.register_profile("random", max_examples=5000)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS", "same"))

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]

KERNELS = """
__kernel void scale(__global const float* x, __global float* y, float factor) { size_t i = get_global_id(0); y[i] = x[i] * factor; }
__kernel void add(__global float* sum, __global const float* x) { size_t i = get_global_id(0); sum[i] += x[i]; }
__kernel void gather(__global const float* x, __global float* y, int stride) { size_t i = get_global_id(0); y[i] = x[i * stride]; }
__kernel void whole(__global const int* x, __global int* y, int shift) { size_t i = get_global_id(0); y[i] = x[i] + shift; }
"""
COUNT = 64

# The first lines of each script that runs in a new process.
PRELUDE = f"""
import logging, sys
import numpy as np
import warmgraph as wg
device = wg.Device("opencl")
program = device.program("kernels", '''{KERNELS}''')
x = np.arange({COUNT}, dtype=np.float32)

@wg.cache_compile(outputs=lambda x, factor: wg.like(x), scalars={{"factor": wg.Scalar("f32", -100, 100)}}, config=wg.Config(model="toy"))
def scale(x, factor):
    y = wg.empty_like(x)
    program.launch("scale", x.size // 16, 16, x, y, factor)
    return y
"""


@pytest.fixture(scope="session")
def device() -> warmgraph.Device:
    return warmgraph.Device("opencl")


@pytest.fixture(scope="session")
def program(device: warmgraph.Device) -> warmgraph.Program:
    return device.program("kernels", KERNELS)


@pytest.fixture(autouse=True)
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """The cache folder of the test."""
    path = tmp_path / "cache"
    monkeypatch.setenv("WARMGRAPH_CACHE_DIR", str(path))
    for name in ("WARMGRAPH_POLICY", "WARMGRAPH_LOG", "WARMGRAPH_VERIFY"):
        monkeypatch.delenv(name, raising=False)
    return path


@pytest.fixture
def on_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the package's PyTorch half use the host in place of a GPU."""
    import torch_on_the_host

    torch_on_the_host.use(monkeypatch)


def at_once(work: Callable[..., Any], *given: tuple[Any, ...]) -> None:
    """Calls `work` with each of the arguments, each call in its own thread, and waits for all threads."""
    threads = [threading.Thread(target=work, args=args) for args in given]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class ProcessResult:
    def __init__(self, done: subprocess.CompletedProcess[str]) -> None:
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr

    def lines(self) -> list[str]:
        assert self.code == 0, self.err
        return self.out.splitlines()


Runner = Callable[..., ProcessResult]


@pytest.fixture
def process(tmp_path: pathlib.Path) -> Runner:
    """Runs a script in a new process: with the prelude, unless bare=True, and with these environment variables."""

    numbers = itertools.count()

    def run(script: str, bare: bool = False, timeout: float = 100, **environment: str) -> ProcessResult:
        file = tmp_path / f"script{next(numbers)}.py"
        file.write_text(("" if bare else PRELUDE) + textwrap.dedent(script))
        done = subprocess.run([sys.executable, str(file)], env={**os.environ, **environment}, cwd=tmp_path, capture_output=True, text=True,
                              timeout=timeout, check=False)
        return ProcessResult(done)

    return run


@pytest.fixture
def scale(program: warmgraph.Program) -> Iterator[Any]:
    """A cached function y = factor * x, whose cache is in the test's folder."""

    def scale(x: Any, factor: Any) -> Any:
        y = warmgraph.empty_like(x)
        program.launch("scale", x.size // 16, 16, x, y, factor)
        return y

    wrapped = warmgraph.cache_compile(scale, outputs=lambda x, factor: warmgraph.like(x), config=warmgraph.Config(model="toy"),
                                      scalars={"factor": warmgraph.Scalar("f32", -100, 100)}, cache_dir=os.environ["WARMGRAPH_CACHE_DIR"])
    yield wrapped
    wrapped.reset()
