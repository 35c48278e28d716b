"""Tests which results a replay makes again: objects of plain classes, and the objects that are refused by name."""
from __future__ import annotations

import dataclasses
import sys
import threading
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch_on_the_host as host  # noqa: E402
from torch_on_the_host import refusal, wrap  # noqa: E402

from warmgraph.torch.replay import _outputs  # noqa: E402

pytestmark = pytest.mark.usefixtures("on_the_host")


class Layer:
    def __init__(self, keys: Any, count: int) -> None:
        self.keys, self.values, self.count, self.dtype, self.device = keys, None, count, keys.dtype, keys.device


class Kept:
    def __init__(self, layers: list[Layer], kind: type) -> None:
        self.layers, self.kind, self.names = layers, kind, {"first": (1, 2.5)}


class Child(Kept):
    pass


def fill(x: Any) -> Any:
    return Kept([Layer(x + 1, 1), Layer(x * 2, 2)], Layer)


def test_an_object_is_made_of_its_class_and_attributes_and_without_its_code():
    x = torch.ones(2, 3)
    wrap(fill)(x)
    later, called = wrap(fill), []
    sys.setprofile(lambda frame, event, argument: called.append(frame.f_code))
    try:
        found = [later(x) for _ in range(3)]
    finally:
        sys.setprofile(None)
    assert Layer.__init__.__code__ not in called and Kept.__init__.__code__ not in called
    assert len(host.entries) == 2 and len({id(one.layers[0]) for one in found}) == 3
    for one in found:
        assert type(one) is Kept and one.kind is Layer and one.names == {"first": (1, 2.5)} and list(vars(one)) == ["layers", "kind", "names"]
        assert [(layer.count, layer.values, layer.dtype, layer.device) for layer in one.layers] == \
            [(1, None, torch.float32, x.device), (2, None, torch.float32, x.device)]
        assert all(type(layer) is Layer and layer.keys.shape == (2, 3) for layer in one.layers)
    assert found[0].layers[0].keys.data_ptr() != found[1].layers[0].keys.data_ptr()


def test_the_tensors_of_an_object_are_the_outputs_of_the_entry():
    wrap(fill)(torch.ones(2, 3))
    (entry,) = host.entries
    assert [one.name for one in entry.given.outputs] == ["result0", "result1"]
    assert entry.agreement == "" or "result" not in entry.agreement


def test_an_object_holds_the_calls_own_objects():
    @dataclasses.dataclass
    class Settings:
        width: int = 4

    settings = Settings()

    def work(x: Any, state: Any) -> Any:
        made = fill(x)
        made.settings, made.state, made.half = settings, state, x[:1]
        return made

    x, state = torch.ones(2, 3), [torch.zeros(2)]
    cached = wrap(work)
    cached(x, state)
    found = cached(x, state)
    assert len(host.entries) == 1 and found.settings is settings and found.state is state and found.half.data_ptr() == x.data_ptr()


def test_objects_of_different_classes_or_attributes_are_described_differently():
    made = [Kept([], Layer), Child([], Layer), Kept([], Kept), Kept([], Layer)]
    made[3].more = 1
    trees = [_outputs.described(one, {}, []).tree for one in made]
    assert all(trees[0] != one for one in trees[1:]) and trees[0] == _outputs.described(Kept([], Layer), {}, []).tree


class Slotted:
    __slots__ = ("tensor",)

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor


class HalfSlotted(Slotted):
    pass


class Counted:
    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)


class Reduced:
    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    def __reduce__(self) -> Any:
        return Reduced, (self.tensor,)


class New:
    def __new__(cls, *args: Any) -> Any:
        return object.__new__(cls)

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor


class Holder:
    def __init__(self, tensor: Any, more: Any) -> None:
        self.tensor, self.more = tensor, more


def holder_of(make: Any) -> Any:
    def work(x: Any) -> Any:
        return Holder(x + 1, make(x))
    return work


def itself(x: Any) -> Any:
    made = Holder(x + 1, None)
    made.more = made
    return made


def twice(x: Any) -> Any:
    made = Holder(x + 1, None)
    return [made, made]


def one_list_twice(x: Any) -> Any:
    made = [x + 1]
    return Holder(made, made)


def local(x: Any) -> Any:
    class Local:
        pass

    made = Local()
    made.tensor = x + 1
    return made


