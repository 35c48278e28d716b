"""Reads a call: the arrays in it by path, and every Python value that its code may use. Our own reader: nothing is registered anywhere."""
from __future__ import annotations

import abc
import collections
import dataclasses
import enum
import functools
import hashlib
import logging
import operator
import pathlib
import re
import sys
import types
from typing import Any, Callable, Generic, Iterable, Protocol

from warmgraph import errors
from warmgraph.arrays._array_arguments import ArrayArgument, argument_of
from warmgraph.arrays._device import Device, Program
from warmgraph.core.cache._cache import Cache, Function
from warmgraph.reading import _code_objects, _plain_values, _reached_code, _stored_attributes

_DEEPEST = 64
_MOST_WALKS = 20
_LONGEST = 200  # letters of a fact; longer ones are told apart by digest
_SMALL_ARRAY = 64 << 10  # bytes of a host array that is no argument and becomes a guard


@dataclasses.dataclass
class Found:
    """What a walk found. `facts` are in the order of their paths; arrays once, under the path where they came first. `reached`: the code
    that the call may run."""

    reached: _reached_code.Reached
    arguments: list[tuple[str, ArrayArgument]] = dataclasses.field(default_factory=list)
    states: list[tuple[str, ArrayArgument]] = dataclasses.field(default_factory=list)
    facts: dict[str, str] = dataclasses.field(default_factory=dict)
    programs: list[Program] = dataclasses.field(default_factory=list)
    devices: list[Device] = dataclasses.field(default_factory=list)

    def leaves(self) -> list[tuple[str, ArrayArgument]]:
        return self.arguments + self.states


