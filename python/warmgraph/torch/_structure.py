"""Code that compares the arguments of a call with those of one that was read, and gives their tensors: a test for each value and for each
class, in the order of the values. What it cannot tell apart as the walk does has no such code."""
from __future__ import annotations

import dataclasses
import enum
import types
from typing import Any, Callable, Mapping, Optional, Sequence

import torch

from .. import _leaves, _objects, _walk
from .._compiled import CachedFunction
from . import _code, _tensors

_MOST = 512  # values: each is a line of code
_BY_VALUE = (int, str, bytes)
_BY_IDENTITY = (torch.dtype, torch.layout, torch.memory_format)
_OTHERS = (torch.nn.Module, CachedFunction, types.ModuleType, tuple, list, dict, set, frozenset, *_walk._PLAIN)
Reader = Callable[[tuple[Any, ...], dict[str, Any]], Optional[tuple[Any, ...]]]


class NoCode(Exception):
    """Such arguments are read each time."""


@dataclasses.dataclass
class Arguments:
    """`read(args, kwargs)`: None where they are others, else what `values` was, which is empty now: tensors and objects in that order.
    `classes`: namespaces that must stay as they are."""

    read: Reader
    values: list[Any]
    classes: list[dict[Any, Any]]


class _Writer:
    def __init__(self, reached: _code.Reached, around: frozenset[int]) -> None:
        self._reached = reached
        self._lines: list[str] = []
        self._constants: dict[str, Any] = {"around": around}
        self._distinct: list[str] = []  # what must not be one object
        self._seen: set[int] = set()
        self.values: list[tuple[str, Any]] = []
        self.classes: list[dict[Any, Any]] = []

    def arguments(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        self._expect(f"len(args) == {len(args)} and {f'tuple(kwargs) == {self._constant(tuple(kwargs))}' if kwargs else 'not kwargs'}")
        for i, one in enumerate(args):
            self._value(f"args[{i}]", one)
        for name, one in kwargs.items():
            self._value(f"kwargs[{name!r}]", one)

    def function(self) -> Reader:
        if len(self._distinct) > 1:
            self._expect(f"len({{{', '.join(f'id({one})' for one in self._distinct)}}}) == {len(self._distinct)}")
        if self._distinct:
            self._expect(f"around.isdisjoint(({''.join(f'id({one}), ' for one in self._distinct)}))")
        lines = ["def read(args, kwargs):", *self._lines, f"    return ({''.join(f'{name}, ' for name, _ in self.values)})"]
        exec(compile("\n".join(lines), "<arguments of a call>", "exec"), self._constants)
        return self._constants["read"]  # type: ignore[no-any-return]

    # --- tests

    def _expect(self, test: str) -> None:
        self._lines.append(f"    if not ({test}): return None")
        if len(self._lines) > 2 * _MOST:
            raise NoCode

    def _constant(self, value: Any) -> str:
        name = f"c{len(self._constants)}"
        self._constants[name] = value
        return name

    def _variable(self, at: str, value: Any) -> str:
        if id(value) in self._seen:  # the walk says where it was met first
            raise NoCode
        self._seen.add(id(value))
        name = f"v{len(self.values)}"
        self._lines.append(f"    {name} = {at}")
        self.values.append((name, value))
        return name

    def _value(self, at: str, value: Any) -> None:
        kind = type(value)
        if isinstance(value, enum.Enum) and not self._is_fixed(value):
            raise NoCode
        if value is None or kind is bool or isinstance(value, (enum.Enum, *_BY_IDENTITY)):
            self._expect(f"{at} is {self._constant(value)}")
        elif kind in _BY_VALUE or kind is float and value == value and value != 0:
            self._of_class(at, value, f"{at} == {self._constant(value)}")
        elif kind is float:
            self._of_class(at, value, f"{at}.hex() == {value.hex()!r}")
        elif kind in (torch.device, torch.Size):
            self._of_class(at, value, f"{at} == {self._constant(value)}")
        elif isinstance(value, torch.Tensor):
            self._tensor(at, value)
        elif kind in (list, tuple) or isinstance(value, tuple) and hasattr(kind, "_fields") and not hasattr(value, "__dict__"):
            name = self._object(at, value, f"len({{}}) == {len(value)}")
            for i, one in enumerate(value):
                self._value(f"{name}[{i}]", one)
        elif kind is dict:
            self._items(self._object(at, value), value)
        elif isinstance(value, type) and self._reached.is_library(value.__module__, None):
            self._expect(f"{at} is {self._constant(value)}")
        else:
            self._attributes(at, value)

    def _is_fixed(self, value: enum.Enum) -> bool:
        """It holds nothing that can be written."""
        return self._reached.is_library(type(value).__module__, None) \
            or isinstance(value.value, _walk._PLAIN) and not vars(value).keys() - _walk._OF_ENUMERATORS

    def _of_class(self, at: str, value: Any, test: str) -> None:
        self._expect(f"type({at}) is {self._constant(type(value))} and {test}")

    def _object(self, at: str, value: Any, test: str = "") -> str:
        name = self._variable(at, value)
        if value != ():  # there is one empty tuple
            self._distinct.append(name)
        self._expect(f"type({name}) is {self._constant(type(value))}" + (f" and {test.format(name)}" if test else ""))
        return name

    def _items(self, name: str, value: dict[Any, Any]) -> None:
        if any(type(key) is not str for key in value):
            raise NoCode
        self._expect(f"list({name}) == {self._constant(list(value))}")
        for key, one in value.items():
            self._value(f"{name}[{key!r}]", one)

    def _tensor(self, at: str, tensor: torch.Tensor) -> None:
        name, tests = self._variable(at, tensor), ["not {0}.requires_grad", "not {0}.is_neg()"]
        if not _tensors.is_plain(tensor) or tensor.requires_grad:
            raise NoCode
        if tensor.dtype.is_complex:
            tests.append("not {0}.is_conj()")
        if not tensor.__dict__:
            tests.append("not {0}.__dict__")
        if tensor.numel() == 0:
            self._distinct.append(name)
        self._expect(f"type({name}) is {self._constant(type(tensor))} and " + " and ".join(tests).format(name))
        if tensor.__dict__:  # marks of compilers (mark_static_address)
            self._items(f"{name}.__dict__", tensor.__dict__)

    def _attributes(self, at: str, value: Any) -> None:
        """Of a plain object: all of them, which are more than the walk may read."""
        kind = type(value)
        if callable(value) or isinstance(value, _OTHERS) or _leaves.leaf_of(value) is not None or _walk._text_of(value) is not None or _walk._slots(kind) \
                or "__getattribute__" in {name for one in kind.__mro__[:-1] for name in one.__dict__} or type(getattr(value, "__dict__", None)) is not dict:
            raise NoCode
        self._class(kind)
        name = self._object(at, value)
        held_name = f"{name}d"
        self._lines.append(f"    {held_name} = {name}.__dict__")
        self._items(held_name, value.__dict__)

    def _class(self, kind: type) -> None:
        """It stays as it is, and so does what it stores."""
        for name, member in _walk._of_classes(kind):
            if name in self._reached.names and not name.startswith("__") and not (is_fixed(member) or isinstance(member, type)):
                raise NoCode
        for one in kind.__mro__:
            held = _objects.dict_of(one.__dict__)
            if held is None:
                raise NoCode
            if one is not object:
                self.classes.append(held)


def arguments_of(args: Sequence[Any], kwargs: Mapping[str, Any], reached: _code.Reached, around: frozenset[int]) -> Arguments:
    """NoCode where they must be read each time. `around`: objects that the function finds elsewhere, which no argument is."""
    writer = _Writer(reached, around)
    writer.arguments(args, kwargs)
    return Arguments(writer.function(), [value for _, value in writer.values], writer.classes)


def is_fixed(value: Any) -> bool:
    """A default of a parameter that cannot change."""
    return isinstance(value, (*_walk._PLAIN, enum.Enum, *_BY_IDENTITY, torch.device)) or type(value) is tuple and all(map(is_fixed, value))
