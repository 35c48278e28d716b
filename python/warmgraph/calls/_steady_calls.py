"""Recognises calls that are like an earlier call. The library checks and launches them natively (wg_steady_call)."""
from __future__ import annotations

import ctypes
import struct
from typing import Any, Callable, Iterable, NamedTuple, Sequence

from warmgraph.core.binding import _c
from warmgraph.reading import _native_snapshots

_MISSING = object()
NOT_ALIKE = object()  # the result for a call that is not like the earlier one


class Tests:
    """The tests that a later call must pass, one for each value, in order. Each test reads a register: 0 holds the arguments, 1 the
    arguments by name."""

    def __init__(self) -> None:
        self.count, self._rows, self._keep = 2, [], []  # type: ignore[var-annotated]

    def __len__(self) -> int:
        return len(self._rows)

    def items(self, register: int, count: int) -> int:
        """Tests the length of a list or tuple. Returns the register of its first item."""
        return self._into(count, _c.wg_test_items, register, count)

    def named(self, register: int, keys: tuple[str, ...]) -> int:
        """Tests that a dictionary has these keys in this order. Returns the register of the first value."""
        return self._into(len(keys), _c.wg_test_named, register, object=keys)

    def attributes(self, register: int) -> int:
        """Returns the register that gets an object's own attributes."""
        return self._into(1, _c.wg_test_attributes, register)

    def answer(self, function: Callable[..., Any], *argument: Any) -> int:
        """Returns the register that gets the result of a function. The function takes one argument at most."""
        return self._into(1, _c.wg_test_call, object=function, other=argument[0] if argument else _MISSING)

    def kind(self, register: int, kind: type) -> None:
        self._test(_c.wg_test_type, register, object=kind)

    def same(self, register: int, value: Any) -> None:
        self._test(_c.wg_test_is, register, object=value)

    def equal(self, register: int, value: Any) -> None:
        """Tests with `==`. It runs no user code: the class was tested, or a library made both values."""
        self._test(_c.wg_test_equals, register, object=value)

    def number(self, register: int, value: int) -> None:
        self._test(_c.wg_test_number, register, value % (1 << 64))

    def bits(self, register: int, value: float) -> None:
        """Tests a float's bits, so 0.0 is not -0.0, and NaN equals NaN."""
        self._test(_c.wg_test_bits, register, int.from_bytes(struct.pack("<d", value), "little"))

    def empty(self, held: Any) -> None:
        self._test(_c.wg_test_empty, object=held)

    def apart(self, register: int) -> None:
        """Tests that no other register with this test has the same object, and that the object is not among those that the function reaches
        by itself (`around`)."""
        self._test(_c.wg_test_apart, register)

    def tensor(self, register: int, *tests: int) -> None:
        self._test(_c.wg_test_tensor, register, sum(tests))

    def code(self, function: int, argument: int, byte: int, at: int = 0) -> None:
        """Tests one byte at offset `at` behind the pointer that a C function returns for `argument`. Function and argument must stay valid."""
        self._rows.append((_c.wg_test_code, at, 0, byte, function, argument))

    def code_numbers(self, function: int, argument: int, numbers: Sequence[int]) -> None:
        """Tests the 32-bit numbers that a C function writes into a buffer (its second argument): at most eight, each below 256."""
        self._rows.append((_c.wg_test_code_numbers, len(numbers), 0, int.from_bytes(bytes(numbers), "little"), function, argument))

    def code_is_null(self, function: int) -> None:
        """Tests that a C function returns a pointer to an empty std::shared_ptr."""
        self._rows.append((_c.wg_test_code_null, 0, 0, 0, function, 0))

    def code_is_empty(self, function: int) -> None:
        """Tests that a C function returns a pointer to an empty std::vector."""
        self._rows.append((_c.wg_test_code_empty, 0, 0, 0, function, 0))

    def rows(self) -> Any:
        return (_c.wg_test * len(self._rows))(*self._rows)

    def _into(self, count: int, *given: Any, **named: Any) -> int:
        first = self.count
        self.count += count
        self._test(*given, **named, to=first)
        return first

    def _test(self, kind: int, register: int = 0, number: int = 0, *, to: int = 0, object: Any = _MISSING, other: Any = _MISSING) -> None:
        self._keep += [object, other]
        self._rows.append((kind, register, to, number, *(None if one is _MISSING else id(one) for one in (object, other))))


