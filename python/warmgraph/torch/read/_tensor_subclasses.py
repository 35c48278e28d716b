"""Tensors of subclasses that consist of other tensors (__tensor_flatten__), e.g. quantised weights: their parts, and the same tensor of other
parts."""
from __future__ import annotations

from typing import Any, Callable, Iterator, TypeGuard

import torch

from warmgraph import errors
from warmgraph.reading import _stored_attributes
from warmgraph.torch.read import _tensors

_IS_PARAMETER = "_is_param"  # an attribute by which torch.nn.Parameter marks a tensor of a subclass


def has_parts(tensor: Any) -> TypeGuard[torch.Tensor]:
    return isinstance(tensor, torch.Tensor) and not _tensors.is_plain(tensor) \
        and all(callable(getattr(type(tensor), name, None)) for name in ("__tensor_flatten__", "__tensor_unflatten__"))


def parts_of(tensor: torch.Tensor) -> tuple[dict[str, torch.Tensor], Any]:
    """Returns the parts by name, and the context that __tensor_unflatten__ needs besides them."""
    names, context = tensor.__tensor_flatten__()  # type: ignore[attr-defined]
    return {name: getattr(tensor, name) for name in names}, context


def plain_tensors(tensor: torch.Tensor | None) -> Iterator[torch.Tensor]:
    """The tensor itself, or the plain tensors of which it consists."""
    if has_parts(tensor):
        for part in parts_of(tensor)[0].values():
            yield from plain_tensors(part)
    elif tensor is not None:
        yield tensor


def why_unusable(tensor: torch.Tensor) -> str:
    """Why the tensor is more than its parts, its context and its attributes, or ""."""
    kind = f"{type(tensor).__module__}.{type(tensor).__qualname__}, a subclass of torch.Tensor"
    slots = [name for name in _stored_attributes.slots(type(tensor)) if name not in ("__dict__", "__weakref__")]
    if slots:
        return f"is a {kind} with the slot {slots[0]!r}: pass the tensors that it holds"
    if tensor._backward_hooks or getattr(tensor, "_post_accumulate_grad_hooks", None):
        return f"is a {kind} with a hook: remove the hook"
    if tensor.requires_grad:
        return f"is a {kind} that requires grad: call requires_grad_(False)"
    parts, _ = parts_of(tensor)
    for name, value in vars(tensor).items():
        if isinstance(value, torch.Tensor) and parts.get(name) is not value:
            return f"is a {kind} with the tensor {name!r}, which its __tensor_flatten__ does not name: pass the tensors that it holds"
    missing = next((name for name, part in parts.items() if vars(tensor).get(name) is not part), None)
    return f"is a {kind} whose part {missing!r} is no attribute: pass the tensors that it holds" if missing is not None else ""


def of_other_parts(path: str, tensor: torch.Tensor, other: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    """The same tensor of the parts that `other` returns for its parts. Raises NotRecordable if its class does not make it again as it is."""
    parts, context = parts_of(tensor)
    kind: Any = type(tensor)
    with torch.no_grad():
        made: torch.Tensor = kind.__tensor_unflatten__({name: other(part) for name, part in parts.items()}, context, tensor.size(), tensor.stride())
    if type(made) is not kind or _tensors.described(made) != _tensors.described(tensor):
        raise errors.NotRecordable(f"{path} is a {kind.__module__}.{kind.__qualname__}, but its __tensor_unflatten__ makes another tensor")
    if _IS_PARAMETER in vars(tensor):
        vars(made)[_IS_PARAMETER] = True
    for name in {**vars(tensor), **vars(made)}:
        if name not in parts and not _is_same(vars(tensor).get(name, tensor), vars(made).get(name, made)):
            raise errors.NotRecordable(f"{path} has the attribute {name!r}, which the __tensor_unflatten__ of {kind.__module__}.{kind.__qualname__} "
                                       "does not restore: keep it in the context of __tensor_flatten__")
    return made


def _is_same(one: Any, other: Any) -> bool:
    return one is other or type(one) is type(other) and not isinstance(one, torch.Tensor) and bool(one == other)
