"""Implements borrowed results (`borrow=True`): each call writes its results into memory that belongs to the entry. When the next call
overwrites them, the earlier results become stale, and using them raises an error."""
from __future__ import annotations

import contextlib
import threading
from typing import Any, Iterable, Sequence

import torch

from warmgraph.torch.read import _tensors
from warmgraph.torch.replay import _outputs

_NEEDED = ("_construct_storage_from_data_pointer", "_set_storage_data_ptr_access_error_msg", "_storage_Use_Count")


def is_possible() -> bool:
    """Whether this PyTorch can mark a storage's memory as invalid."""
    return all(hasattr(torch._C, name) for name in _NEEDED)


class BorrowedResults:
    """The memory of one entry's results, from PyTorch's allocator, at the same addresses for all calls. Each call gets new tensors over it,
    in storages that own nothing; marking such a storage as stale marks all its views. Hold `lock` during a launch and lend(), so that
    the results of two threads are not mixed up."""

    def __init__(self, name: str, outputs: Sequence[_outputs.Output], device: torch.device) -> None:
        self.lock = threading.Lock()
        self._name, self._declared, self._device = name, outputs, device
        self._memory: list[torch.Tensor] | None = None
        self._making = threading.Lock()
        self._places: list[tuple[int, int] | None] = []  # (pointer, bytes); None for an empty result
        self._calls = 0
        self._lent: list[Any] = []  # the storages of the last call's results
        self._streams: set[int] = set()

    def memory(self) -> list[torch.Tensor]:
        """The memory that a launch writes. It is the same for all threads."""
        with self._making:
            if self._memory is None:
                made = [one.allocate(self._device) for one in self._declared]
                self._places = [(one.data_ptr(), one.untyped_storage().nbytes()) if one.numel() else None for one in made]
                self._memory = made
            return self._memory

    def ranges(self) -> list[tuple[int, int]]:
        """The range (start, end) of each result."""
        return [(one.data_ptr(), one.data_ptr() + _tensors.extent(one)) for one in self.memory() if one.numel()]

    def overlaps(self, ranges: Iterable[tuple[int, int]]) -> bool:
        """Whether one of the call's ranges overlaps this memory. Such a call gets other memory, because a graph must not write its inputs."""
        own = self.ranges()
        return any(start < end and first < end and start < last for start, end in ranges for first, last in own)

    def lend(self) -> list[torch.Tensor]:
        """Returns the tensors for the launched call. The previous call's tensors become stale."""
        self._calls += 1
        self._end(f"whose memory call {self._calls} has overwritten")
        self._use_on_this_stream()
        return [self._lent_one(one, place) for one, place in zip(self.memory(), self._places)]

    def _lent_one(self, tensor: torch.Tensor, place: tuple[int, int] | None) -> torch.Tensor:
        if place is None:
            return tensor
        storage = torch._C._construct_storage_from_data_pointer(place[0], self._device, place[1])
        self._lent.append(storage)
        return _tensors.view_of(storage, tensor.dtype, 0, tensor.size(), tensor.stride(), self._device)

    def _end(self, why: str) -> None:
        lent, self._lent = self._lent, []
        for storage in lent:
            if torch._C._storage_Use_Count(storage._cdata) > 1:  # something outside of this list uses the storage
                torch._C._set_storage_data_ptr_access_error_msg(
                    storage._cdata, f"this is a borrowed result of an earlier call of '{self._name}', {why}: clone() results that are needed for "
                                    "longer, or leave out borrow=True")

    def _use_on_this_stream(self) -> None:
        """Reports this stream to PyTorch's allocator: otherwise the allocator reuses freed memory without waiting for work in this stream."""
        if self._device.type != "cuda":
            return
        raw = torch._C._cuda_getCurrentRawStream(self._device.index or 0)
        if raw not in self._streams:
            self._streams.add(raw)
            for one in self.memory():
                one.record_stream(torch.cuda.current_stream(self._device))

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # may fail at the end of the process
            self._end("which was dropped (reset(), or more variants than max_variants)")
