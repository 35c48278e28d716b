"""The gradients of parameters that an optimizer updates. A backward pass may make new ones before each call (zero_grad() drops the old
ones), so they are found anew at each use, and nothing here keeps them alive."""
from __future__ import annotations

import dataclasses
from typing import Any, Iterable, Sequence

import torch

from warmgraph import errors
from warmgraph.torch.read import _tensors
from warmgraph.torch.read._optimizers import OptimizerFound
from warmgraph.torch.read._tensor_readers import TensorPlace
from warmgraph.torch.replay._regions import Region


class CurrentGradient(TensorPlace):
    """The place of a gradient. `tensor` is the one that the parameter has now."""

    __slots__ = ()

    def __init__(self, place: TensorPlace) -> None:
        assert place.parameter is not None
        self.path, self.via, self.parameter, self.is_optimized = place.path, place.via, place.parameter, True

    @property
    def tensor(self) -> torch.Tensor:  # type: ignore[override]
        assert self.parameter is not None
        found = self.parameter.grad
        if found is None:
            raise errors.NotRecordable(f"{self.path} was removed during the call")
        return found


def current(places: Iterable[TensorPlace]) -> list[TensorPlace]:
    """The places, with CurrentGradient for gradients."""
    return [one if one.parameter is None else CurrentGradient(one) for one in places]


def current_regions(regions: Sequence[Region]) -> list[Region]:
    """The regions, with CurrentGradient for gradients."""
    return [dataclasses.replace(one, places=current(one.places)) if any(place.parameter is not None for place in one.places) else one
            for one in regions]


class GradientChecks:
    """Checks whether the gradients are like those that were found, except their addresses."""

    def __init__(self, found: Sequence[OptimizerFound]) -> None:
        self._missing = [parameter for one in found for parameter in one.missing]
        self._there: list[tuple[Any, Any]] = [(place.parameter, _look(place.tensor)) for one in found for place in one.places]
        self._is_apart = all(one.is_apart for one in found)

    def are_alike(self) -> bool:
        return self._is_apart and all(one.grad is None for one in self._missing) and all(
            (gradient := one.grad) is not None and _look(gradient) == held for one, held in self._there)


def _look(gradient: torch.Tensor) -> tuple[Any, ...]:
    return *_tensors.layout_of(gradient), gradient.device, gradient.layout
