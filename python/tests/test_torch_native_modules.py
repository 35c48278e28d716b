"""Modules are read natively as they are read in Python: the same facts, tensors and objects, and each change is seen."""
from __future__ import annotations

import collections
import dataclasses
import gc
import random
import sys
import types
import weakref
from typing import Any, Callable, Iterator, NamedTuple

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed here")

from hypothesis import given, settings, strategies as st  # noqa: E402

import torch_on_the_host as host  # noqa: E402
from warmgraph import _objects, _watch, errors  # noqa: E402
from warmgraph.torch import _code, _native_walk, _tensors, _walking  # noqa: E402

pytestmark = pytest.mark.skipif(not _objects.is_possible(), reason="this Python's dictionaries are not looked at natively")


@pytest.fixture(autouse=True)
def on_the_host(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    host.use(monkeypatch)
    yield


class Net(torch.nn.Module):
    scale = 0.5
    names = ["a", "b"]

    def __init__(self, **attributes: Any) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        for name, value in attributes.items():
            setattr(self, name, value)

    def forward(self, x: Any) -> Any:
        return self.linear(x)


class OfItsOwn(Net):
    """Attributes are not what its dictionary holds."""

    def __getattribute__(self, name: str) -> Any:
        return super().__getattribute__(name)


class OtherParts(Net):
    shown = {"seen": torch.ones(2)}

    @property
    def _buffers(self) -> Any:
        return self.shown

    @_buffers.setter
    def _buffers(self, value: Any) -> None:
        pass


class Mixed(types.SimpleNamespace, Net):  # type: ignore[misc]
    def __init__(self) -> None:
        Net.__init__(self)


class Config:
    kind = "of the class"
    note: Any = None
    unread_of_class = iter([1])

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


class OfConfig(Config):
    note = [1]


class ConfigOfItsOwn(Config):
    def __getattribute__(self, name: str) -> Any:
        return {"linear": 1} if name == "__dict__" else super().__getattribute__(name)


class Called(Config):
    def __call__(self) -> int:
        return 1


class Posing(Config):
    __class__ = property(lambda self: slice)  # type: ignore[assignment]


class SlottedConfig:
    __slots__ = ("note", "__dict__")

    def __init__(self) -> None:
        self.note, self.beside = 1, 2


class Dictionary(dict):  # type: ignore[type-arg]
    pass


class Metaclass(type):
    pass


class OfMetaclass(Config, metaclass=Metaclass):
    pass


class Installed(Config):
    """As of a library, whose methods are not read."""


Installed.__module__ = "transformers.settings"


NAMED_BY_NOBODY = ["strange"]


@dataclasses.dataclass
class Fields:
    later: Any = 1
    beside: Any = None
    default: Any = dataclasses.field(default_factory=list)

    def __post_init__(self) -> None:
        self.note = "not a field"
        vars(self).update(dict.fromkeys(NAMED_BY_NOBODY, iter([1])))


@dataclasses.dataclass
class FieldsOfClass(Fields):
    linear: Any = 5

    def __post_init__(self) -> None:
        del self.linear


class Slotted(Net):
    __slots__ = ("beside",)


def run(module: Any, x: Any) -> Any:
    """Names what it may use: linear, note, beside, config, other."""
    return module.linear(x), module.note, module.beside, module.config, module.other


def natively(module: Any, arguments: dict[str, Any] | None = None) -> _walking.Walker:
    return _walking.read(_code.Reached(run), arguments or {}, module)[0]


def in_python(module: Any, arguments: dict[str, Any] | None = None) -> _walking.Walker:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(_native_walk, "is_possible", lambda: False)
        return natively(module, arguments)


def said(walker: _walking.Walker) -> Any:
    read, tensors, classes = walker.met()
    return ([*walker.found.facts.items()], [(path, id(value)) for path, value in walker.objects.items()],
            [(one.path, id(one.tensor), one.via) for one in walker.places], {key: path for key, (path, _) in read.items()}, tensors,
            [*classes], [*walker.classes], walker.compiled_via, walker.opened())


def with_hook() -> Any:
    net = Net()
    net.linear.register_forward_hook(lambda *_: None)
    return net


def with_tied() -> Any:
    net = Net(other=torch.nn.Linear(4, 4))
    net.other.weight = net.linear.weight
    net.again = net.linear
    return net


def in_a_cycle() -> Any:
    net = Net(other=Net())
    net.other.__dict__["config"] = net
    net.other.back = types.SimpleNamespace(net=net)
    net.other._modules["outer"] = net
    return net


def compiled_in_place() -> Any:
    net = Net(other=Net())
    net.other._compiled_call_impl = lambda *_: None
    return net


def with_parameter_attributes() -> Any:
    net = Net()
    net.linear.weight.note = 5
    net.linear.bias.unread = 6
    return net


def ordered(count: int) -> Any:
    net = Net()
    net._buffers = collections.OrderedDict((f"b{i}", torch.zeros(i + 1)) for i in range(count))
    return net


def deep(levels: int) -> Any:
    net = Net()
    for _ in range(levels):
        net = Net(other=net)
    return net


def with_tensors() -> Any:
    net = Net()
    for i, one in enumerate([
            torch.zeros(()), torch.zeros(1), torch.zeros(2, 1, 3), torch.zeros(3, 2).t(), torch.zeros(0, 3), torch.zeros(4)[1:3],
            torch.zeros(2, 3, dtype=torch.complex64), torch.zeros(3, dtype=torch.bool),
            torch.zeros(2, 2, 2, 2).to(memory_format=torch.channels_last), torch.zeros(3, dtype=torch.bfloat16),
            torch.zeros(3, dtype=torch.float8_e4m3fn), torch.zeros(3, dtype=torch.uint16), torch.zeros(3, dtype=torch.int64),
            torch.zeros(1, 8), torch.zeros(8, 1), torch.zeros(2, 2).expand(3, 2, 2), torch.zeros([1] * 70 + [2])]):
        net.register_buffer(f"b{i}", one)
    return net


def shared_objects() -> Any:
    one, held = Config(note=1), [1, {"a": 2}]
    net = Net(config=[one, one, held], beside={"held": held, "one": one}, other=Config(note=one, beside=held, linear=()))
    net.linear.config = one
    return net


def circular() -> Any:
    one = Config(note=1)
    one.beside, one.linear = [one], {"back": one}
    held: list[Any] = [1]
    held.append(held)
    return Config(note=one, beside=held)


OBJECTS: dict[str, Callable[[], Any]] = {
    "plain": lambda: Config(note=1, beside="x", unread=3, linear=1.5, __note=4),
    "in order": lambda: Config(other=1, linear=2, beside=3, config=4, note=5),
    "not ascii": lambda: Config(note="é", **{"é": 2}),
    "derived": lambda: OfConfig(beside=1), "of its own": lambda: ConfigOfItsOwn(note=2), "called": lambda: Called(note=3),
    "posing": lambda: Posing(note=1, start=2, stop=3, step=None), "slotted": SlottedConfig, "of a metaclass": lambda: OfMetaclass(note=1), "dictionary": lambda: Dictionary(a=1),
    "installed": lambda: Installed(note=1, unread=[2], __own=3, kept_hash=1 << 40, big_hash=1 << 80, small_hash=5, _HASH=-(1 << 32), true_hash=True, a="é"),
    "installed and strange": lambda: Installed(note=1, unread=[1, iter([2])], more=Config(note=2)),
    "fields": Fields, "fields of a class": FieldsOfClass, "fields changed": lambda: Fields([1, Config()], {"k": torch.zeros(2)}),
    "unread and strange": lambda: Config(unread=iter([1]), note=[torch.zeros(2)], far=Config(note=iter([1]))),
    "in lists": lambda: [Config(note=i, beside=torch.zeros(2)) for i in range(3)], "in a tuple": lambda: (Config(), (1, (2,)), ()),
    "in a dictionary": lambda: {"a": Config(), 1: [], 1.5: (), None: {}}, "keys": lambda: {"é": 1, (1, 2): 2, b"x": 3, 1 << 80: 4},
    "strange key": lambda: {"a": {"b": [1]}, "c": {1.5: {"d'": "e"}}}, "many": lambda: {f"key {i}": i for i in range(50)},
    "circular": circular, "module": lambda: [torch.nn.Linear(2, 2), Config(note=torch.nn.ReLU())], "types": lambda: [int, Net, len, 1j, ...],
    "of torch": lambda: [torch.float32, torch.device("cpu"), torch.Size([2])], "set": lambda: {1, 2}, "named tuple": lambda: Pair(1, [2]),
    "long": lambda: ["x" * 3000, {"k" * 3000: 1}], "numbers": lambda: [1 << 70, -(1 << 63), float("nan"), -0.0, 1 << 20000],
    "tensors": lambda: [torch.zeros(2), (torch.zeros(3), torch.nn.Parameter(torch.zeros(1)))], "same tensor": lambda: [torch.zeros(2)] * 3,
    "deep lists": lambda: nested(30),
}


def nested(levels: int) -> Any:
    held: Any = []
    for _ in range(levels):
        held = [held, {"a": held}, Config(note=held)]
    return held


class Pair(NamedTuple):
    note: Any
    beside: Any


MODULES: dict[str, Callable[[], Any]] = {
    "shared": shared_objects,
    "linear": lambda: torch.nn.Linear(4, 4, bias=False),
    "sequence": lambda: torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.LayerNorm(4)),
    "list": lambda: torch.nn.ModuleList([Net(), Net(note="x")]),
    "dict": lambda: torch.nn.ModuleDict({"é": Net(), "one two": Net()}),
    "batch norm": lambda: torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4)),
    "plain values": lambda: Net(note=None, a=True, b=-3, c=1 << 62, d=1 << 63, e=-(1 << 63), f=1 << 20000, g=0.1, h=float("nan"),
                                i="a'b\nc", j=b"\x00x", k=2j, l=..., m="é" * 3, n="\ud800", o="x" * 3000, p=1e300),
    "values of kinds": lambda: Net(note=torch.float32, beside=torch.Size([2]), config=types.SimpleNamespace(a=1), other={"x": [1, 2]}),
    "named so": lambda: Net(**{"é": 1, "a b": 2, "\ud800": 3}),
    "others": lambda: Net(note=[1, Net()], beside={"k": Net()}, config=(1, "x"), other=len),
    "unread and strange": lambda: Net(unread=object(), unread_tensor=[torch.zeros(2)]),
    "no bias": lambda: Net(other=torch.nn.Linear(4, 4, bias=False)),
    "hook": with_hook, "tied": with_tied, "cycle": in_a_cycle, "compiled in place": compiled_in_place,
    "attributes of parameters": with_parameter_attributes, "tensors": with_tensors,
    "one in order": lambda: ordered(1), "several in order": lambda: ordered(3), "deep": lambda: deep(20),
    "of its own": lambda: Net(other=OfItsOwn()), "other parts": lambda: Net(other=OtherParts()), "mixed": Mixed, "slotted": Slotted,
    **{f"object {name}": lambda made=made: Net(config=made()) for name, made in OBJECTS.items()},
    "no tensors": lambda: torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Identity()),
    "own list of hooks": lambda: Net(my_hooks=[1]),
}


