"""record_all() observes graphs that a program captures itself, without a GPU."""
from __future__ import annotations

import contextlib
import dataclasses
import pathlib
import threading
from typing import Any, Iterator

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed here")

import torch_on_the_host as host  # noqa: E402
import warmgraph  # noqa: E402
from warmgraph import errors  # noqa: E402
from warmgraph.core.serving._entry_metadata import each_fact  # noqa: E402
from warmgraph.torch import Recorder, record_all  # noqa: E402
from warmgraph.torch.engines import _record_all  # noqa: E402
from warmgraph.torch.record import _caller_frames, _capture, _constants, _copied_graph, _operators  # noqa: E402
from warmgraph.torch.replay import _pausing  # noqa: E402

FOLDER = "captures"
pools: list[torch.Tensor] = []  # the memory in the pools of the graphs
copies: list[Any] = []


class NativeGraph:
    """Takes the place of torch._C._CUDAGraph: a capture runs its work here."""

    def __init__(self, keep_graph: bool = False) -> None:
        self.keep_graph, self.count, self.is_broken = keep_graph, 0, False

    def capture_begin(self, pool: Any = None, capture_error_mode: str = "global") -> None:
        if self.is_broken:
            raise RuntimeError("no capture is begun")

    def capture_end(self) -> None:
        if self.is_broken:
            raise RuntimeError("the capture was ended by somebody")

    def instantiate(self) -> None:
        self.count += 1

    def pool(self) -> Any:
        return (0, 7)

    def raw_cuda_graph(self) -> int:
        assert self.keep_graph
        return 11


class CUDAGraph(NativeGraph):
    def capture_begin(self, pool: Any = None, capture_error_mode: str = "global") -> None:
        super().capture_begin(pool, capture_error_mode)

    def capture_end(self) -> None:
        super().capture_end()


class FakeCopied:
    def __init__(self, graph: int, wanted: Any) -> None:
        self.native, self.is_closed = graph + 1, False
        copies.append((self, wanted))

    def close(self) -> None:
        self.is_closed = True


def snapshot() -> Any:
    return [{"segment_pool_id": (0, 7), "address": one.data_ptr(), "total_size": one.nbytes, "blocks": []} for one in pools]


