"""Arrays in device memory: a shape over a range that somebody owns."""
from __future__ import annotations

import ctypes
import dataclasses
import math
from typing import TYPE_CHECKING, Any, Sequence

from . import _c, dtypes, errors

if TYPE_CHECKING:
    from ._device import Buffer, Device


@dataclasses.dataclass(frozen=True)
class Tensor:
    """A shape and an element type without memory: what an output is declared with."""

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
    """From the first element to the end of the last."""
    if 0 in shape:
        return 0
    return (sum((size - 1) * stride for size, stride in zip(shape, strides)) + 1) * itemsize


class Array:
    """Elements in device memory. `strides` are in elements. Views (`array[2:5]`) share its memory.

    Inside a function that is captured it stands for that memory wherever the run has it; reading or writing it from the host there is
    NotRecordable.
    """

    def __init__(self, device: Device, owner: Buffer | None, address: tuple[int, int], shape: Sequence[int], dtype: str,
                 strides: Sequence[int] | None = None, parent: Array | None = None, keep: Any = None) -> None:
        self.device = device
        self.shape = tuple(shape)
        self.dtype = dtype
        self.strides = contiguous_strides(shape) if strides is None else tuple(strides)
        self._owner, self._address, self._parent, self._keep = owner, address, parent, keep
        self._run: Any = None  # the run whose scratch memory this is

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Of its elements, without what lies between them."""
        return self.size * dtypes.itemsize(self.dtype)

    @property
    def extent(self) -> int:
        """Bytes from its first element to the end of its last."""
        return extent_bytes(self.shape, self.strides, dtypes.itemsize(self.dtype))

    @property
    def is_contiguous(self) -> bool:
        expected = contiguous_strides(self.shape)
        return self.size == 0 or all(size == 1 or one == other
                                     for size, one, other in zip(self.shape, self.strides, expected))

    def __repr__(self) -> str:
        return f"<warmgraph.Array {self.dtype}{list(self.shape)} on {self.device.id}>"

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array without dimensions has no length")
        return self.shape[0]

    def __getitem__(self, key: Any) -> Array:
        """A view: integers and slices with positive steps, and `...`."""
        keys = list(key) if isinstance(key, tuple) else [key]
        if any(one is Ellipsis for one in keys):
            at = next(i for i, one in enumerate(keys) if one is Ellipsis)
            keys[at:at + 1] = [slice(None)] * (self.ndim - len(keys) + 1)
        keys += [slice(None)] * (self.ndim - len(keys))
        if len(keys) > self.ndim:
            raise IndexError(f"{len(keys)} indices for an array of {self.ndim} dimensions")
        shape, strides, first = [], [], 0
        for one, size, stride in zip(keys, self.shape, self.strides):
            if isinstance(one, slice):
                start, stop, step = one.indices(size)
                if step < 1:
                    raise IndexError(f"step {step}: views of device memory go forward")
                shape.append(max(0, -(-(stop - start) // step)))
                strides.append(stride * step)
                first += start * stride
            else:
                index = int(one) + (size if int(one) < 0 else 0)
                if not 0 <= index < size:
                    raise IndexError(f"index {one} is out of range for {size} elements")
                first += index * stride
        base, offset = self._address
        view = Array(self.device, self._owner, (base, offset + first * dtypes.itemsize(self.dtype)), shape, self.dtype, strides, self,
                     self._keep)
        view._run = self._run
        return view

    def reshape(self, *shape: Any) -> Array:
        """The same elements in another shape; one size may be -1. InvalidArgument where they are not contiguous."""
        sizes = list(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else list(shape)
        known = math.prod(size for size in sizes if size != -1)
        if sizes.count(-1) == 1 and known:
            sizes[sizes.index(-1)] = self.size // known
        if math.prod(sizes) != self.size or not self.is_contiguous:
            raise errors.InvalidArgument(f"{self!r} cannot have the shape {sizes}: it has {self.size} elements"
                                         + ("" if self.is_contiguous else ", which are not contiguous"))
        view = Array(self.device, self._owner, self._address, sizes, self.dtype, None, self, self._keep)
        view._run = self._run
        return view

    def numpy(self) -> Any:
        """A copy on the host, after all work of the device's default stream."""
        import numpy

        self.device._expect_no_run("Array.numpy")
        kind = dtypes.numpy_dtype(self.dtype)
        if self.size == 0:
            return numpy.empty(self.shape, kind)
        raw = numpy.empty(self.extent, numpy.uint8)
        self.device.synchronize()
        owner = self._owned()
        owner.download(raw.ctypes.data, self.extent, self._address[1] - owner.offset)
        steps = [stride * kind.itemsize for stride in self.strides]
        return numpy.ndarray(self.shape, kind, raw, strides=steps).copy()

    def write(self, host: Any) -> None:
        """Copies a host array of the same shape here, after all work of the default stream. InvalidArgument for a view with gaps."""
        import numpy

        self.device._expect_no_run("Array.write")
        values = numpy.asarray(host, dtypes.numpy_dtype(self.dtype), order="C")
        if values.shape != self.shape or not self.is_contiguous:
            raise errors.InvalidArgument(f"an array of shape {values.shape} cannot be written to {self!r}: expected {self.shape}"
                                         + ("" if self.is_contiguous else ", and memory without gaps"))
        if self.size == 0:
            return
        self.device.synchronize()
        owner = self._owned()
        owner.upload(values.ctypes.data, values.nbytes, self._address[1] - owner.offset)

    def _owned(self) -> Buffer:
        if self._run is not None and self._owner is None:
            raise errors.InvalidArgument(f"{self!r} is scratch memory of a run: return it, or copy it to an argument")
        if self._owner is None:
            raise errors.Unsupported(f"{self!r} is memory of another library's: copy it there")
        return self._owner

    def _memory(self) -> Any:
        base, offset = self._address
        return _c.wg_memory(_c.wg_address(base, offset), self.extent)


def pointer_array(values: Sequence[int]) -> Any:
    return (ctypes.c_int64 * len(values))(*values) if values else None
