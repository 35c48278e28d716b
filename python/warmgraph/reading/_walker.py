"""Walks through the values that a call depends on. Each value has a path, and a reader of its type decides its facts. Registers nothing with Python."""
from __future__ import annotations

import abc
import dataclasses
import sys
import types
from typing import Any, Callable, Generic, Iterable, Mapping, NamedTuple, Optional, Protocol, TypeVar

from warmgraph import errors
from warmgraph.arrays._array_arguments import ArrayArgument
from warmgraph.arrays._device import Device, Program
from warmgraph.reading import _code_objects, _identity_checks, _plain_values, _reached_code, _stored_attributes

MOST_WALKS = 20
_DEEPEST = 64
_LONGEST = 200  # the most letters of a fact; a longer fact is cut and gets its digest

Reader = Callable[["Walker", str, Any], Optional[bool]]  # gets (walker, path, value); returns False if another reader must read the value
_R = TypeVar("_R", bound=Reader)


class Readers:
    """Readers by type. The last registered one is tried first; then the readers of `base`; then the readers for all remaining types."""

    def __init__(self, base: Readers | None = None, is_watching: bool = False, most_facts: int = sys.maxsize) -> None:
        """is_watching: the walker notes the objects that it reads, so that later calls can be checked without reading them again."""
        self.is_watching, self.most_facts = is_watching, most_facts
        self.single: list[tuple[Any, Reader]] = list(base.single) if base is not None else []
        self.nested: list[tuple[Any, Reader]] = list(base.nested) if base is not None else []
        self.of_process: list[Callable[[type, str, Any], bool]] = list(base.of_process) if base is not None else []
        self.unwatched: set[type] = {object}  # classes that never change
        self._by_type: dict[int, ReadersOfType] = {}  # the key is the id, because a class may not be hashable
        self.begin_surroundings: Callable[[Walker, Any], Any] = lambda walker, owner: owner  # returns the object to read for `owner`

    def reads(self, *kinds: type) -> Callable[[_R], _R]:
        """Registers a reader of values that hold other values, possibly also themselves."""
        return self._registering(self.nested, 0, kinds)

    def reads_single(self, *kinds: type) -> Callable[[_R], _R]:
        """Registers a reader of values without further values to read, or of values that occur only once. Readers for `object` are tried
        last."""
        return self._registering(self.single, len(self.single) if kinds == (object,) else 0, kinds)

    def of(self, value: Any) -> ReadersOfType:
        """The readers for a value, in order."""
        kind = type(value)
        found = self._by_type.get(id(kind))
        if found is not None and value.__class__ is kind:
            return found
        found = ReadersOfType(kind, isinstance(value, _plain_values.KINDS), [reader for kinds, reader in self.single if isinstance(value, kinds)],
                              [reader for kinds, reader in self.nested if isinstance(value, kinds)])
        if value.__class__ is kind:  # not if the value claims another class (`__class__`), because the next value of this type may not
            if len(self._by_type) >= _stored_attributes.MOST_CLASSES:
                self._by_type.clear()
            self._by_type[id(kind)] = found
        return found

    def _registering(self, readers: list[tuple[Any, Reader]], at: int, kinds: tuple[type, ...]) -> Callable[[_R], _R]:
        def register(reader: _R) -> _R:
            readers.insert(at, (kinds, reader))
            self._by_type.clear()
            return reader

        return register


class ReadersOfType(NamedTuple):
    """The readers for values of one class. The class is kept alive, because another class could get its id."""

    kind: type
    is_plain: bool
    single: list[Reader]
    nested: list[Reader]


@dataclasses.dataclass
class WalkResult:
    """The result of a walk. `facts` are in the order of their paths. Each array occurs once, under its first path. `reached`: the code of the call."""

    reached: _reached_code.ReachedCode
    arguments: list[tuple[str, ArrayArgument]] = dataclasses.field(default_factory=list)
    states: list[tuple[str, ArrayArgument]] = dataclasses.field(default_factory=list)
    facts: dict[str, str] = dataclasses.field(default_factory=dict)
    programs: list[Program] = dataclasses.field(default_factory=list)
    devices: list[Device] = dataclasses.field(default_factory=list)

    def leaves(self) -> list[tuple[str, ArrayArgument]]:
        return self.arguments + self.states


