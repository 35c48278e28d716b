"""Finds, loads, stores and launches the library's function for one variant of a call, through the C interface."""
from __future__ import annotations

import array
import ctypes
import dataclasses
import itertools
import operator
import struct
import threading
from typing import Any, Callable, Mapping, Protocol, Sequence, Tuple

from warmgraph import dtypes, errors
from warmgraph.arrays._device import Device
from warmgraph.core.binding import _c
from warmgraph.core.binding._library import Handle, array_of, kind_of, library
from warmgraph.core.cache._cache import OUTCOMES, Cache, Report, found_metadata, report_of
from warmgraph.reading import _native_snapshots

FLAT = 256  # the base that all addresses of CUDA memory get in the C interface
# Formats of struct.pack for structures of the C interface. Texts and arrays are addresses.
_TENSOR, _LAYOUT, _STATE, _ARG = "PiIP", "PiIPP", "PQQQi", "PiiQQQPPQQ"
_ADDRESS = _c.wg_arg.memory.offset + _c.wg_memory.address.offset + _c.wg_address.offset.offset
_WORD = 8  # bytes of an address


@dataclasses.dataclass
class Decl:
    """An input, output or state. `strides`: None when it is contiguous. An instance is never modified: its C structures are made once and
    kept, because a table's graphs share one model's states."""

    name: str
    dtype: str
    sizes: tuple[int, ...]
    strides: tuple[int, ...] | None
    pointer: int
    nbytes: int
    is_written: bool = True
    _other: Decl | None = dataclasses.field(default=None, init=False, compare=False, repr=False)
    _layout: _Layout | None = dataclasses.field(default=None, init=False, compare=False, repr=False)

    def with_access(self, is_written: bool) -> Decl:
        if is_written == self.is_written:
            return self
        if self._other is None:
            self._other = Decl(self.name, self.dtype, self.sizes, self.strides, self.pointer, self.nbytes, is_written)
            self._other._layout = self._layout
        return self._other


@dataclasses.dataclass(frozen=True)
class Declaration:
    """A variant's declaration to the library."""

    name: str
    inputs: Sequence[Decl]
    outputs: Sequence[Decl]
    states: Sequence[Decl]
    facts: Mapping[str, str]
    environment: Sequence[str]
    version: str
    metadata: str = ""
    strict: bool = False
    keeps_undeclared: bool = True  # memory of libraries is stored as constants (docs/adoption.md)
    part: tuple[int, int] | None = None  # for storing one half of a pair: (the recording's id, 0 for forward or 1 for backward)
    raw_facts: list[Any] = dataclasses.field(default_factory=list, compare=False, repr=False)  # the facts in C, made once for all calls


def memory(pointer: int, nbytes: int) -> Any:
    return _c.wg_memory(_c.wg_address(FLAT, pointer - FLAT), nbytes)


def _address_of(data: bytes) -> int:
    return ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0


def _texts(values: list[str]) -> tuple[Any, list[int]]:
    """Returns (the object that holds the memory, the address of each text)."""
    if _native_snapshots.is_possible():
        return values, _native_snapshots.text_addresses(values)
    text = "\0".join(values)
    memory_of_all = text.encode()  # Python adds a zero at the end
    lengths = map(len, values) if text.isascii() else (len(one.encode()) for one in values)
    ends = itertools.accumulate(lengths, initial=_address_of(memory_of_all))
    return memory_of_all, list(map(operator.add, ends, range(len(values))))  # plus the index of each text, because a zero follows each text


def _rows(kind: Any, members: str, rows: Sequence[Sequence[int]]) -> tuple[Any, bytes]:
    """Returns (an array of a C structure, its memory). A model has hundreds of rows. Making a Python object for each field would take as
    long as a look-up; making a type for each array length would take a fifth of that."""
    data = struct.pack(f"@{members * len(rows)}0P", *itertools.chain.from_iterable(rows))
    return ctypes.cast(ctypes.c_char_p(data), ctypes.POINTER(kind)) if rows else None, data


