"""A refusal names the module, the Python line and the operator that caused it, and says what to write in its place."""
from __future__ import annotations

import gc
import inspect
import sys
import weakref
from typing import Any, Callable

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed here")

import torch_on_the_host as host  # noqa: E402
import warmgraph  # noqa: E402
from torch_on_the_host import errors, is_captured, refusal, wrap  # noqa: E402
from warmgraph.calls import _refusals  # noqa: E402
from warmgraph.torch import GraphCache  # noqa: E402
from warmgraph.torch.read import _tensors  # noqa: E402
from warmgraph.torch.record import _capture, _capture_advice, _constants, _operators, _call_sites  # noqa: E402

pytestmark = pytest.mark.usefixtures("on_the_host")
X = torch.arange(4.0)
FORBIDDEN = "CUDA error: operation not permitted when stream is capturing"
RAW = f"{FORBIDDEN}\nSearch for `cudaErrorStreamCaptureUnsupported' in the documents.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1"
LATE = "CUDA error: operation failed due to a previous error during capture"
HERE = "test_torch_call_sites.py"


class Layer(torch.nn.Module):
    """Computes `work` of its input."""

    def __init__(self, work: Callable[[Any], Any]) -> None:
        super().__init__()
        self.weight, self.work = torch.nn.Parameter(torch.ones(4)), work

    def forward(self, x: Any) -> Any:
        return self.work(x * self.weight)


class SparseMoeBlock(Layer):
    pass


class Net(torch.nn.Module):
    def __init__(self, layer: torch.nn.Module) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(4, 4), layer])

    def forward(self, x: Any) -> Any:
        for one in self.layers:
            x = one(x)
        return x


def line(function: Any, more: int = 0) -> str:
    function = inspect.unwrap(function)
    return f"{HERE}:{inspect.getsourcelines(function)[1] + more} in {function.__name__}"


def refuse(monkeypatch: pytest.MonkeyPatch, *refused: Any, when: Callable[[], bool] = is_captured, text: str = RAW) -> None:
    """These operators raise the error of CUDA in a capture."""

    def cleared(func: Any, args: Any, kwargs: Any) -> Any:
        if func in refused and when():
            raise RuntimeError(text)
        return func(*args, **kwargs)

    monkeypatch.setattr(_capture, "cleared", cleared)


def nonzero(x: Any) -> Any:
    return x + torch.nonzero(x).numel()


# --- errors of a capture


def test_the_module_the_line_and_the_operator_are_named(monkeypatch):
    refuse(monkeypatch, torch.ops.aten.nonzero.default)
    cached = wrap(Net(Layer(nonzero)))
    assert torch.equal(cached(X).detach(), cached(X).detach())
    assert refusal(cached) == (f"`layers.1` ({line(nonzero, 1)}) calls aten::nonzero, which gives a result whose shape depends on numbers in device "
                               "memory, so PyTorch cannot capture it: use shapes that follow from the arguments' shapes (torch.where, or multiply by "
                               f"the mask; output_size= of repeat_interleave) (RuntimeError: {FORBIDDEN})")
    assert cached.report().outcome == "refused" and not host.entries


def test_the_line_is_the_programs_own_where_the_module_is_pytorchs(monkeypatch):
    refuse(monkeypatch, torch.ops.aten.addmm.default)
    cached = wrap(Net(Layer(nonzero)))
    cached(X.view(1, 4))
    assert refusal(cached).startswith(f"`layers.0` ({line(Net.forward, 2)}) calls aten::addmm, ")


def test_a_function_without_modules_is_named_by_its_line(monkeypatch):
    refuse(monkeypatch, torch.ops.aten.nonzero.default)
    cached = wrap(nonzero)
    cached(X)
    assert refusal(cached).startswith(f"{line(nonzero, 1)} calls aten::nonzero, ")


def test_a_module_that_is_a_global_or_an_argument_is_named(monkeypatch):
    refuse(monkeypatch, torch.ops.aten.nonzero.default)
    net = Net(Layer(nonzero))
    closure = wrap(lambda x: net(x))
    closure(X)
    assert refusal(closure).startswith("`layers.1` (")

    def given(model: Any, x: Any) -> Any:
        return model(x)

    cached = wrap(given)
    cached(net.requires_grad_(False), X)
    assert refusal(cached).startswith("`model.layers.1` (")


