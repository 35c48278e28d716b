"""Makes the same call on other memory: a deep copy of module and arguments, with all tensors on shadows. Tensors in closures and globals
cannot be copied; they themselves are moved to shadows during a capture."""
from __future__ import annotations

import contextlib
import copy
import dataclasses
import types
from typing import Any, Iterator, Mapping, Sequence

import torch

from warmgraph import errors
from warmgraph.torch.read import _tensor_subclasses, _tensors
from warmgraph.torch.read._tensor_readers import TensorPlace
from warmgraph.torch.replay import _moved_tensors
from warmgraph.torch.replay._regions import Region, storage_key


def leaf_on(storage: Any, tensor: torch.Tensor) -> torch.Tensor:
    """A new leaf tensor like `tensor` on another storage of the same size."""
    like = _tensors.view_of(storage, tensor.dtype, _tensors.start_in_storage(tensor), tensor.size(), tensor.stride(), tensor.device)
    if isinstance(tensor, torch.nn.Parameter):
        made: torch.Tensor = torch.nn.Parameter(like, requires_grad=tensor.requires_grad)
    else:
        made = like.requires_grad_(tensor.requires_grad) if tensor.is_leaf and tensor.requires_grad else like
    made.__dict__.update(tensor.__dict__)
    return made


class MovedTensors:
    """The tensors of all places, on other storages. `of(tensor)` returns the tensor that replaces the original one."""

    def __init__(self, places: Sequence[TensorPlace], storages: dict[int, Any], objects: Mapping[str, Any] = types.MappingProxyType({})) -> None:
        """objects: the call's objects by path; among them are tensors that consist of others."""
        self._leaves: dict[int, torch.Tensor] = {}
        self._keep = list(places)
        for place in places:
            if id(place.tensor) not in self._leaves and place.tensor.numel():
                self._leaves[id(place.tensor)] = leaf_on(storages[storage_key(place.tensor)], place.tensor)
        for path, one in objects.items():
            if _tensor_subclasses.has_parts(one):
                self._make(path, one)

    def _make(self, path: str, tensor: torch.Tensor) -> torch.Tensor:
        if _tensor_subclasses.has_parts(tensor) and id(tensor) not in self._leaves:
            self._leaves[id(tensor)] = _tensor_subclasses.of_other_parts(path, tensor, lambda part: self._make(path, part))
        return self.of(tensor)

    def of(self, tensor: torch.Tensor) -> torch.Tensor:
        return self._leaves.get(id(tensor), tensor)

    def memo(self) -> dict[int, Any]:
        """A memo for copy.deepcopy, which makes it use the moved tensors."""
        return dict(self._leaves)

    def region(self, region: Region) -> Region:
        places = [TensorPlace(place.path, self.of(place.tensor), place.via) for place in region.places]
        return dataclasses.replace(region, places=places)


def copied(value: Any, moved: MovedTensors, shared: Sequence[Any]) -> tuple[Any, dict[int, Any]]:
    """Returns a deep copy in which the tensors are moved, and the copy of each object by the object's id. `shared` objects are not copied."""
    memo = moved.memo()
    for one in shared:
        memo[id(one)] = one
    try:
        made = copy.deepcopy(value, memo)
        _keep_order_of_sets(memo)
        return made, memo
    except Exception as error:
        raise errors.NotRecordable(f"the module or an argument cannot be copied, which the second capture needs: "
                                   f"{type(error).__name__}: {error}") from error


def _keep_order_of_sets(memo: dict[int, Any]) -> None:
    """Lets copied sets have the order of the originals: deepcopy inserts the elements anew, and a function that goes through a set would call
    its operators in another order."""
    for one in memo.get(id(memo), ()):  # the objects that deepcopy has copied
        other = memo.get(id(one)) if type(one) is set else None
        if other is not None and other == one and list(other) != list(one):
            other.clear()
            other.update(one)


@contextlib.contextmanager
def swapped(tensors: Sequence[torch.Tensor], moved: MovedTensors) -> Iterator[None]:
    """Moves these tensors themselves to their other storages inside the block, for code that uses these tensors and not copies. Calls of
    other threads wait; other uses of the tensors in between are not permitted."""
    if not tensors:
        yield
        return
    with _moved_tensors.moving():
        before: list[tuple[torch.Tensor, torch.Tensor]] = []
        try:
            with torch.no_grad():
                for tensor in tensors:
                    own = tensor.data
                    tensor.data = moved.of(tensor).data
                    before.append((tensor, own))
            yield
        finally:
            with torch.no_grad(), contextlib.ExitStack() as restored:  # the stack restores all tensors, even if restoring one fails
                for tensor, own in before:
                    restored.callback(setattr, tensor, "data", own)