@pytest.mark.parametrize("name", MODULES)
def test_the_same_is_read(name: str) -> None:
    module = MODULES[name]()
    assert said(natively(module)) == said(in_python(module))


@pytest.mark.parametrize("name", MODULES)
def test_the_same_is_read_of_an_argument(name: str) -> None:
    module = MODULES[name]()
    assert said(natively(None, {"module": module})) == said(in_python(None, {"module": module}))


@pytest.mark.parametrize("name", OBJECTS)
def test_the_same_is_read_of_a_value(name: str) -> None:
    value = OBJECTS[name]()
    arguments = {"x": value, "y": 1, "again": [value]}
    assert said(natively(None, arguments)) == said(in_python(None, arguments))


REFUSED: dict[str, Callable[[], Any]] = {
    "script": lambda: Net(other=torch.jit.script(torch.nn.Linear(2, 2))),
    "sparse": lambda: with_buffer(torch.zeros(3, 3).to_sparse()),
    "quantised": lambda: with_buffer(torch.quantize_per_tensor(torch.zeros(3), 1.0, 0, torch.qint8)),
    "negated": lambda: with_buffer(torch._neg_view(torch.zeros(3))),
    "conjugated": lambda: with_buffer(torch.zeros(3, dtype=torch.complex64).conj()),
    "part of a conjugated": lambda: with_buffer(torch.zeros(3, dtype=torch.complex64).conj().imag),
    "nested": lambda: with_buffer(torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)])),
    "meta": lambda: with_buffer(torch.zeros(3, device="meta")),
    "subclass": lambda: with_buffer(torch.zeros(3).as_subclass(type("Other", (torch.Tensor,), {}))),
    "named object": lambda: Net(note=iter([1])),
    "named object in a list": lambda: Net(beside=1, note=[1, Config(note=2), iter([1])]),
    "named object in an object": lambda: Net(note=Config(beside=[torch.zeros(2)], other=Config(note=iter([1])))),
    "sparse in an object": lambda: Net(note=Config(beside=torch.zeros(3, 3).to_sparse())),
    "key": lambda: Net(note=Config(beside={Config(): 1})),
    "too deep a list": lambda: Net(note=nested(70)),
    "too deep": lambda: deep(70),
}


