"""With any wrapped function and any failure, the caller gets the function's own result, and nothing else changes."""
from __future__ import annotations

import copy
import functools
import gc
import inspect
import logging
import pickle
import random
import sys
import threading
import warnings
import weakref
from typing import Any, Callable

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed here")

from conftest import at_once  # noqa: E402
import torch_on_the_host as host  # noqa: E402
import warmgraph  # noqa: E402
from hostile_calls import X, Net, refusal, replays, wrap  # noqa: E402
from warmgraph import errors  # noqa: E402
from warmgraph.reading import _native_snapshots  # noqa: E402
from warmgraph.torch import GraphCache  # noqa: E402
from warmgraph.torch.read import _libraries, _modules, _tensor_readers  # noqa: E402
from warmgraph.torch.record import _answers, _copies, _recording  # noqa: E402
from warmgraph.torch.replay import _launching, _surrounding_work  # noqa: E402

pytestmark = pytest.mark.usefixtures("on_the_host")


# --- wrapped functions


def test_what_is_no_function_is_an_error_that_says_so():
    class Call:
        def __call__(self, x: Any) -> Any:
            return x

    def generator(x: Any) -> Any:
        yield x

    async def coroutine(x: Any) -> Any:
        return x

    for one, words in ((Call(), "not a Python function"), (generator, "generator"), (coroutine, "coroutine"),
                       (functools.partial(generator, 1), "generator"), (staticmethod(lambda x: x), "above @cache_compile"),
                       (classmethod(lambda c, x: x), "above @cache_compile"), (torch.relu, "not a Python function"), (3, "not a Python function")):
        with pytest.raises(errors.InvalidArgument, match=words):
            wrap(one)


class Kinds:
    @staticmethod
    @warmgraph.cache_compile(compile=False, config=warmgraph.Config(model="hostile"))
    def static(x: Any) -> Any:
        return x + 1

    @classmethod
    @warmgraph.cache_compile(compile=False, config=warmgraph.Config(model="hostile"))
    def of_class(cls, x: Any) -> Any:
        return x + 2

    @warmgraph.cache_compile(compile=False, config=warmgraph.Config(model="hostile"))
    def of_object(self, x: Any) -> Any:
        return x + self.by  # type: ignore[attr-defined]


def test_static_methods_class_methods_and_methods_of_two_objects_are_replayed():
    one, other = Kinds(), Kinds()
    one.by, other.by = 1, 2  # type: ignore[attr-defined]
    for call, expected in ((Kinds.static, 2), (one.static, 2), (Kinds.of_class, 3), (one.of_object, 2), (other.of_object, 3)):
        before = len(host.entries)
        found = call(X)
        assert torch.equal(found, torch.full((4,), float(expected))) or replays()
        call(X)
        assert len(host.entries) <= before + 1
    assert replays() == 6 and len(host.entries) == 4  # both static calls share an entry, and each object has its own entry


def test_a_partial_and_a_lambda_are_replayed_with_their_tensors_as_states():
    def work(weight: Any, x: Any) -> Any:
        return weight * x

    weight = torch.ones(4)
    cached = wrap(functools.partial(work, weight))
    cached(X), cached(X)
    assert replays() == 1 and [one.pointer for one in host.entries[0].given.states] == [weight.data_ptr()]


def test_a_default_that_is_replaced_after_the_wrapping_is_the_one_that_counts():
    def work(x: Any, by: float = 1.0, *, more: float = 0.0) -> Any:
        return x * by + more

    cached = wrap(work)
    assert torch.equal(cached(X), X)
    work.__defaults__ = (2.0,)
    assert torch.equal(cached(X), X * 2)
    work.__kwdefaults__ = {"more": 5.0}
    assert torch.equal(cached(X), X * 2 + 5)
    assert replays() == 0


@pytest.mark.parametrize("arguments, named", [
    ((X,), {}), ((X, 2), {}), ((X,), {"by": 2}), ((), {"x": X}), ((X,), {"more": 1}), ((X, 1), {"more": 0}), ((), {"by": 1, "x": X})])
def test_arguments_reach_the_function_as_they_were_given(arguments, named):
    def shown(x: Any, by: int = 1, *, more: int = 0) -> Any:
        return x

    def work(*args: Any, **named: Any) -> Any:
        return (args[0] if args else named["x"]) + len(args) * 10 + len(named)

    work.__signature__ = inspect.signature(shown)  # type: ignore[attr-defined]
    assert torch.equal(wrap(work)(*arguments, **named), work(*arguments, **named))


