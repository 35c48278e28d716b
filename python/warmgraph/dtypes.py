"""Element types, with the names that the library gives them: "f32", "i64", "bf16", ..."""
from __future__ import annotations

from typing import Any

from warmgraph import errors
from warmgraph.core.binding import _c

__all__ = ["canonical", "itemsize", "numpy_dtype"]

CODES: dict[str, int] = {name[3:]: code for name, code in _c.wg_dtype_values.items()}
CODES["bool"] = CODES.pop("boolean")
NAMES = {code: name for name, code in CODES.items()}
_SIZES = {"u8": 1, "i8": 1, "u16": 2, "i16": 2, "u32": 4, "i32": 4, "u64": 8, "i64": 8, "f16": 2, "bf16": 2, "f32": 4, "f64": 8,
          "bool": 1}
_LONG = {"uint8": "u8", "int8": "i8", "uint16": "u16", "int16": "i16", "uint32": "u32", "int32": "i32", "uint64": "u64",
         "int64": "i64", "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64", "bool": "bool"}
_NUMPY = {short: long for long, short in _LONG.items() if short != "bf16"}


def canonical(dtype: Any) -> str:
    """Converts to the library's name: "f32" for "f32", "float32", numpy.float32 and numpy.dtype("float32"). Raises InvalidArgument, whose
    message lists the types."""
    name: Any = dtype if isinstance(dtype, str) else getattr(dtype, "name", None) or getattr(dtype, "__name__", str(dtype))
    short = _LONG.get(name, name)
    if short not in _SIZES:
        raise errors.InvalidArgument(f"{dtype!r} is not a supported element type, expected one of: {', '.join(_SIZES)}")
    byteorder = getattr(dtype, "byteorder", "=")
    if byteorder == ">":
        raise errors.InvalidArgument(f"{dtype!r} has the other byte order: convert it (x.astype({name!r}))")
    return str(short)


def itemsize(dtype: str) -> int:
    return _SIZES[dtype]


def numpy_dtype(dtype: str) -> Any:
    """NumPy's type for a name. Raises Unsupported for bf16, which NumPy lacks."""
    import numpy

    if dtype not in _NUMPY:
        raise errors.Unsupported(f"NumPy has no {dtype}: view the bytes as u16")
    return numpy.dtype(_NUMPY[dtype])
