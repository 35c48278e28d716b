"""Restores the graphs of PyTorch functions as soon as CUDA runs: while the program still reads its weights, and before the first call.

Wrapping itself opens nothing. A thread waits until PyTorch has made some device's context. The thread makes none itself, because a process
that will use another device would then have two. A failure costs only the gain: the first call restores the rest.
"""
from __future__ import annotations

import dataclasses
import logging
import sys
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any

from warmgraph.core.binding import _fork

if TYPE_CHECKING:
    from warmgraph.calls._cached_function import CachedFunction

_log = logging.getLogger("warmgraph")


@dataclasses.dataclass(eq=False)
class Request:
    """A wrapped function whose graphs are restored once a device has a context."""

    wrapped: weakref.ref[Any]
    name: str  # the argument of begin()
    earliest: float  # time.monotonic() of the earliest start
    device: int | None = None  # the device where it began


_lock = threading.Lock()
_waiting: list[Request] = []
_thread: threading.Thread | None = None
_made_in = 0  # the process of the thread
_PERIOD = 0.005  # seconds between two polls; making a context takes a hundred times as long
_LONGEST = 300.0  # seconds without a context until the thread ends


def request(wrapped: CachedFunction, name: str = "", patience: float = 0.0) -> Request | None:
    """Has the thread call begin() for the first device that gets a context, after at least `patience` seconds. None when PyTorch is not
    imported yet, or `Config.preload` is off."""
    global _thread, _made_in
    if "torch" not in sys.modules or not wrapped.options.config.preload:
        return None
    with _lock:
        if _made_in != _fork.generation():
            _waiting.clear()
            _thread, _made_in = None, _fork.generation()
        made = Request(weakref.ref(wrapped), name, time.monotonic() + patience)
        _waiting.append(made)
        if _thread is None:
            _thread = threading.Thread(target=_wait, name="warmgraph preload", daemon=True)
            _thread.start()
        return made


def forget(wrapped: CachedFunction) -> None:
    """Withdraws the request: the first call no longer needs it, or the function is a method, whose objects have their own entries."""
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


def _taken(now: float, index: int | None) -> list[Request]:
    """Takes the requests that begin on this device now. Without a device: takes all of them, and they end unanswered."""
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
    except Exception:  # PyTorch without CUDA, or half imported
        return None


def begin(wrapped: CachedFunction, index: int, name: str = "") -> None:
    """Starts restoring its graphs on this CUDA device, in the background. name: restores another function of its cache instead; "graphs-*":
    all functions with this beginning."""
    try:
        from warmgraph.core.cache._pools import pool_of
        from warmgraph.torch.replay._launching import device_of

        if wrapped.options.config.preload and wrapped.policy not in ("off", "refresh"):
            cache = pool_of(wrapped._where()).caches[0]
            cache.preload([name] if name else wrapped._names(), device_of(index))
        if not name:
            wrapped._shared.preloaded_on = index
    except Exception:  # the first call reports it
        _log.debug("nothing of '%s' is preloaded", name or wrapped._name(), exc_info=True)


def was_begun(wrapped: CachedFunction, index: int) -> bool:
    """Whether begin() was called for the function itself on this device."""
    return wrapped._shared.preloaded_on == index
