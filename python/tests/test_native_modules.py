"""The native reader of modules, with classes of our own in PyTorch's place: where that is not installed, too."""
from __future__ import annotations

import collections
import ctypes
from typing import Any

import pytest

from warmgraph import _c, _objects

pytestmark = pytest.mark.skipif(not _objects.is_possible(), reason="this Python's dictionaries are not looked at natively")

PARTS = ("_parameters", "_buffers", "_modules", "_forward_hooks", "_forward_pre_hooks")


class Module:
    scale = 0.5

    def __init__(self, **attributes: Any) -> None:
        for name in PARTS:
            self.__dict__[name] = collections.OrderedDict() if name.endswith("hooks") else {}
        self.__dict__.update(attributes)


class Tensor:
    pass


class Parameter(Tensor):
    pass


class Walk:
    """What Walker of PyTorch's half does, at its simplest. `asked`: what the reader left to it."""

    def __init__(self) -> None:
        self.facts: dict[str, str] = {}
        self.asked: list[tuple[str, str]] = []
        self.containers: dict[str, Any] = {"objects": {}, "read": {}, "tensors": {}, "opened": [], "places": []}
        self.modules = _objects.Modules()

    def read(self, module: Any) -> Walk:
        given = {
            **self.containers, "facts": self.facts, "kept": self.modules.kept, "module_type": Module, "tensor": Tensor, "parameter": Parameter,
            "ordered_dict": collections.OrderedDict, "via": "self", "is_negated": lambda _: False, "place": lambda *place: place,
            "kind": lambda kind: (f"{kind.__name__} ", {"scale": kind.scale}), "names": self.names,
            "text": lambda value: f"complex {value!r}" if type(value) is complex else None,
            **{name: self.noting(name) for name in ("fact", "fact_of_module", "value", "module", "tensor_reader", "members", "attributes")}}
        walk = _c.wg_module_walk(device_type=1, reads_children=1, watches_tensors=1, most_facts=1000, deepest=8, longest=40, longest_of_module=200,
                                 **{name: id(one) for name, one in given.items()})
        self.modules.read(walk, "self", module)
        return self

    @staticmethod
    def names(own: dict[str, Any], of_class: dict[str, Any]) -> list[tuple[str, bool]]:
        return [(name, name in own) for name in sorted({*own, *of_class} - set(PARTS))]

    def noting(self, what: str) -> Any:
        return lambda path, _: self.asked.append((what, path))


def model() -> Module:
    one = Module(width=4, name="x", flag=True, none=None, big=1 << 80, part=2j, config=[1])
    one._modules.update(inner=Module(width=4), same=None, other=Module(), odd=Module())
    one._modules["same"] = one._modules["inner"]
    one._modules["odd"]._forward_hooks[0] = len
    one._modules["other"]._parameters.update(weight=Parameter(), bias=None)
    return one


def test_what_modules_hold_is_said() -> None:
    walk = Walk().read(model())
    assert walk.facts == {
        "self": "Module flag=bool True name=str 'x' none=NoneType None part=complex 2j scale=float 0.5 width=int 4 of inner same other odd",
        "self.inner": "Module scale=float 0.5 width=int 4 of", "self.same": "is self.inner", "self.other": "Module scale=float 0.5 of weight bias",
        "self.other.bias": "NoneType None"}
    assert walk.asked == [("tensor_reader", "self.other.weight"), ("module", "self.odd"), ("members", "self")]
    assert walk.containers["opened"] == [] and len(walk.containers["read"]) == 3
    assert [*walk.containers["objects"]] == ["self.inner", "self.same", "self.other", "self.odd"]


@pytest.mark.parametrize("change", [
    lambda one: one.__dict__.update(width=5), lambda one: one._modules["inner"].__dict__.update(more=1), lambda one: one._modules.pop("odd"),
    lambda one: one._modules["other"]._parameters.update(bias=1), lambda one: one._modules["inner"]._forward_pre_hooks.update({1: len})])
def test_what_changes_of_that_is_seen(change: Any) -> None:
    one = model()
    walk = Walk().read(one)
    assert walk.modules.hold_the_same() and walk.modules.are_the_same()
    change(one)
    assert not walk.modules.hold_the_same() and walk.modules.are_the_same()


def test_another_class_or_dictionary_is_seen() -> None:
    for change in (lambda one: setattr(one, "__class__", type("Other", (Module,), {})), lambda one: setattr(one, "__dict__", dict(one.__dict__))):
        one = model()
        walk = Walk().read(one)
        change(one._modules["inner"])
        assert walk.modules.hold_the_same() and not walk.modules.are_the_same()


def test_texts_that_are_too_long_or_not_ascii_are_asked_for() -> None:
    walk = Walk().read(Module(_modules={"a": Module(text="é"), "b": Module(text="x" * 300)}))
    assert walk.asked == [("fact_of_module", "self.a"), ("fact_of_module", "self.b")]


def test_what_is_raised_comes_through_and_nothing_stays_open() -> None:
    walk = Walk()
    walk.names = lambda *_: 1 / 0  # type: ignore[method-assign]
    with pytest.raises(ZeroDivisionError):
        walk.read(model())
    assert walk.containers["opened"] == []


def test_a_package_of_another_version_reads_in_python() -> None:
    with pytest.raises(_objects.errors.Unsupported, match="another version's"):
        _objects.library().made("wg_modules_create", ctypes.sizeof(_c.wg_module_walk) - 8)
