"""Functions of PyTorch's are prefetched as soon as CUDA runs: while the program still reads its weights, and before the first call.

Wrapping itself opens nothing. A thread waits until some device has a context, which PyTorch makes; it makes none itself, since a process
that is to use another device would have two. What goes wrong costs the gain alone: the first call does what was not done by then.
"""
from __future__ import annotations

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
_lock = threading.Lock()
_waiting: list[weakref.ref[Any]] = []
_thread: threading.Thread | None = None
_made_in = 0  # the process that has the thread
_PERIOD = 0.005  # seconds between two looks: a context takes a hundred times as long
_LONGEST = 300.0  # seconds without a context, after which the first calls are left to themselves


def expect(wrapped: CachedFunction) -> None:
    """It will be called, on whichever device the process uses. Nothing where PyTorch is not imported yet."""
    global _thread, _made_in
    if "torch" not in sys.modules or not wrapped.options.config.prefetch:
        return
    with _lock:
        if _made_in != _fork.generation():
            _waiting.clear()
            _thread, _made_in = None, _fork.generation()
        _waiting.append(weakref.ref(wrapped))
        if _thread is None:
            _thread = threading.Thread(target=_wait, name="warmgraph prefetch", daemon=True)
            _thread.start()


def forget(wrapped: CachedFunction) -> None:
    """It is a class's: each object has its own."""
    with _lock:
        _waiting[:] = [one for one in _waiting if one() is not wrapped]


def _wait() -> None:
    end = time.monotonic() + _LONGEST
    while True:
        index = _device_in_use()
        if index is None and time.monotonic() < end:
            time.sleep(_PERIOD)
            continue
        for wrapped in _taken():
            if index is not None:
                begin(wrapped, index)
        if index is not None:
            _ask_versions()
        if _is_done():
            return


def _ask_versions() -> None:
    try:
        from .torch import _modes

        _modes.ask_ahead()
    except Exception:  # who needs them asks again
        _log.debug("versions are not asked ahead", exc_info=True)


def _taken() -> list[Any]:
    with _lock:
        taken = [one() for one in _waiting]
        _waiting.clear()
    return [one for one in taken if one is not None]


def _is_done() -> bool:
    global _thread
    with _lock:
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
        from ._compiled import _pool_of
        from .torch._function import _policy, device_of

        if wrapped.options.config.prefetch and _policy(wrapped) not in ("off", "refresh"):
            cache = _pool_of(wrapped._where()).caches[0]
            for one in [name] if name else wrapped._names():
                cache.prefetch(one, device_of(index))
    except Exception:  # who needs it hears of it
        _log.debug("nothing of '%s' is loaded ahead", name or wrapped._name(), exc_info=True)
