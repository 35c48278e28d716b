"""Two calls that a function treats differently are never one entry, and whatever fails, the caller has the function's own result."""
from __future__ import annotations

import collections
import contextlib
import copy
import dataclasses
import enum
import fractions
import functools
import gc
import inspect
import logging
import pickle
import random
import sys
import threading
import types
import warnings
import weakref
from typing import Any, Callable, Iterator

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed here")

import torch_on_the_host as host  # noqa: E402
import warmgraph  # noqa: E402
from warmgraph import errors  # noqa: E402
from warmgraph.torch import GraphCache, _call, _code, _copies, _launching, _modes, _modules, _outside, _recording, _tensors, _walking  # noqa: E402


@pytest.fixture(autouse=True)
def on_the_host(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    host.use(monkeypatch)
    yield


X = torch.ones(4)


def wrap(function: Any, **options: Any) -> Any:
    return warmgraph.cache_compile(function, **{"compile": False, "config": warmgraph.Config(model="hostile"), **options})


def replays() -> int:
    return sum(len(one.calls) for one in host.entries)


def refusal(cached: Any) -> str:
    return str(cached._shared.last_refusal)


def expect_noticed(call: Callable[[], Any], change: Callable[[], Any]) -> None:
    """The call replays until `change`, and does not after it."""
    call(), call(), call()
    before = replays()
    assert before >= 1
    change()
    call()
    assert replays() == before


def expect_apart(*functions: Any) -> None:
    """Each as in a process of its own: no entry of one is another's."""
    for function in functions:
        wrap(function)(X)
        assert replays() == 0
    assert len(host.entries) == len(functions)


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
        self.eps = 0.5
        self.step = wrap(self.work)

    def work(self, x: Any) -> Any:
        return self.b(self.a(x)) + self.eps


# --- wrong hits: values that change between two calls


@dataclasses.dataclass
class Settings:
    width: int = 1
    nested: Any = dataclasses.field(default_factory=lambda: {"a": [1, {"b": 2}]})


class Mode(enum.Enum):
    FAST = (1, 2)
    SLOW = (3, 4)

    @property
    def scale(self) -> float:
        return float(self.value[0])


class Attributes(dict):  # type: ignore[type-arg]
    pass


class Slotted:
    __slots__ = ("width",)

    def __init__(self) -> None:
        self.width = 1


class Plain:
    level = 1

    def __init__(self) -> None:
        self.width, self.nested = 1, {"a": [1]}

    @property
    def doubled(self) -> int:
        return self.width * 2

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)

    def act(self, x: Any) -> Any:
        return x + 1


class Child(Plain):
    pass


class Held:
    """A descriptor."""

    def __init__(self) -> None:
        self.value = 1

    def __get__(self, instance: Any, owner: Any = None) -> int:
        return self.value


class Described(torch.nn.Module):
    width = Held()
    shared = Plain()

    def __init__(self) -> None:
        super().__init__()
        self.step = wrap(self.work)

    def work(self, x: Any) -> Any:
        return x * self.width + self.shared.width


def module_of(**members: Any) -> types.ModuleType:
    """A module of the user's."""
    module = types.ModuleType("users_own")
    module.__file__ = "/users/own.py"
    vars(module).update(members)
    sys.modules["users_own"] = module
    return module


def changes() -> dict[str, Any]:
    """(call, change) by what changes."""
    settings, slotted, plain, child, attributes = Settings(), Slotted(), Plain(), Child(), Attributes()
    attributes.width = 1
    kind = type("Kind", (), {"width": 1})
    users, mode, numbers = module_of(WIDTH=1, inner=Settings(), act=lambda x: x + 1), Mode.FAST, [1, [2]]
    ring = {"act": plain}
    cell = 1
    table = {"k": 1}
    looked_up = table.get
    act = torch.relu

    def work(x: Any, *, by: Any = 1) -> Any:
        return x * by

    def helper(x: Any, by: Any = 1, *, more: Any = 1) -> Any:
        return x * by + more

    def of_closure(x: Any) -> Any:
        return x * cell

    def set_cell(value: Any) -> None:
        nonlocal cell
        cell = value

    def set_act(value: Any) -> None:
        nonlocal act
        act = value

    def set_mode(value: Any) -> None:
        nonlocal mode
        mode = value

    def with_attribute(x: Any) -> Any:
        return x * with_attribute.by  # type: ignore[attr-defined]

    with_attribute.by = 1  # type: ignore[attr-defined]
    partial = functools.partial(helper, by=2)
    found: dict[str, Any] = {
        "nested dict": (lambda x: x * settings.nested["a"][1]["b"], lambda: settings.nested["a"][1].update(b=3)),
        "list element": (lambda x: x * numbers[1][0], lambda: numbers[1].__setitem__(0, 3)),
        "data class": (lambda x: x * settings.width, lambda: setattr(settings, "width", 2)),
        "enum": (lambda x: x * mode.scale, lambda: set_mode(Mode.SLOW)),
        "property": (lambda x: x * plain.doubled, lambda: setattr(plain, "width", 2)),
        "slots": (lambda x: x * slotted.width, lambda: setattr(slotted, "width", 2)),
        "class attribute": (lambda x: x * plain.level, lambda: setattr(plain, "level", 2)),
        "attribute of a class": (lambda x: x * kind.width, lambda: setattr(kind, "width", 2)),  # type: ignore[attr-defined]
        "attribute of a dict": (lambda x: x * attributes.width, lambda: setattr(attributes, "width", 2)),
        "global of another module": (lambda x: x * users.WIDTH, lambda: setattr(users, "WIDTH", 2)),
        "object of another module": (lambda x: x * users.inner.width, lambda: setattr(users.inner, "width", 2)),
        "function of another module": (lambda x: users.act(x), lambda: setattr(users, "act", lambda x: x - 1)),
        "closure": (of_closure, lambda: set_cell(2)),
        "built-in in a closure": (lambda x: act(x), lambda: set_act(torch.tanh)),
        "what a built-in is bound to": (lambda x: x * looked_up("k"), lambda: table.update(k=2)),
        "defaults": (lambda x: helper(x), lambda: setattr(helper, "__defaults__", (2,))),
        "keyword defaults": (lambda x: helper(x), lambda: helper.__kwdefaults__.update(more=2)),
        "attribute of a function": (with_attribute, lambda: setattr(with_attribute, "by", 2)),
        "partial": (lambda x: partial(x), lambda: partial.keywords.update(by=3)),
        "method on the instance": (lambda x: plain.act(x), lambda: setattr(plain, "act", lambda x: x - 1)),
        "method on the class": (lambda x: child.act(x), lambda: setattr(Plain, "act", lambda self, x: x - 1)),
        "method that overrides": (lambda x: child.act(x), lambda: setattr(Child, "act", lambda self, x: x - 1)),
        "class of an object": (lambda x: ring["act"].act(x), lambda: setattr(plain, "__class__", Other)),
        "order of a dict": (lambda x: [x := x * v + v for v in table.values()][-1],
                            lambda: (table.update(j=1), table.update(k=table.pop("k")))),
    }
    return found


