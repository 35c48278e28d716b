"""Readers of modules, compiled modules included."""
from __future__ import annotations

import types
from typing import Any, Iterable

import torch

from warmgraph import errors
from warmgraph.reading import _identity_checks, _plain_values, _reached_code
from warmgraph.reading._walker import Walker
from warmgraph.torch.read import _modules, _tensors
from warmgraph.torch.read._tensor_readers import TORCH, read_tensor, via_of

__all__ = ["TORCH", "read_module"]

_LONGEST = 2000  # the most letters of the fact with a module's plain values
_NONE = _plain_values.text_of(None)


@TORCH.reads(torch.nn.Module)
def _read_known_or_anew(walker: Walker, path: str, module: torch.nn.Module) -> None:
    if walker.known is not None and walker.is_around:
        walker.known.read(walker, path, module)
    else:
        read_module(walker, path, module)


def read_module(walker: Walker, path: str, module: torch.nn.Module) -> None:
    kind = type(module)
    if isinstance(module, torch.jit.ScriptModule):
        raise errors.NotRecordable(f"{path} is a torch.jit.ScriptModule, whose code is not read: use the module that it was made of")
    inner = _modules.compiled_from(module)
    if inner is not None:
        walker.fact(path, f"compiled {_modules.how_compiled(module)}", _LONGEST)
        _note_compiled(walker, path, module)
        walker.value(f"{path}._orig_mod", inner)
        return
    if _modules.is_compiled(module):
        walker.fact(f"{path}._compiled_call_impl", f"compiled {_modules.how_compiled(module)}", _LONGEST)
        walker.compiled_via.add(via_of(walker, path))
    walker.classes.setdefault(kind, False)
    walker.watch_class(kind)
    parts = (module._parameters, module._buffers, module._modules, module._forward_hooks, module._forward_pre_hooks)
    walker.watched += _identity_checks.of_parts(module, module.__dict__, parts)
    if module._forward_hooks or module._forward_pre_hooks:
        for held in _modules.kinds_of_hooks(module):
            walker.watch_dict(held)
    others = _read_plain_values(walker, path, module)
    held_parts: tuple[dict[str, Any], ...] = (module._parameters, module._buffers, module._modules)
    for held in held_parts:
        for name, value in list(held.items()):
            below = f"{path}.{name}"
            if value is None:
                walker.fact(below, _NONE)
            elif not walker.is_tolerant and type(value) in _tensors.PLAIN_TYPES:  # most members of a model: read them in the fastest way
                walker.objects.setdefault(below, value)
                read_tensor(walker, below, value)
            else:
                walker.value(below, value)
    walker.members(path, others, lambda _: True)
    _read_hooks(walker, path, module)


def _read_plain_values(walker: Walker, path: str, module: torch.nn.Module) -> dict[str, Any]:
    """Writes all plain values of a module, and the order of its parts, as one fact. Returns the other attributes."""
    kind, plain, others = type(module), [], {}
    for name, value in _modules.attributes_of(module, _values_of_class(walker, kind)):
        if type(value) in _plain_values.KINDS:
            plain.append(f"{name}={_plain_values.text_of(value)}")
        else:
            others[name] = value
    order = f" of {' '.join((*module._parameters, *module._buffers, *module._modules))}"  # code that iterates over the parts sees the order
    walker.fact(path, f"{_reached_code.name_of_class(kind)} {' '.join(plain)}{order}".strip(), _LONGEST)
    return others


def _values_of_class(walker: Walker, kind: type) -> dict[str, Any]:
    """Values that a module's classes store: all plain values, and other values whose names the code uses."""
    if kind not in walker.values_of_classes:
        found: dict[str, Any] = {}
        for one in kind.__mro__:
            for name, value in walker.stored_by(one).plain if one not in (torch.nn.Module, object) else ():
                found.setdefault(name, value)
        for name, value in walker.stored_in(kind):
            if name in walker.names:
                found.setdefault(name, value)
        walker.values_of_classes[kind] = found
    return walker.values_of_classes[kind]


def _read_hooks(walker: Walker, path: str, module: torch.nn.Module) -> None:
    for name in filter(module.__dict__.get, _modules.HOOKS):
        for at, (number, hook) in enumerate(list(getattr(module, name, {}).items())):
            walker.value(f"{path}.{name}[{at}]", hook)
            kinds = _modules.kinds_of_hook(module, name, number)
            if kinds:
                walker.fact(f"{path}.{name}[{at}] is called", kinds)


def _note_compiled(walker: Walker, path: str, module: Any) -> None:
    """Notes the object that torch.compile returned around a module."""
    outside = _modules.hooks_outside(module)
    if outside:
        raise errors.NotRecordable(f"{path} has {outside} on the result of torch.compile, and these run around the compiled code: register them on "
                                   "the module that was compiled")
    walker.compiled_via.add(via_of(walker, path))
    walker.watch_object(module, module.__dict__)
    for held in (module._modules, *(module.__dict__[name] for name in _modules.HOOKS)):
        walker.watch_dict(held)


def _begin_surroundings(walker: Walker, owner: Any) -> Any:
    """Notes how the functions in the surroundings are compiled. For a compiled module, returns the original module, so that it is read
    instead."""
    for function, names in zip(walker.reached.functions, walker.reached.globals):
        _read_compiled_functions(walker, function, names)
    given = _reached_code.held_by_compiled(walker.reached.target)
    if given is not None and not isinstance(given, types.MethodType):  # the owner of a method is read as "self"
        walker.value(walker.root("function", given), given)
    inner = _modules.compiled_from(owner)
    if inner is None:
        return owner
    _note_compiled(walker, walker.root("self", inner), owner)
    return inner


TORCH.begin_surroundings = _begin_surroundings


def _read_compiled_functions(walker: Walker, function: types.FunctionType, names: Iterable[str]) -> None:
    """For each function from torch.compile that `function` names, notes how it is compiled. Its code is followed like that of the original
    function. If a method was given to torch.compile, the method's object is read, and any other object itself."""
    for name, value in [*((name, function.__globals__.get(name)) for name in names), *_reached_code.closed_over(function)]:
        if isinstance(value, types.FunctionType) and "_torchdynamo_orig_callable" in value.__dict__:
            walker.compiled_via.add("elsewhere")
            walker.fact(f"{function.__qualname__}.{name} compiled", _modules.how_compiled(value))
            given, path = _reached_code.held_by_compiled(value), f"{walker.root(function.__name__, function)}.{name}"
            if isinstance(given, types.MethodType):
                walker.named(f"{path}.__self__", given.__self__)
            elif given is not None:
                walker.named(f"{path}.__wrapped__", given)
