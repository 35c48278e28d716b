"""The functions that run now, in each thread."""
from __future__ import annotations

import threading
from typing import Any, Callable, Protocol


class Running(Protocol):
    """A run, as far as a launch and an array ask for it (arrays/_run.py)."""

    name: str
    stream: int
    is_capture: bool

    def where(self, array: Any) -> Any: ...


class _State(threading.local):
    def __init__(self) -> None:  # in each thread: an attribute that is missing costs a call half a microsecond
        self.runs: list[Any] = []


state = _State()
threads: list[int] = []  # that run a function now, each as often as it is in one: where there are none, a call need not ask about its own

tracing: list[Callable[[], bool]] = []  # of a framework that is there: whether it traces the code that asks


def current() -> Any:
    """The run of this thread, the innermost."""
    runs = state.runs
    return runs[-1] if runs else None