def test_a_default_that_is_a_tensor_is_moved_for_the_second_capture():
    weight = torch.ones(4)

    def work(x: Any, weight: Any = weight) -> Any:
        sys.audit("hostile.default", weight.data_ptr())
        return x * weight

    seen: list[int] = []
    sys.addaudithook(lambda event, of: seen.append(of[0]) if event == "hostile.default" else None)
    wrap(work)(X)
    assert seen[:2] == [weight.data_ptr()] * 2 and seen[2] != weight.data_ptr()


def test_recursion_and_a_wrapped_function_inside_are_a_part_of_the_outer():
    @wrap
    def inner(x: Any) -> Any:
        return x + 1

    @wrap
    def outer(x: Any, depth: int = 2) -> Any:
        return inner(x) if depth == 0 else outer(x, depth - 1)

    assert torch.equal(outer(X), X + 1)
    assert len(host.entries) == 1 and host.entries[0].given.name == "outer"
    outer(X)
    assert replays() == 1


def test_names_with_a_slash_are_the_callers_to_mend_or_run():
    cached = wrap(lambda x: x + 1, name="a/b")
    try:
        assert torch.equal(cached(X), X + 1)
    except errors.InvalidArgument as error:
        assert "a/b" in str(error)


def test_wrong_options_of_the_cache_are_errors_before_the_function_runs():
    ran = []
    cached = wrap(lambda x: ran.append(1), global_rank=-5)
    with pytest.raises(errors.InvalidArgument):
        cached(X)
    assert not ran


def test_a_module_with_wrappers_is_copied_and_pickled_and_says_what_to_do():
    for twin in (copy.deepcopy(Net()), pickle.loads(pickle.dumps(Net()))):
        with pytest.raises(errors.InvalidArgument, match="wrap the"):
            twin.step(torch.ones(2, 4))


# --- failures


def failing(at: int, error: Callable[[], Exception]) -> tuple[Any, list[int]]:
    count: list[int] = [0]
    sys_audit = f"hostile.{id(count)}"

    def hook(event: str, _: Any) -> None:
        if event == sys_audit:
            count[0] += 1
            if count[0] == at:
                raise error()

    sys.addaudithook(hook)

    def work(x: Any) -> Any:
        sys.audit(sys_audit)  # no guard sees this effect
        return x + 1

    return wrap(work), count


@pytest.mark.parametrize("at", [2, 3])
def test_an_exception_in_a_capture_is_a_refusal_and_the_result_is_the_answers(at, caplog):
    cached, count = failing(at, lambda: KeyError("in a capture"))
    with caplog.at_level(logging.WARNING, "warmgraph"):
        for _ in range(3):
            assert torch.equal(cached(X), X + 1)
    assert not host.entries and "in a capture" in refusal(cached) and count[0] == at + 2
    assert len([one for one in caplog.records if "cannot record" in one.message]) == 1


def test_an_exception_in_the_answer_is_the_callers_and_the_next_call_is_recorded():
    cached, _ = failing(1, lambda: KeyError("mine"))
    with pytest.raises(KeyError, match="mine"):
        cached(X)
    cached(X), cached(X)
    assert replays() == 1


def test_an_exception_of_a_refused_function_is_the_callers_and_it_ran_once(monkeypatch):
    monkeypatch.setattr(host._capture, "captured", lambda *_: broken_capture())
    ran = [0]

    def hook(event: str, of: Any) -> None:
        if event == "hostile.refused":
            ran[0] += 1
            if ran[0] > 1:
                raise KeyError("mine")

    sys.addaudithook(hook)
    cached = wrap(lambda x: (sys.audit("hostile.refused"), x + 1)[1])
    cached(X)
    with pytest.raises(KeyError, match="mine"):
        cached(X)
    assert ran[0] == 2


def test_a_backend_that_is_a_function_counts_by_its_name():
    def backend(graph: Any, inputs: Any) -> Any:
        return graph.forward

    assert _modules.text_of_options({"backend": backend, "options": {"a": [1, backend]}, "dynamic": True}).count("0x") == 0