class Other(Plain):
    def act(self, x: Any) -> Any:
        return x * 2


@pytest.fixture
def restored() -> Iterator[None]:
    """Classes that tests change."""
    before = {kind: dict(kind.__dict__) for kind in (Plain, Child)}
    yield
    for kind, held in before.items():
        for name in [name for name in kind.__dict__ if name not in held]:
            delattr(kind, name)
        for name in ("act", "level"):
            if name in held:
                setattr(kind, name, held[name])
    sys.modules.pop("users_own", None)


@pytest.mark.parametrize("name", sorted(changes()))
def test_a_value_that_changes_between_two_calls_is_no_replay(name, restored):
    function, change = changes()[name]
    cached = wrap(function)
    expect_noticed(lambda: cached(X), change)


@pytest.mark.parametrize("name", sorted(set(changes()) - {"order of a dict"}))
def test_a_value_that_differs_in_another_process_is_no_replay(name, restored):
    function, change = changes()[name]
    wrap(function)(X)
    change()
    wrap(function)(X)
    assert replays() == 0 and len(host.entries) == 2


def test_the_order_of_a_dict_is_a_part_of_it():
    cached = wrap(lambda x, by: [x := x * v + v for v in by.values()][-1])
    cached(X, {"a": 1, "b": 2}), cached(X, {"b": 2, "a": 1})
    assert replays() == 0


def test_the_order_of_submodules_is_a_part_of_a_module():
    def made(names: str) -> Any:
        parts = torch.nn.ModuleDict({name: torch.nn.Linear(4, 4) for name in names})
        return lambda x: [x := part(x) for part in parts.values()][-1]

    expect_apart(*map(made, ("ab", "ba")))


def swap(net: Any) -> None:
    net.a, net.b = net.b, net.a


def module_changes() -> dict[str, Any]:
    return {
        "training of a submodule": lambda net: net.a.eval(),
        "parameter of another type": lambda net: setattr(net.a.weight, "data", torch.ones(4, 4).double()),
        "parameter of another type of the same size": lambda net: setattr(net.b.weight, "data", net.b.weight.data.half()),
        "parameter of another shape": lambda net: setattr(net.a.weight, "data", torch.ones(2, 4)),
        "parameter of other strides": lambda net: setattr(net.a.weight, "data", torch.ones(4, 4).t()),
        "parameters replaced by one": lambda net: setattr(net.b, "weight", net.a.weight),
        "parameters in one storage": lambda net: setattr(net.b.weight, "data", net.a.weight.data),
        "parameters in one storage by views": lambda net: (setattr(net.a, "bias", torch.nn.Parameter(net.a.weight.data[0]))),
        "requires_grad": lambda net: net.a.weight.requires_grad_(False),
        "forward hook": lambda net: net.a.register_forward_hook(lambda module, x, y: y + 1),
        "forward hook before": lambda net: net.a.register_forward_pre_hook(lambda module, x: (x[0] + 1,)),
        "hook with keywords": lambda net: net.a.register_forward_hook(lambda module, x, k, y: y + 1, with_kwargs=True),
        "method of a submodule": lambda net: setattr(net.a, "forward", lambda x: x),
        "attribute of a parameter": lambda net: setattr(net.a.weight, "scale", 2.0),
        "plain value": lambda net: setattr(net, "eps", 0.25),
        "minus zero": lambda net: setattr(net, "eps", -0.0),
        "type of a number": lambda net: setattr(net, "eps", True),
        "nan": lambda net: setattr(net, "eps", float("nan")),
        "submodule": lambda net: setattr(net, "a", torch.nn.Identity()),
    }


class Scaled(Net):
    def work(self, x: Any) -> Any:
        return self.b(self.a(x).to(self.b.weight.dtype)) * getattr(getattr(self.a, "weight", None), "scale", 1.0) + self.eps


@pytest.mark.parametrize("name", sorted(module_changes()))
def test_a_module_that_changes_between_two_calls_is_no_replay(name):
    net = Scaled()
    net.b.weight.data = net.b.weight.data.bfloat16()
    net.b.bias.data = net.b.bias.data.bfloat16()
    net.eps = {"minus zero": 0.0, "type of a number": 1}.get(name, 0.5)
    with torch.no_grad():
        expect_noticed(lambda: call_or_error(net.step), lambda: module_changes()[name](net))


def call_or_error(step: Any) -> None:
    """What the function itself raises with such weights is its own."""
    try:
        step(torch.ones(2, 4))
    except RuntimeError:
        pass


def test_swapped_weights_are_bound_where_they_are():
    net = Net()
    net.step(torch.ones(2, 4))
    swap(net)
    net.step(torch.ones(2, 4))
    (entry,) = host.entries
    ((_, states),) = entry.calls
    assert states == [one.data_ptr() for one in (net.a.weight, net.a.bias, net.b.weight, net.b.bias)]


def test_data_of_swapped_parameters_is_bound_where_it_is():
    net = Net()
    net.step(torch.ones(2, 4)), net.step(torch.ones(2, 4))
    net.a.weight.data, net.b.weight.data = net.b.weight.data, net.a.weight.data
    net.step(torch.ones(2, 4))
    (entry,) = host.entries
    assert [states[0] for _, states in entry.calls] == [net.b.weight.data_ptr(), net.a.weight.data_ptr()]


@pytest.mark.parametrize("change", ["descriptor", "object of the class"])
def test_what_a_modules_class_holds_counts(change):
    net = Described()
    held = Described.__dict__["width"] if change == "descriptor" else Described.shared
    name = "value" if change == "descriptor" else "width"
    try:
        expect_noticed(lambda: net.step(X), lambda: setattr(held, name, 2))
    finally:
        setattr(held, name, 1)


