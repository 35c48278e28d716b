"""Reads a call on PyTorch's tensors: finds each tensor by its path, and every plain value in arguments, modules and configurations."""
from __future__ import annotations

import dataclasses
import sys
import types
from typing import Any, Iterable, Mapping

import torch

from warmgraph import errors
from warmgraph.reading import _plain_values
from warmgraph.reading._walker import MOST_WALKS, Walker
from warmgraph.torch.read import _installed_code
from warmgraph.torch.read._optimizers import TORCH
from warmgraph.torch.read._shared_modules import ModulePart, SharedModules


def read(reached: _installed_code.TorchReachedCode, arguments: dict[str, Any], owner: Any, named: Mapping[str, Any] = types.MappingProxyType({}),
         known: SharedModules | None = None, is_tolerant: bool = False) -> tuple[Walker, _installed_code.TorchReachedCode]:
    """Reads a call. Repeats this until reading finds no new code. Returns the walk, and the code that the call may run. known: results of
    other functions' calls. is_tolerant: leaves out values that cannot be compared."""
    now: Any = reached.latest()
    classes = known.met(reached) if now is reached and known is not None else None
    if classes is not None:
        now = reached.with_met(classes, ())
    parts: list[ModulePart] = []  # parts that any of the walks used, kept alive because the next call will use them again
    for _ in range(MOST_WALKS):
        walker = Walker(now, TORCH, is_tolerant, known)
        walker.parts = parts
        with now.noted() as packages:
            walker.arguments(arguments)
            walker.surroundings(owner, named)
        met: Any = reached.with_met(walker.classes, walker.functions.values())
        met.packages.update(packages)  # noted again here: a walk may cache slot names in a class, which changes the class
        if met is now or met.reads_as(now):
            if known is not None:
                known.note(met, walker)
            return walker, met
        now = met
    raise errors.NotRecordable("its arguments or objects changed while they were read: keep other threads from changing them")


def read_arguments(reached: _installed_code.TorchReachedCode, arguments: dict[str, Any]) -> Walker:
    walker = Walker(reached, TORCH)
    walker.arguments(arguments)
    return walker


def is_torch_call(owner: Any, values: Iterable[Any]) -> bool:
    """Whether the call is a method of a module or an optimizer, or has tensors in its arguments (also one level inside containers)."""
    return isinstance(owner, (torch.nn.Module, torch.optim.Optimizer)) or any(_has_tensor(value, 4) for value in values)


def _has_tensor(value: Any, depth: int) -> bool:
    if isinstance(value, torch.Tensor):
        return True
    if depth == 0 or isinstance(value, (*_plain_values.KINDS, type)):
        return False
    if isinstance(value, dict):
        return any(_has_tensor(one, depth - 1) for one in value.values())
    if isinstance(value, (list, tuple)):
        return any(_has_tensor(one, depth - 1) for one in value)
    if dataclasses.is_dataclass(value) or type(value).__module__.split(".")[0] not in sys.stdlib_module_names:
        return any(_has_tensor(one, depth - 1) for one in getattr(value, "__dict__", {}).values())
    return False
