"""Keeps the objects that a call found, and compares them by identity with the current ones."""
from __future__ import annotations

import operator
import types
from typing import Any, Callable, Mapping, Protocol, Sequence

from warmgraph.reading import _native_snapshots


class Item:
    """One item of a dictionary or a class. The call returns None when the item does not exist."""

    def __init__(self, mapping: Mapping[Any, Any], key: Any) -> None:
        self.mapping, self.key = mapping, key

    def __call__(self) -> Any:
        return self.mapping.get(self.key)


class Code(Protocol):
    """The code that a call may run (see _reached_code.ReachedCode)."""

    def items(self) -> list[Item]: ...
    def is_current(self) -> bool: ...
    def is_rest_current(self) -> bool: ...


class WatchedObjects:
    """The objects in a container, to compare later. `look` returns them as a tuple. The library can check `dict`, `items` and `object`
    (with its class) natively."""

    is_owned = False  # whether the dictionary holds the object's own attributes
    more: Sequence[dict[Any, Any]] = ()  # further dictionaries whose contents are compared, too
    attributes: Sequence[tuple[Any, str, Any]] = ()  # (object, name, value of getattr), if the container has nothing but these attributes

    def __init__(self, look: Callable[[], tuple[Any, ...]], dict: Any = None, items: Sequence[Item] | None = None, object: Any = None) -> None:
        self._look, self._held = look, look()
        self.dict, self.items, self.object = dict, items, object

    def is_same(self) -> bool:
        now = self._look()
        return len(now) == len(self._held) and all(map(operator.is_, now, self._held))


class _WatchedDict(WatchedObjects):
    """A watched dictionary. The class is small, because a call that reads a model makes a thousand of them."""

    def __init__(self, held: Any, object: Any = None, keys: list[Any] | None = None, values: list[Any] | None = None) -> None:
        """keys, values: the dictionary's contents when the caller read it."""
        self._mapping, self._keys, self._values = held, list(held) if keys is None else keys, list(held.values()) if values is None else values
        self._kind = type(object)
        self.dict, self.items, self.object = _native_snapshots.dict_of(held), None, object
        self.is_owned = object is not None and _native_snapshots.are_attributes_in(held, object)

    def is_same(self) -> bool:
        held = self._mapping
        return len(held) == len(self._keys) and all(map(operator.is_, held, self._keys)) and all(map(operator.is_, held.values(), self._values)) \
            and type(self.object) is self._kind and (not self.is_owned or _native_snapshots.are_attributes_in(held, self.object))


class _WatchedParts(_WatchedDict):
    """An object's attributes and the dictionaries among them, most of which are empty. A model has hundreds of such objects."""

    def __init__(self, object: Any, held: Any, parts: Sequence[dict[Any, Any]]) -> None:
        super().__init__(held, object)
        self.more = parts
        self._items = [(list(one), list(one.values())) if one else _NO_ITEMS for one in parts]

    def is_same(self) -> bool:
        for one, (keys, values) in zip(self.more, self._items):
            if len(one) != len(keys) or keys and not (all(map(operator.is_, one, keys)) and all(map(operator.is_, one.values(), values))):
                return False
        return super().is_same()


_NO_ITEMS: tuple[list[Any], list[Any]] = ([], [])


class _WatchedList(WatchedObjects):
    def __init__(self, held: list[Any]) -> None:
        self.list, self.held = held, list(held)
        self.dict = self.items = self.object = None

    def is_same(self) -> bool:
        return len(self.list) == len(self.held) and all(map(operator.is_, self.list, self.held))


class _WatchedFunction(WatchedObjects):
    """A function's code, defaults and closure."""

    def __init__(self, function: types.FunctionType) -> None:
        names: list[tuple[Any, str]] = [(function, name) for name in ("__code__", "__defaults__", "__kwdefaults__")]
        names += [(cell, "cell_contents") for cell in function.__closure__ or ()]
        self.attributes = [(one, name, _attribute(one, name)) for one, name in names]
        self.dict = self.items = self.object = None

    def is_same(self) -> bool:
        for one, name, value in self.attributes:
            if _attribute(one, name) is not value:
                return False
        return True


def _attribute(one: Any, name: str) -> Any:
    """The attribute's value, or ABSENT when it does not exist: a cell may be empty."""
    try:
        return getattr(one, name)
    except (AttributeError, ValueError):
        return _native_snapshots.ABSENT


