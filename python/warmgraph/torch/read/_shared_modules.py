"""Reads a module only once when many functions use it (a table's graphs close over one model). The findings of one walk are added to later
walks, as long as all objects in the findings are unchanged."""
from __future__ import annotations

import types
import weakref
from typing import Any

import torch

from warmgraph import errors
from warmgraph.reading import _identity_checks, _reached_code
from warmgraph.reading._walker import Walker
from warmgraph.torch.read import _installed_code
from warmgraph.torch.read._module_readers import TORCH, read_module
from warmgraph.torch.read._tensor_checks import TensorChecks


class ModulePart:
    """The result of walking one module alone. It keeps the module alive, but nothing of the function for which it was read."""

    def __init__(self, walker: Walker, path: str, module: torch.nn.Module, packages: dict[str, None]) -> None:
        self.path = path
        self.packages, self._module, self._open = packages, module, list(walker.opened)
        self.facts, self.objects, self.places, self.watched = walker.found.facts, walker.objects, walker.places, walker.watched
        self.classes, self.functions, self.compiled_via = walker.classes, walker.functions, walker.compiled_via
        self.read, self.tensors, self.watched_classes = walker.read, walker.arrays, walker.watched_classes
        self.ids = self.read.keys() | self.tensors.keys()
        # Whether this part has everything that the walk found, and its tensors are only replaced in watched dictionaries.
        self.is_whole = not (walker.found.programs or walker.found.devices or walker.optimizers)
        self._held = _identity_checks.WatchedState([*self.watched, *self.watched_classes.values()])
        self._looks = TensorChecks(one.tensor for one in self.places)
        # Set by _regions.py: (addresses and sizes of the tensors' storages, the regions, their ids). `memory` has the regions' facts.
        self.regions: tuple[Any, list[Any], frozenset[int]] | None = None
        self.memory: dict[str, str] | None = None
        # Set by _fact_lists.py: (the facts of the part and its regions, their texts, the facts as a list).
        self.listed: tuple[dict[str, str], list[str], str] | None = None

    def is_same(self, opened: list[int]) -> bool:
        """Whether the part is still valid. opened: ids of the objects that contain the module."""
        return self._open == opened and self._held.is_same() and self._looks.are_same()


class SharedModules:
    """The modules that the functions of one table share. A module's findings stay here while a walk that used them lives. Use from one
    thread at a time."""

    def __init__(self) -> None:
        # The key is the path, the module, and the attribute names in the code, which decide what is read.
        self._parts: weakref.WeakValueDictionary[tuple[str, int, frozenset[str]], ModulePart] = weakref.WeakValueDictionary()
        self._entangled: set[tuple[str, int]] = set()  # modules that share objects with their surroundings, or that could not be read alone
        # By a function's code: the classes that it found, and the code that it reached, if other functions can use that code.
        self._met: weakref.WeakKeyDictionary[types.CodeType, tuple[dict[type, bool], weakref.ref[_reached_code.SurroundingCode] | None]] = weakref.WeakKeyDictionary()

    def met(self, reached: _installed_code.TorchReachedCode) -> dict[type, bool] | None:
        """The classes that the last function with this code found; `reached` will probably find the same. Also lets `reached` use the code
        that this function reached."""
        found = self._met.get(reached.code) if reached.code is not None else None
        if found is None:
            return None
        classes, around = found[0], found[1]() if found[1] is not None else None
        if around is not None and not reached.take_over(around, classes):
            self._met[around.code] = classes, None  # `reached` cannot use this code, so the next function reads its own
        return classes

    def note(self, reached: _installed_code.TorchReachedCode, walker: Walker) -> None:
        """Keeps the walk's classes and code for the next function with the same code. reached: includes the walk's findings."""
        code = reached.code
        if code is None:
            return
        classes, held = self._met.get(code, ({}, None))
        walker.around = held() if held is not None else None
        if walker.around is None or list(classes.items()) != list(walker.classes.items()):
            walker.around = None if walker.functions else reached.around()
            self._met[code] = walker.classes, weakref.ref(walker.around) if walker.around is not None else None

    def read(self, walker: Walker, path: str, module: torch.nn.Module) -> None:
        """Reads a module. The walk's result is the same as without sharing."""
        place = (path, id(module))
        if place not in self._entangled:
            key = (*place, frozenset(walker.reached.names))
            part = self._parts.get(key)
            if part is None or not part.is_same(walker.opened):
                try:
                    part = self._parts[key] = _read_apart(walker, path, module)
                except errors.NotRecordable:  # read_module() below raises the error again, and keeps the findings before it
                    part = None
            if part is not None and _take(walker, part):
                walker.reached.packages.update(part.packages)
                return
            self._entangled.add(place)
        read_module(walker, path, module)


def _read_apart(walker: Walker, path: str, module: torch.nn.Module) -> ModulePart:
    """Reads the module in a separate, empty walk."""
    with walker.reached.noted() as packages:
        one = Walker(walker.reached, TORCH)
        one.is_around, one.opened = True, list(walker.opened)
        one.stored, one.values_of_classes, one.known_classes = walker.stored, walker.values_of_classes, walker.known_classes
        read_module(one, path, module)
        return ModulePart(one, path, module, packages)


def _take(walker: Walker, part: ModulePart) -> bool:
    """Adds a part to the walk, as if the walk had read it. Returns False when the part and the walk found the same object: this object must
    keep its first path."""
    if not (part.is_whole and part.ids.isdisjoint(walker.read) and part.ids.isdisjoint(walker.arrays)):
        return False
    walker.parts.append(part)
    walker.taken.append((len(walker.places), part))
    kept: tuple[tuple[dict[Any, Any], dict[Any, Any]], ...] = (
        (walker.found.facts, part.facts), (walker.objects, part.objects), (walker.read, part.read), (walker.arrays, part.tensors),
        (walker.functions, part.functions))
    for held, more in kept:
        held.update(more)
    walker.places += part.places
    walker.watched += part.watched
    walker.compiled_via |= part.compiled_via
    for kind, is_constructed in part.classes.items():
        walker.classes[kind] = is_constructed or walker.classes.get(kind, False)
    for one, watched in part.watched_classes.items():
        walker.watched_classes.setdefault(one, watched)
    return True
