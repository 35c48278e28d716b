"""Whether tensors look as they did: what guards say of them, but for where they are."""
from __future__ import annotations

from typing import Any, Iterable

import torch

from warmgraph.reading import _native_snapshots
from warmgraph.torch.read import _tensors


class TensorChecks:
    """Of tensors as they are now. One thread at a time."""

    def __init__(self, tensors: Iterable[torch.Tensor]) -> None:
        self._tensors = list(tensors)
        self._held = self._look()
        self._there: _native_snapshots.Tensors | None = None  # of when they last looked so
        self._besides: list[Any] = []  # what DLPack does not say of them then

    def are_same(self) -> bool:
        """They look so. Natively where they also are where they were."""
        if self._there is not None and self._there.are_there() and self._look_beside_dlpack() == self._besides:
            return True
        if self._look() != self._held:
            return False
        self._there, self._besides = _natively(self._tensors), self._look_beside_dlpack()
        return True

    def _look(self) -> list[Any]:
        return [(_tensors.layout_of(one), one.device) for one in self._tensors]

    def _look_beside_dlpack(self) -> list[Any]:
        """What DLPack does not say of a tensor: two storages may have one address in common."""
        return [(type(one), one.storage_offset(), one.requires_grad, one.is_conj(), one.is_neg()) for one in self._tensors]


def _natively(tensors: list[torch.Tensor]) -> _native_snapshots.Tensors | None:
    """None where DLPack cannot say it."""
    exchange = _native_snapshots.exchange_of(torch.Tensor)
    if exchange is None:
        return None
    try:
        return _native_snapshots.Tensors(exchange, tensors)
    except Exception:  # PyTorch's own, of a tensor that DLPack has no type for
        return None
