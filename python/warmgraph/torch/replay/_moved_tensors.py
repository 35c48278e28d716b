"""Keeps tensors in place while a call reads them or runs. Another thread's second capture must wait to move them."""
from __future__ import annotations

import contextlib
import ctypes
import threading
from typing import Iterator

from warmgraph import errors

_LONGEST_S = 10.0
_condition = threading.Condition(threading.Lock())
_readers: dict[int, int] = {}  # by thread: how many calls of enter() have no leave() yet
_movers: list[int] = []  # threads that moved tensors, or wait to. Calls write `_readers` before they read this; movers do the reverse


class _TensorUse:
    """The context of a call: no other thread moves tensors inside it. Calls of several threads may run at the same time. It does nothing in
    the thread that has moved tensors."""

    def __enter__(self) -> None:
        enter(threading.get_ident())

    def __exit__(self, *_: object) -> None:
        leave(threading.get_ident())


def enter(me: int) -> None:
    """The same as entering `using`, for callers that always call leave() afterwards."""
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
    """Waits while tensors are moved away. A thread that is still waiting to move tensors does not stop new calls."""
    with _condition:
        if _moved and _moved[0] != me:
            depth = _readers.pop(me)
            _condition.notify_all()
            _condition.wait_for(lambda: not _moved)
            _readers[me] = depth


_moved: list[int] = []  # the thread that has moved its tensors away now
moves = ctypes.c_uint64()  # odd while tensors are moved away; code that reads the same even number before and after its work needs no lock


def _set_moved(*threads: int) -> None:
    _moved[:] = threads
    moves.value += 1


using = _TensorUse()


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """Permits other threads to move tensors inside the block; use this inside `using`."""
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
    """Waits until other threads' calls have ended, and makes new calls wait. Raises NotRecordable if the calls do not end: they may be
    waiting for this thread."""
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
    """Announces the move first, and then checks for running calls: a call that begins in between sees the announcement."""
    _set_moved(me)
    if all(one == me for one in list(_readers)):
        return True
    _set_moved()
    return False
