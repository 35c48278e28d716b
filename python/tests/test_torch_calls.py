"""Reads, answers, records and replays calls with PyTorch tensors, without a GPU."""
from __future__ import annotations

import copy
import ctypes
import dataclasses
import json
import pickle
import struct
import threading
import types
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed here")

import torch_on_the_host as host  # noqa: E402
import warmgraph  # noqa: E402
from torch_on_the_host import refusal, wrap  # noqa: E402
from warmgraph import dtypes, errors  # noqa: E402
from warmgraph.core.cache._cache import Report  # noqa: E402
from warmgraph.core.serving._entry_metadata import each_fact  # noqa: E402
from warmgraph.torch.replay import _entry  # noqa: E402

pytestmark = pytest.mark.usefixtures("on_the_host")

SCALE = torch.arange(4.0)
REAL_ENTRY = _entry.Entry  # the tests replace it


class Net(torch.nn.Module):
    def __init__(self, width: int = 4, eps: float = 0.5) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(width, width)
        self.register_buffer("count", torch.zeros(1))
        self.eps = eps
        self.step = warmgraph.cache_compile(self.work, compile=False, config=warmgraph.Config(model="net"))

    def work(self, x: Any) -> Any:
        self.count.add_(1)
        return self.linear(x) + self.eps


