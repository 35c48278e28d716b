"""Random numbers of the host that a function draws and does not read (layer drop): it is recorded, and a replay draws as many. No GPU is
needed."""
from __future__ import annotations

import json
import random
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed here")
numpy = pytest.importorskip("numpy")

import torch_on_the_host as host  # noqa: E402
import warmgraph  # noqa: E402
from torch_on_the_host import refusal, wrap  # noqa: E402
from warmgraph import errors  # noqa: E402
from warmgraph.torch import GraphCache  # noqa: E402
from warmgraph.torch.record import _host_numbers, _operators  # noqa: E402
from warmgraph.torch.replay import _host_draws, _outputs  # noqa: E402

WHY = "it draws random numbers on the host (torch)"
X = torch.arange(8.0)


@pytest.fixture(autouse=True)
def on_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    host.use(monkeypatch)
    monkeypatch.setattr(_operators, "compiled_graphs", lambda: 0)  # other tests may have compiled functions


class Encoder(torch.nn.Module):
    """Draws a number for each layer, as the encoders of transformers do, and reads it only in training."""

    def __init__(self, layers: int = 24) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(8, 8) for _ in range(layers))

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            drop_probability = torch.rand([])
            skip_the_layer = self.training and drop_probability < 0.1
            if not skip_the_layer:
                x = layer(x)
        return x


def after(work: Any, seed: int = 7) -> Any:
    """The next number of the host's generator after `work`."""
    torch.manual_seed(seed)
    with torch.no_grad():
        work()
    return torch.rand(2)


# --- Recorded


def test_a_layer_drop_that_reads_nothing_is_recorded_and_each_call_draws_as_many_numbers():
    net = Encoder().eval()
    cached, further = wrap(net), wrap(net)
    for seed, call in enumerate([cached] * 4 + [further] * 2):  # recorded, read, replayed like the call before; then as another process
        assert torch.equal(after(lambda: call(X), seed), after(lambda: net(X), seed)), f"call {seed}"
    assert refusal(cached) == refusal(further) == "" and [entry.captures is not None for entry in host.entries] == [True, False]
    assert [len(entry.calls) for entry in host.entries] == [3, 2], "the others are replays"


def test_numbers_for_many_layers_are_drawn_at_once():
    wrap(Encoder(24).eval())(X)
    assert json.loads(*host.kept.values())["host_draws"] == [["rand", "default", [[24]], [["device", {"device": "cpu"}], ["pin_memory", False]]]]


@pytest.mark.parametrize("work", [
    lambda: (torch.rand(3), torch.rand(3, dtype=torch.float64), torch.rand(2, dtype=torch.float64)),
    lambda: (torch.randn(3), torch.rand([])), lambda: torch.randn(17), lambda: torch.randperm(5), lambda: torch.randint(2, 9, (3, 2)),
    lambda: torch.normal(0.5, 2.0, (3,)), lambda: torch.rand(5000)])
def test_each_operator_that_makes_such_a_tensor_is_drawn_again(work):
    def drawing(x: Any) -> Any:
        work()
        return x + 1

    cached = wrap(drawing)
    assert all(torch.equal(after(lambda: cached(X), seed), after(work, seed)) for seed in range(4))
    assert refusal(cached) == "" and len(host.entries) == 1 and len(host.entries[0].calls) == 3


def test_a_call_that_is_not_launched_draws_only_what_the_function_draws(monkeypatch):
    net = Encoder().eval()
    cached = wrap(net)
    cached(X)

    def failing(self: Any, stream: int, args: Any = None) -> str:
        raise errors.NotRecordable("not now")

    monkeypatch.setattr(host.FakeEntry, "launch", failing)
    assert torch.equal(after(lambda: cached(X)), after(lambda: net(X))) and refusal(cached) == "not now"


