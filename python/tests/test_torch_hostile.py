"""A function may change, return or receive anything: the caller always gets the function's own result."""
from __future__ import annotations

import collections
import random
import threading
import types
import weakref
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed here")

import torch_on_the_host as host  # noqa: E402
from hostile_calls import X, Settings, refusal, replays, wrap  # noqa: E402
from warmgraph import errors  # noqa: E402
from warmgraph.torch.read import _tensor_readers  # noqa: E402
from warmgraph.torch.replay import _torch_call  # noqa: E402

pytestmark = pytest.mark.usefixtures("on_the_host")


# --- Changes that the function makes and a replay would not make


class Rebinding(torch.nn.Module):
    def __init__(self, how: str) -> None:
        super().__init__()
        self.register_buffer("state", torch.zeros(4))
        self.how = how
        self.step = wrap(self.work)

    def work(self, x: Any) -> Any:
        if self.how == "attribute":
            self.state = self.state + x
        elif self.how == "data":
            self.state.data = self.state + x
        else:
            self.state.set_(self.state + x)
        return self.state * 1


@pytest.mark.parametrize("how", ["attribute", "data", "set_"])
def test_a_tensor_that_the_function_replaces_by_one_like_it_is_refused(how):
    module = Rebinding(how)
    for i in range(3):
        assert torch.equal(module.step(X), X * (i + 1))
    assert not host.entries and "self.state" in refusal(module.step) and "copy_" in refusal(module.step)


def test_a_tensor_of_an_argument_that_the_function_replaces_is_refused():
    def work(state: Any) -> Any:
        state["k"] = state["k"] + 1
        return state["k"] * 2

    cached, state = wrap(work), {"k": torch.zeros(4)}
    for i in range(3):
        assert torch.equal(cached(state), torch.full((4,), 2.0 * (i + 1)))
    assert not host.entries and "state['k']" in refusal(cached)


def test_a_call_that_changes_a_setting_is_not_recorded():
    def work(x: Any) -> Any:
        torch.set_default_dtype(torch.float64)
        return x + 1

    cached = wrap(work)
    try:
        cached(X)
        assert not host.entries and "setting" in refusal(cached)
        cached(X)  # this call changes nothing
        assert len(host.entries) == 1
        torch.set_default_dtype(torch.float32)
        cached(X)
        assert torch.get_default_dtype() == torch.float64 and replays() == 0
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("kind", ["random", "numpy.random", "torch"])
def test_random_numbers_of_the_host_are_refused_and_drawn_as_often_as_the_function_draws_them(kind):
    numpy = pytest.importorskip("numpy")
    draw, seed = {"random": (random.random, random.seed), "torch": (lambda: torch.rand(1).item(), torch.manual_seed),
                  "numpy.random": (lambda: float(numpy.random.rand()), numpy.random.seed)}[kind]
    cached = wrap(lambda x: x + float(f"{draw():.6f}"))
    seed(3)
    expected = [draw(), draw()]
    seed(3)
    found = [cached(torch.zeros(1)).item() for _ in range(2)]
    assert found == pytest.approx(expected, abs=1e-5)
    assert not host.entries and kind in refusal(cached)


# --- returned values


PARTS: dict[str, Any] = {  # views of a result with 2 rows and 4 columns
    "the same": lambda y: y.view_as(y), "another shape": lambda y: y.view(4, 2), "first column": lambda y: y[:, 0], "last row": lambda y: y[-1],
    "transposed": lambda y: y.t(), "repeated": lambda y: y[1].expand(3, 4), "every second": lambda y: y[:, 1::2], "as bytes": lambda y: y[1].view(torch.uint8),
}


