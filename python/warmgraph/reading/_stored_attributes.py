"""Reads the attributes that objects and classes store."""
from __future__ import annotations

import copyreg
import dataclasses
import enum
import functools
import operator
import sys
import types
from typing import Any, Callable, Iterator, Mapping

from warmgraph.reading import _identity_checks, _plain_values, _reached_code

MOST_CLASSES = 1024  # the most classes that are remembered. Remembered classes stay alive, because their contents refer to them
_NOT_USERS = {*sys.stdlib_module_names, __name__.partition(".")[0]}


def slots(kind: type) -> list[str]:
    """Names of the attributes in the class's slots; private names in their stored form (_Class__name)."""
    found: list[str] = []
    for one in kind.__mro__:
        named = one.__dict__.get("__slots__", ())
        for name in [named] if isinstance(named, str) else list(named):
            is_private = name.startswith("__") and not name.endswith("__")
            found.append(f"_{one.__name__.lstrip('_')}{name}" if is_private else name)
    return found


def has_hidden_state(kind: type) -> bool:
    """Whether objects of the class store more than their attributes, in memory that Python code cannot see."""
    words = len(slots(kind)) + (kind.__dictoffset__ != 0) + (kind.__weakrefoffset__ != 0)
    return kind.__itemsize__ != 0 or kind.__basicsize__ > object.__basicsize__ + 8 * words


def of_itself(value: Any) -> dict[str, Any]:
    found = dict(getattr(value, "__dict__", {}))
    for name in slots(type(value)):
        if name not in ("__dict__", "__weakref__") and hasattr(value, name):
            found[name] = getattr(value, name)
    return found


def of_classes(kind: type, stored_by: Callable[[type], StoredAttributes]) -> Iterator[tuple[str, Any]]:
    """Attributes of a class and its bases, without methods and Python's own descriptors."""
    seen: set[str] = set()
    for one in kind.__mro__:
        stored = stored_by(one)
        for name, member in stored.found:
            if name not in seen:
                yield name, member
        seen.update(stored.names)


def stored_by(kind: type) -> StoredAttributes:
    """The attributes of one class. They are cached until the class changes: a library's base class has a hundred methods and many
    subclasses in a model."""
    held, known = kind.__dict__, _known_stored.get(id(kind))  # the key is the id, because a class may not be hashable
    if known is None or not known.is_of(held):
        known = StoredAttributes(kind, [*held], [*held.values()], [
            (name, member) for name, member in list(held.items())
            if isinstance(member, (type, enum.Enum)) or not hasattr(type(member), "__get__") or _is_own_descriptor(member) or _holds_value(member)
            or _reached_code.held_by_compiled(getattr(member, "__func__", member)) is not None])
        if len(_known_stored) >= MOST_CLASSES:
            _known_stored.clear()
        _known_stored[id(kind)] = known
    return known


def leave_slot_names(kind: type) -> None:
    """Makes Python cache the slot names in the class, as the first deep copy of an object does. If this happened later, it would count as a
    change of the class."""
    copyreg._slotnames(kind)  # type: ignore[attr-defined]


@dataclasses.dataclass
class StoredAttributes:
    """The attributes of a class. `found` leaves out methods and Python's own descriptors."""

    kind: type
    names: list[str]
    values: list[Any]
    found: list[tuple[str, Any]]

    def is_of(self, held: Mapping[str, Any]) -> bool:
        return len(self.names) == len(held) and all(map(operator.is_, self.names, held)) and all(map(operator.is_, self.values, held.values()))

    @functools.cached_property
    def plain(self) -> list[tuple[str, Any]]:
        """The plain values and containers in `found`."""
        return [(name, value) for name, value in self.found if isinstance(value, (*_plain_values.KINDS, list, tuple, dict)) and not name.startswith("__")]

    @functools.cached_property
    def watched(self) -> _identity_checks.WatchedObjects:
        """All contents of the class, watched for later checks."""
        return _identity_checks.of_dict(self.kind.__dict__, self.names, self.values)


def _holds_value(member: Any) -> bool:
    """Whether the member has C functions or partials in place of Python functions: they have no code object to follow."""
    if isinstance(member, property):
        return any(one is not None and not isinstance(one, types.FunctionType) for one in (member.fget, member.fset))
    return isinstance(member, (staticmethod, classmethod)) and not isinstance(member.__func__, types.FunctionType) \
        or isinstance(member, types.MethodDescriptorType)


def _is_own_descriptor(member: Any) -> bool:
    """Whether a user's class made the descriptor, because such descriptors may keep values."""
    kind = type(member)
    return kind is functools.partialmethod or isinstance(getattr(kind, "__get__", None), types.FunctionType) and kind.__module__.split(".")[0] not in _NOT_USERS


_known_stored: dict[int, StoredAttributes] = {}
