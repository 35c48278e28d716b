"""Two calls that a function treats differently never share an entry."""
from __future__ import annotations

import contextlib
import enum
import fractions
import functools
import linecache
import pathlib
import sys
import types
import warnings
from typing import Any, Iterator

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed here")

import torch_on_the_host as host  # noqa: E402
from hostile_calls import X, Net, Settings, expect_apart, expect_noticed, refusal, replays, users, wrap  # noqa: E402
from warmgraph.torch.read import _call_reader, _installed_code, _tensors  # noqa: E402
from warmgraph.torch.replay import _modes  # noqa: E402

pytestmark = pytest.mark.usefixtures("on_the_host")


# --- Wrong hits: values that change between two calls


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
    """A descriptor that holds a value."""

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
    """A module that the user wrote."""
    module = types.ModuleType("users_own")
    module.__file__ = "/users/own.py"
    vars(module).update(members)
    sys.modules["users_own"] = module
    return module


def changes() -> dict[str, Any]:
    """Returns {name of the change: (call, change)}."""
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
    """Restores the classes that tests change."""
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
    """Calls `step`. With such weights the function itself may raise an error."""
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
        walker, _ = _call_reader.read(_installed_code.TorchReachedCode(work), {}, None)
        return walker.watched

    for write in (lambda: table.numpy().fill(2), lambda: table.data.fill_(3), lambda: table.add_(1)):
        before = watched()
        assert all(one.is_same() for one in before)
        write()
        assert not all(one.is_same() for one in before)


# --- Wrong hits: different code


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
    "partial that is compiled": ("def at(n, x): return x * n\nwork = torch.compile(functools.partial(at, 2), backend='eager')",
                                 "def at(n, x): return x * n\nwork = torch.compile(functools.partial(at, 3), backend='eager')"),
    "helper partial that is compiled": (
        "def at(n, x): return x * n\nact = torch.compile(functools.partial(at, 2), backend='eager')\ndef work(x): return act(x)",
        "def at(n, x): return x * n\nact = torch.compile(functools.partial(at, 3), backend='eager')\ndef work(x): return act(x)"),
    "helper object that is compiled": (
        "class K:\n n = 2\n def __call__(self, x): return x * self.n\nact = torch.compile(K(), backend='eager')\ndef work(x): return act(x)",
        "class K:\n n = 3\n def __call__(self, x): return x * self.n\nact = torch.compile(K(), backend='eager')\ndef work(x): return act(x)"),
    "object that is compiled, in a list": (
        "class K:\n n = 2\n def __call__(self, x): return x * self.n\nacts = [torch.compile(K(), backend='eager')]\ndef work(x): return acts[0](x)",
        "class K:\n n = 3\n def __call__(self, x): return x * self.n\nacts = [torch.compile(K(), backend='eager')]\ndef work(x): return acts[0](x)"),
    "compiled method in a class": (
        "class K:\n n = 2\n def by(self, x): return x * self.n\nclass L: act = staticmethod(torch.compile(K().by, backend='eager'))\n"
        "def work(x): return L.act(x)",
        "class K:\n n = 3\n def by(self, x): return x * self.n\nclass L: act = staticmethod(torch.compile(K().by, backend='eager'))\n"
        "def work(x): return L.act(x)"),
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
    assert replays() == 1  # the code is the same, so it has the same entry


def test_code_of_a_function_with_a_cache_that_is_called_as_an_attribute_counts():
    def made(by: int) -> Any:
        source = f"def inner(x): return x * {by}\n"
        held: dict[str, Any] = {"__name__": "users_source"}
        exec(compile(source, "/users/source.py", "exec"), held)  # noqa: S102
        cache = types.SimpleNamespace(inner=wrap(held["inner"]))
        return lambda x: cache.inner(x)

    expect_apart(made(2), made(3))


def test_code_of_an_installed_class_that_is_patched_counts(monkeypatch):
    monkeypatch.setattr("warmgraph.reading._reached_code._INSTALLED", ("/installed/",))
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


# --- Wrong hits: PyTorch's own state


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
    """The same as torch.autocast("cuda"), but without a GPU."""
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
    monkeypatch.setattr("warmgraph.reading._reached_code._INSTALLED", ("/installed/",))
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


# --- operators that a function reaches by their names


def operator_of(factor: float, helper: float) -> Any:
    """A module with an operator that is registered with PyTorch as reports_of_tests::named."""
    made = types.ModuleType("reports_of_tests")
    exec(compile(f"""
import torch

def helper(x):
    return x * {helper}

@torch.library.custom_op("reports_of_tests::named", mutates_args=())
def named(x: torch.Tensor) -> torch.Tensor:
    return helper(x) * {factor}

@named.register_fake
def _(x):
    return torch.empty_like(x)
""", "/users/operators.py", "exec"), made.__dict__)
    return made