# (the members of a wg_layout, the objects that hold the memory that they point to)
_Layout = Tuple[Tuple[int, int, int, int, int], Any]


def _layouts(decls: Sequence[Decl]) -> list[_Layout]:
    new = [one for one in decls if one._layout is None]
    names_kept, names = _texts([one.name for one in new])
    numbers = array.array("q", itertools.chain.from_iterable([one.sizes if one.strides is None else one.sizes + one.strides for one in new]))
    kept, at = (names_kept, numbers), numbers.buffer_info()[0]
    for one, name in zip(new, names):
        rank = len(one.sizes)
        after = at + 8 * rank
        one._layout = (name, dtypes.CODES[one.dtype], rank, at if rank else 0, after if one.strides else 0), kept
        at = after + 8 * len(one.strides or ())
    return [one._layout for one in decls if one._layout is not None]


def _raw_facts(given: Declaration) -> Any:
    if not given.raw_facts:
        kept, addresses = _texts(list(itertools.chain.from_iterable(given.facts.items())))
        rows = array.array("Q", addresses)  # two addresses for each row (wg_key_value), so an array suffices
        given.raw_facts.extend((ctypes.cast(rows.buffer_info()[0], ctypes.POINTER(_c.wg_key_value)), rows, kept))
    return given.raw_facts[0]


def raw_spec(given: Declaration) -> tuple[Any, list[Any]]:
    """A wg_function_spec, and the objects that must stay alive until the C function that gets it returns."""
    raw = _c.wg_function_spec(size=ctypes.sizeof(_c.wg_function_spec), name=given.name.encode(), version=given.version.encode(),
                              strict=int(given.strict), undeclared_constants=int(given.keeps_undeclared),
                              metadata=given.metadata.encode() if given.metadata else None)
    layouts = _layouts((*given.inputs, *given.outputs, *given.states))
    rows = [row for row, _ in layouts]
    inputs, outputs, states = len(given.inputs), len(given.outputs), len(given.states)
    tensors = [row[:4] for row in rows[:inputs + outputs]]
    laid_out = [row for row in rows[:inputs + outputs] if row[4]] + rows[inputs + outputs:]
    held = [(row[0], FLAT, one.pointer - FLAT, one.nbytes, _c.wg_access_read_write if one.is_written else _c.wg_access_read_only)
            for row, one in zip(rows[inputs + outputs:], given.states)]
    environment = (ctypes.c_char_p * len(given.environment))(*(name.encode() for name in given.environment))
    lists: list[tuple[str, str, tuple[Any, ...], int]] = [
        ("inputs", "input_count", _rows(_c.wg_tensor_decl, _TENSOR, tensors[:inputs]), inputs),
        ("outputs", "output_count", _rows(_c.wg_tensor_decl, _TENSOR, tensors[inputs:]), outputs),
        ("states", "state_count", _rows(_c.wg_state_decl, _STATE, held), states),
        ("layouts", "layout_count", _rows(_c.wg_layout, _LAYOUT, laid_out), len(laid_out)),
        ("config", "config_count", (_raw_facts(given),), len(given.facts)),
        ("environment", "environment_count", (environment if given.environment else None,), len(given.environment)),
    ]
    for field, count, made, number in lists:
        setattr(raw, field, made[0])
        setattr(raw, count, number)
    return raw, [given, layouts, *(made for _, _, made, _ in lists)]


def found(cache: Cache, device: Device, given: Declaration) -> str | None:
    """The metadata of the entry for these inputs, states and facts; None if there is no such entry."""
    raw, keep = raw_spec(given)
    text = found_metadata(cache, device, raw)
    del keep
    return text