def test_a_module_is_named_in_the_second_capture_too(monkeypatch):
    refuse(monkeypatch, torch.ops.aten.nonzero.default, when=lambda: is_captured() and len(host.captures) == 1)
    cached = wrap(Net(Layer(nonzero)))
    cached(X)
    assert len(host.captures) == 1 and refusal(cached).startswith(f"`layers.1` ({line(nonzero, 1)}) calls aten::nonzero, ")


def waits(x: Any) -> Any:
    if is_captured():
        raise RuntimeError(RAW)
    return x * 2


def copies(x: Any) -> Any:
    if is_captured():
        raise RuntimeError("Cannot copy between CPU and CUDA tensors during CUDA graph capture unless the CPU tensor is pinned. Please use ...")
    return x * 2


@pytest.mark.parametrize("work, why", [(waits, "waits for the device, or does something else that CUDA forbids in a capture, so PyTorch cannot "
                                               "capture it: call it outside the function (RuntimeError: CUDA error"),
                                       (copies, "copies a tensor between host and device, so PyTorch cannot capture it: a tensor made on the host is "
                                                "copied to the device inside the function: make it outside, or make it on the device with device=")])
def test_what_no_operator_raises_is_named_by_the_traceback(work, why):
    cached = wrap(Net(Layer(work)))
    cached(X)
    assert refusal(cached).startswith(f"`layers.1` ({line(work, 2)}) {why}")
    assert _refusals.word_of(refusal(cached)) == "not_capturable"


def test_another_error_keeps_its_text_after_the_place():
    def fails(x: Any) -> Any:
        if is_captured():
            raise ValueError("no such mask")
        return x

    cached = wrap(Net(Layer(fails)))
    cached(X)
    assert refusal(cached) == f"`layers.1` ({line(fails, 2)}): ValueError: no such mask"


def test_an_operator_that_fails_for_another_reason_is_named(monkeypatch):
    refuse(monkeypatch, torch.ops.aten.nonzero.default, text="cuFFT error: CUFFT_INTERNAL_ERROR")
    cached = wrap(nonzero)
    cached(X)
    assert refusal(cached) == f"{line(nonzero, 1)} calls aten::nonzero, which fails in the capture: RuntimeError: cuFFT error: CUFFT_INTERNAL_ERROR"


def test_the_first_error_is_named_where_the_function_goes_on(monkeypatch):
    refuse(monkeypatch, torch.ops.aten.nonzero.default)
    captured = _capture.captured

    def captured_late(*given: Any) -> Any:
        captured(*given)
        raise RuntimeError(LATE)

    def goes_on(x: Any) -> Any:
        try:
            return nonzero(x)
        except RuntimeError:
            return x + 4

    monkeypatch.setattr(_capture, "captured", captured_late)
    cached = wrap(goes_on)
    cached(X)
    assert refusal(cached).startswith(f"{line(nonzero, 1)} calls aten::nonzero, ") and refusal(cached).endswith(f"(RuntimeError: {FORBIDDEN})")


def test_a_refusal_of_the_package_names_the_place():
    cached = wrap(Net(Layer(lambda x: torch.linalg.eigvalsh(x * x.view(4, 1)) + x)))
    cached(X)
    assert refusal(cached).startswith(f"`layers.1` ({HERE}:") and "in <lambda>): it calls aten._linalg_eigh.default, which cannot" in refusal(cached)


def test_an_operator_that_differs_from_the_answer_is_named_by_its_place():
    def differs(x: Any) -> Any:
        y = (torch.arange(4) == 3).any().item()  # the capture hears the answer's number, and runs no operator
        return x * (3 if is_captured() else 2) + y

    cached = wrap(Net(Layer(differs)))
    cached(X)
    assert f"; in `layers.1` ({line(differs, 2)}) operator " in refusal(cached) and " was aten.mul.Tensor(float32[4], 2), and is " in refusal(cached)


# --- advice


def test_experts_in_float32_are_advised_to_use_bfloat16(monkeypatch):
    refuse(monkeypatch, torch.ops.aten.nonzero.default)
    found = []
    for layer in (SparseMoeBlock(nonzero), SparseMoeBlock(nonzero).bfloat16(), Layer(nonzero)):
        cached = wrap(Net(layer))
        cached(X)
        found.append(("model.to(torch.bfloat16)" in refusal(cached), refusal(cached).startswith("`layers.1` (")))
    assert found == [(True, True), (False, True), (False, True)]


