"""The registry of frameworks: each half of this package registers its functions here. The rest of the core knows no framework.

A framework is never imported for this. If the program has imported it, its half is imported by name.
"""
from __future__ import annotations

import contextlib
import dataclasses
import importlib
import sys
import types
from typing import Any, Callable, Iterable

_HALVES = {"torch": "warmgraph.torch"}  # by the framework's module: the half of this package, which registers itself
_registered: list[Framework] = []


@dataclasses.dataclass(frozen=True)
class Framework:
    """The functions that a half registers."""

    is_call: Callable[[Any, Iterable[Any]], bool]  # the method's object, or values of arguments, are the framework's: its half answers such calls
    function_of: Callable[[Any], Any]  # what answers the calls of a wrapper (CachedFunction)
    method_of: Callable[[Any], types.MethodType]  # a module that is called itself, as a method
    signed_by: Callable[[Any], Any]  # what has the signature of such a module; None: nothing
    request_preload: Callable[[Any], Any]  # the graphs of a wrapper may be restored before its first call
    forget_preload: Callable[[Any], Any]  # they may not
    summary: Callable[[], str]  # a line for explain(); "" where there is nothing to say


def register(framework: Framework) -> None:
    """Called by a half when it is imported."""
    _registered.append(framework)


def registered() -> Framework | None:
    """The framework whose half is imported."""
    return _registered[0] if _registered else None


def load() -> Framework | None:
    """The framework that the program has imported. Raises the errors of importing its half."""
    for name, half in _HALVES.items():
        if not _registered and name in sys.modules:
            importlib.import_module(half)
    return registered()


def load_quietly() -> Framework | None:
    """Like load(), but ignores errors: the first call that needs the half raises them."""
    with contextlib.suppress(Exception):
        return load()
    return None


def is_module(value: Any) -> bool:
    """Whether the object is a framework's callable module (torch.nn.Module)."""
    kind = getattr(getattr(sys.modules.get("torch"), "nn", None), "Module", None)
    return kind is not None and isinstance(value, kind)
