"""A forked child has its parent's handles but not the driver's threads. Using a handle in the child raises an error instead of hanging."""
from __future__ import annotations

import os

from warmgraph import errors

_generation = 0  # how many forks lie between the first process and this one
_opened_in: set[int] = set()  # the generations (numbers of forks) in which a device was opened


def _after_in_child() -> None:
    global _generation
    _generation += 1


os.register_at_fork(after_in_child=_after_in_child)


def generation() -> int:
    return _generation


def device_opens() -> None:
    """Notes that this process opens a device. Raises Unsupported in a child of a process that had opened one."""
    if any(one != _generation for one in _opened_in):
        raise errors.Unsupported(
            "this process was forked from one that had opened a device, and the CUDA driver works only in the parent: start it with spawn "
            "(multiprocessing.set_start_method('spawn')), or fork before the first device is opened")
    _opened_in.add(_generation)


def expect_same(made_in: int, what: str) -> None:
    if made_in != _generation:
        raise errors.Unsupported(
            f"{what} was made before this process was forked, and works only in the parent: start the child with spawn "
            "(multiprocessing.set_start_method('spawn'))")
