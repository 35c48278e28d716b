"""A function of the library for one variant of a call: found, loaded or adopted through the C interface, and launched."""
from __future__ import annotations

import ctypes
import dataclasses
import threading
from typing import Any, Callable, Mapping, Sequence

from .. import _c, dtypes
from .._array import pointer_array
from .._device import Device, stream_view as stream_view
from .._library import Handle, array_of, library
from .._native import OUTCOMES, Cache, Report, found_metadata, report_of

FLAT = 256  # the base of CUDA's addresses
_ADDRESS = _c.wg_arg.memory.offset + _c.wg_memory.address.offset + _c.wg_address.offset.offset


@dataclasses.dataclass(frozen=True)
class Decl:
    """An input, output or state. `strides`: None where it is contiguous."""

    name: str
    dtype: str
    sizes: tuple[int, ...]
    strides: tuple[int, ...] | None
    pointer: int
    nbytes: int
    is_written: bool = True


@dataclasses.dataclass(frozen=True)
class Declaration:
    """What the library is told of a variant."""

    name: str
    inputs: Sequence[Decl]
    outputs: Sequence[Decl]
    states: Sequence[Decl]
    facts: Mapping[str, str]
    environment: Sequence[str]
    version: str
    metadata: str = ""
    strict: bool = False
    raw_facts: list[Any] = dataclasses.field(default_factory=list, compare=False, repr=False)  # made once: a model has hundreds


def memory(pointer: int, nbytes: int) -> Any:
    return _c.wg_memory(_c.wg_address(FLAT, pointer - FLAT), nbytes)


def _raw(given: Declaration) -> tuple[Any, list[Any]]:
    """A wg_function_spec, and what must live until the call that takes it ends."""
    keep: list[Any] = []
    raw = _c.wg_function_spec(size=ctypes.sizeof(_c.wg_function_spec), name=given.name.encode(), version=given.version.encode(),
                              strict=int(given.strict), undeclared_constants=1,
                              metadata=given.metadata.encode() if given.metadata else None)
    layouts = []

    def tensors(decls: Sequence[Decl]) -> Any:
        rows = []
        for decl in decls:
            sizes, strides = pointer_array(decl.sizes), pointer_array(decl.strides or ())
            keep.append((sizes, strides))
            rows.append(_c.wg_tensor_decl(decl.name.encode(), dtypes.CODES[decl.dtype], len(decl.sizes), sizes))
            if decl.strides is not None:
                layouts.append(_c.wg_layout(decl.name.encode(), dtypes.CODES[decl.dtype], len(decl.sizes), sizes, strides))
        return array_of(_c.wg_tensor_decl, rows)

    raw.inputs, raw.input_count = tensors(given.inputs), len(given.inputs)
    raw.outputs, raw.output_count = tensors(given.outputs), len(given.outputs)
    states = []
    for decl in given.states:
        access = _c.wg_access_read_write if decl.is_written else _c.wg_access_read_only
        sizes = pointer_array(decl.sizes)
        keep.append(sizes)
        states.append(_c.wg_state_decl(decl.name.encode(), memory(decl.pointer, decl.nbytes), access))
        layouts.append(_c.wg_layout(decl.name.encode(), dtypes.CODES[decl.dtype], len(decl.sizes), sizes, None))
    if not given.raw_facts:
        given.raw_facts.extend(_c.wg_key_value(key.encode(), value.encode()) for key, value in given.facts.items())
    environment = [name.encode() for name in given.environment]
    lists: list[tuple[str, str, Any, list[Any]]] = [
        ("states", "state_count", _c.wg_state_decl, states), ("layouts", "layout_count", _c.wg_layout, layouts),
        ("config", "config_count", _c.wg_key_value, given.raw_facts), ("environment", "environment_count", ctypes.c_char_p, environment),
    ]
    for field, count, kind, rows in lists:
        setattr(raw, field, array_of(kind, rows))
        setattr(raw, count, len(rows))
    keep += [layouts, states, given.raw_facts, environment]
    return raw, keep


def found(cache: Cache, device: Device, given: Declaration) -> str | None:
    """The metadata of the entry for these inputs, states and facts; None: there is none."""
    raw, keep = _raw(given)
    text = found_metadata(cache, device, raw)
    del keep
    return text


@dataclasses.dataclass(frozen=True)
class Captured:
    """A graph and where everything was: (name, pointer, bytes)."""

    native: int
    regions: Sequence[tuple[str, int, int]]
    scratch: Sequence[tuple[str, int, int]]
    free_blocks: Sequence[tuple[int, int]]


