"""Devices, arrays in their memory, programs and streams. They are in one file, because a device makes arrays, and an array refers to its
device."""
from __future__ import annotations

import collections
import ctypes
import math
import weakref
from typing import Any, Callable, Sequence

from warmgraph import dtypes, errors
from warmgraph.arrays import _current_run, _foreign_arrays
from warmgraph.arrays._shapes import Tensor, contiguous_strides, extent_bytes
from warmgraph.core.binding import _c, _fork
from warmgraph.core.binding._library import Handle, library


class Buffer(Handle):
    """A range of device memory. It is freed when the device is next idle, because work may still use it."""

    _what = "buffer"

    def __init__(self, device: Device, nbytes: int) -> None:
        lib = library()
        super().__init__(lib.create("wg_buffer_create", device.pointer, nbytes), device.later(lib.wg_buffer_destroy))
        memory = lib.wg_buffer_memory(self._pointer)
        self.base, self.offset, self.nbytes = int(memory.address.base), int(memory.address.offset), nbytes

    def upload(self, source: int, nbytes: int, offset: int) -> None:
        library().wg_buffer_upload(self.pointer, source, nbytes, offset)

    def download(self, target: int, nbytes: int, offset: int) -> None:
        library().wg_buffer_download(self.pointer, target, nbytes, offset)


class Device(Handle):
    """An accelerator: "opencl", "opencl:0", "opencl:<part of a name>", or the same with "cuda" in place of "opencl". If no device matches,
    raises NotFound, whose message lists the devices."""

    _what = "device"

    def __init__(self, id: str = "opencl") -> None:
        lib = library()
        _fork.device_opens()
        self._garbage: collections.deque[tuple[Callable[[int], Any], int]] = collections.deque()
        super().__init__(lib.create("wg_device_open", id.encode()), lib.wg_device_close)
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
        """Waits for the default stream's work. Raises NotRecordable inside a function that is recorded."""
        library().wg_device_synchronize(self.pointer)

    def prepare_recording(self) -> None:
        """Starts to keep the device code that libraries load, because a recording needs it (docs/cuda.md)."""
        library().wg_prepare_recording(self.pointer)

    def warm_up(self) -> None:
        """Starts the work that this process's first restore would wait for, in the background."""
        library().wg_device_warm_up(self.pointer)

    def program(self, name: str, source: str, options: str = "") -> Program:
        """Makes a program from kernel source and build options. It is compiled when a kernel is first launched from it."""
        return Program(self, name, source, options)

    def empty(self, shape: Sequence[int] | int, dtype: Any) -> Array:
        """Allocates an array with undefined contents."""
        self._expect_no_run("Device.empty")
        wanted = Tensor(shape, dtype)
        buffer = self._allocate(wanted.nbytes)
        return Array(self, buffer, (buffer.base, buffer.offset), wanted.shape, wanted.dtype)

    def array(self, host: Any, dtype: Any = None) -> Array:
        """Copies a NumPy array, or a value that NumPy can convert to an array, to the device."""
        import numpy

        values = numpy.asarray(host)
        if dtype is not None:
            values = values.astype(dtypes.numpy_dtype(dtypes.canonical(dtype)))
        result = self.empty(values.shape, values.dtype)
        result.write(values)
        return result

    def zeros(self, shape: Sequence[int] | int, dtype: Any) -> Array:
        import numpy

        wanted = Tensor(shape, dtype)
        result = self.empty(wanted.shape, wanted.dtype)
        if result.nbytes:
            zeros = numpy.zeros(result.nbytes, numpy.uint8)
            result._owned().upload(zeros.ctypes.data, result.nbytes, 0)
        return result

    def view(self, foreign: Any) -> Array:
        """Returns an Array of another library's memory on this device, found through `__cuda_array_interface__` or DLPack. Nothing is
        copied. The Array keeps the memory alive."""
        found = _foreign_arrays.foreign_of(foreign)
        if not self.id.startswith("cuda:") or found.device not in (_foreign_arrays.CUDA, _foreign_arrays.CUDA_HOST, _foreign_arrays.CUDA_MANAGED):
            raise errors.InvalidArgument(f"memory of a {type(foreign).__name__} (DLPack device {found.device}) cannot be viewed on {self.id}: "
                                         "copy it (device.array)")
        address = library().wg_memory_from_pointer(found.pointer, 1).address
        return Array(self, None, (int(address.base), int(address.offset)), found.shape, found.dtype, found.strides, keep=found.keep)

    def close(self) -> None:
        if not self.is_closed and self._made_in == _fork.generation():
            try:
                self._collect()
            except errors.Error:
                pass  # the device failed, so its memory is lost anyway
        super().close()

    def _allocate(self, nbytes: int) -> Buffer:
        if len(self._garbage) > 0:
            self._collect()
        return Buffer(self, max(nbytes, 1))

    def later(self, destroy: Callable[[int], Any]) -> Callable[[int], Any]:
        """Delays `destroy` until nothing runs. A destructor may run in any thread, at any time, also while a function is recorded."""
        return lambda pointer: self._garbage.append((destroy, pointer))

    def _collect(self) -> None:
        if _current_run.current() is not None:
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
        run = _current_run.current()
        if run is not None and run.is_capture:
            raise errors.NotRecordable(f"'{run.name}' calls {what} while it is captured, which a replay would not repeat: "
                                       "do it before or after the call (warmgraph.empty() gives scratch memory)")