def test_a_function_that_is_passed_counts_with_what_it_closes_over():
    def made(by: int) -> Any:
        return lambda x: x * by

    cached = wrap(lambda x, act: act(x))
    two, three = made(2), made(3)
    cached(X, two), cached(X, two)
    before = replays()
    cached(X, three)
    assert before == 1 == replays()


def test_an_object_of_a_class_of_the_same_name_counts_with_its_own_class():
    def made(by: int) -> Any:
        class Local:
            def act(self, x: Any) -> Any:
                return x * by

        return Local()

    cached = wrap(lambda x, of: of.act(x))
    two, three = made(2), made(3)
    cached(X, two), cached(X, two)
    before = replays()
    cached(X, three)
    assert before == 1 == replays()


class Level(int):
    def __repr__(self) -> str:
        return "Level"


class Text(str):
    def __repr__(self) -> str:
        return "Text"


PAIRS: dict[str, tuple[Any, Any]] = {
    "zeros": (0.0, -0.0), "one and true": (1, True), "one and 1.0": (1, 1.0), "true and 1.0": (True, 1.0), "nan": (1.0, float("nan")),
    "subclass of int": (Level(1), Level(2)), "subclass of str": (Text("a"), Text("b")), "subclass and its base": (Level(1), 1),
    "long texts": ("a" * 1000 + "b", "a" * 1000 + "c"), "bytes": (b"a" * 500 + b"1", b"a" * 500 + b"2"), "text and bytes": ("a", b"a"),
    "big ints": (10 ** 6000, 10 ** 6000 + 1), "ranges": (range(3), range(0, 3, 2)), "slices": (slice(0, 3), slice(0, 2)),
    "slices of objects": (slice(Level(1)), slice(Level(2))), "fractions": (fractions.Fraction(1, 3), fractions.Fraction(2, 3)),
    "complex": (complex(0, 0.0), complex(0, -0.0)), "sets": ({1, 2}, {1, 3}), "keys": ({1: 2}, {True: 2}), "keys 1.0": ({1: 2}, {1.0: 2}),
    "keys of a subclass": ({Level(1): 2}, {Level(2): 2}), "sets of a subclass": ({Level(1)}, {Level(2)}),
    "tuple and list": ((1, 2), [1, 2]), "enumerators": (Mode.FAST, Mode.SLOW), "types": (torch.float32, torch.float16),
    "built-ins": (torch.relu, torch.tanh), "methods": ({"a": 1}.get, {"a": 2}.get), "modules": (torch.nn.ReLU(), torch.nn.Tanh()),
    "classes": (torch.nn.ReLU, torch.nn.Tanh), "partials": (functools.partial(pow, 2), functools.partial(pow, 3)),
}


@pytest.mark.parametrize("name", sorted(PAIRS))
@pytest.mark.parametrize("where", ["argument", "closure", "attribute", "default"])
def test_values_that_differ_are_told_apart(name, where):
    one, other = PAIRS[name]

    def called_with(value: Any) -> Any:
        if where == "argument":
            return functools.partial(wrap(lambda x, value: (x, value)[0] + 1), X, value)
        if where == "closure":
            return functools.partial(wrap(lambda x: (x, value)[0] + 1), X)
        if where == "default":
            return functools.partial(wrap(lambda x, value=value: (x, value)[0] + 1), X)
        net = Holding(value)
        return functools.partial(net.step, X)

    called_with(one)()
    assert len(host.entries) == 1
    called_with(other)()
    assert replays() == 0 and len(host.entries) == 2
    called_with(other)()
    assert replays() == 1


class Holding(torch.nn.Module):
    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value
        self.step = wrap(self.work)

    def work(self, x: Any) -> Any:
        return (x, self.value)[0] + 1


def test_numpy_arrays_that_are_written_in_place_are_read_again():
    numpy = pytest.importorskip("numpy")
    table = numpy.ones(4, numpy.float32)
    cached = wrap(lambda x: x * float(table[0]))
    expect_noticed(lambda: cached(X), lambda: table.fill(2))


def test_tensors_on_the_host_that_are_written_past_their_version_are_read_again(monkeypatch):
    monkeypatch.setattr(_tensors, "DEVICE_TYPE", "cuda")
    table = torch.ones(4)

    def work(x: Any) -> Any:
        return x * table

    def watched() -> Any:
        walker, _ = _walking.read(_code.Reached(work), {}, None)
        return walker.watched

    for write in (lambda: table.numpy().fill(2), lambda: table.data.fill_(3), lambda: table.add_(1)):
        before = watched()
        assert all(one.is_same() for one in before)
        write()
        assert not all(one.is_same() for one in before)


# --- wrong hits: code that differs


def users(source: str, **around: Any) -> Any:
    """`work` of a module whose source this is."""
    module = sys.modules["users_source"] = types.ModuleType("users_source")
    module.__file__ = "/users/source.py"
    held = vars(module)
    held.update({"torch": torch, "functools": functools, **around})
    exec(compile(source, "/users/source.py", "exec"), held)  # noqa: S102
    return held["work"]


