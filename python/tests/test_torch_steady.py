"""Tests later calls that are like an earlier one: which checks they pass, and which changes make a call count as another call."""
from __future__ import annotations

import dataclasses
import enum
import gc
import threading
import weakref
from typing import Any, Callable

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed here")

import later_calls  # noqa: E402
from conftest import at_once  # noqa: E402
import torch_on_the_host as host  # noqa: E402
from later_calls import Given, Kind, Meta, Net, aligned, forgotten, on_the_host, reads, weight_replaced, weights_elsewhere, wrap  # noqa: E402, F401  fixtures
from warmgraph import errors  # noqa: E402
from warmgraph.reading import _native_snapshots  # noqa: E402
from warmgraph.torch.calls import _torch_function  # noqa: E402
from warmgraph.torch.replay import _bound_call, _launching, _surrounding_work, _torch_call  # noqa: E402


def test_the_third_call_is_looked_at_natively(reads):
    given = Given()
    assert reads.count == 2 and reads.of(given.call) == 0
    given.meta = Meta(aligned(2, 4), True, [2, 4])  # these objects are new, but equal to the old ones
    given.caches = [aligned(2, 4), given.caches[1]]
    given.caches[0].mark = "a"
    assert reads.of(given.call) == 0
    pointers, _ = host.entries[0].calls[-1]
    assert pointers[:3] == [given.meta.tokens.data_ptr(), *(one.data_ptr() for one in given.caches)]


def test_results_are_those_of_a_call_that_was_read():
    given = Given()
    result = given.call()
    pointers, _ = host.entries[0].calls[-1]
    assert list(result) == ["y", "cache", "row", "kind"] and result["kind"] == "ADD"
    assert result["y"].shape == (2, 4) and result["y"].data_ptr() == pointers[3]
    assert result["cache"] is given.caches[0] and result["row"].data_ptr() == given.caches[1].data_ptr()


def _part(given: Given, name: str, value: Any) -> None:
    setattr(given.meta, name, value)


def _hooked(given: Given) -> None:
    given.net.norm[0].register_forward_hook(lambda module, inputs, output: output + 1)


def _transposed_weight(given: Given) -> None:
    given.net.linear.weight.data = given.net.linear.weight.data.t()


def _argument_on_a_weight(given: Given) -> None:
    given.caches = [given.net.linear.weight.data[:2], given.caches[1]]


def _one_list_twice(given: Given) -> None:
    given.meta.sizes = given.caches = [aligned(2, 4), aligned(2, 4)]


def _frozen_weight(given: Given) -> None:
    given.net.linear.weight.requires_grad_(False)


def _marked(given: Given) -> None:
    given.meta.tokens.mark = 1


def _marked_otherwise(given: Given) -> None:
    given.caches[0].mark = "b"


def _unaligned(given: Given) -> None:
    memory = torch.zeros(256)
    start = -memory.data_ptr() % 256 // 4 + 1
    given.meta.tokens = memory[start:start + 8].view(2, 4)


