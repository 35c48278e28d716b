"""How quick this process's core is now, and a way to the quickest. Cores that others share work at half their speed, for seconds at a time."""
from __future__ import annotations

import math
import os
import time

SLOWER = 1.25  # than the quickest loop: others use the core
TIMES = 5  # loops that say how quick a core is, beside what is measured
_STEPS = 2000
_LOOKS = 3  # loops on each core

_least_s = math.inf
_has_looked = False  # at all cores


def loop_seconds(times: int = 1) -> float:
    """What a loop takes that always does the same: the quickest of some."""
    global _least_s
    found = min(_once() for _ in range(times))
    _least_s = min(_least_s, found)
    return found


def least_seconds() -> float:
    """The quickest loop of this process on any core that it tried."""
    return _least_s


def settle() -> None:
    """Takes this thread to the quickest core that the process may use, unless it is on one that is as quick as any before. What a program takes is
    measured so, and not what its neighbours do. The system may move it on again, and threads that it starts later go where they like."""
    is_quick = loop_seconds(_LOOKS) <= SLOWER * _least_s
    if hasattr(os, "sched_setaffinity") and not (_has_looked and is_quick):
        _look_at_all()


def _look_at_all() -> None:
    global _has_looked
    _has_looked, allowed, found = True, os.sched_getaffinity(0), {}
    try:
        for core in allowed:
            os.sched_setaffinity(0, {core})
            found[core] = loop_seconds(_LOOKS)
        os.sched_setaffinity(0, {min(found, key=found.__getitem__)})
    except OSError:  # a core was taken from the process meanwhile
        pass
    finally:
        os.sched_setaffinity(0, allowed)


def _once() -> float:
    started = time.perf_counter()
    total = 0
    for i in range(_STEPS):
        total += i & 7
    return time.perf_counter() - started