@pytest.fixture(autouse=True)
def on_the_host(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Iterator[None]:
    host.use(monkeypatch)
    pools.clear(), copies.clear()
    monkeypatch.setattr(torch.cuda, "CUDAGraph", CUDAGraph)
    monkeypatch.setattr(torch.cuda, "_lazy_call", lambda work: work())
    monkeypatch.setattr(torch._C, "_cuda_clearCublasWorkspaces", lambda: None, raising=False)
    monkeypatch.setattr(torch._C, "_cuda_getDevice", lambda: 0, raising=False)
    monkeypatch.setattr(_capture, "_snapshot", snapshot)
    monkeypatch.setattr(_operators, "compiled_graphs", lambda: 0)  # other tests may have compiled functions
    monkeypatch.setattr(_copied_graph, "CopiedGraph", FakeCopied)
    monkeypatch.chdir(tmp_path)
    yield
    assert not _record_all._open


_of_torch: dict[str, Any] = {"__name__": "torch.cuda.graphs"}  # frames of code in this module do not count as code of the program
exec("""
class graph:
    def __init__(self, one):
        self.one = one

    def __enter__(self):
        self.one.capture_begin()

    def __exit__(self, *_):
        self.one.capture_end()
""", _of_torch)
graph = _of_torch["graph"]


def in_pool(*sizes: int) -> Any:
    """A tensor in the pool of the graph that is being captured."""
    made = torch.zeros(*sizes)
    pools.append(made)
    return made


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.scale = 2.0


def program(net: Any, size: int = 2) -> Any:
    """A program that does not use warmgraph: it has a buffer, a graph and its result."""
    static_in, kv, unused = torch.zeros(size, 4), torch.zeros(8, 4), torch.zeros(3)
    g = torch.cuda.CUDAGraph()
    with graph(g):
        static_out = in_pool(size, 4)
        static_out.copy_(net.linear(static_in) * net.scale)
        kv[:size].add_(1)
    return g, static_in, static_out, kv, unused


def recorder(**options: Any) -> Recorder:
    return record_all(FOLDER, config=warmgraph.Config(model="net"), **options)


def test_the_first_process_writes_each_graph_and_goes_on_as_without():
    with recorder() as seen, torch.no_grad():
        g, static_in, static_out, kv, unused = program(Net())
    (one,) = seen.graphs
    assert (one.name, one.outcome, one.why) == ("graphs-program-0", "written", "")
    assert one.inputs == ("static_in", "kv") and one.outputs == {"result0": "static_out"}
    assert one.states == ("net.linear.weight", "net.linear.bias")
    (captured, folder), = host.written
    assert folder.endswith(FOLDER) and captured.native == 12
    places = {name: at for name, at, _ in captured.regions}
    assert places["static_in"] == static_in.data_ptr() and places["kv"] == kv.data_ptr()
    ((copied, wanted),) = copies
    assert copied.is_closed and [(one.source, one.target, one.nbytes) for one in wanted] == [(static_out.data_ptr(), places["result0"], 32)]
    assert captured.scratch == [("pool0", static_out.data_ptr(), 32)]
    assert g.keep_graph and g.count == 1 and not host.entries


def test_the_second_process_proves_it_and_says_what_it_writes():
    host.others[str(pathlib.Path(FOLDER).resolve())] = None
    with recorder() as seen, torch.no_grad():
        program(Net())
    (one,) = seen.graphs
    assert one.outcome == "recorded" and not host.written
    (entry,) = host.entries
    assert entry.is_closed and entry.given.name == "graphs-program-0" and entry.given.facts["graph.key"] == "graphs-program-0"
    facts = dict(each_fact(entry.given.facts))
    assert facts["net"].startswith("test_torch_record_all.Net") and "scale=float 2.0" in facts["net"]
    assert not any(state.is_written for state in entry.given.states)


def test_parameters_are_cleared_while_it_captures_and_memory_of_nobody_is_no_constant():
    host.others[str(pathlib.Path(FOLDER).resolve())] = None
    modes, x = [], torch.zeros(2, 4)
    with recorder(), torch.no_grad():
        g = torch.cuda.CUDAGraph()
        with graph(g):
            modes.append(torch._C._len_torch_dispatch_stack())
            y = in_pool(2, 4)
            y.copy_(x)
    assert modes == [1] and torch._C._len_torch_dispatch_stack() == 0
    assert not host.entries[0].given.keeps_undeclared and y is not None


def test_what_the_code_changes_is_another_entry():
    host.others[str(pathlib.Path(FOLDER).resolve())] = None
    with recorder() as seen, torch.no_grad():
        program(Net())
        net = Net()
        net.scale = 3.0
        program(net)
    assert [one.name for one in seen.graphs] == ["graphs-program-0", "graphs-program-1"]
    first, second = host.entries
    assert dict(each_fact(first.given.facts))["net"] != dict(each_fact(second.given.facts))["net"]


def test_a_key_names_the_graphs_of_a_table():
    with recorder(key=lambda variables: variables["size"]) as seen, torch.no_grad():
        net = Net()
        program(net, 2), program(net, 1), program(net, 2)
    assert [one.name for one in seen.graphs] == ["graphs-2", "graphs-1", "graphs-2-2"]
    with recorder(key=lambda variables: variables["batch"]) as seen, torch.no_grad():
        program(Net())
    assert seen.graphs[0].outcome == "refused" and "KeyError: 'batch'" in seen.graphs[0].why


def test_what_the_graph_writes_is_known_of_each_state():
    host.others[str(pathlib.Path(FOLDER).resolve())] = None

    class Cache:
        def __init__(self) -> None:
            self.kv, self.table = torch.zeros(2, 4), torch.ones(2, 4)

    cache = Cache()
    with recorder() as seen, torch.no_grad():
        g = torch.cuda.CUDAGraph()
        with graph(g):
            cache.kv.add_(cache.table)
    (entry,) = host.entries
    assert seen.graphs[0].outcome == "recorded" and not seen.graphs[0].outputs
    assert {one.name: one.is_written for one in entry.given.states} == {"cache.kv": True, "cache.table": False}


def test_a_weight_that_is_a_variable_is_a_state_and_a_tensor_outside_of_the_pool_no_result():
    weight, x = torch.nn.Parameter(torch.ones(2, 4)), torch.zeros(2, 4)
    with recorder() as seen, torch.no_grad():
        g = torch.cuda.CUDAGraph()
        with graph(g):
            y, elsewhere = in_pool(2, 4), torch.zeros(2, 4)
            y.copy_(x * weight + elsewhere)
    (one,) = seen.graphs
    assert set(one.inputs) == {"x", "elsewhere"} and one.states == ("weight",) and one.outputs == {"result0": "y"}


def test_what_cannot_be_compared_is_no_guard_and_refuses_nothing():
    class Holder:
        def __init__(self) -> None:
            self.lock, self.net = threading.Lock(), Net()

    holder, x = Holder(), torch.zeros(2, 4)
    with recorder() as seen, torch.no_grad():
        g = torch.cuda.CUDAGraph()
        with graph(g), holder.lock:
            y = in_pool(2, 4)
            y.copy_(holder.net.linear(x))
    assert seen.graphs[0].outcome == "written", seen.graphs[0].why
    assert seen.graphs[0].states == ("holder.net.linear.weight", "holder.net.linear.bias")


def test_captures_that_overlap_in_one_thread_are_not_recorded():
    with recorder() as seen, torch.no_grad():
        x, first, second = torch.zeros(2, 4), torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
        first.capture_begin()
        y = in_pool(2, 4)
        y.copy_(x)
        second.capture_begin()
        first.capture_end()
        z = in_pool(2, 4)
        z.copy_(y)
        second.capture_end()
    assert [one.outcome for one in seen.graphs] == ["refused", "refused"]
    assert all("another capture" in one.why for one in seen.graphs), seen


def test_device_code_is_kept_as_long_as_it_records():
    before = _pausing._misses
    with recorder() as seen:
        assert _pausing._misses == before + 1
    assert _pausing._misses == before and not seen.graphs


def test_a_graph_that_the_program_keeps_is_instantiated_by_it():
    with recorder() as seen, torch.no_grad():
        g, x = torch.cuda.CUDAGraph(keep_graph=True), torch.zeros(2, 4)
        with graph(g):
            y = in_pool(2, 4)
            y.copy_(x)
    assert seen.graphs[0].outcome == "written" and g.count == 0 and g.keep_graph


def test_a_capture_that_cannot_be_kept_leaves_the_reason_of_the_proof(monkeypatch):
    def full(*_: Any) -> None:
        raise errors.NoSpace("the disk is full")

    host.others[str(pathlib.Path(FOLDER).resolve())] = errors.VerificationFailed("it left other bytes")
    monkeypatch.setattr(host._entry, "write_capture", full)
    with recorder() as seen, torch.no_grad():
        program(Net())
    assert (seen.graphs[0].outcome, seen.graphs[0].why) == ("refused", "it left other bytes")
    host.others.clear()
    with recorder() as seen, torch.no_grad():
        program(Net())
    assert seen.graphs[0].outcome == "refused" and "the disk is full" in seen.graphs[0].why


class Runner:
    def __init__(self) -> None:
        self.net, self.x, self.outputs = Net(), torch.zeros(2, 4), {}

    def capture(self, key: Any) -> None:
        g = torch.cuda.CUDAGraph()
        g.capture_begin()
        self.outputs[key] = in_pool(2, 4)
        self.outputs[key].copy_(self.net.linear(self.x))
        g.capture_end()


def test_results_are_found_in_objects_and_those_of_earlier_graphs_are_scratch():
    runner = Runner()
    with recorder() as seen, torch.no_grad():
        runner.capture("a"), runner.capture("b")
    first, second = seen.graphs
    assert first.outputs == {"result0": "self.outputs['a']"} and second.outputs == {"result0": "self.outputs['b']"}
    assert first.states == second.states == ("net.linear.weight", "net.linear.bias", "x") and not first.inputs
    (captured, _) = host.written[1]
    assert [size for _, _, size in captured.scratch] == [32, 32]


@contextlib.contextmanager
def helper(g: Any) -> Iterator[None]:
    with graph(g):
        yield


def test_the_code_is_the_one_that_names_what_is_captured():
    def run() -> Any:
        made = in_pool(2, 4)
        made.copy_(net.linear(x))
        return made

    net, x = Net(), torch.zeros(2, 4)
    with recorder() as seen, torch.no_grad():
        with helper(torch.cuda.CUDAGraph()):
            y = run()
    (one,) = seen.graphs
    assert one.outcome == "written" and one.outputs == {"result0": "y"}
    assert {name.rpartition(".")[2] for name in (*one.inputs, *one.states)} >= {"weight", "bias", "x"}


@dataclasses.dataclass
class Engine:
    net: Any
    x: Any


def test_an_objects_module_makes_its_tensors_states():
    engine = Engine(Net(), torch.zeros(2, 4))
    with recorder() as seen, torch.no_grad():
        g = torch.cuda.CUDAGraph()
        with graph(g):
            y = in_pool(2, 4)
            y.copy_(engine.net.linear(engine.x))
    assert y is not None and not seen.graphs[0].inputs and seen.graphs[0].states == ("engine.net.linear.weight", "engine.net.linear.bias", "engine.x")


def test_a_script_has_its_variables_in_its_module():
    script = """
x = torch.zeros(2, 4)
g = torch.cuda.CUDAGraph()
with graph(g):
    y = in_pool(2, 4)
    y.copy_(net.linear(x))
"""
    with recorder() as seen, torch.no_grad():
        exec(compile(script, "script.py", "exec"), {"__name__": "script", "torch": torch, "graph": graph, "in_pool": in_pool, "net": Net()})
    (one,) = seen.graphs
    assert (one.name, one.outcome, one.inputs, one.outputs) == ("graphs-module-0", "written", ("x",), {"result0": "y"})
    assert one.states == ("net.linear.weight", "net.linear.bias")


def test_results_that_are_views_of_one_another_are_one():
    with recorder() as seen, torch.no_grad():
        g, x = torch.cuda.CUDAGraph(), torch.zeros(2, 4)
        with graph(g):
            hidden = in_pool(2, 4)
            hidden.copy_(x)
            last = hidden[-1]
    assert last is not None and seen.graphs[0].outputs == {"result0": "hidden"}


@dataclasses.dataclass
class Meta:
    tokens: Any
    steps: int = 3


def test_tensors_in_containers_and_data_classes_are_inputs():
    meta, caches = Meta(torch.zeros(2, 4)), [torch.zeros(2, 4), torch.zeros(2, 4)]
    with recorder() as seen, torch.no_grad():
        g = torch.cuda.CUDAGraph()
        with graph(g):
            y = in_pool(2, 4)
            y.copy_(meta.tokens + meta.steps + caches[0])
    assert y.shape == (2, 4)
    assert set(seen.graphs[0].inputs) == {"meta.tokens", "caches_0", "caches_1"} and not seen.graphs[0].states


def test_a_capture_that_fails_or_raises_is_left_alone():
    with recorder() as seen, torch.no_grad():
        g = torch.cuda.CUDAGraph()
        with pytest.raises(ValueError, match="the caller's"), graph(g):
            raise ValueError("the caller's")
        g = torch.cuda.CUDAGraph()
        with pytest.raises(RuntimeError, match="ended by somebody"), graph(g):
            g.is_broken = True
        try:
            raise KeyError
        except KeyError:  # a program may capture while it handles another error
            program(Net())
    assert [one.outcome for one in seen.graphs] == ["written"]


def test_a_capture_that_never_begins_or_ends_leaves_nothing_behind():
    with recorder() as seen, torch.no_grad():
        g = torch.cuda.CUDAGraph()
        g.is_broken = True
        with pytest.raises(RuntimeError, match="no capture is begun"):
            g.capture_begin()
        assert torch._C._len_torch_dispatch_stack() == 0
        program(Net())
        torch.cuda.CUDAGraph().capture_begin()
        assert torch._C._len_torch_dispatch_stack() == 1
    assert [one.outcome for one in seen.graphs] == ["written"] and torch._C._len_torch_dispatch_stack() == 0


def test_addresses_that_cannot_be_taken_leave_the_program_alone(monkeypatch):
    def none(index: int) -> Any:
        raise OSError("libcuda.so.1: cannot open shared object file")

    monkeypatch.setattr(_capture, "Addresses", none)
    with recorder() as seen, torch.no_grad():
        program(Net())
    assert seen.graphs[0].outcome == "written"


def test_a_pytorch_that_keeps_no_graph_is_unsupported(monkeypatch):
    monkeypatch.setattr(torch.cuda, "CUDAGraph", type("CUDAGraph", (), {}))
    with pytest.raises(errors.Unsupported, match="raw_cuda_graph"):
        recorder()


def test_what_cannot_be_recorded_says_why_and_costs_the_program_nothing(caplog):
    with recorder() as seen, torch.no_grad():
        g = torch.cuda.CUDAGraph()
        with graph(g):
            torch.zeros(2).add_(1)
        net = Net()
        g = torch.cuda.CUDAGraph()
        with graph(g):
            net.linear.weight + 1
    assert [one.outcome for one in seen.graphs] == ["refused", "refused"]
    assert "no variable of the capturing code" in seen.graphs[0].why and "none of the tensors that the graph writes" in seen.graphs[1].why
    assert [one.levelname for one in caplog.records] == ["WARNING", "WARNING"] and g.count == 1


def test_a_proof_that_fails_is_a_refusal_and_its_capture_is_kept_for_the_next():
    host.others[str(pathlib.Path(FOLDER).resolve())] = errors.NotRecordable("kernel 3: word 8 lies in no declared region")
    with recorder() as seen, torch.no_grad():
        program(Net())
    assert seen.graphs[0].outcome == "refused" and "word 8" in seen.graphs[0].why and len(host.written) == 1
    assert "Random numbers" in seen.graphs[0].why and "name the tensor" in seen.graphs[0].why


def test_a_refusal_of_a_node_names_the_operator_that_enqueued_it(monkeypatch):
    count = [0]

    def cleared(func: Any, args: Any, kwargs: Any) -> Any:
        count[0] += 1
        return func(*args, **kwargs)

    monkeypatch.setattr(_capture, "cleared", cleared)
    monkeypatch.setattr(_constants, "enqueued_in", lambda device: lambda: (1, 1, 99 + count[0]))  # each operator enqueues a node
    monkeypatch.setattr(_capture, "node_positions", lambda native: {100 + i: i for i in range(count[0])} if native == 11 else {})
    found = []
    for node in range(6):
        count[0] = 0
        host.others[str(pathlib.Path(FOLDER).resolve())] = errors.NotRecordable(f"kernel k (node {node}): word 8 follows no region")
        with recorder() as seen, torch.no_grad():
            program(Net())
        found.append(seen.graphs[0].why)
    (linear,) = [one for one in found if "calls aten::addmm" in one]
    line = program.__code__.co_firstlineno + 6
    assert linear.startswith(f"`net.linear` ({pathlib.Path(__file__).name}:{line} in program) calls aten::addmm: kernel k (node ")
    assert found[0].startswith(f"{pathlib.Path(__file__).name}:") and " in in_pool calls aten::zeros: kernel k (node 0)" in found[0]


def test_captures_in_two_threads_are_not_recorded_together():
    inside, done = threading.Event(), threading.Event()

    def other() -> None:
        g = torch.cuda.CUDAGraph()
        with graph(g):
            inside.set()
            assert done.wait(30)

    with recorder() as seen, torch.no_grad():
        thread = threading.Thread(target=other)
        thread.start()
        assert inside.wait(30)
        program(Net())
        done.set()
        thread.join()
    assert [one.outcome for one in seen.graphs] == ["refused", "refused"] and "another capture" in seen.graphs[0].why


def test_our_own_captures_and_graphs_of_before_are_not_seen():
    before = torch.cuda.CUDAGraph()
    with recorder() as seen, torch.no_grad():
        with graph(before):
            pass
        ours = torch.cuda.CUDAGraph()
        begin = type(program)(compile("def begin(g): g.capture_begin()", "x", "exec").co_consts[0], {"__name__": "warmgraph.torch.record._capture"})
        begin(ours)
        ours.capture_end()
    assert not seen.graphs and not before.keep_graph


def test_closing_leaves_pytorch_as_it_was():
    names = ("__init__", "capture_begin", "capture_end")
    before = [CUDAGraph.__dict__.get(name) for name in names]
    seen = recorder()
    with pytest.raises(errors.InvalidArgument, match="already active in this process: close"):
        recorder()
    seen.close(), seen.close()
    assert [CUDAGraph.__dict__.get(name) for name in names] == before
    program(Net())
    assert not seen.graphs and "0 graphs" in repr(seen)


def test_the_recorder_prints_a_table():
    with recorder() as seen, torch.no_grad():
        program(Net())
    heads, row = str(seen).splitlines()
    assert heads.split() == ["graph", "outcome", "inputs", "outputs", "states", "why"] and row.split() == ["graphs-program-0", "written", "2", "1", "2"]
    assert repr(seen) == "<warmgraph recorder of 1 graphs, 1 written>"


def test_bad_options_say_what_is_wrong():
    for options, text in (({"captures": None}, "captures is None"), ({"captures": FOLDER, "key": 3}, "key is 3"), ({"captures": FOLDER, "nam": "x"}, "did you mean"),
                          ({"captures": FOLDER, "config": 3}, "config is 3"), ({"captures": FOLDER, "name": ""}, "name is ''")):
        with pytest.raises(errors.InvalidArgument, match=text):
            record_all(**options)
    assert not _record_all._open


def test_nothing_is_recorded_where_the_policy_says_so(monkeypatch):
    monkeypatch.setenv("WARMGRAPH_POLICY", "read_only")
    with recorder() as seen, torch.no_grad():
        program(Net())
    assert seen.graphs[0].outcome == "refused" and "read_only" in seen.graphs[0].why and not host.entries


def test_names_between_two_instructions():
    where = _caller_frames.calling

    def code() -> Any:
        a = 1
        first = where()
        b, c = a, [len(str(one)) for one in range(3)]
        last = where()
        d = 4
        return _caller_frames.variables_between(first, last), b, c, d

    (frame, found), *_ = code()
    assert set(found) >= {"a", "b", "c"} and "d" not in found

