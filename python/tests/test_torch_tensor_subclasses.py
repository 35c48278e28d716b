"""Tests tensors of subclasses that consist of other tensors, as torchao's quantised weights do."""
from __future__ import annotations

import json
import threading
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch_on_the_host as host  # noqa: E402
from torch_on_the_host import errors, refusal, wrap  # noqa: E402

from warmgraph.core.serving._entry_metadata import each_fact  # noqa: E402
from warmgraph.torch.read import _tensor_subclasses  # noqa: E402

pytestmark = pytest.mark.usefixtures("on_the_host")

X = torch.ones(2, 4)


class Int8(torch.Tensor):
    """A weight of integers and scales."""

    @staticmethod
    def __new__(cls: Any, data: Any, scale: Any, mode: str = "row") -> Any:
        return torch.Tensor._make_wrapper_subclass(cls, data.shape, dtype=scale.dtype, device=data.device)

    def __init__(self, data: Any, scale: Any, mode: str = "row") -> None:
        self.ints, self.scale, self.mode = data, scale, mode

    def __tensor_flatten__(self) -> Any:
        return ["ints", "scale"], [self.mode]

    @classmethod
    def __tensor_unflatten__(cls, parts: Any, context: Any, size: Any, stride: Any) -> Any:
        return cls(parts["ints"], parts["scale"], context[0])

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten.detach.default:
            return cls(args[0].ints, args[0].scale, args[0].mode)
        return func(*(one.full() if isinstance(one, Int8) else one for one in args), **(kwargs or {}))

    def full(self) -> Any:
        return self.ints.to(self.scale.dtype) * (self.scale if self.mode == "row" else self.scale * 2)


class Other(Int8):
    pass


class Forgetful(Int8):
    @classmethod
    def __tensor_unflatten__(cls, parts: Any, context: Any, size: Any, stride: Any) -> Any:
        return cls(parts["ints"], parts["scale"])


class Slotted(Int8):
    __slots__ = ("more",)


class Bare(torch.Tensor):
    pass


def weight(kind: Any = Int8, mode: str = "row", seed: int = 0) -> Any:
    made = torch.Generator().manual_seed(seed)
    return kind(torch.randint(-9, 9, (3, 4), dtype=torch.int8, generator=made), torch.rand(3, 1, generator=made), mode)


def product(x: Any, w: Any) -> Any:
    return torch.mm(x, w.full().t())


class Product(torch.nn.Module):
    def __init__(self, given: Any) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(given, requires_grad=False)

    def forward(self, x: Any) -> Any:
        return product(x, self.weight)


def test_a_parameter_is_its_parts_and_the_second_capture_has_them_elsewhere():
    module = Product(weight())
    cached = wrap(module)
    cached(X)
    (entry,) = host.entries
    assert [one.name for one in entry.given.states] == ["weight.ints", "weight.scale"], refusal(cached)
    first, second = entry.captures
    places = {module.weight.ints.data_ptr(), module.weight.scale.data_ptr()}
    assert places <= {at for _, at, _ in first.regions} and places.isdisjoint(at for _, at, _ in second.regions)
    facts = each_fact(entry.given.facts)
    assert facts["self.weight.mode"] == "str row" or "row" in facts["self.weight.mode"]
    assert "Int8" in facts["self.weight"] and "of ints scale" in facts["self.weight"]


def test_an_argument_and_a_tensor_of_a_closure_are_read_too():
    held = weight()
    for cached, args in ((wrap(product), (X, held)), (wrap(lambda x: product(x, held)), (X,))):
        host.entries.clear()
        cached(*args)
        (entry,) = host.entries
        names = [one.name for one in (*entry.given.inputs, *entry.given.states)]
        assert [one for one in names if one.endswith("ints") or one.endswith("scale")], names
        cached(*args)
        assert len(host.entries) == 1 and len(entry.calls) == 1


def test_other_integers_of_the_same_form_are_replayed_in_their_own_memory():
    one, other, cached = weight(), weight(seed=1), wrap(product)
    cached(X, one)
    cached(X, other)
    (entry,) = host.entries
    pointers, _ = entry.calls[0]
    assert len(pointers) == 4 and {one.ints.data_ptr(), one.scale.data_ptr()}.isdisjoint(pointers)


@pytest.mark.parametrize("change", [
    lambda held: setattr(held, "mode", "other"), lambda held: setattr(held, "more", 1),
    lambda held: setattr(held, "scale", torch.rand(1, 1)), lambda held: setattr(held, "ints", held.ints.to(torch.int16)),
])
def test_another_context_attribute_or_part_is_another_call(change):
    module = Product(weight())
    cached = wrap(module)
    cached(X)
    cached(X)
    assert len(host.entries) == 1 and len(host.entries[0].calls) == 1
    change(module.weight)
    expected = module(X)
    assert torch.equal(cached(X), expected) and len(host.entries[0].calls) == 1


def test_another_class_is_another_call():
    cached = wrap(product)
    cached(X, weight())
    cached(X, weight(Other))
    assert len(host.entries) == 2


