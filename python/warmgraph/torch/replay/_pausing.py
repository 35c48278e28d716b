"""Stops keeping device code when this is no longer useful: keeping code (by CUPTI) makes each launch of any graph slower.

The keeping stops after many replays in a row, and the next miss starts it again (docs/cuda.md, "What keeping device code costs").
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
OFTEN = 256  # number of replays; a service reaches it after some seconds of decode steps
_lock = threading.Lock()
_AFTER_A_MISS_S = 60  # seconds; the program may record more graphs until then
_not_before = 0.0
replays = ctypes.c_uint64()  # replays since the last miss. Threads may lose an increment of each other, which does not matter
_misses = 0  # number of misses that are being answered and recorded now
_is_paused = False


def replayed() -> None:
    replays.value += 1
    if replays.value % OFTEN == 0:
        replayed_often()


def replayed_often() -> None:
    """Stops keeping device code, if possible. Called each time when `replays` has grown by OFTEN."""
    if not _is_paused and time.monotonic() >= _not_before:
        try:
            why = pause()
        except Exception as error:  # the call must go on
            why = str(error)
        if why:
            _log.debug("device code is still kept: %s", why)


@contextlib.contextmanager
def recording() -> Iterator[None]:
    """Inside the block, device code is kept. The block begins before a miss's answer and ends with its recording."""
    global _misses, _is_paused, _not_before
    with _lock:
        _misses += 1
        replays.value = 0
        if _is_paused:
            _is_paused = False
            from warmgraph.core.binding._library import library

            try:
                library().wg_prepare_recording_early()
            except errors.Error as error:  # the recording will report the same error
                _log.debug("device code is not kept: %s", error)
    try:
        yield
    finally:
        with _lock:
            _misses -= 1
            _not_before = time.monotonic() + _AFTER_A_MISS_S


def pause() -> str:
    """Stops keeping device code. Returns "", or the reason if it cannot stop."""
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
