"""Numbers in arguments that each call advances: a replay advances them, as long as every comparison has the outcome of the recording."""
from __future__ import annotations

import functools
import json
import operator
import types
from typing import Any, Callable, Iterator

import pytest
from hypothesis import given, strategies

torch = pytest.importorskip("torch", reason="PyTorch is not installed here")

import torch_on_the_host as host  # noqa: E402
from torch_on_the_host import refusal, wrap  # noqa: E402
from warmgraph import errors  # noqa: E402
from warmgraph.torch.record import _counted_numbers, _operators  # noqa: E402
from warmgraph.torch.replay import _counters, _outputs  # noqa: E402

X = torch.ones(1, 4)


@pytest.fixture(autouse=True)
def on_the_host(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    host.use(monkeypatch)
    monkeypatch.setattr(_operators, "compiled_graphs", lambda: 0)  # other tests may have compiled functions
    yield


class Window:
    """As a static sliding window of transformers: the number decides whether the window is full."""

    def __init__(self, size: int = 4) -> None:
        self.size, self.length, self.rows, self.at = size, 0, torch.zeros(size, 4), torch.zeros((), dtype=torch.long)

    def update(self, x: Any) -> Any:
        length = self.length
        self.length += x.shape[0]
        if length >= self.size:
            self.rows.copy_(torch.cat((self.rows[1:], x)))
        else:
            self.rows.index_copy_(0, self.at.unsqueeze(0), x)
            self.at.add_(1)
        return self.rows


class Numbers:
    """Other holders of numbers."""

    def __init__(self) -> None:
        self.steps = [0, 5]
        self.named = {"step": 0}
        self.inner = Window()


def step(x: Any, window: Any) -> Any:
    return window.update(x).sum(0)


def recorded() -> int:
    return sum(one.captures is not None for one in host.entries)


def test_replays_advance_the_number_until_a_comparison_would_have_another_outcome():
    cached, window = wrap(step), Window()
    for call in range(9):
        cached(X, window)
        assert window.length == call + 1
        assert recorded() == (1 if call < 4 else 2), refusal(cached)
    assert [len(one.calls) for one in host.entries] == [3, 4], "the other calls are replays"
    facts = [text for one in host.entries for name, text in sorted(host.each_fact(one.given.facts).items()) if name == "window.length"]
    assert facts == ["int to 3, advanced by 1", "int from 4, advanced by 1"]


def test_a_new_process_hits_at_another_number():
    window = Window()
    first = wrap(step)
    for _ in range(6):
        first(X, window)
    made = len(host.entries)
    later, window = wrap(step), Window()
    for call in range(7):
        later(X, window)
        assert window.length == call + 1 and not refusal(later)
    assert [one.captures for one in host.entries[made:]] == [None, None], "each entry is loaded once"


def test_numbers_in_lists_dicts_and_inner_objects_are_advanced():
    def work(x: Any, numbers: Any) -> Any:
        numbers.steps[1] += 2
        numbers.named["step"] -= 1
        numbers.inner.length += 3
        return x + 1

    cached, numbers = wrap(work), Numbers()
    for call in range(1, 4):
        cached(X, numbers)
        assert (numbers.steps, numbers.named, numbers.inner.length) == ([0, 5 + 2 * call], {"step": -call}, 3 * call)
    assert recorded() == 1 and len(host.entries[0].calls) == 2


def test_a_branch_at_one_number_is_another_variant():
    def work(x: Any, window: Any) -> Any:
        window.length += 1
        return x * 2 if window.length == 4 else x + 1

    cached, window = wrap(work), Window()
    for _ in range(6):
        cached(X, window)
    assert recorded() == 2 and window.length == 6
    bounds = {(one.low, one.high, one.without) for text in host.kept.values() for one in _outputs.from_text(text).counters}
    assert bounds == {(None, None, (3,)), (3, 3, ())}


def test_a_result_that_has_the_number_is_refused():
    def work(x: Any, window: Any) -> Any:
        window.length += 1
        return x + 1, window.length

    cached, window = wrap(work), Window()
    for call in range(1, 4):
        assert cached(X, window)[1] == call
    assert recorded() == 0 and "each call changes window.length, and the result has this number" in refusal(cached)


def by(use: Callable[[int, Any], Any]) -> Callable[..., Any]:
    def work(x: Any, window: Any) -> Any:
        result = use(window.length, x)
        window.length += 1
        return x + 1 if result is None else result

    return work


TABLE, NAMES, SEEN = list(range(50)), {0: 1.0, 1: 2.0, 2: 3.0, 3: 4.0}, set[int]()
OTHER_USES = {
    "an operator": lambda n, x: x + n, "an operator, mirrored": lambda n, x: n - x, "a product": lambda n, x: x + (n * 2 > 3),
    "a remainder": lambda n, x: x * 2 if n % 3 == 1 else x + 1, "a quotient": lambda n, x: x + (n // 3), "a text": lambda n, x: x + len(f"{n:03}"),
    "a shape": lambda n, x: torch.zeros(n + 1).sum() + x, "a slice": lambda n, x: torch.arange(9.0)[: n + 1].sum() + x,
    "an index": lambda n, x: x + torch.arange(9.0)[n], "a list's index": lambda n, x: x + TABLE[n], "a dictionary's key": lambda n, x: x + NAMES[n],
    "a range": lambda n, x: x + sum(range(n + 2)), "a constructor": lambda n, x: x + torch.full((1,), n),
    "a float": lambda n, x: x + float(n), "a scale": lambda n, x: x * (1.0 + n), "a power": lambda n, x: x + 2 ** n, "a shift": lambda n, x: x + (1 << n),
    "its bits": lambda n, x: x + n.bit_length(), "an attribute": lambda n, x: x + n.real, "C code": lambda n, x: x + operator.index(n),
    "int's own sum": lambda n, x: x + int.__add__(n, 1), "divmod": lambda n, x: x + divmod(n, 2)[1], "round": lambda n, x: x + round(n, -1),
    "a sum of numbers": lambda n, x: x + sum([n, 1]), "a cache": lambda n, x: x + _kept(n), "max": lambda n, x: x + max(n + 1, 0) * 2,
    "a reduction": lambda n, x: x + functools.reduce(operator.mul, [n + 1, 2]), "a set": lambda n, x: x + (n in SEEN),
}


@functools.lru_cache
def _kept(number: int) -> int:
    return number * 3


@pytest.mark.parametrize("name", OTHER_USES)
def test_a_number_that_decides_more_than_comparisons_is_refused(name: str) -> None:
    cached, window = wrap(by(OTHER_USES[name])), Window()
    for call in range(3):
        expected = by(OTHER_USES[name])(X, _at(call))
        assert torch.equal(cached(X, window), expected) and window.length == call + 1
    assert not host.entries and "window.length" in refusal(cached), refusal(cached)


def _at(length: int) -> Window:
    window = Window()
    window.length = length
    return window


@pytest.mark.parametrize("use", [lambda n, x: None, lambda n, x: None if n < 30 else x, lambda n, x: x * 2 if max(n - 40, 0) == 0 else x, lambda n, x: x * 2 if n else x * 3,
                                 lambda n, x: None if n + 1 <= 2.5e9 else x, lambda n, x: None if not 50 < n - 3 else x, lambda n, x: x * (n - n + 1)])
def test_a_number_that_decides_comparisons_alone_is_advanced(use: Any) -> None:
    cached, window = wrap(by(use)), _at(1)
    for _ in range(5):
        cached(X, window)
    assert recorded() == 1 and window.length == 6 and len(host.entries[0].calls) == 4, refusal(cached)


def test_the_refusal_names_the_line():
    def work(x: Any, window: Any) -> Any:
        window.length += 1
        return x * (window.length // 2)

    cached = wrap(work)
    cached(X, Window())
    assert "test_torch_counters.py:" in refusal(cached) and "(in work)" in refusal(cached) and "keep the number in device memory" in refusal(cached)


def test_other_changes_beside_the_number_are_refused_as_before():
    def work(x: Any, numbers: Any) -> Any:
        numbers.inner.length += 1
        numbers.named[f"call {len(numbers.named)}"] = 1.0
        return x + 1

    cached, numbers = wrap(work), Numbers()
    for _ in range(3):
        cached(X, numbers)
    assert not host.entries and refusal(cached)


def test_a_number_that_moves_by_other_distances_is_recorded_for_each_or_refused():
    def work(x: Any, window: Any) -> Any:
        window.length = 2 * window.length + 1
        return x + 1

    cached, window = wrap(work), Window()
    for _ in range(3):
        cached(X, window)
    assert window.length == 7 and not host.entries and "another way than in comparisons" in refusal(cached)


def test_a_number_that_one_call_sets_delays_the_recording():
    def work(x: Any, window: Any) -> Any:
        window.length = 7
        return x + 1

    cached, window = wrap(work), Window()
    cached(X, window)
    assert not host.entries and window.length == 7 and "not advanced by the same distance" in refusal(cached)
    assert not cached._shared.refused, "the next call that changes nothing is recorded"
    cached(X, window)
    assert recorded() == 1


def test_numbers_of_the_functions_object_or_globals_are_refused():
    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.calls = 0

        def forward(self, x: Any) -> Any:
            self.calls += 1
            return x + 1

    model = Model()
    cached = wrap(model)
    for _ in range(4):
        cached(X)
    assert not host.entries and model.calls == 4 and "calls" in refusal(cached)


def test_a_property_is_not_set():
    class Guarded:
        def __init__(self) -> None:
            self.__dict__["length"] = 0

        @property
        def length(self) -> int:
            return int(self.__dict__["length"])

        @length.setter
        def length(self, value: int) -> None:
            self.__dict__["length"] = value

    def work(x: Any, window: Any) -> Any:
        window.length += 1
        return x + 1

    cached, window = wrap(work), Guarded()
    for call in range(1, 4):
        cached(X, window)
        assert window.length == call
    assert not host.entries


def test_the_caller_gets_its_numbers_back_when_a_capture_fails():
    def work(x: Any, window: Any) -> Any:
        window.length += 1
        if host.is_captured():
            raise RuntimeError("not in a capture")
        return x + 1

    cached, window = wrap(work), Window()
    cached(X, window)
    assert type(window.length) is int and window.length == 1 and not host.entries


@given(value=strategies.integers(-9, 9), offset=strategies.integers(-9, 9), other=strategies.integers(-9, 9) | strategies.floats(-9, 9),
       compare=strategies.sampled_from([operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]))
def test_bounds_say_exactly_where_an_outcome_stays(value: int, offset: int, other: Any, compare: Any) -> None:
    number = _counted_numbers._Number("n", value, 1)
    counted = _counted_numbers.CountedInt(number, 0, 1 << 20) + offset
    outcome = compare(counted, other)
    assert outcome == compare(value + offset, other)
    counter = number.counter()
    for candidate in range(-40, 40):
        same = compare(candidate + offset, other) == outcome
        assert counter.holds(candidate) <= same, "it never holds where the outcome differs"
        assert counter.holds(candidate) == same or compare in (operator.eq, operator.ne)


def test_c_code_reads_another_number_in_the_second_capture():
    number = _counted_numbers._Number("n", 5, 1)
    counted = _counted_numbers.CountedInt(number, 0, 1 << 20)
    assert int.__add__(counted, 0) == 5 + (1 << 20) and counted == 5 and counted + 2 == 7 and 9 - counted == 4 and number.refused


@pytest.mark.parametrize("path, held", [("window.length", True), ("numbers.steps[1]", True), ("numbers.named['step']", True), ("numbers.inner.length", True),
                                        ("numbers.inner.rows", False), ("nothing.length", False), ("window.none", False), ("numbers.steps[7]", False),
                                        ("window.length.real", False), ("window[0]", False), ("window.", False), ("", False)])
def test_places_of_numbers(path: str, held: bool) -> None:
    place = _counters.place_in({"window": Window(), "numbers": Numbers()}, path)
    assert (place is not None) == held


@pytest.mark.parametrize("raw", [[["a", 1, 0, None]], [["a", "1", 0, 1, []]], [["a", 1, 0.5, 1, []]], [["a", 1, 0, 1, [None]]], 7, [[]]])
def test_damaged_counters_in_metadata_are_corrupt(raw: Any) -> None:
    text = '{"warmgraph.torch":%d,"result":{"plain":1},"draws":0,"outputs":[],"written":[],"aligned":{},"counters":%s}'
    with pytest.raises(errors.Corrupt):
        _outputs.from_text(text % (_outputs.VERSION, json.dumps(raw)))


class Strict:
    """A number that two kinds of calls advance by other distances, and compare with other bounds."""

    def __init__(self) -> None:
        self.length = 0


def strictly(x: Any, counted: Any) -> Any:
    counted.length += x.shape[0]
    if x.shape[0] == 1:
        return x + (1 if counted.length < 100 else 2)
    return x + (3 if counted.length < 10 else 4)


def test_a_call_of_another_kind_is_held_to_its_own_bounds():
    cached, counted, wide = wrap(strictly), Strict(), torch.ones(2, 4)
    for _ in range(8):
        for x in (X, wide):
            before = counted.length
            cached(x, counted)
            assert counted.length == before + x.shape[0]
    bounds = {(one.by, one.low, one.high) for text in host.kept.values() for one in _outputs.from_text(text).counters}
    assert bounds == {(1, None, 98), (2, None, 7), (2, 8, None)}
    assert recorded() == 3, "each kind has its own entries, and the second kind has one more behind its bound"
    assert [len(one.calls) for one in host.entries] == [7, 2, 4]


@given(number=strategies.integers(-3, 12))
def test_keys_differ_where_other_entries_fit(number: int) -> None:
    near, far = (_counters.Counter("n", 1, None, 5),), (_counters.Counter("n", 2, 3, None), _counters.Counter("m", 1))
    facts = {"n": f"int {number}", "m": "int 7", "x": "a"}
    kept, fits = _counters.key_of([near, far], facts)
    assert fits == tuple(one for one, holds in ((near, number <= 5), (far, number >= 3)) if holds)
    assert dict(kept) == {name: value for name, value in facts.items() if name == "x" or name == "m" and near in fits}
    assert _counters.key_of([], facts) == (tuple(facts.items()), ())


def test_calls_that_run_compiled_code_keep_their_numbers_as_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host.warmgraph.torch.calls._torch_function.TorchFunction, "may_be_shown", lambda self, call: False)
    cached, window = wrap(step), Window()
    cached(X, window)
    assert window.length == 1 and not host.entries and "each call changes window.length, and it runs compiled code" in refusal(cached)


def test_a_refused_attempt_does_not_refuse_the_next_one() -> None:
    window = Window()
    counted = _counted_numbers.CountedNumbers({"window.length": 5}, {"window.length": 1})
    with pytest.raises(errors.NotRecordable, match="another way than in comparisons"), counted.counted_in({"window": window}, False):
        window.length = window.length * 1 + 1
    for is_second in (False, True):
        with counted.counted_in({"window": window}, is_second):
            assert window.length == 5 and window.length < 9
            window.length += 1
    assert window.length == 0 and counted.counters() == (_counters.Counter("window.length", 1, 5, 5),)


def test_a_number_that_a_replay_cannot_set_is_a_miss() -> None:
    """Such an object has the facts of the recorded one, but runs code when the attribute is set."""
    counters = (_counters.Counter("window.length", 1),)
    assert [(place.get(), by) for place, by in _counters.places_of(counters, {"window": _at(3)})] == [(3, 1)]
    with pytest.raises(errors.MissForbidden, match="window.length cannot be set"):
        _counters.places_of(counters, {"window": types.SimpleNamespace(length="3")})