def by_name(x: Any) -> Any:
    return torch.ops.reports_of_tests.named(x) + 1


def by_another_name(x: Any) -> Any:
    return torch.ops.aten.mul(x, 2)


@pytest.mark.parametrize("factor, helper", [(3.0, 1.0), (2.0, 5.0)])
def test_the_code_of_an_operator_that_is_called_by_its_name_counts(factor, helper):
    kept, x = [operator_of(2.0, 1.0)], torch.arange(4.0)
    before, other = wrap(by_name), wrap(by_another_name)
    assert torch.equal(before(x), x * 2 + 1) and torch.equal(other(x), x * 2) and len(host.entries) == 2
    wrap(by_name)(x), wrap(by_another_name)(x)
    assert [one.captures is None for one in host.entries[2:]] == [True, True], "as it was"
    kept.append(operator_of(factor, helper))
    assert torch.equal(wrap(by_name)(x), x * helper * factor + 1) and host.entries[-1].captures is not None
    wrap(by_another_name)(x)
    assert host.entries[-1].captures is None and not refusal(before)


def library_of(folder: pathlib.Path, factor: float, text: str = "") -> Any:
    """A module in a file with an operator registered by torch.library.Library; `text`: more code for the file."""
    file = folder / "registered.py"
    file.write_text(f"""
import torch

lib = torch.library.Library("reports_of_tests", "FRAGMENT")
lib.define("plain(Tensor x) -> Tensor")
lib.impl("plain", lambda x: x * {factor}, "CPU")
{text}
""")
    made = types.ModuleType("registered")
    linecache.checkcache()
    exec(compile(file.read_text(), str(file), "exec"), made.__dict__)
    return made


def by_registered_name(x: Any) -> Any:
    return torch.ops.reports_of_tests.plain(x) + 1


def test_the_file_that_registers_an_operator_counts(tmp_path):
    x = torch.arange(4.0)
    for factor in (2.0, 3.0, 2.0):
        made = library_of(tmp_path, factor)
        for again in (False, True):
            result = wrap(by_registered_name)(x)
            is_recorded = host.entries[-1].captures is not None
            assert is_recorded == (not again and (factor == 3.0 or len(host.entries) == 1))
            assert not is_recorded or torch.equal(result, x * factor + 1)
        made.lib._destroy()


@pytest.mark.filterwarnings("ignore:.*only once for all operators")
def test_an_operator_of_pytorchs_that_is_replaced_counts(tmp_path):
    x = torch.arange(4.0)
    wrap(by_another_name)(x)
    made = library_of(tmp_path, 2.0, "other = torch.library.Library('aten', 'IMPL')\nother.impl('mul.Tensor', lambda x, y: x + y, 'CPU')")
    try:
        wrap(by_another_name)(x)
        assert host.entries[-1].captures is not None
    finally:
        made.lib._destroy(), made.other._destroy()
    wrap(by_another_name)(x)
    assert host.entries[-1].captures is None


def kernel_of(factor: float) -> Any:
    """Like operator_of, but the operator has its own kernel for the device."""
    made = types.ModuleType("reports_of_tests")
    exec(compile(f"""
import torch

@torch.library.custom_op("reports_of_tests::named", mutates_args=())
def named(x: torch.Tensor) -> torch.Tensor:
    raise NotImplementedError

@named.register_kernel("cpu")
def _(x):
    return x * {factor}
""", "/users/operators.py", "exec"), made.__dict__)
    return made


def test_a_kernel_that_is_registered_for_an_operator_counts():
    x, kept = torch.arange(4.0), []
    for factor in (2.0, 3.0):
        kept.append(kernel_of(factor))
        assert torch.equal(wrap(by_name)(x), x * factor + 1) and host.entries[-1].captures is not None
    wrap(by_name)(x)
    assert host.entries[-1].captures is None


def test_a_library_of_c_counts_by_its_build(tmp_path, monkeypatch):
    from warmgraph.torch.read import _custom_operators

    def built(build: bytes) -> None:
        (tmp_path / "ops.so").write_bytes(b"\x7fELF..." + _custom_operators._BUILD_ID + build * 20 + b"...mine\0fused_norm(Tensor x) -> Tensor\0")
        _custom_operators._build_with.cache_clear()

    monkeypatch.setattr(torch.ops, "loaded_libraries", {str(tmp_path / "ops.so")})
    built(b"a")
    before = _custom_operators._libraries_with("mine::fused_norm")
    assert before == (f"build {(b'a' * 20).hex()}",) and _custom_operators._libraries_with("mine::other") == ()
    built(b"b")
    assert _custom_operators._libraries_with("mine::fused_norm") != before
