"""Detects work that a capturing thread enqueues in a stream that does not capture. Such work runs at once, and would be missing in the
graph."""
from __future__ import annotations

import contextlib
from typing import Iterator

import torch

from warmgraph import errors
from warmgraph.core.binding._library import library
from warmgraph.torch.record import _operators
from warmgraph.torch.replay import _launching


@contextlib.contextmanager
def refused(device: torch.device) -> Iterator[None]:
    """Refuses such work of any kind within a capture: kernels of compiled code, of Triton and of libraries. Such work has already run when
    it is detected; PyTorch's operators are checked before they run (_operators.py)."""
    index, lib = device.index or 0, library()
    watch = lib.create("wg_stream_watch", _launching.stream_of(_launching.device_of(index), index))
    try:
        yield
        stray = lib.text("wg_watch_stray", watch)
    finally:
        lib.wg_watch_destroy(watch)
    if stray:
        raise errors.NotRecordable(f"it enqueues {stray}, which is not captured with it: {_operators.CURE}")