PARTS = {
    "reading": ("warmgraph.torch.read._call_reader.read", 0), "modes": ("warmgraph.torch.replay._modes.modes", 0), "facts": ("warmgraph.torch.replay._modes.facts", 0),
    "look-up": ("warmgraph.torch.replay._entry.found", 0), "regions": ("warmgraph.torch.replay._regions.regions_of", 0),
    "generator": ("warmgraph.torch.record._capture.generator_of", 0), "capture": ("warmgraph.torch.record._capture.captured", 0),
    "shadows": ("warmgraph.torch.record._recording.Shadows", 0), "copy": ("warmgraph.torch.record._copies.copied", 0),
    "adoption": ("warmgraph.torch.replay._entry.Entry", 0), "results": ("warmgraph.torch.replay._outputs.described", 0),
    "quick key": ("warmgraph.torch.calls._torch_function.TorchFunction._quick_key", 0), "versions": ("warmgraph.torch.record._recording.version_of", 0),
    "versions after the answer": ("warmgraph.torch.record._recording.version_of", 3),
}


@pytest.mark.parametrize("error", [RuntimeError("ours"), errors.IoFailed("ours"), errors.InvalidArgument("ours"), errors.OutOfMemory("ours")])
@pytest.mark.parametrize("part", sorted(PARTS))
def test_whatever_of_ours_fails_the_result_is_the_functions_and_it_ran_once(part, error, monkeypatch):
    import importlib

    name, after = PARTS[part]
    where, _, what = name.rpartition(".")
    try:
        owner: Any = importlib.import_module(where)
    except ModuleNotFoundError:
        module, _, kind = where.rpartition(".")
        owner = getattr(importlib.import_module(module), kind)
    real, count = getattr(owner, what), [0]

    def broken(*arguments: Any, **named: Any) -> Any:
        count[0] += 1
        if count[0] > after:
            raise error
        return real(*arguments, **named)

    net, total = Net(), torch.zeros(4)

    def work(x: Any) -> Any:
        total.add_(x)
        return net.a(x) + total

    expected = net.a(X) + 1
    monkeypatch.setattr(_recording, "_MOST_TRIES", 1)
    monkeypatch.setattr(host._capture, "captured", lambda device, work, draws, never_runs=False: host._captured(device, lambda: None, draws))  # no work runs
    monkeypatch.setattr(_answers.AnswerJudge, "after_run", lambda judge: None)  # the recording then compares no results
    monkeypatch.setattr(_answers.AnswerJudge, "agreement", lambda judge: "bitwise")
    monkeypatch.setattr(owner, what, broken)
    assert torch.equal(wrap(work)(X), expected)
    assert count[0] > after and torch.equal(total, X)


@pytest.mark.parametrize("error", [errors.DriverFailed("launch"), errors.InvalidArgument("this function is closed")])
def test_a_replay_that_enqueued_nothing_is_the_functions_own_run(error, monkeypatch):
    cached = wrap(lambda x: x + 1)
    cached(X), cached(X)

    def broken(*_: Any) -> Any:
        raise error

    monkeypatch.setattr(host.FakeEntry, "launch", broken)
    assert torch.equal(cached(X), X + 1) and str(error) in refusal(cached)


def test_a_replay_that_the_library_finds_no_fit_for_is_recorded_anew(monkeypatch):
    cached = wrap(lambda x: x + 1)
    cached(X), cached(X)

    def broken(*_: Any) -> Any:
        raise errors.MissForbidden("another alignment")

    monkeypatch.setattr(host.FakeEntry, "launch", broken)
    assert torch.equal(cached(X), X + 1)
    assert len([one for one in host.entries if one.captures]) == 2


def test_a_replay_that_was_half_launched_is_an_error(monkeypatch):
    cached = wrap(lambda x: x + 1)
    cached(X)

    def broken(*_: Any) -> Any:
        raise errors.PartlyLaunched("half")

    monkeypatch.setattr(host.FakeEntry, "launch", broken)
    with pytest.raises(errors.PartlyLaunched):
        cached(X)


class CaptureMode:
    """Stands for the driver's function that exchanges the capture mode of a thread."""

    def __init__(self) -> None:
        self.modes = [0]

    def cuThreadExchangeStreamCaptureMode(self, exchanged: Any) -> int:  # noqa: N802
        mode = exchanged._obj
        self.modes.append(mode.value)
        mode.value = self.modes[-2]
        return 0


