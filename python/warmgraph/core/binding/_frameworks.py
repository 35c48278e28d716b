"""Frameworks whose calls are recorded: a half of this package for each says here what it can do. Nothing else of the core knows of one.

A framework is never imported for this. Where a program has it already, its half is imported by name.
"""
from __future__ import annotations

import contextlib
import importlib
import sys
import types
from typing import Any, Callable, Iterable, Protocol

_HALVES = {"torch": "warmgraph.torch"}  # by the framework's module, its half, which registers itself
_registered: list[Framework] = []


class Framework(Protocol):
    """What a half can do."""

    def is_call(self, owner: Any, values: Iterable[Any]) -> bool:
        """The method's object, or arguments, are the framework's: its half answers such calls."""

    def function_of(self, wrapped: Any) -> Any:
        """What answers the calls of a wrapper (`CachedFunction`)."""

    def method_of(self, module: Any) -> types.MethodType:
        """A module that is called itself, as a method."""

    def signed_by(self, module: Any) -> Callable[..., Any] | None:
        """What has the signature of such a module."""

    def request_preload(self, wrapped: Any) -> None:
        """The graphs of a wrapper may be restored before its first call."""

    def forget_preload(self, wrapped: Any) -> None:
        """They may not."""

    def pause_recording(self) -> str:
        """Device code is kept no longer. Why not, or ""."""

    def summary(self) -> str:
        """A line for explain(); "" where there is nothing to say."""


def register(framework: Framework) -> None:
    """Called by a half when it is imported."""
    _registered.append(framework)


def registered() -> Framework | None:
    """The one whose half is imported."""
    return _registered[0] if _registered else None


def load() -> Framework | None:
    """The one that the program has. Raises what the import of its half raises."""
    for name, half in _HALVES.items():
        if not _registered and name in sys.modules:
            importlib.import_module(half)
    return registered()


def load_quietly() -> Framework | None:
    """The same. A half that cannot be imported says so at the first call that needs it."""
    with contextlib.suppress(Exception):
        return load()
    return None


def is_module(value: Any) -> bool:
    """An object of a framework that is called itself (torch.nn.Module)."""
    kind = getattr(getattr(sys.modules.get("torch"), "nn", None), "Module", None)
    return kind is not None and isinstance(value, kind)
