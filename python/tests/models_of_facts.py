"""Ten PyTorch models, and one object without PyTorch. `facts()` returns the walker's facts about each of them as text; kept_facts.txt has
the accepted text, and test_torch_kept_facts.py compares them.

usage: models_of_facts.py [OUTPUT]  (without OUTPUT, it writes kept_facts.txt)
"""
from __future__ import annotations

import dataclasses
import enum
import functools
import pathlib
import re
import sys
import types
from typing import Any, Callable, Iterator

import numpy
import torch

from warmgraph.reading import _array_reader, _reached_code, _walker
from warmgraph.torch.read import _call_reader, _installed_code, _shared_modules, _tensors
from warmgraph.torch.replay import _regions

KEPT = pathlib.Path(__file__).with_name("kept_facts.txt")
_DIGEST = re.compile(r"\b[0-9a-f]{16,64}\b")  # digests of code objects, which differ between versions of Python
FACTOR = 3


class Mode(enum.Enum):
    fast = 1
    exact = "exact"
    both = (1, 2)


class Level(enum.IntFlag):
    low = 1
    high = 4


@dataclasses.dataclass
class Settings:
    width: int = 4
    names: tuple[str, ...] = ("a", "b")
    rates: dict[str, float] = dataclasses.field(default_factory=lambda: {"a": 0.5, "b": 0.25})
    mode: Mode = Mode.fast

    def __post_init__(self) -> None:
        self.note = "not a field"


class Slotted:
    __slots__ = ("left", "right", "__dict__")

    def __init__(self) -> None:
        self.left, self.right, self.more = 1, [2, 3], {"x": b"bytes"}


class Counts(dict):  # type: ignore[type-arg]
    scale = 2


class Doubled:
    def __init__(self, by: int) -> None:
        self.by = by

    def __call__(self, x: Any) -> Any:
        return x * self.by


class Described(torch.nn.Module):
    kind = "described"
    limits = [0, 1]
    table: dict[str, int] = {"a": 1}

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4, bias=False)
        self.settings, self.slotted, self.mode, self.level = Settings(), Slotted(), Mode.both, Level.low | Level.high
        self.space = types.SimpleNamespace(inner=Settings(width=8), again=self.settings, path=pathlib.PurePosixPath("a/b"))
        self.counts, self.found, self.part = Counts(a=1, b=2), {3, 1, 2}, functools.partial(Doubled(2), 1)
        self.pattern, self.dtype, self.long = re.compile("a+", re.IGNORECASE), torch.float16, "x" * 500
        self.keys = {Mode.fast: 1, (1, "a"): 2, Settings: 3, None: 4}
        self.act = torch.nn.functional.relu
        self.shape, self.device, self.itself = torch.Size([1, 2]), torch.device("cpu"), [self]

    @property
    def doubled(self) -> int:
        return 2 * self.settings.width

    def forward(self, x: Any) -> Any:
        scale = self.settings.width * self.doubled * self.space.inner.width * self.counts.scale * len(self.limits) * self.table["a"] * len(self.shape)
        held = self.slotted.left, self.slotted.right, self.slotted.more, self.mode, self.level, self.found, self.pattern, self.keys, self.long, self.itself
        return self.part(self.act(self.linear(x)) * scale * len(held) * FACTOR, self.space.path, self.space.again, self.device, self.dtype)


