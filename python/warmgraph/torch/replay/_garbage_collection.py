"""Delays Python's garbage collection. Reading a model makes thousands of small objects that are not garbage, and they start collections
of all objects of PyTorch and its models. With transformers imported, this takes more than a tenth of a second, as long as the rest of a first call."""
from __future__ import annotations

import gc
import os
import threading


class _DeferredCollection:
    """Collection is off inside `with later:`, and on again inside `with later.not_now:`, which surrounds the caller's code. If the program
    has disabled collection, it stays disabled."""

    def __init__(self) -> None:
        self._lock, self._depth, self._was_enabled = threading.Lock(), 0, False
        self.not_now = _CollectionAllowed(self)

    def __enter__(self) -> None:
        with self._lock:
            if self._depth == 0:
                self._was_enabled = gc.isenabled()
                gc.disable()
            self._depth += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._depth -= 1
            if self._depth == 0 and self._was_enabled:
                gc.enable()

    def after_fork(self) -> None:
        """Turns collection on again in a forked child, where the threads that turned it off do not exist."""
        if self._depth > 0 and self._was_enabled:
            gc.enable()
        self._lock, self._depth = threading.Lock(), 0

    def switch(self, is_on: bool) -> None:
        with self._lock:
            if self._was_enabled and self._depth > 0:
                (gc.enable if is_on else gc.disable)()


class _CollectionAllowed:
    def __init__(self, later: _DeferredCollection) -> None:
        self._later = later

    def __enter__(self) -> None:
        self._later.switch(True)

    def __exit__(self, *_: object) -> None:
        self._later.switch(False)


later = _DeferredCollection()
os.register_at_fork(after_in_child=later.after_fork)