class Walker:
    """One walk. Of objects the attributes are read that the code of `reached` names. It notes the classes and functions that it meets,
    whose code may name more (`read`). A tolerant one finds the arrays of what cannot be recorded."""

    def __init__(self, reached: _reached_code.Reached, is_tolerant: bool = False) -> None:
        self.found = Found(reached)
        self.classes: dict[type, bool] = {}  # true: code may make objects of it
        self.functions: dict[int, types.FunctionType] = {}
        self._is_tolerant = is_tolerant
        self._reached, self._names = reached, reached.attributes
        self._arrays: dict[int, str] = {}
        self._open: list[int] = []  # objects that are being read, outermost first
        self._read: dict[int, tuple[str, Any]] = {}  # objects that were read, by the path of the first time
        self._roots: dict[str, int] = {}
        self._stored: dict[type, list[tuple[str, Any]]] = {}
        self._into = self.found.arguments

    def arguments(self, values: dict[str, Any], skipped: Iterable[str] = ()) -> None:
        self._into = self.found.arguments
        self._roots = dict.fromkeys(values, 0)
        for name, value in values.items():
            if name not in skipped:
                self.value(name, value)

    def surroundings(self, owner: Any) -> None:
        """The object of a method, what the functions close over, their defaults, and the globals that they name."""
        self._into = self.found.states
        if owner is not None:
            self.value(self._root("self", owner), owner)
        target = self._reached.target
        if not isinstance(target, (types.FunctionType, types.MethodType)):  # a partial has arguments
            self.value(self._root("function", target), target)
        for i, (function, names) in enumerate(zip(self._reached.functions, self._reached.globals)):
            inside = self._root(function.__name__, function)
            named = self._named_by_wrapper if id(function) in self._reached.wrappers else self._named
            for name, value in sorted(_reached_code.closed_over(function), key=lambda pair: pair[0]):
                if _reached_code.is_code(value):
                    self._fact(f"{inside}.{name}", self._text_of_function(value))
                elif value is not owner:
                    named(f"{inside}.{name}", value)
            self._members(inside, vars(function))
            for kind, implementation in _reached_code.implementations_of(function):
                if _reached_code.is_code(implementation):
                    self._fact(f"{inside}.registry[{kind}]", self._text_of_function(implementation))
            if i > 0:  # the call's arguments have those of the first
                for name, value in _reached_code.defaults_of(function):
                    self._named(f"{inside}.{name}", value)
            around = self._root((function.__module__ or "").rpartition(".")[2], function.__globals__)
            for name in names:
                value = function.__globals__.get(name, _ABSENT)
                if _reached_code.is_code(value):
                    self._fact(f"{around}.{name}", self._text_of_function(value))
                elif value is not _ABSENT:
                    named(f"{around}.{name}", value)
        for module in self._reached.modules:
            self.value(self._root(module.__name__.rpartition(".")[2], module), module)
        self._values_of_classes_met()

    def _values_of_classes_met(self) -> None:
        """Those that an object or a class below may hide from it, where code goes past them: super(), type(x). And names with underscores."""
        goes_past = not _PAST.isdisjoint(self._reached.names) or any(not _PAST_BY_CALL.isdisjoint(one) for one in self._reached.globals)
        named = {name for name in self._names if goes_past or name.startswith("__")}
        if not named:
            return
        bases = dict.fromkeys(one for kind in self.classes for one in kind.__mro__ if not self._reached.is_library(one.__module__, None))
        for name, kind in sorted(((_reached_code.name_of_class(one), one) for one in bases), key=lambda pair: pair[0]):
            for member, value in self._stored_by(kind).found:
                if member in named:
                    self._named_by_wrapper(f"{self._root(name, kind)}.{member}", value)

    def value(self, path: str, value: Any) -> None:
        try:
            self._value(path, value)
        except errors.NotRecordable:
            if not self._is_tolerant:
                raise

    def _root(self, name: str, of: Any) -> str:
        """A path that nothing else starts with: two functions of one name have two."""
        path, count = name, 1
        while self._roots.setdefault(path, id(of)) != id(of):
            count += 1
            path = f"{name}~{count}"
        return path

    def _named(self, path: str, value: Any) -> None:
        """A global or closure, in any function that names it."""
        if path not in self.found.facts:
            self.value(path, value)

    def _named_by_wrapper(self, path: str, value: Any) -> None:
        """What a wrapper of a library's closes over: as far as it can be compared."""
        try:
            self._named(path, value)
        except errors.NotRecordable:
            pass

    def _value(self, path: str, value: Any) -> None:
        if len(self._open) > _DEEPEST:
            raise errors.NotRecordable(f"{path} is nested more than {_DEEPEST} deep")
        if isinstance(value, _plain_values.KINDS) and not isinstance(value, enum.Enum):
            self._fact(path, _plain_values.text_of(value))
            if type(value) not in _plain_values.KINDS:
                self._rest(path, value)
            return
        leaf = argument_of(value)
        if leaf is not None:
            self._array(path, leaf)
        elif id(value) in self._open:
            self._fact(path, f"the {type(value).__qualname__} around it, {len(self._open) - self._open.index(id(value))} up")
        elif id(value) in self._read:
            self._fact(path, f"is {self._read[id(value)][0]}")
        else:
            self._open.append(id(value))
            try:
                self._composite(path, value)
            finally:
                self._open.pop()
            if not isinstance(value, tuple):
                self._read[id(value)] = path, value

    def _array(self, path: str, leaf: ArrayArgument) -> None:
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
        if array.dtype.hasobject:
            raise errors.NotRecordable(f"{path} is an array of Python objects, which cannot be compared in another process: use a list")
        digest = hashlib.sha256(array.tobytes()).hexdigest()
        kind = "" if type(array).__name__ == "ndarray" else f"{type(array).__qualname__} "
        self._fact(path, f"host array {kind}{array.dtype.str} {array.shape} {digest}")

    def _composite(self, path: str, value: Any) -> None:
        kind = type(value)
        if isinstance(value, enum.Enum):
            self._enumerator(path, value)
        elif isinstance(value, _BUILTIN):
            self._built_in(path, value)
        elif isinstance(value, (slice, property)):
            self._fact(path, kind.__qualname__)
            for name in ("start", "stop", "step") if isinstance(value, slice) else ("fget", "fset", "fdel"):
                self.value(f"{path}.{name}", getattr(value, name))
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
            if not self._is_library_module(value):
                self._members(path, vars(value))
        elif isinstance(value, type):
            self._class(path, value)
        elif (callable(value) or isinstance(value, functools.partialmethod)) and (_reached_code.function_of(value) is not None or _reached_code.below(value) is not None):
            self._function(path, value)
        elif isinstance(value, dict):
            pairs = [(self._key(path, key), one) for key, one in list(value.items())]
            order = f": {', '.join(key for key, _ in pairs)}" if len(pairs) > 1 else ""  # who goes through it sees that
            self._fact(path, f"{kind.__qualname__} of {len(value)}{order}")
            for key, one in pairs:
                self.value(f"{path}[{key}]", one)
            self._rest(path, value)
        elif isinstance(value, (list, tuple)):
            self._sequence(path, value)
            self._rest(path, value)
        elif isinstance(value, (set, frozenset)):
            self._fact(path, f"{kind.__qualname__} {{{', '.join(sorted(self._key(path, one) for one in value))}}}")
            self._rest(path, value)
        else:
            text = _text_of(value)
            if text is not None:
                self._fact(path, text)
            else:
                self._object(path, value)

    def _sequence(self, path: str, value: Any) -> None:
        fields = getattr(value, "_fields", None)
        self._fact(path, f"{type(value).__qualname__} of {len(value)}")
        for i, one in enumerate(value):
            self.value(f"{path}.{fields[i]}" if fields else f"{path}[{i}]", one)

    def _built_in(self, path: str, value: Any) -> None:
        """With the object that it is bound to (`table.get`)."""
        of = getattr(value, "__self__", None)
        is_plain = of is None or isinstance(of, (types.ModuleType, type)) or type(of).__name__ == "PyCapsule"
        around = getattr(of, "__name__", "") if is_plain else ""
        self._fact(path, f"built-in {getattr(value, '__module__', None)}.{getattr(value, '__qualname__', value.__name__)} {around}".strip())
        if not is_plain:
            self.value(f"{path}.__self__", of)

    def _enumerator(self, path: str, value: enum.Enum) -> None:
        self._fact(path, _enumerator(value))
        kind = type(value)
        if not self._reached.is_library(kind.__module__, None):
            self.classes.setdefault(kind, False)
            if not isinstance(value.value, _plain_values.KINDS):
                self.value(f"{path}.value", value.value)
            self._members(path, {name: one for name, one in vars(value).items() if name not in _OF_ENUMERATORS})

    def _function(self, path: str, value: Any) -> None:
        if isinstance(value, types.FunctionType):
            self.functions[id(value)] = value
            self._fact(path, f"function {value.__qualname__} {_code_objects.code_digest(value.__code__).hex()}")
            # Functions of one code differ in what they close over.
            named = self._named_by_wrapper if self._reached.is_library(value.__module__, value.__code__.co_filename) else self._named
            for name, one in sorted(_reached_code.closed_over(value), key=lambda pair: pair[0]):
                named(f"{path}.{name}", one)
            return
        self._fact(path, type(value).__qualname__)
        self.value(f"{path}.__wrapped__", _reached_code.below(value))
        if isinstance(value, types.MethodType):
            self.value(f"{path}.__self__", value.__self__)
        elif isinstance(value, (functools.partial, functools.partialmethod)):
            self.value(f"{path}.args", value.args)
            self.value(f"{path}.keywords", value.keywords)

    def _text_of_function(self, value: types.FunctionType) -> str:
        """Which function a name means: what it closes over is read where it is met itself."""
        return f"function {self._root(value.__name__, value)} {_code_objects.code_digest(value.__code__).hex()}"

    def _class(self, path: str, kind: type) -> None:
        self._fact(path, f"class {_reached_code.name_of_class(kind)}")
        if not self._reached.is_library(kind.__module__, None):
            self.classes[kind] = True
            if issubclass(kind, enum.Enum):
                self._fact(f"{path} members", " ".join(kind.__members__))
                self._members(path, dict(kind.__members__), lambda _: True)
            else:
                self._members(path, dict(self._stored_in(kind)))

    def _object(self, path: str, value: Any) -> None:
        kind = type(value)
        self._fact(path, _reached_code.name_of_class(kind))
        if self._is_library_class(kind) and _stored_attributes.has_hidden_state(kind):
            raise errors.NotRecordable(f"{path} is a {kind.__module__}.{kind.__qualname__}, which cannot be compared in another process: "
                                       "keep what the function needs of it in plain values")
        self._rest(path, value)

    def _rest(self, path: str, value: Any) -> None:
        """Attributes: a data class's fields, those that code names, and all where a library's methods, which are not read, may name them."""
        kind = type(value)
        if kind.__module__ == "builtins":
            return
        self.classes.setdefault(kind, False)
        own = _stored_attributes.of_itself(value)
        if self._is_library_class(kind):
            self._members(path, {name: one for name, one in sorted(own.items()) if not self._is_of_process(kind, name, one)},
                          lambda name: not name.startswith("__"))
            own = {}
        elif dataclasses.is_dataclass(value):
            fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if hasattr(value, field.name)}
            self._members(path, fields, lambda _: True)
            own = {name: one for name, one in own.items() if name not in fields}
        self._members(path, {**{name: one for name, one in self._stored_in(kind) if f"{path}.{name}" not in self.found.facts}, **own})

    def _members(self, path: str, members: dict[str, Any], is_read: Callable[[str], bool] | None = None) -> None:
        """In the order of their names, but for fields; those that code names."""
        for name, one in list(members.items()) if is_read else sorted(members.items()):
            if is_read(name) if is_read else name in self._names:
                self.value(f"{path}.{name}", one)

    def _stored_in(self, kind: type) -> list[tuple[str, Any]]:
        if kind not in self._stored:
            self._stored[kind] = list(_stored_attributes.of_classes(kind, self._stored_by))
        return self._stored[kind]

    def _stored_by(self, kind: type) -> _stored_attributes.Stored:
        return _stored_attributes.stored_by(kind)

    def _is_of_process(self, kind: type, name: str, value: Any) -> bool:
        """Says nothing in another process."""
        return _is_kept_hash(name, value)

    def _is_library_class(self, kind: type) -> bool:
        return any(one not in _PLAIN_BASES and self._reached.is_library(one.__module__, None) for one in kind.__mro__)

    def _is_library_module(self, module: types.ModuleType) -> bool:
        return self._reached.is_library(module.__name__, getattr(module, "__file__", None))

    def _key(self, path: str, key: Any) -> str:
        if isinstance(key, _plain_values.KINDS) and not isinstance(key, enum.Enum):
            if type(key) not in _plain_values.KINDS:  # its methods count
                self.classes.setdefault(type(key), False)
            return ascii(key) if type(key) in _plain_values.KINDS else _plain_values.text_of(key)
        if isinstance(key, enum.Enum):
            self.value(f"{path}.keys.{type(key).__qualname__}.{key.name}", key)
            return _enumerator(key)
        if isinstance(key, type):
            self.value(f"{path}.keys.{key.__qualname__}", key)
            return _reached_code.name_of_class(key)
        if isinstance(key, tuple):
            if type(key) is not tuple:
                self.classes.setdefault(type(key), False)
            kind = "" if type(key) is tuple else f"{type(key).__qualname__}{getattr(key, '_fields', '')}"
            return f"{kind}({', '.join(self._key(path, one) for one in key)})"
        raise errors.NotRecordable(f"{path} has a key of type {type(key).__qualname__}, which cannot be compared in another "
                                   "process: use numbers, texts or tuples of them")

    def _fact(self, path: str, text: str) -> None:
        self.found.facts[path] = _plain_values.shortened(text, _LONGEST)


