"""Measures the speed of this process's core, and moves to the fastest core. A core with other load works at half its speed, for seconds at a time."""
from __future__ import annotations

import math
import os
import time

SLOWER = 1.25  # times the fastest loop; above this other processes use the core
TIMES = 5  # loops for one measurement of a core beside a benchmark
_STEPS = 2000
_LOOKS = 3  # loops on each core

_least_s = math.inf
_has_looked = False  # whether all cores were measured


def loop_seconds(times: int = 1) -> float:
    """The time of a fixed loop: the fastest of `times` runs."""
    global _least_s
    found = min(_once() for _ in range(times))
    _least_s = min(_least_s, found)
    return found


def least_seconds() -> float:
    """The fastest loop of this process on all cores so far."""
    return _least_s


def settle() -> None:
    """Moves this thread to the fastest core that the process may use, unless the thread's core is as fast as any core before. So the measurement
    does not include other processes' work. The system may move the thread later, and threads that it starts later use any core."""
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
