"""Borrowed results use the entry's memory at the same addresses, and using a tensor of an earlier call raises an error."""
from __future__ import annotations

import contextlib
import gc
import pickle
import threading
import time
from typing import Any, Iterator

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed here")

from conftest import at_once  # noqa: E402
import torch_on_the_host as host  # noqa: E402
import warmgraph  # noqa: E402
from warmgraph import errors  # noqa: E402
from warmgraph.reading import _native_snapshots  # noqa: E402
from warmgraph.torch.replay import _borrowed_results, _moved_tensors, _outputs, _steady_torch_call, _torch_call  # noqa: E402

pytestmark = pytest.mark.skipif(not _borrowed_results.is_possible(), reason="an older PyTorch")
STALE = "borrowed result of an earlier call of 'work'"


@pytest.fixture(autouse=True)
def on_the_host(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Replaces the launch of an entry: it writes the number of launches so far to its outputs."""
    host.use(monkeypatch)
    launch = host.FakeEntry.launch

    def launched(self: Any, stream: int, args: Any = None) -> str:
        found = launch(self, stream, args)
        outputs = self.given.outputs
        for one, at in zip(outputs, self.calls[-1][0][-len(outputs):] if outputs else ()):
            storage = host._storage_at(at, one.nbytes)
            torch.empty(0).set_(storage, 0, (one.nbytes // 4,), (1,)).fill_(len(self.calls))
        return found

    monkeypatch.setattr(host.FakeEntry, "launch", launched)
    yield


def wrap(function: Any, borrow: bool = True, **options: Any) -> Any:
    return warmgraph.cache_compile(function, compile=False, config=warmgraph.Config(model="net"), borrow=borrow, **options)


def work(x: Any) -> Any:
    return x + 1


def recorded(function: Any = work, *args: Any, **options: Any) -> Any:
    """Wraps the function and calls it once. The recording is then done."""
    cached = wrap(function, **options)
    cached(*(args or (torch.zeros(4),)))
    assert len(host.entries) == 1
    return cached


def test_results_of_all_calls_lie_at_one_address_and_have_what_was_written():
    cached = recorded()
    places = set()
    for i in range(8):
        y = cached(torch.zeros(4))
        places.add(y.data_ptr())
        assert torch.equal(y, torch.full((4,), i + 1.0))
    assert len(places) == 1 and len(host.entries) == 1


def test_without_it_each_call_has_memory_of_its_own():
    cached = recorded(borrow=False)
    found = [cached(torch.zeros(4)) for _ in range(6)]
    assert len({one.data_ptr() for one in found}) == 6 and all(float(one[0]) == i + 1 for i, one in enumerate(found))


USES: dict[str, Any] = {
    "computing": lambda y: y + 1, "reading": lambda y: y[0].item(), "printing": lambda y: print(y), "its address": lambda y: y.data_ptr(),
    "numpy": lambda y: y.numpy(), "dlpack": lambda y: torch.utils.dlpack.to_dlpack(y), "copying": lambda y: torch.zeros(4).copy_(y),
    "writing": lambda y: y.fill_(1), "clone": lambda y: y.clone()}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("calls", [2, 7])
def test_a_result_of_an_earlier_call_is_stale_when_it_is_used(use, calls):
    cached = recorded()
    for _ in range(calls):
        y = cached(torch.zeros(4))
    now = cached(torch.zeros(4))
    with pytest.raises(RuntimeError, match=STALE):
        USES[use](y)
    assert y.shape == (4,) and float(now[0]) == calls + 1


def test_a_view_that_is_all_that_is_left_is_stale_too():
    cached = recorded()
    view = cached(torch.zeros(4))[1:].view(3, 1)
    gc.collect()
    cached(torch.zeros(4))
    with pytest.raises(RuntimeError, match=STALE):
        view.sum()


def test_a_clone_is_the_callers():
    cached = recorded()
    first = cached(torch.zeros(4)).clone()
    cached(torch.zeros(4))
    assert torch.equal(first, torch.ones(4))


def test_the_call_that_records_gives_the_functions_own_result():
    cached = wrap(work)
    first = cached(torch.zeros(4))
    cached(torch.zeros(4)), cached(torch.zeros(4))
    assert torch.equal(first, torch.ones(4))


def test_structures_views_of_arguments_and_results_without_elements():
    def work(x: Any) -> Any:
        return {"y": x + 1, "x": x, "half": x[:2], "none": torch.zeros(0), "pair": (x * 2, 3)}

    x = torch.zeros(4)
    cached = recorded(work, x)
    before = None
    for _ in range(6):
        found = cached(x)
        assert found["x"] is x and found["half"].data_ptr() == x.data_ptr() and found["none"].shape == (0,) and found["pair"][1] == 3
        assert found["y"].data_ptr() != found["pair"][0].data_ptr()
        if before is not None:
            with pytest.raises(RuntimeError, match=STALE):
                before["pair"][0] + 1
        before = found


def test_results_of_other_shapes_and_other_functions_stay():
    cached = recorded()
    cached(torch.zeros(8))
    y, other = cached(torch.zeros(4)), recorded_other()
    z = other(torch.zeros(4))
    cached(torch.zeros(8)), other(torch.zeros(4, 2)), other(torch.zeros(4, 2))
    assert float(y[0]) == 1.0 and float(z[0]) == 1.0


def recorded_other() -> Any:
    other = wrap(lambda x: x * 2)
    other(torch.zeros(4))
    return other


def test_a_result_that_is_the_next_calls_argument_is_not_overwritten_by_it():
    cached = recorded()
    y = cached(torch.zeros(4))
    for i in range(6):
        before = y
        y = cached(y)
        assert float(before.sum()) >= 0  # the memory of the earlier result was not written
        ((pointers, _),) = host.entries[0].calls[-1:]
        assert pointers[0] != pointers[1] and float(y[0]) == i + 2
    assert len(host.entries) == 1


def test_calls_that_read_a_result_leave_others_where_they_are():
    cached, places = recorded(), set()
    for _ in range(8):
        y = cached(torch.zeros(4))
        places.add(y.data_ptr())
        assert cached(y).data_ptr() not in places and float(y.sum()) > 0
    assert len(places) == 1


def test_a_result_that_the_object_keeps_is_not_overwritten(monkeypatch):
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.last = torch.zeros(4)
            self.step = wrap(self.work)

        def work(self, x: Any) -> Any:
            return x + self.last

    net = Net()
    net.step(torch.zeros(4))
    for _ in range(5):
        net.last = net.step(torch.zeros(4))
        (pointers, states) = host.entries[-1].calls[-1] if host.entries[-1].calls else ([0, 1], [2])
        assert pointers[1] not in states
        assert float(net.last.sum()) >= 0


def test_a_stale_argument_says_so():
    cached = recorded()
    for calls in (1, 6):
        y = cached(torch.zeros(4))
        for _ in range(calls):
            cached(torch.zeros(4))
        with pytest.raises(RuntimeError, match=STALE):
            cached(y)


def test_reset_and_eviction_make_results_stale_and_free_their_memory():
    cached = recorded()
    y = cached(torch.zeros(4))
    cached.reset()
    gc.collect()
    with pytest.raises(RuntimeError, match="was dropped"):
        y + 1
    cached = warmgraph.cache_compile(work, compile=False, config=warmgraph.Config(model="net", max_variants=1), borrow=True, version="2")
    for size in (2, 3):
        cached(torch.zeros(size))
        y, last = cached(torch.zeros(size)), y
        gc.collect()
    with pytest.raises(RuntimeError, match="was dropped"):
        last + 1
    assert float(y[0]) == 1.0


def test_a_wrapper_that_goes_away_makes_its_results_stale():
    cached = recorded()
    y = cached(torch.zeros(4))
    for _ in range(4):
        y = cached(torch.zeros(4))
    del cached
    gc.collect()
    with pytest.raises(RuntimeError, match="was dropped"):
        y + 1


def test_threads_have_each_the_result_of_the_last_launch_or_a_stale_one():
    cached, wrong = recorded(), []

    def call() -> None:
        for _ in range(200):
            y = cached(torch.zeros(4))
            try:
                found = y.tolist()
            except RuntimeError as error:
                if STALE not in str(error):
                    wrong.append(error)
            else:
                if not all(one >= 1 for one in found):
                    wrong.append(found)

    at_once(call, *[()] * 4)
    assert not wrong and len(host.entries[0].calls) == 800


def test_threads_that_come_first_at_once_write_to_one_memory(monkeypatch):
    """All threads must use one memory: otherwise a result could be in memory that no launch wrote."""
    cached, made, together = recorded(), _outputs.Output.allocate, threading.Barrier(2)

    def made_slowly(self: Any, device: Any) -> Any:
        with contextlib.suppress(threading.BrokenBarrierError):
            together.wait(0.5)  # both threads get here, unless a lock keeps one of them out
        return made(self, device)

    monkeypatch.setattr(_outputs.Output, "allocate", made_slowly)
    results: list[Any] = []
    at_once(lambda: results.append(cached(_aligned(4))), *[()] * 2)
    assert len({at[-1] for at, _ in host.entries[0].calls[-2:]}) == 1 and len(results) == 2


@pytest.mark.skipif(_native_snapshots.exchange_of(torch.Tensor) is None, reason="this PyTorch or Python has no table of DLPack's")
def test_arguments_stay_where_they_are_while_a_later_call_looks_at_them(monkeypatch):
    """While the arguments are checked, another thread's capture tries to move them."""
    cached, x, threads, looks = recorded(work, _aligned(4)), _aligned(4), [], _torch_call.Surroundings.looks
    at, moved = x.data_ptr(), threading.Event()

    def move() -> None:
        kept = x.data
        with _moved_tensors.moving():
            x.data = _aligned(4)
            moved.set()
            time.sleep(0.2)
            x.data = kept

    def is_same() -> bool:  # a later call runs this Python code before it checks its arguments
        if not threads and is_armed:
            threads.append(threading.Thread(target=move))
            threads[0].start()
            moved.wait(0.2)
        return True

    is_armed: list[bool] = []
    monkeypatch.setattr(_torch_call.Surroundings, "looks", lambda self, *given: (found := looks(self, *given))._replace(rest=[*found.rest, is_same]))
    for _ in range(4):
        cached(x)
    is_armed.append(True)
    cached(x)
    threads[0].join()
    assert moved.is_set() and host.entries[0].calls[-1][0][0] == at


@pytest.mark.skipif(_native_snapshots.exchange_of(torch.Tensor) is None, reason="this PyTorch or Python has no table of DLPack's")
def test_later_calls_are_known_by_heart_and_lend(monkeypatch):
    cached = recorded(work, _aligned(4))
    for _ in range(5):
        y = cached(_aligned(4))
    seen = []
    call = _steady_torch_call.SteadyTorchCall._called
    monkeypatch.setattr(_steady_torch_call.SteadyTorchCall, "_called", lambda self, *args: (seen.append(1), call(self, *args))[1])
    cached._shared.torchs.steady.clear()
    cached(_aligned(4))  # this call takes the steady path again
    other = cached(_aligned(4))
    assert seen and other.data_ptr() == host.entries[0].calls[-1][0][1]
    with pytest.raises(RuntimeError, match=STALE):
        y + 1


def test_a_result_that_is_an_argument_again_is_never_written_by_what_reads_it():
    """The result of the earlier call is an argument at its old address. The new result must get other memory."""
    cached = wrap(work)
    for _ in range(5):
        lent = cached(_aligned(4))
    at = lent.data_ptr()
    for _ in range(4):
        assert cached(lent).data_ptr() != at
        assert lent.data_ptr() == at  # `lent` is not stale


def _aligned(size: int) -> Any:
    memory = torch.zeros(size + 64)
    start = -memory.data_ptr() % 256 // 4
    return memory[start:start + size]


def test_an_older_pytorch_copies_and_says_so_once(monkeypatch, caplog):
    monkeypatch.setattr(_borrowed_results, "is_possible", lambda: False)
    cached = recorded()
    a, b = cached(torch.zeros(4)), cached(torch.zeros(4))
    assert (float(a[0]), float(b[0])) == (1.0, 2.0)
    assert len([one for one in caplog.records if "not borrowed" in one.getMessage()]) == 1


def test_the_option_is_checked_and_pickled():
    with pytest.raises(errors.InvalidArgument, match="borrow is 'yes'"):
        wrap(work, borrow="yes")
    assert pickle.loads(pickle.dumps(wrap(work))).options.borrow is True
