"""Finds out whether a call is inside a run, a capture, a compilation or a mode that does not belong to it."""
from __future__ import annotations

import contextlib
import ctypes
import operator
import sys
import threading
from collections.abc import Iterator
from typing import Any, Callable

import torch

from warmgraph.arrays import _current_run
from warmgraph.calls._steady_calls import Tests
from warmgraph.torch.read import _libraries
from warmgraph.torch.replay import _modes

_RELAXED = 2  # the driver's value CU_STREAM_CAPTURE_MODE_RELAXED (cuda.h)


class _Running(threading.local):
    """Counts the functions that run in this thread."""

    depth = 0

    def __enter__(self) -> None:
        self.depth += 1
        _current_run.threads.append(threading.get_ident())

    def __exit__(self, *_: object) -> None:
        self.depth -= 1
        _current_run.threads.remove(threading.get_ident())


running = _Running()
_is_stream_capturing: Callable[[], bool] = getattr(torch._C, "_cuda_isCurrentStreamCapturing", torch.cuda.is_current_stream_capturing)


def is_inside() -> bool:
    """Whether the call is inside a run, a capture, a compilation or a mode that does not belong to it."""
    return running.depth > 0 or torch.compiler.is_compiling() or is_captured() or _modes.is_inside()


def expect_outside(tests: Tests, asks_stream: bool) -> list[tuple[Any, str]]:
    """Adds tests that is_inside() is still false, except for the modes. Returns (object, name) of the attributes that must not change.
    asks_stream: no test for captures is needed, because the launch itself asks its stream, in a third of the time."""
    if _current_run.threads:  # runs of other threads may last long, so the list may stay non-empty: test this thread
        tests.number(tests.answer(operator.attrgetter("depth"), running), 0)
        tests.items(tests.answer(operator.attrgetter("runs"), _current_run.state), 0)
    else:
        tests.empty(_current_run.threads)
    if not asks_stream:
        tests.same(tests.answer(_is_stream_capturing if torch.cuda.is_initialized() else is_captured), False)
    if vars(torch.compiler).get("_is_compiling_flag") is False:
        return [(torch.compiler, "_is_compiling_flag")]
    tests.same(tests.answer(torch.compiler.is_compiling), False)
    return []


def is_captured() -> bool:
    return torch.cuda.is_initialized() and _is_stream_capturing()


def first_run_allowed() -> contextlib.AbstractContextManager[None]:
    """The context for a call inside the caller's own capture. If all earlier calls were replays, the function runs for the first time in
    this process: it may then allocate memory, load code and make a library's handle. Code that is not compiled yet runs uncompiled,
    because Dynamo cannot compile in a capture."""
    return _first_run() if running.depth == 0 and is_captured() else contextlib.nullcontext()


@contextlib.contextmanager
def _first_run() -> Iterator[None]:
    mode = ctypes.c_int(_RELAXED)
    exchange = _libraries.driver().cuThreadExchangeStreamCaptureMode
    exchange(ctypes.byref(mode))
    try:
        # Only if Dynamo is loaded: without it nothing is compiled, and importing it takes seconds.
        with torch.compiler.set_stance("eager_on_recompile") if "torch._dynamo" in sys.modules else contextlib.nullcontext():
            yield
    finally:
        exchange(ctypes.byref(mode))
