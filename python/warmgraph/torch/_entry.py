"""A function of the library for one variant of a call: found, loaded or adopted through the C interface, and launched."""
from __future__ import annotations

import ctypes
import dataclasses
import itertools
import struct
import threading
from typing import Any, Callable, Mapping, NamedTuple, Sequence

from .. import _c, dtypes
from .._device import Device, stream_view as stream_view
from .._library import Handle, array_of, library
from .._native import OUTCOMES, Cache, Report, found_metadata, report_of

FLAT = 256  # the base of CUDA's addresses
# Structures of the C interface, as the compiler lays them out: texts and numbers by their addresses.
_TENSOR, _STATE = struct.Struct("@PiIP"), struct.Struct("@PQQQi0P")
_LAYOUT, _KEY_VALUE = struct.Struct("@PiIPP"), struct.Struct("@PP")
_ADDRESS = _c.wg_arg.memory.offset + _c.wg_memory.address.offset + _c.wg_address.offset.offset


class Decl(NamedTuple):
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


def _texts(values: Sequence[str]) -> tuple[Any, list[int]]:
    """(memory with all of them, the address of each)."""
    encoded = [one.encode() for one in values]
    memory_of_all = ctypes.create_string_buffer(b"\0".join(encoded))
    starts = itertools.accumulate((len(one) + 1 for one in encoded[:-1]), initial=ctypes.addressof(memory_of_all))
    return memory_of_all, list(starts)


def _rows(kind: Any, layout: struct.Struct, rows: Sequence[Sequence[int]]) -> Any:
    """An array of a C structure: a model has hundreds of rows, and an object for each field of each would take as long as a look-up."""
    return (kind * len(rows)).from_buffer_copy(b"".join(itertools.starmap(layout.pack, rows))) if rows else None


def _raw_facts(given: Declaration) -> Any:
    if not given.raw_facts:
        kept, addresses = _texts([text for pair in given.facts.items() for text in pair])
        given.raw_facts.extend((_rows(_c.wg_key_value, _KEY_VALUE, list(zip(addresses[::2], addresses[1::2]))), kept))
    return given.raw_facts[0]


def _raw(given: Declaration) -> tuple[Any, list[Any]]:
    """A wg_function_spec, and what must live until the call that takes it ends."""
    raw = _c.wg_function_spec(size=ctypes.sizeof(_c.wg_function_spec), name=given.name.encode(), version=given.version.encode(),
                              strict=int(given.strict), undeclared_constants=1,
                              metadata=given.metadata.encode() if given.metadata else None)
    decls = (*given.inputs, *given.outputs, *given.states)
    names, name_of = _texts([one.name for one in decls])
    numbers = (ctypes.c_int64 * sum(len(one.sizes) + len(one.strides or ()) for one in decls))(
        *itertools.chain.from_iterable((*one.sizes, *(one.strides or ())) for one in decls))
    tensors, states, layouts, at = [], [], [], ctypes.addressof(numbers)
    first_state = len(decls) - len(given.states)
    for index, (decl, name) in enumerate(zip(decls, name_of)):
        dtype, rank, strides = dtypes.CODES[decl.dtype], len(decl.sizes), 0
        sizes = at if rank else 0
        at += 8 * rank
        if decl.strides is not None:
            strides = at if decl.strides else 0
            at += 8 * len(decl.strides)
        if index < first_state:
            tensors.append((name, dtype, rank, sizes))
        else:
            access = _c.wg_access_read_write if decl.is_written else _c.wg_access_read_only
            states.append((name, FLAT, decl.pointer - FLAT, decl.nbytes, access))
        if index >= first_state or decl.strides is not None:
            layouts.append((name, dtype, rank, sizes, strides))
    inputs = len(given.inputs)
    environment = (ctypes.c_char_p * len(given.environment))(*(name.encode() for name in given.environment))
    lists: list[tuple[str, str, Any, int]] = [
        ("inputs", "input_count", _rows(_c.wg_tensor_decl, _TENSOR, tensors[:inputs]), inputs),
        ("outputs", "output_count", _rows(_c.wg_tensor_decl, _TENSOR, tensors[inputs:]), len(given.outputs)),
        ("states", "state_count", _rows(_c.wg_state_decl, _STATE, states), len(states)),
        ("layouts", "layout_count", _rows(_c.wg_layout, _LAYOUT, layouts), len(layouts)),
        ("config", "config_count", _raw_facts(given), len(given.facts)),
        ("environment", "environment_count", environment if given.environment else None, len(given.environment)),
    ]
    for field, count, rows, number in lists:
        setattr(raw, field, rows)
        setattr(raw, count, number)
    return raw, [names, numbers, given.raw_facts, *(rows for _, _, rows, _ in lists)]


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
        self.placed_by: Any = None  # who placed the arguments' addresses of the last call and judged them; None: they are judged anew
        self.lock = threading.Lock()  # of arguments and states until they are launched
        self._outcome = ctypes.c_int32()
        self._enqueue, self._expect_ok = lib.unchecked("wg_call"), lib.expect_ok
        self._handle, self._count = ctypes.c_void_p(pointer), ctypes.c_uint64(len(self._names))
        self._raw_args, self._raw_outcome = ctypes.byref(self._args), ctypes.byref(self._outcome)

    def __call__(self, stream: int, pointers: Sequence[int], states: Sequence[int]) -> str:
        """Enqueues it behind what is in the stream: inputs, then outputs, and the states where they are now."""
        lib = library()
        with self.lock:
            if states != self.bound_states:
                for name, size, pointer, before in zip(self._state_names, self._state_sizes, states, self.bound_states):
                    if pointer != before:
                        lib.wg_bind(self.pointer, name, memory(pointer, size))
                self.bound_states = list(states)
            self.placed_by = None
            for arg, pointer in zip(self._args, pointers):
                arg.memory.address.offset = pointer - FLAT
            self.launch(stream)
            return OUTCOMES.get(self._outcome.value, "unknown")

    def place_of(self, index: int) -> tuple[Any, int]:
        """(structure, offset in it) of an argument's address, less FLAT, for `launch`."""
        return self._args, index * ctypes.sizeof(_c.wg_arg) + _ADDRESS

    def launch(self, stream: int) -> None:
        """With the addresses that were placed, under the lock."""
        self.expect_open()
        self._expect_ok(self._enqueue(self._handle, ctypes.c_void_p(stream), self._raw_args, self._count, self._raw_outcome))

    def report(self) -> Report:
        return report_of(self.pointer)

    def misses(self) -> str:
        return library().text("wg_function_misses", self.pointer)