def with_buffer(tensor: Any) -> Any:
    net = Net()
    net.register_buffer("held", tensor)
    return net


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_refused_in_the_same_words(name: str) -> None:
    module, reasons = REFUSED[name](), []
    for read in (natively, in_python):
        with pytest.raises(errors.NotRecordable) as caught:
            read(module)
        reasons.append(str(caught.value))
    assert reasons[0] == reasons[1]


VALUES = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.binary(max_size=4),
                   st.sampled_from([torch.float16, len, Net, 1 << 40, iter([1])]))
KEYS = st.one_of(st.text(max_size=3), st.integers(), st.floats(), st.none(), st.booleans(), st.binary(max_size=2))
CONFIGS = st.sampled_from([Config, OfConfig, Installed, SlottedConfig, Called, ConfigOfItsOwn])


def with_attributes(kind: Any, attributes: dict[str, Any]) -> Any:
    made = kind()
    made.__dict__.update(attributes)
    return made


VALUES = st.recursive(VALUES, lambda inner: st.one_of(
    st.lists(inner, max_size=3), st.lists(inner, max_size=2).map(tuple), st.dictionaries(KEYS, inner, max_size=3),
    st.builds(with_attributes, CONFIGS, st.dictionaries(st.one_of(st.sampled_from(["note", "beside", "a_hash", "__b", "c"]), st.text(max_size=2)),
                                                        inner, max_size=4))), max_leaves=12)
