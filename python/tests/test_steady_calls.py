"""Checks and launches calls natively. The tests use a small tensor class in place of a framework's tensors, so they also run without
PyTorch."""
from __future__ import annotations

import ctypes
import gc
import sys
import threading
import types
import weakref
from typing import Any, Callable

import pytest

from conftest import at_once
from warmgraph import errors
from warmgraph.calls import _steady_calls
from warmgraph.calls._steady_calls import Input, Launch, Result, ResultMaker, StateChecks, Weight
from warmgraph.core.binding import _c
from warmgraph.reading import _native_snapshots
from warmgraph.calls._steady_calls import Tests as Expected  # renamed, because pytest would take `Tests` for test cases

pytestmark = pytest.mark.skipif(not _native_snapshots.is_possible(), reason="this Python's objects are not looked at natively")

NOT_ALIKE = object()
BASE = 256


class _DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("rank", ctypes.c_int32), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("sizes", ctypes.c_void_p), ("strides", ctypes.c_void_p), ("offset", ctypes.c_uint64)]


@ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(_DLTensor))
def _described(tensor: Any, to: Any) -> int:
    to[0] = _DLTensor(tensor.address, 2, 0, 1, 2, 32, 1, ctypes.addressof(tensor.sizes), ctypes.addressof(tensor.strides), 0)
    return 0


_API = _native_snapshots._Api(_native_snapshots._Header(1, 0, None), None, None, None, ctypes.cast(_described, ctypes.c_void_p).value, None)


def _capsule() -> Any:
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return make(ctypes.addressof(_API), _native_snapshots._CAPSULE, None)


class Tensor:
    """A tensor of four numbers at a given address."""

    __dlpack_c_exchange_api__ = _capsule()
    wants_grad: set[int] = set()
    lazy: dict[str, set[int]] = {"neg": set(), "conj": set()}
    __slots__ = ("address", "sizes", "strides", "__weakref__", "__dict__")

    def __init__(self, address: int, count: int = 4) -> None:
        self.address, self.sizes, self.strides = address, ctypes.c_int64(count), ctypes.c_int64(1)

    @property
    def requires_grad(self) -> bool:
        return id(self) in self.wants_grad

    def is_neg(self) -> bool:
        return id(self) in self.lazy["neg"]

    def is_conj(self) -> bool:
        return id(self) in self.lazy["conj"]


class Function:
    """Takes the place of the launched function: notes the addresses of each call and returns `status`."""

    def __init__(self) -> None:
        self.status, self.calls, self.failures = 0, [], []  # type: ignore[var-annotated]
        self.enqueue = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(_c.wg_arg), ctypes.c_uint64, ctypes.c_void_p)(self.enqueued)

    def enqueued(self, function: int, stream: int, args: Any, count: int, outcome: Any) -> int:
        self.calls.append((function, stream, [one.memory.address.offset + BASE for one in args[:count]]))
        return self.status

    def failed(self, status: int) -> Any:
        self.failures.append(status)
        if status == 2:
            raise KeyError("status 2")
        return NOT_ALIKE


FRAMEWORK = _steady_calls.NativeTensors(Tensor, _native_snapshots.exchange_of(Tensor) or 0, False)