def at_alignment(offset: int) -> Any:
    """A tensor of 2 x 4 elements whose address is a multiple of 256, plus `offset`."""
    memory = torch.zeros(256)
    start = -memory.data_ptr() % 256 + offset
    return memory[start // 4:start // 4 + 8].view(2, 4)


def test_a_miss_answers_and_is_captured_on_the_callers_memory_and_on_a_copy():
    net, x = Net(), torch.randn(2, 4)
    y = net.step(x)
    assert torch.equal(y, net.linear(x) + 0.5) and not y.requires_grad
    (entry,) = host.entries
    first, second = entry.captures
    assert [name for name, _, _ in first.regions] == ["x", "result0", "count", "linear.weight", "linear.bias"]
    assert [name for name, _, _ in second.regions] == [name for name, _, _ in first.regions]
    assert dict((name, at) for name, at, _ in first.regions)["linear.weight"] == net.linear.weight.data_ptr()
    assert not {at for _, at, _ in first.regions} & {at for _, at, _ in second.regions}
    assert [one.name for one in entry.given.states if one.is_written] == ["count"]


def test_a_report_adds_the_recordings_own_memory_to_the_librarys(monkeypatch: pytest.MonkeyPatch) -> None:
    net = Net()
    net.step(torch.randn(2, 4))
    (entry,) = host.entries
    assert entry.recording_bytes == 2 * 4 + 8 * 4 + 2 * 64 + 4096, "count before and after, the result, both captures' pools, the shadows"
    assert net.step.report().recording_bytes == entry.recording_bytes
    for outcome, held in (("recorded", 1_000_000 + entry.recording_bytes), ("replayed", 0)):
        report = Report("step", outcome, "", "abcdef", 812.0, (), 1_000_000 if outcome == "recorded" else 0)
        monkeypatch.setattr(_entry, "report_of", lambda pointer, report=report: report)
        report = REAL_ENTRY.report(types.SimpleNamespace(pointer=1, recording_bytes=entry.recording_bytes))
        assert report.recording_bytes == held
        monkeypatch.setattr(entry, "report", lambda report=report: report)
        text = "recorded in 812.0 ms, 1.0 MB of device memory, entry abcdef" if held else "replayed in 812.0 ms, entry abcdef"
        assert text in warmgraph.explain(net.step)


def test_an_entry_that_says_what_its_call_met_is_replayed_as_without():
    net, x = Net(), at_alignment(0)
    net.step(x)
    for key, text in host.kept.items():
        host.kept[key] = json.dumps({**json.loads(text), "met": {"classes": [["no.such.module", "Net", True]], "functions": 1}})
    again = wrap(net.work)
    again(x)
    assert again.report().outcome == "replayed" and len(host.entries) == 2 and host.entries[-1].captures is None


def test_the_copy_is_captured_and_the_callers_objects_are_never_touched():
    net, x = Net(), torch.randn(2, 4)
    net.step(x)
    assert net.count.item() == 1  # from the answer: the captures also run the function here, but their effects are undone


def test_a_later_call_is_replayed_with_the_addresses_of_that_call():
    net, x = Net(), at_alignment(0)
    net.step(x)
    other = at_alignment(0)
    y = net.step(other)
    (entry,) = host.entries
    (pointers, states), = entry.calls
    assert pointers == [other.data_ptr(), y.data_ptr()]
    assert states == [net.count.data_ptr(), net.linear.weight.data_ptr(), net.linear.bias.data_ptr()]


def test_another_process_finds_the_entry_by_inputs_and_facts_and_learns_the_result():
    torch.manual_seed(1)
    Net().step(torch.randn(2, 4))
    y = Net().step(torch.randn(2, 4))  # calls another wrapper, which has nothing in common except the stored entry
    assert y.shape == (2, 4) and len(host.entries) == 2 and host.entries[1].captures is None and len(host.entries[1].calls) == 1


@pytest.mark.parametrize("change", ["eps", "shape", "dtype", "training", "strides", "alias", "autocast", "weight"])
def test_what_differs_is_another_variant(change):
    net = Net()
    x = torch.randn(4, 4)
    work = wrap(lambda a, b: a + b)
    net.step(x), work(x, torch.randn(4, 4))
    before = len(host.entries)
    if change == "eps":
        net.eps = 0.25
        net.step(x)
    elif change == "shape":
        net.step(torch.randn(3, 4))
    elif change == "dtype":
        net.double().step(x.double())
    elif change == "training":
        net.eval().step(x)
    elif change == "strides":
        net.step(x.t())
    elif change == "alias":
        work(x, x[:])
    elif change == "autocast":
        torch.set_float32_matmul_precision("high")
        try:
            net.step(x)
        finally:
            torch.set_float32_matmul_precision("highest")
    elif change == "weight":
        net.linear = torch.nn.Linear(4, 4, bias=False)
        net.step(x)
    assert len(host.entries) == before + 1


def test_weights_may_move_and_are_bound_where_they_are():
    net, x = Net(), torch.randn(2, 4)
    net.step(x)
    net.linear.weight.data = net.linear.weight.data.clone()
    net.step(x)
    (entry,) = host.entries
    assert entry.calls[0][1][1] == net.linear.weight.data_ptr()


def test_globals_and_closures_are_states_and_moved_in_place_for_the_second_capture(monkeypatch):
    offset = torch.ones(4)
    seen = []

    def captured(*args: Any) -> Any:
        seen.append((SCALE.data_ptr(), offset.data_ptr()))
        return host._captured(*args)

    monkeypatch.setattr(host._capture, "captured", captured)

    def work(x: Any) -> Any:
        return x * SCALE + offset

    places = SCALE.data_ptr(), offset.data_ptr()
    wrap(work)(torch.ones(2, 4))
    first, second = host.entries[0].captures
    assert [name for name, _, _ in first.regions][2:] == ["work.offset", "test_torch_calls.SCALE"]
    assert (SCALE.data_ptr(), offset.data_ptr()) == places == seen[0]
    assert set(seen[1]) <= {at for _, at, _ in second.regions}
    assert {at for _, at, _ in second.regions}.isdisjoint(places)


def test_tied_weights_are_one_state():
    net = torch.nn.Module()
    net.a, net.b = torch.nn.Linear(4, 4, bias=False), torch.nn.Linear(4, 4, bias=False)
    net.b.weight = net.a.weight

    def work(x: Any) -> Any:
        return net.b(net.a(x))

    wrap(work)(torch.ones(2, 4))
    assert [one.name for one in host.entries[0].given.states] == ["work.net.a.weight"]


def test_arguments_in_one_storage_are_one_region():
    whole = torch.zeros(4, 4)
    wrap(lambda a, b: a.add_(b))(whole[0], whole[2])
    given = host.entries[0].given
    assert [(one.name, one.sizes) for one in given.inputs] == [("a", (12,))]
    assert each_fact(given.facts)["memory.b"].endswith("+ 32")


@dataclasses.dataclass
class Pair:
    left: Any
    right: Any


def test_a_result_comes_back_in_its_structure():
    def work(x: Any, state: Any) -> Any:
        return Pair(x + 1, [state, {"half": x[:, ::2], "n": 3, "none": None}, (x, x * 2)])

    cached, x, state = wrap(work), torch.randn(2, 4), {"k": torch.zeros(3)}
    cached(x, state)
    found = cached(x, state)
    assert type(found) is Pair and found.right[0] is state and found.right[2][0] is x
    assert found.right[1]["half"].data_ptr() == x.data_ptr() and found.right[1]["half"].stride() == (4, 2)
    assert (found.right[1]["n"], found.right[1]["none"]) == (3, None)


def test_a_counter_is_refused_by_its_path_and_the_call_has_its_result(caplog):
    class Counter(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.steps = 2
            self.step = wrap(self.work)

        def work(self, x: Any) -> Any:
            self.steps += 1
            return x + self.steps

    counter = Counter()
    assert torch.equal(counter.step(torch.zeros(2)), torch.full((2,), 3.0))
    assert not host.entries and "self" in refusal(counter.step) and "steps=int 2" in refusal(counter.step)
    for expected in (4.0, 5.0, 6.0):
        assert torch.equal(counter.step(torch.zeros(2)), torch.full((2,), expected))
    assert not host.captures
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(warnings) == 1 and "steps=int 3" in warnings[0] and "a replay would not change it" in warnings[0]  # once for all values


@pytest.mark.parametrize("before, after", [(None, 3), (False, True), (0, 16), ("", "sdpa"), ((), (1, 2))])
def test_a_plain_value_that_the_first_use_made_is_there_at_the_next_call_which_is_recorded(before, after):
    class Grown:
        def __init__(self) -> None:
            self.most = before

        def step(self, x: Any) -> Any:
            if self.most != after:
                self.most = after
            return x + 1

    Grown.cached = wrap(Grown.step)
    objects = [Grown() for _ in range(12)]
    for one in objects:
        assert torch.equal(one.cached(torch.zeros(2)), torch.ones(2)) and one.most == after
        replays = len(host.entries[0].calls) if host.entries else 0
        one.cached(torch.zeros(2))
        one.cached(torch.zeros(2))
        assert len(host.entries) == 1 and len(host.entries[0].calls) >= replays + 1
    assert "self.most was" in refusal(objects[0].cached) and "the next call that changes nothing is recorded" in refusal(objects[0].cached)


class Request:
    def __init__(self) -> None:
        self.started = False


def started(x: Any, request: Any) -> Any:
    request.started = True
    return x + 1


def test_a_value_that_is_set_back_each_time_is_refused_for_good(caplog):
    cached = wrap(started)
    for _ in range(12):
        assert torch.equal(cached(torch.zeros(2), Request()), torch.ones(2))
    assert not host.captures and "request.started was 'bool False'" in refusal(cached)
    assert len([record for record in caplog.records if record.levelname == "WARNING"]) == 1


def test_calls_that_change_nothing_are_replayed_beside_one_that_is_refused_for_good():
    cached, known = wrap(started), Request()
    cached(torch.zeros(2), known)
    cached(torch.zeros(2), known)
    assert len(host.entries) == 1
    for _ in range(12):
        cached(torch.zeros(2), Request())
    for is_read_anew in (False, True):
        if is_read_anew:
            cached._shared.torchs.steady.clear()
            cached._shared.torchs._around.clear()
        replays = len(host.entries[0].calls)
        cached(torch.zeros(2), known)
        assert len(host.entries) == 1 and len(host.entries[0].calls) == replays + 1


def test_what_the_answer_made_is_there_at_the_next_call_which_is_recorded():
    class Lazy(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cache: dict[str, Any] = {}
            self.step = wrap(self.work)

        def work(self, x: Any) -> Any:
            if "k" not in self.cache:
                self.cache["k"] = torch.zeros(4)
            return x + self.cache["k"]

    lazy = Lazy()
    lazy.step(torch.ones(4))
    assert not host.entries
    lazy.step(torch.ones(4))
    assert len(host.entries) == 1


@pytest.mark.parametrize("value, words", [
    (lambda: torch.zeros(4).to_sparse(), "layout"), (lambda: torch.zeros(4, dtype=torch.complex64).conj(), "conjugated"),
    (lambda: torch.nn.UninitializedParameter(), "subclass"), (lambda: torch.zeros(4, device="meta"), "meta"),
    (lambda: torch.quantize_per_tensor(torch.zeros(4), 1.0, 0, torch.qint8), "quantised")])
def test_tensors_that_cannot_be_followed_are_refused_by_path(value, words):
    cached = wrap(lambda x, y: x + 1)
    cached(torch.zeros(2), [value()])
    assert refusal(cached).startswith("y[0]") and words in refusal(cached)


def test_an_input_that_requires_grad_is_refused_in_grad_mode_and_keeps_its_gradient():
    cached, x = wrap(lambda x: x * 2), torch.ones(2, requires_grad=True)
    cached(x).sum().backward()
    assert torch.equal(x.grad, torch.full((2,), 2.0)) and "requires grad" in refusal(cached)
    with torch.no_grad():
        cached(x)
    assert len(host.entries) == 1


def test_require_hit_says_so_without_an_entry(monkeypatch):
    monkeypatch.setenv("WARMGRAPH_POLICY", "require_hit")
    with pytest.raises(errors.MissForbidden):
        wrap(lambda x: x + 1)(torch.zeros(2))
    monkeypatch.setenv("WARMGRAPH_POLICY", "read_only")
    assert torch.equal(wrap(lambda x: x + 1)(torch.zeros(2)), torch.ones(2))
    assert not host.captures


def test_an_exception_of_the_function_is_the_callers_and_nothing_is_recorded():
    def work(x: Any) -> Any:
        raise KeyError("mine")

    with pytest.raises(KeyError):
        wrap(work)(torch.zeros(2))
    assert not host.entries


def test_a_module_that_holds_wrappers_is_copied_and_pickled():
    net = Net()
    net.step(torch.zeros(1, 4))
    twin = copy.deepcopy(net)
    with pytest.raises(errors.InvalidArgument, match="copied or unpickled"):
        twin.step(torch.zeros(1, 4))
    assert isinstance(pickle.loads(pickle.dumps(net)), Net)


def test_another_thread_may_use_the_module_while_it_is_recorded():
    net, x = Net(), torch.randn(2, 4)
    expected, wrong, stop = net.linear(x), [], threading.Event()

    def use() -> None:
        while not stop.is_set():
            if not torch.equal(net.linear(x), expected):
                wrong.append(True)

    thread = threading.Thread(target=use)
    thread.start()
    try:
        for rows in range(1, 20):
            net.step(torch.randn(rows, 4))
    finally:
        stop.set()
        thread.join()
    assert not wrong


def test_compiled_functions_are_not_compiled_again_for_the_copy():
    cached = warmgraph.cache_compile(Net().work, compile={"backend": "eager"}, config=warmgraph.Config(model="net"))
    cached(torch.randn(2, 4))
    assert len(host.entries) == 1 and not refusal(cached)


def test_a_function_that_the_caller_compiled_is_moved_in_place():
    net = Net()
    cached = wrap(torch.compile(net.work, backend="eager"))
    cached(torch.randn(2, 4))
    weight = net.linear.weight.data_ptr()
    first, second = host.entries[0].captures
    assert dict((name, at) for name, at, _ in first.regions)["linear.weight"] == weight
    assert weight not in {at for _, at, _ in second.regions}


def test_an_input_with_a_worse_alignment_than_the_recordings_is_copied_where_it_is_only_read():
    net = Net()
    net.step(at_alignment(0))
    (entry,) = host.entries
    assert '"aligned":{"x":256}' in entry.given.metadata
    worse, better = at_alignment(16), at_alignment(0)
    for x in (worse, better):
        net.step(x)
    (copied, _), (as_it_is, _) = entry.calls
    assert copied[0] != worse.data_ptr() and as_it_is[0] == better.data_ptr()


def test_an_input_that_is_written_is_never_copied():
    step = wrap(lambda x: x.add_(1))
    step(at_alignment(0))
    worse = at_alignment(16)
    assert step(worse) is worse
    (entry,) = host.entries
    ((pointers, _),) = entry.calls
    assert pointers == [worse.data_ptr()] and '"aligned":{}' in entry.given.metadata


def test_operators_that_are_captured_find_a_cleared_stack(monkeypatch):
    import types

    from warmgraph.torch.record import _capture, _operators

    cleared = []
    monkeypatch.setattr(_capture, "library", lambda: types.SimpleNamespace(wg_clear_stack=lambda: cleared.append(1)))
    monkeypatch.setattr(_operators, "compiled_graphs", lambda: 0)  # other tests may have compiled functions
    net, x = Net(), torch.randn(2, 4)
    net.step(x)
    captured = len(cleared)
    assert captured >= 2 * 3  # at least two captures with three operators each
    net.step(x)
    assert len(cleared) == captured


def test_a_layer_that_was_to_be_compiled_and_is_left_alone_meets_no_mode_of_ours(monkeypatch):
    from warmgraph.torch.record import _capture, _operators

    layer, x = torch.nn.Linear(4, 4), torch.randn(2, 4)
    is_error = torch.torch_version.TorchVersion(torch.__version__) >= "2.12"  # PyTorch raises an error if the caller asks for a whole graph
    layer.compile(fullgraph=not is_error, backend="eager")
    with torch.no_grad():
        wanted = layer(x)
    monkeypatch.setattr(_operators, "compiled_graphs", lambda: 0)
    with torch.no_grad(), _operators.shown_to(run=_capture.cleared):
        assert torch.equal(layer(x), wanted)


def test_a_hash_that_a_librarys_object_keeps_is_no_guard():
    kind = type("Odd", (), {"__module__": "torch.odd"})
    net = Net()
    net.odd = kind()
    net.odd._original_object_hash, net.odd.width = hash("of this process"), 3
    net.step(torch.randn(2, 4))
    (entry,) = host.entries
    assert each_fact(entry.given.facts)["self.odd.width"] == "int 3"
    assert not [path for path in each_fact(entry.given.facts) if path.endswith("hash")]


def test_a_submodules_forward_is_code_that_counts():
    from warmgraph.torch.read import _installed_code

    class Inner(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x + 1

    class Other(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x - 1

    def work(x: Any) -> Any:
        return x

    inner, other = (_installed_code.TorchReachedCode(work, {kind: False}).digest() for kind in (Inner, Other))
    assert inner != other


def test_a_tensor_that_the_function_closes_over_may_be_its_result():
    total = torch.zeros(4)

    def work(x: Any) -> Any:
        return total.add_(x), total[1:]

    cached = wrap(work)
    cached(torch.ones(4))
    assert len(host.entries) == 1 and not refusal(cached)
    found, part = cached(torch.ones(4))
    assert found is total and part.data_ptr() == total.data_ptr() + 4


@pytest.mark.parametrize("natively", [True, False])
def test_rows_of_the_c_interface_are_packed_as_the_compiler_lays_them_out(natively: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    from warmgraph.core.binding import _c
    from warmgraph.reading import _native_snapshots
    from warmgraph.torch.replay import _entry

    if not natively:
        monkeypatch.setattr(_native_snapshots, "is_possible", lambda: False)

    for members, kind in ((_entry._TENSOR, _c.wg_tensor_decl), (_entry._STATE, _c.wg_state_decl), (_entry._LAYOUT, _c.wg_layout), (_entry._ARG, _c.wg_arg), ("PP", _c.wg_key_value)):
        assert [struct.calcsize(f"@{members * count}0P") for count in (1, 3)] == [ctypes.sizeof(kind), 3 * ctypes.sizeof(kind)]
    states = [_entry.Decl("weights", "f32", (2, 3), None, 4096, 24, False), _entry.Decl("cache", "u8", (), None, 8192, 1)]
    inputs = [_entry.Decl("x", "bf16", (4, 2), (1, 4), 512, 16), _entry.Decl("token", "i64", (8,), None, 1024, 64)]
    given = _entry.Declaration("step", inputs, [_entry.Decl("result0", "f32", (7,), None, 0, 28)], states, {"a": "1", "b": "", "\u00e9": "\u6f22"}, ["HOME"], "2")
    raw, kept = _entry.raw_spec(given)
    assert [(one.name, one.dtype, one.sizes[:one.rank]) for one in raw.inputs[:raw.input_count]] == \
        [(b"x", dtypes.CODES["bf16"], [4, 2]), (b"token", dtypes.CODES["i64"], [8])]
    assert [(one.name, one.sizes[:one.rank]) for one in raw.outputs[:raw.output_count]] == [(b"result0", [7])]
    assert [(one.name, one.memory.address.base + one.memory.address.offset, one.memory.size, one.access) for one in raw.states[:raw.state_count]] == \
        [(b"weights", 4096, 24, _c.wg_access_read_only), (b"cache", 8192, 1, _c.wg_access_read_write)]
    layouts = [(one.name, one.sizes[:one.rank], one.strides[:one.rank] if one.strides else None) for one in raw.layouts[:raw.layout_count]]
    assert layouts == [(b"x", [4, 2], [1, 4]), (b"weights", [2, 3], None), (b"cache", [], None)]
    assert [(one.key, one.value) for one in raw.config[:raw.config_count]] == \
        [(b"a", b"1"), (b"b", b""), ("\u00e9".encode(), "\u6f22".encode())]
    assert list(raw.environment[:raw.environment_count]) == [b"HOME"]
    del kept
    for decls in ([*inputs, *given.outputs], [_entry.Decl(f"x{i}", "f32", (), None, 256 + i, 4) for i in range(37)], []):
        args, numbers = _entry._filled_args(decls)
        assert len(args) == len(decls), "each is passed"
        assert [(one.name, one.kind, one.memory.address.base + one.memory.address.offset, one.memory.size) for one in args] == \
            [(one.name.encode(), _c.wg_arg_memory, one.pointer or _entry.FLAT, one.nbytes) for one in decls]
        for number, one in enumerate(args):
            numbers[(_entry.address_place(args, number) - ctypes.addressof(args)) // 8] = _entry._less_flat(1 << 40)
            assert one.memory.address.offset == (1 << 40) - _entry.FLAT
    assert _entry._less_flat(0) == (1 << 64) - _entry.FLAT
    with pytest.raises(UnicodeEncodeError):
        _entry._texts(["a", "\ud800"])


def test_outputs_are_declared_as_they_lie() -> None:
    from warmgraph.torch.replay import _declarations, _entry, _outputs

    for dtype, sizes, strides, declared in (("float32", (2, 3), (3, 1), ("f32", (2, 3), None, 24)), ("float32", (2, 3), (1, 2), ("f32", (2, 3), (1, 2), 24)),
                                            ("int64", (), (), ("i64", (), None, 8))):
        assert _declarations.output_decl(_outputs.Output("y", dtype, sizes, strides), 512) == _entry.Decl("y", *declared[:3], 512, declared[3])


def test_a_weight_that_is_not_its_storage_is_declared_as_bytes_of_it() -> None:
    from warmgraph.torch.read import _tensor_readers
    from warmgraph.torch.replay import _regions

    memory = torch.zeros(6, 4)
    whole, part, turned = torch.zeros(2, 3), memory[2:4], torch.zeros(4, 5).t()
    places = [_tensor_readers.TensorPlace(f"self.{name}", one, "self") for name, one in (("whole", whole), ("part", part), ("turned", turned))]
    found = _regions.regions_of(places)
    assert [(one.name, one.sizes, one.nbytes, one.pointer) for one in found] == [
        ("whole", (2, 3), 24, whole.data_ptr()), ("part", (24,), 96, memory.data_ptr()), ("turned", (20,), 80, turned.data_ptr())]
    assert _regions.facts_of(found) == {"memory.self.whole": "whole state 24 bytes + 0", "memory.self.part": "part state 96 bytes + 32",
                                        "memory.self.turned": "turned state 80 bytes + 0"}


def test_names_of_states_are_those_of_their_paths() -> None:
    from warmgraph.torch.replay import _regions

    paths = ["self.model.layers[0].mlp[1][2].weight", "cache.layers[3].keys", "x[0]", "x['a b']", "d[[0]]", "d[]", "[0]", "self.result0", "result1[0]", "self._x_",
             "p" * 120 + "[0]", "self.a[0].b", "self.a_0_.b", "ä[1]", "-", "generator.seed", "pair.saved0", "y]]", "y[1]]["]
    names: set[str] = set()
    assert [_regions._name(names, path) for path in paths] == [
        "model.layers_0_.mlp_1_2_.weight", "cache.layers_3_.keys", "x_0", "x_a_b", "d_0", "d", "0", "result0_", "result1_0", "x", ("p" * 120 + "_0")[-100:],
        "a_0_.b", "a_0_.b-2", "1", "tensor", "generator.seed_", "pair.saved0_", "y", "y_1"]
    assert len(names) == len(paths)


@pytest.mark.parametrize("compiled", [lambda net: torch.compile(net, backend="eager"), lambda net: torch.compile(lambda x: net(x), backend="eager")])
def test_a_wrapped_forward_that_is_traced_is_the_functions_own_with_its_object(compiled):
    net, x = torch.nn.Sequential(torch.nn.Linear(4, 4)), torch.randn(2, 4)
    with torch.no_grad():
        wanted = net(x)
        net.forward = warmgraph.cache_compile(net.forward, config=warmgraph.Config(model="net"))
        assert torch.equal(compiled(net)(x), wanted)
    assert not host.entries
