"""The registry of frameworks: each half of this package registers its functions here. The rest of the core knows no framework.

Nothing here imports a framework. If the program has imported a framework, the half for it is imported by name.
"""
from __future__ import annotations

import contextlib
import dataclasses
import importlib
import sys
import types
from typing import Any, Callable, Iterable

_HALVES = {"torch": "warmgraph.torch"}  # for a framework's module, the module of this package that registers itself as the framework's half
_registered: list[Framework] = []


@dataclasses.dataclass(frozen=True)
class Framework:
    """The functions that a framework's half registers."""

    # Whether the method's object or an argument belongs to the framework; then the framework's half answers the call.
    is_call: Callable[[Any, Iterable[Any]], bool]
    function_of: Callable[[Any], Any]  # returns the object that answers the calls of a wrapper (CachedFunction)
    method_of: Callable[[Any], types.MethodType]  # returns a callable module as a method
    signed_by: Callable[[Any], Any]  # returns the callable that has a module's signature; None if it is not available
    request_preload: Callable[[Any], Any]  # permits restoring a wrapper's graphs before its first call
    forget_preload: Callable[[Any], Any]  # withdraws that permission
    summary: Callable[[], str]  # returns a line for explain(), or ""


def register(framework: Framework) -> None:
    """Registers a half of the package. The half calls this when it is imported."""
    _registered.append(framework)


def registered() -> Framework | None:
    """The framework whose half is already imported; None if no half is."""
    return _registered[0] if _registered else None


def load() -> Framework | None:
    """The framework that the program has imported; imports its half first, and raises the errors of this import. None if there is no
    framework."""
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
