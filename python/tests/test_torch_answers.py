"""A recording must give the same results and written states as the answer, when both start from the same memory. No GPU is needed: here a
capture runs its work."""
from __future__ import annotations

from typing import Any, Callable, Iterator

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed here")

import torch_on_the_host as host  # noqa: E402
import warmgraph  # noqa: E402
from torch_on_the_host import refusal, wrap  # noqa: E402
from warmgraph import errors  # noqa: E402
from warmgraph.torch import GraphCache  # noqa: E402
from warmgraph.torch.calls._torch_function import TorchFunction  # noqa: E402
from warmgraph.torch.record import _answers, _operators  # noqa: E402

NOT_ALIKE = "the function behaves differently under capture: "


@pytest.fixture(autouse=True)
def on_the_host(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    host.use(monkeypatch)
    monkeypatch.setattr(_operators, "compiled_graphs", lambda: 0)  # other tests may have compiled functions
    yield


def agreement() -> str:
    return host.entries[-1].agreement


def is_captured() -> bool:
    """Whether a capture is running. The package cannot see this question."""
    return host.is_captured()


X = torch.arange(8.0)


def test_a_function_that_gives_something_else_when_it_is_captured_is_refused_by_its_first_result():
    def work(x: Any) -> Any:
        mask = torch.ones_like(x) if is_captured() else torch.arange(8.0) % 2
        return x + 1, x * mask

    cached = wrap(work)
    assert torch.equal(cached(X)[1], X * (torch.arange(8.0) % 2))
    assert NOT_ALIKE + "result1" in refusal(cached) and "operator" in refusal(cached) and not host.entries
    assert "element 2 was 0.0 in the call itself and is 2.0 in the graph, 3 of 8 differ" in refusal(cached)
    assert torch.equal(cached(X)[1], X * (torch.arange(8.0) % 2)), "it runs as it is"


def test_a_state_that_is_written_with_something_else_is_refused_and_keeps_what_the_answer_left():
    total = torch.zeros(8)

    def work(x: Any) -> Any:
        total.add_(x * 2 if is_captured() else x)
        return x + 1

    cached = wrap(work)
    cached(X)
    assert NOT_ALIKE + "work.total" in refusal(cached) and torch.equal(total, X)


def test_the_graph_starts_from_what_the_answer_started_from():
    total = torch.zeros(8)

    def work(x: Any) -> Any:
        total.add_(x)
        return total * 2, total

    cached = wrap(work)
    assert torch.equal(cached(X)[0], X * 2)
    assert not refusal(cached) and agreement() == "bitwise" and torch.equal(total, X)


def test_an_argument_that_is_written_is_put_back_and_compared():
    def work(x: Any) -> Any:
        x.mul_(3 if is_captured() else 2)

    cached, x = wrap(work), X.clone()
    cached(x)
    assert torch.equal(x, X * 2) and NOT_ALIKE + "x" in refusal(cached)


def test_what_a_capture_alone_writes_is_refused_before_it_runs():
    other = torch.zeros(8)

    def work(x: Any) -> Any:
        if is_captured():
            other.add_(1)
        return x + other

    cached = wrap(work)
    cached(X)
    assert "it writes work.other, which the call itself did not write" in refusal(cached) and not host.entries


def test_running_statistics_are_kept_before_they_are_written():
    norm = torch.nn.BatchNorm1d(4).train()
    regions = []

    class Watching(_answers.Start):
        def keep(self, region: Any) -> None:
            regions.append(region.name)
            super().keep(region)

    cached, before = wrap(norm), norm.running_mean.clone()
    monkey = pytest.MonkeyPatch()
    with monkey.context() as patched:
        patched.setattr(_answers, "Start", Watching)
        cached(torch.randn(8, 4))
    assert {"running_mean", "running_var", "num_batches_tracked"} <= set(regions)
    assert not torch.equal(norm.running_mean, before) and norm.num_batches_tracked.item() == 1


def test_a_function_that_asks_pytorch_whether_it_is_captured_hears_what_it_heard_in_its_answer():
    total = torch.zeros(8)

    def work(x: Any) -> Any:
        factor = 3 if torch.cuda.is_current_stream_capturing() else 2
        total.add_(x * factor)
        return x * factor

    cached, real = wrap(work), torch.cuda.is_current_stream_capturing
    assert torch.equal(cached(X), X * 2) and torch.equal(total, X * 2)
    assert not refusal(cached) and agreement() == "bitwise" and torch.cuda.is_current_stream_capturing is real


def test_a_function_that_asks_and_cannot_be_captured_so_is_refused_by_what_differs():
    def work(x: Any) -> Any:
        if torch.cuda.is_current_stream_capturing():
            return x * 3
        if host.is_captured():
            raise RuntimeError("it synchronises")
        return x * 2

    cached = wrap(work)
    assert torch.equal(cached(X), X * 2) and NOT_ALIKE + "result0" in refusal(cached) and not host.entries


def test_captures_are_hidden_at_once_from_a_function_that_asks_in_its_answer():
    def work(x: Any) -> Any:
        return x * (2 if torch.cuda.is_current_stream_capturing() else 2)

    heard: list[str] = []
    cached, asked = wrap(work), host._capture.asked
    monkey = pytest.MonkeyPatch()
    with monkey.context() as patched:
        patched.setattr(host._capture, "asked", lambda as_answered: (heard.append(as_answered), asked(as_answered))[1])
        cached(X)
    assert heard == ["no", "yes", "yes"] and len(host.entries) == 1, "the answer and two captures"


# --- Allowed differences


def test_numbers_that_are_rounded_otherwise_by_the_same_operators_are_recorded():
    factors = torch.full((8,), 2.0), torch.full((8,), 2.001)

    def work(x: Any) -> Any:
        return x * factors[is_captured()]

    cached = wrap(work)
    cached(X)
    assert not refusal(cached) and agreement() == "within rounding"


@pytest.mark.parametrize("other, dtype", [(2.1, torch.float32), (2.001, torch.float64), (3.0, torch.int32)])
def test_what_is_further_apart_is_refused(other, dtype):
    factors = torch.full((8,), 2.0, dtype=dtype), torch.full((8,), other, dtype=dtype)

    def work(x: Any) -> Any:
        return x * factors[is_captured()]

    cached = wrap(work)
    cached(X.to(dtype))
    assert NOT_ALIKE + "result0" in refusal(cached) and "operator" not in refusal(cached)


def test_a_little_less_by_other_operators_is_refused():
    def work(x: Any) -> Any:
        return x * 2.001 if is_captured() else x * 2

    cached = wrap(work)
    cached(X)
    assert NOT_ALIKE in refusal(cached) and "operator 0 was aten.mul.Tensor(float32[8], 2), and is aten.mul.Tensor(float32[8], 2.001)" in refusal(cached)


def test_a_function_that_builds_its_mask_only_in_a_capture_is_recorded():
    """As transformers' models do: outside of a capture they leave out a mask that is all ones."""
    def work(x: Any, mask: Any) -> Any:
        if not torch.cuda.is_current_stream_capturing() and bool(mask.all()):
            return x / 3
        return torch.where(mask, x, 0) * (1 / 3) * (1 + 1e-6)

    cached = wrap(work)
    x = torch.linspace(1, 2, 8)
    cached(x, torch.ones(8, dtype=torch.bool))
    assert len(host.entries) == 1 and not refusal(cached)


def test_a_function_that_chooses_other_operators_in_a_capture_is_captured_as_it_answered() -> None:
    def work(x: Any) -> Any:
        return x * 2.0001 if torch.cuda.is_current_stream_capturing() else x * 2

    cached = wrap(work)
    assert torch.equal(cached(X), X * 2) and not refusal(cached)
    assert agreement() == "bitwise" and len(host.captures) == 2, "both captures were hidden"


def test_where_the_hidden_capture_fails_the_results_decide() -> None:
    def work(x: Any) -> Any:
        if torch.cuda.is_current_stream_capturing():
            return x * 2 * (1 + 1e-6)
        if is_captured():
            raise RuntimeError("only outside of a capture")
        return x * 2

    cached = wrap(work)
    assert torch.equal(cached(X), X * 2) and not refusal(cached)
    assert "operators that it chooses in a capture" in agreement()


@pytest.mark.parametrize("waits, expected", [
    (lambda x: x.nonzero(), ["no", "no", "no"]), (lambda x: x.sum().item(), ["no", "no", "no"]),
    (lambda x: torch.arange(x.shape[0]).sum().item(), ["no", "yes", "yes"]),  # a capture gets this number from the answer
    (lambda x: torch.ones_like(x).sum().item(), ["no", "yes", "yes"]),
    (lambda x: (torch.arange(8.0) * x).sum().item(), ["no", "no", "no"])])
def test_captures_are_not_hidden_from_a_function_that_waits_for_the_device(waits: Callable[[Any], Any], expected: list[str]) -> None:
    heard: list[str] = []

    def work(x: Any) -> Any:
        torch.cuda.is_current_stream_capturing() or waits(x)
        return x * 2

    cached, asked = wrap(work), host._capture.asked
    with pytest.MonkeyPatch().context() as patched:
        patched.setattr(host._capture, "asked", lambda as_answered: (heard.append(as_answered), asked(as_answered))[1])
        cached(X)
    assert heard == expected and len(host.entries) == 1


def judged(answer: torch.Tensor, *runs: list[float], difference: Any = None, has_asked: bool = False) -> str:
    found = torch.zeros_like(answer)
    judge = _answers.AnswerJudge([_answers.ResultPair("result0", answer, found)], difference, has_asked)
    for run in runs:
        found.copy_(torch.tensor(run))
        judge.after_run()
    return judge.agreement()


@pytest.mark.parametrize("answer, agrees", [([1.0, 2.0], "bitwise"), ([1.1, 2.0], "within its spread"), ([1.15, 2.0], "within its spread"),
                                            ([1.0, 2.5], None), ([3.0, 2.0], None), ([float("nan"), 2.0], None)])
def test_an_answer_lies_within_what_the_graph_gives_by_itself(answer, agrees):
    runs = [1.0, 2.0], [1.1, 2.0], [1.2, 2.0]
    if agrees is not None:
        assert judged(torch.tensor(answer), *runs) == agrees
    else:
        with pytest.raises(errors.NotRecordable, match="result0"):
            judged(torch.tensor(answer), *runs)


def test_a_graph_that_gives_the_same_each_time_has_no_spread():
    with pytest.raises(errors.NotRecordable):
        judged(torch.tensor([1.0001, 2.0]), *[[1.0, 2.0]] * 3, difference=lambda: "operator 3 was another")


@pytest.mark.parametrize("apart, has_asked, is_accepted", [(4e-6, True, True), (4e-6, False, False), (1e-4, True, False)])
def test_other_operators_may_round_differently_where_the_function_asked_if_it_is_captured(apart, has_asked, is_accepted):
    answer = torch.tensor([1.0 + apart, 2.0])
    if is_accepted:
        assert "operators that it chooses in a capture" in judged(answer, *[[1.0, 2.0]] * 3, difference=lambda: "operator 3 was another", has_asked=has_asked)
    else:
        with pytest.raises(errors.NotRecordable):
            judged(answer, *[[1.0, 2.0]] * 3, difference=lambda: "operator 3 was another", has_asked=has_asked)


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64,
                                   torch.float8_e4m3fn])
