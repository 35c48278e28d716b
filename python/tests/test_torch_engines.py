"""Tests tables of graphs by batch size, as in serving engines, without a GPU."""
from __future__ import annotations

import functools
import gc
import logging
import sys
from typing import Any, Iterator

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed here")

import torch_on_the_host as host  # noqa: E402
import warmgraph  # noqa: E402
from warmgraph import errors  # noqa: E402
from warmgraph.core.cache import _cache  # noqa: E402
from warmgraph.reading import _walker  # noqa: E402
from warmgraph.torch import GraphCache  # noqa: E402
from warmgraph.torch.engines import _engines  # noqa: E402
from warmgraph.torch.read import _shared_modules  # noqa: E402
from warmgraph.torch.replay import _preload, _surrounding_work  # noqa: E402


@pytest.fixture(autouse=True)
def on_the_host(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    host.use(monkeypatch)
    calls.clear()
    yield


calls: list[int] = []  # the size in each call of forward()
sys.addaudithook(lambda event, arguments: calls.append(arguments[0]) if event == "test.forward" else None)


class Runner:
    """An engine of the usual form: a model, buffers for the largest batch, a table of graphs."""

    def __init__(self, **options: Any) -> None:
        torch.manual_seed(3)
        self.linear = torch.nn.Linear(4, 4)
        self.ids = torch.zeros(8, 4)
        self.kv = torch.zeros(8, 4)
        self.cache = GraphCache(config=warmgraph.Config(model="engine"), **options)

    def forward_of(self, size: int) -> Any:
        ids, kv, linear = self.ids[:size], self.kv, self.linear

        def forward() -> Any:
            sys.audit("test.forward", size)  # no guard sees this effect
            kv[:size].add_(1)
            return linear(ids)

        return forward

    def capture(self, size: int, **named: Any) -> Any:
        return self.cache.capture_one(size, self.forward_of(size), **named)


def test_a_miss_is_answered_once_captured_twice_and_adopted():
    runner = Runner()
    graph, output = runner.capture(2)
    assert graph.outcome == "recorded" and calls == [2, 2, 2] and output.shape == (2, 4)
    (entry,) = host.entries
    assert entry.given.name == "graphs-2" and entry.given.facts["graph.key"] == "2" and not entry.calls
    first, second = entry.captures
    assert [name for name, _, _ in first.regions] == ["result0", "forward.ids", "forward.kv", "forward.linear.weight", "forward.linear.bias"]
    assert not {at for _, at, _ in first.regions} & {at for _, at, _ in second.regions}
    assert {one.name for one in entry.given.states if one.is_written} == {"forward.kv"}


def test_a_replay_writes_the_same_memory_each_time():
    runner = Runner()
    graph, output = runner.capture(2)
    graph.replay(), graph.replay()
    (entry,) = host.entries
    assert entry.calls == [entry.calls[0]] * 2 and entry.calls[0][0] == [output.data_ptr()]
    assert entry.calls[0][1][0] == runner.ids.data_ptr()


def test_a_hit_captures_nothing_and_does_not_call_the_function():
    Runner().capture(2)
    calls.clear()
    graph, output = Runner().capture(2)
    assert graph.outcome == "replayed" and not calls and len(host.captures) == 2 and output.shape == (2, 4)
    assert host.entries[-1].captures is None and len(host.entries[-1].calls) == 1  # the graph is restored now, and not at a later call
    graph.replay()
    assert host.entries[-1].calls[1][0] == [output.data_ptr()]


def test_each_key_is_a_function_of_its_own_and_like_names_are_told_apart():
    runner = Runner()
    for key in (1, "1", (1, "a"), "1-a", 4):
        runner.cache.capture_one(key, runner.forward_of(2))
    assert [one.given.name for one in host.entries] == ["graphs-1", "graphs-1", "graphs-1-a", "graphs-1-a", "graphs-4"]
    assert all(one.captures is not None for one in host.entries)


def test_inputs_and_states_have_the_names_that_are_given():
    runner = Runner()
    ids, kv, linear = runner.ids, runner.kv, runner.linear

    def forward() -> Any:
        return linear(ids) + kv

    runner.cache.capture_one(8, forward, inputs={"tokens": ids}, states={"pool": [kv], "w": linear.weight})
    (entry,) = host.entries
    assert [one.name for one in entry.given.inputs] == ["tokens"]
    assert [one.name for one in entry.given.states] == ["pool_0", "w", "forward.linear.bias"]
    weight = runner.linear.weight.data_ptr()
    first, second = ({name: at for name, at, _ in one.regions} for one in entry.captures)
    assert first["w"] == weight != second["w"] and first["tokens"] == runner.ids.data_ptr() != second["tokens"]


def test_lists_of_inputs_and_bound_methods_work_and_objects_are_not_copied():
    class Model:
        def __init__(self) -> None:
            self.weight, self.x, self.lock = torch.ones(4), torch.ones(4), __import__("threading").Lock()

        def forward(self) -> Any:
            return self.x * self.weight, self.x

    model = Model()
    graph, (y, x) = GraphCache().capture_one("m", model.forward, inputs=[model.x])
    assert graph.outcome == "recorded" and x is model.x and y.shape == (4,)
    assert [one.name for one in (*host.entries[0].given.inputs, *host.entries[0].given.states)] == ["input0", "weight"]


def test_partials_objects_that_are_called_and_defaults_are_read():
    w, x = torch.ones(4), torch.zeros(4)

    def work(x: Any, w: Any, factor: float = 2.0) -> Any:
        return x + w * factor

    class Call:
        def __init__(self) -> None:
            self.w = w

        def __call__(self) -> Any:
            return work(x, self.w)

    for i, one in enumerate([functools.partial(work, x, w), Call(), lambda x=x, w=w: work(x, w)]):
        assert GraphCache().capture_one(i, one)[0].outcome == "recorded"
        pointers = {at for name, at, _ in host.entries[-1].captures[0].regions if not name.startswith("result")}
        assert pointers == {w.data_ptr(), x.data_ptr()}
    assert GraphCache().capture_one(0, functools.partial(work, x, w, factor=3.0))[0].outcome == "recorded"
    assert GraphCache().capture_one(0, functools.partial(work, x, w, factor=3.0))[0].outcome == "replayed"


def test_a_refusal_is_captured_by_pytorch_into_the_pool_with_one_warning(caplog):
    runner, pool = Runner(), (1, 2)
    blocked = runner.linear

    class Odd:
        pass

    Odd.__module__ = "torch.odd"
    odd = Odd()
    odd.items = iter([1])

    def forward() -> Any:
        return blocked(runner.ids) if odd.items else None

    with caplog.at_level(logging.WARNING, "warmgraph"):
        graph, output = runner.cache.capture_one(1, forward, pool=pool)
        runner.cache.capture_one(2, forward, pool=pool)
    assert graph.outcome == "captured" and "items" in graph.why and graph.pool() == pool and not host.entries
    assert len([one for one in caplog.records if "captured only by PyTorch" in one.message]) == 1
    runner.ids.fill_(2)
    graph.replay()
    assert torch.equal(output, blocked(runner.ids)) and host.plain[0].its_pool == pool
    graph.reset()
    assert host.plain[0].is_reset


def test_what_the_recording_refuses_is_captured_by_pytorch_without_a_further_answer(monkeypatch):
    def broken(*_: Any) -> Any:
        raise errors.NotRecordable("no graph")

    monkeypatch.setattr(host._recording.Recording, "adopted", broken)
    graph, _ = Runner().capture(2)
    assert graph.outcome == "captured" and graph.why == "no graph" and calls == [2, 2]  # one call from the answer and one from the capture


def test_policies(monkeypatch):
    monkeypatch.setenv("WARMGRAPH_POLICY", "require_hit")
    with pytest.raises(errors.MissForbidden):
        Runner().capture(2)
    assert not calls and not host.plain
    monkeypatch.setenv("WARMGRAPH_POLICY", "read_only")
    graph, _ = Runner().capture(2)
    assert graph.outcome == "captured" and not [one for one in host.entries if one.captures]


def test_what_the_function_raises_is_the_callers():
    def forward() -> Any:
        raise KeyError("mine")

    weight = torch.ones(2)
    with pytest.raises(KeyError, match="mine"):
        GraphCache().capture_one(1, forward, states={"w": weight})
    assert not host.plain


def test_a_reset_frees_and_the_same_key_is_restored_again():
    runner = Runner()
    graph, _ = runner.capture(2)
    graph.reset(), graph.reset()
    assert host.entries[0].is_closed
    with pytest.raises(errors.InvalidArgument, match="was reset"):
        graph.replay()
    calls.clear()
    again, output = runner.capture(2)
    again.replay()
    assert again.outcome == "replayed" and not calls and len(host.entries[-1].calls) == 2
    assert host.entries[-1].calls[-1][0] == [output.data_ptr()]


def test_the_memory_of_a_graph_lives_until_it_is_reset():
    import weakref

    runner = Runner()
    graph, _ = runner.capture(2)
    weight = runner.linear.weight
    old = weight.data_ptr()
    weight.data = weight.data.clone()
    more = [torch.empty(4, 4) for _ in range(20)]
    assert old not in {one.data_ptr() for one in more}
    kept = weakref.ref(graph._launch.__self__)
    graph.reset()
    __import__("gc").collect()
    assert kept() is None


def test_a_restored_graph_keeps_nothing_of_its_reading_but_what_the_table_shares():
    def living(kind: type) -> list[Any]:
        gc.collect()
        return [one for one in gc.get_objects() if type(one) is kind]

    others, runner = [*living(_walker.Walker), *living(_shared_modules.ModulePart)], Runner()  # objects that other tests left
    graphs = [runner.capture(2) for _ in range(3)]
    assert [graph.outcome for graph, _ in graphs] == ["recorded", "replayed", "replayed"]
    new = [one for one in (*living(_walker.Walker), *living(_shared_modules.ModulePart)) if all(one is not other for other in others)]
    assert [type(one) for one in new] == [_shared_modules.ModulePart], "hundreds of objects for each graph bring a collection of all that there is"


def test_what_the_first_answer_makes_is_recorded_at_once():
    state: dict[str, Any] = {}
    x = torch.ones(4)

    def forward() -> Any:
        if "k" not in state:
            state["k"] = torch.zeros(4)
        return x + state["k"]

    graph, _ = GraphCache().capture_one(1, forward)
    assert graph.outcome == "recorded", graph.why


def test_a_counter_is_captured_by_pytorch_alone():
    class Counter:
        def __init__(self) -> None:
            self.steps, self.x = 0, torch.ones(2)

        def forward(self) -> Any:
            self.steps += 1
            return self.x + 1

    graph, _ = GraphCache().capture_one(1, Counter().forward)
    assert graph.outcome == "captured" and "self.steps" in graph.why


@pytest.mark.parametrize("key", [1.5, None, (), (1, None), True, b"k"])
def test_keys_of_other_kinds_are_errors(key):
    with pytest.raises(errors.InvalidArgument, match="expected a text"):
        GraphCache().capture_one(key, lambda: None)


def test_wrong_options_and_arguments_are_errors():
    with pytest.raises(errors.InvalidArgument, match="did you mean 'tp_rank'"):
        GraphCache(tprank=1)
    with pytest.raises(errors.InvalidArgument, match="without arguments"):
        GraphCache().capture_one(1, lambda x: x)
    with pytest.raises(errors.InvalidArgument, match="is both an input and a state"):
        GraphCache().capture_one(1, lambda: None, inputs={"x": torch.ones(1)}, states={"x": torch.ones(1)})
    with pytest.raises(errors.InvalidArgument, match="expected {name: tensor}"):
        GraphCache().capture_one(1, lambda: None, inputs=3)


def test_an_input_that_lies_less_well_than_the_recordings_is_copied_before_each_replay():
    memory = torch.zeros(256)
    start = (-memory.data_ptr() % 256) // 4
    whole = memory.untyped_storage()

    def capture(offset: int) -> Any:
        x = torch.empty(0).set_(whole, start + offset, (8,), (1,))
        return (*GraphCache(config=warmgraph.Config(model="m")).capture_one(1, lambda: x + 1, inputs=[x]), x)

    assert capture(0)[0].outcome == "recorded"
    graph, _, x = capture(4)
    assert graph.outcome == "replayed"
    x.fill_(5)
    graph.replay()
    ((first, _), (again, _)) = ((pointers[0], pointers[1]) for pointers, _ in host.entries[-1].calls)
    assert first == again != x.data_ptr()
    (copy, of), = graph._launch.__self__._staged
    assert copy.data_ptr() == first and torch.equal(copy.view(torch.float32), x) and of.data_ptr() == x.data_ptr()


def test_an_exception_of_a_capture_gives_pytorchs_graph(monkeypatch):
    def broken(*_: Any) -> Any:
        raise RuntimeError("capture broke")

    monkeypatch.setattr(host._capture, "captured", broken)
    graph, _ = Runner().capture(2)
    assert graph.outcome == "captured" and graph.why == "RuntimeError: capture broke"


def test_device_code_is_loaded_and_no_garbage_collected_while_the_model_is_read(monkeypatch):
    seen: list[Any] = []
    read = _engines.EngineFunction._read_all

    def watched(function: Any, *given: Any) -> Any:
        seen.append(gc.isenabled())
        return read(function, *given)

    monkeypatch.setattr(_engines.EngineFunction, "_read_all", watched)
    monkeypatch.setattr(_preload, "begin", lambda wrapped, index, name="": seen.append(name or wrapped._name()))
    monkeypatch.setattr(_surrounding_work, "is_captured", lambda: False)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    runner = Runner()
    assert gc.isenabled()
    graph, _ = runner.capture(2)
    assert seen == ["graphs-2", False, "graphs-*"] and gc.isenabled() and graph.outcome == "recorded"
    seen.clear()
    runner.capture(4)
    assert seen == [False], "the others are begun once, and this one is of them"


@pytest.mark.parametrize("device, own", [(0, []), (1, ["graphs-2"])])
def test_a_table_that_is_expected_is_restored_before_its_first_graph_is_asked_for(monkeypatch, device, own):
    begun: list[Any] = []
    _preload._waiting.clear()  # requests from other tests
    monkeypatch.setattr(_preload, "begin", lambda wrapped, index, name="": begun.append((name or wrapped._name(), wrapped._where().model, index)))
    monkeypatch.setattr(_preload, "_device_in_use", lambda: device)
    monkeypatch.setattr(_surrounding_work, "is_captured", lambda: False)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    runner = Runner()
    thread = _preload._thread
    assert thread is not None and begun == [], "who captures at once begins with the first graph"
    thread.join(10)
    assert begun == [("graphs-*", "engine", device)]
    begun.clear()
    runner.capture(2)
    assert [name for name, _, _ in begun] == [*own, "graphs-*"], "which begins nothing that was begun, and needs it alone"
    begun.clear()
    runner.capture(4)
    assert not begun


def test_a_cache_of_no_model_is_begun_by_its_first_graph():
    GraphCache()
    assert not [one for one in _preload._waiting if one.name == "graphs-*" and one.wrapped() is not None and not one.wrapped().options.config.model]


def test_the_first_process_captures_once_replays_that_and_leaves_it_for_others(tmp_path):
    runner, folder = Runner(captures=tmp_path), str(tmp_path)
    graph, output = runner.capture(2)
    assert graph.outcome == "captured" and folder in graph.why and calls == [2, 2]  # one call from the answer and one from the only capture
    ((captured, where),) = host.written
    assert where == folder and not host.entries and not host.plain
    assert ("forward.ids", runner.ids.data_ptr(), runner.ids.nbytes) in captured.regions
    runner.ids.fill_(2)
    graph.replay()
    assert torch.equal(output, runner.linear(runner.ids[:2])) and output.data_ptr() == dict((n, at) for n, at, _ in captured.regions)["result0"]
    fake = host.captures[0].graph
    graph.reset()
    assert fake.is_reset
    with pytest.raises(errors.InvalidArgument):
        graph.replay()


def test_the_second_process_captures_once_and_its_entry_is_proven(tmp_path):
    host.others[str(tmp_path)] = None
    runner = Runner(captures=tmp_path)
    graph, output = runner.capture(2)
    assert graph.outcome == "recorded" and calls == [2, 2] and not host.written
    (entry,) = host.entries
    assert entry.captures[1] == str(tmp_path)
    graph.replay()
    assert entry.calls[0][0] == [output.data_ptr()]


@pytest.mark.parametrize("why", [errors.NotRecordable("'x' was at the same place"), errors.VerificationFailed("it differs"),
                                 errors.PermissionDenied("others may write it")])
def test_what_another_process_does_not_prove_is_captured_elsewhere(tmp_path, why):
    host.others[str(tmp_path)] = why
    graph, _ = Runner(captures=tmp_path).capture(2)
    assert graph.outcome == "recorded" and calls == [2, 2, 2] and not host.written
    assert len(host.entries[0].captures) == 2 and not isinstance(host.entries[0].captures[1], str)


def test_a_folder_that_cannot_be_written_costs_the_pairing_alone(tmp_path, monkeypatch, caplog):
    def full(*_: Any) -> None:
        raise errors.NoSpace("the disk is full")

    monkeypatch.setattr(host._entry, "write_capture", full)
    with caplog.at_level(logging.WARNING, "warmgraph"):
        graph, _ = Runner(captures=tmp_path).capture(2)
    assert graph.outcome == "recorded" and calls == [2, 2, 2] and "not written for other processes" in caplog.text


@pytest.mark.parametrize("folder", ["", 3, object(), "a\0b"])
def test_captures_is_the_path_of_a_folder(folder):
    with pytest.raises(errors.InvalidArgument, match="captures is"):
        GraphCache(captures=folder)
