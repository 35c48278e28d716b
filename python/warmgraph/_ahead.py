"""Functions of PyTorch's are prefetched as soon as CUDA runs: while the program still reads its weights, and before the first call.

Wrapping itself opens nothing. A thread waits until some device has a context, which PyTorch makes; it makes none itself, since a process
that is to use another device would have two. What goes wrong costs the gain alone: the first call does what was not done by then.
"""
from __future__ import annotations

import dataclasses
import logging
import sys
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any

from . import _fork

if TYPE_CHECKING:
    from ._compiled import CachedFunction

_log = logging.getLogger("warmgraph")


@dataclasses.dataclass(eq=False)
class Expected:
    """What will be called."""

    wrapped: weakref.ref[Any]
    name: str  # of other functions of its cache, as begin() has it
    earliest: float  # time.monotonic() before which it is not begun
    device: int | None = None  # on which it was begun


_lock = threading.Lock()
_waiting: list[Expected] = []
_thread: threading.Thread | None = None
_made_in = 0  # the process that has the thread
_PERIOD = 0.005  # seconds between two looks: a context takes a hundred times as long
_LONGEST = 300.0  # seconds without a context, after which the first calls are left to themselves


def expect(wrapped: CachedFunction, name: str = "", patience: float = 0.0) -> Expected | None:
    """It will be called, on whichever device the process uses. None where PyTorch is not imported yet. patience: seconds in which its first
    call may come, and ends this (forget())."""
    global _thread, _made_in
    if "torch" not in sys.modules or not wrapped.options.config.prefetch:
        return None
    with _lock:
        if _made_in != _fork.generation():
            _waiting.clear()
            _thread, _made_in = None, _fork.generation()
        expected = Expected(weakref.ref(wrapped), name, time.monotonic() + patience)
        _waiting.append(expected)
        if _thread is None:
            _thread = threading.Thread(target=_wait, name="warmgraph prefetch", daemon=True)
            _thread.start()
        return expected


def forget(wrapped: CachedFunction) -> None:
    """It is not begun from now on: it is a class's, of which each object has its own, or it is called."""
    with _lock:
        _waiting[:] = [one for one in _waiting if one.wrapped() is not wrapped]


def _wait() -> None:
    end = time.monotonic() + _LONGEST
    while True:
        index, now = _device_in_use(), time.monotonic()
        if index is not None:
            for one in _taken(now, index):
                wrapped = one.wrapped()
                if wrapped is not None:
                    begin(wrapped, index, one.name)
        elif now >= end:
            _taken(now, None)
        if _is_done():
            return
        time.sleep(_PERIOD)


def _taken(now: float, index: int | None) -> list[Expected]:
    """What is begun on a device now; without one, what is given up."""
    with _lock:
        taken = [one for one in _waiting if index is None or one.earliest <= now]
        for one in taken:
            _waiting.remove(one)
            one.device = index
    return taken


def _is_done() -> bool:
    global _thread
    with _lock:
        _waiting[:] = [one for one in _waiting if one.wrapped() is not None]
        if not _waiting:
            _thread = None
        return _thread is None


def _device_in_use() -> int | None:
    """The first device that has a context."""
    try:
        torch: Any = sys.modules["torch"]
        if not torch.cuda.is_initialized():
            return None
        return next((one for one in range(torch.cuda.device_count()) if torch._C._cuda_hasPrimaryContext(one)), None)
    except Exception:  # a PyTorch without CUDA, or half imported
        return None


def begin(wrapped: CachedFunction, index: int, name: str = "") -> None:
    """Now, in the background, on this device of CUDA's. name: of other functions of its cache; "graphs-*" for all that begin so."""
    try:
        from ._pools import pool_of
        from .torch._function import _policy
        from .torch._launching import device_of

        if wrapped.options.config.prefetch and _policy(wrapped) not in ("off", "refresh"):
            cache = pool_of(wrapped._where()).caches[0]
            for one in [name] if name else wrapped._names():
                cache.prefetch(one, device_of(index))
        if not name:
            wrapped._shared.begun_on = index
    except Exception:  # who needs it hears of it
        _log.debug("nothing of '%s' is loaded ahead", name or wrapped._name(), exc_info=True)


def pause(wrapped: CachedFunction) -> None:
    """What begin() has restored of a table waits until it is called again: a first call is on its way. REQUIRES: it was begun."""
    try:
        from ._pools import pool_of

        pool_of(wrapped._where()).caches[0].pause_prefetch()
    except Exception:
        _log.debug("nothing is paused", exc_info=True)


def was_begun(wrapped: CachedFunction, index: int) -> bool:
    """By itself, on this device."""
    return wrapped._shared.begun_on == index