def test_each_type_is_compared_by_its_bytes(dtype):
    answer = torch.ones(2, 3).to(dtype).t()
    other = answer.clone()
    judge = _answers.AnswerJudge([_answers.ResultPair("result0", answer, other)], None)
    judge.after_run()
    assert judge.agreement() == "bitwise"
    other[0, 0] = 0
    judge = _answers.AnswerJudge([_answers.ResultPair("result0", answer, other)], None)
    judge.after_run()
    with pytest.raises(errors.NotRecordable, match="element 0 was"):
        judge.agreement()


# --- Work that does not appear as operators


def test_beside_compiled_code_what_may_be_written_is_kept_as_far_as_it_is_small(monkeypatch):
    monkeypatch.setattr(TorchFunction, "may_be_shown", lambda self, call: False)
    total = torch.zeros(8)

    def work(x: Any) -> Any:
        total.add_(x)
        return total * 2

    cached = wrap(work)
    cached(X)
    assert not refusal(cached) and len(host.entries) == 1 and torch.equal(total, X)


def test_what_was_not_kept_is_known_at_the_next_call_which_is_recorded(monkeypatch):
    monkeypatch.setattr(TorchFunction, "may_be_shown", lambda self, call: False)
    monkeypatch.setattr(_answers, "_MOST_UNASKED", 0)
    total = torch.zeros(8)

    def work(x: Any) -> Any:
        total.add_(x)
        return total * 2

    cached = wrap(work)
    assert torch.equal(cached(X), X * 2) and not host.entries
    assert torch.equal(cached(X), X * 4) and len(host.entries) == 1 and torch.equal(total, X * 2)