class Tied(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.head = torch.nn.Embedding(6, 4, padding_idx=0), torch.nn.Linear(4, 6, bias=False)
        self.head.weight = self.embedding.weight
        self.register_parameter("none", None)
        storage = torch.zeros(8)
        self.register_buffer("first", storage[:4])
        self.register_buffer("second", storage[2:6], persistent=False)
        self.caches = [torch.zeros(2, 2, dtype=torch.bfloat16), (torch.zeros(0), self.first)]
        self.first.mark = "kept"  # type: ignore[attr-defined]

    def forward(self, tokens: Any) -> Any:
        return self.head(self.embedding(tokens)) + self.caches[0].sum() + self.second[0]


class Kinds(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.parts = torch.nn.ModuleDict({"a": torch.nn.Linear(2, 2)})
        self.weights = torch.nn.ParameterList([torch.zeros(2), torch.nn.Parameter(torch.zeros(1), requires_grad=False)])
        self.named = torch.nn.ParameterDict({"x": torch.zeros(2, 2, dtype=torch.complex64), "y": torch.ones(1, dtype=torch.float64)})

    def forward(self, x: Any) -> Any:
        return self.parts["a"](x) * self.weights[0] * self.named["y"]


@functools.singledispatch
def scaled(value: Any) -> Any:
    return value * FACTOR


@scaled.register
def _(value: list) -> Any:  # type: ignore[type-arg]
    return [scaled(one) for one in value]


def hooked() -> torch.nn.Module:
    model, seen = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()), [1]

    def note(module: Any, args: Any, kwargs: Any, result: Any) -> Any:
        return result * seen[0]

    model[0].register_forward_hook(note, with_kwargs=True, always_call=True)
    model[1].register_forward_pre_hook(functools.partial(lambda factor, module, args: (args[0] * factor,), 2))
    model.register_buffer("steps", torch.zeros(1, dtype=torch.int64))
    return model.eval()


def compiled() -> torch.nn.Module:
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.GELU())
    model[0].compile(backend="eager", dynamic=False)
    return torch.compile(model, backend="aot_eager", options=None)  # type: ignore[no-any-return]


def closing() -> Callable[..., Any]:
    """A function that closes over a model, functions, arrays and another wrapper."""
    model, table, by = torch.nn.Linear(3, 3), numpy.arange(6, dtype=numpy.int32).reshape(2, 3), Doubled(5)
    options = {"scale": numpy.float32(2), "kind": numpy.dtype("f4"), "steps": range(3), "of": [None, ..., 1 + 2j, True, -0.0]}

    def inner(x: Any) -> Any:
        return x * options["scale"]

    def run(x: Any, factor: float = 0.5, *more: Any, **named: Any) -> Any:
        return by(inner(model(x))) * factor * table[0, 0] + scaled(1.0) + len(more) + len(named)

    return run


def run_module(module: Any, *args: Any, **kwargs: Any) -> Any:
    return module(*args, **kwargs)