_BUILTIN = (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType, types.MethodWrapperType)
_ABSENT = object()
_PAST = {"__class__", "__mro__", "__bases__", "__base__", "mro"}
_PAST_BY_CALL = {"super", "type"}
_OF_ENUMERATORS = {"_value_", "_name_", "_sort_order_", "__objclass__"}
_PLAIN_BASES = (object, abc.ABC, Generic, Protocol, tuple, list, dict, set, frozenset, int, float, str, bytes)


def read(reached: _reached_code.Reached, arguments: dict[str, Any], owner: Any, skipped: Iterable[str] = (), is_tolerant: bool = False) -> Found:
    """A call, as often as it takes until nothing new was met on the way."""
    now = reached.latest()  # the last call's is mostly this one's
    for _ in range(_MOST_WALKS):
        walker = Walker(now, is_tolerant)
        walker.arguments(arguments, skipped)
        walker.surroundings(owner)
        met = reached.with_met(walker.classes, walker.functions.values())
        if met is now:
            return walker.found
        now = met
    raise errors.NotRecordable("what it uses changes while it is read: keep other threads from changing its arguments and objects")


def _enumerator(value: enum.Enum) -> str:
    plain = isinstance(value.value, _plain_values.KINDS)
    return f"{type(value).__qualname__}.{value.name}{f' {_plain_values.text_of(value.value)}' if plain else ''}"