def test_a_function_that_calls_compiled_code_is_not_looked_at(monkeypatch):
    compiled = torch.compile(lambda x: x * 2, backend="eager")

    def work(x: Any) -> Any:
        return compiled(x) + 1

    asked: list[bool] = []
    may_be = TorchFunction.may_be_shown
    monkeypatch.setattr(TorchFunction, "may_be_shown", lambda self, call: asked.append(may_be(self, call)) or asked[-1])
    assert torch.equal(wrap(work)(X), X * 2 + 1) and asked == [False]


def test_no_memory_to_keep_what_is_written_is_a_refusal(monkeypatch):
    def nothing(storage: Any) -> Any:
        raise torch.OutOfMemoryError("none left")

    monkeypatch.setattr(_answers, "_copy_of", nothing)
    total = torch.zeros(8)

    def work(x: Any) -> Any:
        return total.add_(x) * 2

    cached = wrap(work)
    assert torch.equal(cached(X), X * 2) and torch.equal(total, X)
    assert "no memory to save its previous contents" in refusal(cached)


# --- other entry points


def test_a_graph_of_an_engine_is_held_to_its_answer(tmp_path):
    def forward(x: Any = X.clone()) -> Any:
        return x * 3 if is_captured() else x * 2

    for captures in (None, tmp_path):
        graph, _ = GraphCache(config=warmgraph.Config(model="engine"), captures=captures).capture_one(1, forward)
        assert graph.outcome == "captured" and NOT_ALIKE + "result0" in graph.why and not host.entries and not host.written


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.linspace(-1, 1, 8))
        self.register_buffer("total", torch.zeros(8))

    def forward(self, x: Any) -> Any:
        self.total.add_(x.detach())
        return torch.sigmoid(x * self.weight) + (1 if is_captured() else 0) + self.total


