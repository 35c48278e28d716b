"""Reads a call: the arrays in it by path, and every Python value that its code may use. Our own reader: nothing is registered anywhere."""
from __future__ import annotations

import dataclasses
import enum
import hashlib
import re
import sys
import types
from typing import Any, Callable, Iterable, Iterator

from . import _code, errors
from ._device import Device, Program
from ._leaves import Leaf, leaf_of
from ._native import Cache, Function

_DEEPEST = 64
_LONGEST = 200  # letters of a fact; longer ones are told apart by digest
_SMALL_ARRAY = 64 << 10  # bytes of a host array that is no argument and becomes a guard
_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis))


@dataclasses.dataclass
class Found:
    """What a walk found. `facts` are in the order of their paths; arrays once, under the path where they came first."""

    arguments: list[tuple[str, Leaf]] = dataclasses.field(default_factory=list)
    states: list[tuple[str, Leaf]] = dataclasses.field(default_factory=list)
    facts: dict[str, str] = dataclasses.field(default_factory=dict)
    programs: list[Program] = dataclasses.field(default_factory=list)
    devices: list[Device] = dataclasses.field(default_factory=list)

    def leaves(self) -> list[tuple[str, Leaf]]:
        return self.arguments + self.states


class Walker:
    """One walk. Of objects that are no data class the attributes are read that the code of `reached` names. A tolerant one finds the
    arrays of what cannot be recorded."""

    def __init__(self, reached: _code.Reached, is_tolerant: bool = False) -> None:
        self.found = Found()
        self._is_tolerant = is_tolerant
        self._reached = reached
        self._arrays: dict[int, str] = {}
        self._open: list[int] = []  # objects that are being read, outermost first
        self._read: dict[int, str] = {}  # objects that were read, by the path of the first time
        self._into = self.found.arguments

    def arguments(self, values: dict[str, Any], skipped: Iterable[str] = ()) -> None:
        self._into = self.found.arguments
        for name, value in values.items():
            if name not in skipped:
                self.value(name, value)

    def surroundings(self, owner: Any) -> None:
        """The object of a method, what the functions close over, and the globals that they name."""
        self._into = self.found.states
        if owner is not None:
            self.value("self", owner)
        for function in list(self._reached.functions):
            closed = dict(_code.closed_over(function))
            for name, value in sorted(closed.items()):
                if not _is_code(value) and value is not owner:
                    self.value(f"{function.__name__}.{name}", value)
            for name in sorted(_code.globals_in(function.__code__)):
                value = function.__globals__.get(name, _ABSENT)
                if value is not _ABSENT and not _is_code(value):
                    self.value(f"{function.__module__.rpartition('.')[2]}.{name}", value)

    def value(self, path: str, value: Any) -> None:
        if len(self._open) > _DEEPEST:
            raise errors.NotRecordable(f"{path} is nested more than {_DEEPEST} deep")
        if isinstance(value, _PLAIN) and not isinstance(value, enum.Enum):
            self._fact(path, f"{type(value).__name__} {value!r}")
            return
        leaf = leaf_of(value)
        if leaf is not None:
            self._array(path, leaf)
        elif id(value) in self._open:
            self._fact(path, f"the {type(value).__qualname__} around it, {len(self._open) - self._open.index(id(value))} up")
        elif id(value) in self._read:
            self._fact(path, f"is {self._read[id(value)]}")
        else:
            self._open.append(id(value))
            try:
                self._composite(path, value)
            except errors.NotRecordable:
                if not self._is_tolerant:
                    raise
            finally:
                self._open.pop()
            if not isinstance(value, tuple):
                self._read[id(value)] = path

    def _array(self, path: str, leaf: Leaf) -> None:
        key = id(leaf.value)
        if key in self._arrays:
            self._fact(path, f"is {self._arrays[key]}")
            return
        if self._into is self.found.states and leaf.key() == ("host",):
            self._host_constant(path, leaf.value)
            return
        self._arrays[key] = path
        self._fact(path, f"array {' '.join(map(str, leaf.key()))}")
        self._into.append((path, leaf))
        device = getattr(leaf.value, "device", None)
        if isinstance(device, Device):
            self.found.devices.append(device)

    def _host_constant(self, path: str, array: Any) -> None:
        if array.nbytes > _SMALL_ARRAY:
            raise errors.NotRecordable(f"{path} is an array of {array.nbytes} bytes in host memory, which a graph cannot follow: keep it on "
                                       "the device (device.array), or pass it")
        digest = hashlib.sha256(array.tobytes()).hexdigest()
        self._fact(path, f"host array {array.dtype} {array.shape} {digest}")

    def _composite(self, path: str, value: Any) -> None:
        kind = type(value)
        if isinstance(value, enum.Enum):
            self._fact(path, f"{kind.__qualname__}.{value.name}")
        elif isinstance(value, Program):
            if all(one is not value for one in self.found.programs):
                self.found.programs.append(value)
            self.found.devices.append(value.device)
            self._fact(path, f"program {value.name}")  # its source and options are guards of the library
        elif isinstance(value, Device):
            self.found.devices.append(value)
            self._fact(path, "device")
        elif isinstance(value, (Cache, Function)):
            self._fact(path, kind.__qualname__)
        elif isinstance(value, types.ModuleType):
            self._fact(path, f"module {value.__name__}")
        elif isinstance(value, type):
            self._fact(path, f"class {value.__module__}.{value.__qualname__}")
        elif _is_number(value):
            self._fact(path, f"{kind.__name__} {value!r}")
        elif callable(value) and _code.function_of(value) is not None:
            self._function(path, value)
        elif isinstance(value, dict):
            self._fact(path, f"{kind.__qualname__} of {len(value)}")
            for key, one in value.items():
                self.value(f"{path}[{self._key(path, key)}]", one)
        elif isinstance(value, (list, tuple)):
            self._sequence(path, value)
        elif isinstance(value, (set, frozenset)):
            self._fact(path, f"{kind.__qualname__} {{{', '.join(sorted(self._key(path, one) for one in value))}}}")
        elif isinstance(value, (slice, range)) or _is_dtype(value):
            self._fact(path, repr(value))
        else:
            self._object(path, value)

    def _sequence(self, path: str, value: Any) -> None:
        fields = getattr(value, "_fields", None)
        self._fact(path, f"{type(value).__qualname__} of {len(value)}")
        for i, one in enumerate(value):
            self.value(f"{path}.{fields[i]}" if fields else f"{path}[{i}]", one)

    def _function(self, path: str, value: Any) -> None:
        reached = _code.Reached(value)
        self._fact(path, f"function {reached.digest()}")
        for name, one in _code.closed_over(reached.functions[0]):
            if not _is_code(one):
                self.value(f"{path}.{name}", one)
        if isinstance(value, types.MethodType):
            self.value(f"{path}.__self__", value.__self__)

    def _object(self, path: str, value: Any) -> None:
        kind = type(value)
        self._reached.add_class(kind)
        if dataclasses.is_dataclass(value):
            members = {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if hasattr(value, field.name)}
        else:
            members = {name: one for name, one in _attributes(value) if name in self._reached.names}
            if not hasattr(value, "__dict__") and not _slots(kind):
                raise errors.NotRecordable(f"{path} is a {kind.__module__}.{kind.__qualname__}, which cannot be compared in another process: "
                                           "keep what the function needs of it in plain values")
        self._fact(path, f"{kind.__module__}.{kind.__qualname__}")
        for name, one in members.items():
            if not isinstance(one, types.MethodType):
                self.value(f"{path}.{name}", one)

    def _key(self, path: str, key: Any) -> str:
        if isinstance(key, _PLAIN) and not isinstance(key, enum.Enum):
            return ascii(key)
        if isinstance(key, enum.Enum):
            return f"{type(key).__qualname__}.{key.name}"
        if isinstance(key, tuple):
            return f"({', '.join(self._key(path, one) for one in key)})"
        raise errors.NotRecordable(f"{path} has the key {key!r} of type {type(key).__qualname__}, which cannot be compared in another "
                                   "process: use numbers, texts or tuples of them")

    def _fact(self, path: str, text: str) -> None:
        if len(text) > _LONGEST:
            text = f"{text[:_LONGEST - 80]}... sha256 {hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"
        self.found.facts[path] = text.encode("ascii", "backslashreplace").decode()