def of_list(held: list[Any]) -> WatchedObjects:
    return _WatchedList(held)


def of_function(function: types.FunctionType) -> WatchedObjects:
    return _WatchedFunction(function)


def of_dict(held: Any, keys: list[Any] | None = None, values: list[Any] | None = None) -> WatchedObjects:
    """Watches a dictionary, or a class's namespace. keys, values: its contents when the caller read it."""
    return _WatchedDict(held, None, keys, values)


def of_object(value: Any, held: Any) -> WatchedObjects:
    """Watches the attributes of an object, and its class."""
    return _WatchedDict(held, value)


def of_parts(value: Any, held: Any, parts: Sequence[Any]) -> list[WatchedObjects]:
    """The same as of_object() for the object and of_dict() for each part."""
    if not all(type(one) is dict or _native_snapshots.dict_of(one) is one for one in parts):
        return [of_object(value, held), *map(of_dict, parts)]
    return [_WatchedParts(value, held, parts)]


def of_items(mapping: Mapping[Any, Any], keys: Sequence[Any]) -> WatchedObjects:
    return WatchedObjects(lambda: tuple(map(mapping.get, keys)), items=[Item(mapping, key) for key in keys])


class Watch:
    """Compares many watched objects with their state when the Watch was made. Dictionaries are compared natively."""

    def __init__(self, watched: Sequence[WatchedObjects], items: Sequence[Item] = ()) -> None:
        """Makes `snapshot`, which holds the native checks, and `rest`, which holds the other checks."""
        wholes = {id(one.dict): one.dict for one in watched if one.dict is not None}
        wholes.update((id(part), part) for one in watched for part in one.more)
        singles: dict[tuple[int, Any], tuple[dict[Any, Any], Any]] = {}
        rest = [one for one in watched if one.dict is None and not isinstance(one, (_WatchedList, _WatchedFunction))
                and not (one.items is not None and self._has_all(singles, one.items))]
        rest += [WatchedObjects(lambda item=item: (item(),)) for item in items if not self._has_all(singles, [item])]  # type: ignore[misc]
        self.rest = [one.is_same for one in rest]
        self.snapshot = _native_snapshots.Snapshot(
            list(wholes.values()), [pair for key, pair in singles.items() if key[0] not in wholes],
            [(one.list, one.held) for one in watched if isinstance(one, _WatchedList)],
            [(one.object, one.dict if one.is_owned else None, type(one.object)) for one in watched if one.object is not None and one.dict is not None],
            [look for one in watched for look in one.attributes])

    def are_same(self) -> bool:
        if not self.snapshot.is_same():
            return False
        for is_same in self.rest:
            if not is_same():
                return False
        return True

    @staticmethod
    def _has_all(singles: dict[tuple[int, Any], tuple[dict[Any, Any], Any]], items: Sequence[Item]) -> bool:
        """Whether all items are in dictionaries that can be checked natively. If so, adds the items to `singles`."""
        held = [_native_snapshots.dict_of(item.mapping) for item in items]
        if any(one is None for one in held):
            return False
        for one, item in zip(held, items):
            assert one is not None
            singles[id(one), item.key] = one, item.key
        return True


class WatchedState:
    """All watched objects, and the code that may run. After a first check has passed, further checks are native."""

    def __init__(self, watched: Sequence[WatchedObjects], reached: Code | None = None) -> None:
        self._watched, self._reached = watched, reached
        self._watch: Watch | None = None

    def is_same(self) -> bool:
        """Whether all objects are the same as when they were found."""
        reached = self._reached
        if self._watch is not None:
            return self._watch.are_same() and (reached is None or reached.is_rest_current())
        # The Watch is made before the comparison: if another thread changes something after the comparison, the next check sees it.
        watch = Watch(self._watched, reached.items() if reached is not None else ()) if _native_snapshots.is_possible() else None
        same = all(one.is_same() for one in self._watched) and (reached is None or reached.is_current())
        if same:
            self._watch = watch
        return same

    def looks(self) -> tuple[_native_snapshots.Snapshot, list[Callable[[], bool]]] | None:
        """The checks that together decide whether all objects are the same. None if one has changed already."""
        if not self.is_same() or self._watch is None:
            return None
        reached = [] if self._reached is None else [self._reached.is_rest_current]
        return self._watch.snapshot, [*self._watch.rest, *reached]