@pytest.mark.parametrize("work, text", [
    (holder_of(lambda x: threading.Lock()), "result.more is a _thread.lock"),
    (holder_of(lambda x: open("/dev/null")), "result.more is a _io.TextIOWrapper"),
    (holder_of(lambda x: fill), "result.more is a builtins.function"),
    (holder_of(lambda x: sys.modules["json"]), "result.more is a builtins.module"),
    (holder_of(lambda x: threading.Event()), "result.more._cond._lock is a _thread.lock"),
    (holder_of(lambda x: torch.nn.Linear(2, 2)), "Linear, which a replay cannot make (its class has its own __setattr__)"),
    (holder_of(lambda x: torch.device("cuda", 3)), ""),
    (holder_of(lambda x: {1, 2}), "result.more is a builtins.set"),
    (lambda x: Slotted(x + 1), "result is a test_torch_results.Slotted, which a replay cannot make"),
    (lambda x: HalfSlotted(x + 1), "it has the slot 'tensor'"),
    (lambda x: Counted(x + 1), "its class has its own __setattr__"),
    (lambda x: Reduced(x + 1), "its class has its own __reduce__"),
    (lambda x: New(x + 1), "its class has its own __new__"),
    (lambda x: ValueError(x + 1), "its state lies not in attributes alone"),
    (itself, "result.more and result are one Holder"),
    (twice, "result[1] and result[0] are one Holder"),
    (one_list_twice, "result.more and result.tensor are one list"),
    (local, "another process cannot find"),
])
def test_other_objects_are_refused_by_name(work, text):
    cached = wrap(work)
    cached(torch.ones(2))
    if text:
        assert text in refusal(cached) and not host.entries
    else:
        assert host.entries


def test_a_device_is_that_of_the_calls_tensors(monkeypatch):
    x = torch.ones(2)
    reader = _outputs._ResultReader({}, [], False)
    monkeypatch.setattr(_outputs._tensors, "DEVICE_TYPE", "cuda")
    assert reader.tree("result.device", torch.device("cpu")) == {"device": "cpu"}
    with pytest.raises(host.errors.NotRecordable, match="result.device is the device cuda:1"):
        reader.tree("result.device", torch.device("cuda", 1))
    reader._device_of = "x", torch.device("cuda", 1)
    tree = reader.tree("result.device", torch.device("cuda", 1))
    assert _outputs.rebuilt(tree, [], {"x": x}.get) == x.device  # a later process may use another device
    assert list(_outputs.paths_in([tree])) == ["x"]


@pytest.mark.parametrize("tree", [{"object": "gone:Kind", "fields": []},
                                  {"sequence": "builtins:list", "named": False, "of": [{"class": "gone:Kind"}]}])
def test_a_class_of_a_module_that_is_not_imported_is_missing(tree):
    assert "gone, but this module is not imported" in _outputs.missing_class(tree)


@pytest.mark.parametrize("is_filled", [False, True])
def test_a_model_of_transformers_returns_its_cache(is_filled):
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(vocab_size=32, hidden_size=16, intermediate_size=16, num_hidden_layers=2, num_attention_heads=2,
                                      num_key_value_heads=2, attn_implementation="eager")
    model, tokens = transformers.LlamaForCausalLM(config).eval(), torch.arange(5)[None]
    with torch.no_grad():
        expected = model(tokens, use_cache=True)
    step = wrap(lambda tokens: model(tokens, use_cache=True))
    step(tokens)
    found = step(tokens)
    assert len(host.entries) == 1, refusal(step)
    cache = found.past_key_values
    assert type(cache) is type(expected.past_key_values) and cache.get_seq_length() == 5
    assert [(one.keys.shape, one.values.shape, one.dtype, one.is_initialized) for one in cache.layers] == \
        [(one.keys.shape, one.values.shape, one.dtype, one.is_initialized) for one in expected.past_key_values.layers]
    if is_filled:  # the next step fills the cache of a replay
        for one, other in zip(cache.layers, expected.past_key_values.layers):
            one.keys.copy_(other.keys)
            one.values.copy_(other.values)
        with torch.no_grad():
            now, was = (model(torch.tensor([[7]]), past_key_values=one).logits for one in (cache, expected.past_key_values))
        assert torch.equal(now, was) and cache.get_seq_length() == 6
