"""The contents of modules and values are read as facts, tensors and objects, and a change of any of them is noticed."""
from __future__ import annotations

import collections
import dataclasses
import functools
import gc
import pathlib
import random
import sys
import threading
import weakref
from typing import Any, Callable

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed here")

import warmgraph  # noqa: E402
from warmgraph import errors  # noqa: E402
from warmgraph.reading import _identity_checks, _native_snapshots, _walker  # noqa: E402
from warmgraph.torch.read import _call_reader, _installed_code, _module_readers, _tensors  # noqa: E402

pytestmark = [pytest.mark.usefixtures("on_the_host"),
              pytest.mark.skipif(not _native_snapshots.is_possible(), reason="this Python's dictionaries are not looked at natively")]


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


class Config:
    kind = "of the class"
    note: Any = None
    unread_of_class = iter([1])

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


class OfConfig(Config):
    note = [1]


class Installed(Config):
    """A class of a library, whose methods are not read."""


Installed.__module__ = "transformers.settings"


@dataclasses.dataclass
class Fields:
    later: Any = 1
    beside: Any = None
    default: Any = dataclasses.field(default_factory=list)

    def __post_init__(self) -> None:
        self.note = "not a field"


def run(module: Any, x: Any) -> Any:
    """This function names the parts that it may use: linear, note, beside, config, other."""
    return module.linear(x), module.note, module.beside, module.config, module.other


def read(module: Any, arguments: dict[str, Any] | None = None) -> _walker.Walker:
    return _call_reader.read(_installed_code.TorchReachedCode(run), arguments or {}, module)[0]


def with_tied() -> Any:
    net = Net(other=torch.nn.Linear(4, 4))
    net.other.weight = net.linear.weight
    net.again = net.linear
    return net


def ordered(count: int) -> Any:
    net = Net()
    net._buffers = collections.OrderedDict((f"b{i}", torch.zeros(i + 1)) for i in range(count))
    return net


def model() -> Any:
    one = Config(note=1, unread=2, other=[1.5, {"a": ()}])
    net = Net(note=2j, flag=True, big=1 << 80, config=one, other=torch.nn.ModuleDict({"é": torch.nn.Linear(4, 4, bias=False), "odd": torch.nn.ReLU()}),
              beside=Installed(a=1, _kept_hash=1 << 40, small_hash=5, __own=3, config=one, strange=iter([1])))
    net.other["é"].weight = net.linear.weight
    net.other.odd.register_forward_hook(print, with_kwargs=True)
    net.linear.bias.note, net.linear.bias.unread = 5, 6
    net.again, net.other.outer = net.linear, net
    return net


FACTS = """
x: test_torch_walking.Fields
x.later: list of 1
x.later[0]: int 1
x.beside: tensor float32 [2, 3] strides [1, 2]
x.default: list of 0
x.note: str 'not a field'
self: test_torch_walking.Net big=int 1208925819614629174706176 flag=bool True note=complex 2j scale=float 0.5 training=bool True of linear other again
self.linear: torch.nn.modules.linear.Linear in_features=int 4 out_features=int 4 training=bool True of weight bias
self.linear.weight: tensor float32 [4, 4] strides [4, 1], requires grad
self.linear.bias: tensor float32 [4] strides [1], requires grad
self.linear.bias.note: int 5
self.other: torch.nn.modules.container.ModuleDict training=bool True of \\xe9 odd outer
self.other.é: torch.nn.modules.linear.Linear in_features=int 4 out_features=int 4 training=bool True of weight bias
self.other.é.weight: is self.linear.weight
self.other.é.bias: NoneType None
self.other.odd: torch.nn.modules.activation.ReLU inplace=bool False training=bool True of
self.other.odd._forward_hooks[0]: built-in builtins.print builtins
self.other.odd._forward_hooks[0] is called: with keywords
self.other.outer: the Net around it, 2 up
self.again: is self.linear
self.beside: transformers.settings.Installed e3b0c44298fc1c14
self.beside.a: int 1
self.beside.config: test_torch_walking.Config
self.beside.config.note: int 1
self.beside.config.other: list of 2
self.beside.config.other[0]: float 1.5
self.beside.config.other[1]: dict of 1
self.beside.config.other[1]['a']: tuple of 0
self.beside.small_hash: int 5
self.beside.note: NoneType None
self.config: is self.beside.config
self.names: list of 2
self.names[0]: str 'a'
self.names[1]: str 'b'
"""


def test_what_a_model_holds_is_said() -> None:
    """A module's plain values are one text. In the user's objects, only the attributes that the code names are read. In a library's
    objects, all attributes are read, except those that differ between processes."""
    walker = read(model(), {"x": Fields([1], torch.zeros(3, 2).t())})
    assert "\n".join(f"{path}: {text}" for path, text in walker.found.facts.items() if path.startswith(("x", "self"))) == FACTS.strip()
    assert [(one.path, one.via) for one in walker.places] == [("x.beside", "argument"), ("self.linear.weight", "self"), ("self.linear.bias", "self")]