NAMES = st.text("abcé_", min_size=1, max_size=3).map(lambda text: f"n{text}")


@st.composite
def modules(draw: Any, depth: int = 3) -> Any:
    one = draw(st.sampled_from([Net, torch.nn.Sequential, torch.nn.Identity, OfItsOwn]))()
    for name, value in draw(st.dictionaries(NAMES, VALUES, max_size=3)).items():
        setattr(one, name, value)
    for i in range(draw(st.integers(0, 2)) if depth else 0):
        one.register_module(f"m{i}", draw(st.one_of(st.none(), modules(depth - 1))))
    for i in range(draw(st.integers(0, 2))):
        one.register_buffer(f"b{i}", torch.zeros(draw(st.lists(st.integers(0, 3), max_size=3))))
    return one


@settings(max_examples=60, deadline=None)
@given(modules())
def test_the_same_is_read_of_any_module(module: Any) -> None:
    assert told(natively, module) == told(in_python, module)


@settings(max_examples=200, deadline=None)
@given(VALUES)
def test_the_same_is_read_of_any_value(value: Any) -> None:
    arguments = {"x": value, "y": [value]}
    assert told(natively, None, arguments) == told(in_python, None, arguments)


def told(read: Callable[..., _walking.Walker], *given: Any) -> Any:
    """What was read, or why it cannot be."""
    try:
        return said(read(*given))
    except errors.NotRecordable as refusal:
        return str(refusal)


def reorder(held: dict[str, Any]) -> None:
    first = next(iter(held))
    held[first] = held.pop(first)


def of_class(module: Any) -> None:
    module.linear.__class__ = type("Linear", (torch.nn.Linear,), {})


def of_configuration(net: Any) -> None:
    type(net.config).kind = "another"