@dataclasses.dataclass(frozen=True)
class CapturedGraph:
    """A captured graph and its memory. `regions` and `scratch` have (name, pointer, bytes). `number_distance`: how much larger C code read some
    numbers than in the first capture; 0: no number differed."""

    native: int
    regions: Sequence[tuple[str, int, int]]
    scratch: Sequence[tuple[str, int, int]]
    free_blocks: Sequence[tuple[int, int]]
    number_distance: int = 0


def _raw_capture(one: CapturedGraph) -> tuple[Any, Any]:
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


class Judge(Protocol):
    """Compares the graph's results with the function's (see wg_adoption.answer). An exception refuses the graph."""

    def after_run(self) -> None: ...

    def agreement(self) -> str: ...


# The type of wg_adoption.answer, but with an address as the text: for a char*, ctypes would give the callback a copy.
_ANSWER = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p, ctypes.c_uint64)


class _JudgeCallback:
    """Implements wg_adoption.answer with a judge. `raised`: the exception that the judge raised."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self.raised: BaseException | None = None
        self._callback = _ANSWER(self._ask)
        self.raw = ctypes.cast(self._callback, kind_of(_c.wg_adoption, "answer"))

    def _ask(self, user: Any, is_last: int, text: int, size: int) -> int:
        said, status = "", 0
        try:
            if is_last:
                said = self._judge.agreement()
            else:
                self._judge.after_run()
        except BaseException as error:  # no exception may pass through C code; Entry raises it afterwards
            self.raised, said, status = error, str(error), 1
        data = said.encode("utf-8", "replace")[:size]
        ctypes.memmove(text, data, len(data))  # the library has filled the rest with zeros
        return status


def _raw_adoption(first: CapturedGraph, second: CapturedGraph | str, asked: _JudgeCallback | None = None) -> tuple[Any, list[Any]]:
    raw, kept = _raw_capture(first)
    adoption, keep = _c.wg_adoption(size=ctypes.sizeof(_c.wg_adoption), first=ctypes.pointer(raw)), [raw, kept]
    if isinstance(second, str):
        adoption.captures = second.encode()
    else:
        other, kept = _raw_capture(second)
        adoption.second = ctypes.pointer(other)
        adoption.number_distance = second.number_distance
        keep += [other, kept]
    if asked is not None:
        adoption.answer = asked.raw
    return adoption, keep


def write_capture(cache: Cache, device: Device, given: Declaration, captured: CapturedGraph, folder: str) -> None:
    """Writes a capture, with which another process can prove its own. REQUIRES: the cache has no function of this name."""
    (raw, keep), (adoption, kept) = raw_spec(given), _raw_adoption(captured, folder)
    library().wg_capture_write(cache.pointer, device.pointer, ctypes.byref(raw), ctypes.byref(adoption))
    del keep, kept


def address_place(args: Any, index: int) -> int:
    """Where an argument's address is stored (as the address minus FLAT)."""
    return ctypes.addressof(args) + index * ctypes.sizeof(_c.wg_arg) + _ADDRESS


def _filled_args(decls: Sequence[Decl]) -> tuple[Any, memoryview]:
    """Returns (arguments for the declared memory, a view of their numbers). The names live as long as `decls`."""
    rows = [(layout[0], _c.wg_arg_memory, 0, FLAT, _less_flat(one.pointer or FLAT), one.nbytes, 0, 0, 0, 0)
            for (layout, _), one in zip(_layouts(decls), decls)]
    held = bytearray(struct.pack(f"@{_ARG * len(rows)}", *itertools.chain.from_iterable(rows)))
    return (_c.wg_arg * len(rows)).from_buffer(held), memoryview(held).cast("Q")


def _less_flat(pointer: int) -> int:
    return (pointer - FLAT) % (1 << 8 * _WORD)  # wraps around as in C: a tensor without memory has address 0