@pytest.mark.parametrize("made, why", [
    (lambda: torch.jit.script(torch.nn.Linear(2, 2)), "is a torch.jit.ScriptModule"),
    (lambda: torch.zeros(3, 3).to_sparse(), "has the layout torch.sparse_coo"),
    (lambda: torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)]), "has the layout nested"),
    (lambda: torch.quantize_per_tensor(torch.zeros(3), 1.0, 0, torch.qint8), "is quantised"),
    (lambda: torch._neg_view(torch.zeros(3)), "is a lazily conjugated or negated view"),
    (lambda: torch.zeros(3, dtype=torch.complex64).conj().imag, "is a lazily conjugated or negated view"),
    (lambda: torch.zeros(3, device="meta"), "lies on meta"),
    (lambda: torch.zeros(3).as_subclass(type("Other", (torch.Tensor,), {})), "a subclass of torch.Tensor"),
    (lambda: Config(beside=[1, {Config(): 1}]), r"\.beside\[1\] has a key of type Config"),
    (lambda: [Config(note=iter([1]))], r"\[0\]\.note is a builtins.list_iterator"),
    (lambda: functools.reduce(lambda held, _: [held], range(70), 1), "nested more than 64 deep"),
    (lambda: functools.reduce(lambda held, _: Net(other=held), range(70), Net()), "nested more than 64 deep")])
def test_what_cannot_be_compared_is_refused_where_code_names_it(made: Any, why: str) -> None:
    with pytest.raises(errors.NotRecordable, match=why):
        read(Net(note=made()))
    assert not any("unread" in path for path in read(Net(unread=[made()])).found.facts)


def test_operators_and_functions_are_keys() -> None:
    """Classes of tensors have tables by which they replace operators, as torchao's do."""
    table = {torch.ops.aten.mm.default: 1, torch.ops.aten.mm: 2, torch.relu: 3, functools.reduce: 4, torch.Tensor.t: 5, Net.forward: 6,
             torch.int8: 7, torch.device("cuda", 1): 8}
    facts = read(Net(other=table)).found.facts
    keys = ["operator aten.mm.default", "operator aten.mm", "torch.relu", "_functools.reduce", "torch._C.TensorBase.t",
            f"{__name__}.Net.forward", "torch.int8", "cuda:1"]
    assert facts["self.other"] == f"dict of 8: {', '.join(keys)}" and facts["self.other[operator aten.mm]"] == "int 2"
    assert any(path.startswith("self.other.keys.") and text.startswith("function Net.forward") for path, text in facts.items())
    with pytest.raises(errors.NotRecordable, match="has a key of type function"):
        read(Net(other={lambda: 1: 2}))


def test_a_lock_is_the_fact_whether_it_is_held() -> None:
    module = Net(other=[threading.Lock(), threading.RLock()])
    assert [read(module).found.facts[f"self.other[{i}]"] for i in range(2)] == ["lock unlocked", "RLock unlocked"]
    with module.other[0]:
        assert read(module).found.facts["self.other[0]"] == "lock locked"


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
    "the name of a child": lambda net: net._modules.__setitem__("renamed", net._modules.pop("more")),  # renames the last child
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
    walker = read(net)
    once, again = _identity_checks.WatchedState(walker.watched), _identity_checks.WatchedState(walker.watched)
    assert once.is_same() and once.is_same() and once.is_same()
    assert isinstance(once._watch, _identity_checks.Watch)
    CHANGES[name](net)
    assert not once.is_same(), "by who looks natively"
    assert not again.is_same(), "by who looks for the first time"


def test_what_no_code_of_it_can_see_is_no_change() -> None:
    net = changed()
    held = _identity_checks.WatchedState(read(net).watched)
    assert held.is_same()
    other = changed()
    other.note, other.linear.in_features = 3, 7
    net.linear.weight.data = torch.ones(4, 4)  # a weight's new address is noticed by other checks
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
    walker = _walker.Walker(_installed_code.TorchReachedCode(run), _module_readers.TORCH)
    walker.is_around = True
    walker.value("self", net)
    assert not _identity_checks.WatchedState(walker.watched).is_same()


def test_what_is_raised_is_raised_and_nothing_stays_open() -> None:
    net = Net(note=iter([1]), other=Net())
    walker = _walker.Walker(_installed_code.TorchReachedCode(run), _module_readers.TORCH)
    walker.is_around = True
    with pytest.raises(errors.NotRecordable, match="self.note"):
        walker.value("self", net)
    assert walker.opened == []