def test_numbers_in_a_generator_that_is_put_back_may_be_read():
    def work(x: Any) -> Any:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(1)
            return x * (2 if torch.rand([]) < 2 else 3)

    cached = wrap(work)
    assert torch.equal(cached(X), X * 2) and refusal(cached) == "" and len(host.entries) == 1


# --- Refused

def by_address(one: Any) -> Any:
    return one.data_ptr()


READ = {
    "branch": lambda x: x * 2 if torch.rand([]) < 2 else x,
    "truth": lambda x: x * 2 if torch.rand([]) else x,
    "number": lambda x: x * (2 if torch.rand([]).item() < 2 else 1),
    "float": lambda x: x * (2 if float(torch.rand([])) < 2 else 1),
    "list": lambda x: x * (2 if torch.rand(3).tolist()[0] < 2 else 1),
    "array": lambda x: x * (2 if torch.rand(3).numpy()[0] < 2 else 1),
    "converted array": lambda x: x * (2 if numpy.asarray(torch.rand(3))[0] < 2 else 1),
    "text": lambda x: x * (2 if str(torch.rand(3)) else 1),
    "address": lambda x: x * (2 if by_address(torch.rand(3)) else 1),
    "storage": lambda x: x * (2 if torch.rand(3).untyped_storage()[0] < 256 else 1),
    "operator": lambda x: x * 2 + torch.rand(8) * 0,
    "operator by its own name": lambda x: x * 2 + torch.ops.aten.mul.Scalar(torch.rand(8), 0),
    "without functions of subclasses": lambda x: x * 2 + without_functions(torch.rand(8)),
    "list of tensors": lambda x: x * 2 + torch.stack([torch.rand(8)])[0] * 0,
    "shape": lambda x: x * (2 if torch.rand(3).shape[0] == 3 else 1),
    "view": lambda x: x * (2 if torch.rand(3).view(3)[0] < 2 else 1),
    "order": lambda x: x * 2 + x[torch.randperm(8)] * 0,
}
NOT_ALIKE = {
    "kept": lambda x: (setattr(torch, "_kept_by_a_test", torch.rand([])), x * 2)[1],
    "memory is kept": lambda x: (setattr(torch, "_kept_by_a_test", torch.rand([]).numpy()), x * 2)[1],
    "in place": lambda x: (torch.empty(3).uniform_(), x * 2)[1],
    "like another": lambda x: (torch.rand_like(torch.empty(3)), x * 2)[1],
    "dropout": lambda x: (torch.nn.functional.dropout(x), x * 2)[1],
    "seed": lambda x: (torch.manual_seed(3), torch.rand([]), x * 2)[2],
    "seed without a number": lambda x: (torch.default_generator.manual_seed(3), x * 2)[1],
    "more in a capture": lambda x: ([torch.rand([]) for _ in range(1 + host.is_captured())], x * 2)[1],
    "another in a capture": lambda x: (torch.rand([2]) if host.is_captured() else (torch.rand([]), torch.rand([])), x * 2)[1],
    "none in a capture": lambda x: (host.is_captured() or torch.rand([]), x * 2)[1],
}


def without_functions(one: Any) -> Any:
    with torch._C.DisableTorchFunctionSubclass():
        return one * 0


@pytest.mark.parametrize("name", [*READ, *NOT_ALIKE])
def test_numbers_that_are_read_or_drawn_otherwise_in_a_capture_refuse_the_recording(name, monkeypatch):
    monkeypatch.setattr(torch, "_kept_by_a_test", None, raising=False)
    work, results = {**READ, **NOT_ALIKE}[name], []
    cached = wrap(lambda x: work(x))
    for seed in range(2):
        now = after(lambda: results.append(cached(X)), seed)
        assert torch.equal(results[-1], X * 2) and torch.equal(now, after(lambda: work(X), seed))
    assert WHY in refusal(cached) and not host.entries
    assert (" and reads them (" in refusal(cached)) == (name in READ)


