"""A call with PyTorch's tensors after it was read, and its surroundings."""
from __future__ import annotations

import ctypes
import dataclasses
import itertools
from typing import Any, Mapping, Sequence

import torch

from warmgraph import errors
from warmgraph.calls import _steady_calls
from warmgraph.reading import _identity_checks, _native_snapshots
from warmgraph.reading._walker import ArgumentFacts, Walker
from warmgraph.torch.read import _installed_code, _native_tensors, _tensors
from warmgraph.torch.read._tensor_checks import TensorChecks
from warmgraph.torch.read._tensor_readers import TensorPlace
from warmgraph.torch.replay import _gradients, _regions
from warmgraph.torch.replay._regions import Region

_serials = itertools.count()


class NotSteady(Exception):
    """Calls like this one must be read each time."""


class Surroundings:
    """The values around a call: the contents of its object, the closures and the globals. They are read once, and checked before each use."""

    def __init__(self, walker: Walker, reached: _installed_code.TorchReachedCode, regions: Sequence[Region]) -> None:
        """`regions`: the regions of the whole walk."""
        self.serial, self.reached = next(_serials), reached
        self._kept: list[Any] = []  # the storages that are kept alive, once the weights are frozen
        self._is_frozen = ctypes.c_int32()
        self.places = _gradients.current(place for place in walker.places if place.via != "argument")
        self.objects = dict(itertools.islice(walker.objects.items(), walker.first_around, None))
        self._remember(walker, regions)

    def _remember(self, walker: Walker, regions: Sequence[Region]) -> None:
        """Keeps what later checks compare."""
        self.ids = {id(value) for value in self.objects.values()}
        self._held = _identity_checks.WatchedState(walker.watched, self.reached)
        self._looks = TensorChecks(one.tensor for one in self.places if one.parameter is None)
        self._gradients = _gradients.GradientChecks(walker.optimizers) if walker.optimizers else None
        states = _gradients.current_regions([one for one in regions if one.is_state])
        shared = any(place.via == "argument" for one in states for place in one.places)
        self.regions = _regions.regions_of(self.places) if shared else states

    def stands_for(self, other: Surroundings) -> bool:
        """Whether a new reading gave the same surroundings. Then the known calls stay valid."""
        return self.reached is other.reached and self.is_same() and self.objects.keys() == other.objects.keys() and self.ids == other.ids \
            and [(one.path, id(one.tensor)) for one in self.places] == [(one.path, id(one.tensor)) for one in other.places]

    def is_same(self) -> bool:
        return (self._gradients is None or self._gradients.are_alike()) and (self._kept != [] or self._held.is_same() and self._looks.are_same())

    def looks(self, always: _native_snapshots.Snapshot, addresses: Mapping[int, int]) -> _steady_calls.StateChecks:
        """The checks for a later call, with the tensors' addresses. `always`: checks that remain when the weights are frozen. `addresses`:
        the tensors' addresses in the replayed call, by id."""
        if self._gradients is not None:  # their addresses change
            raise NotSteady
        if self._kept:
            return _steady_calls.StateChecks(always, self._is_frozen, _native_snapshots.Snapshot(), [], [])
        found = self._held.looks()
        if found is None:
            raise NotSteady
        weights = [_steady_calls.Weight(one.tensor, _tensors.can_be_lazy(one.tensor), _native_tensors.near(one.tensor), addresses.get(id(one.tensor)))
                   for one in self.places]
        return _steady_calls.StateChecks(always, self._is_frozen, *found, weights)

    def freeze(self) -> None:
        """Freezes the weights: from now on nothing here is checked for changes."""
        self._kept = [self, *(one.storage for one in self.regions)]
        self._is_frozen.value = 1

    def storages(self) -> list[int]:
        return [one.places[0].tensor.untyped_storage().data_ptr() for one in self.regions]

    def are_storages_apart(self) -> bool:
        """Whether each region is still alone in its storage, and the storage still has the same size."""
        return all(len(one.places) == 1 or len({_regions.storage_key(place.tensor) for place in one.places}) == 1 for one in self.regions) \
            and all(one.storage.nbytes() == one.whole for one in self.regions)


@dataclasses.dataclass
class TorchCall:
    """One call after it was read. `walker` is the walk of the whole call, or only of its arguments if nothing else has changed."""

    arguments: dict[str, Any]
    owner: Any
    walker: Walker
    around: Surroundings
    regions: list[Region]
    device: torch.device
    modes: tuple[Any, ...]
    of_arguments: ArgumentFacts | Walker  # the results of reading the arguments alone

    @property
    def places(self) -> list[TensorPlace]:
        return [place for place in self.walker.places if place.via == "argument"] + self.around.places

    @property
    def inputs(self) -> list[Region]:
        return [one for one in self.regions if not one.is_state]

    @property
    def states(self) -> list[Region]:
        return [one for one in self.regions if one.is_state]

    def objects(self) -> dict[str, Any]:
        return {**self.around.objects, **self.walker.objects}

    def object(self, path: str) -> Any:
        found = self.walker.objects.get(path, self)
        return found if found is not self else self.around.objects[path]


def common_device(places: Sequence[TensorPlace]) -> torch.device:
    found: torch.device | None = None
    for place in places:
        if found is None:
            found = place.tensor.device
        elif place.tensor.device != found:
            raise errors.NotRecordable(f"{place.path} lies on {place.tensor.device}, but {places[0].path} on {found}: one graph runs on one device")
    if found is None:
        raise errors.NotRecordable("no tensor on a CUDA device is among its arguments, in its object, or in its closure")
    return found
