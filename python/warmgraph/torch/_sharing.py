"""Modules that many functions use (the graphs of a table close over one model) are read once: what a walk found of them goes into the walks
that follow, as long as everything that it met is as it was."""
from __future__ import annotations

import types
import weakref
from typing import TYPE_CHECKING, Any

import torch

from .. import _watch, errors
from ._looks import Looks

if TYPE_CHECKING:
    from ._walking import Walker


class Part:
    """What a walk of its own found of one module. Whoever holds it holds the module, and nothing of the function that it was read for."""

    def __init__(self, walker: Walker, path: str, module: torch.nn.Module, packages: dict[str, None]) -> None:
        self.path = path
        self.packages, self._module, self._open = packages, module, walker.opened()
        self.facts, self.objects, self.places, self.watched = walker.found.facts, walker.objects, walker.places, walker.watched
        self.classes, self.functions, self.compiled_via = walker.classes, walker.functions, walker.compiled_via
        self.read, self.tensors, self.watched_classes = walker.met()
        self.ids = self.read.keys() | self.tensors.keys()
        self.is_whole = not (walker.found.programs or walker.found.devices)  # all that there is to it is here
        self._held = _watch.Held([*self.watched, *self.watched_classes.values()])
        self._looks = Looks(one.tensor for one in self.places)
        # For _regions: (where and how large their storages were, the regions, their ids), and what these say.
        self.regions: tuple[Any, list[Any], frozenset[int]] | None = None
        self.memory: dict[str, str] | None = None
        self.listed: tuple[dict[str, str], list[str], str] | None = None  # for _listing: (all facts of both, their texts, as a list)

    def is_same(self, opened: list[int]) -> bool:
        """opened: ids of the objects around it."""
        return self._open == opened and self._held.is_same() and self._looks.are_same()


class Known:
    """What the functions of one table have in common, as long as a walk that used it lives. One thread at a time."""

    def __init__(self) -> None:
        # By path, module, and the attributes that the code names, which say what is read.
        self._parts: weakref.WeakValueDictionary[tuple[str, int, frozenset[str]], Part] = weakref.WeakValueDictionary()
        self._entangled: set[tuple[str, int]] = set()  # modules that share objects with what lies around them, or that could not be read
        self.expected: tuple[dict[type, bool], list[types.FunctionType]] | None = None  # what the first of them will meet (_expecting.py)
        self._classes: weakref.WeakKeyDictionary[types.CodeType, dict[type, bool]] = weakref.WeakKeyDictionary()

    def classes(self, code: types.CodeType | None) -> dict[type, bool] | None:
        """That a function with this code met when one was read last: a guess of what the next one meets."""
        return self._classes.get(code) if code is not None else None

    def note_classes(self, code: types.CodeType | None, classes: dict[type, bool]) -> None:
        if code is not None:
            self._classes[code] = classes

    def read(self, walker: Walker, path: str, module: torch.nn.Module) -> None:
        """As `walker` would read it."""
        place = (path, id(module))
        if place not in self._entangled:
            key = (*place, frozenset(walker.reached.names))
            part = self._parts.get(key)
            if part is None or not part.is_same(walker.opened()):
                try:
                    part = self._parts[key] = _read_apart(walker, path, module)
                except errors.NotRecordable:  # the walk itself says so, and keeps what it met before
                    part = None
            if part is not None and walker.takes(part):
                walker.reached.packages.update(part.packages)
                return
            self._entangled.add(place)
        walker.read_module(path, module)


def _read_apart(walker: Walker, path: str, module: torch.nn.Module) -> Part:
    with walker.reached.noted() as packages:
        return Part(walker.read_apart(path, module), path, module, packages)