ATEN = torch.ops.aten
D, H = torch.empty(2, device="meta"), torch.empty(2)


@pytest.mark.parametrize("func, args, named, what", [
    (ATEN._local_scalar_dense.default, (D,), {}, "waits for the device to read numbers"),
    (ATEN.equal.default, (D, D), {}, "waits for the device to read numbers"),
    (ATEN.masked_select.default, (D, D.bool()), {}, "shape depends on numbers"),
    (ATEN.index.Tensor, (D, [D.bool()]), {}, "shape depends on numbers"),
    (ATEN.index.Tensor, (D, [None, H.long()]), {}, "from the host to the device"),
    (ATEN.index.Tensor, (D, [D.long()]), {}, "waits for the device in the middle"),
    (ATEN.repeat_interleave.Tensor, (D.long(),), {}, "shape depends on numbers"),
    (ATEN._to_copy.default, (H,), {"device": torch.device("meta")}, "from the host to the device"),
    (ATEN._to_copy.default, (D,), {"device": torch.device("cpu")}, "from the device to the host"),
    (ATEN.copy_.default, (D, H), {}, "from the host to the device"),
    (ATEN.copy_.default, (H, D), {}, "from the device to the host"),
    (ATEN._grouped_mm.default, (D, D), {}, "unless its numbers are bfloat16"),
    (ATEN.mul.Tensor, (D, D), {}, "waits for the device in the middle")])
def test_each_kind_of_operator_has_its_advice(monkeypatch, func, args, named, what):
    monkeypatch.setattr(_tensors, "DEVICE_TYPE", "meta")
    assert what in _capture_advice.of_operator(func, args, named, []).what


def test_bfloat16_is_advised_once():
    advice = _capture_advice.of_operator(ATEN._grouped_mm.default, (D, D), {}, [SparseMoeBlock(nonzero)])
    assert advice.cure.count("torch.bfloat16") == 1


@pytest.mark.parametrize("why, word", [
    ("`generator.gradient` (on the host.py:3 in generator) calls aten::gradient: kernel f (node 3): 0x7f follows no region", "undeclared_memory"),
    ("`a` (b.py:3 in c) calls aten::nonzero, which waits, so PyTorch cannot capture it: a tensor made on the host ...", "not_capturable")])
def test_names_of_the_program_do_not_decide_the_word_of_a_reason(why, word):
    assert _refusals.word_of(why) == word


# --- refusals of a node

EVENT = "warmgraph.tests.node"
WHY = "0x7f00 (no memory) and then 0x7f10 follows no region"
now: list[Nodes] = []
sys.addaudithook(lambda event, _: setattr(now[0], "count", now[0].count + 1) if event == EVENT else None)