CHANGES = {
    "a size": lambda given: _part(given, "tokens", aligned(3, 4)),
    "strides": lambda given: _part(given, "tokens", torch.randn(4, 2).t()),
    "a type": lambda given: _part(given, "tokens", torch.randn(2, 4, dtype=torch.float64)),
    "an offset": _unaligned,
    "another class of tensor": lambda given: _part(given, "tokens", torch.nn.Parameter(aligned(2, 4), requires_grad=False)),
    "requires grad": lambda given: _part(given, "tokens", torch.randn(2, 4, requires_grad=True)),
    "a mark": _marked,
    "another mark": _marked_otherwise,
    "a lazy negative": lambda given: _part(given, "tokens", torch.randn(2, 4, dtype=torch.complex64).conj().imag),
    "a tensor that is none": lambda given: _part(given, "tokens", None),
    "a bool": lambda given: _part(given, "is_prompt", False),
    "a bool that is a number": lambda given: _part(given, "is_prompt", 1),
    "a number in a list": lambda given: given.meta.sizes.__setitem__(0, 3),
    "a longer list": lambda given: given.meta.sizes.append(1),
    "a tuple": lambda given: setattr(given, "caches", tuple(given.caches)),
    "a float": lambda given: _part(given, "scale", 0.25),
    "a negative zero": lambda given: _part(given, "scale", -0.0),
    "a further attribute": lambda given: _part(given, "more", 1),
    "an option": lambda given: given.options.update(dtype=torch.float64),
    "an option that was left out": lambda given: given.options.update(kind=Kind.MULTIPLY),
    "an option less": lambda given: given.options.clear(),
    "one list twice": _one_list_twice,
    "an argument on a weight": _argument_on_a_weight,
    "weights elsewhere": weights_elsewhere,
    "a weight replaced": weight_replaced,
    "a transposed weight": _transposed_weight,
    "a weight that requires no grad any more": _frozen_weight,
    "a weight of another type": lambda given: setattr(given.net.linear.weight, "data", given.net.linear.weight.data.double()),
    "another class of module": lambda given: setattr(given.net.norm[1], "__class__", torch.nn.Dropout1d),
    "eval": lambda given: given.net.norm[1].eval(),
    "an attribute of the module": lambda given: setattr(given.net, "heads", 3),
    "a hook": _hooked,
}


@pytest.mark.parametrize("change", CHANGES)
def test_is_another_call(change, reads):
    given = Given()
    assert reads.of(given.call) == 0
    CHANGES[change](given)
    assert reads.of(lambda: _tried(given)) == 1


def _tried(given: Given) -> None:
    try:
        given.call()
    except (AttributeError, TypeError, RuntimeError):  # the function itself raises this error
        pass


@pytest.mark.parametrize("holder, name, value", [("Net", "heads", 5), ("Meta", "bias", 2), ("globals", "FACTOR", 3.0)])
def test_classes_and_globals_are_looked_at(reads, monkeypatch, holder, name, value):
    given = Given()
    if holder == "globals":
        monkeypatch.setattr(later_calls, name, value)
    else:
        monkeypatch.setattr(globals()[holder], name, value)
    assert reads.of(given.call) == 1


def test_code_is_looked_at(reads, monkeypatch):
    given = Given()
    monkeypatch.setattr(Net.step._function, "__code__", (lambda self, meta, caches, kind=None, *, dtype=None: {"y": caches[0]}).__code__)
    assert reads.of(given.call) == 1


def _of_closure() -> tuple[Any, Any, Callable[[Any], None]]:
    factor = 2.0

    def scaled(x: Any, *, more: float = 1.0) -> Any:
        return x * factor + more

    def change(value: float) -> None:
        nonlocal factor
        factor = value

    return wrap(scaled), scaled, change


@pytest.mark.parametrize("what", ["contents", "no contents", "defaults", "code"])
def test_closures_and_what_functions_hold_are_looked_at(what, reads):
    (cached, function, change), x = _of_closure(), aligned(2, 4)
    for _ in range(3):
        cached(x)
    assert reads.of(lambda: cached(x)) == 0
    if what == "contents":
        change(3.0)
    elif what == "no contents":
        del function.__closure__[0].cell_contents
    elif what == "defaults":
        function.__kwdefaults__ = {"more": 2.0}
    else:
        function.__code__ = function.__code__.replace(co_firstlineno=1)
    assert reads.of(lambda: _ended(cached, x)) == 1


def _ended(cached: Any, x: Any) -> None:
    try:
        cached(x)
    except NameError:  # the function itself raises this error, because it closes over nothing
        pass


def test_a_function_without_arguments_is_known_by_heart(reads):
    weight = aligned(2, 4)
    cached = wrap(lambda: weight + 1)
    for _ in range(3):
        cached()
    assert reads.of(cached) == 0
    weight.data = weight.data.clone()
    assert reads.of(cached) == 1