class Known:
    """A call that was read once. A test may change its parts before it calls `made`."""

    def __init__(self, *inputs: Any) -> None:
        self.tests, self.function, self.args = Expected(), Function(), (_c.wg_arg * (len(inputs) + 1))()
        self.lock, self.native, self.handles, self.often = threading.Lock(), 77, [], []  # type: ignore[var-annotated]
        first = self.tests.items(0, len(inputs))
        self.tests.named(1, ())
        self.inputs = [Input(first + i, one, 16, 0, self.place(i)) for i, one in enumerate(inputs)]
        for one in self.inputs:
            self.tests.kind(one.register, Tensor)
            self.tests.tensor(one.register)
        self.outputs = 1
        self.weights: list[Weight] = []
        self.surroundings, self.always, self.rest = _native_snapshots.Snapshot(), _native_snapshots.Snapshot(), []  # type: ignore[var-annotated]
        self.around: list[int] = []
        self.states: list[tuple[int, int]] = []
        self.frozen, self.replays, self.moves = ctypes.c_int32(), ctypes.c_uint64(), ctypes.c_uint64()
        self.result, self.launches = Result(None, 0, [], NOT_ALIKE), True
        self.make: Callable[[int], Any] = Tensor
        self.is_capturing: Any = None

    def place(self, index: int) -> int:
        return ctypes.addressof(self.args) + index * ctypes.sizeof(_c.wg_arg) + _c.wg_arg.memory.offset + _c.wg_memory.address.offset + _c.wg_address.offset.offset

    def handle_of(self, native: int) -> int:
        self.handles.append(native)
        return native * 16

    def made(self) -> Callable[[tuple[Any, ...], dict[str, Any]], Any]:
        launch = Launch(self.lock, lambda index: self.native + index, 1, self.handle_of, self.replays, 3, lambda: self.often.append(1), self.function.enqueue,
                        ctypes.c_void_p(9), self.function.failed, self.is_capturing)
        looks = StateChecks(self.always, self.frozen, self.surroundings, self.rest, self.weights)
        makers = [ResultMaker(self.make, (1 << 20,), self.place(len(self.inputs)))] * self.outputs
        return _steady_calls.make_steady_call(self.tests, self.around, looks, self.inputs, self.states, makers, self.args, BASE, FRAMEWORK, launch if self.launches else None, self.result,
                                  self.moves)


def test_a_call_is_launched_with_its_addresses_and_gives_its_output():
    known = Known(Tensor(4096), Tensor(8192))
    call = known.made()
    result = call((Tensor(4096), Tensor(12288)), {})
    assert type(result) is Tensor and known.function.calls == [(9, 78 * 16, [4096, 12288, 1 << 20])]
    call((Tensor(4096), Tensor(8192)), {})
    assert known.function.calls[-1][2] == [4096, 8192, 1 << 20] and known.handles == [78]
    known.native = 100
    call((Tensor(4096), Tensor(8192)), {})
    assert known.function.calls[-1][1] == 101 * 16 and known.handles == [78, 101]
    assert known.replays.value == 3 and known.often == [1] and not known.lock.locked()


def test_a_call_in_a_stream_that_captures_is_another_one_and_gets_no_memory():
    known, asked, captures, made = Known(Tensor(4096)), [], [0], []

    def is_capturing(stream: int) -> int:
        asked.append(stream)
        return captures[0]

    def make(address: int) -> Any:
        made.append(address)
        return Tensor(address)

    known.is_capturing, known.make = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(is_capturing), make
    call = known.made()
    assert call((Tensor(4096),), {}) is not NOT_ALIKE and asked == [78 * 16] and made == [1 << 20]
    captures[0] = 1
    assert call((Tensor(4096),), {}) is NOT_ALIKE
    assert asked == [78 * 16] * 2 and len(made) == len(known.function.calls) == known.replays.value == 1 and not known.lock.locked()
    captures[0] = 0
    assert call((Tensor(4096),), {}) is not NOT_ALIKE and len(known.function.calls) == 2


ONE = Tensor(4096)
OTHER_CALLS: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "fewer": ((), {}), "more": ((ONE, ONE), {}), "a name": ((ONE,), {"a": 1}), "another class": ((1,), {}), "a size": ((Tensor(4096, 5),), {}),
    "a subclass": ((type("Sub", (Tensor,), {"__slots__": ()})(4096),), {}),
}


@pytest.mark.parametrize("name", OTHER_CALLS)
def test_another_call_is_not_launched(name):
    known = Known(Tensor(4096))
    call = known.made()
    assert call(*OTHER_CALLS[name]) is NOT_ALIKE and known.function.calls == []
    assert call((Tensor(4096),), {}) is not NOT_ALIKE


def test_an_address_that_the_kernels_were_not_chosen_for_is_another_call():
    known = Known(Tensor(4096))
    known.inputs = [known.inputs[0]._replace(alignment=64)]
    call = known.made()
    assert call((Tensor(4096 + 32),), {}) is NOT_ALIKE and call((Tensor(4096 + 64),), {}) is not NOT_ALIKE


