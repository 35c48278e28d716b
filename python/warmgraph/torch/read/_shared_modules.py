"""Modules that many functions use (the graphs of a table close over one model) are read once: what a walk found of them goes into the walks
that follow, as long as everything that it met is as it was."""
from __future__ import annotations

import types
import weakref

import torch

from warmgraph import errors
from warmgraph.reading import _reached_code
from warmgraph.torch.read import _installed_code
from warmgraph.torch.read._torch_walker import ModulePart, Walker


class SharedModules:
    """What the functions of one table have in common, as long as a walk that used it lives. One thread at a time."""

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


def _read_apart(walker: Walker, path: str, module: torch.nn.Module) -> ModulePart:
    with walker.reached.noted() as packages:
        return ModulePart(walker.read_apart(path, module), path, module, packages)
