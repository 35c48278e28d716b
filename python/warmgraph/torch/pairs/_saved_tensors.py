"""Handles the tensors that autograd saves for backward: when one is saved, it is copied to memory that outlives the capture. Backward reads
only this memory."""
from __future__ import annotations

import dataclasses
from typing import Any, Iterator, Sequence

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from warmgraph import errors
from warmgraph.torch.read import _tensors
from warmgraph.torch.record import _operators
from warmgraph.torch.replay._regions import Region, storage_key


@dataclasses.dataclass(frozen=True)
class _CopiedTensor:
    """A tensor that forward made. `sizes` and `strides` describe the copy in flat memory. Dimensions with stride 0 are copied once, and
    expanded again to the sizes `whole`."""

    index: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    whole: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class _CallTensor:
    """A tensor of the call or its surroundings. Backward reads it in place."""

    tensor: torch.Tensor
    version: int
    region: str


_MOST_OF_HOST = 16  # the most elements of a saved host tensor that may be a device tensor in a capture
# In bytes; a saved tensor up to this size is kept alive until its capture ends. If a kernel leaves some of its bytes unwritten (attention
# pads its statistics), these bytes then keep their value, and the library stores them as a constant. This would fail if other work reused
# the memory.
_MOST_HELD = 1 << 20