@pytest.mark.parametrize("borrows", [False, True])
@pytest.mark.parametrize("is_known_by_heart", [False, True])
def test_a_call_inside_somebodys_capture_is_the_functions_own(monkeypatch, is_known_by_heart, borrows):
    """Inside a caller's capture, the library launches nothing and allocates no result. There the function may do the work of its first run."""
    captures = [False]
    driver = CaptureMode()
    monkeypatch.setattr(_libraries, "driver", lambda: driver)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(_surrounding_work, "_is_stream_capturing", lambda: captures[0])
    cached = wrap(lambda x: x + 1, borrow=borrows)
    for _ in range(4):
        cached(X)
    if not is_known_by_heart:
        cached._shared.torchs.steady.clear()
    before, captures[0] = replays(), True
    monkeypatch.setattr(host, "captured_streams", {0})

    def met(*_: Any) -> Any:
        raise AssertionError("it reached the library")

    monkeypatch.setattr(host.FakeEntry, "launch", met)
    is_looked_at = is_known_by_heart and _native_snapshots.exchange_of(torch.Tensor) is not None
    assert is_looked_at == bool(cached._shared.torchs.steady)
    if not is_looked_at or borrows:  # in the other cases the launch itself asks the stream
        monkeypatch.setattr(_launching, "view_of", met)
    assert torch.equal(cached(X), X + 1) and replays() == before
    assert driver.modes == [0, _surrounding_work._RELAXED, 0]


def test_what_the_library_does_not_support_is_an_error_of_a_later_call(monkeypatch):
    def launched(*_: Any) -> Any:
        raise errors.Unsupported("this process was forked")

    cached = wrap(lambda x: x + 1)
    for _ in range(4):
        cached(X)
    monkeypatch.setattr(host.FakeEntry, "launch", launched)
    with pytest.raises(errors.Unsupported, match="forked"):
        cached(X)


def test_a_reset_forgets_and_the_next_call_is_right():
    cached = wrap(lambda x: x + 1)
    cached(X)
    cached.reset()
    cached(X)
    assert replays() == 1 and host.entries[-1].captures is None  # the entry was loaded again


def test_a_reset_tries_again_what_failed(monkeypatch):
    real = host._captured
    monkeypatch.setattr(host._capture, "captured", lambda *_: broken_capture())
    cached = wrap(lambda x: x + 1)
    cached(X)
    monkeypatch.setattr(host._capture, "captured", real)
    cached(X)
    assert not host.entries
    cached.reset()
    cached(X)
    assert len(host.entries) == 1


def test_first_calls_of_two_threads_are_both_right():
    weight = torch.ones(4)
    cached, found, start = wrap(lambda x: x * 2 + weight), [], threading.Barrier(4)

    def call(value: float) -> None:
        x = torch.full((4,), value)
        start.wait()
        found.append(torch.equal(cached(x), x * 2 + 1) or replays() > 0)

    at_once(call, *((float(i),) for i in range(4)))
    assert found == [True] * 4 and not refusal(cached)


def test_a_call_of_another_thread_waits_while_tensors_are_elsewhere(monkeypatch):
    weight, found = torch.ones(4), []
    at, real = weight.data_ptr(), host._captured
    other = wrap(lambda x: (found.append(weight.data_ptr()), x + weight)[1], name="other")
    thread = threading.Thread(target=lambda: other(X))

    def captured(*arguments: Any) -> Any:
        if weight.data_ptr() != at and not thread.ident:
            thread.start()
            thread.join(0.3)
        return real(*arguments)

    monkeypatch.setattr(host._capture, "captured", captured)
    wrap(lambda x: x * weight)(X)
    thread.join()
    assert found[0] == at


