"""Shapes: sizes, strides and an element type, without memory."""
from __future__ import annotations

import ctypes
import dataclasses
import math
from typing import Any, Sequence

from warmgraph import dtypes, errors


@dataclasses.dataclass(frozen=True)
class Tensor:
    """A shape and an element type without memory, for declaring an output."""

    shape: tuple[int, ...]
    dtype: str

    def __init__(self, shape: Sequence[int] | int, dtype: Any) -> None:
        sizes = (shape,) if isinstance(shape, int) else tuple(int(size) for size in shape)
        if any(size < 0 for size in sizes):
            raise errors.InvalidArgument(f"shape {sizes} has a negative size")
        object.__setattr__(self, "shape", sizes)
        object.__setattr__(self, "dtype", dtypes.canonical(dtype))

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * dtypes.itemsize(self.dtype)


def like(array: Any) -> Tensor:
    """A Tensor with the shape and element type of an array."""
    return Tensor(array.shape, array.dtype)


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def extent_bytes(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> int:
    """The number of bytes from the start of the first element to the end of the last."""
    if 0 in shape:
        return 0
    return (sum((size - 1) * stride for size, stride in zip(shape, strides)) + 1) * itemsize


def pointer_array(values: Sequence[int]) -> Any:
    return (ctypes.c_int64 * len(values))(*values) if values else None
