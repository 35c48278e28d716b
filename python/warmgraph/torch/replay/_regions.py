"""Finds the memory ranges of a call. There is one range for each argument with its own memory, one for all arguments that share a storage,
and one for the storage of a state."""
from __future__ import annotations

import dataclasses
import re
from typing import Any, Sequence

import torch

from warmgraph.reading._walker import Walker
from warmgraph.torch.read import _tensors
from warmgraph.torch.read._shared_modules import ModulePart
from warmgraph.torch.read._tensor_readers import TensorPlace
from warmgraph.torch.replay import _entry

MEMORY = "memory."  # the names of facts about regions begin with this
_LONGEST_NAME = 100
# Names of this form are used without a change.
_PLAIN_NAME = re.compile(rf"(?!result|generator|pair)(?=.{{1,{_LONGEST_NAME}}}$)[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_NOT_OF_A_NAME = re.compile(r"[^A-Za-z0-9._-]+")
# Names that the library uses for outputs, for a generator's words, and for tensors between the halves of a pair.
_OURS = re.compile(r"result\d+|generator\.(seed|offset)|pair\.(saved|grad|gradient)\d+")


@dataclasses.dataclass(slots=True)
class Region:
    """A memory range that is declared to the library. `sizes` and `strides` are in elements; `start` is its offset in the storage, in
    bytes. `made_at`: its address when this object was made."""

    name: str
    is_state: bool
    whole: int  # size of the whole storage in bytes
    start: int
    nbytes: int
    dtype: str
    sizes: tuple[int, ...]
    strides: tuple[int, ...] | None
    places: list[TensorPlace]
    made_at: int
    is_written: bool = True
    is_storage: bool = False  # whether a single tensor covers the whole storage
    _decl: _entry.Decl | None = dataclasses.field(default=None, init=False, repr=False, compare=False)  # made once, like _facts
    _facts: dict[str, str] | None = dataclasses.field(default=None, init=False, repr=False, compare=False)

    @property
    def storage(self) -> Any:
        """The tensors' current storage. A region does not keep old memory alive."""
        return self.places[0].tensor.untyped_storage()

    @property
    def pointer(self) -> int:
        return int(self.storage.data_ptr()) + self.start

    def decl(self) -> _entry.Decl:
        """The declaration with the address `made_at`. Use it at once, before the memory can move."""
        if self._decl is None:
            self._decl = _entry.Decl(self.name, self.dtype, self.sizes, self.strides, self.made_at, self.nbytes, self.is_written)
        return self._decl.with_access(self.is_written)

    def facts(self) -> dict[str, str]:
        """Guards: the position of each tensor in the range. They show which tensors share memory."""
        if self._facts is None:
            self._facts = self._made_facts()
        return self._facts

    def _made_facts(self) -> dict[str, str]:
        start, text = self.start, f"{self.name} {'state' if self.is_state else 'input'} {self.nbytes} bytes + "
        if self.is_storage:
            return {f"{MEMORY}{self.places[0].path}": f"{text}0"}
        return {f"{MEMORY}{place.path}": f"{text}{_tensors.start_in_storage(place.tensor) - start}" for place in self.places}


def storage_key(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage().data_ptr())


def regions_of(places: Sequence[TensorPlace]) -> list[Region]:
    """The regions of the places: first the inputs, then the states, each in the order of the places. Empty tensors have no region."""
    groups: _Groups = {}
    _group(groups, places)
    names: set[str] = set()
    return _inputs_first([_region(names, key, *group) for key, group in groups.items()])


def regions_of_walk(walker: Walker) -> list[Region]:
    """The same as regions_of(walker.places). Regions of parts from other walks are made only once, because all graphs of a table use one
    model."""
    if not walker.taken:
        return regions_of(walker.places)
    groups: _Groups = {}
    storages: list[int] = []  # addresses of the parts' storages
    in_order: list[list[Region] | list[int]] = []  # the regions of a part, or the storages of tensors between parts
    at = 0
    for first, part in walker.taken:
        in_order.append(_group(groups, walker.places[at:first]))
        regions, keys = _of_part(part)
        in_order.append(regions)
        storages += keys
        at = first + len(part.places)
    in_order.append(_group(groups, walker.places[at:]))
    names: set[str] = set()
    found = [_region(names, one, *groups[one]) if isinstance(one, int) else one for some in in_order for one in some]
    if len({*storages, *groups}) < len(storages) + len(groups) or len({one.name for one in found}) < len(found):
        return regions_of(walker.places)  # two parts share memory or a name, so everything is grouped together
    return _inputs_first(found)


_Groups = dict[int, tuple[Any, list[TensorPlace]]]  # by address: (the storage, the places of tensors in it)


def _group(groups: _Groups, places: Sequence[TensorPlace]) -> list[int]:
    """Groups the places by storage. Returns the addresses of the storages that were not in `groups`."""
    new = []
    for place in places:
        tensor = place.tensor
        if tensor.numel():
            storage = tensor.untyped_storage()
            key = storage.data_ptr()
            group = groups.get(key)
            if group is None:
                groups[key] = storage, [place]
                new.append(key)
            else:
                group[1].append(place)
    return new


def _of_part(part: ModulePart) -> tuple[list[Region], list[int]]:
    """The regions of a part, and the addresses of their storages."""
    storages = [place.tensor.untyped_storage() for place in part.places if place.tensor.numel()]
    now = [(int(one.data_ptr()), one.nbytes()) for one in storages]
    if part.regions is None or part.regions[0] != now:
        regions = regions_of(part.places)
        part.regions, part.memory, part.listed = (now, regions, frozenset(map(id, regions))), None, None
    return part.regions[1], list(dict.fromkeys(key for key, _ in now))


def _inputs_first(found: list[Region]) -> list[Region]:
    return [one for one in found if not one.is_state] + [one for one in found if one.is_state]


def _region(names: set[str], base: int, storage: Any, group: list[TensorPlace]) -> Region:
    state = group[0] if group[0].via != "argument" else next((place for place in group if place.via != "argument"), None)
    whole = storage.nbytes()
    if state is not None:
        return _of_storage(_name(names, state.path), group, state.tensor, whole, base)
    if len(group) == 1 and _tensors.own_type(group[0].tensor.dtype) and group[0].tensor.dim() <= _tensors.MOST_DIMENSIONS:
        tensor = group[0].tensor
        strides, start = None if tensor.is_contiguous() else tuple(tensor.stride()), _tensors.start_in_storage(tensor)
        return Region(_name(names, group[0].path), False, whole, start, _tensors.extent(tensor), _tensors.own_type(tensor.dtype),
                      tuple(tensor.size()), strides, group, base + start)
    first = min(_tensors.start_in_storage(place.tensor) for place in group)
    last = max(_tensors.start_in_storage(place.tensor) + _tensors.extent(place.tensor) for place in group)
    dtype, count = _flat(group, last - first)
    return Region(_name(names, group[0].path), False, whole, first, last - first, dtype, (count,), None, group, base + first)


def _of_storage(name: str, group: list[TensorPlace], tensor: torch.Tensor, nbytes: int, base: int) -> Region:
    own = _tensors.own_type(tensor.dtype)
    if len(group) == 1 and own and tensor.nbytes == nbytes and tensor.is_contiguous() and tensor.dim() <= _tensors.MOST_DIMENSIONS:
        return Region(name, True, nbytes, 0, nbytes, own, tuple(tensor.size()), None, group, base, is_storage=True)  # the usual case
    short, count = _flat(group, nbytes)
    return Region(name, True, nbytes, 0, nbytes, short, (count,), None, group, base)


def _flat(group: list[TensorPlace], nbytes: int) -> tuple[str, int]:
    kinds = {place.tensor.dtype for place in group}
    return _tensors.flat_type(kinds.pop() if len(kinds) == 1 else torch.uint8, nbytes)


def _name(names: set[str], path: str) -> str:
    """A valid name for the region. For a state, it is the name in state_dict()."""
    text = path.removeprefix("self.")
    if "[" in text and not ("[[" in text or "]]" in text or "[]" in text):  # gives the same name as _NOT_OF_A_NAME, in a third of the time
        text = text.replace("][", "_").replace("[", "_").replace("]", "_").strip("._-")
    if text not in names and _PLAIN_NAME.fullmatch(text):  # the usual case
        names.add(text)
        return text
    text = _NOT_OF_A_NAME.sub("_", path.removeprefix("self.")).strip("._-") or "tensor"
    if len(text) > _LONGEST_NAME:
        text = text[-_LONGEST_NAME:].lstrip("._-")
    if _OURS.fullmatch(text):
        text += "_"
    name, count = text, 1
    while name in names:
        count += 1
        name = f"{text}-{count}"
    names.add(name)
    return name


def facts_of(regions: Sequence[Region], parts: Sequence[ModulePart] = ()) -> dict[str, str]:
    """The facts of the regions. parts: the cached facts of a part are used if all its regions are in `regions`."""
    found: dict[str, str] = {}
    ids: set[int] = set(map(id, regions)) if parts else set()
    known: set[int] = set()
    for part in parts:
        if part.regions is None or known & part.regions[2] or not ids >= part.regions[2]:
            continue
        if part.memory is None:
            part.memory = {path: text for region in part.regions[1] for path, text in region.facts().items()}
        known |= part.regions[2]
        found.update(part.memory)
    for region in regions:
        if id(region) not in known:
            found.update(region.facts())
    return found
