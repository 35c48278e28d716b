"""Reads valid and hostile safetensors files without PyTorch."""
from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from warmgraph import errors, safetensors

GOOD = {"__metadata__": {"format": "pt"}, "a": {"dtype": "F32", "shape": [2, 1], "data_offsets": [0, 8]},
        "b": {"dtype": "BF16", "shape": [], "data_offsets": [8, 10]}, "none": {"dtype": "I64", "shape": [0, 3], "data_offsets": [10, 10]}}
DATA = bytes(range(10))


def written(tmp_path: Any, header: Any, data: bytes = DATA, length: int | None = None) -> Any:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path = tmp_path / "model.safetensors"
    path.write_bytes((len(text) if length is None else length).to_bytes(8, "little") + text + data)
    return path


def test_tensors_are_views_of_the_file(tmp_path):
    found = safetensors.load(written(tmp_path, GOOD))
    assert sorted(found) == ["a", "b", "none"] and found["none"].shape == (0, 3)
    assert found["a"].dtype == np.float32 and found["a"].shape == (2, 1) and found["a"].tobytes() == DATA[:8]
    assert found["b"].dtype == np.uint16 and found["b"] == 0x0908 and not found["a"].flags.writeable


def changed(**members: Any) -> Any:
    return {**GOOD, **members}


@pytest.mark.parametrize(("header", "message"), [
    (b"[]", "the header is a list"), (b"{", "Expecting"), (b'{"a": \xff}', "utf-8"), (b"[" * 100_000, "recursion"),
    (json.dumps(GOOD).replace('"none"', '"a"').encode(), "a name twice"),
    (changed(__metadata__={"n": 1}), "__metadata__"), (changed(b=3), "'b' has an unknown dtype"),
    (changed(b={**GOOD["b"], "dtype": "F4"}), "unknown dtype"), (changed(b={**GOOD["b"], "dtype": [1]}), "unknown dtype"),
    (changed(b={**GOOD["b"], "shape": [-1]}), "no list of sizes 'shape'"), (changed(b={**GOOD["b"], "shape": [True]}), "sizes 'shape'"),
    (changed(b={**GOOD["b"], "shape": [1 << 70]}), "sizes 'shape'"), (changed(b={**GOOD["b"], "shape": [2]}), "has 2 bytes"),
    (changed(b={**GOOD["b"], "data_offsets": [8]}), "lies at"), (changed(b={**GOOD["b"], "data_offsets": [8, 12]}), "lies at"),
    (changed(b={**GOOD["b"], "data_offsets": [10, 8]}), "lies at"), (changed(b={**GOOD["b"], "data_offsets": [6, 8]}), "begins at byte 6 of the data, expected 8"),
])
def test_a_header_that_lies_is_corrupt(tmp_path, header, message):
    with pytest.raises(errors.Corrupt, match=message):
        safetensors.load(written(tmp_path, header))


def test_files_that_are_cut_or_longer_are_corrupt(tmp_path):
    whole = written(tmp_path, GOOD).read_bytes()
    path = tmp_path / "cut.safetensors"
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(errors.Corrupt):
            safetensors.load(path)
    path.write_bytes(whole + b"x")
    with pytest.raises(errors.Corrupt, match="cover 10 of 11 bytes"):
        safetensors.load(path)


@pytest.mark.parametrize("length", [0, 1, 1 << 20, 100_000_001, 1 << 63, (1 << 64) - 1])
def test_a_length_that_lies_is_corrupt(tmp_path, length):
    with pytest.raises(errors.Corrupt):
        safetensors.load(written(tmp_path, GOOD, length=length))


def test_no_file_is_not_found(tmp_path):
    with pytest.raises(errors.NotFound, match="no file"):
        safetensors.load(tmp_path / "model.safetensors")
    with pytest.raises(errors.IoFailed):
        safetensors.load(tmp_path)