class Saving(Net):
    def forward(self, x: Any) -> Any:
        y = torch.sigmoid(x * self.weight)
        return (y * y) * 1 if not is_captured() else y.detach() * y.detach() + y * 0


def test_the_forward_half_of_a_pair_is_held_to_its_answer():
    net = Net()
    cached = wrap(net, pair=True, compile=None)
    cached(X).sum().backward()
    assert NOT_ALIKE + "result0" in refusal(cached) and [one.given.name for one in host.entries] == ["Net.backward"], "which nobody looks for alone"
    assert torch.equal(net.total, X) and torch.allclose(net.weight.grad, (lambda y: y * (1 - y) * X)(torch.sigmoid(X * net.weight.detach())))


def test_what_a_captured_forward_saves_is_held_to_what_the_function_saves():
    cached = wrap(Saving(), pair=True, compile=None)
    cached(X).sum().backward()
    assert refusal(cached) and not host.entries


class Recomputing(torch.autograd.Function):
    """A checkpoint that a user wrote: its backward calls backward."""

    @staticmethod
    def forward(ctx: Any, function: Any, x: Any) -> Any:
        ctx.function = function
        with torch.no_grad():
            y = function(x)
        ctx.save_for_backward(x)
        return y

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        x = ctx.saved_tensors[0].detach().requires_grad_()
        with torch.enable_grad():
            y = ctx.function(x)
        torch.autograd.backward(y, gradient)
        return None, x.grad


class Checkpointed(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)

    def forward(self, x: Any) -> Any:
        return self.second(Recomputing.apply(self.first, torch.relu(x)))


def test_a_backward_that_puts_gradients_into_weights_by_itself_is_refused_by_name():
    net = Checkpointed()
    cached = wrap(net, pair=True, compile=None)
    for _ in range(3):
        net.zero_grad()
        x = torch.randn(2, 8, requires_grad=True)
        cached(x).square().mean().backward()
        expected = torch.autograd.grad(net.second(net.first(torch.relu(x))).square().mean(), list(net.parameters()))
        for found, right in zip(net.parameters(), expected):
            torch.testing.assert_close(found.grad, right)
    assert "its backward puts a gradient into self.first.weight by itself" in refusal(cached) and not host.entries


# --- streams