@pytest.mark.parametrize("address, is_apart", [(8192 - 16, True), (8192 - 15, False), (8192 + 63, False), (8192 + 64, True), (9216 + 1, False), (9216 + 64, True)])
def test_an_input_never_lies_on_a_state(address, is_apart):
    """Also holds for a second call with the same address, and after a call with an input beside the state."""
    known = Known(Tensor(4096))
    known.states = [(9216, 9216 + 64), (8192, 8192 + 32), (8192 + 16, 8192 + 64)]
    call = known.made()
    assert call((Tensor(4096),), {}) is not NOT_ALIKE
    for _ in range(2):
        assert (call((Tensor(address),), {}) is not NOT_ALIKE) == is_apart
    assert call((Tensor(4096),), {}) is not NOT_ALIKE


def test_a_call_that_was_another_one_leaves_no_address_that_is_taken_for_judged():
    known = Known(Tensor(4096), Tensor(4096))
    known.states = [(8192, 8192 + 64)]
    call = known.made()
    assert call((Tensor(4096), Tensor(12288)), {}) is not NOT_ALIKE
    assert call((Tensor(8192), Tensor(12288, 5)), {}) is NOT_ALIKE  # the second tensor differs; the first one must not count as checked
    assert call((Tensor(8192), Tensor(12288)), {}) is NOT_ALIKE


def test_an_input_without_elements_lies_on_nothing():
    known = Known(Tensor(4096))
    known.inputs, known.states = [known.inputs[0]._replace(extent=0)], [(8192, 8192 + 64)]
    assert known.made()((Tensor(8192 + 16),), {}) is not NOT_ALIKE


