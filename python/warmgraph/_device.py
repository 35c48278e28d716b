"""Devices, their memory, programs and streams."""
from __future__ import annotations

import collections
import ctypes
import weakref
from typing import Any, Callable, Sequence

from . import _array, _c, _fork, _run, dtypes, errors
from ._array import Array
from ._library import Handle, library


class Buffer(Handle):
    """A range of device memory. What still runs on it must not lose it: it is freed when the device is next idle."""

    _what = "buffer"

    def __init__(self, device: Device, nbytes: int) -> None:
        lib = library()
        super().__init__(lib.made("wg_buffer_create", device.pointer, nbytes), device.later(lib.wg_buffer_destroy))
        memory = lib.wg_buffer_memory(self._pointer)
        self.base, self.offset, self.nbytes = int(memory.address.base), int(memory.address.offset), nbytes

    def upload(self, source: int, nbytes: int, offset: int) -> None:
        library().wg_buffer_upload(self.pointer, source, nbytes, offset)

    def download(self, target: int, nbytes: int, offset: int) -> None:
        library().wg_buffer_download(self.pointer, target, nbytes, offset)


class Device(Handle):
    """An accelerator: "opencl", "opencl:0", "opencl:<part of a name>", the same with "cuda". NotFound lists what there is."""

    _what = "device"

    def __init__(self, id: str = "opencl") -> None:
        lib = library()
        _fork.device_opens()
        self._garbage: collections.deque[tuple[Callable[[int], Any], int]] = collections.deque()
        super().__init__(lib.made("wg_device_open", id.encode()), lib.wg_device_close)
        self.id: str = lib.wg_device_id(self._pointer).decode()
        self.name: str = lib.wg_device_name(self._pointer).decode()
        _open_devices.add(self)

    def __repr__(self) -> str:
        return f"<warmgraph.Device {self.id} ({self.name})>"

    @property
    def stream(self) -> int:
        """The default stream's handle, for the C interface."""
        return int(library().wg_device_stream(self.pointer))

    def synchronize(self) -> None:
        """Waits for the default stream's work. NotRecordable inside a function that is recorded."""
        library().wg_device_synchronize(self.pointer)

    def prepare_recording(self) -> None:
        """Keeps the device code that libraries load from now on (docs/cuda.md)."""
        library().wg_prepare_recording(self.pointer)

    def warm_up(self) -> None:
        """Begins, in the background, what the first restore of this process would wait for."""
        library().wg_device_warm_up(self.pointer)

    def program(self, name: str, source: str, options: str = "") -> Program:
        """Kernel source with build options. It is compiled when a kernel is first launched from it."""
        return Program(self, name, source, options)

    def empty(self, shape: Sequence[int] | int, dtype: Any) -> Array:
        """Memory with undefined contents."""
        self._expect_no_run("Device.empty")
        wanted = _array.Tensor(shape, dtype)
        buffer = self._allocate(wanted.nbytes)
        return Array(self, buffer, (buffer.base, buffer.offset), wanted.shape, wanted.dtype)

    def array(self, host: Any, dtype: Any = None) -> Array:
        """A copy of a NumPy array, or of what NumPy makes one of."""
        import numpy

        values = numpy.asarray(host)
        if dtype is not None:
            values = values.astype(dtypes.numpy_dtype(dtypes.canonical(dtype)))
        result = self.empty(values.shape, values.dtype)
        result.write(values)
        return result

    def zeros(self, shape: Sequence[int] | int, dtype: Any) -> Array:
        import numpy

        wanted = _array.Tensor(shape, dtype)
        result = self.empty(wanted.shape, wanted.dtype)
        if result.nbytes:
            zeros = numpy.zeros(result.nbytes, numpy.uint8)
            result._owned().upload(zeros.ctypes.data, result.nbytes, 0)
        return result

    def view(self, foreign: Any) -> Array:
        """Memory of another library's on this device, by `__cuda_array_interface__` or DLPack, without a copy. It is kept alive."""
        from . import _foreign

        return _foreign.viewed(self, foreign)

    def close(self) -> None:
        if not self.is_closed and self._made_in == _fork.generation():
            try:
                self._collect()
            except errors.Error:
                pass  # a device that failed: its memory goes with it
        super().close()

    def _allocate(self, nbytes: int) -> Buffer:
        if len(self._garbage) > 0:
            self._collect()
        return Buffer(self, max(nbytes, 1))

    def later(self, destroy: Callable[[int], Any]) -> Callable[[int], Any]:
        """`destroy` put off until nothing runs: a destructor comes in any thread, at any time, also while a function is recorded."""
        return lambda pointer: self._garbage.append((destroy, pointer))

    def _collect(self) -> None:
        if _run.current() is not None:
            return
        taken = []
        while self._garbage:
            try:
                taken.append(self._garbage.popleft())
            except IndexError:
                break
        if taken:
            self.synchronize()
        for destroy, pointer in taken:
            destroy(pointer)

    def _expect_no_run(self, what: str) -> None:
        run = _run.current()
        if run is not None and run.is_capture:
            raise errors.NotRecordable(f"'{run.name}' calls {what} while it is captured, which a replay would not repeat: "
                                       "do it before or after the call (warmgraph.empty() gives scratch memory)")


