"""Whether tensors look as they did: what guards say of them, but for where they are."""
from __future__ import annotations

import operator
from typing import Any, Iterable

import torch

from .. import _objects
from . import _tensors

_REQUIRES_GRAD = operator.attrgetter("requires_grad")


class Looks:
    """Of tensors as they are now. One thread at a time."""

    def __init__(self, tensors: Iterable[torch.Tensor]) -> None:
        self._tensors = list(tensors)
        self._held, self._besides = self._look(), self._look_beside_dlpack()
        self._with_grad = [one for one in self._tensors if one.requires_grad]
        self._without_grad = [one for one in self._tensors if not one.requires_grad]
        self._possibly_lazy = [one for one in self._tensors if _tensors.can_be_lazy(one)]
        self._there: _objects.Tensors | None = None  # of when they last looked so

    def are_same(self) -> bool:
        """They look so. Natively where they also are where they were."""
        if self._there is not None and self._there.are_there() and self._look_beside_dlpack() == self._besides:
            return True
        if self._look() != self._held:
            return False
        self._there = _natively(self._tensors)
        return True

    def are_there(self, natively: _objects.Tensors) -> bool:
        """`natively`, which was made when they looked so, says the same, and that they are where they were then. For a later call, which is
        launched with the addresses of the one before: which storage an address belongs to is not asked."""
        return natively.are_there() and (not self._with_grad or all(map(_REQUIRES_GRAD, self._with_grad))) \
            and not (self._without_grad and any(map(_REQUIRES_GRAD, self._without_grad))) \
            and not (self._possibly_lazy and any(map(_tensors.is_lazy, self._possibly_lazy)))

    def _look(self) -> list[Any]:
        return [(_tensors.layout_of(one), one.device) for one in self._tensors]

    def _look_beside_dlpack(self) -> list[Any]:
        """What DLPack does not say of a tensor: two storages may have one address in common."""
        return [(type(one), one.storage_offset(), one.requires_grad, one.is_conj(), one.is_neg()) for one in self._tensors]


def _natively(tensors: list[torch.Tensor]) -> _objects.Tensors | None:
    """None where DLPack cannot say it."""
    exchange = _objects.exchange_of(torch.Tensor)
    if exchange is None:
        return None
    try:
        return _objects.Tensors(exchange, tensors, {}, 0)
    except Exception:  # PyTorch's own, of a tensor that DLPack has no type for
        return None
