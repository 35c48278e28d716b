"""Reads modules natively (wg_modules_read), as Walker._read_one does: a model has hundreds."""
from __future__ import annotations

import collections
import functools
import types
from typing import Any

import torch

from .. import _c, _objects, _walk, _watch
from . import _modules, _tensors

_DEVICE_TYPES = {"cpu": 1, "cuda": 2}  # DLDeviceType
_PARTS = frozenset({"_parameters", "_buffers", "_modules", "_forward_hooks", "_forward_pre_hooks"})
_OF_ARRAYS = ("__dlpack__", "__cuda_array_interface__")


def is_possible() -> bool:
    return _objects.are_modules_readable()


def is_common(kind: type) -> bool:
    """Whether all that a walk reads of such modules lies in the dictionaries of each."""
    if issubclass(kind, (torch.jit.ScriptModule, torch.Tensor, *_walk._PLAIN)) or _modules.is_kind_of_compiled(kind):
        return False
    if kind.__getattribute__ is not object.__getattribute__ or getattr(kind, "_compiled_call_impl", None) is not None:
        return False
    return not any(hasattr(kind, name) for name in _OF_ARRAYS) and all(map(_is_common_base, kind.__mro__))


def _is_common_base(kind: type) -> bool:
    held = kind.__dict__
    return _PARTS.isdisjoint(held) and type(held.get("__dict__")) in (type(None), types.GetSetDescriptorType)


def read(path: str, module: torch.nn.Module, watched: list[Any], /, **walk: Any) -> None:
    """`walk`: what a wg_module_walk says of the walk that meets the module. What the module holds is among `watched` from then on."""
    modules = _objects.Modules()
    watched.append(_watch.of_modules(modules))
    objects = {**walk, **_of_torch(), "kept": modules.kept}  # which live as long as the call
    numbers = {name: value for name, value in objects.items() if isinstance(value, int)}
    raw = _c.wg_module_walk(device_type=_DEVICE_TYPES[_tensors.DEVICE_TYPE], **numbers,
                            **{name: id(value) for name, value in objects.items() if name not in numbers})
    exchange = _objects.exchange_of(torch.Tensor)
    if exchange is not None:
        raw.read_tensor = _c.wg_dltensor_reader(exchange)
    modules.read(raw, path, module)


@functools.cache
def _of_torch() -> dict[str, Any]:
    return {"module_type": torch.nn.Module, "tensor": torch.Tensor, "parameter": torch.nn.Parameter,
            "ordered_dict": collections.OrderedDict, "is_negated": torch.Tensor.is_neg}


def text_of(value: Any) -> str | None:
    """Of a plain value."""
    return _walk.plain_text(value) if type(value) in _walk._PLAIN else None
