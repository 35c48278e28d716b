"""Reads modules natively (wg_modules_read), as Walker._read_one does: a model has hundreds. And values (wg_modules_read_value), as
Walker._value does: configurations and caches have hundreds, too."""
from __future__ import annotations

import abc
import collections
import dataclasses
import functools
import sys
import types
from typing import Any, Generic, Mapping, Protocol

import torch

from .. import _attributes, _c, _code, _objects, _plain, _watch, errors
from . import _modules, _tensors

_DEVICE_TYPES = {"cpu": 1, "cuda": 2}  # DLDeviceType
_PARTS = frozenset({"_parameters", "_buffers", "_modules", "_forward_hooks", "_forward_pre_hooks"})
_OF_ARRAYS = ("__dlpack__", "__cuda_array_interface__")
_NOT_COMMON = frozenset({"__call__", "__class__", *_OF_ARRAYS})
_BASES = (object, abc.ABC, Generic, Protocol)
_READ_IN_PYTHON = {*sys.stdlib_module_names, "torch", "triton", "numpy", "warmgraph"}
_IS_MADE_BY_CODE = 1 << 9  # Py_TPFLAGS_HEAPTYPE


def is_possible() -> bool:
    return _objects.are_modules_readable()


def is_common(kind: type) -> bool:
    """Whether all that a walk reads of such modules lies in the dictionaries of each."""
    if issubclass(kind, (torch.jit.ScriptModule, torch.Tensor, *_plain.KINDS)) or _modules.is_kind_of_compiled(kind):
        return False
    if kind.__getattribute__ is not object.__getattribute__ or getattr(kind, "_compiled_call_impl", None) is not None:
        return False
    return not any(hasattr(kind, name) for name in _OF_ARRAYS) and all(map(_is_common_base, kind.__mro__))


def _is_common_base(kind: type) -> bool:
    held = kind.__dict__
    return _PARTS.isdisjoint(held) and type(held.get("__dict__")) in (type(None), types.GetSetDescriptorType)


def is_common_object(kind: type) -> bool:
    """Whether all that a walk reads of such objects is their class and what lies in a dictionary of each: none of a framework's or of Python's
    own, which the walk knows by name, none that is called, and no array."""
    return type(kind) in (type, abc.ABCMeta) and kind not in _BASES and not issubclass(kind, torch.nn.Module) and all(map(_is_common_base_of_object, kind.__mro__)) \
        and not _attributes.has_hidden_state(kind)


def _is_common_base_of_object(kind: type) -> bool:
    held = kind.__dict__
    return kind in _BASES or bool(kind.__flags__ & _IS_MADE_BY_CODE) and kind.__module__.split(".")[0] not in _READ_IN_PYTHON \
        and not held.get("__slots__") and _NOT_COMMON.isdisjoint(held) and type(held.get("__dict__")) in (type(None), types.GetSetDescriptorType)


def plan_of_object(kind: type, is_library: bool, of_classes: Mapping[str, Any]) -> tuple[Any, ...]:
    """How objects of a class are read natively, as python.h says it. of_classes: what its classes store and code names."""
    fields = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) and not is_library else ()
    names = tuple(sorted(of_classes))
    return (_code.name_of_class(kind), is_library, tuple(one.name for one in fields), names, tuple(map(of_classes.__getitem__, names)))


class Reader:
    """For one walk of a module, or of some values. What they hold is among `watched` from then on."""

    def __init__(self, watched: list[Any], /, **walk: Any) -> None:
        """`walk`: what a wg_module_walk says of the walk that meets them."""
        self._modules = _objects.Modules()
        watched.append(_watch.of_modules(self._modules))
        self._objects = {**walk, **_of_torch(), "watched": watched, "kept": self._modules.kept}  # which live as long as the reader
        numbers = {name: value for name, value in self._objects.items() if isinstance(value, int)}
        self._raw = _c.wg_module_walk(device_type=_DEVICE_TYPES[_tensors.DEVICE_TYPE], **numbers,
                                      **{name: id(value) for name, value in self._objects.items() if name not in numbers})
        exchange = _objects.exchange_of(torch.Tensor)
        if exchange is not None:
            self._raw.read_tensor = _c.wg_dltensor_reader(exchange)

    def module(self, path: str, module: torch.nn.Module) -> None:
        self._modules.read(self._raw, path, module)

    def value(self, path: str, value: Any) -> None:
        self._modules.read_value(self._raw, path, value)


@functools.cache
def _of_torch() -> dict[str, Any]:
    return {"module_type": torch.nn.Module, "tensor": torch.Tensor, "parameter": torch.nn.Parameter,
            "ordered_dict": collections.OrderedDict, "refusal": errors.NotRecordable,
            "is_negated": torch.Tensor.is_neg}


def text_of(value: Any) -> str | None:
    """Of a plain value."""
    return _plain.text_of(value) if type(value) in _plain.KINDS else None
