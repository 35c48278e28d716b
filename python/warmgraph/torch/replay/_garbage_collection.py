"""Python's garbage collection, put off. Reading a model makes thousands of small objects, none of them garbage, and each starts a collection
of all that PyTorch and its models are: more than a tenth of a second where transformers is imported, in a first call of as much."""
from __future__ import annotations

import gc
import os
import threading


class _Later:
    """`with later:`, and within it `with later.not_now:` for what is the caller's. A program that has none keeps none."""

    def __init__(self) -> None:
        self._lock, self._depth, self._was_enabled = threading.Lock(), 0, False
        self.not_now = _NotNow(self)

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
        """In the child, where the threads that put it off are not."""
        if self._depth > 0 and self._was_enabled:
            gc.enable()
        self._lock, self._depth = threading.Lock(), 0

    def switch(self, is_on: bool) -> None:
        with self._lock:
            if self._was_enabled and self._depth > 0:
                (gc.enable if is_on else gc.disable)()


class _NotNow:
    def __init__(self, later: _Later) -> None:
        self._later = later

    def __enter__(self) -> None:
        self._later.switch(True)

    def __exit__(self, *_: object) -> None:
        self._later.switch(False)


later = _Later()
os.register_at_fork(after_in_child=later.after_fork)
