"""What a call's walk will meet: where that is right, one walk is enough."""
from __future__ import annotations

import itertools
import types
from typing import Any, Iterable, Iterator

import torch

from .. import _code as _plain_code
from . import _code, _modules

_NO_CLASS_OF_ITS_OWN = frozenset({type(None), bool, int, float, complex, str, bytes, tuple, list, dict, set})


def _values_around(reached: _code.Reached) -> Iterator[Any]:
    """What its functions close over, and the globals that they name."""
    for function, names in zip(reached.functions, reached.globals):
        for _, value in _plain_code.closed_over(function):
            yield value
        for name in names:
            yield function.__globals__.get(name)


def guessed(reached: _code.Reached, given: Iterable[Any]) -> tuple[dict[type, bool], list[types.FunctionType]]:
    """(classes, functions) that a walk mostly meets, in its order: of modules whole, of other objects in attributes that the code names.
    Whoever reads compares the guess with what he meets. `given`: arguments and the object."""
    found: dict[type, bool] = {}
    functions: dict[int, types.FunctionType] = {}
    seen: set[int] = set()

    def note(value: Any) -> None:
        if isinstance(value, torch.nn.Module):
            if id(value) in seen:
                return
            seen.add(id(value))
            is_compiled = _modules.compiled_from(value) is not None
            if not is_compiled:
                found.setdefault(type(value), False)
            for child in value._modules.values():
                note(child)
            own = value.__dict__
            for name, _ in _modules.names_of_attributes(own, ()) if not is_compiled else ():
                if type(own[name]) not in _NO_CLASS_OF_ITS_OWN:
                    note(own[name])
        elif isinstance(value, types.FunctionType):
            functions.setdefault(id(value), value)
        elif not isinstance(value, torch.Tensor) and type(value).__module__ != "builtins":
            found.setdefault(type(value), False)
            held = getattr(value, "__dict__", None)
            if isinstance(held, dict):
                for name in sorted(held.keys() & reached.names):
                    if isinstance(held[name], torch.nn.Module):
                        note(held[name])
                    elif type(held[name]) is list:  # the layers of a cache
                        note_kinds(held[name])

    def note_kinds(values: list[Any]) -> None:
        for kind in dict.fromkeys(map(type, values)):
            if kind.__module__ != "builtins" and not issubclass(kind, (torch.nn.Module, torch.Tensor)):
                found.setdefault(kind, False)

    for value in itertools.chain(given, _values_around(reached)):
        if not isinstance(value, types.FunctionType):  # those that the code names are followed anyway
            note(value)
    for kind in found:
        _code.leave_slot_names(kind)
    return found, list(functions.values())