def test_a_part_that_is_replaced_by_one_like_it_is_used():
    module = Product(weight())
    cached = wrap(module)
    for _ in range(3):
        cached(X)
    module.weight.scale = module.weight.scale.clone()
    for _ in range(3):
        cached(X)
    assert len(host.entries) == 1 and host.entries[0].calls[-1][1][1] == module.weight.scale.data_ptr() != host.entries[0].calls[0][1][1]


class Nested(Int8):
    """Has a scale of its own class."""

    def full(self) -> Any:
        return self.ints.to(torch.float32) * self.scale.full()


def test_a_part_may_have_parts():
    inner = Int8(torch.ones(3, 1, dtype=torch.int8), torch.ones(3, 1))
    module = Product(Nested(torch.ones(3, 4, dtype=torch.int8), inner))
    cached = wrap(module)
    cached(X)
    (entry,) = host.entries
    assert [one.name for one in entry.given.states] == ["weight.ints", "weight.scale.ints", "weight.scale.scale"], refusal(cached)
    assert {at for _, at, _ in entry.captures[1].regions}.isdisjoint({inner.ints.data_ptr(), module.weight.ints.data_ptr()})


def test_operators_on_the_tensor_itself_are_recorded():
    held = torch.nn.Linear(4, 3)
    held.weight = torch.nn.Parameter(weight(), requires_grad=False)
    cached = wrap(held)
    assert torch.equal(cached(X), X @ weight().full().t() + held.bias) and len(host.entries) == 1, refusal(cached)
    cached(X)
    assert len(host.entries[0].calls) == 1


def test_a_part_that_the_function_writes_is_a_written_state():
    def work(x: Any, w: Any) -> Any:
        w.scale.add_(1)
        return product(x, w)

    given = weight()
    before, cached = given.scale.clone(), wrap(work)
    cached(X, given)
    assert torch.equal(given.scale, before + 1), refusal(cached)
    assert json.loads(host.entries[0].given.metadata)["aligned"].keys() == {"x", "w.ints"}  # the inputs that are only read


def test_a_part_that_the_function_replaces_is_refused():
    def work(x: Any, w: Any) -> Any:
        w.scale = w.scale + 1
        return product(x, w)

    cached = wrap(work)
    cached(X, weight())
    assert not host.entries and "w.scale is another tensor after the call" in refusal(cached)


def test_weights_in_a_state_dict_are_not_kept_in_the_entry():
    cached = wrap(Product(weight()))
    cached(X)
    metadata = json.loads(host.entries[0].given.metadata)
    assert metadata["contents"] == {}


def with_attribute(name: str, value: Any) -> Any:
    made = weight()
    setattr(made, name, value)
    return made


def with_hook() -> Any:
    made = weight()
    made._backward_hooks = {0: print}
    return made


@pytest.mark.parametrize("make, text", [
    (with_hook, "w is a test_torch_tensor_subclasses.Int8, a subclass of torch.Tensor with a hook: remove the hook"),
    (lambda: with_attribute("items", iter([1])), "w.items is a builtins.list_iterator"),
    (lambda: with_attribute("cache", torch.ones(3)), "with the tensor 'cache', which its __tensor_flatten__ does not name"),
    (lambda: with_attribute("note", 3), "w has the attribute 'note', which the __tensor_unflatten__ of test_torch_tensor_subclasses.Int8 does not restore"),
    (lambda: weight(Forgetful, "column"), "w has the attribute 'mode', which the __tensor_unflatten__"),
    (lambda: weight(Slotted), "with the slot 'more'"),
    (lambda: weight().requires_grad_(), "requires grad"),
    (lambda: torch.ones(3, 4).as_subclass(Bare), "w is a test_torch_tensor_subclasses.Bare, a subclass of torch.Tensor without __tensor_flatten__"),
])
def test_other_tensors_are_refused_by_name(make, text):
    cached = wrap(lambda x, w: x + 1)
    cached(X, make())
    assert not host.entries and text in refusal(cached)


def test_a_pair_is_refused():
    scale = torch.ones(2, 4, requires_grad=True)
    cached = wrap(lambda x, w: product(x * scale, w), pair=True)
    cached(X, weight())
    assert not host.entries and "w is a subclass of torch.Tensor, which a pair cannot have" in refusal(cached)


def test_a_tensor_of_other_parts_is_like_the_original():
    given = torch.nn.Parameter(weight(mode="column"), requires_grad=False)
    made: Any = _tensor_subclasses.of_other_parts("w", given, torch.clone)
    assert type(made) is Int8 and isinstance(made, torch.nn.Parameter) and made.mode == "column" and vars(made).keys() == vars(given).keys()
    assert torch.equal(made.ints, given.ints) and made.ints.data_ptr() != given.ints.data_ptr()
    with pytest.raises(errors.NotRecordable, match="makes another tensor"):
        _tensor_subclasses.of_other_parts("w", given, lambda part: part[:2])