_ABSENT = object()


def _is_code(value: Any) -> bool:
    """What Reached follows instead."""
    return isinstance(value, (types.FunctionType, types.BuiltinFunctionType, types.ModuleType, type)) or hasattr(value, "__wrapped__")


def _is_number(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.generic)


def read(reached: _code.Reached, arguments: dict[str, Any], owner: Any, skipped: Iterable[str] = ()) -> Found:
    """A call, as often as it takes until no new code was met on the way."""
    while True:
        known = len(reached.functions), len(reached.names)
        walker = Walker(reached)
        walker.arguments(arguments, skipped)
        walker.surroundings(owner)
        if known == (len(reached.functions), len(reached.names)):
            return walker.found


def _is_dtype(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.dtype)


def _slots(kind: type) -> list[str]:
    found: list[str] = []
    for one in kind.__mro__:
        slots = one.__dict__.get("__slots__", ())
        found += [slots] if isinstance(slots, str) else list(slots)
    return found


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    """Of the object itself, in the order of their names, and plain values of its classes."""
    seen = dict(getattr(value, "__dict__", {}))
    for name in _slots(type(value)):
        if name not in ("__dict__", "__weakref__") and hasattr(value, name):
            seen.setdefault(name, getattr(value, name))
    for kind in type(value).__mro__:
        for name, one in kind.__dict__.items():
            if isinstance(one, (*_PLAIN, list, tuple, dict)) and not name.startswith("__"):
                seen.setdefault(name, one)
    yield from sorted(seen.items())


def rebuilt(value: Any, replace: Callable[[Any], Any]) -> Any:
    """A copy of lists, tuples, dicts and data classes in which `replace` gives arrays; the very object where nothing in it changes."""
    given = replace(value)
    if given is not value:
        return given
    if isinstance(value, (list, tuple)):
        items = [rebuilt(one, replace) for one in value]
        if all(one is other for one, other in zip(items, value)):
            return value
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, dict):
        pairs = {key: rebuilt(one, replace) for key, one in value.items()}
        return value if all(pairs[key] is value[key] for key in value) else _like_dict(value, pairs)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        changed = {name: rebuilt(one, replace) for name, one in fields.items()}
        if all(changed[name] is one for name, one in fields.items()):
            return value
        copy = object.__new__(type(value))
        for name, one in {**getattr(value, "__dict__", {}), **changed}.items():
            object.__setattr__(copy, name, one)
        return copy
    return value


def _like_dict(value: Any, pairs: dict[Any, Any]) -> Any:
    return pairs if type(value) is dict else type(value)(pairs)


_NAME = re.compile(r"[^A-Za-z0-9._-]")


def folder_name(text: str) -> str:
    """A text as a folder's name may be."""
    name = _NAME.sub("_", text).strip(".-")[:100]
    return name or "function"