SOURCES: dict[str, tuple[str, str]] = {
    "body": ("def work(x): return x + 1", "def work(x): return x + 2"),
    "under no_grad": ("@torch.no_grad()\ndef work(x): return x + 1", "@torch.no_grad()\ndef work(x): return x - 1"),
    "under inference_mode": ("@torch.inference_mode()\ndef work(x): return x + 1", "@torch.inference_mode()\ndef work(x): return x - 1"),
    "under another autocast": ("@torch.autocast('cpu', dtype=torch.bfloat16)\ndef work(x): return x + 1",
                               "@torch.autocast('cpu', dtype=torch.float16)\ndef work(x): return x + 1"),
    "compiled by the caller": ("work = torch.compile(lambda x: x + 1, backend='eager')", "work = torch.compile(lambda x: x - 1, backend='eager')"),
    "helper under no_grad": ("@torch.no_grad()\ndef act(x): return x + 1\ndef work(x): return act(x)",
                             "@torch.no_grad()\ndef act(x): return x - 1\ndef work(x): return act(x)"),
    "helper that is compiled": ("act = torch.compile(lambda x: x + 1, backend='eager')\ndef work(x): return act(x)",
                                "act = torch.compile(lambda x: x - 1, backend='eager')\ndef work(x): return act(x)"),
    "cached helper": ("@functools.lru_cache\ndef by(n): return n + 1\ndef work(x): return x * by(1)",
                      "@functools.lru_cache\ndef by(n): return n + 2\ndef work(x): return x * by(1)"),
    "helpers swapped": ("def a(x): return x + 1\ndef b(x): return x * 2\ndef work(x): return a(b(x))",
                        "def b(x): return x + 1\ndef a(x): return x * 2\ndef work(x): return a(b(x))"),
    "methods swapped": ("class K:\n def a(self, x): return x + 1\n def b(self, x): return x * 2\ndef work(x): return K().a(x) + K().b(x) * 2",
                        "class K:\n def b(self, x): return x + 1\n def a(self, x): return x * 2\ndef work(x): return K().a(x) + K().b(x) * 2"),
    "built-in": ("act = torch.relu\ndef work(x): return act(x)", "act = torch.tanh\ndef work(x): return act(x)"),
    "function of a library": ("act = torch.nn.functional.silu\ndef work(x): return act(x)",
                              "act = torch.nn.functional.mish\ndef work(x): return act(x)"),
    "class of a library": ("Act = torch.nn.ReLU\ndef work(x): return Act()(x)", "Act = torch.nn.Tanh\ndef work(x): return Act()(x)"),
    "module of a library": ("m = torch\ndef work(x): return m.sin(x)", "m = torch.special\ndef work(x): return m.sin(x)"),
    "partial": ("def at(n, x): return x * n\nwork = functools.partial(at, 2)", "def at(n, x): return x * n\nwork = functools.partial(at, 3)"),
    "property of an enumerator": (
        "import enum\nclass M(enum.Enum):\n A = 1\n @property\n def by(self): return 2\nheld = {'m': M.A}\ndef work(x): return x * held['m'].by",
        "import enum\nclass M(enum.Enum):\n A = 1\n @property\n def by(self): return 3\nheld = {'m': M.A}\ndef work(x): return x * held['m'].by"),
    "value of an enumerator": (
        "import enum\nclass M(enum.Enum):\n A = (1, 2)\nheld = {'m': M.A}\ndef work(x): return x * held['m'].value[0]",
        "import enum\nclass M(enum.Enum):\n A = (3, 2)\nheld = {'m': M.A}\ndef work(x): return x * held['m'].value[0]"),
}


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_code_that_differs_is_another_entry(name):
    for source in SOURCES[name]:
        try:
            wrap(users(source))(X)
        except AttributeError:  # torch.special has no sin
            assert name == "module of a library"
    assert replays() == 0
    wrap(users(SOURCES[name][0]))(X)
    assert replays() == 1  # the same code is the same entry


def test_code_of_a_function_with_a_cache_that_is_called_as_an_attribute_counts():
    def made(by: int) -> Any:
        source = f"def inner(x): return x * {by}\n"
        held: dict[str, Any] = {"__name__": "users_source"}
        exec(compile(source, "/users/source.py", "exec"), held)  # noqa: S102
        cache = types.SimpleNamespace(inner=wrap(held["inner"]))
        return lambda x: cache.inner(x)

    expect_apart(made(2), made(3))


def test_code_of_an_installed_class_that_is_patched_counts(monkeypatch):
    monkeypatch.setattr("warmgraph._code._INSTALLED", ("/installed/",))
    module = types.ModuleType("installed_package")
    module.__file__ = "/installed/installed_package.py"
    monkeypatch.setitem(sys.modules, "installed_package", module)
    exec(compile("class Block:\n def act(self, x): return x + 1\n def patched(self, x): return x - 1", module.__file__, "exec"), vars(module))
    block = module.Block()
    cached = wrap(lambda x: block.act(x))
    expect_noticed(lambda: cached(X), lambda: setattr(module.Block, "act", module.Block.patched))


def test_numbers_of_a_library_whose_name_has_hash_in_it_count():
    def made(count: int) -> Any:
        kind = type("Odd", (), {"__module__": "torch.odd"})
        odd = kind()
        odd.num_hashes = count
        return lambda x: x * odd.num_hashes

    expect_apart(made(2), made(3))


def test_helpers_of_a_triton_kernel_count():
    def kernel_of(by: int) -> Any:
        kind = type("JITFunction", (), {"__module__": "triton.runtime.jit"})
        held: dict[str, Any] = {"__name__": "users_source"}
        for name, source in (("helper", f"def helper(x): return x * {by}"), ("kernel", "def kernel(x): return helper(x)")):
            exec(compile(source, "/users/source.py", "exec"), held)  # noqa: S102
            made = kind()
            made.fn = held[name]
            held[name] = made
        kernel = held["kernel"]
        return lambda x: (kernel, x)[1] + 1

    expect_apart(kernel_of(2), kernel_of(3))


def test_arguments_of_torch_compile_count():
    def work(x: Any) -> Any:
        return x + 1

    for options in ({"backend": "eager"}, {"backend": "eager", "dynamic": True}, {"backend": "eager", "dynamic": False}):
        wrap(work, compile=options)(X)
    assert replays() == 0 and len(host.entries) == 3


# --- wrong hits: PyTorch's own state


@pytest.fixture
def precisions() -> Iterator[None]:
    before = [(api, op, torch._C._get_fp32_precision_getter(api, op)) for api, op in PRECISIONS]
    old = torch.get_float32_matmul_precision()
    yield
    for api, op, value in before:
        torch._C._set_fp32_precision_setter(api, op, value)
    torch.set_float32_matmul_precision(old)


PRECISIONS = (("generic", "all"), ("cuda", "all"), ("cuda", "matmul"), ("cuda", "conv"), ("cuda", "rnn"))


@pytest.mark.skipif(not hasattr(torch._C, "_get_fp32_precision_getter"), reason="an older PyTorch")
def test_precisions_of_the_newer_settings_are_told_apart(precisions):
    found: dict[Any, set[Any]] = {}
    for matmul in ("ieee", "tf32"):
        for conv in ("ieee", "tf32"):
            for rnn in ("ieee", "tf32"):
                for op, precision in (("matmul", matmul), ("conv", conv), ("rnn", rnn)):
                    torch._C._set_fp32_precision_setter("cuda", op, precision)
                found.setdefault(_modes.modes(), set()).add((matmul, conv, rnn))
    assert len(found) == 8, found


@contextlib.contextmanager
def autocast() -> Iterator[None]:
    """torch.autocast("cuda") without a GPU."""
    torch.set_autocast_enabled("cuda", True)
    try:
        yield
    finally:
        torch.set_autocast_enabled("cuda", False)