class Stray:
    """A fake driver with one stream that captures."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 7
        monkeypatch.setattr(_operators.ctypes, "CDLL", lambda name: None)
        monkeypatch.setattr(_operators.InCapture, "_capture_of", lambda watch, stream: {7: 1, 8: 1, 9: 2}.get(stream))
        monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda index: self.now, raising=False)


@pytest.mark.parametrize("stream, name", [(0, "the default stream"), (9, "the stream 0x9"), (16, "the stream 0x10")])
def test_work_in_a_stream_that_does_not_capture_is_refused_before_it_runs(monkeypatch, stream, name):
    driver, x = Stray(monkeypatch), X.clone()
    watch = _operators.InCapture(torch.device("cpu"))
    with torch.no_grad(), _operators.shown_to(watch):
        y = x + 1
        driver.now = stream
        view = x[:4]
        with pytest.raises(errors.NotRecordable, match=f"it enqueues aten.mul_.Tensor in {name} of cuda:0"):
            x.mul_(2)
        driver.now = 8  # this stream was forked from the capturing one, and is joined later
        z = x + 2
    assert torch.equal(x, X) and torch.equal(y, X + 1) and torch.equal(z, X + 2) and view.data_ptr() == x.data_ptr()


def test_a_capture_with_work_in_another_stream_is_refused(monkeypatch):
    driver = Stray(monkeypatch)
    monkeypatch.setattr(host._capture, "watch", lambda device: [_operators.InCapture(device)])

    class Default:
        def __enter__(self) -> None:
            driver.now = 0

        def __exit__(self, *_: Any) -> None:
            driver.now = 7

    def work(x: Any) -> Any:
        with Default():
            weight = x * 2
        return x + weight

    cached = wrap(work)
    for _ in range(2):
        assert torch.equal(cached(X), X * 3)
    assert "it enqueues aten.mul.Tensor in the default stream" in refusal(cached) and not host.entries


def test_what_a_library_enqueues_in_another_stream_is_refused(monkeypatch):
    @host.contextlib.contextmanager
    def refused(device: Any) -> Iterator[None]:
        yield
        raise errors.NotRecordable("it enqueues cuLaunchKernel in the legacy default stream, which is not captured with it: ...")

    monkeypatch.setattr(host._stray_work, "refused", refused)
    cached = wrap(lambda x: x * 2)
    assert torch.equal(cached(X), X * 2) and "cuLaunchKernel in the legacy default stream" in refusal(cached) and not host.entries


def test_an_operator_that_breaks_its_library_in_a_capture_is_refused_by_name_before_it_runs():
    matrix = torch.eye(4)
    cached = wrap(lambda x: torch.linalg.eigvalsh(matrix).sum() + x)
    for _ in range(2):
        assert torch.equal(cached(X), X + 4)
    assert "it calls aten._linalg_eigh.default, which cannot be captured" in refusal(cached) and not host.entries


def test_an_operator_whose_library_failed_in_a_capture_is_refused_from_then_on(monkeypatch):
    monkeypatch.setattr(_operators, "_failed", set())

    def fails(x: Any) -> Any:
        if is_captured():
            raise RuntimeError("cuFFT error: CUFFT_INTERNAL_ERROR")
        return x * 2

    library = torch.library.Library("warmgraph_answers", "DEF")
    library.define("fragile(Tensor x) -> Tensor")
    library.impl("fragile", fails, "CPU")
    first, second = wrap(lambda x: torch.ops.warmgraph_answers.fragile(x)), wrap(lambda x: torch.ops.warmgraph_answers.fragile(x) + 1)
    assert torch.equal(first(X), X * 2) and "CUFFT_INTERNAL_ERROR" in refusal(first)
    assert torch.equal(second(X), X * 2 + 1) and "which failed in a capture before" in refusal(second)
    assert torch.equal(second(X[:4]), X[:4] * 2 + 1) and "CUFFT_INTERNAL_ERROR" in refusal(second), "with other sizes it is another call"
    _operators.note_failed(torch.ops.aten.mul.Tensor, (X, 2), {}, RuntimeError("Cannot copy between CPU and CUDA tensors during CUDA graph capture"))
    assert torch.equal(wrap(lambda x: x * 2)(X), X * 2) and host.entries, "CUDA's own refusals say nothing of an operator"
    library._destroy()


def test_operators_of_a_tensors_subclass_are_shown_below_it():
    class Wrapped(torch.Tensor):
        @staticmethod
        def __new__(cls, held: Any) -> Any:
            return torch.Tensor._make_wrapper_subclass(cls, held.shape, dtype=held.dtype)

        def __init__(self, held: Any) -> None:
            self.held = held

        __torch_function__ = torch._C._disabled_torch_function_impl

        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func(*(one.held if isinstance(one, Wrapped) else one for one in args), **(kwargs or {}))

    asked = _operators.OperatorTexts()
    with torch.no_grad(), _operators.shown_to(asked):
        Wrapped(X).add(1)
    assert asked.texts == ["aten.add.Tensor(float32[8], 1)"]


def test_an_operator_of_higher_order_runs_as_without():
    cached = wrap(lambda x: torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,)))
    assert torch.equal(cached(X), X + 1)

    asked = _operators.OperatorTexts()
    with torch.no_grad(), _operators.shown_to(asked):
        torch.cond(torch.tensor(True), lambda x: x + 1, lambda x: x - 1, (X,))
    assert not asked.is_whole and asked.difference(asked) == "not all operators that it calls are known"


def test_what_no_operator_was_seen_to_write_is_kept_before_the_next_call(monkeypatch):
    monkeypatch.setattr(_operators, "written", lambda func, args, kwargs: iter(()))
    total = torch.zeros(8)

    def work(x: Any) -> Any:
        return total.add_(x) * 2

    cached = wrap(work)
    assert torch.equal(cached(X), X * 2) and not host.entries
    assert torch.equal(cached(X), X * 4) and len(host.entries) == 1 and torch.equal(total, X * 2)


def test_compiled_code_that_a_function_calls_runs_compiled_beside_what_looks_at_operators():
    ran: list[str] = []

    def backend(graph: Any, inputs: Any) -> Any:
        ran.append("compiled")
        return lambda *given: (ran.append("ran"), graph.forward(*given))[1]

    compiled = torch.compile(lambda x: x * 2 + 1, backend=backend)
    asked = _operators.OperatorTexts()
    with torch.no_grad():
        with _operators.shown_to(asked):
            compiled(X)
        compiled(X)
    assert ran == ["compiled", "ran", "ran"], "as if nobody looked, then and later"


# --- Autocast's cache of converted weights


class Conversions:
    """Counts the conversions of dtypes among the operators that are shown to it. Later counts begin at 0."""

    def __init__(self) -> None:
        self.counts: list[int] = []

    def begin(self) -> list[Any]:
        self.counts.append(0)
        return [self]

    def __call__(self, func: Any, args: Any, kwargs: Any) -> None:
        self.counts[-1] += func is torch.ops.aten._to_copy.default


def conversions_of(work: Callable[[], Any]) -> int:
    counted = Conversions()
    with _operators.shown_to(*counted.begin()):
        work()
    return counted.counts[0]


def in_autocast() -> Any:
    return torch.autocast("cpu", dtype=torch.bfloat16)


@pytest.mark.parametrize("form", ["function", "pair"])
def test_each_capture_converts_the_weights_that_autocast_has_converted_before(form, monkeypatch):
    net, counted = torch.nn.Linear(8, 8), Conversions()
    monkeypatch.setattr(host._capture, "watch", lambda device: counted.begin())
    cached = wrap(net, pair=True) if form == "pair" else wrap(net)
    with in_autocast(), torch.set_grad_enabled(form == "pair"):
        net(X)
        assert conversions_of(lambda: net(X)) == 1, "only the input: the weights come from the cache"
        cached(X)
        assert not refusal(cached) and counted.counts[::2 if form == "pair" else 1] == [3, 3], "the input, the weight and the bias"
        assert conversions_of(lambda: net(X)) == 3, "the cache has nothing from the memory of a capture"
        assert conversions_of(lambda: net(X)) == 1, "and autocast uses it as before"


def test_the_answer_of_a_recording_uses_the_weights_as_they_are_as_a_replay_does():
    net, asked = torch.nn.Linear(8, 8), []
    cached = wrap(net)
    with in_autocast(), torch.no_grad():
        net(X)
        net.weight.mul_(2)
        answer = cached(X)
        asked.append(refusal(cached))
    with in_autocast(), torch.no_grad():
        assert torch.equal(answer, net(X)) and asked == [""] and agreement() == "bitwise"


@pytest.mark.parametrize("why, captures", [(errors.InvalidArgument("the second capture of 'work' has no scratch 'pool0' of 8 bytes"), 4),
                                           (errors.NotRecordable("0x7f follows no region"), 4),
                                           (errors.NotRecordable("place the two apart, or give a capture in which they moved by different distances"), 3),
                                           (errors.InvalidArgument("something else"), 2)])
def test_chance_alone_costs_captures_and_not_the_recording(monkeypatch: pytest.MonkeyPatch, why: errors.Error, captures: int) -> None:
    left = [why]

    class Unlucky(host.FakeEntry):
        def __init__(self, *arguments: Any) -> None:
            if left:
                raise left.pop()
            super().__init__(*arguments)

    monkeypatch.setattr(host._entry, "Entry", Unlucky)
    cached = wrap(lambda x: x * 2)
    assert torch.equal(cached(X), X * 2) and len(host.captures) == captures
    assert bool(host.entries) == (captures > 2)