def models() -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Returns (name, module or function, arguments) for each model."""
    x = torch.zeros(2, 4)
    yield "perceptron", torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.LayerNorm(8), torch.nn.Dropout(0.1)), {"x": x}
    yield "convolution", torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3, padding="same"), torch.nn.BatchNorm2d(2), torch.nn.MaxPool2d(2)).eval(), \
        {"x": torch.zeros(1, 1, 4, 4).to(memory_format=torch.channels_last)}
    yield "transformer", torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), 2, enable_nested_tensor=False), \
        {"x": x[None], "mask": None, "is_causal": False}
    yield "tied weights", Tied(), {"tokens": torch.zeros(3, dtype=torch.int64), "view": x[:, ::2], "again": [x, x]}
    yield "recurrent", torch.nn.LSTM(2, 3, num_layers=2, bidirectional=True), {"x": torch.zeros(1, 2), "state": (torch.zeros(4, 3), torch.zeros(4, 3))}
    yield "hooks", hooked(), {"x": x}
    yield "settings", Described(), {"x": x, "how": {"mode": Mode.exact, "at": Settings(width=1), "of": Slotted()}, "k": 7}
    yield "containers", Kinds(), {"x": torch.zeros(2), "few": ({"a": x}, [x.t()], types.SimpleNamespace(x=x[0]))}
    yield "compiled", compiled(), {"x": x}
    yield "function", closing(), {"x": torch.zeros(3), "factor": 0.25, "more": (1, "a"), "named": {"b": torch.ones(1)}}


def _lines(walker: _walker.Walker) -> Iterator[str]:
    yield from (f"{path} = {text}" for path, text in walker.found.facts.items())
    yield from (f"tensor {place.path} of {place.via}" for place in walker.places)
    yield from (f"{path} = {text}" for path, text in _regions.facts_of(_regions.regions_of_walk(walker), walker.parts).items())
    yield f"objects {' '.join(walker.objects)}"
    yield f"classes {' '.join(f'{_reached_code.name_of_class(kind)}:{int(made)}' for kind, made in walker.classes.items())}"
    yield f"functions {' '.join(one.__qualname__ for one in walker.functions.values())}"
    yield f"watched {len(walker.watched)} compiled {' '.join(sorted(walker.compiled_via))}"


def _read(model: Any, arguments: dict[str, Any], known: _shared_modules.SharedModules | None = None) -> _walker.Walker:
    function, owner = (run_module, model) if isinstance(model, torch.nn.Module) else (model, None)
    return _call_reader.read(_installed_code.TorchReachedCode(function), arguments, owner, known=known)[0]


def _without_torch() -> Iterator[str]:
    """The facts from the readers of arrays, for the object without PyTorch."""

    class Holder:
        limits = [0, 1]

        def __init__(self) -> None:
            self.settings, self.slotted, self.mode, self.small = Settings(), Slotted(), Mode.both, numpy.ones(3)
            self.counts, self.by, self.again = Counts(a=1), Doubled(2), [1, [2]]

        def run(self, x: Any, y: Any) -> Any:
            return x * self.settings.width * self.slotted.left * self.small[0] * self.counts.scale * self.by(1) * len(self.again) * len(self.limits), self.mode

    holder = Holder()
    one = numpy.zeros((2, 3), numpy.float32)
    found = _array_reader.read(_reached_code.ReachedCode(holder.run), {"x": one, "y": {"again": one, "of": [Settings(), scaled, Mode.fast]}}, holder)
    yield from (f"{path} = {text}" for path, text in found.facts.items())
    yield f"arrays {' '.join(path for path, _ in found.leaves())}"


def _on_another_device() -> Iterator[str]:
    """The facts of tensors on the host and on the device. Small host tensors are facts themselves."""
    before, _tensors.DEVICE_TYPE = _tensors.DEVICE_TYPE, "meta"
    try:
        model = torch.nn.Linear(2, 2, device="meta")
        model.scale, model.table = torch.ones(2), [torch.arange(3), numpy.arange(2)]  # type: ignore[assignment]
        yield from _lines(_read(model, {"x": torch.zeros(1, 2, device="meta")}))
    finally:
        _tensors.DEVICE_TYPE = before


def facts(has_digests: bool = False) -> str:
    """The facts of all models. has_digests: includes digests of code objects, which differ between versions of Python."""
    before, _tensors.DEVICE_TYPE = _tensors.DEVICE_TYPE, "cpu"
    try:
        torch.manual_seed(0)
        written = [f"PyTorch {torch.__version__.partition('+')[0]}"]
        for name, model, arguments in models():
            written += ["", f"--- {name}", *_lines(_read(model, arguments))]
            shared = list(_lines(_read(model, arguments, _shared_modules.SharedModules())))
            written += ["as a part: the same"] if sorted(shared) == sorted(written[-len(shared):]) else ["as a part:", *shared]
        written += ["", "--- tensors on the host", *_on_another_device(), "", "--- without PyTorch", *_without_torch()]
    finally:
        _tensors.DEVICE_TYPE = before
    text = "\n".join(written) + "\n"
    return text if has_digests else _DIGEST.sub("<digest>", text)


if __name__ == "__main__":
    from models_of_facts import KEPT, facts  # imported, so that classes have the same module name as in the tests

    if len(sys.argv) > 1:
        pathlib.Path(sys.argv[1]).write_text(facts(has_digests=True))
    else:
        KEPT.write_text(facts())