def test_pytorchs_settings_are_told_apart():
    before = _modes.modes()
    torch.set_default_dtype(torch.float64)
    try:
        assert _modes.modes() != before
    finally:
        torch.set_default_dtype(torch.float32)
    for entered in (autocast, lambda: torch.inference_mode(),
                    lambda: torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH),
                    lambda: torch.nn.attention.sdpa_kernel([torch.nn.attention.SDPBackend.MATH, torch.nn.attention.SDPBackend.FLASH_ATTENTION,
                                                            torch.nn.attention.SDPBackend.EFFICIENT_ATTENTION], set_priority=True),
                    lambda: torch.device("meta")):
        with entered():
            during = _modes.modes()
        assert during != before and _modes.modes() == before
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        warned = _modes.modes()
        torch.use_deterministic_algorithms(True)
        assert warned != _modes.modes() != before
    finally:
        torch.use_deterministic_algorithms(False)
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        assert _modes.modes() != before
    finally:
        torch.backends.mha.set_fastpath_enabled(True)


def test_a_call_under_a_mode_of_the_callers_is_the_functions_own():
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    class Doubling(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func(*args, **(kwargs or {})) * 2

    class Tripling(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            found = func(*args, **(kwargs or {}))
            return found * 3 if func is torch.sin else found

    cached = wrap(lambda x: torch.sin(x))
    cached(X), cached(X)
    before = replays()
    with Doubling():
        found = cached(X)
    assert torch.equal(found, torch.sin(X) * 2)
    with Tripling():
        found = cached(X)
    assert torch.equal(found, torch.sin(X) * 3) and replays() == before


def test_a_method_that_overrides_in_the_class_of_an_argument_is_no_replay(restored):
    cached, child = wrap(lambda x, of: of.act(x)), Child()
    expect_noticed(lambda: cached(X, child), lambda: setattr(Child, "act", lambda self, x: x - 1))


def test_a_class_that_an_argument_and_the_surroundings_have_is_watched(restored):
    held, given = Child(), Child()
    given.act = lambda x: x  # type: ignore[method-assign]
    cached = wrap(lambda x, of: held.act(of.act(x)))
    expect_noticed(lambda: cached(X, given), lambda: setattr(Child, "act", lambda self, x: x - 1))


def test_values_of_a_namespace_package_count(tmp_path, monkeypatch):
    (tmp_path / "users_namespace").mkdir()
    (tmp_path / "users_namespace" / "settings.py").write_text("WIDTH = 1\ndef act(x): return x + 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    import users_namespace.settings  # type: ignore[import-not-found]

    assert users_namespace.__file__ is None
    cached = wrap(lambda x: users_namespace.settings.act(x) * users_namespace.settings.WIDTH)
    expect_noticed(lambda: cached(X), lambda: setattr(users_namespace.settings, "WIDTH", 2))
    wrap(lambda x: users_namespace.settings.act(x) * users_namespace.settings.WIDTH)(X)
    for name in [name for name in sys.modules if name.startswith("users_namespace")]:
        del sys.modules[name]


INSTALLED = """
def scaled(by):
    return lambda x: x * by

LEVEL = 1
def of_global(x): return x * LEVEL
"""


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module of an installed package."""
    monkeypatch.setattr("warmgraph._code._INSTALLED", ("/installed/",))
    module = types.ModuleType("installed_package")
    module.__file__ = "/installed/installed_package.py"
    monkeypatch.setitem(sys.modules, "installed_package", module)
    exec(compile(INSTALLED, module.__file__, "exec"), vars(module))  # noqa: S102
    return module


def test_what_an_installed_function_closes_over_counts(installed):
    expect_apart(installed.scaled(2), installed.scaled(3))


def test_globals_of_an_installed_function_count(installed):
    cached = wrap(installed.of_global)
    expect_noticed(lambda: cached(X), lambda: setattr(installed, "LEVEL", 2))


def test_arguments_of_a_partial_method_count():
    def made(by: int) -> Any:
        class Local:
            def scale(self, by: int, x: Any) -> Any:
                return x * by

            act = functools.partialmethod(scale, by)

        Local.__qualname__ = "Local"
        local = Local()
        return lambda x: local.act(x)

    expect_apart(made(2), made(3))


def test_which_of_two_equal_objects_is_passed_counts():
    class Choosing(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = Held(), Held()
            self.step = wrap(self.work)

        def work(self, x: Any, which: Any) -> Any:
            return x + 1 if which is self.a else x - 1

    module = Choosing()
    given = module.a

    def given_now(value: Any) -> None:
        nonlocal given
        given = value

    expect_noticed(lambda: module.step(X, given), lambda: given_now(module.b))


class Traced(torch.nn.Module):
    def forward(self, x):  # type: ignore[no-untyped-def]
        return x + 1


class AlsoTraced(torch.nn.Module):
    def forward(self, x):  # type: ignore[no-untyped-def]
        return x - 1


AlsoTraced.__name__ = AlsoTraced.__qualname__ = "Traced"


@pytest.mark.parametrize("how", [torch.fx.symbolic_trace, torch.jit.script])
def test_code_of_a_traced_module_counts(how):
    def made(module: Any) -> Any:
        return lambda x: module(x)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        modules = [how(one()) for one in (Traced, AlsoTraced)]
    for module in modules:
        cached = wrap(made(module))
        cached(X)
        assert len(host.entries) in (1, 2) or "ScriptModule, whose code" in refusal(cached)
    assert replays() == 0


def test_hooks_of_all_modules_are_never_replayed_past():
    net = Net()
    net.step(X), net.step(X)
    before = replays()
    handle = torch.nn.modules.module.register_module_forward_hook(lambda module, x, y: y + 1)
    try:
        with torch.no_grad():
            assert torch.equal(net.step(X), net.work(X))
    finally:
        handle.remove()
    assert replays() == before


# --- what the function changes, which a replay would not


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
        cached(X)  # which changes none
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


# --- what is given back


def test_results_that_share_memory_are_refused():
    def work(x: Any) -> Any:
        y = x + 1
        return y, y.view(2, 2)

    cached = wrap(work)
    y, view = cached(X)
    assert y.data_ptr() == view.data_ptr()
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
    (lambda y: y.to_sparse(), "layout"), (lambda y: [y, torch.float32], "dtype")])
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


# --- what it is given


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
    on = [_walking.Place(path, types.SimpleNamespace(device=torch.device("cuda", i)), "argument") for i, path in enumerate("ab")]
    with pytest.raises(errors.NotRecordable, match="b lies on cuda:1, a on cuda:0"):
        _call.common_device(on)


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


# --- what is wrapped


def test_what_is_no_function_is_an_error_that_says_so():
    class Call:
        def __call__(self, x: Any) -> Any:
            return x

    def generator(x: Any) -> Any:
        yield x

    async def coroutine(x: Any) -> Any:
        return x

    for one, words in ((Call(), "no Python function"), (generator, "generator"), (coroutine, "coroutine"),
                       (functools.partial(generator, 1), "generator"), (staticmethod(lambda x: x), "above @cache_compile"),
                       (classmethod(lambda c, x: x), "above @cache_compile"), (torch.relu, "no Python function"), (3, "no Python function")):
        with pytest.raises(errors.InvalidArgument, match=words):
            wrap(one)


class Kinds:
    @staticmethod
    @warmgraph.cache_compile(compile=False, config=warmgraph.Config(model="hostile"))
    def static(x: Any) -> Any:
        return x + 1

    @classmethod
    @warmgraph.cache_compile(compile=False, config=warmgraph.Config(model="hostile"))
    def of_class(cls, x: Any) -> Any:
        return x + 2

    @warmgraph.cache_compile(compile=False, config=warmgraph.Config(model="hostile"))
    def of_object(self, x: Any) -> Any:
        return x + self.by  # type: ignore[attr-defined]


def test_static_methods_class_methods_and_methods_of_two_objects_are_replayed():
    one, other = Kinds(), Kinds()
    one.by, other.by = 1, 2  # type: ignore[attr-defined]
    for call, expected in ((Kinds.static, 2), (one.static, 2), (Kinds.of_class, 3), (one.of_object, 2), (other.of_object, 3)):
        before = len(host.entries)
        found = call(X)
        assert torch.equal(found, torch.full((4,), float(expected))) or replays()
        call(X)
        assert len(host.entries) <= before + 1
    assert replays() == 6 and len(host.entries) == 4  # both static calls are one, and each object has its own


def test_a_partial_and_a_lambda_are_replayed_with_their_tensors_as_states():
    def work(weight: Any, x: Any) -> Any:
        return weight * x

    weight = torch.ones(4)
    cached = wrap(functools.partial(work, weight))
    cached(X), cached(X)
    assert replays() == 1 and [one.pointer for one in host.entries[0].given.states] == [weight.data_ptr()]


def test_a_default_that_is_replaced_after_the_wrapping_is_the_one_that_counts():
    def work(x: Any, by: float = 1.0, *, more: float = 0.0) -> Any:
        return x * by + more

    cached = wrap(work)
    assert torch.equal(cached(X), X)
    work.__defaults__ = (2.0,)
    assert torch.equal(cached(X), X * 2)
    work.__kwdefaults__ = {"more": 5.0}
    assert torch.equal(cached(X), X * 2 + 5)
    assert replays() == 0


@pytest.mark.parametrize("arguments, named", [
    ((X,), {}), ((X, 2), {}), ((X,), {"by": 2}), ((), {"x": X}), ((X,), {"more": 1}), ((X, 1), {"more": 0}), ((), {"by": 1, "x": X})])
def test_arguments_reach_the_function_as_they_were_given(arguments, named):
    def shown(x: Any, by: int = 1, *, more: int = 0) -> Any:
        return x

    def work(*args: Any, **named: Any) -> Any:
        return (args[0] if args else named["x"]) + len(args) * 10 + len(named)

    work.__signature__ = inspect.signature(shown)  # type: ignore[attr-defined]
    assert torch.equal(wrap(work)(*arguments, **named), work(*arguments, **named))


def test_a_default_that_is_a_tensor_is_moved_for_the_second_capture():
    weight = torch.ones(4)

    def work(x: Any, weight: Any = weight) -> Any:
        sys.audit("hostile.default", weight.data_ptr())
        return x * weight

    seen: list[int] = []
    sys.addaudithook(lambda event, of: seen.append(of[0]) if event == "hostile.default" else None)
    wrap(work)(X)
    assert seen[:2] == [weight.data_ptr()] * 2 and seen[2] != weight.data_ptr()


def test_recursion_and_a_wrapped_function_inside_are_a_part_of_the_outer():
    @wrap
    def inner(x: Any) -> Any:
        return x + 1

    @wrap
    def outer(x: Any, depth: int = 2) -> Any:
        return inner(x) if depth == 0 else outer(x, depth - 1)

    assert torch.equal(outer(X), X + 1)
    assert len(host.entries) == 1 and host.entries[0].given.name == "outer"
    outer(X)
    assert replays() == 1


def test_names_with_a_slash_are_the_callers_to_mend_or_run():
    cached = wrap(lambda x: x + 1, name="a/b")
    try:
        assert torch.equal(cached(X), X + 1)
    except errors.InvalidArgument as error:
        assert "a/b" in str(error)


def test_wrong_options_of_the_cache_are_errors_before_the_function_runs():
    ran = []
    cached = wrap(lambda x: ran.append(1), global_rank=-5)
    with pytest.raises(errors.InvalidArgument):
        cached(X)
    assert not ran


def test_a_module_with_wrappers_is_copied_and_pickled_and_says_what_to_do():
    for twin in (copy.deepcopy(Net()), pickle.loads(pickle.dumps(Net()))):
        with pytest.raises(errors.InvalidArgument, match="wrap the"):
            twin.step(torch.ones(2, 4))


# --- what fails


def failing(at: int, error: Callable[[], Exception]) -> tuple[Any, list[int]]:
    count: list[int] = [0]
    sys_audit = f"hostile.{id(count)}"

    def hook(event: str, _: Any) -> None:
        if event == sys_audit:
            count[0] += 1
            if count[0] == at:
                raise error()

    sys.addaudithook(hook)

    def work(x: Any) -> Any:
        sys.audit(sys_audit)  # which no guard sees
        return x + 1

    return wrap(work), count


@pytest.mark.parametrize("at", [2, 3])
def test_an_exception_in_a_capture_is_a_refusal_and_the_result_is_the_answers(at, caplog):
    cached, count = failing(at, lambda: KeyError("in a capture"))
    with caplog.at_level(logging.WARNING, "warmgraph"):
        for _ in range(3):
            assert torch.equal(cached(X), X + 1)
    assert not host.entries and "in a capture" in refusal(cached) and count[0] == at + 2
    assert len([one for one in caplog.records if "cannot record" in one.message]) == 1


def test_an_exception_in_the_answer_is_the_callers_and_the_next_call_is_recorded():
    cached, _ = failing(1, lambda: KeyError("mine"))
    with pytest.raises(KeyError, match="mine"):
        cached(X)
    cached(X), cached(X)
    assert replays() == 1


def test_an_exception_of_a_refused_function_is_the_callers_and_it_ran_once(monkeypatch):
    monkeypatch.setattr(host._capture, "captured", lambda *_: broken_capture())
    ran = [0]

    def hook(event: str, of: Any) -> None:
        if event == "hostile.refused":
            ran[0] += 1
            if ran[0] > 1:
                raise KeyError("mine")

    sys.addaudithook(hook)
    cached = wrap(lambda x: (sys.audit("hostile.refused"), x + 1)[1])
    cached(X)
    with pytest.raises(KeyError, match="mine"):
        cached(X)
    assert ran[0] == 2


def test_a_backend_that_is_a_function_counts_by_its_name():
    def backend(graph: Any, inputs: Any) -> Any:
        return graph.forward

    assert _modules.text_of_options({"backend": backend, "options": {"a": [1, backend]}, "dynamic": True}).count("0x") == 0


PARTS = {
    "reading": ("warmgraph.torch._walking.read", 0), "modes": ("warmgraph.torch._modes.modes", 0), "facts": ("warmgraph.torch._modes.facts", 0),
    "look-up": ("warmgraph.torch._entry.found", 0), "regions": ("warmgraph.torch._regions.regions_of", 0),
    "generator": ("warmgraph.torch._capture.generator_of", 0), "capture": ("warmgraph.torch._capture.captured", 0),
    "shadows": ("warmgraph.torch._recording.Shadows", 0), "copy": ("warmgraph.torch._copies.copied", 0),
    "adoption": ("warmgraph.torch._entry.Entry", 0), "results": ("warmgraph.torch._outputs.described", 0),
    "quick key": ("warmgraph.torch._function.TorchFunction._quick_key", 0), "versions": ("warmgraph.torch._recording.version_of", 0),
    "versions after the answer": ("warmgraph.torch._recording.version_of", 3),
}


@pytest.mark.parametrize("error", [RuntimeError("ours"), errors.IoFailed("ours"), errors.InvalidArgument("ours"), errors.OutOfMemory("ours")])
@pytest.mark.parametrize("part", sorted(PARTS))
def test_whatever_of_ours_fails_the_result_is_the_functions_and_it_ran_once(part, error, monkeypatch):
    import importlib

    name, after = PARTS[part]
    where, _, what = name.rpartition(".")
    try:
        owner: Any = importlib.import_module(where)
    except ModuleNotFoundError:
        module, _, kind = where.rpartition(".")
        owner = getattr(importlib.import_module(module), kind)
    real, count = getattr(owner, what), [0]

    def broken(*arguments: Any, **named: Any) -> Any:
        count[0] += 1
        if count[0] > after:
            raise error
        return real(*arguments, **named)

    net, total = Net(), torch.zeros(4)

    def work(x: Any) -> Any:
        total.add_(x)
        return net.a(x) + total

    expected = net.a(X) + 1
    monkeypatch.setattr(_recording, "_MOST_TRIES", 1)
    monkeypatch.setattr(host._capture, "captured", lambda device, work, draws: host._captured(device, lambda: None, draws))  # runs nothing
    monkeypatch.setattr(owner, what, broken)
    assert torch.equal(wrap(work)(X), expected)
    assert count[0] > after and torch.equal(total, X)


@pytest.mark.parametrize("error", [errors.DriverFailed("launch"), errors.InvalidArgument("this function is closed")])
def test_a_replay_that_enqueued_nothing_is_the_functions_own_run(error, monkeypatch):
    cached = wrap(lambda x: x + 1)
    cached(X), cached(X)

    def broken(*_: Any) -> Any:
        raise error

    monkeypatch.setattr(host.FakeEntry, "launch", broken)
    assert torch.equal(cached(X), X + 1) and str(error) in refusal(cached)


def test_a_replay_that_the_library_finds_no_fit_for_is_recorded_anew(monkeypatch):
    cached = wrap(lambda x: x + 1)
    cached(X), cached(X)

    def broken(*_: Any) -> Any:
        raise errors.MissForbidden("another alignment")

    monkeypatch.setattr(host.FakeEntry, "launch", broken)
    assert torch.equal(cached(X), X + 1)
    assert len([one for one in host.entries if one.captures]) == 2


def test_a_replay_that_was_half_launched_is_an_error(monkeypatch):
    cached = wrap(lambda x: x + 1)
    cached(X)

    def broken(*_: Any) -> Any:
        raise errors.PartlyLaunched("half")

    monkeypatch.setattr(host.FakeEntry, "launch", broken)
    with pytest.raises(errors.PartlyLaunched):
        cached(X)


@pytest.mark.parametrize("is_known_by_heart", [False, True])
def test_a_call_inside_somebodys_capture_is_the_functions_own(monkeypatch, is_known_by_heart):
    """Nothing of it reaches the library: no stream that it may not know, and no launch."""
    captures = [False]
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(_outside, "_is_stream_capturing", lambda: captures[0])
    cached = wrap(lambda x: x + 1)
    for _ in range(4):
        cached(X)
    if not is_known_by_heart:
        cached._shared.torchs.steady.clear()
    before, captures[0] = replays(), True

    def met(*_: Any) -> Any:
        raise AssertionError("it reached the library")

    monkeypatch.setattr(host.FakeEntry, "launch", met)
    monkeypatch.setattr(_launching, "view_of", met)
    assert torch.equal(cached(X), X + 1) and replays() == before


def test_what_the_library_does_not_support_is_an_error_of_a_later_call(monkeypatch):
    def launched(*_: Any) -> Any:
        raise errors.Unsupported("this process was forked")

    cached = wrap(lambda x: x + 1)
    for _ in range(4):
        cached(X)
    monkeypatch.setattr(host.FakeEntry, "launch", launched)
    with pytest.raises(errors.Unsupported, match="forked"):
        cached(X)


def test_a_reset_forgets_and_the_next_call_is_right():
    cached = wrap(lambda x: x + 1)
    cached(X)
    cached.reset()
    cached(X)
    assert replays() == 1 and host.entries[-1].captures is None  # it is loaded again


def test_a_reset_tries_again_what_failed(monkeypatch):
    real = host._captured
    monkeypatch.setattr(host._capture, "captured", lambda *_: broken_capture())
    cached = wrap(lambda x: x + 1)
    cached(X)
    monkeypatch.setattr(host._capture, "captured", real)
    cached(X)
    assert not host.entries
    cached.reset()
    cached(X)
    assert len(host.entries) == 1


def test_first_calls_of_two_threads_are_both_right():
    weight = torch.ones(4)
    cached, found, start = wrap(lambda x: x * 2 + weight), [], threading.Barrier(4)

    def call(value: float) -> None:
        x = torch.full((4,), value)
        start.wait()
        found.append(torch.equal(cached(x), x * 2 + 1) or replays() > 0)

    threads = [threading.Thread(target=call, args=(float(i),)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 4 and not refusal(cached)


def test_a_call_of_another_thread_waits_while_tensors_are_elsewhere(monkeypatch):
    weight, found = torch.ones(4), []
    at, real = weight.data_ptr(), host._captured
    other = wrap(lambda x: (found.append(weight.data_ptr()), x + weight)[1], name="other")
    thread = threading.Thread(target=lambda: other(X))

    def captured(*arguments: Any) -> Any:
        if weight.data_ptr() != at and not thread.ident:
            thread.start()
            thread.join(0.3)
        return real(*arguments)

    monkeypatch.setattr(host._capture, "captured", captured)
    wrap(lambda x: x * weight)(X)
    thread.join()
    assert found[0] == at


def test_a_function_that_was_used_is_an_error_in_a_forked_child():
    import os

    cached = wrap(lambda x: x + 1)
    cached(X)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            cached(X)
        except errors.Unsupported:
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_what_vmap_and_tracing_see_is_the_function():
    cached = wrap(lambda x: x + 1)
    cached(X), cached(X)
    before = replays()
    rows = torch.arange(8.0).view(2, 4)
    assert torch.equal(torch.func.vmap(cached)(rows), rows + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert torch.equal(torch.jit.trace(lambda x: cached(x), X, check_trace=False)(X * 3), X * 3 + 1)
    assert torch.equal(torch.func.grad(lambda x: cached(x * x).sum())(X * 3), X * 6)
    assert replays() == before and not refusal(cached)


def test_a_falsy_object_is_an_engines_object_all_the_same():
    class Empty(torch.nn.ModuleList):
        def forward_it(self) -> Any:
            return self.x + 1

    empty = Empty()
    empty.x = torch.ones(4)
    graph, _ = GraphCache().capture_one(1, empty.forward_it)
    assert graph.outcome == "recorded", graph.why


# --- what stays as it was


@pytest.mark.parametrize("fails", ["", "capture", "second capture"])
def test_pytorchs_state_and_the_callers_tensors_are_as_they_were(fails, monkeypatch):
    scale = torch.ones(4)
    net = Net()
    net.a.weight.scale = 2.0
    real, count = host._captured, [0]

    def captured(*arguments: Any) -> Any:
        count[0] += 1
        if fails == "capture" or (fails == "second capture" and count[0] == 2):
            raise RuntimeError("capture broke")
        return real(*arguments)

    monkeypatch.setattr(host._capture, "captured", captured)

    def state() -> Any:
        tensors = [*net.parameters(), scale, X]
        return (torch.is_grad_enabled(), torch.is_autocast_enabled("cuda"), torch.get_default_dtype(), torch.is_inference_mode_enabled(),
                random.getstate(), torch.get_rng_state().tolist(), torch._C._len_torch_dispatch_stack(),
                [(one.data_ptr(), one.dtype, one.shape, one.stride(), one.requires_grad, one._version, id(one)) for one in tensors],
                [one.tolist() for one in tensors], net.a.weight.scale, list(net.__dict__), gc.isenabled())

    cached = wrap(lambda x: net.a(x) * scale)
    before = state()
    expected = (net.a(X) * scale).detach()
    assert torch.equal(cached(X), expected)
    assert state() == before and bool(refusal(cached)) == bool(fails)


def test_one_tensor_that_cannot_be_put_back_leaves_the_others_where_they_were():
    a, b = torch.ones(4), torch.ones(4)
    storages = {one.untyped_storage().data_ptr(): torch.zeros(4).untyped_storage() for one in (a, b)}
    moved = _copies.Moved([_walking.Place("a", a, "elsewhere"), _walking.Place("b", b, "elsewhere")], storages)
    before = a.data_ptr()

    class Stubborn:
        data = property(lambda self: b.data, lambda self, value: refuse())

    def refuse() -> None:
        if refused:
            raise RuntimeError("no")
        refused.append(1)

    refused: list[int] = []
    with pytest.raises(RuntimeError, match="no"):
        with _copies.swapped([Stubborn(), a], moved):  # type: ignore[list-item]
            assert a.data_ptr() != before
    assert a.data_ptr() == before


@pytest.mark.parametrize("fails", [False, True])
def test_nothing_of_a_call_is_kept_alive(fails, monkeypatch):
    if fails:
        monkeypatch.setattr(host._capture, "captured", lambda *_: broken_capture())
    cached = wrap(lambda x, more: (x + more["k"], x))
    x, more = torch.ones(4), {"k": torch.ones(4)}
    kept = [weakref.ref(x), weakref.ref(more["k"])]
    for _ in range(3):
        result = cached(x, more)
    kept.append(weakref.ref(result[0]))
    del x, more, result
    host.captures.clear()
    gc.collect()
    assert [one() for one in kept] == [None] * 3


def broken_capture() -> None:
    raise RuntimeError("capture broke")


def test_an_object_that_holds_its_wrapper_goes_with_it():
    net = Net()
    net.step(torch.ones(2, 4)), net.step(torch.ones(2, 4))
    kept = [weakref.ref(net), weakref.ref(net.a.weight)]
    del net
    host.captures.clear(), host.entries.clear()
    gc.collect()
    assert [one() for one in kept] == [None, None]


class Decorated(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = torch.nn.Linear(4, 4)

    @warmgraph.cache_compile(compile=False, config=warmgraph.Config(model="hostile"))
    def step(self, x: Any) -> Any:
        return self.a(x)


def test_an_object_of_a_decorated_class_goes_when_the_function_is_reset():
    net = Decorated()
    net.step(X), net.step(X)
    kept = weakref.ref(net.a.weight)
    del net
    Decorated.step.reset()
    host.captures.clear(), host.entries.clear()
    gc.collect()
    assert kept() is None
