"""Tensors that stay where they are while a call reads them or runs, and are elsewhere while another thread's second capture has moved them."""
from __future__ import annotations

import contextlib
import ctypes
import threading
from typing import Iterator

from warmgraph import errors

_LONGEST_S = 10.0
_condition = threading.Condition(threading.Lock())
_readers: dict[int, int] = {}  # how often each thread is inside of using()
_movers: list[int] = []  # the threads that have moved tensors, or wait to: a call announces itself before it looks here, they the other way


class _Using:
    """Calls of other threads run beside it. In the thread that has moved tensors it does nothing."""

    def __enter__(self) -> None:
        enter(threading.get_ident())

    def __exit__(self, *_: object) -> None:
        leave(threading.get_ident())


def enter(me: int) -> None:
    """What `using` does, for who calls leave() in any case."""
    _readers[me] = _readers.get(me, 0) + 1
    if _movers:
        _wait(me)


def leave(me: int) -> None:
    if _readers[me] > 1:
        _readers[me] -= 1
    else:
        del _readers[me]
    if _movers:
        with _condition:
            _condition.notify_all()


def _wait(me: int) -> None:
    """While tensors are elsewhere. A thread that only waits to move them lets new calls go first."""
    with _condition:
        if _moved and _moved[0] != me:
            depth = _readers.pop(me)
            _condition.notify_all()
            _condition.wait_for(lambda: not _moved)
            _readers[me] = depth


_moved: list[int] = []  # the thread whose tensors are elsewhere now
moves = ctypes.c_uint64()  # odd meanwhile: who finds it even and the same behind all that he read is not inside of using()


def _set_moved(*threads: int) -> None:
    _moved[:] = threads
    moves.value += 1


using = _Using()


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """Within using(): others may move tensors meanwhile."""
    me = threading.get_ident()
    with _condition:
        depth = _readers.pop(me, 0)
        _condition.notify_all()
    try:
        yield
    finally:
        with _condition:
            _condition.wait_for(lambda: not _moved or _moved[0] == me)
            if depth:
                _readers[me] = depth


@contextlib.contextmanager
def moving() -> Iterator[None]:
    """Waits for the calls of other threads, and keeps new ones waiting. NotRecordable where they do not end: each may wait for another
    one, so that new ones go first."""
    me = threading.get_ident()
    with _condition:
        _movers.append(me)
        if not _condition.wait_for(lambda: not _moved and _claim(me), _LONGEST_S):
            _movers.remove(me)
            raise errors.NotRecordable(f"other threads called cached functions for {_LONGEST_S:.0f} s without a pause, but the second capture needs "
                                       "one to move tensors: record before these threads start")
    try:
        yield
    finally:
        with _condition:
            _set_moved()
            _movers.remove(me)
            _condition.notify_all()


def _claim(me: int) -> bool:
    """Says first that tensors move, and looks then who runs."""
    _set_moved(me)
    if all(one == me for one in list(_readers)):
        return True
    _set_moved()
    return False