class Nodes:
    """Captures in which each operator enqueues one node, except for views, and so does the audit event EVENT. The node number n has the
    handle 100 + n. The library refuses the node number `refused`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, refused: int) -> None:
        self.count = 0
        now[:] = [self]
        captured = host._captured

        def captured_anew(*given: Any) -> Any:
            self.count = 0
            return captured(*given)

        monkeypatch.setattr(_capture, "captured", captured_anew)
        monkeypatch.setattr(_constants, "enqueued_in", lambda device: lambda: (1, 1, 99 + self.count))
        monkeypatch.setattr(_capture, "node_positions", lambda native: {100 + i: i for i in range(self.count)})
        monkeypatch.setattr(_capture, "cleared", self._cleared)

        def entry(*given: Any) -> Any:
            raise errors.NotRecordable(f"kernel k (node {refused}), parameter 0 byte 56: {WHY}")

        monkeypatch.setattr(host._entry, "Entry", entry)

    def _cleared(self, func: Any, args: Any, kwargs: Any) -> Any:
        self.count += 0 if _operators._only_looks(func) else 1
        return func(*args, **kwargs)


def test_the_operator_that_enqueued_a_refused_node_is_named_first(monkeypatch):
    def work(x: Any) -> Any:
        return torch.exp(x.view(2, 2)).sum() + x  # the node of addmm is 0, of mul 1, of exp 2, of sum 3, of add 4

    found = []
    for number in range(5):
        Nodes(monkeypatch, number)
        cached = wrap(Net(Layer(work)))
        cached(X.view(1, 4))
        found.append(refusal(cached))
    places = [f"`layers.0` ({line(Net.forward, 2)}) calls aten::addmm", f"`layers.1` ({line(Layer.forward, 1)}) calls aten::mul"]
    places += [f"`layers.1` ({line(work, 1)}) calls aten::{name}" for name in ("exp", "sum", "add")]
    assert found == [f"{place}: kernel k (node {i}), parameter 0 byte 56: {WHY}" for i, place in enumerate(places)]


def test_a_node_that_no_operator_enqueued_is_said_to_be_such(monkeypatch):
    Nodes(monkeypatch, 1)

    def work(x: Any) -> Any:
        y = torch.exp(x)
        sys.audit(EVENT)
        return y + 1

    cached = wrap(work)
    cached(X)
    assert refusal(cached).startswith(f"no operator of PyTorch enqueued this, after {line(work, 1)} called aten::exp: kernel k (node 1), ")


def test_a_node_before_all_operators_has_no_name(monkeypatch):
    Nodes(monkeypatch, 0)

    def begins(x: Any) -> Any:
        sys.audit(EVENT)
        return x + 1

    cached = wrap(begins)
    cached(X)
    assert refusal(cached).startswith("kernel k (node 0), ")


def test_a_node_of_a_backward_is_named_by_autograds_node(monkeypatch):
    Nodes(monkeypatch, 0)
    cached = wrap(Net(Layer(torch.exp)), pair=True)
    cached(X).sum().backward()
    assert refusal(cached).startswith("the backward of ExpBackward0 calls aten::") and "kernel k (node 0)" in refusal(cached)


class Driver:
    """Graphs as lists of nodes. A node that holds a child graph is the child's list."""

    def __init__(self, graphs: dict[int, list[int]], children: dict[int, int]) -> None:
        self._graphs, self._children = graphs, children

    def cuGraphGetNodes(self, graph: Any, nodes: Any, count: Any) -> int:
        found = self._graphs[graph.value]
        count._obj.value = len(found)
        if nodes is not None:
            nodes[:] = found
        return 0

    def cuGraphNodeGetType(self, node: Any, kind: Any) -> int:
        kind._obj.value = 4 if node.value in self._children else 0
        return 0

    def cuGraphChildGraphNodeGetGraph(self, node: Any, graph: Any) -> int:
        graph._obj.value = self._children[node.value]
        return 0


def test_nodes_have_the_numbers_of_the_library(monkeypatch):
    driver = Driver({1: [11, 12, 13], 2: [21, 22, 23]}, {12: 2})
    monkeypatch.setattr(_capture._libraries, "driver", lambda: driver)
    assert _capture.node_positions(1) == {11: 0, 12: 3, 13: 4}


# --- places


def test_a_capture_that_an_engine_keeps_forgets_the_modules_that_it_ran(tmp_path):
    net = Net(Layer(torch.exp)).requires_grad_(False)
    GraphCache(captures=str(tmp_path), config=warmgraph.Config(model="engine")).capture_one(4, lambda: net(X))
    (capture,) = host.captures
    assert len(host.written) == 1 and capture.trail is None and not capture.graph.is_reset


def test_a_place_keeps_no_tensor_of_the_program_alive():
    gone: list[Any] = []

    class Look(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            y = x + 1
            seen = weakref.ref(y)
            _call_sites.here(is_bounded=False)
            y = x + 2
            gone.append(seen() is None)
            return y

    gc.disable()
    try:
        Look()(X)
    finally:
        gc.enable()
    assert gone == [True]


@pytest.mark.parametrize("text, waits", [("aten.nonzero.default(bool[4])", True), ("aten.equal.default(bool[4], bool[4])", True),
                                         ("aten._local_scalar_dense.default(int64[])", False),
                                         ("aten.mul.Tensor(float32[8], 2)", False), ("flex_attention(float32[8])", False), ("", False)])
def test_operators_that_surely_wait_are_known_by_their_texts(text: str, waits: bool) -> None:
    assert _capture_advice.waits(text) == waits
