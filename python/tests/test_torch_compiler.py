"""The guards of PyTorch's traces are compared with the reader's facts: ordinary code is not refused, and nothing is recorded that depends
on an unread value."""
from __future__ import annotations

import collections
import contextlib
import dataclasses
import enum
import functools
import inspect
import os
import sys
import sysconfig
import types
from typing import Any, Iterator, NamedTuple

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed here")

import torch_on_the_host as host  # noqa: E402
import warmgraph  # noqa: E402
from torch_on_the_host import refusal  # noqa: E402
from warmgraph.torch.read import _modules  # noqa: E402
from warmgraph.torch.record import _compiler  # noqa: E402

X = torch.ones(2, 4)
WIDTH, TABLE, FLAGS = 3, {"a": 2.0, "b": [1, 2]}, {"fast"}


@pytest.fixture(autouse=True)
def on_the_host(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    import torch._dynamo

    host.use(monkeypatch)
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of guards in each trace that is judged."""
    found: list[int] = []
    judge = _compiler.why_not_compared
    monkeypatch.setattr(_compiler, "why_not_compared", lambda trace, *rest: (found.append(len(trace)), judge(trace, *rest))[1])
    return found


def wrap(function: Any, compile: Any = None, **options: Any) -> Any:
    return warmgraph.cache_compile(function, compile=compile or {"backend": "eager"}, config=warmgraph.Config(model="net"), **options)


class Kind(enum.Enum):
    relu = "relu"
    gelu = "gelu"


class Pair(NamedTuple):
    left: Any
    right: int


@dataclasses.dataclass
class Settings:
    width: int = 3
    kind: Kind = Kind.relu
    more: Any = dataclasses.field(default_factory=lambda: {"eps": 0.5, "sizes": (1, 2)})
    dtype: Any = torch.float32


class Plain:
    factor = 2.0

    def __init__(self) -> None:
        self.width, self.names, self.child = 3, ["a", "b"], None

    @property
    def doubled(self) -> int:
        return self.width * 2

    @staticmethod
    def fixed(x: Any) -> Any:
        return x + 1

    @classmethod
    def made(cls, x: Any) -> Any:
        return x * cls.factor

    def __call__(self, x: Any) -> Any:
        return x + len(self.names) + self.doubled


def helper(x: Any, by: float = 2.0, *, shift: int = 1) -> Any:
    return x * by + shift


class Base(torch.nn.Module):
    scale = 2

    def act(self, x: Any) -> Any:
        return torch.relu(x) if self.training else x


class Layer(Base):
    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.linear, self.settings, self.options = torch.nn.Linear(4, 4), settings, {"bias": True}
        self.register_buffer("table", torch.ones(4), persistent=False)

    def forward(self, x: Any, mask: Any = None, **rest: Any) -> Any:
        if self.settings.kind is Kind.relu and self.options.get("bias"):
            x = torch.relu(x)
        if mask is not None and not hasattr(self, "missing"):
            x = x + mask
        for name, value in self.settings.more.items():
            if name == "eps":
                x = x + value
        return super().act(self.linear(x)) * self.scale + self.table + self.settings.width


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.settings = Settings()
        self.layers = torch.nn.ModuleList([Layer(self.settings) for _ in range(2)])
        self.by_name = torch.nn.ModuleDict({"head": torch.nn.Linear(4, 4)})
        self.norms, self.plain = [torch.nn.LayerNorm(4)], Plain()
        self.bias = torch.nn.Parameter(torch.zeros(4))

    def forward(self, x: Any, keyword: Any = None) -> Any:
        for i, layer in enumerate(self.layers):
            x = layer(x, mask=None if i else x, extra=1)
        for layer in self.norms:
            x = layer(x)
        return self.plain(Plain.made(Plain.fixed(self.by_name["head"](x) + self.bias)))


class Convolutions(torch.nn.Module):
    """Layers in the form that torchvision uses."""

    class Block(torch.nn.Module):
        expansion: int = 2

        def __init__(self, width: int, stride: int = 1) -> None:
            super().__init__()
            nn = torch.nn
            self.conv1, self.bn1 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
            self.conv2, self.bn2 = nn.Conv2d(width, width * self.expansion, 1, bias=False), nn.BatchNorm2d(width * self.expansion)
            self.relu, self.stride = nn.ReLU(inplace=True), stride
            self.downsample = nn.Sequential(nn.Conv2d(width, width * self.expansion, 1, stride), nn.BatchNorm2d(width * self.expansion))

        def forward(self, x: Any) -> Any:
            found = self.relu(self.bn1(self.conv1(x)))
            found = self.bn2(self.conv2(found))
            found += self.downsample(x) if self.downsample is not None else x
            return self.relu(found)

    def __init__(self) -> None:
        super().__init__()
        nn = torch.nn
        self.stem = nn.Sequential(nn.Conv2d(3, 4, 7, 2, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        self.layer1, self.layer2 = self.Block(4), self.Block(8, 2)
        self.pool, self.head = nn.AdaptiveAvgPool2d((1, 1)), nn.Linear(16, 10)
        self.drop = nn.Dropout(0.5)

    def forward(self, x: Any) -> Any:
        x = self.layer2(self.layer1(self.stem(x)))
        return self.head(self.drop(torch.flatten(self.pool(x), 1)))


def llama(attention: str) -> Any:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed here")
    config = transformers.LlamaConfig(vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
                                      num_key_value_heads=2, max_position_embeddings=64, attn_implementation=attention)
    model = transformers.LlamaForCausalLM(config).eval()
    cache = transformers.StaticCache(config=config, max_cache_len=64)
    given = {"input_ids": torch.zeros(2, 1, dtype=torch.int64), "position_ids": torch.zeros(1, 1, dtype=torch.int64)}
    if "cache_position" in inspect.signature(model.forward).parameters:  # else transformers 4 reads a tensor, which cannot be traced
        given["cache_position"] = torch.zeros(1, dtype=torch.int64)
    with torch.no_grad():
        model(**given, past_key_values=cache, use_cache=True)
    return model, (), {**given, "past_key_values": cache, "use_cache": True}


MODELS: dict[str, Any] = {
    "llama with sdpa": lambda: llama("sdpa"), "llama, eager attention": lambda: llama("eager"),
    "convolutions": lambda: (Convolutions().eval(), (torch.randn(2, 3, 32, 32),), {}),
    "encoder": lambda: (torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2).eval(),
                        (torch.randn(2, 3, 8),), {}),
    "encoder in training": lambda: (torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0), (torch.randn(2, 3, 8),), {}),
    "decoder": lambda: (torch.nn.TransformerDecoder(torch.nn.TransformerDecoderLayer(8, 2, 16), 2).eval(),
                        (torch.randn(3, 2, 8), torch.randn(3, 2, 8)), {}),
    "transformer": lambda: (torch.nn.Transformer(8, 2, 1, 1, 16).eval(), (torch.randn(3, 2, 8), torch.randn(3, 2, 8)), {}),
    "attention": lambda: (torch.nn.MultiheadAttention(8, 2).eval(), (torch.randn(3, 2, 8),) * 3, {"need_weights": False}),
    "embedding bag": lambda: (torch.nn.EmbeddingBag(8, 4), (torch.zeros(2, 3, dtype=torch.int64),), {}),
    "sequential": lambda: (torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.GELU(), torch.nn.Flatten(), torch.nn.Identity()), (X,), {}),
    "of the user's": lambda: (Net(), (X,), {}),
    "a layer of the user's": lambda: (Layer(Settings()).eval(), (X,), {"mask": X, "other": 3}),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("form", ["ours", "method", "torch.compile", "in place", "compiled method"])
def test_models_are_not_refused(name, form, judged):
    model, args, kwargs = MODELS[name]()
    compiled = {"backend": "eager", "fullgraph": True}
    if form == "in place":
        model.compile(**compiled)
    wrapped = {"ours": lambda: model, "in place": lambda: model, "method": lambda: model.forward,
               "torch.compile": lambda: torch.compile(model, **compiled), "compiled method": lambda: torch.compile(model.forward, **compiled)}[form]()
    cached = wrap(wrapped)
    with torch.no_grad():
        cached(*args, **kwargs)
    assert not refusal(cached) and len(host.entries) == 1
    is_never_traced = form == "in place" and type(model).__module__.startswith("torch.")  # PyTorch calls such modules without a trace
    assert is_never_traced or judged and judged[0] > 10


def test_what_functions_use_is_not_refused(judged):
    offset, inner = torch.ones(4), Plain()
    by = functools.partial(helper, by=3.0)

    def nested(x: Any) -> Any:
        return x + offset

    @functools.wraps(helper)
    def wrapper(x: Any) -> Any:
        return helper(x)

    def work(x: Any, settings: Any, pair: Any, *more: Any, flag: bool = True, table: Any = {"z": 1}, **rest: Any) -> Any:
        x = nested(by(wrapper(inner(x)))) * WIDTH + TABLE["a"] + sum(TABLE["b"]) + len(FLAGS)
        if flag and settings.kind == Kind.relu and isinstance(settings, Settings) and "fast" in FLAGS:
            x = x.to(settings.dtype) + settings.more["sizes"][1]
        left, right = pair
        for key in sorted(rest):
            x = x + rest[key]
        with torch.autocast("cpu", enabled=False), contextlib.nullcontext():
            x = x + left * right + more[0] + [i for i in range(3)][-1]
        return collections.OrderedDict(x=x, n=x.shape[0] * inner.width)

    cached = wrap(work)
    for _ in range(2):
        cached(X, Settings(), Pair(X, 2), 3, a=1, b=2.0)
    assert not refusal(cached) and len(host.entries) == 1 and judged


@pytest.mark.parametrize("work", [
    lambda x: torch.utils._pytree.tree_map(lambda one: one + 1, {"a": x, "b": [x]})["a"],
    lambda x: torch.utils._pytree.tree_map(lambda one: one + 1, Pair(x, x)).left,
    lambda x: x + (torch.get_device_module("cpu") is torch.cpu),
], ids=["tree of a dict", "tree of a named tuple", "module of a device"])
def test_modules_that_pytorch_imports_itself_are_not_refused(work, judged):
    cached = wrap(work)
    cached(X)
    assert not refusal(cached) and len(host.entries) == 1 and judged


def test_functions_with_graph_breaks_are_not_refused():
    def work(x: Any) -> Any:
        y = x + WIDTH
        torch._dynamo.graph_break()
        return helper(y) * TABLE["a"]

    cached = wrap(work, {"backend": "eager", "fullgraph": False})
    cached(X)
    assert not refusal(cached) and len(host.entries) == 1


# --- refusals


class Hidden:
    """A user's class, whose attributes count only when code names them."""

    limit = 5

    def __init__(self, width: int) -> None:
        self.width, self.prefix = width, "wid"


def test_an_attribute_with_a_computed_name_is_refused_in_words():
    def work(x: Any, of: Any) -> Any:
        return x * getattr(of, of.prefix + "th")

    cached = wrap(work)
    for width in (3, 4, 5):
        assert torch.equal(cached(X, Hidden(width)), X * width)
    assert not host.entries and "PyTorch compiled it for the value of of.width, which is not compared" in refusal(cached)


def test_an_attribute_of_a_class_with_a_computed_name_is_refused():
    def work(x: Any, of: Any) -> Any:
        return x * getattr(of, "".join(["lim", "it"]))

    cached = wrap(work)
    cached(X, Hidden(3))
    assert not host.entries and "of.limit" in refusal(cached)


def test_a_global_of_another_module_with_a_computed_name_is_refused(monkeypatch):
    module = types.ModuleType("users_settings")
    module.__file__, module.SCALE = "/users/settings.py", 3
    monkeypatch.setitem(sys.modules, "users_settings", module)

    def work(x: Any) -> Any:
        return x * getattr(module, "".join(["SC", "ALE"]))

    cached = wrap(work)
    assert torch.equal(cached(X), X * 3)
    assert not host.entries and "SCALE" in refusal(cached)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Any:
    """A module of an installed package. Each test uses another name, because Dynamo keeps modules by name."""
    name = f"installed_{request.node.name}"
    module = types.ModuleType(name)
    module.__file__ = f"{sysconfig.get_paths()['purelib']}/{name}.py"
    monkeypatch.setitem(sys.modules, name, module)
    source = "TABLE = {}\nOWN = {'double': lambda x: x * 2}\ndef act(x, name): return (TABLE if name in TABLE else OWN)[name](x)"
    exec(compile(source, module.__file__, "exec"), vars(module))  # noqa: S102
    return module


def test_a_function_that_the_user_put_into_an_installed_package_is_refused(installed):
    act = installed.act

    def work(x: Any, name: str) -> Any:
        return act(x, name)

    cached = wrap(work)
    assert torch.equal(cached(X, "double"), X * 2) and len(host.entries) == 1 and not refusal(cached)
    installed.TABLE["triple"] = lambda x: x * 3
    other = wrap(work, version="another")
    assert torch.equal(other(X, "triple"), X * 3)
    assert len(host.entries) == 1 and "the function" in refusal(other) and "TABLE" in refusal(other)


def test_a_tensor_of_an_installed_package_is_refused_by_its_name(installed):
    vars(installed).update(torch=torch, SCALE=torch.ones(4))
    exec("def act(x, name): return x * SCALE", vars(installed))  # noqa: S102
    act = installed.act
    cached = wrap(lambda x: act(x, "none"))
    cached(X)
    assert not host.entries and "the tensor" in refusal(cached) and "SCALE" in refusal(cached)


def test_a_variable_of_the_environment_is_refused_where_it_is_no_guard(monkeypatch):
    monkeypatch.setenv("FACTOR", "3")

    def work(x: Any) -> Any:
        return x * len(os.environ["FACTOR"])

    cached = wrap(work)
    cached(X)
    assert not host.entries and "FACTOR" in refusal(cached) and "Config.environment" in refusal(cached)
    torch._dynamo.reset()
    listed = warmgraph.cache_compile(work, compile={"backend": "eager"}, config=warmgraph.Config(model="net", environment=["FACTOR"]))
    listed(X)
    assert len(host.entries) == 1 and not refusal(listed)


def test_what_was_refused_once_is_refused_where_nothing_is_traced_again():
    def work(x: Any, of: Any, more: Any) -> Any:
        return x * getattr(of, of.prefix + "th")

    cached, of = wrap(work), Hidden(3)
    cached(X, of, {"a": 1})
    cached(X, of, {"a": 2})  # a call with other facts, but with the same trace
    assert not host.entries and "of.width" in refusal(cached)


def test_a_trace_of_a_call_that_was_not_recorded_is_judged_at_the_next_one():
    def work(x: Any, of: Any) -> Any:
        return x * getattr(of, of.prefix + "th")

    cached, of = wrap(work), Hidden(3)
    with monkeypatched_policy(cached, "read_only"):
        cached(X, of)
    cached(X, of)
    assert not host.entries and "of.width" in refusal(cached)


@contextlib.contextmanager
def monkeypatched_policy(cached: Any, policy: str) -> Iterator[None]:
    before = cached.options.config.policy
    cached.options.config.policy = policy
    yield
    cached.options.config.policy = before


def test_a_trace_of_another_kind_of_call_says_nothing_of_this_one():
    class Other:
        def __init__(self) -> None:
            self.height = 2

    def work(x: Any, of: Any) -> Any:
        return x * (of.height if isinstance(of, Other) else getattr(of, of.prefix + "th"))

    cached = wrap(work)
    cached(X, Hidden(3))
    assert "of.width" in refusal(cached)
    cached(X, Other())
    assert len(host.entries) == 1


def test_each_trace_is_judged_once_for_an_object(judged):
    cached = wrap(lambda x: x * WIDTH, {"backend": "eager", "dynamic": False})
    for rows in (2, 3, 4, 5):
        cached(torch.ones(rows, 4))
    assert len(host.entries) == len(judged) == 4


def test_an_entry_that_cannot_be_read_does_not_stop_the_compilation(monkeypatch):
    monkeypatch.setattr(_compiler, "Guard", lambda *_: 1 / 0)
    cached = wrap(lambda x: x * WIDTH)
    assert torch.equal(cached(X), X * WIDTH) and not refusal(cached)


# --- Ways of asking


@pytest.mark.parametrize("options", [{"backend": "eager", "mode": "default"}, {"backend": "aot_eager", "dynamic": False},
                                     {"backend": lambda graph, inputs: graph.forward}], ids=["mode", "aot_eager", "function"])
def test_guards_are_seen_with_any_backend_and_mode(options, judged):
    cached = wrap(lambda x: x * WIDTH, options)
    cached(X)
    assert judged and not refusal(cached)


def test_a_filter_of_the_callers_stays_and_is_called(judged):
    seen: list[int] = []

    def keep(entries: Any) -> Any:
        seen.append(len(entries))
        return [True] * len(entries)

    compiled = torch.compile(lambda x: x * WIDTH, backend="eager", options={"guard_filter_fn": keep})
    cached = wrap(compiled)
    cached(X)
    assert seen == judged and _modules.context_of(compiled)._hooks.guard_filter_fn is keep


def test_kinds_of_guards_that_need_nothing_are_kinds_that_there_are():
    from torch._dynamo.guards import GuardBuilder

    assert [name for name in _compiler._NEED_NOTHING if not hasattr(GuardBuilder, name)] == []


def test_an_unknown_kind_on_an_unknown_source_is_refused_and_on_a_known_one_is_not():
    class OddSource:
        name = "odd(7)"

    class LocalSource:
        name, local_name = "L['x']", "x"

    from warmgraph.torch.read import _call_reader, _installed_code

    def work(x: Any) -> Any:
        return x

    walker, _ = _call_reader.read(_installed_code.TorchReachedCode(work), {"x": X}, None)
    frame = _compiler.Frame({"x": X}, work.__globals__)
    assert "odd(7)" in _compiler.why_not_compared([_compiler.Guard("ODD_MATCH", OddSource())], walker, frame)
    assert _compiler.why_not_compared([_compiler.Guard("ODD_MATCH", LocalSource())], walker, frame) == ""


def test_an_older_pytorch_without_such_a_filter_is_not_asked(monkeypatch):
    monkeypatch.setattr(_modules, "context_of", lambda compiled: None)
    cached = wrap(lambda x: x * WIDTH)
    cached(X)
    assert not refusal(cached) and len(host.entries) == 1
