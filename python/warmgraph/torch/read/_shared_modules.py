"""Modules that many functions use (the graphs of a table close over one model) are read once: what a walk found of them goes into the walks
that follow, as long as everything that it met is as it was."""
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
    """The result of a walk of one module alone. It holds the module, and nothing of the function that the module was read for."""

    def __init__(self, walker: Walker, path: str, module: torch.nn.Module, packages: dict[str, None]) -> None:
        self.path = path
        self.packages, self._module, self._open = packages, module, list(walker.opened)
        self.facts, self.objects, self.places, self.watched = walker.found.facts, walker.objects, walker.places, walker.watched
        self.classes, self.functions, self.compiled_via = walker.classes, walker.functions, walker.compiled_via
        self.read, self.tensors, self.watched_classes = walker.read, walker.arrays, walker.watched_classes
        self.ids = self.read.keys() | self.tensors.keys()
        self.is_whole = not (walker.found.programs or walker.found.devices)  # all that there is to it is here
        self._held = _identity_checks.Held([*self.watched, *self.watched_classes.values()])
        self._looks = TensorChecks(one.tensor for one in self.places)
        # For _regions.py: (where and how large their storages were, the regions, their ids), and what these say.
        self.regions: tuple[Any, list[Any], frozenset[int]] | None = None
        self.memory: dict[str, str] | None = None
        self.listed: tuple[dict[str, str], list[str], str] | None = None  # for _fact_lists.py: (all facts of both, their texts, as a list)

    def is_same(self, opened: list[int]) -> bool:
        """opened: ids of the objects around it."""
        return self._open == opened and self._held.is_same() and self._looks.are_same()


class SharedModules:
    """The modules that the functions of one table have in common, as long as a walk that used them lives. One thread at a time."""

    def __init__(self) -> None:
        # By path, module, and the attributes that the code names, which say what is read.
        self._parts: weakref.WeakValueDictionary[tuple[str, int, frozenset[str]], ModulePart] = weakref.WeakValueDictionary()
        self._entangled: set[tuple[str, int]] = set()  # modules that share objects with what lies around them, or that could not be read
        # By a function's code: the classes that it met, and what it reached, where that can be of another one.
        self._met: weakref.WeakKeyDictionary[types.CodeType, tuple[dict[type, bool], weakref.ref[_reached_code.Around] | None]] = weakref.WeakKeyDictionary()

    def met(self, reached: _installed_code.TorchReached) -> dict[type, bool] | None:
        """The classes that a function with this code met when one was read last: a guess of what the next one meets. What it reached is taken over."""
        found = self._met.get(reached.code) if reached.code is not None else None
        if found is None:
            return None
        classes, around = found[0], found[1]() if found[1] is not None else None
        if around is not None and not reached.take_over(around, classes):
            self._met[around.code] = classes, None  # the next one is read anew
        return classes

    def note(self, reached: _installed_code.TorchReached, walker: Walker) -> None:
        """reached: with what the walk met."""
        code = reached.code
        if code is None:
            return
        classes, held = self._met.get(code, ({}, None))
        walker.around = held() if held is not None else None
        if walker.around is None or list(classes.items()) != list(walker.classes.items()):
            walker.around = None if walker.functions else reached.around()
            self._met[code] = walker.classes, weakref.ref(walker.around) if walker.around is not None else None

    def read(self, walker: Walker, path: str, module: torch.nn.Module) -> None:
        """As `walker` would read it."""
        place = (path, id(module))
        if place not in self._entangled:
            key = (*place, frozenset(walker.reached.names))
            part = self._parts.get(key)
            if part is None or not part.is_same(walker.opened):
                try:
                    part = self._parts[key] = _read_apart(walker, path, module)
                except errors.NotRecordable:  # the walk itself says so, and keeps what it met before
                    part = None
            if part is not None and _take(walker, part):
                walker.reached.packages.update(part.packages)
                return
            self._entangled.add(place)
        read_module(walker, path, module)


def _read_apart(walker: Walker, path: str, module: torch.nn.Module) -> ModulePart:
    """By a walk of its own, which has met nothing before."""
    with walker.reached.noted() as packages:
        one = Walker(walker.reached, TORCH)
        one.is_around, one.opened = True, list(walker.opened)
        one.stored, one.values_of_classes, one.known_classes = walker.stored, walker.values_of_classes, walker.known_classes
        read_module(one, path, module)
        return ModulePart(one, path, module, packages)


def _take(walker: Walker, part: ModulePart) -> bool:
    """Adds a part to the walk, as if the walk had read it. False where both met the same object, whose first path counts."""
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
