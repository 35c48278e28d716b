"""Threads make calls while another thread has moved tensors for its second capture."""
from __future__ import annotations

import copy
import threading
import time
from typing import Any, Callable

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed here")

from warmgraph import errors  # noqa: E402
from warmgraph.torch.record import _copies  # noqa: E402
from warmgraph.torch.replay import _moved_tensors  # noqa: E402


def in_thread(work: Callable[[], Any]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def test_a_call_waits_until_the_tensors_are_back():
    order: list[str] = []

    def call() -> None:
        with _moved_tensors.using:
            order.append("called")

    with _moved_tensors.moving():
        other = in_thread(call)
        time.sleep(0.05)
        order.append("back")
    other.join(5)
    assert order == ["back", "called"]


def test_tensors_are_moved_when_no_other_call_runs():
    inside, may_end, order, started = threading.Event(), threading.Event(), [], time.monotonic()

    def call() -> None:
        with _moved_tensors.using:
            inside.set()
            may_end.wait(5)
            order.append("ended")

    other = in_thread(call)
    inside.wait(5)
    threading.Timer(0.05, may_end.set).start()
    with _moved_tensors.using, _moved_tensors.moving():  # must not wait for the call of its own thread
        order.append("moved")
    other.join(5)
    assert order == ["ended", "moved"] and time.monotonic() - started < 5


def test_calls_run_beside_one_another():
    both = threading.Barrier(2, timeout=5)

    def call() -> None:
        with _moved_tensors.using:
            both.wait()

    threads = [in_thread(call) for _ in range(2)]
    for one in threads:
        one.join(5)
    assert not both.broken


def test_a_paused_call_is_not_waited_for():
    paused, may_end = threading.Event(), threading.Event()

    def call() -> None:
        with _moved_tensors.using, _moved_tensors.paused():
            paused.set()
            may_end.wait(5)

    other = in_thread(call)
    paused.wait(5)
    with _moved_tensors.moving():
        may_end.set()
    other.join(5)
    assert not other.is_alive()


def test_calls_that_never_end_are_a_refusal(monkeypatch):
    monkeypatch.setattr(_moved_tensors, "_LONGEST_S", 0.05)
    inside, may_end = threading.Event(), threading.Event()

    def call() -> None:
        with _moved_tensors.using:
            inside.set()
            may_end.wait(5)

    other = in_thread(call)
    inside.wait(5)
    with pytest.raises(errors.NotRecordable, match="other threads"), _moved_tensors.moving():
        pass
    may_end.set()
    other.join(5)
    with _moved_tensors.moving():
        pass


def test_the_copy_of_a_set_has_the_order_of_the_original() -> None:
    """Both numbers belong into one place of the set's table, so that the order shows which one came first."""
    class Layers:
        def __init__(self) -> None:
            self.kinds, self.few, self.objects = {7, 15}, {3, 1}, {Layers}

    layers = Layers()
    assert list(copy.deepcopy(layers.kinds)) != list(layers.kinds), "Python's sets still behave so"
    made, _ = _copies.copied([layers, layers.kinds], _copies.MovedTensors([], {}), [])
    assert list(made[0].kinds) == list(layers.kinds) and made[0].kinds is made[1] is not layers.kinds
    assert (made[0].few, made[0].objects) == (layers.few, layers.objects)
