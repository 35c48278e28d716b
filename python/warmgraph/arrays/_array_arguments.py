"""The kinds of arrays that are allowed as arguments of a function."""
from __future__ import annotations

import sys
from typing import Any, Callable, Protocol

from warmgraph import dtypes, errors
from warmgraph.arrays._device import Array, Device


class ArrayArgument(Protocol):
    """An array among the arguments. `on(device)` returns its memory there; `done` copies back the function's writes."""

    value: Any
    is_host: bool

    def key(self) -> tuple[Any, ...]: ...
    def on(self, device: Device, staged: Callable[[Any, Any], Array]) -> Array: ...
    def done(self, array: Array) -> None: ...


class DeviceArgument:
    """An Array, or another library's memory viewed as an Array."""

    is_host = False

    def __init__(self, value: Any, array: Array | None) -> None:
        self.value, self._array = value, array

    def key(self) -> tuple[Any, ...]:
        return ("device",)

    def on(self, device: Device, staged: Callable[[Any, Any], Array]) -> Array:
        array = self._array if self._array is not None else device.view(self.value)
        if array.device.id != device.id:
            raise errors.InvalidArgument(f"{array!r} is not on {device.id}: move it there")
        return array

    def done(self, array: Array) -> None:
        pass


class HostArgument:
    """A NumPy array. It is copied to the device before the call, and copied back after the call if the function may write it."""

    is_host = True

    def __init__(self, value: Any) -> None:
        self.value = value

    def key(self) -> tuple[Any, ...]:
        return ("host",)

    def on(self, device: Device, staged: Callable[[Any, Any], Array]) -> Array:
        array = staged(self.value.shape, self.value.dtype)
        array.write(self.value)
        return array

    def done(self, array: Array) -> None:
        if self.value.flags.writeable:
            self.value[...] = array.numpy()


def argument_of(value: Any) -> ArrayArgument | None:
    if type(value) in _CONTAINERS:
        return None
    for reader in _READERS:
        leaf = reader(value)
        if leaf is not None:
            return leaf
    return None


def expect_apart(arrays: list[tuple[str, Any]]) -> None:
    """Raises for host arrays that overlap: each array has its own copy on the device, so copying one array back would overwrite the results
    of the other."""
    ranges = sorted((*_bytes_of(array), at) for at, (_, array) in enumerate(arrays) if array.size)
    before: list[tuple[int, int, int]] = []  # the earlier arrays that end after the start of this array
    for first, end, at in ranges:
        before = [one for one in before if one[1] > first]
        for _, _, other in before:
            (name, one), (other_name, another) = (arrays[i] for i in sorted((other, at)))
            if one.flags.writeable or another.flags.writeable:
                raise errors.InvalidArgument(f"{name} and {other_name} overlap in host memory: pass views of one device array "
                                             "(device.array), or copies; or set flags.writeable = False where both are only read")
        before.append((first, end, at))


def _bytes_of(array: Any) -> tuple[int, int]:
    """The start and the end of an array's memory."""
    first = end = int(array.ctypes.data)
    for size, stride in zip(array.shape, array.strides):
        if stride < 0:
            first += (size - 1) * stride
        else:
            end += (size - 1) * stride
    return first, end + int(array.itemsize)


def _device_arrays(value: Any) -> ArrayArgument | None:
    if isinstance(value, Array):
        return DeviceArgument(value, value)
    if hasattr(type(value), "__cuda_array_interface__"):
        return DeviceArgument(value, None)
    return None


def _numpy_arrays(value: Any) -> ArrayArgument | None:
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(value, numpy.ndarray):
        return None
    dtypes.canonical(value.dtype)
    return HostArgument(value)


def _dlpack(value: Any) -> ArrayArgument | None:
    if not hasattr(type(value), "__dlpack__") or not hasattr(type(value), "__dlpack_device__"):
        return None
    if type(value).__module__ == "numpy":  # NumPy's numbers (numpy.float32(1)) have __dlpack__, too, but are not arrays
        return None
    kind = int(value.__dlpack_device__()[0])
    if kind == 1:  # the number of host memory in DLPack
        import numpy

        return HostArgument(numpy.from_dlpack(value))
    return DeviceArgument(value, None)


class TorchTensorError(errors.Unsupported):
    """A PyTorch tensor, which only warmgraph.torch can read."""


def _torch(value: Any) -> ArrayArgument | None:
    if any((kind.__module__, kind.__name__) == ("torch", "Tensor") for kind in type(value).__mro__):
        raise TorchTensorError(f"a {type(value).__module__}.{type(value).__name__} is given, expected an array: only functions that cache_compile wraps take "
                      "PyTorch tensors. Pass its memory (device.view(tensor), tensor.numpy())")
    return None


_CONTAINERS = (list, tuple, dict, set)  # Containers may hold arrays, but are not arrays themselves.
_READERS = (_torch, _device_arrays, _numpy_arrays, _dlpack)