class Entry(Handle):
    """A function that replays an entry. It is destroyed when the device is next idle."""

    _what = "function"
    recording_bytes = 0  # the device memory that the recording held beside the library's

    def __init__(self, cache: Cache, device: Device, given: Declaration, captures: tuple[CapturedGraph, CapturedGraph | str] | None,
                 destroyed: Callable[[], Any], judge: Judge | None = None) -> None:
        """captures: with None the entry is loaded; otherwise it is made from the two captures, and a folder as the second one has the
        capture of another process. judge: compares the graph with the function's results; None: no comparison."""
        self.cache, self.device, self.name = cache, device, given.name
        lib, (raw, keep) = library(), raw_spec(given)
        if captures is None:
            pointer = lib.create("wg_cache_load", cache.pointer, device.pointer, ctypes.byref(raw))
        else:
            asked = _JudgeCallback(judge) if judge is not None else None
            adoption, kept = _raw_adoption(*captures, asked)
            if given.part is not None:
                recording, half = given.part
                part = _c.wg_adopted_part(high=recording >> 64, low=recording % 2**64, half=half)
                adoption.part = ctypes.pointer(part)
            try:
                pointer = lib.create("wg_cache_adopt", cache.pointer, device.pointer, ctypes.byref(raw), ctypes.byref(adoption))
            except errors.Error as error:
                refusal = asked.raised if asked is not None and asked.raised is not None else error
                if isinstance(refusal, errors.Error):
                    refusal.is_counted = True
                raise refusal from None
            del kept
        del keep

        def destroy(one: int) -> None:
            lib.wg_function_destroy(one)
            destroyed()

        super().__init__(pointer, device.later(destroy))
        self._decls, self._states = (*given.inputs, *given.outputs), given.states
        self._args, self._numbers = _filled_args(self._decls)
        self._places = range(_ADDRESS // _WORD, len(self._numbers), ctypes.sizeof(_c.wg_arg) // _WORD)
        self.bound_states = [decl.pointer for decl in given.states]  # replaced by another list when the states are bound to other memory
        self.lock = threading.Lock()  # held while arguments and states are set, until the launch
        self._outcome = ctypes.c_int32()
        self.enqueue, self.expect_ok = lib.unchecked("wg_call"), lib.expect_ok
        self.is_capturing, self.enqueue_uncaptured = lib.unchecked("wg_stream_is_capturing"), lib.unchecked("wg_call_uncaptured")
        self.handle, self._count = ctypes.c_void_p(pointer), ctypes.c_uint64(len(self._args))
        self._raw_outcome = ctypes.byref(self._outcome)

    def __call__(self, stream: int, pointers: Sequence[int], states: Sequence[int]) -> str:
        """Enqueues the function in the stream. `pointers`: the addresses of the inputs, then of the outputs. `states`: the states' current
        addresses."""
        lib = library()
        with self.lock:
            if states != self.bound_states:
                for state, pointer, before in zip(self._states, states, self.bound_states):
                    if pointer != before:
                        lib.wg_bind(self.pointer, state.name.encode(), memory(pointer, state.nbytes))
                self.bound_states = list(states)
            for place, pointer in zip(self._places, pointers):
                self._numbers[place] = _less_flat(pointer)
            self.launch(stream)
            return OUTCOMES.get(self._outcome.value, "unknown")

    def own_args(self) -> Any:
        """A copy of the arguments for `launch` that no other call writes. address_place() returns where the addresses in it are stored."""
        return type(self._args).from_buffer_copy(self._args)

    def launch(self, stream: int, args: Any = None) -> None:
        """Launches with `args`, or with the arguments that were set last. REQUIRES: `lock` is held."""
        self.expect_open()
        given = self._args if args is None else args
        self.expect_ok(self.enqueue(self.handle, ctypes.c_void_p(stream), ctypes.byref(given), self._count, self._raw_outcome))

    def report(self) -> Report:
        found = report_of(self.pointer)
        beside = self.recording_bytes if found.outcome == "recorded" else 0
        return dataclasses.replace(found, recording_bytes=found.recording_bytes + beside)

    def misses(self) -> str:
        return library().text("wg_function_misses", self.pointer)
