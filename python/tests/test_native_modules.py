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


class Settings:
    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


class Installed(Settings):
    pass


class Fields(Settings):
    pass


class Walk:
    """What Walker of PyTorch's half does, at its simplest. `asked`: what the reader left to it."""

    def __init__(self) -> None:
        self.facts: dict[str, str] = {}
        self.asked: list[tuple[str, str]] = []
        self.containers: dict[str, Any] = {"objects": {}, "read": {}, "tensors": {}, "opened": [], "places": [], "watched": []}
        self.modules = _objects.Modules()
        self.undoings: list[tuple[str, tuple[int, ...]]] = []

    def read(self, module: Any, how: str = "read", longest: int = 40) -> Walk:
        given = {
            **self.containers, "facts": self.facts, "kept": self.modules.kept, "module_type": Module, "tensor": Tensor, "parameter": Parameter,
            "ordered_dict": collections.OrderedDict, "via": "self", "is_negated": lambda _: False, "place": lambda *place: place,
            "kind": lambda kind: (f"{kind.__name__} ", {"scale": kind.scale}), "names": self.names,
            "text": lambda value: f"complex {value!r}" if type(value) is complex else None, "named": {"used", "kind", "__used"}, "refusal": LookupError,
            "object_kind": self.object_kind, "undone": self.undone,
            **{name: self.noting(name) for name in ("fact", "fact_of_module", "value", "module", "tensor_reader", "attributes")}}
        walk = _c.wg_module_walk(device_type=1, reads_children=1, watches=1, most_facts=1000, deepest=8, longest=longest, longest_of_module=200,
                                 **{name: id(one) for name, one in given.items()})
        getattr(self.modules, how)(walk, "self", module)
        return self

    @staticmethod
    def object_kind(kind: type) -> Any:
        if not issubclass(kind, Settings):
            return None
        return "Settings", kind is Installed, ("field",) if kind is Fields else (), ("kind", "used"), ("of the class", "by the class")

    def undone(self, name: str, mark: tuple[int, ...]) -> bool:
        self.undoings.append((name, mark))
        for path in list(self.facts)[mark[0]:]:
            del self.facts[path]
        return name != "used"

    @staticmethod
    def names(own: dict[str, Any], of_class: dict[str, Any]) -> list[tuple[str, bool]]:
        return [(name, name in own) for name in sorted({*own, *of_class} - set(PARTS))]

    def noting(self, what: str) -> Any:
        def note(path: str, value: Any) -> None:
            self.asked.append((what, path))
            if isinstance(value, type(len)):
                raise LookupError(path)
            if isinstance(value, set):
                raise ZeroDivisionError(path)

        return note


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
        "self.other.bias": "NoneType None", "self.config": "list of 1", "self.config[0]": "int 1"}
    assert walk.asked == [("tensor_reader", "self.other.weight"), ("module", "self.odd"), ("value", "self.big")]
    assert walk.containers["opened"] == [] and len(walk.containers["read"]) == 4
    assert [*walk.containers["objects"]] == ["self.inner", "self.same", "self.other", "self.odd", "self.config"]


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


def of_value(value: Any, longest: int = 40) -> Walk:
    return Walk().read(value, "read_value", longest)


def test_what_values_hold_is_said() -> None:
    held: list[Any] = [1, None]
    walk = of_value({"a": held, 2: (held, 1.5, True), None: {}, -1: "x"})
    assert walk.facts == {
        "self": "dict of 4: 'a', 2, None, -1", "self['a']": "list of 2", "self['a'][0]": "int 1", "self['a'][1]": "NoneType None",
        "self[2]": "tuple of 3", "self[2][0]": "is self['a']", "self[2][1]": "float 1.5", "self[2][2]": "bool True", "self[None]": "dict of 0",
        "self[-1]": "str 'x'"}
    assert walk.asked == [] and walk.containers["opened"] == []


