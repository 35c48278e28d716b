"""The environment of a function while it enqueues its work: the stream, addresses, and scratch memory."""
from __future__ import annotations

import contextlib
import ctypes
import threading
from typing import Any, Iterator, Sequence

from warmgraph import dtypes, errors
from warmgraph.arrays._current_run import current, state, threads
from warmgraph.arrays._device import Array, Device
from warmgraph.arrays._shapes import Tensor
from warmgraph.core.binding import _c
from warmgraph.core.binding._library import library


class Run:
    """One run of a function. It is either uncached (without a recorder), or made by the library's recorder, which gives the addresses."""

    def __init__(self, name: str, device: Device, recorder: int | None, regions: Sequence[tuple[str, Array]],
                 is_first: bool = True) -> None:
        self.name, self.device, self.recorder = name, device, recorder
        self.stream: int = device.stream if recorder is None else int(library().wg_recorder_stream(recorder))
        self._regions = list(regions)
        self._names = {id(array): name for name, array in regions}
        self._count = 0
        # Whether the run is a capture. If the body uses regions, the run is a capture when they are not in the caller's memory; if not,
        # every run after the first one is a capture.
        self.is_capture = recorder is not None and (self._is_elsewhere() if regions else not is_first)

    def __enter__(self) -> Run:
        state.runs.append(self)
        threads.append(threading.get_ident())
        return self

    def __exit__(self, *_: Any) -> None:
        state.runs.pop()
        threads.remove(threading.get_ident())

    def _is_elsewhere(self) -> bool:
        return any((at.base, at.offset) != array._address for at, array in ((self.address(name), one) for name, one in self._regions))

    def address(self, name: str) -> Any:
        """The address of an input, output or state in this run."""
        address = _c.wg_address()
        library().wg_recorder_address(self.recorder, name.encode(), ctypes.byref(address))
        return address

    def number(self, name: str, dtype: str) -> Any:
        """The scalar or value of this run, as a NumPy number of its type."""
        raw = ctypes.create_string_buffer(8)
        library().wg_recorder_scalar(self.recorder, name.encode(), dtypes.CODES[dtype], raw)
        import numpy

        return numpy.frombuffer(raw.raw, dtypes.numpy_dtype(dtype), 1)[0]

    def tensor(self, name: str, strides: Sequence[int] | None = None) -> Array:
        """An input or output, with its memory and its sizes in this run."""
        sizes, rank, dtype = ctypes.POINTER(ctypes.c_int64)(), ctypes.c_uint64(), ctypes.c_int32()
        lib = library()
        lib.wg_recorder_sizes(self.recorder, name.encode(), ctypes.byref(sizes), ctypes.byref(rank))
        lib.wg_recorder_dtype(self.recorder, name.encode(), ctypes.byref(dtype))
        address = self.address(name)
        array = Array(self.device, None, (address.base, address.offset), [sizes[i] for i in range(rank.value)],
                      dtypes.NAMES[dtype.value], strides)
        array._run = self
        return array

    def empty(self, shape: Sequence[int] | int, dtype: Any) -> Array:
        wanted = Tensor(shape, dtype)
        if self.recorder is None:
            result = self.device.empty(wanted.shape, wanted.dtype)
        else:
            address = _c.wg_address()
            library().wg_recorder_alloc(self.recorder, f"scratch{self._count}".encode(), max(wanted.nbytes, 1), ctypes.byref(address))
            result = Array(self.device, None, (address.base, address.offset), wanted.shape, wanted.dtype)
        self._count += 1
        result._run = self
        return result

    def where(self, array: Array) -> Any:
        """The address of an array's memory in this run."""
        base, offset = array._address
        if array._run is self or not self.is_capture:
            return _c.wg_address(base, offset)
        name, region = self._region_of(array)
        found = self.address(name)
        return _c.wg_address(found.base, found.offset + offset - region._address[1])

    def _region_of(self, array: Array) -> tuple[str, Array]:
        of: Array | None = array
        while of is not None:  # first the array itself, then the arrays that it is a view of
            if id(of) in self._names:
                return self._names[id(of)], of
            of = of._parent
        base, offset = array._address
        around = [(name, one) for name, one in self._regions if one._address[0] == base
                  and one._address[1] <= offset and offset + array.extent <= one._address[1] + one.extent]
        if len(around) == 1:
            return around[0]
        if around:
            raise errors.NotRecordable(f"'{self.name}' uses {array!r}, which lies in {' and in '.join(name for name, _ in around)}, so it is unclear "
                                       "which one is meant: take a view of that one")
        raise errors.NotRecordable(
            f"'{self.name}' uses {array!r}, which is not an argument, an attribute of its object, a variable of its closure or a global that it "
            "names: pass it, store it in an attribute, or take scratch memory with warmgraph.empty()")


def _needed(what: str) -> Run:
    run: Run | None = current()
    if run is None:
        raise errors.InvalidArgument(f"warmgraph.{what} works only in a function of cache_compile while it runs: outside, use a Device's")
    return run


def empty(shape: Sequence[int] | int, dtype: Any) -> Array:
    """Scratch memory of a running function, owned by the entry. It is zero at first, then keeps the previous call's contents; do not depend on them."""
    return _needed("empty").empty(shape, dtype)


def empty_like(array: Any) -> Array:
    """Scratch memory with the shape and element type of an array."""
    return empty(array.shape, array.dtype)


def copy(to: Array, source: Array) -> None:
    """Enqueues a copy of all elements."""
    run = _needed("copy")
    if to.nbytes != source.nbytes or not (to.is_contiguous and source.is_contiguous):
        raise errors.InvalidArgument(f"{source!r} cannot be copied to {to!r}: expected the same number of bytes, without gaps")
    if to.nbytes:
        library().wg_copy(run.stream, run.where(to), run.where(source), to.nbytes)


def fill(array: Array, value: Any) -> None:
    """Enqueues a fill of all elements with a number."""
    import numpy

    run = _needed("fill")
    if not array.is_contiguous:
        raise errors.InvalidArgument(f"{array!r} has gaps: fill an array without gaps")
    pattern = numpy.asarray(value, dtypes.numpy_dtype(array.dtype)).tobytes()
    if array.nbytes:
        library().wg_fill(run.stream, run.where(array), pattern, len(pattern), array.nbytes)


@contextlib.contextmanager
def forked() -> Iterator[None]:
    """Enqueues the block's work in a separate stream. This work starts after all work so far; work after the block waits for it."""
    run = _needed("forked")
    if run.recorder is None:
        yield
        return
    lib, before = library(), run.stream
    run.stream = lib.create("wg_recorder_fork", run.recorder)
    try:
        yield
    finally:
        stream, run.stream = run.stream, before
    lib.wg_recorder_join(run.recorder, stream)