def _text_of(value: Any) -> str | None:
    """Of kinds that a text says all about, but for what does not change results."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.generic):
        return f"{type(value).__name__} {value!r}"
    if numpy is not None and isinstance(value, numpy.dtype) or isinstance(value, range):
        return repr(value)
    if numpy is not None and isinstance(value, numpy.ufunc):
        return f"ufunc {value.__name__}"
    # An object with a __call__ in Python may have the name of a function that it wraps (functools.update_wrapper).
    if callable(value) and not isinstance(getattr(type(value), "__call__", None), types.FunctionType) and _is_found_by_name(value):
        return f"{value.__module__}.{value.__qualname__}"
    if isinstance(value, pathlib.PurePath):
        return f"{type(value).__name__} {str(value)!r}"
    if isinstance(value, (operator.attrgetter, operator.itemgetter)):
        return repr(value)
    if isinstance(value, re.Pattern):
        return f"pattern {value.pattern!r} {value.flags}"
    if isinstance(value, (logging.Logger, logging.LoggerAdapter)):
        return type(value).__name__
    return None


def _is_kept_hash(name: str, value: Any) -> bool:
    """A hash() that an object of a library keeps (GenerationConfig of transformers): each process hashes texts in another way, so it says
    nothing in the next one. It has 61 bits: a small number is a setting."""
    return type(value) is int and name.lower().endswith("hash") and abs(value) >= 1 << 32


def _is_found_by_name(value: Any) -> bool:
    """A function of a compiled library's."""
    found: Any = sys.modules.get(getattr(value, "__module__", None) or "")
    for name in str(getattr(value, "__qualname__", None)).split("."):
        found = getattr(found, name, None)
    return found is value


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
LONGEST_NAME = 100


def folder_name(text: str) -> str:
    """A text as a folder's name may be."""
    name = _NAME.sub("_", text).strip(".-")[:LONGEST_NAME]
    return name or "function"


def binding_names(paths: Iterable[str]) -> dict[str, str]:
    """What the library calls each of them: "self.weights.0" for "self.weights[0]". Those that would be alike have a digest."""
    plain = {path: re.sub(r"\.{2,}", ".", _NAME.sub(".", path)).strip(".-") for path in paths}
    count = collections.Counter(plain.values())
    return {path: name if name and count[name] == 1 and len(name) <= LONGEST_NAME
            else f"{name[:LONGEST_NAME] or 'array'}.{hashlib.sha256(path.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}" for path, name in plain.items()}
