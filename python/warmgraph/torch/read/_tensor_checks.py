"""Checks whether tensors are unchanged in the properties that guards compare, except their addresses."""
from __future__ import annotations

from typing import Any, Iterable

import torch

from warmgraph.reading import _native_snapshots
from warmgraph.torch.read import _tensors


class TensorChecks:
    """The tensors' state at construction. Use from one thread at a time."""

    def __init__(self, tensors: Iterable[torch.Tensor]) -> None:
        self._tensors = list(tensors)
        self._held = self._look()
        self._there: _native_snapshots.Tensors | None = None  # a native snapshot from the last time they were the same
        self._besides: list[Any] = []  # their properties outside DLPack at that time

    def are_same(self) -> bool:
        """Whether they are the same. Checked natively if their addresses are also the same."""
        if self._there is not None and self._there.are_there() and self._look_beside_dlpack() == self._besides:
            return True
        if self._look() != self._held:
            return False
        self._there, self._besides = _natively(self._tensors), self._look_beside_dlpack()
        return True

    def _look(self) -> list[Any]:
        return [(_tensors.layout_of(one), one.device) for one in self._tensors]

    def _look_beside_dlpack(self) -> list[Any]:
        """The properties outside DLPack; e.g. two storages may have the same address."""
        return [(type(one), one.storage_offset(), one.requires_grad, one.is_conj(), one.is_neg()) for one in self._tensors]


def _natively(tensors: list[torch.Tensor]) -> _native_snapshots.Tensors | None:
    """None when DLPack cannot describe them."""
    exchange = _native_snapshots.exchange_of(torch.Tensor)
    if exchange is None:
        return None
    try:
        return _native_snapshots.Tensors(exchange, tensors)
    except Exception:  # PyTorch's error for a tensor whose type DLPack lacks
        return None