class NativeTensors(NamedTuple):
    """The functions that read a framework's tensors."""

    kind: Any  # the tensors' class
    read: int  # address of a wg_dltensor_reader
    knows_grad: bool  # whether wg_use_torch_tensors can ask if a tensor requires grad


class AddressesMoved(Exception):
    """A weight's address differs from its address in the recorded call."""


class Weight(NamedTuple):
    """A tensor that later calls expect at the same address."""

    tensor: Any
    can_be_lazy: bool
    near: tuple[int, int, int] = (0, 0, 0)  # addresses of the framework's data about the tensor
    address: int | None = None  # the address that the tensor must have; None: any


class Input(NamedTuple):
    """A tensor among the arguments."""

    register: int
    tensor: Any  # an example of the tensor, with the required layout
    extent: int  # size in bytes
    alignment: int
    place: int | None  # index of the tensor's address in the launch arguments; None: it is not launched with


class ResultMaker(NamedTuple):
    """Allocates the memory of a result."""

    make: Callable[..., Any]
    arguments: tuple[Any, ...]
    place: int | None


class Launch(NamedTuple):
    """The functions and objects that enqueue a call."""

    lock: Any
    native_stream: Callable[[int], int]
    device_index: int
    stream: Callable[[int], int]  # returns the library's handle for a native stream
    replays: ctypes.c_uint64  # the counter of replays
    often: int
    replayed: Callable[[], Any]  # called after each `often` replays
    enqueue: Any
    function: Any
    failed: Callable[[int], Any]
    is_capturing: Any = None  # asks whether the stream is capturing; None: `enqueue` or a test asks


class StateChecks(NamedTuple):
    """The checks of a call, except those of its arguments."""

    always: _native_snapshots.Snapshot
    is_frozen: ctypes.c_int32  # if not 0, the members below are not checked
    surroundings: _native_snapshots.Snapshot
    rest: Sequence[Callable[[], bool]]
    weights: Sequence[Weight]


class Result(NamedTuple):
    made: Callable[[tuple[Any, ...], tuple[Any, ...]], Any] | None  # makes the result from the outputs and the values in `registers`
    output: int  # if `made` is None: the index of the output that is the result
    registers: Sequence[int]
    otherwise: Any


