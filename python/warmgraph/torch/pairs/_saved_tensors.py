"""What autograd saves for backward: copied, as it is saved, to memory that outlives the capture. Backward reads it there, and nowhere else."""
from __future__ import annotations

import dataclasses
from typing import Any, Iterator, Sequence

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from warmgraph import errors
from warmgraph.torch.read import _tensors
from warmgraph.torch.replay._regions import Region, storage_key


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


_MOST_OF_HOST = 16  # elements of a tensor on the host that may be one on the device in a capture
# Bytes of an original that lives until its capture ends. Where a kernel leaves some of them as they were (attention pads its statistics), they
# stay what they are, and the library keeps them as a constant; of memory that is written again later it cannot.
_MOST_HELD = 1 << 20


class Saver:
    """`with saver.hooks():` around forward; they serve its backward too. The first one runs it eagerly: it makes `memory`, flat tensors that
    the copies go to, and learns what is saved. Those after it (`as_before`) save the same. `used`: regions that were saved, `filled`: places in
    `memory` that were written, each in the order in which they were."""

    def __init__(self, regions: Sequence[Region], device: torch.device, draws: bool) -> None:
        """draws: forward draws random numbers."""
        self._regions = {int(region.storage.data_ptr()): region for region in regions}
        self._device, self._draws = device, draws
        self._makes = True
        self.memory: list[torch.Tensor] = []
        self.of_host: dict[int, int] = {}  # places in `memory` for what lay on the host, by how many were saved before
        self.used: dict[str, None] = {}
        self.filled: list[int] = []
        self._count = 0  # of what autograd saved
        self._next: Iterator[int] = iter(())
        self._seen: dict[Any, tuple[StorageWeakRef, int]] = {}
        self._held: list[torch.Tensor] = []

    def as_before(self, regions: Sequence[Region], memory: Sequence[torch.Tensor]) -> Saver:
        """`memory`: like this one's, for the copies of a capture on these regions."""
        made = Saver(regions, self._device, self._draws)
        made._makes, made.memory, made.of_host = False, list(memory), self.of_host
        spare = set(self.of_host.values())
        made._next = iter([i for i in range(len(memory)) if i not in spare])
        return made

    def hooks(self) -> Any:
        return torch.autograd.graph.saved_tensors_hooks(self._pack, self._unpack)

    def end(self, used: Sequence[str]) -> None:
        """After forward, which saved what it saved before."""
        self._held.clear()
        left = next(self._next, None)
        if left is not None or list(self.used) != list(used):
            raise errors.NotRecordable(f"it saves other tensors for backward at its second call: {len(self.filled)} of {len(self.memory)}, and "
                                       f"{list(self.used)} after {list(used)}")

    def _pack(self, tensor: torch.Tensor) -> Any:
        number, self._count = self._count, self._count + 1
        if tensor.device.type != _tensors.DEVICE_TYPE:  # numbers, which kernels get as parameters
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
                return _Given(own, own._version, region.name)
            if number in self.of_host:
                return self._of_host(own, self.of_host[number])
            return self._copied(own)

    def _of_host(self, own: torch.Tensor, index: int) -> _Copied:
        """Seed and offset of an attention kernel, which lie on the device in a capture. Where nothing is drawn, nobody wrote them."""
        flat = self.memory[index]
        if (flat.dtype, flat.numel()) != (own.dtype, own.numel()):
            raise errors.NotRecordable(f"it saves another tensor for backward at its second call: {_tensors.described(own)}")
        flat.copy_(own.reshape(-1)) if self._draws else flat.zero_()
        self.filled.append(index)
        return _Copied(index, tuple(own.size()), _contiguous(own.size()), tuple(own.size()))

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
        if self._makes:
            index = len(self.memory)
            self.memory.append(torch.empty_like(flat))
        else:
            index = next(self._next, -1)
            if index < 0 or (self.memory[index].dtype, self.memory[index].size()) != (flat.dtype, flat.size()):
                raise errors.NotRecordable(f"it saves another tensor for backward at its second call: {_tensors.described(flat)}")
            if own.untyped_storage().nbytes() <= _MOST_HELD:
                self._held.append(own)
        # Such numbers are states of generators alone; where nothing is drawn, nobody wrote them.
        self.memory[index].zero_() if own.dtype == torch.uint64 and not self._draws else self.memory[index].copy_(flat)
        self.filled.append(index)
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