VALUES: dict[str, tuple[Callable[[Expected, int], None], Any, list[Any]]] = {
    "same": (lambda tests, at: tests.same(at, True), True, [1, False, None]),
    "equal": (lambda tests, at: tests.equal(at, "abc"), "".join(["a", "bc"]), ["abd", "", 3]),
    "number": (lambda tests, at: tests.number(at, -3), -3, [3, 0, -2, 1 << 70]),
    "number below zero": (lambda tests, at: tests.number(at, -1), -1, [1 << 70, -(1 << 70), (1 << 64) - 1]),
    "zero": (lambda tests, at: tests.bits(at, 0.0), 0.0, [-0.0, 1e-300]),
    "no number": (lambda tests, at: tests.bits(at, float("nan")), float("nan"), [0.0]),
    "class": (lambda tests, at: tests.kind(at, int), 7, [True, 7.0]),
    "items": (lambda tests, at: tests.same(tests.items(at, 2) + 1, None), (1, None), [(1, 2), (1,), (1, None, 2)]),
    "a list's items": (lambda tests, at: tests.same(tests.items(at, 1), None), [None], [[1], [], [None, None]]),
    "named": (lambda tests, at: tests.same(tests.named(at, ("a", "b")) + 1, None), {"a": 1, "b": None},
              [{"a": 1, "b": 1}, {"b": None, "a": 1}, {"a": 1}, {"a": 1, "c": None}, {"a": 1, 2: None}, {"a": 1, "b": None, "c": 1}]),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_are_compared(name):
    expect, value, others = VALUES[name]
    known = Known()
    known.tests = Expected()
    expect(known.tests, known.tests.items(0, 1))
    call = known.made()
    assert call((value,), {}) is not NOT_ALIKE
    for one in others:
        assert call((one,), {}) is NOT_ALIKE, one


def test_attributes_of_an_object_are_looked_at():
    known = Known()
    known.tests = Expected()
    known.tests.same(known.tests.named(known.tests.attributes(known.tests.items(0, 1)), ("x",)), None)
    call, one = known.made(), type("One", (), {})()
    one.x = None
    assert call((one,), {}) is not NOT_ALIKE
    one.x = 1
    assert call((one,), {}) is NOT_ALIKE


def test_objects_are_apart_from_each_other_and_from_what_is_around():
    known, around = Known(), [object(), object()]
    known.tests = Expected()
    first = known.tests.items(0, 2)
    known.tests.apart(first)
    known.tests.apart(first + 1)
    known.around = list(map(id, around))
    call, one = known.made(), object()
    assert call((one, object()), {}) is not NOT_ALIKE
    assert call((one, one), {}) is NOT_ALIKE
    assert [call((object(), other), {}) is NOT_ALIKE for other in around] == [True, True]


@pytest.mark.parametrize("change", ["requires grad", "negated", "conjugated", "an attribute"])
def test_tensors_are_asked(change, monkeypatch):
    known = Known(Tensor(4096))
    known.tests.tensor(known.inputs[0].register, _c.wg_tensor_test_not_lazy, _c.wg_tensor_test_no_attributes)
    call, one = known.made(), Tensor(4096)
    assert call((one,), {}) is not NOT_ALIKE
    if change == "an attribute":
        one.mark = 1  # type: ignore[attr-defined]
    elif change == "requires grad":
        monkeypatch.setattr(Tensor, "wants_grad", {id(one)})
    else:
        monkeypatch.setitem(Tensor.lazy, "neg" if change == "negated" else "conj", {id(one)})
    assert call((one,), {}) is NOT_ALIKE


def test_answers_are_asked_each_time():
    known, answers = Known(), [1, "a"]
    known.tests.number(known.tests.answer(lambda: answers[0]), 1)
    known.tests.equal(known.tests.answer(lambda which: answers[which], 1), "a")
    held: dict[int, int] = {}
    known.tests.empty(held)
    call = known.made()
    assert call((), {}) is not NOT_ALIKE
    for at, other in ((0, 2), (1, "b")):
        before, answers[at] = answers[at], other
        assert call((), {}) is NOT_ALIKE
        answers[at] = before
    held[1] = 1
    assert call((), {}) is NOT_ALIKE


def test_bytes_of_c_functions_are_asked():
    known, library = Known(), ctypes.CDLL(None)
    text = ctypes.create_string_buffer(b"four")
    known.tests.code(ctypes.cast(library.strlen, ctypes.c_void_p).value or 0, ctypes.addressof(text), 4)
    call = known.made()
    assert call((), {}) is not NOT_ALIKE
    text.value = b"fiv"
    assert call((), {}) is NOT_ALIKE


def test_another_byte_of_what_a_c_function_gives_is_asked_too():
    known, library = Known(), ctypes.CDLL(None)
    text = ctypes.create_string_buffer(b"x" * 0x204)
    for at, byte in ((0, 4), (1, 2)):
        known.tests.code(ctypes.cast(library.strlen, ctypes.c_void_p).value or 0, ctypes.addressof(text), byte, at)
    call = known.made()
    assert call((), {}) is not NOT_ALIKE
    text.value = b"x" * 4
    assert call((), {}) is NOT_ALIKE


def test_an_empty_pointer_or_list_of_c_functions_is_asked():
    words = (ctypes.c_uint64 * 2)()
    held = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(lambda _: ctypes.addressof(words))
    address = ctypes.cast(held, ctypes.c_void_p).value or 0
    for test, same, other in (("code_is_null", (0, 0), (8, 0)), ("code_is_empty", (16, 16), (16, 24))):
        known = Known()
        getattr(known.tests, test)(address)
        call = known.made()
        words[0], words[1] = same
        assert call((), {}) is not NOT_ALIKE
        words[0], words[1] = other
        assert call((), {}) is NOT_ALIKE


def test_more_numbers_than_a_test_holds_are_another_call():
    fills = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(lambda to, argument: None)
    for count, is_same in ((8, True), (9, False), (1 << 20, False)):
        known = Known()
        known.tests._rows.append((_c.wg_test_code_numbers, count, 0, 0, ctypes.cast(fills, ctypes.c_void_p).value or 0, 0))
        assert (known.made()((), {}) is not NOT_ALIKE) == is_same


@pytest.mark.parametrize("before, now", [((1, 2, 0, 255), (1, 2, 0, 254)), ((1, 2), (257, 2)), ((3,), (1 << 16,)), ((1,) * 8, (1,) * 7 + (2,))])
def test_numbers_that_a_c_function_fills_in_are_asked(before, now):
    numbers = (ctypes.c_uint32 * 8)(*before)

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
    def fills(to: int, argument: int) -> None:
        ctypes.memmove(to, argument, ctypes.sizeof(numbers))

    known = Known()
    known.tests.code_numbers(ctypes.cast(fills, ctypes.c_void_p).value or 0, ctypes.addressof(numbers), before)
    call = known.made()
    assert call((), {}) is not NOT_ALIKE
    numbers[: len(now)] = now
    assert call((), {}) is NOT_ALIKE
    numbers[:] = (*before, *(7,) * (8 - len(before)))  # the function may write any numbers after those that are compared
    assert call((), {}) is not NOT_ALIKE


WEIGHTS: dict[str, Callable[[Tensor, Any], None]] = {
    "elsewhere": lambda weight, patch: setattr(weight, "address", 8192), "a size": lambda weight, patch: setattr(weight, "sizes", ctypes.c_int64(5)),
    "no grad": lambda weight, patch: patch.setattr(Tensor, "wants_grad", set()),
    "negated": lambda weight, patch: patch.setitem(Tensor.lazy, "neg", {id(weight)}),
}


def test_while_tensors_are_elsewhere_it_is_another_call():
    known = Known(ONE)
    call = known.made()
    for moves, is_launched in ((1, False), (2, True), (3, False), (4, True), ((1 << 64) - 1, False)):
        known.moves.value, before = moves, len(known.function.calls)
        assert (call((ONE,), {}) is not NOT_ALIKE) == is_launched == (len(known.function.calls) > before)


@pytest.mark.parametrize("moved", ["there and back", "there"])
@pytest.mark.parametrize("where", ["a test", "what is around", "the memory of a result", "the stream", "what is done often"])
def test_what_moved_while_python_was_called_is_another_call(where, moved):
    known = Known(ONE)

    def move(answer: Any) -> Any:
        known.moves.value += 2 if moved == "there and back" else 1
        return answer

    if where == "a test":
        known.tests.same(known.tests.answer(lambda: move(None)), None)
    elif where == "what is around":
        known.rest.append(lambda: move(True))
    elif where == "the memory of a result":
        known.make = lambda at: move(Tensor(at))
    call = known.made()
    if where == "the stream":
        known.handle_of = move  # type: ignore[method-assign]
        call = known.made()
    elif where == "what is done often":
        known.replays.value = 2
        known.often = types.SimpleNamespace(append=move)  # type: ignore[assignment]
    assert call((ONE,), {}) is NOT_ALIKE and not known.function.calls and not known.lock.locked()


@pytest.mark.parametrize("is_frozen", [False, True])
@pytest.mark.parametrize("change", WEIGHTS)
def test_weights_are_looked_at_until_they_are_frozen(change, is_frozen, monkeypatch):
    known, weight = Known(), Tensor(4096)
    monkeypatch.setattr(Tensor, "wants_grad", {id(weight)})
    known.weights = [Weight(weight, True)]
    call = known.made()
    known.frozen.value = is_frozen
    assert call((), {}) is not NOT_ALIKE
    WEIGHTS[change](weight, monkeypatch)
    assert (call((), {}) is NOT_ALIKE) == (not is_frozen)


def test_what_is_around_is_looked_at_until_it_is_frozen():
    known, held, always, is_same = Known(), {"a": 1}, {"a": 1}, [True]
    known.surroundings, known.always, known.rest = _native_snapshots.Snapshot([held]), _native_snapshots.Snapshot([always]), [lambda: is_same[0]]
    call = known.made()
    assert call((), {}) is not NOT_ALIKE
    is_same[0] = False
    assert call((), {}) is NOT_ALIKE
    is_same[0], held["a"] = True, 2
    assert call((), {}) is NOT_ALIKE
    is_same[0], known.frozen.value = False, 1
    assert call((), {}) is not NOT_ALIKE
    always["a"] = 2
    assert call((), {}) is NOT_ALIKE


def test_a_result_is_made_of_outputs_and_of_arguments():
    known = Known(Tensor(4096))
    known.outputs = 2
    known.result = Result(lambda outputs, values: (outputs, values), 0, [known.inputs[0].register, 0], NOT_ALIKE)
    call, given = known.made(), (Tensor(4096),)
    outputs, values = call(given, {})
    assert [type(one) for one in outputs] == [Tensor, Tensor] and outputs[0] is not outputs[1] and values == (given[0], given)


def test_the_result_is_the_output_that_is_named():
    known = Known()
    known.outputs, known.result = 2, Result(None, 1, [], NOT_ALIKE)
    made: list[Tensor] = []
    known.make = lambda address: made.append(Tensor(address)) or made[-1]  # type: ignore[func-returns-value]
    assert known.made()((), {}) is made[1] and len(made) == 2


def test_without_a_launch_it_is_looked_at_alone():
    known = Known(Tensor(4096))
    known.launches, known.result = False, Result(None, 0, [known.inputs[0].register], NOT_ALIKE)
    call, one = known.made(), Tensor(12288)
    outputs, values = call((one,), {})
    assert known.function.calls == [] and values == (one,) and outputs[0].address == 1 << 20
    assert known.args[0].memory.address.offset == 12288 - BASE


@pytest.mark.parametrize("status, raised", [(1, None), (2, KeyError)])
def test_a_launch_that_fails_is_told(status, raised):
    known = Known()
    call, known.function.status = known.made(), status
    if raised is None:
        assert call((), {}) is NOT_ALIKE
    else:
        with pytest.raises(raised):
            call((), {})
    assert known.function.failures == [status] and not known.lock.locked()


@pytest.mark.parametrize("error, is_raised", [(ValueError, False), (KeyboardInterrupt, True)])
def test_what_raises_before_the_launch_makes_it_another_call_but_for_interrupts(error, is_raised):
    def raises() -> Any:
        raise error

    known = Known()
    known.tests.same(known.tests.answer(raises), None)
    call = known.made()
    if is_raised:
        with pytest.raises(error):
            call((), {})
    else:
        assert call((), {}) is NOT_ALIKE
    assert known.function.calls == [] and not known.lock.locked()


@pytest.mark.parametrize("handle", [-1, (1 << 64) - 1, "a stream"])
def test_what_is_no_stream_is_not_launched_in(handle):
    known = Known()
    known.handle_of = lambda native: handle  # type: ignore[method-assign, assignment, return-value]
    call = known.made()
    assert call((), {}) is NOT_ALIKE and known.function.calls == []


def test_it_lives_as_long_as_the_callable_and_keeps_no_argument():
    known, weight = Known(Tensor(4096)), Tensor(8192)
    known.weights = [Weight(weight, False)]
    call, one = known.made(), Tensor(4096)
    alive, given = weakref.ref(weight), weakref.ref(one)
    del known, weight
    gc.collect()
    call((one,), {})
    del one
    assert alive() is not None and given() is None
    del call
    gc.collect()
    assert alive() is None


def _in_a_circle() -> weakref.ref[Function]:
    known, circle = Known(), []  # type: ignore[var-annotated]
    known.rest = [lambda: bool(circle)]
    circle.append(known.made())
    return weakref.ref(known.function)


def test_the_collector_finds_a_callable_that_is_in_a_circle():
    alive = _in_a_circle()
    gc.collect()
    assert alive() is None


def test_no_references_are_lost_or_kept_too_long():
    known = Known(Tensor(4096))
    known.result = Result(lambda outputs, values: None, 0, [known.inputs[0].register], NOT_ALIKE)
    call, one, other, named = known.made(), Tensor(4096), object(), {"a": 1}
    before = [sys.getrefcount(thing) for thing in (one, other, named, NOT_ALIKE, Tensor)]
    for _ in range(100):
        call((one,), {})
        call((other,), {})
        call((one,), named)
    assert [sys.getrefcount(thing) for thing in (one, other, named, NOT_ALIKE, Tensor)] == before


def test_threads_call_at_once_and_each_is_launched_with_its_own():
    known, wrong = Known(Tensor(4096)), []
    known.result = Result(lambda outputs, values: (known.function.calls[-1][2][0], values[0].address), 0, [known.inputs[0].register], NOT_ALIKE)
    call = known.made()

    def work(address: int) -> None:
        for _ in range(300):
            launched, own = call((Tensor(address),), {})
            if launched != own:
                wrong.append((launched, own))

    at_once(work, *((4096 * i,) for i in range(1, 5)))
    assert not wrong and len(known.function.calls) == 1200


def test_a_struct_of_another_version_is_refused():
    made = ctypes.c_void_p()
    status = _native_snapshots._native().wg_steady_call_create(ctypes.c_uint64(8), ctypes.byref(_c.wg_steady_call()), ctypes.byref(made))
    with pytest.raises(errors.Unsupported, match="another version than the library"):
        _native_snapshots.library().expect_ok(status)
