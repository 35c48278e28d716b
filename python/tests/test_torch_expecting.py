"""What a first call will meet is read before it, as the last entry says it. A wrong guess costs time alone."""
from __future__ import annotations

import inspect
import json
import sys
import sysconfig
import types
from typing import Any, Iterator

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed here")

import torch_on_the_host as host  # noqa: E402

import warmgraph  # noqa: E402
from warmgraph import _ahead  # noqa: E402
from warmgraph.torch import _code, _declarations, _expecting, _guessing, _modes  # noqa: E402


def doubled(x: Any) -> Any:
    return x * 2


class Scale(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(4))
        self.act = doubled

    def forward(self, x: Any) -> Any:
        return self.act(x) * self.weight


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = Scale()

    def step(self, x: Any) -> Any:
        return self.scale(x) + 1


CONFIG = warmgraph.Config(model="expecting")


@pytest.fixture(autouse=True)
def on_the_host(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Iterator[None]:
    host.use(monkeypatch)
    monkeypatch.setattr(_modes, "settle", lambda index: None)
    monkeypatch.setenv("WARMGRAPH_CACHE_DIR", str(tmp_path))
    with torch.no_grad():
        yield


def wrapped(function: Any = Net.step, **more: Any) -> Any:
    return warmgraph.cache_compile(function, compile=False, config=CONFIG, **more)


def recorded(function: Any = Net.step, *args: Any) -> dict[str, Any]:
    """What its entry says that it met."""
    args = args or (Net(), torch.ones(4))
    one = wrapped(function)
    one(*args) if isinstance(args[0], torch.Tensor) else one.__get__(args[0])(*args[1:])
    assert host.entries[-1].captures is not None, one._shared.last_refusal
    return json.loads(host.latest[function.__name__])["met"]


def prepared(one: Any) -> Any:
    for _ in _expecting.prepared(one, 0):
        pass
    return one._shared.reached_ahead


@pytest.fixture
def guesses(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One for each time that a call looks itself for what it will meet."""
    found: list[int] = []
    guessed = _guessing.guessed
    monkeypatch.setattr(_guessing, "guessed", lambda *args: found.append(1) or guessed(*args))
    return found


def test_an_entry_says_which_classes_and_functions_its_call_met() -> None:
    here = __name__
    assert recorded() == {"classes": [[here, "Net", False], [here, "Scale", False]], "functions": [[here, "doubled"]]}


class Made:
    level = 2

    @staticmethod
    def halved(x: Any) -> Any:
        return x / 2


class Making(Net):
    def __init__(self) -> None:
        super().__init__()
        self.kind = Made
        self.half = Made.halved

    def step(self, x: Any) -> Any:
        return self.half(self.scale(x)) * self.kind().level


def test_classes_that_code_makes_objects_of_and_static_methods_are_found_again(guesses: list[int]) -> None:
    assert recorded(Making.step, Making(), torch.ones(4)) == {
        "classes": [[__name__, "Making", False], [__name__, "Scale", False], [__name__, "Made", True]], "functions": [[__name__, "doubled"], [__name__, "Made.halved"]]}
    del guesses[:]
    one = wrapped(Making.step)
    assert prepared(one) is not None
    one.__get__(Making())(torch.ones(4))
    assert host.entries[-1].captures is None and guesses == []
    assert one._shared.torchs.reached.latest()._classes[Made] is True


def test_the_first_call_takes_what_was_read_before(guesses: list[int]) -> None:
    recorded()
    del guesses[:]
    _declarations._declared.cache_clear()
    one = wrapped()
    assert prepared(one) is not None
    assert _declarations._declared.cache_info().misses == 1, "its output"
    result = one.__get__(Net())(torch.ones(4))
    assert host.entries[-1].captures is None, "it was found"
    assert _declarations._declared.cache_info()[:2] == (1, 1)
    assert guesses == [] and one._shared.reached_ahead is None
    assert result.shape == (4,)
    other = wrapped()
    other.__get__(Net())(torch.ones(4))
    assert guesses == [1] and host.entries[-1].captures is None, "the same without it"


def test_a_methods_signature_is_that_of_the_bound_one() -> None:
    recorded()
    one = wrapped()
    prepared(one)
    bound = one.__get__(Net())
    assert one._shared.signature == inspect.signature(types.MethodType(Net.step, Net())) == inspect.signature(bound)
    assert bound(x=torch.ones(4)).shape == (4,)


def test_a_function_that_takes_nothing_has_no_methods() -> None:
    one = wrapped(lambda: Net().step(torch.ones(4)))
    one.sign_ahead()
    assert one._shared.signature is None


def test_what_was_read_before_says_what_the_call_would_read() -> None:
    recorded()
    one, other = wrapped(), wrapped()
    reached = prepared(one).latest()
    other.__get__(Net())(torch.ones(4))
    read = other._shared.torchs.reached.latest()
    assert reached is not read and reached.reads_as(read)
    assert reached._digest[0] > 0, "it is there by then"
    assert reached.digest() == read.digest() and reached.packages == read.packages


_installed: dict[str, Any] = {"__name__": "far_away.at"}
exec(compile("def same(x): return x", f"{sysconfig.get_paths()['purelib']}/far_away/at.py", "exec"), _installed)
same = _installed["same"]


def of_a_package(x: torch.Tensor) -> torch.Tensor:
    return same(x) + doubled(x) + Scale()(x)


def test_versions_of_the_packages_that_its_code_names_are_known_before(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Net()

    def step(x: torch.Tensor) -> torch.Tensor:
        return model.step(of_a_package(x))

    recorded(step, torch.ones(4))
    monkeypatch.setattr(_code, "_versions", {})
    assert prepared(wrapped(step)) is not None
    assert _code._versions["far_away"] == "unknown"


def test_code_that_is_another_one_by_then_is_read_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded()
    one = wrapped()
    assert prepared(one) is not None
    monkeypatch.setattr(Scale, "forward", lambda self, x: x - self.weight)
    one.__get__(Net())(torch.ones(4))
    assert host.entries[-1].captures is not None, "another function"


def test_the_function_itself_may_be_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded()
    one = wrapped()
    assert prepared(one) is not None

    def step(self: Any, x: Any) -> Any:
        return self.scale(x) - 1

    monkeypatch.setattr(Net.step, "__code__", step.__code__)
    model = Net()
    assert torch.equal(one.__get__(model)(torch.ones(4)), model.scale(torch.ones(4)) - 1)
    assert host.entries[-1].captures is not None


def test_another_model_than_the_last_ones_is_read_as_it_is(guesses: list[int]) -> None:
    recorded()
    count = len(host.entries)

    class Other(Net):
        def __init__(self) -> None:
            super().__init__()
            self.more = torch.nn.Linear(4, 4)

        def step(self, x: Any) -> Any:
            return self.more(self.scale(x))

    one = wrapped(Other.step)
    assert prepared(one) is not None, "the last entry of this name"
    model = Other()
    result = one.__get__(model)(torch.ones(4))
    assert len(host.entries) == count + 1 and host.entries[-1].captures is not None
    assert torch.equal(result, model.more(model.scale(torch.ones(4))))
    again = wrapped(Other.step)
    again.__get__(Other())(torch.ones(4))
    assert host.entries[-1].captures is None


def test_a_class_that_no_other_process_would_find_is_not_named() -> None:
    class Local(Net):
        pass

    assert recorded(Net.step, Local(), torch.ones(4)) == {}
    assert prepared(wrapped()) is None


@pytest.mark.parametrize("text", [
    "", "{", "[]", "{}", '{"met": []}', '{"met": {"classes": 1, "functions": []}}', '{"met": {"classes": [], "functions": []}}',
    '{"met": {"classes": [["torch", "no_such_class", false]], "functions": []}}', '{"met": {"classes": [["no.such.module", "A", false]], "functions": []}}',
    '{"met": {"classes": [["torch", "float32", false]], "functions": []}}', '{"met": {"classes": [[1, 2, 3]], "functions": []}}',
    '{"met": {"classes": [["torch.nn", "Module", false]], "functions": [["torch.nn", "Module"]]}}',
])
def test_what_a_file_says_is_not_believed(text: str) -> None:
    host.latest["step"] = text
    one = wrapped()
    assert prepared(one) is None
    assert one.__get__(Net())(torch.ones(4)).shape == (4,)


def test_nothing_is_asked_that_answers_by_code_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    lazy: Any = types.ModuleType("wg_lazy")
    lazy.__getattr__ = lambda name: asked.append(name)
    monkeypatch.setitem(sys.modules, "wg_lazy", lazy)
    host.latest["step"] = json.dumps({"met": {"classes": [["wg_lazy", "Model", False]], "functions": []}})
    assert prepared(wrapped()) is None and asked == []


def doubled_of_an_entry() -> Any:
    host.latest["doubled"] = host.latest["imports"]
    return doubled


def imports(x: Any) -> Any:
    import wg_imported_by_a_call  # type: ignore[import-not-found]

    return wg_imported_by_a_call.doubled(x)


def test_what_the_function_imports_is_left_to_its_call(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    (tmp_path / "wg_imported_by_a_call.py").write_text("def doubled(x):\n    return x * 2\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    host.latest["imports"] = json.dumps({"met": {"classes": [[__name__, "Net", False]], "functions": []}})
    one = wrapped(imports)
    assert prepared(one) is None and "wg_imported_by_a_call" not in sys.modules
    reached = prepared(wrapped(doubled_of_an_entry()))
    assert reached.imports and reached.latest().imports, "what a call meets besides is imported as always"
    assert torch.equal(one(torch.ones(2)), torch.full((2,), 2.0))
    monkeypatch.delitem(sys.modules, "wg_imported_by_a_call")


def test_the_first_graph_of_a_table_takes_what_another_one_met(guesses: list[int]) -> None:
    def table() -> Any:
        return warmgraph.torch.GraphCache(config=CONFIG)

    def forward_of(model: Any, x: Any) -> Any:
        return lambda: model.step(x)

    first = table()
    graph, _ = first.capture_one(1, forward_of(Net(), torch.ones(4)))
    assert graph.outcome == "recorded" and json.loads(host.latest["graphs-1"])["met"]["classes"] == [[__name__, "Net", False], [__name__, "Scale", False]]
    del guesses[:]
    again = table()
    for _ in _expecting.prepared(again._table, 0, again._all()):
        pass
    graph, output = again.capture_one(1, forward_of(Net(), torch.ones(4)))
    assert graph.outcome == "replayed" and guesses == []
    graph, _ = again.capture_one(2, forward_of(Net(), torch.ones(2, 4)))
    assert graph.outcome == "recorded" and guesses == []
    other = table()
    assert other.capture_one(1, forward_of(Net(), torch.ones(4)))[0].outcome == "replayed" and guesses == [1], "the same without it"


def _ended() -> None:
    thread = _ahead._thread
    if thread is not None:
        thread.join(30)


def test_it_is_done_in_the_background_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    settled: list[int] = []
    monkeypatch.setattr(_modes, "settle", settled.append)
    recorded()
    del settled[:]
    fetched: list[str] = []
    monkeypatch.setattr(warmgraph.Cache, "prefetch", lambda self, name, device: fetched.append(name))
    monkeypatch.setattr(_ahead, "_device_in_use", lambda: 0)
    monkeypatch.setattr(_ahead, "_is_cuda_initialized", lambda: True)
    monkeypatch.setattr(_ahead, "_pieces", lambda: iter(()))
    _ahead._waiting.clear()
    _ended()  # the recording wrapper's
    one = wrapped()
    _ended()
    assert fetched == ["step"] and settled == [0] and isinstance(one._shared.reached_ahead, _code.Reached)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    torchs = warmgraph.torch.TorchFunction(one)
    torchs.begin(one)
    assert fetched == ["step"] and _ahead.was_begun(one, 0)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    torchs.begin(one)
    assert fetched == ["step", "step"], "on another device"