@dataclasses.dataclass(frozen=True)
class ArgumentFacts:
    """The result of the walk for the call's arguments only."""

    found: WalkResult
    places: list[Any]
    objects: dict[str, Any]
    functions: dict[int, types.FunctionType]
    classes: dict[type, bool]


class Walker:
    """One walk. It reads the attributes that the code in `reached` names. It notes the classes and functions that it finds,
    because their code may name more attributes. A tolerant walk leaves out values that cannot be recorded.

    `places`: tensors in the order of the walk. `objects`: the object at each path. `watched`: the contents of the object, the closures and
    the globals, if the readers watch. `compiled_via`: where the walk found modules that PyTorch compiled, as in Place.via. `optimizers`: an object
    of the framework's reader for each optimizer."""

    def __init__(self, reached: Any, readers: Readers, is_tolerant: bool = False, known: Any = None) -> None:
        """known: results of other walks, which are used again for the modules in the surroundings."""
        self.reached, self.readers, self.is_tolerant, self.known = reached, readers, is_tolerant, known
        self.found = WalkResult(reached)
        self.names: set[str] = reached.attributes
        self.classes: dict[type, bool] = {}  # by class: whether code may make objects of it
        self.functions: dict[int, types.FunctionType] = {}
        self.places: list[Any] = []
        self.objects: dict[str, Any] = {}
        self.watched: list[_identity_checks.WatchedObjects] = []
        self.watched_classes: dict[type, _identity_checks.WatchedObjects] = {}
        self.compiled_via: set[str] = set()
        self.optimizers: list[Any] = []
        self.arrays: dict[int, str] = {}  # the path of each array and tensor, by its id
        self.read: dict[int, tuple[str, Any]] = {}  # each object that was read, by its id, with its first path
        self.opened: list[int] = []  # ids of the objects being read, outermost first
        self.is_around = False  # true while the walk reads the surroundings of the call, false for its arguments
        self.parts: list[Any] = []  # parts of `known` that must live as long as this walk
        self.taken: list[tuple[int, Any]] = []  # (index of the part's first place, the part) for each part of `known` that was used
        self.around: Any = None  # code that other functions with the same code object share; kept alive as long as this walk
        self.stored: dict[type, list[tuple[str, Any]]] = {}
        self.known_classes: dict[int, _stored_attributes.StoredAttributes] = {}  # by the class's id: its attributes when this walk found it first
        self.values_of_classes: dict[type, dict[str, Any]] = {}
        self._roots: dict[str, int] = {}
        self._classes_watched: set[type] = set()
        self._dicts: tuple[dict[Any, Any], ...] = self.found.facts, self.objects, self.read, self.arrays
        self._lists: tuple[list[Any], ...] = self.places, self.watched, self.found.arguments, self.found.states, self.found.programs, self.found.devices, \
            self.optimizers

    def arguments(self, values: dict[str, Any], skipped: Iterable[str] = ()) -> None:
        self._roots = dict.fromkeys(values, 0)
        for name, value in values.items():
            if name not in skipped:
                self.value(name, value)

    def surroundings(self, owner: Any, named: Mapping[str, Any] = types.MappingProxyType({})) -> None:
        """Reads a method's object, the functions' closures and defaults, and the globals that they name. `named`: objects with the caller's names."""
        if self.readers.is_watching:
            self._end_arguments()
        self.is_around = True
        for name, value in named.items():
            self.value(self.root(name, value), value)
        if self.readers.is_watching:
            self._watch_functions()
        owner = self.readers.begin_surroundings(self, owner)
        if owner is not None:
            self.value(self.root("self", owner), owner)
        target = self.reached.target
        if not isinstance(target, (types.FunctionType, types.MethodType)):  # a partial, for example, which has arguments of its own
            self.value(self.root("function", target), target)
        for i, (function, names) in enumerate(zip(self.reached.functions, self.reached.globals)):
            self._around_function(function, names, owner, is_first=i == 0)
        for module in self.reached.modules:
            self.value(self.root(module.__name__.rpartition(".")[2], module), module)
        self._values_of_classes_met()
        self.watched += self.watched_classes.values()  # the arguments' classes are among them

    def _end_arguments(self) -> None:
        """Keeps the state of the walk after the arguments, for later calls, which read only their arguments."""
        self.watched.clear()  # the arguments need no watching, because every call reads them
        self.first_around = len(self.objects)
        found = dataclasses.replace(self.found, facts=dict(self.found.facts))
        self.of_arguments = ArgumentFacts(found, list(self.places), dict(self.objects), dict(self.functions), dict(self.classes))

    def _around_function(self, function: types.FunctionType, names: Iterable[str], owner: Any, is_first: bool) -> None:
        inside = self.root(function.__name__, function)
        named = self.named_by_wrapper if id(function) in self.reached.wrappers else self.named
        for name, value in sorted(_reached_code.closed_over(function), key=lambda pair: pair[0]):
            if _reached_code.is_code(value):
                self.fact(f"{inside}.{name}", self._text_of_function(value))
            elif value is not owner:
                named(f"{inside}.{name}", value)
        self.members(inside, vars(function))
        for kind, implementation in _reached_code.implementations_of(function):
            if _reached_code.is_code(implementation):
                self.fact(f"{inside}.registry[{kind}]", self._text_of_function(implementation))
        if not is_first:  # the defaults of the first function are arguments of the call
            for name, value in _reached_code.defaults_of(function):
                self.named(f"{inside}.{name}", value)
        around = self.root((function.__module__ or "").rpartition(".")[2], function.__globals__)
        for name in names:
            value = function.__globals__.get(name, _ABSENT)
            if _reached_code.is_code(value):
                self.fact(f"{around}.{name}", self._text_of_function(value))
            elif value is not _ABSENT:
                named(f"{around}.{name}", value)

    def _values_of_classes_met(self) -> None:
        """Reads values in classes that an object or a subclass may hide. Code can reach them with super() or type(x), and names with
        underscores always count."""
        goes_past = not _PAST.isdisjoint(self.reached.names) or any(not _PAST_BY_CALL.isdisjoint(one) for one in self.reached.globals)
        named = {name for name in self.names if goes_past or name.startswith("__")}
        if not named:
            return
        bases = dict.fromkeys(one for kind in self.classes for one in kind.__mro__ if not self.reached.is_library(one.__module__, None))
        for name, kind in sorted(((_reached_code.name_of_class(one), one) for one in bases), key=lambda pair: pair[0]):
            for member, value in self.stored_by(kind).found:
                if member in named:
                    self.named_by_wrapper(f"{self.root(name, kind)}.{member}", value)

    # --- Values

    def value(self, path: str, value: Any) -> None:
        try:
            self._value(path, value)
        except errors.NotRecordable:
            if not self.is_tolerant:
                raise

    def _value(self, path: str, value: Any) -> None:
        if len(self.found.facts) > self.readers.most_facts:
            raise errors.NotRecordable(f"{path}: the function reaches more than {self.readers.most_facts} values: pass only the values that it needs")
        if type(value) in _plain_values.KINDS:  # the usual case
            self.expect_shallow(path)
            self.fact(path, _plain_values.text_of(value))
            return
        read = self.read.get(id(value))
        if read is not None:  # the object was read before, e.g. a configuration that each module has
            self.objects.setdefault(path, value)
            self.fact(path, f"is {read[0]}")
            return
        readers = self.readers.of(value)
        if not readers.is_plain:
            self.objects.setdefault(path, value)
        for reader in readers.single:
            if reader(self, path, value) is not False:
                return
        self.expect_shallow(path)
        if id(value) in self.opened:
            self.fact(path, f"the {type(value).__qualname__} around it, {len(self.opened) - self.opened.index(id(value))} up")
            return
        self.opened.append(id(value))
        try:
            for reader in readers.nested:
                if reader(self, path, value) is not False:
                    break
        finally:
            self.opened.pop()
        if not isinstance(value, tuple):
            self.read[id(value)] = path, value

    def members(self, path: str, members: dict[str, Any], is_read: Callable[[str], bool] | None = None) -> None:
        """Reads the members that code names, sorted by name. If `is_read` is given, reads the members that it accepts, in their order.
        Skips a member that cannot be compared if no read code names it."""
        for name, one in list(members.items()) if is_read else sorted(members.items()):
            if not (is_read(name) if is_read else name in self.names):
                continue
            if type(one) in _plain_values.KINDS and len(self.found.facts) < self.readers.most_facts:  # the usual case, never refused
                self.fact(f"{path}.{name}", _plain_values.text_of(one))
                continue
            before = self._checkpoint()
            try:
                self._value(f"{path}.{name}", one)
            except errors.NotRecordable:
                self._roll_back(before)
                if name in self.reached.names and not self.is_tolerant:
                    raise

    def named(self, path: str, value: Any) -> None:
        """Reads a global or a closure's value that some function names."""
        if path not in self.found.facts:
            self.value(path, value)

    def named_by_wrapper(self, path: str, value: Any) -> None:
        """Reads a value in the closure of a library's wrapper. Skips it if it cannot be compared."""
        before = self._checkpoint()
        try:
            self.named(path, value)
        except errors.NotRecordable:
            self._roll_back(before)

    def fact(self, path: str, text: str, longest: int = _LONGEST) -> None:
        self.found.facts[path] = _plain_values.shortened(text, longest)

    def root(self, name: str, of: Any) -> str:
        """A path that only this object has. For example, two functions with the same name get two paths."""
        path, count = name, 1
        while self._roots.setdefault(path, id(of)) != id(of):
            count += 1
            path = f"{name}~{count}"
        return path

    def expect_shallow(self, path: str) -> None:
        if len(self.opened) > _DEEPEST:
            raise errors.NotRecordable(f"{path} is nested more than {_DEEPEST} deep")

    def _text_of_function(self, value: types.FunctionType) -> str:
        """Describes the function that a name refers to. The function's closure is read where the walk finds the function itself."""
        return f"function {self.root(value.__name__, value)} {_code_objects.code_digest(value.__code__).hex()}"

    def _checkpoint(self) -> tuple[int, ...]:
        return *map(len, self._dicts), *map(len, self._lists)

    def _roll_back(self, checkpoint: tuple[int, ...]) -> None:
        for held, size in zip(self._dicts, checkpoint):
            while len(held) > size:
                held.popitem()
        for one, size in zip(self._lists, checkpoint[len(self._dicts):]):
            del one[size:]
        self.taken = [one for one in self.taken if one[0] < len(self.places)]

    # --- Classes

    def stored_in(self, kind: type) -> list[tuple[str, Any]]:
        """The attributes that a class and its bases store."""
        if kind not in self.stored:
            self.stored[kind] = list(_stored_attributes.of_classes(kind, self.stored_by))
        return self.stored[kind]

    def stored_by(self, kind: type) -> _stored_attributes.StoredAttributes:
        """The attributes that one class stores. A later change of the class is found through the watched objects."""
        known = self.known_classes.get(id(kind))
        if known is None:
            known = self.known_classes[id(kind)] = _stored_attributes.stored_by(kind)
        return known

    def is_library_class(self, kind: type) -> bool:
        return any(one not in _PLAIN_BASES and self.reached.is_library(one.__module__, None) for one in kind.__mro__)

    def is_library_module(self, module: types.ModuleType) -> bool:
        return bool(self.reached.is_library(module.__name__, getattr(module, "__file__", None)))

    # --- Objects that are checked before a later call, if the readers watch them

    def watch(self, look: Callable[[], tuple[Any, ...]]) -> None:
        if self.readers.is_watching:
            self.watched.append(_identity_checks.WatchedObjects(look))

    def watch_dict(self, held: Any) -> None:
        if self.readers.is_watching:
            self.watched.append(_identity_checks.of_dict(held))

    def watch_object(self, value: Any, held: dict[str, Any]) -> None:
        if self.readers.is_watching:
            self.watched.append(_identity_checks.of_object(value, held))

    def watch_function(self, function: types.FunctionType) -> None:
        if self.readers.is_watching:
            self.watched.append(_identity_checks.of_function(function))

    def watch_class(self, kind: type) -> None:
        if kind in self._classes_watched or not self.readers.is_watching:
            return
        self._classes_watched.add(kind)
        _stored_attributes.leave_slot_names(kind)
        for one in kind.__mro__:
            if one not in self.watched_classes and one not in self.readers.unwatched:
                self.watched_classes[one] = self.stored_by(one).watched

    def _watch_functions(self) -> None:
        for function, names in zip(self.reached.functions, self.reached.globals):
            self.watched.append(_identity_checks.of_items(function.__globals__, names))
            self.watched.append(_identity_checks.of_function(function))
            for held in (function.__dict__, function.__kwdefaults__):
                if held is not None:
                    self.watch_dict(held)


_ABSENT = object()
_PAST = {"__class__", "__mro__", "__bases__", "__base__", "mro"}
_PAST_BY_CALL = {"super", "type"}
_PLAIN_BASES = (object, abc.ABC, Generic, Protocol, tuple, list, dict, set, frozenset, int, float, str, bytes)