def make_steady_call(tests: Tests, around: Iterable[int], looks: StateChecks, inputs: Sequence[Input], states: Sequence[tuple[int, int]], makers: Sequence[ResultMaker],
         args: Any, base: int, framework: NativeTensors, launch: Launch | None, result: Result, moves: ctypes.c_uint64,
         weight_bytes: int = 0) -> Callable[[tuple[Any, ...], dict[str, Any]], Any]:
    """Returns a function of (args, kwargs): it returns the result if the call is like the recorded one, else `otherwise`. Without `launch`
    it enqueues nothing and returns (outputs, register values); the caller must then hold a lock, and launch with `args`. states: (start,
    end) of memory that no input may overlap. moves: a counter of the times that tensors were moved; it is odd while they are moved away.
    The call's addresses minus `base` are written into `args`. weight_bytes: size of the framework's data about a weight; 0: unknown.
    Raises AddressesMoved when a weight is not at its required address."""
    keep: list[Any] = [tests, looks, makers, args, launch, result, moves]
    raw = _c.wg_steady_call(base=base, register_count=tests.count, read_tensor=_c.wg_dltensor_reader(framework.read), moves=ctypes.pointer(moves),
                            is_frozen=ctypes.pointer(looks.is_frozen), surroundings=ctypes.pointer(looks.surroundings.raw),
                            always=ctypes.pointer(looks.always.raw), weight_bytes=weight_bytes, otherwise=id(result.otherwise), output=result.output)
    weights = _native_snapshots.Tensors(framework.read, [one.tensor for one in looks.weights])
    if any(one.address not in (None, found) for one, found in zip(looks.weights, weights.addresses())):
        raise AddressesMoved
    given = _native_snapshots.Tensors(framework.read, [one.tensor for one in inputs])
    for look, one in zip(given.looks, inputs):
        look.alignment = one.alignment
        if one.place is not None:
            look.address = ctypes.cast(one.place, ctypes.POINTER(ctypes.c_uint64))
    kind = framework.kind
    questions = kind.requires_grad, kind.is_neg, kind.is_conj
    raw.requires_grad, raw.is_negated, raw.is_conjugated = map(id, questions)
    if framework.knows_grad:
        raw.requires_grad = None
    keep += [weights, given, questions]
    fields: list[tuple[str, str, Any, list[Any]]] = [
        ("around", "around_count", ctypes.c_uint64, sorted(around)), ("rest", "rest_count", ctypes.c_void_p, list(map(id, looks.rest))),
        ("inputs", "input_count", ctypes.c_uint32, [one.register for one in inputs]), ("extents", "", ctypes.c_uint64, [one.extent for one in inputs]),
        ("states", "state_count", _c.wg_memory_range, _apart(states)), ("values", "value_count", ctypes.c_uint32, list(result.registers)),
        ("weights", "weight_count", _c.wg_weight, [(id(one.tensor), look, int(one.tensor.requires_grad), int(one.can_be_lazy), one.near)
                                                   for one, look in zip(looks.weights, weights.looks)]),
        ("outputs", "output_count", _c.wg_result_maker, [(id(one.make), id(one.arguments), _pointer(one.place)) for one in makers]),
    ]
    for field, count, kind, rows in fields:
        numbers = (kind * len(rows))(*rows)
        keep.append(numbers)
        setattr(raw, field, ctypes.cast(numbers, ctypes.POINTER(kind)))
        if count:
            setattr(raw, count, len(rows))
    raw.input_looks = ctypes.cast(given.looks, ctypes.POINTER(_c.wg_tensor_look))
    raw.tests, raw.test_count = ctypes.cast(rows := tests.rows(), ctypes.POINTER(_c.wg_test)), len(tests)
    keep.append(rows)
    raw.args, raw.arg_count = ctypes.cast(args, ctypes.POINTER(_c.wg_arg)), len(args)
    if result.made is not None:
        raw.result = id(result.made)
    if launch is not None:
        callables = (launch.lock.acquire, launch.lock.release)
        keep.append(callables)
        raw.acquire, raw.release = map(id, callables)
        for name in ("native_stream", "stream", "replayed", "failed"):
            setattr(raw, name, id(getattr(launch, name)))
        raw.replays, raw.often = ctypes.pointer(launch.replays), launch.often
        raw.device_index, raw.function = id(launch.device_index), launch.function
        raw.enqueue = ctypes.cast(launch.enqueue, type(raw.enqueue))
        if launch.is_capturing is not None:
            raw.is_capturing = ctypes.cast(launch.is_capturing, type(raw.is_capturing))
    kept = tuple(keep)
    raw.kept = id(kept)
    return _native_snapshots.steady_call(raw)


def _pointer(place: int | None) -> Any:
    return None if place is None else ctypes.cast(place, ctypes.POINTER(ctypes.c_uint64))


def _apart(ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same memory as sorted ranges, with overlapping ranges joined."""
    found: list[tuple[int, int]] = []
    for first, end in sorted(ranges):
        if found and first <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((first, end))
    return found