class Saver:
    """Use `with saver.hooks():` around forward; the hooks also serve its backward. The first saver runs forward eagerly: it makes `memory`,
    flat tensors for the copies, and learns what is saved. Later savers (`as_before`) save the same. `used`: the regions that were saved.
    `reread`: the regions that backward reads although they were not saved, because it computes a part of forward again (a checkpoint).
    `filled`: the indices in `memory` that were written. Both are in the order of saving."""

    def __init__(self, regions: Sequence[Region], device: torch.device, draws: bool) -> None:
        """draws: whether forward draws random numbers."""
        self._regions = {int(region.storage.data_ptr()): region for region in regions}
        self._device, self._draws = device, draws
        self._makes = True
        self.memory: list[torch.Tensor] = []
        self.of_host: dict[int, int] = {}  # the index in `memory` of each host tensor, by the number of tensors saved before it
        self.used: dict[str, None] = {}
        self.reread: dict[str, None] = {}
        self.filled: list[int] = []
        self._count = 0  # how many tensors autograd has saved
        self._next: Iterator[int] = iter(())
        self._seen: dict[Any, tuple[StorageWeakRef, int]] = {}
        self._held: list[torch.Tensor] = []

    def as_before(self, regions: Sequence[Region], memory: Sequence[torch.Tensor]) -> Saver:
        """A saver for a capture on these regions. `memory`: tensors for the copies, in the form of this saver's `memory`."""
        made = Saver(regions, self._device, self._draws)
        made._makes, made.memory, made.of_host = False, list(memory), self.of_host
        spare = set(self.of_host.values())
        made._next = iter([i for i in range(len(memory)) if i not in spare])
        return made

    def hooks(self) -> Any:
        return torch.autograd.graph.saved_tensors_hooks(self._pack, self._unpack)

    def shown(self, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        """For _operators.shown_to, around backward: notes the regions that its operators read."""
        for tensor in _operators.tensors_in([*args, *kwargs.values()]):
            region = self._regions.get(storage_key(tensor)) if type(tensor) in _tensors.PLAIN_TYPES and tensor.layout == torch.strided else None
            if region is not None and region.name not in self.used:
                self.reread[region.name] = None

    def end(self, used: Sequence[str]) -> None:
        """Call this after forward. Raises if forward saved other tensors than in the first run."""
        self._held.clear()
        left = next(self._next, None)
        if left is not None or list(self.used) != list(used):
            raise errors.NotRecordable(f"it saves other tensors for backward at its second call: {len(self.filled)} of {len(self.memory)}, and "
                                       f"{list(self.used)} after {list(used)}")

    def _pack(self, tensor: torch.Tensor) -> Any:
        number, self._count = self._count, self._count + 1
        if tensor.device.type != _tensors.DEVICE_TYPE:  # a number that kernels get as a parameter
            own = tensor.detach() if tensor.requires_grad else tensor
            if self._makes and own.numel() <= _MOST_OF_HOST:
                self.of_host[number] = len(self.memory)
                self.memory.append(own.reshape(-1).to(self._device))
            return own
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
                return _CallTensor(own, own._version, region.name)
            if number in self.of_host:
                return self._of_host(own, self.of_host[number])
            return self._copied(own)

    def _of_host(self, own: torch.Tensor, index: int) -> _CopiedTensor:
        """Saves the seed or the offset of an attention kernel. It is a host tensor in an eager run, but on the device in a capture. If
        nothing is drawn, it was never written there, so zero is saved."""
        flat = self.memory[index]
        if (flat.dtype, flat.numel()) != (own.dtype, own.numel()):
            raise errors.NotRecordable(f"it saves another tensor for backward at its second call: {_tensors.described(own)}")
        flat.copy_(own.reshape(-1)) if self._draws else flat.zero_()
        self.filled.append(index)
        return _CopiedTensor(index, tuple(own.size()), _contiguous(own.size()), tuple(own.size()))

    def _unpack(self, saved: Any) -> torch.Tensor:
        if isinstance(saved, _CallTensor):
            if saved.tensor._version != saved.version:
                raise errors.NotRecordable(f"{saved.region} is needed for backward, and was written after it was saved: clone() it before")
            return saved.tensor
        if isinstance(saved, _CopiedTensor):
            flat = self.memory[saved.index]
            return flat.as_strided(saved.sizes, saved.strides, flat.storage_offset()).expand(saved.whole)
        return saved  # type: ignore[no-any-return]

    def _copied(self, own: torch.Tensor) -> _CopiedTensor:
        base = own
        for dimension, (size, stride) in enumerate(zip(own.size(), own.stride())):
            if stride == 0 and size > 1:
                base = base.narrow(dimension, 0, 1)
        # A tensor that several operators save, possibly in different shapes, is copied once.
        is_dense = _is_dense(base)
        shape: Any = base.numel() if is_dense else (tuple(base.size()), tuple(base.stride()))
        key = (storage_key(own), own.storage_offset(), own.dtype, own._version, shape)
        known = self._seen.get(key)
        index = known[1] if known is not None and not known[0].expired() else self._add(key, own, base, is_dense)
        strides = tuple(base.stride()) if is_dense else _contiguous(base.size())
        return _CopiedTensor(index, tuple(base.size()), strides, tuple(own.size()))

    def _add(self, key: Any, own: torch.Tensor, base: torch.Tensor, is_dense: bool) -> int:
        flat = base.as_strided((base.numel(),), (1,), base.storage_offset()) if is_dense else base.reshape(-1)
        if self._makes:
            index = len(self.memory)
            self.memory.append(torch.empty_like(flat))
        else:
            index = next(self._next, -1)
            if index < 0 or (self.memory[index].dtype, self.memory[index].size()) != (flat.dtype, flat.size()):
                raise errors.NotRecordable(f"it saves another tensor for backward at its second call: {_tensors.described(flat)}")
            if own.untyped_storage().nbytes() <= _MOST_HELD:
                self._held.append(own)
        # Numbers of this type are only generator states. If nothing is drawn, they were never written, so zero is saved.
        self.memory[index].zero_() if own.dtype == torch.uint64 and not self._draws else self.memory[index].copy_(flat)
        self.filled.append(index)
        self._seen[key] = (StorageWeakRef(own.untyped_storage()), index)
        return index


def _is_dense(tensor: torch.Tensor) -> bool:
    """Whether the tensor's elements fill a range without gaps, in some order of dimensions."""
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
