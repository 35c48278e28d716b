"""When device code is not kept any more: what keeps it (CUPTI) makes each launch dearer, also of others' graphs.

After many replays in a row it is ended, and the next miss begins it anew (docs/cuda.md, "What keeping device code costs").
"""
from __future__ import annotations

import contextlib
import ctypes
import logging
import threading
import time
from typing import Iterator

import torch

from warmgraph import errors

_log = logging.getLogger("warmgraph")
OFTEN = 256  # replays; some seconds of a service's decode steps
_lock = threading.Lock()
_AFTER_A_MISS_S = 60  # more may be recorded until then
_not_before = 0.0
replays = ctypes.c_uint64()  # since the last miss; a lost increment of another thread costs nothing
_misses = 0  # that are being answered and recorded
_is_paused = False


def replayed() -> None:
    replays.value += 1
    if replays.value % OFTEN == 0:
        replayed_often()


def replayed_often() -> None:
    """Each OFTEN `replays`."""
    if not _is_paused and time.monotonic() >= _not_before:
        try:
            why = pause()
        except Exception as error:  # the call goes on
            why = str(error)
        if why:
            _log.debug("device code is still kept: %s", why)


@contextlib.contextmanager
def recording() -> Iterator[None]:
    """From before a miss is answered to the end of its recording: what is loaded meanwhile is kept."""
    global _misses, _is_paused, _not_before
    with _lock:
        _misses += 1
        replays.value = 0
        if _is_paused:
            _is_paused = False
            from warmgraph.core.binding._library import library

            try:
                library().wg_prepare_recording_early()
            except errors.Error as error:  # the recording will say it
                _log.debug("device code is not kept: %s", error)
    try:
        yield
    finally:
        with _lock:
            _misses -= 1
            _not_before = time.monotonic() + _AFTER_A_MISS_S


def pause() -> str:
    """Why not, or nothing."""
    global _is_paused
    from warmgraph.core.cache._cache import paused_recording
    from warmgraph.core.cache._pools import every_cache

    with _lock:
        if _misses:
            return "a call is being recorded"
        if getattr(torch.autograd, "_profiler_enabled")():
            return "PyTorch's profiler runs"
        why = paused_recording(every_cache())
        _is_paused = not why
        return why