def _raw_capture(one: Captured) -> tuple[Any, Any]:
    regions = [_c.wg_named_memory(name.encode(), pointer, nbytes) for name, pointer, nbytes in one.regions]
    scratch = [_c.wg_named_memory(name.encode(), pointer, nbytes) for name, pointer, nbytes in one.scratch]
    blocks = [memory(pointer, nbytes) for pointer, nbytes in one.free_blocks]
    raw = _c.wg_native_capture(size=ctypes.sizeof(_c.wg_native_capture), graph=one.native)
    lists: list[tuple[str, str, Any, list[Any]]] = [
        ("regions", "region_count", _c.wg_named_memory, regions), ("scratch", "scratch_count", _c.wg_named_memory, scratch),
        ("free_blocks", "free_block_count", _c.wg_memory, blocks)]
    for field, count, kind, rows in lists:
        setattr(raw, field, array_of(kind, rows))
        setattr(raw, count, len(rows))
    return raw, (regions, scratch, blocks)


def _raw_adoption(first: Captured, second: Captured | str) -> tuple[Any, list[Any]]:
    raw, kept = _raw_capture(first)
    adoption, keep = _c.wg_adoption(size=ctypes.sizeof(_c.wg_adoption), first=ctypes.pointer(raw)), [raw, kept]
    if isinstance(second, str):
        adoption.captures = second.encode()
    else:
        other, kept = _raw_capture(second)
        adoption.second = ctypes.pointer(other)
        keep += [other, kept]
    return adoption, keep


def write_capture(cache: Cache, device: Device, given: Declaration, captured: Captured, folder: str) -> None:
    """For an adoption in another process. REQUIRES: the cache has no function of this name."""
    (raw, keep), (adoption, kept) = _raw(given), _raw_adoption(captured, folder)
    library().wg_capture_write(cache.pointer, device.pointer, ctypes.byref(raw), ctypes.byref(adoption))
    del keep, kept


class Entry(Handle):
    """A function that replays. It is destroyed when the device is next idle."""

    _what = "function"

    def __init__(self, cache: Cache, device: Device, given: Declaration, captures: tuple[Captured, Captured | str] | None,
                 destroyed: Callable[[], Any]) -> None:
        """captures: None: it is loaded. Else it is adopted; where the second one is a folder, another process wrote it there."""
        self.cache, self.device, self.name = cache, device, given.name
        lib, (raw, keep) = library(), _raw(given)
        if captures is None:
            pointer = lib.made("wg_cache_load", cache.pointer, device.pointer, ctypes.byref(raw))
        else:
            adoption, kept = _raw_adoption(*captures)
            pointer = lib.made("wg_cache_adopt", cache.pointer, device.pointer, ctypes.byref(raw), ctypes.byref(adoption))
            del kept
        del keep

        def destroy(one: int) -> None:
            lib.wg_function_destroy(one)
            destroyed()

        super().__init__(pointer, device.later(destroy))
        self._names = [decl.name for decl in (*given.inputs, *given.outputs)]
        self._args = (_c.wg_arg * max(len(self._names), 1))()
        for arg, decl in zip(self._args, (*given.inputs, *given.outputs)):
            arg.name, arg.kind, arg.memory = decl.name.encode(), _c.wg_arg_memory, memory(decl.pointer or FLAT, decl.nbytes)
        self._state_names = [decl.name.encode() for decl in given.states]
        self._state_sizes = [decl.nbytes for decl in given.states]
        self.bound_states = [decl.pointer for decl in given.states]  # another list, once they were bound elsewhere
        self.lock = threading.Lock()  # of arguments and states until they are launched
        self._outcome = ctypes.c_int32()

    def __call__(self, stream: int, pointers: Sequence[int], states: Sequence[int]) -> str:
        """Enqueues it behind what is in the stream: inputs, then outputs, and the states where they are now."""
        lib = library()
        with self.lock:
            if states != self.bound_states:
                for name, size, pointer, before in zip(self._state_names, self._state_sizes, states, self.bound_states):
                    if pointer != before:
                        lib.wg_bind(self.pointer, name, memory(pointer, size))
                self.bound_states = list(states)
            for arg, pointer in zip(self._args, pointers):
                arg.memory.address.offset = pointer - FLAT
            return self.launch(stream)

    def place_of(self, index: int) -> tuple[Any, int]:
        """(structure, offset in it) of an argument's address, less FLAT, for `launch`."""
        return self._args, index * ctypes.sizeof(_c.wg_arg) + _ADDRESS

    def launch(self, stream: int) -> str:
        """With the addresses that were placed, under the lock."""
        library().wg_call(self.pointer, stream, self._args, len(self._names), ctypes.byref(self._outcome))
        return OUTCOMES.get(self._outcome.value, "unknown")

    def report(self) -> Report:
        return report_of(self.pointer)

    def misses(self) -> str:
        return library().text("wg_function_misses", self.pointer)