def test_what_objects_hold_is_said() -> None:
    walk = of_value([Settings(used=1, unused=2, other=3, __used=4), Settings(unused=5), Installed(b=1, a=[2], __c=3, my_Hash=1 << 32, big_hash=-(1 << 80), hash=7)])
    assert walk.facts == {
        "self": "list of 3", "self[0]": "Settings", "self[0].__used": "int 4", "self[0].kind": "str 'of the class'", "self[0].used": "int 1",
        "self[1]": "Settings", "self[1].kind": "str 'of the class'", "self[1].used": "str 'by the class'",
        "self[2]": "Settings", "self[2].a": "list of 1", "self[2].a[0]": "int 2", "self[2].b": "int 1", "self[2].hash": "int 7",
        "self[2].kind": "str 'of the class'", "self[2].used": "str 'by the class'"}
    walk = of_value(Fields(used=1, field=[2], kind=3))
    assert [*walk.facts] == ["self", "self.field", "self.field[0]", "self.kind", "self.used"]


def test_what_is_left_to_python_is_asked_for() -> None:
    held: list[Any] = []
    held.append(held)
    odd = Settings(used=1)
    odd.__dict__[1] = 2
    walk = of_value([1 << 80, 2j, {1 << 80: 1}, {"\xe9": 1}, held, odd, Fields(used=1), frozenset(), object(), Tensor()])
    assert walk.asked == [*(("value", f"self[{i}]") for i in range(4)), ("value", "self[4][0]"), *(("value", f"self[{i}]") for i in range(5, 9)),
                          ("tensor_reader", "self[9]")]
    assert walk.containers["opened"] == []
    walk = of_value([[[[[[[[[[1]]]]]]]]]])
    assert walk.asked == [("value", "self" + 9 * "[0]")]
    assert of_value(["x" * 50]).asked == [("fact", "self[0]")] and of_value(["x" * 50], 100).asked == []


def test_a_refusal_is_undone_where_no_code_names_it() -> None:
    walk = Walk()
    walk.containers["watched"].append("by the walk")
    walk.read([Installed(a=1, b=[2, len], c=3)], "read_value")
    assert walk.undoings == [("b", (3, 2, 0, 0, 0, 1))] and walk.asked == [("value", "self[0].b[1]")]
    assert [*walk.facts] == ["self", "self[0]", "self[0].a", "self[0].c", "self[0].kind", "self[0].used"]
    walk = Walk()
    with pytest.raises(LookupError, match=r"self\[0\].used"):
        walk.read([Settings(used=len, kind=1)], "read_value")
    assert [name for name, _ in walk.undoings] == ["used"] and walk.containers["opened"] == []
    walk = Walk()
    with pytest.raises(ZeroDivisionError, match=r"self.b"):  # no refusal
        walk.read(Installed(b=set()), "read_value")
    assert walk.undoings == []
    walk = Walk()
    walk.undone = lambda *_: 1 / 0  # type: ignore[assignment, method-assign]
    with pytest.raises(ZeroDivisionError):
        walk.read(Installed(b=len), "read_value")


@pytest.mark.parametrize("change", [
    lambda one: one[0].append(1), lambda one: one[0].__setitem__(0, 5), lambda one: one[0].pop(), lambda one: one.reverse(),
    lambda one: setattr(one[1], "__class__", Installed), lambda one: setattr(one[1], "__dict__", dict(one[1].__dict__))])
def test_another_item_or_object_is_seen(change: Any) -> None:
    value = [[1, 2], Settings(used=1), {"a": 1}]
    walk = of_value(value)
    assert walk.modules.is_same()
    change(value)
    assert walk.modules.hold_the_same() and not walk.modules.are_the_same()


@pytest.mark.parametrize("change", [
    lambda one: setattr(one[1], "unused", 1), lambda one: setattr(one[1], "used", 2), lambda one: one[2].update(b=1), lambda one: one[2].clear()])
def test_another_attribute_or_value_of_a_key_is_seen(change: Any) -> None:
    value = [[1, 2], Settings(used=1), {"a": 1}]
    walk = of_value(value)
    change(value)
    assert not walk.modules.hold_the_same() and walk.modules.are_the_same()


def test_reading_keeps_what_it_holds() -> None:
    value = [Settings(used=[object()]), {"a": object()}, (object(),)]
    kept = {id(one) for one in of_value(value).modules.kept}
    assert {id(one) for one in (value, *value, value[0].__dict__, value[0].used, *value[0].used, *value[1].values(), *value[2])} <= kept


def test_a_package_of_another_version_reads_in_python() -> None:
    with pytest.raises(_objects.errors.Unsupported, match="another version's"):
        _objects.library().made("wg_modules_create", ctypes.sizeof(_c.wg_module_walk) - 8)
