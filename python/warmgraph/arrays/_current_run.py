"""Notes for each thread which functions it is running now."""
from __future__ import annotations

import threading
from typing import Any, Callable, Protocol


class RunContext(Protocol):
    """The parts of a run that a launch and an array need (arrays/_run.py)."""

    name: str
    stream: int
    is_capture: bool

    def where(self, array: Any) -> Any: ...


class _State(threading.local):
    def __init__(self) -> None:  # runs in each thread: a missing attribute would cost each call half a microsecond
        self.runs: list[Any] = []


state = _State()
threads: list[int] = []  # ids of the threads that run a function now; if empty, a call need not check its own thread

tracing: list[Callable[[], bool]] = []  # for each imported framework: returns whether it is tracing the calling code


def current() -> Any:
    """The innermost run of this thread."""
    runs = state.runs
    return runs[-1] if runs else None
