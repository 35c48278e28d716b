"""The memory pool of a capture. PyTorch's allocator chooses the free block with the lowest address. In pools of its own, the order of the
addresses is the driver's and differs from capture to capture, and so do the blocks that it chooses. Here, segments lie one behind the other, in the
order in which they were requested, so two captures of the same work get the same blocks."""
from __future__ import annotations

import contextlib
import ctypes
import logging
from typing import Any, Iterator, Sequence

import torch

from warmgraph import errors
from warmgraph.core.binding._library import library
from warmgraph.torch.replay import _launching

_log = logging.getLogger("warmgraph")
_allocators: list[Any] = []  # PyTorch's object with the library's functions; it lives as long as the process
_refused: set[int] = set()  # devices that have no such pools
_LEAST_PIECE, _LARGEST_PIECE, _MAPPINGS = 2 << 20, 256 << 20, 64  # as in backends/cuda/src/device/capture_pool.cpp


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _allocator() -> Any:
    if not _allocators:
        raw = library()
        _allocators.append(torch._C._cuda_customAllocator(_address(raw.wg_capture_pool_allocate), _address(raw.wg_capture_pool_release)))
    return _allocators[0]


def nbytes_of(pool: Any, sizes: Sequence[int], never_runs: bool) -> int:
    """The device memory behind a pool's segments. In a library's pool that never runs, a segment maps one piece of memory repeatedly."""
    if not never_runs or not is_ordered(pool):
        return sum(sizes)
    pieces = (min(max(size // _MAPPINGS, _LEAST_PIECE), _LARGEST_PIECE) for size in sizes)
    return sum(min(size, 1 << piece.bit_length() - 1) for size, piece in zip(sizes, pieces))


def is_ordered(pool: Any) -> bool:
    """Whether a pool's segments have addresses in the order of the requests."""
    return getattr(pool, "allocator", None) is not None


@contextlib.contextmanager
def pool_for(device: torch.device, snapshot: Sequence[dict[str, Any]], never_runs: bool) -> Iterator[Any]:
    """Yields a torch.cuda.MemPool for a capture inside the block. `snapshot`: the allocator's segments. never_runs: the captured graph never
    runs, so its pool needs almost no memory."""
    index = device.index or 0
    # PyTorch's expandable segments are in order already, and exclude other allocators.
    is_expandable = any(one.get("is_expandable") for one in snapshot)
    if is_expandable or index in _refused or not hasattr(torch._C, "_cuda_customAllocator"):
        yield torch.cuda.MemPool()
        return
    try:
        library().wg_capture_pool_open(_launching.device_of(index).pointer, int(never_runs))
    except (errors.Unsupported, errors.DriverFailed, errors.OutOfMemory) as error:
        _log.info("a capture on cuda:%d uses PyTorch's own memory pools: %s", index, error)
        if isinstance(error, errors.Unsupported):
            _refused.add(index)
        yield torch.cuda.MemPool()
        return
    try:
        yield torch.cuda.MemPool(_allocator())
    finally:
        library().wg_capture_pool_close()