def files_on_the_way_of(weight: Any, work: Callable[[], Any]) -> list[str]:
    """Returns the package's files that run, in order, from the first call that gets the weight until that call ends."""
    package, inside, found = str(pathlib.Path(warmgraph.__file__).parent), [], []

    def note(frame: Any) -> None:
        name = frame.f_code.co_filename
        if name.startswith(package) and (not found or found[-1] != name):
            found.append(name)

    def look(frame: Any, event: str, argument: Any) -> None:
        if event == "call":
            code = frame.f_code
            if not found and any(frame.f_locals.get(name) is weight for name in code.co_varnames[:code.co_argcount]):
                inside.append(frame)
            if inside:
                note(frame)
        elif event == "return" and inside:
            if frame is inside[0]:
                inside.clear()
            else:
                note(frame.f_back)

    sys.setprofile(look)
    try:
        work()
    finally:
        sys.setprofile(None)
    return [name.removeprefix(package + "/") for name in found]


def test_a_weight_comes_back_to_a_file_three_times_at_most() -> None:
    net, reached = torch.nn.Linear(2, 2, bias=False), _installed_code.TorchReachedCode(run)
    _call_reader.read(reached, {}, net)
    files = files_on_the_way_of(net.weight, lambda: _call_reader.read(reached, {}, net))
    assert "torch/read/_tensor_readers.py" in files
    assert len(files) - len(set(files)) <= 3, files


def test_a_model_that_was_read_can_be_collected() -> None:
    def made() -> Any:
        net = Net(other=Net())
        net.other.outer = [net]
        net.walk = read(net)  # sets an attribute, as a wrapper does on a module
        return weakref.ref(net)

    alive = made()
    gc.collect()
    assert alive() is None


def test_tensors_on_the_host_count_by_their_contents(monkeypatch: pytest.MonkeyPatch) -> None:
    net = Net()
    net.register_buffer("table", torch.arange(4.0))
    monkeypatch.setattr(_tensors, "DEVICE_TYPE", "cuda")
    facts = read(net).found.facts
    assert facts["self.table"].startswith("host tensor float32 [4]")
    net.table[1] = 7.0
    assert read(net).found.facts["self.table"] != facts["self.table"]


def test_an_order_of_its_own_is_looked_at() -> None:
    net = ordered(3)
    held = _identity_checks.WatchedState(read(net).watched)
    assert held.is_same() and held.is_same()
    net._buffers.move_to_end("b0")  # the order of the items themselves does not show this change
    assert not held.is_same()


def test_what_was_held_lives_as_long() -> None:
    """Each module has objects of its own: objects with equal names may be different."""
    class Alive:
        pass

    def made() -> Any:
        return "".join(["of this ", "test"])

    nets, names = [Net(note=Alive(), config=Config(note=[Alive()])) for _ in range(3)], [made() for _ in range(3)]
    for net, name in zip(nets, names):
        net.__dict__[name] = 1
        net.linear.weight.note = Alive()
    held = _identity_checks.WatchedState(read(torch.nn.ModuleList(nets)).watched)
    assert held.is_same() and held.is_same()
    before = list(map(sys.getrefcount, names))
    alive = [weakref.ref(one) for net in nets for one in (net.note, net.config, net.config.note[0], net.linear.weight, net.linear.weight.note)]
    for net in nets:
        net.__dict__.clear()
    del net, nets
    gc.collect()
    assert all(one() is not None for one in alive)
    assert list(map(sys.getrefcount, names)) == [count - 1 for count in before], "the dictionary's own reference alone has gone"
    del held
    gc.collect()
    assert all(one() is None for one in alive)


@pytest.mark.parametrize("at", [0, 61, 119])
def test_of_many_modules_each_is_looked_at(at: int) -> None:
    net = torch.nn.ModuleList([torch.nn.Linear(2, 2) for _ in range(120)])
    net[at].much = list(range(3000))
    net[at].more = {i: i for i in range(3000)}
    for change in (lambda: setattr(net[at], "in_features", 9), lambda: net[at].much.__setitem__(2999, -1), lambda: net[at].more.__setitem__(2999, -1)):
        held = _identity_checks.WatchedState(read(net).watched)
        assert held.is_same()
        change()
        assert not held.is_same()


def test_reading_keeps_no_reference_but_in_what_was_read() -> None:
    net = with_tied()
    value = net.note = "".join(random.Random(1).choices("abc", k=40))
    objects = [net, net.linear, net.linear.weight, net.__dict__, net.linear.__dict__, net.linear.weight.__dict__, value, torch.nn.Linear]
    before = [sys.getrefcount(one) for one in objects]
    for _ in range(50):
        read(net)
    gc.collect()
    after = [sys.getrefcount(one) for one in objects]
    assert all(now <= was + 3 for now, was in zip(after, before)), (before, after)