LISTS: dict[str, Callable[[list[Any]], Any]] = {
    "another tensor": lambda held: held.__setitem__(0, held[0].clone()),
    "an equal number": lambda held: held.__setitem__(1, True),
    "one more": lambda held: held.append(1),
    "one less": lambda held: held.pop(),
    "nothing": lambda held: held.clear(),
    "another order": lambda held: held.__setitem__(slice(2, 4), [held[3], held[2]]),
    "another one in a list": lambda held: held[4].__setitem__(0, "b"),
    "a list that is alike": lambda held: held.__setitem__(4, list(held[4])),
}


@pytest.mark.parametrize("change", LISTS)
def test_lists_that_a_function_finds_are_looked_at(change, reads):
    held, x = [aligned(2, 4), 1, aligned(2, 4), aligned(2, 4), ["a"], []], aligned(2, 4)

    def total(x: Any) -> Any:
        return x + (held[0] * held[1] + held[2] - held[3] if len(held) > 5 and held[4] else 0)

    cached = wrap(total)
    for _ in range(3):
        cached(x)
    assert reads.of(lambda: cached(x)) == 0
    LISTS[change](held)
    assert reads.of(lambda: cached(x)) == 1


def test_results_never_share_memory(reads):
    """Each call's results have their own memory, with the sizes, strides and type of the recording."""
    x = aligned(2, 4)
    cached = wrap(lambda x: (x.t() + 1, x.sum(0, dtype=torch.float64)))
    for _ in range(3):
        cached(x)
    first, second = cached(x), cached(x)
    assert reads.of(lambda: cached(x)) == 0
    assert len({one.data_ptr() for one in (*first, *second)}) == 4
    for kept, other in zip(first, (x.t() + 1, x.sum(0, dtype=torch.float64))):
        assert (kept.dtype, kept.shape, kept.stride(), kept.requires_grad) == (other.dtype, other.shape, other.stride(), False)
    pointers, _ = host.entries[0].calls[-1]
    assert pointers[0] == x.data_ptr() and len(pointers) == 3


@dataclasses.dataclass
class Options:
    scale: float = 2.0


@pytest.mark.parametrize("held, other, work", [
    (aligned(2, 4), aligned(2, 4), lambda x, held, given: x * held + given), ([2.0], [2.0], lambda x, held, given: x * held[0] + given[0]),
    (Options(), Options(), lambda x, held, given: x * held.scale + given.scale),
], ids=["tensor", "list", "object"])
def test_a_call_that_is_given_what_is_also_held_says_nothing_of_one_that_is_given_another(held, other, work, reads):
    x, step = aligned(2, 4), wrap(lambda x, given: work(x, held, given))
    for _ in range(5):
        step(x, held)
    before = reads.count
    step(x, other)
    assert reads.count > before  # "given is held" was not a fact of this call, so it is read again


def test_what_another_thread_bound_meanwhile_is_not_known_by_heart(monkeypatch):
    """Between a call's launch and its check, another thread calls the same entry with another object."""
    other, given = Given(), Given.__new__(Given)
    _, states_of_other = host.entries[0].calls[-1]
    launched = _bound_call.BoundCall.launch

    def launch(self: Any) -> None:
        launched(self)
        self.variant.function.bound_states = list(states_of_other)

    monkeypatch.setattr(_bound_call.BoundCall, "launch", launch)
    given.__init__()  # type: ignore[misc]
    given.call()
    _, states = host.entries[0].calls[-1]
    assert given.net.linear.weight.data_ptr() in states
    assert other.net.linear.weight.data_ptr() not in states


def test_a_function_that_another_thread_runs_makes_no_call_of_this_one_a_part_of_it(reads):
    given, other, inside, done = Given(), Given(), threading.Event(), threading.Event()
    parts: list[int] = []

    def nested() -> None:
        with _surrounding_work.running, torch.no_grad():  # these contexts are those of TorchFunction.run
            inside.set()
            assert done.wait(30)
            calls = len(host.entries[0].calls)
            other.call()
            parts.append(len(host.entries[0].calls) - calls)

    thread = threading.Thread(target=nested)
    thread.start()
    assert inside.wait(30)
    try:
        counts = [reads.of(given.call) for _ in range(3)]
        entries = len(host.entries)
    finally:
        done.set()
        thread.join()
    assert counts[1:] == [0, 0] and parts == [0] and reads.of(given.call) == 0 and len(host.entries) == entries