@pytest.mark.parametrize("borrow", [False, True])
@pytest.mark.parametrize("part", PARTS)
def test_a_result_that_is_a_part_of_one_before_it_is_one_of_a_replay(part, borrow):
    cached = wrap(lambda x: {"y": (y := x.view(2, 4) + 1), "part": PARTS[part](y)}, borrow=borrow)
    x = torch.ones(8)
    for number in range(4):  # the last calls take the steady path
        found = cached(x)
        y, seen = found["y"], found["part"]
        y.copy_(torch.randn(2, 4))  # the two tensors share memory, so a write to one must show in the other
        expected = PARTS[part](y)
        assert torch.equal(seen, expected) and (seen.shape, seen.stride(), seen.dtype) == (expected.shape, expected.stride(), expected.dtype), number
        assert seen.untyped_storage().data_ptr() == y.untyped_storage().data_ptr() and seen.data_ptr() == expected.data_ptr()
    assert len(host.entries) == 1 and len(host.entries[0].given.outputs) == 1 and replays() == 3


@pytest.mark.parametrize("work", [
    lambda x: (lambda y: (y[0], y))((x + 1).view(2, 2)), lambda x: (lambda y: (y[:3], y[1:]))(x + 1),
    lambda x: (lambda y: (y[:, :2], y[:, 0]))((x + 1).view(2, 2).repeat(1, 2)),
    lambda x: (lambda y: (y[2:], y[4:8].view(torch.float32)))((x + 1).view(torch.uint8)),
], ids=["whole last", "overlap", "between are others", "between numbers"])
def test_results_that_share_memory_otherwise_are_refused(work):
    cached = wrap(work)
    cached(torch.ones(4))
    assert not host.entries and "result[1] shares memory with result[0]" in refusal(cached)


def test_parts_of_one_result_that_lie_apart_are_recorded():
    cached = wrap(lambda x: (x.reshape(2, 2) + 1).chunk(2, dim=1))
    cached(X)
    left, right = cached(X)
    assert replays() == 1 and left.shape == right.shape == (2, 1)


class Pair(tuple):  # type: ignore[type-arg]
    def __new__(cls, left: Any, right: Any) -> Any:
        return super().__new__(cls, (left, right))


@pytest.mark.parametrize("make, word", [
    (lambda y: Pair(y, 1), "Pair"), (lambda y: collections.defaultdict(list, {"y": y}), "again"), (lambda y: [y, object()], "result[1]"),
    (lambda y: {y: 1}, "key"), (lambda y: (i for i in [y]), "generator"), (lambda y: with_attribute(Items([y])), "note"),
    (lambda y: y.to_sparse(), "layout"), (lambda y: [y, torch.strided], "torch.layout")])
def test_results_that_no_replay_can_make_are_refused(make, word):
    cached = wrap(lambda x: make(x + 1))
    for _ in range(2):
        found = cached(X)
        assert type(found) is type(make(X + 1))
    assert not host.entries and word in refusal(cached)


class Items(list):  # type: ignore[type-arg]
    pass


def with_attribute(items: Any) -> Any:
    items.note = 1
    return items


@pytest.mark.parametrize("work, expected", [
    (lambda x: None, None), (lambda x: (), ()), (lambda x: 3, 3), (lambda x: -0.0, -0.0), (lambda x: [float("inf"), {"a": ()}], [float("inf"), {"a": ()}])])
def test_results_without_tensors_come_back(work, expected):
    cached = wrap(work)
    assert [repr(cached(X)) for _ in range(2)] == [repr(expected)] * 2
    assert replays() == 1


def test_an_argument_a_view_of_it_a_view_of_a_weight_and_one_result_twice_come_back_as_such():
    weight = torch.arange(8.0)

    def work(x: Any) -> Any:
        y = x + weight[:4]
        return x, x[1:], weight[2:4], y, y

    cached = wrap(work)
    cached(X)
    x, view, part, y, again = cached(X)
    assert replays() == 1 and x is X and y is again
    assert (view.data_ptr(), part.data_ptr()) == (X.data_ptr() + 4, weight.data_ptr() + 8)


# --- arguments