CHANGES: dict[str, Callable[[Any], Any]] = {
    "a value": lambda net: setattr(net.linear, "in_features", 5),
    "an equal value": lambda net: setattr(net, "note", float("2.5")),
    "a new one": lambda net: setattr(net.other.linear, "extra", 1),
    "one less": lambda net: delattr(net, "note"),
    "a parameter": lambda net: setattr(net.linear, "weight", torch.nn.Parameter(torch.zeros(4, 4))),
    "no parameter": lambda net: setattr(net.linear, "bias", None),
    "a buffer": lambda net: net.other.register_buffer("late", torch.zeros(2)),
    "a child": lambda net: setattr(net.other, "linear", torch.nn.Linear(4, 4)),
    "a new child": lambda net: net.other.add_module("late", torch.nn.ReLU()),
    "order of children": lambda net: reorder(net._modules),
    "the name of a child": lambda net: net._modules.__setitem__("renamed", net._modules.pop("more")),  # the last one
    "order of attributes": lambda net: reorder(net.__dict__),
    "a hook": lambda net: net.other.linear.register_forward_hook(lambda *_: None),
    "a hook before": lambda net: net.other.register_forward_pre_hook(lambda *_: None),
    "the class": of_class,
    "the dictionary": lambda net: setattr(net.other, "__dict__", dict(net.other.__dict__)),
    "training": lambda net: net.other.train(not net.other.training),
    "an attribute of a parameter": lambda net: setattr(net.other.linear.weight, "note", 1),
    "an item of a list": lambda net: net.config.beside.__setitem__(0, 7),
    "an item more": lambda net: net.config.beside.append(7),
    "an item of a dictionary": lambda net: net.config.linear.__setitem__("a", 7),
    "an attribute of an object": lambda net: setattr(net.config, "note", 7),
    "a new attribute of an object": lambda net: setattr(net.config, "unread", 7),
    "an attribute in a list": lambda net: setattr(net.config.beside[1], "note", 7),
    "the class of an object": lambda net: setattr(net.config, "__class__", OfConfig),
    "the dictionary of an object": lambda net: setattr(net.config, "__dict__", dict(net.config.__dict__)),
    "the class's own": of_configuration,
    "compiled in place": lambda net: net.other.__dict__.__setitem__("_compiled_call_impl", len),
}


def changed() -> Any:
    kind = type("Config", (Config,), {"kind": "one"})
    return Net(note=2.5, other=Net(), more=torch.nn.ReLU(), config=kind(note=1, beside=[1, Config(note=2)], linear={"a": (1,)}))


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_seen(name: str) -> None:
    net = changed()
    walker = natively(net)
    once, again = _watch.Held(walker.watched), _watch.Held(walker.watched)
    assert once.is_same() and once.is_same() and once.is_same()
    assert isinstance(once._watch, _watch.Watch)
    CHANGES[name](net)
    assert not once.is_same(), "by who looks natively"
    assert not again.is_same(), "by who looks for the first time"


def test_what_no_code_of_it_can_see_is_no_change() -> None:
    net = changed()
    held = _watch.Held(natively(net).watched)
    assert held.is_same()
    other = changed()
    other.note, other.linear.in_features = 3, 7
    net.linear.weight.data = torch.ones(4, 4)  # where a weight lies is looked at by others
    assert held.is_same()


def test_a_change_while_it_is_read_is_seen() -> None:
    net = changed()

    class Changes:
        def __getattribute__(self, name: str) -> Any:
            net.other.linear.in_features = 9
            return object.__getattribute__(self, name)

    net.config = Changes()
    net._modules["other"]._modules["first"] = net._modules["other"]._modules.pop("linear")
    net._modules["other"]._modules["linear"] = torch.nn.Linear(4, 4)
    walker = _walking.Walker(_code.Reached(run))
    walker._into = walker.found.states
    walker.value("self", net)
    assert not _watch.Held(walker.watched).is_same()


def test_what_is_raised_is_raised_and_nothing_stays_open() -> None:
    net = Net(note=iter([1]), other=Net())
    walker = _walking.Walker(_code.Reached(run))
    walker._into = walker.found.states
    with pytest.raises(errors.NotRecordable, match="self.note"):
        walker.value("self", net)
    assert walker.opened() == []


