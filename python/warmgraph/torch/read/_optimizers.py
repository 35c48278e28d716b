"""Reads optimizers: their parameter groups, their states, and the gradients of their parameters, which step() reads."""
from __future__ import annotations

from typing import Any

import torch
import torch.optim.optimizer as _torchs

from warmgraph.reading import _identity_checks, _reached_code, _value_readers
from warmgraph.reading._walker import Walker
from warmgraph.torch.read._tensor_readers import TORCH, TensorPlace, read_tensor

__all__ = ["TORCH", "OptimizerFound"]

_HOOKS = ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks")
_HOOKS_OF_ALL = ("_global_optimizer_pre_hooks", "_global_optimizer_post_hooks")


class OptimizerFound:
    """An optimizer, and the gradients that its parameters have now."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.missing: list[torch.Tensor] = []  # parameters without a gradient
        self.places: list[TensorPlace] = []
        self.is_apart = True  # whether each gradient was found here first, and has memory on the device and no attributes

    def has(self, place: TensorPlace) -> bool:
        """Whether the place is a parameter that was found in the optimizer first."""
        return place.path.startswith(f"{self.path}.param_groups[")


@TORCH.reads(torch.optim.Optimizer)
def _read_optimizer(walker: Walker, path: str, optimizer: torch.optim.Optimizer) -> bool:
    """Returns False for an object that only forwards to an optimizer, and for a module's optimizer in code that makes no step."""
    held, kind = vars(optimizer), type(optimizer)
    if type(held.get("param_groups")) is not list or not isinstance(held.get("state"), dict) or _is_idle(walker, path):
        return False
    walker.fact(path, _reached_code.name_of_class(kind))
    walker.watch_class(kind)
    walker.watch_object(optimizer, held)
    walker.classes.setdefault(kind, False)
    walker.optimizers.append(found := OptimizerFound(path))
    first = len(walker.places)
    _read_groups(walker, f"{path}.param_groups", optimizer.param_groups)
    numbered = _parameters(path, optimizer)
    _read_states(walker, f"{path}.state", optimizer.state, {id(one): number for number, (_, one) in enumerate(numbered)})
    _read_hooks(walker, path, held)
    own = {name: one for name, one in sorted(held.items()) if name not in ("param_groups", "state") and not name.endswith("_hooks")}
    walker.members(path, own, lambda name: not name.startswith("__"))
    walker.members(path, dict(one for one in walker.stored_in(kind) if one[0] not in held))
    for name, parameter in numbered:
        _read_gradient(walker, found, f"{name}.grad", parameter)
    updated = {id(one) for _, one in numbered}  # some may be in a model that was read before
    for i, place in enumerate(walker.places):
        place.is_optimized = place.is_optimized or i >= first or id(place.tensor) in updated
    return True


def _is_idle(walker: Walker, path: str) -> bool:
    """Whether the optimizer is an attribute of a module, and the code names no step: all attributes of a module are read, but the forward of
    a module does not depend on gradients."""
    around = walker.objects.get(path.rpartition(".")[0])
    return isinstance(around, torch.nn.Module) and "step" not in walker.names


def _read_groups(walker: Walker, path: str, groups: list[dict[str, Any]]) -> None:
    """Reads the groups, each in the order of its names, because load_state_dict() changes the order in a group."""
    walker.watched.append(_identity_checks.of_list(groups))
    walker.fact(path, f"list of {len(groups)}")
    for i, group in enumerate(groups):
        walker.watch_dict(group)
        walker.fact(f"{path}[{i}]", f"dict of {len(group)}: {', '.join(sorted(group))}")
        for name in sorted(group):
            walker.value(f"{path}[{i}][{name!r}]", group[name])


def _parameters(path: str, optimizer: torch.optim.Optimizer) -> list[tuple[str, torch.Tensor]]:
    """(a name, parameter) in the order in which state_dict() numbers them."""
    found: list[tuple[str, torch.Tensor]] = []
    for i, group in enumerate(optimizer.param_groups):
        found += [(f"{path}.param_groups_{i}_params_{j}", one) for j, one in enumerate(group["params"])]
    return found


def _read_states(walker: Walker, path: str, states: dict[Any, Any], numbers: dict[int, int]) -> None:
    """Reads the states under the numbers of their parameters. A parameter that is in no group has a number after these."""
    walker.watch_dict(states)
    names = []
    for key, state in list(states.items()):
        if isinstance(key, torch.Tensor):
            name = str(numbers.setdefault(id(key), len(numbers)))
        else:
            name = f"[{_value_readers.text_of_key(walker, path, key)}]"
        names.append(name)
        _read_state(walker, f"{path}{name}" if name[0] == "[" else f"{path}.{name}", state)
    walker.fact(path, f"{type(states).__qualname__} of {len(names)}: {' '.join(names)}")


def _read_state(walker: Walker, path: str, state: Any) -> None:
    if type(state) is not dict or not all(type(key) is str and key.isidentifier() for key in state):
        walker.value(path, state)
        return
    walker.watch_dict(state)
    walker.fact(path, f"dict of {len(state)}: {', '.join(state)}")
    for name, one in list(state.items()):
        walker.value(f"{path}.{name}", one)


def _read_hooks(walker: Walker, path: str, held: dict[str, Any]) -> None:
    """Reads the hooks of step() in their order. Their keys are numbers that PyTorch counts in each process."""
    for name, hooks in [*((name, held.get(name)) for name in _HOOKS), *((name, getattr(_torchs, name, None)) for name in _HOOKS_OF_ALL)]:
        if hooks is not None:
            walker.watch_dict(hooks)
            for at, hook in enumerate(list(hooks.values())):
                walker.value(f"{path}.{name}[{at}]", hook)


def _read_gradient(walker: Walker, found: OptimizerFound, path: str, parameter: torch.Tensor) -> None:
    gradient = parameter.grad if parameter.is_leaf or parameter.retains_grad else None
    if gradient is None:
        walker.fact(path, "NoneType None")
        found.missing.append(parameter)
        return
    count = len(walker.places)
    read_tensor(walker, path, gradient)
    if len(walker.places) == count + 1 and not gradient.__dict__:
        walker.places[count].parameter = parameter
        found.places.append(walker.places[count])
    else:
        found.is_apart = False