def test_a_call_inside_of_a_function_that_runs_is_a_part_of_it(reads):
    given = Given()
    before = [len(one.calls) for one in host.entries]
    with _surrounding_work.running:
        given.call()
    assert [len(one.calls) for one in host.entries] == before and reads.of(given.call) == 0


def test_several_kinds_of_calls_are_known_at_once(reads):
    given = Given()
    sizes = [aligned(2, 4), aligned(3, 4), aligned(5, 4)]

    def calls() -> None:
        for one in sizes:
            given.meta.tokens, given.caches = one, [aligned(*one.shape), aligned(2, 4)]
            given.call()

    for _ in range(3):
        calls()
    assert reads.of(calls) == 0


def test_what_never_repeats_is_given_up(reads):
    """An attribute that the code does not name differs at each call. All calls belong to one variant, but each is read completely."""
    given = Given()
    for i in range(20):
        given.meta.number = i
        assert reads.of(given.call) == 1
    (known,) = _torchs(given).steady.values()
    assert len(known) <= _torch_function._MOST_TRIES


class Rich(enum.Enum):
    ONE = 1

    def __init__(self, number: int) -> None:
        self.weight = float(number)


def test_what_enumerators_hold_is_read(reads, monkeypatch):
    x = aligned(2, 4)
    cached = wrap(lambda x, kind: x * kind.weight)
    for _ in range(3):
        cached(x, Rich.ONE)
    monkeypatch.setattr(Rich.ONE, "weight", 3.0)
    assert reads.of(lambda: cached(x, Rich.ONE)) == 1


class Failing:
    """Takes the place of the stream and fails once."""

    fault: BaseException | None = None

    def __call__(self, index: int) -> int:
        fault, self.fault = self.fault, None
        if fault is not None:
            raise fault
        return 0


@pytest.mark.parametrize("fault", [RuntimeError("no such stream"), KeyError("x"), MemoryError()])
def test_what_fails_before_the_launch_is_read_at_length(reads, monkeypatch, fault):
    monkeypatch.setattr(_launching, "native_stream", failing := Failing())
    given = Given()
    failing.fault = fault
    assert reads.of(given.call) == 1
    assert len(host.entries[0].calls) == 3  # three, because the first of the four calls was the recording
    assert reads.of(given.call) == 0


def test_what_interrupts_a_later_call_is_raised_and_leaves_no_lock_behind(reads, monkeypatch):
    monkeypatch.setattr(_launching, "native_stream", failing := Failing())
    given = Given()
    failing.fault = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        given.call()
    assert not host.entries[0].lock.locked() and reads.of(given.call) == 0


@pytest.mark.parametrize("error, raised", [(errors.Stale, None), (errors.PartlyLaunched, errors.PartlyLaunched)])
def test_a_launch_that_fails_is_another_call_or_an_error(reads, monkeypatch, error, raised):
    """After errors of the first kind nothing was enqueued, so the function itself can run."""
    def fails(self: Any, stream: Any, args: Any, count: int) -> int:
        return int(error.code)

    given = Given()
    monkeypatch.setattr(host.FakeEntry, "_enqueued", fails)
    if raised is None:
        assert reads.of(given.call) == 1
        return
    with pytest.raises(raised):
        given.call()
    assert not host.entries[0].lock.locked()


@pytest.mark.parametrize("given", [(), ((), {}, 1), ([], {}), ((), ())])
def test_a_later_call_takes_a_tuple_and_a_dictionary_alone(given):
    call = next(iter(_torchs(Given()).steady.values()))[0].call
    with pytest.raises(TypeError, match="expected a tuple and a dict"):
        call(*given)


def test_a_call_has_its_result_where_later_ones_cannot_be_known(monkeypatch):
    def fails(*_: Any) -> Any:
        raise RuntimeError("no such tensor")

    monkeypatch.setattr(_native_snapshots.Tensors, "_numbers", fails)
    given = Given()
    assert given.call()["cache"] is given.caches[0]