def test_an_error_of_the_walk_comes_through(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Any:
        raise ZeroDivisionError("of the walk")

    for name in ("_plan", "_plan_of_object"):
        walker = _walking.Walker(_code.Reached(run))
        monkeypatch.setattr(walker, name, fail)
        with pytest.raises(ZeroDivisionError, match="of the walk"):
            walker.value("self", Net(config=Config()))
        assert walker.opened() == []


def test_a_model_that_was_read_can_be_collected() -> None:
    def made() -> Any:
        net = Net(other=Net())
        net.other.outer = [net]
        net.walk = natively(net)  # as a wrapper among its attributes does
        return weakref.ref(net)

    alive = made()
    gc.collect()
    assert alive() is None


def test_tensors_on_the_host_count_by_their_contents(monkeypatch: pytest.MonkeyPatch) -> None:
    net = Net()
    net.register_buffer("table", torch.arange(4.0))
    monkeypatch.setattr(_tensors, "DEVICE_TYPE", "cuda")
    facts = natively(net).found.facts
    assert facts == in_python(net).found.facts and facts["self.table"].startswith("host tensor float32 [4]")
    net.table[1] = 7.0
    assert natively(net).found.facts["self.table"] != facts["self.table"]


def test_an_order_of_its_own_is_looked_at() -> None:
    net = ordered(3)
    held = _watch.Held(natively(net).watched)
    assert held.is_same() and held.is_same()
    net._buffers.move_to_end("b0")  # which the items' own order does not show
    assert not held.is_same()


def test_what_was_held_lives_as_long() -> None:
    net = Net(note="".join(random.Random(2).choices("abc", k=40)))
    net.linear.weight.note = "".join(random.Random(3).choices("abc", k=40))
    (watched,) = [one for one in natively(net).watched if isinstance(one, _watch._WatchedModules)]
    kept = {id(one) for one in watched.modules.kept}
    objects = [net, net.__dict__, net.linear, net.linear.__dict__, net.linear.weight]
    objects += [*net.__dict__, *net.__dict__.values(), *net.linear._parameters, *net.linear.__dict__.values()]
    if _objects.exchange_of(torch.Tensor) is not None:  # else tensors are read in Python
        objects += [net.linear.weight.__dict__, net.linear.weight.note]
    assert {id(one) for one in objects} <= kept


def test_each_modules_own_names_live_as_long() -> None:
    """Names that the first of them has are kept once, and others that read alike are other objects."""
    nets, names = [Net() for _ in range(3)], ["".join(random.Random(4).choices("abc", k=40)) for _ in range(3)]
    for net, name in zip(nets, names):
        net.__dict__[name] = 1
    assert len(set(map(id, names))) == 3
    (watched,) = [one for one in natively(torch.nn.ModuleList(nets)).watched if isinstance(one, _watch._WatchedModules)]
    assert set(map(id, names)) <= {id(one) for one in watched.modules.kept}


@pytest.mark.parametrize("at", [0, 61, 119])
def test_of_many_modules_each_is_looked_at(at: int) -> None:
    net = torch.nn.ModuleList([torch.nn.Linear(2, 2) for _ in range(120)])
    net[at].much = list(range(3000))
    net[at].more = {i: i for i in range(3000)}
    for change in (lambda: setattr(net[at], "in_features", 9), lambda: net[at].much.__setitem__(2999, -1), lambda: net[at].more.__setitem__(2999, -1)):
        held = _watch.Held(natively(net).watched)
        assert held.is_same()
        change()
        assert not held.is_same()


def test_what_is_closed_is_not_the_same() -> None:
    """Garbage that is collected closes it, and may still call."""
    (watched,) = [one for one in natively(Net()).watched if isinstance(one, _watch._WatchedModules)]
    assert watched.is_same()
    watched.modules.close()
    assert not watched.is_same() and not watched.modules.hold_the_same() and not watched.modules.are_the_same()


def test_reading_keeps_no_reference_but_in_what_was_read() -> None:
    net = with_tied()
    value = net.note = "".join(random.Random(1).choices("abc", k=40))
    objects = [net, net.linear, net.linear.weight, net.__dict__, net.linear.__dict__, net.linear.weight.__dict__, value, torch.nn.Linear]
    before = [sys.getrefcount(one) for one in objects]
    for _ in range(50):
        natively(net)
        in_python(net)
    gc.collect()
    after = [sys.getrefcount(one) for one in objects]
    assert all(now <= was + 3 for now, was in zip(after, before)), (before, after)


def test_a_process_of_free_threads_reads_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    _objects.are_modules_readable.cache_clear()
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    try:
        assert not _native_walk.is_possible()
        assert all(not isinstance(one, _watch._WatchedModules) for one in natively(Net()).watched)
    finally:
        _objects.are_modules_readable.cache_clear()