def test_a_function_that_was_used_is_an_error_in_a_forked_child():
    import os

    cached = wrap(lambda x: x + 1)
    cached(X)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            cached(X)
        except errors.Unsupported:
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_what_vmap_and_tracing_see_is_the_function():
    cached = wrap(lambda x: x + 1)
    cached(X), cached(X)
    before = replays()
    rows = torch.arange(8.0).view(2, 4)
    assert torch.equal(torch.func.vmap(cached)(rows), rows + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert torch.equal(torch.jit.trace(lambda x: cached(x), X, check_trace=False)(X * 3), X * 3 + 1)
    assert torch.equal(torch.func.grad(lambda x: cached(x * x).sum())(X * 3), X * 6)
    assert replays() == before and not refusal(cached)


def test_a_falsy_object_is_an_engines_object_all_the_same():
    class Empty(torch.nn.ModuleList):
        def forward_it(self) -> Any:
            return self.x + 1

    empty = Empty()
    empty.x = torch.ones(4)
    graph, _ = GraphCache().capture_one(1, empty.forward_it)
    assert graph.outcome == "recorded", graph.why


# --- unchanged state


@pytest.mark.parametrize("fails", ["", "capture", "second capture"])
def test_pytorchs_state_and_the_callers_tensors_are_as_they_were(fails, monkeypatch):
    scale = torch.ones(4)
    net = Net()
    net.a.weight.scale = 2.0
    real, count = host._captured, [0]

    def captured(*arguments: Any) -> Any:
        count[0] += 1
        if fails == "capture" or (fails == "second capture" and count[0] == 2):
            raise RuntimeError("capture broke")
        return real(*arguments)

    monkeypatch.setattr(host._capture, "captured", captured)

    def state() -> Any:
        tensors = [*net.parameters(), scale, X]
        return (torch.is_grad_enabled(), torch.is_autocast_enabled("cuda"), torch.get_default_dtype(), torch.is_inference_mode_enabled(),
                random.getstate(), torch.get_rng_state().tolist(), torch._C._len_torch_dispatch_stack(),
                [(one.data_ptr(), one.dtype, one.shape, one.stride(), one.requires_grad, one._version, id(one)) for one in tensors],
                [one.tolist() for one in tensors], net.a.weight.scale, list(net.__dict__), gc.isenabled())

    cached = wrap(lambda x: net.a(x) * scale)
    before = state()
    expected = (net.a(X) * scale).detach()
    assert torch.equal(cached(X), expected)
    assert state() == before and bool(refusal(cached)) == bool(fails)


def test_one_tensor_that_cannot_be_put_back_leaves_the_others_where_they_were():
    a, b = torch.ones(4), torch.ones(4)
    storages = {one.untyped_storage().data_ptr(): torch.zeros(4).untyped_storage() for one in (a, b)}
    moved = _copies.MovedTensors([_tensor_readers.TensorPlace("a", a, "elsewhere"), _tensor_readers.TensorPlace("b", b, "elsewhere")], storages)
    before = a.data_ptr()

    class Stubborn:
        data = property(lambda self: b.data, lambda self, value: refuse())

    def refuse() -> None:
        if refused:
            raise RuntimeError("no")
        refused.append(1)

    refused: list[int] = []
    with pytest.raises(RuntimeError, match="no"):
        with _copies.swapped([Stubborn(), a], moved):  # type: ignore[list-item]
            assert a.data_ptr() != before
    assert a.data_ptr() == before


@pytest.mark.parametrize("fails", [False, True])
def test_nothing_of_a_call_is_kept_alive(fails, monkeypatch):
    if fails:
        monkeypatch.setattr(host._capture, "captured", lambda *_: broken_capture())
    cached = wrap(lambda x, more: (x + more["k"], x))
    x, more = torch.ones(4), {"k": torch.ones(4)}
    kept = [weakref.ref(x), weakref.ref(more["k"])]
    for _ in range(3):
        result = cached(x, more)
    kept.append(weakref.ref(result[0]))
    del x, more, result
    host.captures.clear()
    gc.collect()
    assert [one() for one in kept] == [None] * 3


def broken_capture() -> None:
    raise RuntimeError("capture broke")


def test_an_object_that_holds_its_wrapper_goes_with_it():
    net = Net()
    net.step(torch.ones(2, 4)), net.step(torch.ones(2, 4))
    kept = [weakref.ref(net), weakref.ref(net.a.weight)]
    del net
    host.captures.clear(), host.entries.clear()
    gc.collect()
    assert [one() for one in kept] == [None, None]


class Decorated(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = torch.nn.Linear(4, 4)

    @warmgraph.cache_compile(compile=False, config=warmgraph.Config(model="hostile"))
    def step(self, x: Any) -> Any:
        return self.a(x)


def test_an_object_of_a_decorated_class_goes_when_the_function_is_reset():
    net = Decorated()
    net.step(X), net.step(X)
    kept = weakref.ref(net.a.weight)
    del net
    Decorated.step.reset()
    host.captures.clear(), host.entries.clear()
    gc.collect()
    assert kept() is None
