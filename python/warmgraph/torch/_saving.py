"""What autograd saves for backward: copied, as it is saved, to memory that outlives the capture. Backward reads it there, and nowhere else."""
from __future__ import annotations

import dataclasses
from typing import Any, Sequence

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from .. import errors
from . import _tensors
from ._regions import Region, storage_key


@dataclasses.dataclass(frozen=True)
class _Copied:
    """A tensor that forward made. `sizes` and `strides` lie over flat memory; those of 0 elements apart are expanded again to `whole`."""

    index: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    whole: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class _Given:
    """A tensor of the call, or of the function's surroundings. It is read where it is."""

    tensor: torch.Tensor
    version: int
    region: str


class Saver:
    """`with saver.hooks():` around forward; they serve its backward too. `memory`: flat tensors that the copies go to; one that makes them
    appends to it. `used`: the regions that were saved, in the order in which they were."""

    def __init__(self, regions: Sequence[Region], memory: list[torch.Tensor] | None = None) -> None:
        self._regions = {int(region.storage.data_ptr()): region for region in regions}
        self._makes = memory is None
        self.memory: list[torch.Tensor] = [] if memory is None else memory
        self.used: dict[str, None] = {}
        self.count = 0
        self._seen: dict[Any, tuple[StorageWeakRef, int]] = {}

    def hooks(self) -> Any:
        return torch.autograd.graph.saved_tensors_hooks(self._pack, self._unpack)

    def expect_like(self, used: Sequence[str]) -> None:
        """After forward: it saved what it saved before."""
        if self.count != len(self.memory) or list(self.used) != list(used):
            raise errors.NotRecordable(f"it saves other tensors for backward at its second call: {self.count} and {list(self.used)} after "
                                       f"{len(self.memory)} and {list(used)}")

    def _pack(self, tensor: torch.Tensor) -> Any:
        if tensor.device.type != _tensors.DEVICE_TYPE:  # numbers, which kernels get as parameters
            return tensor.detach() if tensor.requires_grad else tensor
        with torch.no_grad():
            own = tensor.detach()
            why = _tensors.why_unusable(own)
            if why:
                raise errors.NotRecordable(f"a tensor that it saves for backward {why}")
            if own.numel() == 0:
                return own
            region = self._regions.get(storage_key(own))
            if region is not None:
                self.used[region.name] = None
                return _Given(own, own._version, region.name)
            return self._copied(own)

    def _unpack(self, saved: Any) -> torch.Tensor:
        if isinstance(saved, _Given):
            if saved.tensor._version != saved.version:
                raise errors.NotRecordable(f"{saved.region} is needed for backward, and was written after it was saved: clone() it before")
            return saved.tensor
        if isinstance(saved, _Copied):
            flat = self.memory[saved.index]
            return flat.as_strided(saved.sizes, saved.strides, flat.storage_offset()).expand(saved.whole)
        return saved  # type: ignore[no-any-return]

    def _copied(self, own: torch.Tensor) -> _Copied:
        base = own
        for dimension, (size, stride) in enumerate(zip(own.size(), own.stride())):
            if stride == 0 and size > 1:
                base = base.narrow(dimension, 0, 1)
        # One tensor that several operators save, also in other shapes, is one copy.
        is_dense = _is_dense(base)
        shape: Any = base.numel() if is_dense else (tuple(base.size()), tuple(base.stride()))
        key = (storage_key(own), own.storage_offset(), own.dtype, own._version, shape)
        known = self._seen.get(key)
        index = known[1] if known is not None and not known[0].expired() else self._add(key, own, base, is_dense)
        strides = tuple(base.stride()) if is_dense else _contiguous(base.size())
        return _Copied(index, tuple(base.size()), strides, tuple(own.size()))

    def _add(self, key: Any, own: torch.Tensor, base: torch.Tensor, is_dense: bool) -> int:
        flat = base.as_strided((base.numel(),), (1,), base.storage_offset()) if is_dense else base.reshape(-1)
        index, self.count = self.count, self.count + 1
        if self._makes:
            self.memory.append(torch.empty_like(flat))
        elif index >= len(self.memory) or (self.memory[index].dtype, self.memory[index].size()) != (flat.dtype, flat.size()):
            raise errors.NotRecordable(f"it saves another tensor for backward at its second call: {_tensors.described(flat)}")
        self.memory[index].copy_(flat)
        self._seen[key] = (StorageWeakRef(own.untyped_storage()), index)
        return index


def _is_dense(tensor: torch.Tensor) -> bool:
    """Its elements fill a range, in some order of dimensions."""
    expected = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.size())):
        if size == 1:
            continue
        if stride != expected:
            return False
        expected *= size
    return True


def _contiguous(sizes: Sequence[int]) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(sizes):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))
