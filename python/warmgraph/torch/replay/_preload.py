"""Restores the graphs of PyTorch functions as soon as CUDA runs: while the program still reads its weights, and before the first call.

Wrapping itself opens nothing. A thread waits until PyTorch has made a context on some device. The thread makes no context itself: a process
that will use another device would then have two contexts. After a failure, the first call restores what is missing.
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
    name: str  # the argument `name` of begin()
    earliest: float  # the earliest start, as a value of time.monotonic()
    device: int | None = None  # the device on which restoring began


_lock = threading.Lock()
_waiting: list[Request] = []
_thread: threading.Thread | None = None
_made_in = 0  # the process (number of forks) that started the thread
_PERIOD = 0.005  # seconds between two polls; making a context takes a hundred times as long
_LONGEST = 300.0  # seconds after which the thread gives up if no device gets a context


def request(wrapped: CachedFunction, name: str = "", patience: float = 0.0) -> Request | None:
    """Lets the thread call begin() for the first device that gets a context, after at least `patience` seconds. Returns None when PyTorch
    is not imported yet, or `Config.preload` is off."""
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
    """Withdraws the request. Called if the first call begins, or if the function is a method: the entries then belong to its objects."""
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
    """Takes the requests that can begin on this device now. If `index` is None, takes all requests; nothing is restored for them."""
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
    """The index of the first device that has a context; None if no device has one."""
    try:
        torch: Any = sys.modules["torch"]
        if not torch.cuda.is_initialized():
            return None
        return next((one for one in range(torch.cuda.device_count()) if torch._C._cuda_hasPrimaryContext(one)), None)
    except Exception:  # this PyTorch has no CUDA, or is still being imported
        return None


def begin(wrapped: CachedFunction, index: int, name: str = "") -> None:
    """Starts restoring the function's graphs on this CUDA device, in the background. name: the name of another function of its cache, which
    is restored instead; "graphs-*": all functions with this beginning."""
    try:
        from warmgraph.core.cache._pools import pool_of
        from warmgraph.torch.replay._launching import device_of

        if wrapped.options.config.preload and wrapped.policy not in ("off", "refresh"):
            cache = pool_of(wrapped._where()).caches[0]
            cache.preload([name] if name else wrapped._names(), device_of(index))
        if not name:
            wrapped._shared.preloaded_on = index
    except Exception:  # the first call will report the error
        _log.debug("nothing of '%s' is preloaded", name or wrapped._name(), exc_info=True)


def was_begun(wrapped: CachedFunction, index: int) -> bool:
    """Whether begin() was called for the function itself on this device."""
    return wrapped._shared.preloaded_on == index
