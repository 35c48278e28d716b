"""Writes tests that compare a call's arguments with those of an earlier call. Raises NoTests for values that only a walk can compare."""
from __future__ import annotations

import dataclasses
import enum
import types
from typing import Any, Iterable, Mapping, Sequence

import torch

from warmgraph.arrays import _array_arguments
from warmgraph.calls._cached_function import CachedFunction
from warmgraph.calls._steady_calls import Tests
from warmgraph.core.binding import _c
from warmgraph.reading import _native_snapshots, _plain_values, _stored_attributes, _value_readers
from warmgraph.torch.read import _installed_code, _tensors

_MOST = 1024  # the most tests of one call
_BY_VALUE = (int, str, bytes, torch.device, torch.Size)
_BY_IDENTITY = (torch.dtype, torch.layout, torch.memory_format)
_OTHERS = (torch.nn.Module, torch.optim.Optimizer, CachedFunction, types.ModuleType, tuple, list, dict, set, frozenset, *_plain_values.KINDS)
_NOT_LAZY, _NO_ATTRIBUTES = _c.wg_tensor_test_not_lazy, _c.wg_tensor_test_no_attributes


class NoTests(Exception):
    """The tests cannot cover these arguments, so each call must be read."""


@dataclasses.dataclass
class TestedArguments:
    """The tested values. `values`: (register, tensor or object) in the order of the walk. `classes`: namespaces of classes that must not
    change."""

    values: list[tuple[int, Any]]
    classes: list[dict[Any, Any]]


class _Writer:
    def __init__(self, tests: Tests, reached: _installed_code.TorchReachedCode) -> None:
        self._tests, self._reached, self._names = tests, reached, reached.attributes
        self._seen: set[int] = set()
        self._apart: list[int] = []  # registers of the objects that must all be different objects
        self.found = TestedArguments([], [])

    def arguments(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        self._all(self._tests.items(0, len(args)), args)
        self._all(self._tests.named(1, tuple(kwargs)), kwargs.values())
        for register in self._apart:
            self._tests.apart(register)

    def _all(self, first: int, values: Iterable[Any]) -> None:
        for register, one in enumerate(values, first):
            self._value(register, one)
            if len(self._tests) > _MOST:
                raise NoTests

    def _value(self, register: int, value: Any) -> None:
        kind, tests = type(value), self._tests
        if isinstance(value, enum.Enum) and not self._is_fixed(value):
            raise NoTests
        if value is None or kind in (bool, torch.Generator) or isinstance(value, (enum.Enum, *_BY_IDENTITY)):
            tests.same(register, value)
        elif kind in _BY_VALUE or kind is float and value == value and value != 0:
            tests.kind(register, kind)
            tests.equal(register, value)
        elif kind is float:
            tests.kind(register, kind)
            tests.bits(register, value)
        elif isinstance(value, torch.Tensor):
            self._tensor(register, value)
        elif kind in (list, tuple) or isinstance(value, tuple) and hasattr(kind, "_fields") and not hasattr(value, "__dict__"):
            self._object(register, value)
            self._all(tests.items(register, len(value)), value)
        elif kind is dict:
            self._object(register, value)
            self._items(register, value)
        elif isinstance(value, type) and self._reached.is_library(value.__module__, None):
            tests.same(register, value)
        else:
            self._attributes(register, value)

    def _is_fixed(self, value: enum.Enum) -> bool:
        """Whether the enumerator has nothing that can be written."""
        return self._reached.is_library(type(value).__module__, None) \
            or isinstance(value.value, _plain_values.KINDS) and not vars(value).keys() - _value_readers.OF_ENUMERATORS

    def _met(self, register: int, value: Any) -> None:
        if id(value) in self._seen:  # the walk gives only the first path of an object, so a second path is not tested
            raise NoTests
        self._seen.add(id(value))
        self.found.values.append((register, value))
        self._tests.kind(register, type(value))

    def _object(self, register: int, value: Any) -> None:
        self._met(register, value)
        if value != ():  # the empty tuple is a single object, which may occur many times
            self._apart.append(register)

    def _items(self, register: int, value: dict[Any, Any]) -> None:
        if any(type(key) is not str for key in value):
            raise NoTests
        self._all(self._tests.named(register, tuple(value)), value.values())

    def _tensor(self, register: int, tensor: torch.Tensor) -> None:
        if not _tensors.is_plain(tensor) or tensor.requires_grad:
            raise NoTests
        self._met(register, tensor)
        has_attributes = bool(tensor.__dict__)
        self._tests.tensor(register, _NOT_LAZY * _tensors.can_be_lazy(tensor), _NO_ATTRIBUTES * (not has_attributes))
        if tensor.numel() == 0:
            self._apart.append(register)
        if has_attributes:  # attributes that compilers set (mark_static_address)
            self._items(self._tests.attributes(register), tensor.__dict__)

    def _attributes(self, register: int, value: Any) -> None:
        """Tests a plain object's attributes: all of them, even those that the walk does not read."""
        kind = type(value)
        if callable(value) or isinstance(value, _OTHERS) or _array_arguments.argument_of(value) is not None or _value_readers.text_of(value) is not None or _stored_attributes.slots(kind) \
                or "__getattribute__" in {name for one in kind.__mro__[:-1] for name in one.__dict__} or type(getattr(value, "__dict__", None)) is not dict:
            raise NoTests
        self._class(kind)
        self._object(register, value)
        self._items(self._tests.attributes(register), value.__dict__)

    def _class(self, kind: type) -> None:
        """Tests that the class and the attributes that it stores do not change."""
        for name, member in _stored_attributes.of_classes(kind, _stored_attributes.stored_by):
            if name in self._names and not (is_fixed(member) or isinstance(member, type)):
                raise NoTests
        for one in kind.__mro__:
            held = _native_snapshots.dict_of(one.__dict__)
            if held is None:
                raise NoTests
            if one is not object:
                self.found.classes.append(held)


def expect(tests: Tests, args: Sequence[Any], kwargs: Mapping[str, Any], reached: _installed_code.TorchReachedCode) -> TestedArguments:
    """Writes tests of the arguments. Returns the tested values and their classes, in the order of the walk. Raises NoTests when each call
    must be read."""
    writer = _Writer(tests, reached)
    writer.arguments(args, kwargs)
    return writer.found


def is_fixed(value: Any) -> bool:
    """Whether a parameter's default cannot change."""
    return isinstance(value, (*_plain_values.KINDS, enum.Enum, *_BY_IDENTITY, torch.device)) or type(value) is tuple and all(map(is_fixed, value))
