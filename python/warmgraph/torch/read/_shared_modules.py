"""Reads modules that many functions use (a table's graphs close over one model) only once: a walk's findings are added to the following
walks while all objects in them are unchanged."""
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
    """The result of walking one module alone. It holds the module, but nothing of the function for which it was read."""

    def __init__(self, walker: Walker, path: str, module: torch.nn.Module, packages: dict[str, None]) -> None:
        self.path = path
        self.packages, self._module, self._open = packages, module, list(walker.opened)
        self.facts, self.objects, self.places, self.watched = walker.found.facts, walker.objects, walker.places, walker.watched
        self.classes, self.functions, self.compiled_via = walker.classes, walker.functions, walker.compiled_via
        self.read, self.tensors, self.watched_classes = walker.read, walker.arrays, walker.watched_classes
        self.ids = self.read.keys() | self.tensors.keys()
        self.is_whole = not (walker.found.programs or walker.found.devices)  # the part has everything that the walk found
        self._held = _identity_checks.Held([*self.watched, *self.watched_classes.values()])
        self._looks = TensorChecks(one.tensor for one in self.places)
        # For _regions.py: (addresses and sizes of their storages, the regions, their ids), and the regions' facts.
        self.regions: tuple[Any, list[Any], frozenset[int]] | None = None
        self.memory: dict[str, str] | None = None
        # For _fact_lists.py: (the facts of the part and its regions, their texts, the facts as a list).
        self.listed: tuple[dict[str, str], list[str], str] | None = None

    def is_same(self, opened: list[int]) -> bool:
        """Whether the part is still valid. opened: ids of the objects around it."""
        return self._open == opened and self._held.is_same() and self._looks.are_same()


class SharedModules:
    """The modules that one table's functions share, while a walk that used them lives. Use from one thread at a time."""

    def __init__(self) -> None:
        # By path, module, and the attributes that the code names, which decide what is read.
        self._parts: weakref.WeakValueDictionary[tuple[str, int, frozenset[str]], ModulePart] = weakref.WeakValueDictionary()
        self._entangled: set[tuple[str, int]] = set()  # modules that share objects with their surroundings, or that could not be read
        # By a function's code: the classes that it found, and the code that it reached if other functions can use it.
        self._met: weakref.WeakKeyDictionary[types.CodeType, tuple[dict[type, bool], weakref.ref[_reached_code.Around] | None]] = weakref.WeakKeyDictionary()

    def met(self, reached: _installed_code.TorchReached) -> dict[type, bool] | None:
        """The classes that the last function with this code found, as a guess for this one. Also lets `reached` take over the reached code."""
        found = self._met.get(reached.code) if reached.code is not None else None
        if found is None:
            return None
        classes, around = found[0], found[1]() if found[1] is not None else None
        if around is not None and not reached.take_over(around, classes):
            self._met[around.code] = classes, None  # read again for the next one
        return classes

    def note(self, reached: _installed_code.TorchReached, walker: Walker) -> None:
        """reached: includes the walk's findings."""
        code = reached.code
        if code is None:
            return
        classes, held = self._met.get(code, ({}, None))
        walker.around = held() if held is not None else None
        if walker.around is None or list(classes.items()) != list(walker.classes.items()):
            walker.around = None if walker.functions else reached.around()
            self._met[code] = walker.classes, weakref.ref(walker.around) if walker.around is not None else None

    def read(self, walker: Walker, path: str, module: torch.nn.Module) -> None:
        """Reads a module with the same result as `walker`."""
        place = (path, id(module))
        if place not in self._entangled:
            key = (*place, frozenset(walker.reached.names))
            part = self._parts.get(key)
            if part is None or not part.is_same(walker.opened):
                try:
                    part = self._parts[key] = _read_apart(walker, path, module)
                except errors.NotRecordable:  # the walk reads it itself, raises the error, and keeps its findings before it
                    part = None
            if part is not None and _take(walker, part):
                walker.reached.packages.update(part.packages)
                return
            self._entangled.add(place)
        read_module(walker, path, module)


def _read_apart(walker: Walker, path: str, module: torch.nn.Module) -> ModulePart:
    """Reads the module by its own empty walk."""
    with walker.reached.noted() as packages:
        one = Walker(walker.reached, TORCH)
        one.is_around, one.opened = True, list(walker.opened)
        one.stored, one.values_of_classes, one.known_classes = walker.stored, walker.values_of_classes, walker.known_classes
        read_module(one, path, module)
        return ModulePart(one, path, module, packages)


def _take(walker: Walker, part: ModulePart) -> bool:
    """Adds a part to the walk, as if the walk had read it. Returns False when both found the same object, because its first path counts."""
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