def test_the_message_names_what_reads_them():
    for work, name in ((lambda x: x if torch.rand([]) < 2 else x * 2, "lt"), (lambda x: x + torch.rand(3).shape[0], "shape"),
                       (lambda x: (torch.rand(3).numpy(), x)[1], "numpy")):
        cached = wrap(work)
        cached(X)
        assert f"{WHY} and reads them ({name}), which a replay would not draw: pass them" in refusal(cached)


def test_a_use_that_hides_its_error_is_noted_all_the_same():
    def work(x: Any) -> Any:
        try:
            torch.rand(3).numpy().resize(0)
        except Exception:
            pass
        return x * 2

    cached = wrap(work)
    cached(X)
    assert WHY in refusal(cached) and not host.entries


def test_a_returned_number_is_refused_for_the_result(monkeypatch):
    monkeypatch.setattr(host._tensors, "DEVICE_TYPE", "cuda")
    cached = wrap(lambda x: (x * 2, torch.rand([])))
    cached(X)
    assert refusal(cached) and not host.entries


@pytest.mark.parametrize("name, draw", [("random", lambda: random.random()), ("numpy.random", lambda: numpy.random.rand())])
def test_numbers_of_other_generators_stay_refused(name, draw):
    cached = wrap(lambda x: (draw(), torch.rand([]), x * 2)[2])
    cached(X)
    assert f"it draws random numbers on the host ({name}), which" in refusal(cached) and not host.entries


def test_pairs_and_engines_stay_refused():
    net = Encoder(2).eval()
    cached = wrap(net, pair=True)
    cached(X)
    assert WHY in refusal(cached) and not host.entries
    graph, _ = GraphCache(config=warmgraph.Config(model="engine")).capture_one(4, lambda x=X.clone(): (torch.rand([]), x * 2)[1])
    assert graph.outcome == "captured" and WHY in graph.why and not host.entries


def test_training_is_refused_because_it_reads_the_numbers():
    cached = wrap(Encoder(2).train())
    cached(X)
    assert WHY + " and reads them (lt)" in refusal(cached)


# --- Its parts


def test_the_place_of_a_tensor_is_transparent():
    uses: list[str] = []
    tensor = torch.rand(3)
    one = _host_numbers.UnreadTensor.of(tensor, uses)
    assert isinstance(one, torch.Tensor) and not uses
    assert one.tolist() == tensor.tolist() and torch.equal(one, tensor) and uses == ["tolist", "equal"]


def test_metadata_has_the_draws_and_older_metadata_has_none():
    how = {"dtype": torch.float64, "layout": torch.strided, "device": torch.device("cpu")}
    draws = [_host_draws.HostDraw(torch.ops.aten.rand.default, [[2]], how),
             _host_draws.HostDraw(torch.ops.aten.normal.float_float, [0.5, 2.0, [3]], {"dtype": None})]
    described = _outputs.ResultDescription({"plain": 1}, [], [])
    text = _outputs.to_text(described, [], 0, {}, draws)
    assert _outputs.from_text(text).host_draws == tuple(draws)
    assert "host_draws" not in _outputs.to_text(described, [], 0, {}) and _outputs.from_text(_outputs.to_text(described, [], 0, {})).host_draws == ()


@pytest.mark.parametrize("raw", [
    [["mul", "Tensor", [1, 2], []]], [["nothing", "default", [], []]], [["rand", "default", [[1]], [["dtype", {"dtype": "rand"}]]]],
    [["rand", "default", [[1]], [["dtype", {"load": "rand"}]]]], [["rand"]], 3, [["rand", "default", [[1]], [["device", {"device": "where"}]]]]])
def test_other_draws_in_metadata_are_damage(raw):
    text = json.loads(_outputs.to_text(_outputs.ResultDescription({"plain": 1}, [], []), [], 0, {}))
    with pytest.raises(errors.Corrupt):
        _outputs.from_text(json.dumps({**text, "host_draws": raw}))
