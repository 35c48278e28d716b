"""How quick this process's core is now. Cores that others share work at half their speed, for seconds at a time."""
from __future__ import annotations

import time

SLOWER = 1.25  # than the quickest loop: others use the core
_STEPS = 2000


def loop_seconds(times: int = 1) -> float:
    """What a loop takes that always does the same: the quickest of some."""
    return min(_once() for _ in range(times))


def _once() -> float:
    started = time.perf_counter()
    total = 0
    for i in range(_STEPS):
        total += i & 7
    return time.perf_counter() - started