_open_devices: weakref.WeakSet[Device] = weakref.WeakSet()
_views: dict[tuple[int, int], int] = {}


def stream_view(device: Device, native: int) -> int:
    """The library's handle for a stream that somebody else made, which lives as long as the process."""
    key = (id(device), native)
    if key not in _views:
        _views[key] = library().made("wg_stream_view", device.pointer, native or None)
    return _views[key]


class Local:
    """A kernel argument: so many bytes of work-group (shared) memory."""

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes


class Program(Handle):
    """Kernel source; `launch` enqueues one of its kernels."""

    _what = "program"

    def __init__(self, device: Device, name: str, source: str, options: str = "") -> None:
        lib = library()
        super().__init__(lib.made("wg_program_create", device.pointer, name.encode(), source.encode(), options.encode()),
                         lib.wg_program_destroy)
        self.device, self.name = device, name

    def __repr__(self) -> str:
        return f"<warmgraph.Program {self.name} on {self.device.id}>"

    def launch(self, kernel: str, grid: Sequence[int] | int, block: Sequence[int] | int, *args: Any) -> None:
        """Enqueues one kernel in `grid` groups of `block` work-items: in the run's stream inside a function of cache_compile, else in the
        device's default one. Arguments are Arrays, NumPy or ctypes numbers (which have a size; Python's have none) and Local."""
        run = _run.current()
        keep: list[Any] = []
        given = [_kernel_argument(run, position, one, keep) for position, one in enumerate(args)]
        stream = run.stream if run is not None else self.device.stream
        library().wg_launch(stream, self.pointer, kernel.encode(), _three(grid, "grid"), _three(block, "block"),
                            (_c.wg_kernel_arg * len(given))(*given), len(given))


def _three(sizes: Sequence[int] | int, what: str) -> Any:
    values = [sizes] if isinstance(sizes, int) else [int(size) for size in sizes]
    if not 1 <= len(values) <= 3 or any(value < 1 for value in values):
        raise errors.InvalidArgument(f"{what} {sizes} is wrong: expected one to three sizes of at least 1")
    return (ctypes.c_uint32 * 3)(*values, *[1] * (3 - len(values)))


def _kernel_argument(run: Any, position: int, value: Any, keep: list[Any]) -> Any:
    argument = _c.wg_kernel_arg()
    if isinstance(value, Array):
        argument.kind = _c.wg_kernel_arg_memory
        argument.address = _run.address_in(run, value)
        return argument
    if isinstance(value, Local):
        argument.kind, argument.bytes = _c.wg_kernel_arg_local, value.nbytes
        return argument
    raw = _bytes_of_number(position, value)
    keep.append(raw)
    argument.kind, argument.bytes = _c.wg_kernel_arg_value, len(raw)
    argument.value = ctypes.cast(raw, ctypes.c_void_p)
    return argument


def _bytes_of_number(position: int, value: Any) -> Any:
    if isinstance(value, (ctypes._SimpleCData, ctypes.Structure)):
        raw = bytes(value)
    elif type(value).__module__ == "numpy" and hasattr(value, "tobytes") and getattr(value, "shape", None) == ():
        raw = value.tobytes()
    else:
        raise errors.InvalidArgument(
            f"kernel argument {position} is {type(value).__name__}: expected an Array, a number that has a size "
            "(numpy.int32(3), ctypes.c_float(0.5)) or Local(nbytes)"
            + (": copy host arrays first (device.array)" if hasattr(value, "__array_interface__") else ""))
    return ctypes.create_string_buffer(raw, len(raw))
