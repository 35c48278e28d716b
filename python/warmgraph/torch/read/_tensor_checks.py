"""Checks whether tensors are unchanged in all properties that guards compare, except addresses."""
from __future__ import annotations

from typing import Any, Iterable

import torch

from warmgraph.reading import _native_snapshots
from warmgraph.torch.read import _tensors


class TensorChecks:
    """The state of tensors when this object was made. Use from one thread at a time."""

    def __init__(self, tensors: Iterable[torch.Tensor]) -> None:
        self._tensors = list(tensors)
        self._held = self._look()
        self._there: _native_snapshots.Tensors | None = None  # a native snapshot, made when the tensors were last found to be the same
        self._besides: list[Any] = []  # the tensors' properties that DLPack does not show, from that time

    def are_same(self) -> bool:
        """Whether the tensors are the same. The check is native, and faster, if their addresses are also the same."""
        if self._there is not None and self._there.are_there() and self._look_beside_dlpack() == self._besides:
            return True
        if self._look() != self._held:
            return False
        self._there, self._besides = _natively(self._tensors), self._look_beside_dlpack()
        return True

    def _look(self) -> list[Any]:
        return [(_tensors.layout_of(one), one.device) for one in self._tensors]

    def _look_beside_dlpack(self) -> list[Any]:
        """The properties that DLPack does not show; e.g. two storages may have the same address."""
        return [(type(one), one.storage_offset(), one.requires_grad, one.is_conj(), one.is_neg()) for one in self._tensors]


def _natively(tensors: list[torch.Tensor]) -> _native_snapshots.Tensors | None:
    """A native snapshot. None when DLPack cannot describe the tensors."""
    exchange = _native_snapshots.exchange_of(torch.Tensor)
    if exchange is None:
        return None
    try:
        return _native_snapshots.Tensors(exchange, tensors)
    except Exception:  # PyTorch raises an error for a tensor whose type DLPack lacks
        return None