def test_arguments_are_not_kept():
    given = Given()
    gone = [weakref.ref(given.meta.tokens), weakref.ref(given.meta), weakref.ref(given.caches[0])]
    given.meta, given.caches = Meta(aligned(2, 4), True, [2, 4]), [aligned(2, 4), aligned(2, 4)]
    given.call()
    gc.collect()
    assert [one() for one in gone] == [None, None, None]


def test_reset_forgets(reads):
    given = Given()
    given.net.step.reset()
    assert reads.of(given.call) == 1


def test_threads_call_at_once():
    """Each result must have its own memory, and the values for its call's arguments."""
    import threading

    given, wrong = Given(), []

    def work() -> None:
        mine = Meta(aligned(2, 4), True, [2, 4])
        caches = [aligned(2, 4), aligned(2, 4)]
        for _ in range(200):
            with torch.no_grad():
                result = given.net.step(mine, caches, dtype=torch.float32)
            if result["cache"] is not caches[0] or result["row"].data_ptr() != caches[1].data_ptr():
                wrong.append(result)

    at_once(work, *[()] * 4)
    assert not wrong


def test_a_later_call_waits_while_another_thread_has_itsweights_elsewhere(reads):
    """The call must wait: otherwise it would be launched with the weight's temporary address."""
    import threading

    from warmgraph.torch.replay import _moved_tensors

    given = Given()
    weight, calls = given.net.linear.weight, len(host.entries[0].calls)
    at, found, moved, may_end = weight.data_ptr(), [], threading.Event(), threading.Event()

    def move() -> None:
        kept = weight.data
        with _moved_tensors.moving():
            weight.data = torch.zeros(4, 4)
            moved.set()
            may_end.wait(5)
            found.append(len(host.entries[0].calls))
            weight.data = kept

    thread = threading.Thread(target=move)
    thread.start()
    moved.wait(5)
    threading.Timer(0.1, may_end.set).start()
    given.call()
    thread.join()
    assert found == [calls] and len(host.entries[0].calls) == calls + 1 and at in host.entries[0].calls[-1][1]
    assert reads.of(given.call) == 0


def test_a_later_call_that_was_begun_before_its_weights_moved_is_begun_anew(monkeypatch, reads):
    import threading

    from warmgraph.torch.replay import _moved_tensors

    given, calls = Given(), len(host.entries[0].calls)
    weight, threads = given.net.linear.weight, []
    at = weight.data_ptr()

    def move() -> None:
        kept = weight.data
        with _moved_tensors.moving():
            weight.data = torch.zeros(4, 4)
            given.moved.set()
            given.may_end.wait(5)
            weight.data = kept

    def is_same() -> bool:  # this Python code runs during a later call's checks, and lets another thread run
        if not threads:
            threads.append(threading.Thread(target=move))
            threads[0].start()
            given.moved.wait(5)
            threading.Timer(0.1, given.may_end.set).start()
        return True

    given.moved, given.may_end = threading.Event(), threading.Event()
    _torchs(given).steady.clear()
    monkeypatch.setattr(_torch_call.Surroundings, "looks", _with(_torch_call.Surroundings.looks, is_same))
    given.call()
    assert reads.of(given.call) == 1 and threads
    threads[0].join()
    assert len(host.entries[0].calls) == calls + 2 and all(at in states for _, states in host.entries[0].calls[-2:])


def _with(looks: Any, is_same: Callable[[], bool]) -> Any:
    def more(*given: Any) -> Any:
        found = looks(*given)
        return found._replace(rest=[*found.rest, is_same])

    return more


def _torchs(given: Given) -> Any:
    return given.net.step._shared.torchs


def test_an_object_whose_attributes_are_in_another_dictionary_is_read_again(reads):
    given = Given()
    dropout = given.net.norm[1]
    assert reads.of(given.call) == 0
    dropout.__dict__ = {**vars(dropout), "p": 0.25}
    assert reads.of(given.call) > 0
