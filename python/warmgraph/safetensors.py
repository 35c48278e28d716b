"""Reads safetensors files without PyTorch. A file has a length (u64, little endian), a JSON header of this length, and the bytes of the
tensors.

Format: https://github.com/huggingface/safetensors (Format). Files are not trusted: every number is checked against the file's size before
use.
"""
from __future__ import annotations

import json
import math
import mmap
import os
from typing import Any

from warmgraph import errors

_MOST_HEADER = 100_000_000  # in bytes; the reference implementation has the same limit
_LENGTH = 8
# NumPy's type for each of the format's types. For types that NumPy lacks, unsigned integers of the same size.
_DTYPES = {"BOOL": "bool", "U8": "uint8", "I8": "int8", "F8_E5M2": "uint8", "F8_E4M3": "uint8", "U16": "uint16", "I16": "int16",
           "F16": "float16", "BF16": "uint16", "U32": "uint32", "I32": "int32", "F32": "float32", "U64": "uint64", "I64": "int64",
           "F64": "float64"}


def load(path: Any) -> dict[str, Any]:
    """NumPy arrays by name: read-only views of the mapped file, so nothing is read before its use. BF16 values are returned as their bits
    in uint16, and float8 values as their bits in uint8. Raises Corrupt for a file that does not follow the format, NotFound for a
    missing file."""
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size < _LENGTH:
                raise errors.Corrupt(f"{path} has {size} bytes, a safetensors file has at least {_LENGTH}")
            content = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except FileNotFoundError:
        raise errors.NotFound(f"there is no file {path}") from None
    except OSError as error:
        raise errors.IoFailed(f"{path} cannot be read: {error}") from None
    try:
        return _tensors(content)
    except (ValueError, RecursionError) as error:
        raise errors.Corrupt(f"{path} is not a safetensors file: {error}") from None


def _tensors(content: memoryview) -> dict[str, Any]:
    length = int.from_bytes(content[:_LENGTH], "little")
    if length > min(_MOST_HEADER, len(content) - _LENGTH):
        raise ValueError(f"the header of a file of {len(content)} bytes has {length} bytes, expected at most {_MOST_HEADER}")
    header = json.loads(bytes(content[_LENGTH:_LENGTH + length]).decode("utf-8"), object_pairs_hook=_object)
    if not isinstance(header, dict):
        raise ValueError(f"the header is a {type(header).__name__}, expected an object")
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise ValueError("__metadata__ is not an object of texts")
    data = content[_LENGTH + length:]
    found = {name: _tensor(name, entry, data) for name, entry in header.items()}
    _expect_covered([tuple(entry["data_offsets"]) for entry in header.values()], len(data))
    return found


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuses a repeated name, because two readers of the file could then see different tensors."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("the header has a name twice")
    return found


def _tensor(name: str, entry: Any, data: memoryview) -> Any:
    import numpy

    if not isinstance(entry, dict) or not isinstance(entry.get("dtype"), str) or entry["dtype"] not in _DTYPES:
        raise ValueError(f"tensor '{name}' has an unknown dtype, or none")
    shape, offsets = (_sizes(name, entry, field) for field in ("shape", "data_offsets"))
    if len(offsets) != 2 or not offsets[0] <= offsets[1] <= len(data):
        raise ValueError(f"tensor '{name}' lies at {offsets} of {len(data)} bytes")
    kind = numpy.dtype(_DTYPES[entry["dtype"]])
    if math.prod(shape) * kind.itemsize != offsets[1] - offsets[0]:
        raise ValueError(f"tensor '{name}' is {entry['dtype']} {shape}, and has {offsets[1] - offsets[0]} bytes")
    return numpy.frombuffer(data[offsets[0]:offsets[1]], kind).reshape(shape)


def _sizes(name: str, entry: dict[str, Any], field: str) -> list[int]:
    found = entry.get(field)
    if not isinstance(found, list) or not all(type(one) is int and 0 <= one < 1 << 63 for one in found):
        raise ValueError(f"tensor '{name}' has no list of sizes '{field}'")
    return found


def _expect_covered(ranges: list[tuple[int, ...]], size: int) -> None:
    covered = 0
    for begin, end in sorted(ranges):
        if begin != covered:
            raise ValueError(f"a tensor begins at byte {begin} of the data, expected {covered}")
        covered = end
    if covered != size:
        raise ValueError(f"tensors cover {covered} of {size} bytes of data")
