"""A function that is always refused must cost almost nothing, and is tried again now and then."""
from __future__ import annotations

import random
from typing import Any, Iterator

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed here")

import torch_on_the_host as host  # noqa: E402
import warmgraph  # noqa: E402
from torch_on_the_host import wrap  # noqa: E402
from warmgraph.torch.calls._torch_function import TorchFunction  # noqa: E402
from warmgraph.torch.record import _operators  # noqa: E402

X = torch.arange(8.0)


@pytest.fixture(autouse=True)
def on_the_host(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    host.use(monkeypatch)
    monkeypatch.setattr(_operators, "compiled_graphs", lambda: 0)
    yield


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A list that gets one item for each call that was tried."""
    calls: list[int] = []
    answered = TorchFunction._answer
    monkeypatch.setattr(TorchFunction, "_answer", lambda self, *given: (calls.append(1), answered(self, *given))[1])
    return calls


class Counter:
    def __init__(self) -> None:
        self.steps, self.counts = 0, True

    def step(self, x: Any) -> Any:
        self.steps += self.counts
        return x + self.steps


def test_from_the_fourth_refusal_on_only_the_second_fourth_eighth_call_is_asked_about(asked):
    counter = Counter()
    cached = wrap(counter.step)
    for number in range(1, 70):
        assert torch.equal(cached(X), X + number)
    first = len(asked)
    assert 4 <= first <= 6 + 6, "those in a row, and the 2nd, 4th, ... 64th after them"
    assert cached._shared.runs_as_it_is and sum(one.calls for one in cached._shared.runs_as_it_is.values()) >= 60, "each is counted"
    assert "steps" in warmgraph.explain(cached)


def test_a_call_that_is_put_off_each_time_is_given_up_too(asked):
    class Growing:
        def __init__(self) -> None:
            self.kept = X[:1]

        def step(self, x: Any) -> Any:
            self.kept = torch.cat([self.kept, x[:1]])
            return self.kept.sum() + x

    cached = wrap(Growing().step)
    for _ in range(70):
        cached(X)
    assert len(asked) <= 12 and cached._shared.given_up
    assert "kept" in warmgraph.explain(cached) and warmgraph.stats(cached)[0].kinds["entries"].made == 0


def test_a_function_that_becomes_recordable_is_recorded(asked):
    counter = Counter()
    cached = wrap(counter.step)
    for _ in range(8):
        cached(X)
    assert not host.entries and cached._shared.given_up
    counter.counts = False
    for _ in range(40):
        cached(X)
    assert host.entries and host.entries[-1].captures is not None and not cached._shared.given_up
    before = len(host.entries)
    cached(X)
    assert len(host.entries) == before and host.entries[-1].calls, "and replayed"


@pytest.mark.parametrize("other", [X.to(torch.float64), X.requires_grad_(False).to(torch.complex64), [X]])
def test_arguments_of_another_kind_are_asked_about_at_once(asked, other):
    counter = Counter()
    counter_step = counter.step
    cached = wrap(lambda x: counter_step(x[0] if isinstance(x, list) else x))
    for _ in range(9):
        cached(X)
    before = len(asked)
    cached(torch.cat([X, X])), cached(X[:3])
    assert len(asked) <= before + 1, "sizes grow at each call"
    before = len(asked)
    cached(other)
    assert len(asked) == before + 1


def test_other_code_is_asked_about_at_once(asked):
    counter = Counter()

    def step(x: Any) -> Any:
        return counter.step(x)

    cached = wrap(step)
    for _ in range(10):
        cached(X)
    before = len(asked)
    step.__code__ = (lambda x: x * 2).__code__ if not step.__code__.co_freevars else step.__code__.replace(co_name="other")
    cached(X)
    assert len(asked) == before + 1


def test_calls_that_are_replayed_are_replayed_between_calls_that_are_refused():
    def step(x: Any, draws: Any) -> Any:
        return x + random.random() if draws is not None else x * 2

    cached = wrap(step)
    cached(X[:4], None)
    for _ in range(20):
        cached(X, 1.5)
    assert cached._shared.given_up and len(host.entries) == 1
    cached(X[:4], None)
    assert len(host.entries[0].calls) == 1


def test_what_is_required_is_missed_each_time(monkeypatch):
    counter = Counter()
    cached = wrap(counter.step)
    for _ in range(10):
        cached(X)
    strict = warmgraph.cache_compile(counter.step, config=warmgraph.Config(model="net", policy="require_hit"), compile=False)
    for _ in range(10):
        with pytest.raises(warmgraph.MissForbidden):
            strict(X)


def test_gradients_flow_where_the_call_runs_with_them():
    cached = wrap(lambda x: x * 3)
    for _ in range(10):
        x = X.clone().requires_grad_()
        cached(x).sum().backward()
        assert torch.equal(x.grad, torch.full_like(X, 3.0))
    with torch.no_grad():
        cached(x)
    assert host.entries, "without gradients it is another kind of call"