def test_odd_tensors_as_arguments_are_recorded_and_replayed():
    whole = torch.zeros(16)
    found: dict[str, tuple[Any, ...]] = {
        "expanded": (torch.ones(1, 4).expand(3, 4),), "0-dim": (torch.tensor(2.0),), "no elements": (torch.ones(0, 4), X),
        "overlapping": (whole[0:8], whole[4:12]), "complex": (torch.ones(4, dtype=torch.complex64),), "int8": (torch.ones(4, dtype=torch.int8),),
        "float8": (torch.ones(4).to(torch.float8_e4m3fn),), "many dimensions": (torch.ones([1] * 12),), "strided": (whole.view(4, 4).t(),),
    }
    with torch.inference_mode():
        found["inference"] = (torch.ones(4),)
    for name, arguments in found.items():
        before = replays()
        cached = wrap(lambda *x: [one.clone() for one in x])
        for _ in range(2):
            assert [one.shape for one in cached(*arguments)] == [one.shape for one in arguments], name
        assert replays() == before + 1, (name, refusal(cached))


def test_many_tensors_in_a_list_are_recorded_and_replayed():
    many = [torch.ones(2) for _ in range(2000)]
    cached = wrap(lambda x: x[0] + x[-1])
    cached(many), cached(many)
    assert replays() == 1 and len(host.entries[0].given.inputs) == 2000


def test_names_of_inputs_and_states_are_never_those_of_results():
    result0, words = torch.ones(4), types.SimpleNamespace(seed=torch.ones(4))

    def work(result1: Any, generator: Any) -> Any:
        return result0 + result1 + generator.seed, result1 * 2

    work.__name__ = "result0"
    cached = wrap(work)
    cached(X, words)
    given = host.entries[0].given
    names = [one.name for one in (*given.inputs, *given.outputs, *given.states)]
    assert len(set(names)) == len(names) and "generator.seed" not in names


class Subclass(torch.Tensor):
    pass


@pytest.mark.parametrize("make", [lambda: torch.ones(4).as_subclass(Subclass), lambda: torch.ones(4).to_sparse(), lambda: torch.ones(4, device="meta"),
                                  lambda: torch.quantize_per_tensor(torch.zeros(4), 1.0, 0, torch.qint8)])
def test_what_cannot_be_followed_is_refused_and_the_result_is_the_functions(make):
    cached = wrap(lambda x, y: x + 1)
    for _ in range(2):
        assert torch.equal(cached(X, make()), X + 1)
    assert not host.entries and refusal(cached).startswith("y ")


def test_tensors_of_two_devices_are_refused_by_name():
    on = [_tensor_readers.TensorPlace(path, types.SimpleNamespace(device=torch.device("cuda", i)), "argument") for i, path in enumerate("ab")]
    with pytest.raises(errors.NotRecordable, match="b lies on cuda:1, but a on cuda:0"):
        _torch_call.common_device(on)


class Hostile:
    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        raise ValueError("no attributes today")


def hostile_values() -> dict[str, Any]:
    numpy = pytest.importorskip("numpy")
    deep: Any = []
    for _ in range(3000):
        deep = [deep]
    return {
        "texts of NumPy": numpy.array(["a", "b"]), "objects of NumPy": numpy.array([object()]), "records": numpy.zeros(2, "i4,f4"),
        "lock": threading.Lock(), "generator": torch.Generator(), "weakref": weakref.ref(Settings), "raises": Hostile(), "deep": deep,
        "tensor as a key": {torch.ones(2): 1}, "iterator": iter([1]), "random": random.Random(1),
    }


@pytest.mark.parametrize("name", ["texts of NumPy", "objects of NumPy", "records", "lock", "generator", "weakref", "raises", "deep", "tensor as a key",
                                  "iterator", "random"])
def test_whatever_is_passed_the_result_is_the_functions(name):
    value = hostile_values()[name]
    cached = wrap(lambda x, y: x + 1)
    for _ in range(2):
        assert torch.equal(cached(X, value), X + 1)
    assert replays() == 0 and refusal(cached)


def test_tensors_that_only_a_closure_or_a_plain_object_holds_make_a_call_pytorchs():
    weight = torch.ones(4)

    class Model:
        def __init__(self) -> None:
            self.weight = weight
            self.step = wrap(self.work)

        def work(self, n: int) -> Any:
            return self.weight * n

    model, cached = Model(), wrap(lambda n: weight * n)
    for one in (cached, model.step):
        assert torch.equal(one(3), X * 3)
        one(3)
    assert [entry.captures is not None for entry in host.entries] == [True, True] and replays() == 2