_open_devices: weakref.WeakSet[Device] = weakref.WeakSet()
_views: dict[tuple[int, int], int] = {}


def stream_view(device: Device, native: int) -> int:
    """The library's handle for another framework's stream (`native`: the driver's handle), which must live as long as the process."""
    key = (id(device), native)
    if key not in _views:
        _views[key] = library().create("wg_stream_view", device.pointer, native or None)
    return _views[key]


class Array:
    """Elements in device memory. `strides` are in elements. Views (`array[2:5]`) share the array's memory.

    Inside a captured function, an Array stands for its memory at any address; reading or writing it there from the host raises
    NotRecordable.
    """

    def __init__(self, device: Device, owner: Buffer | None, address: tuple[int, int], shape: Sequence[int], dtype: str,
                 strides: Sequence[int] | None = None, parent: Array | None = None, keep: Any = None) -> None:
        self.device = device
        self.shape = tuple(shape)
        self.dtype = dtype
        self.strides = contiguous_strides(shape) if strides is None else tuple(strides)
        self._owner, self._address, self._parent, self._keep = owner, address, parent, keep
        self._run: Any = None  # the run that owns this array, if it is scratch memory

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The size of its elements in bytes, without the gaps between them."""
        return self.size * dtypes.itemsize(self.dtype)

    @property
    def extent(self) -> int:
        """The number of bytes from the start of its first element to the end of its last."""
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
        """Returns a view, selected by integers, slices with positive steps, and `...`."""
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
                    raise IndexError(f"step {step} is not positive: views of device memory go forward")
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
        """Returns the same elements in another shape; one size may be -1. Raises InvalidArgument when the elements are not contiguous."""
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
        """Returns a copy on the host. Waits for all work in the device's default stream first."""
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
        """Copies a host array of the same shape into this array, after all work in the default stream. Raises InvalidArgument for a view
        with gaps."""
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
            raise errors.InvalidArgument(f"{self!r} is scratch memory of a running function: return it, or copy it to an argument")
        if self._owner is None:
            raise errors.Unsupported(f"{self!r} is memory of another library: copy it with that library")
        return self._owner

    def _memory(self) -> Any:
        base, offset = self._address
        return _c.wg_memory(_c.wg_address(base, offset), self.extent)


class Local:
    """A kernel argument: `nbytes` bytes of work-group (shared) memory."""

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes


class Program(Handle):
    """The source of kernels. `launch` enqueues one of the kernels."""

    _what = "program"

    def __init__(self, device: Device, name: str, source: str, options: str = "") -> None:
        lib = library()
        super().__init__(lib.create("wg_program_create", device.pointer, name.encode(), source.encode(), options.encode()),
                         lib.wg_program_destroy)
        self.device, self.name = device, name

    def __repr__(self) -> str:
        return f"<warmgraph.Program {self.name} on {self.device.id}>"

    def launch(self, kernel: str, grid: Sequence[int] | int, block: Sequence[int] | int, *args: Any) -> None:
        """Enqueues one kernel in `grid` groups of `block` work-items: inside a function of cache_compile in the run's stream, else in the
        device's default stream. Arguments are Arrays, Local, and NumPy or ctypes numbers (Python's numbers have no size)."""
        run = _current_run.current()
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
        argument.address = _address_in(run, value)
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


def _address_in(run: _current_run.RunContext | None, array: Array) -> Any:
    if array._run is not None and array._run is not run:
        if array._run.recorder is None:  # scratch memory of a function that ran uncached is ordinary memory
            return _c.wg_address(*array._address)
        raise errors.InvalidArgument(f"{array!r} was scratch memory of a function's run that has ended: use it only in that function")
    return _c.wg_address(*array._address) if run is None else run.where(array)
