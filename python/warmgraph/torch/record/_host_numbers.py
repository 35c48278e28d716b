"""Finds out whether a function reads the random numbers that it draws on the host."""
from __future__ import annotations

from typing import Any, Callable, Sequence

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._pytree import tree_map

from warmgraph.torch.record import _operators
from warmgraph.torch.replay import _host_draws
from warmgraph.torch.replay._host_draws import HostDraw

_MOST_DRAWS = 4096  # the most draws of one call that are noted


class HostNumbers:
    """Runs operators, and notes the tensors of random numbers that they make on the host."""

    def __init__(self, run: _operators.Run, notes_uses: bool = False) -> None:
        """notes_uses: an UnreadTensor takes the place of each such tensor."""
        self._run, self._notes_uses = run, notes_uses
        self.draws: list[HostDraw] = []
        self.uses: list[str] = []  # the functions and operators that got such a tensor
        self._memory: list[StorageWeakRef] = []

    def __call__(self, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        result = self._run(func, args, kwargs)
        if not _host_draws.is_draw(func, args, kwargs, result) or len(self.draws) == _MOST_DRAWS:
            return result
        self.draws.append(HostDraw(func, list(args), dict(kwargs)))
        self._memory.append(StorageWeakRef(result.untyped_storage()))
        return UnreadTensor.of(result, self.uses) if self._notes_uses else result

    def is_any_left(self) -> bool:
        """Whether such a tensor, or anything else with its memory, still exists."""
        return not all(one.expired() for one in self._memory)


class UnreadTensor(torch.Tensor):
    """Takes the place of a tensor. It has no memory: each use, also by code that calls no operator (numpy()), comes here, is noted, and gets the
    tensor itself."""

    _itself: torch.Tensor
    _uses: list[str]

    @staticmethod
    def of(tensor: torch.Tensor, uses: list[str]) -> UnreadTensor:
        made = torch.Tensor._make_wrapper_subclass(UnreadTensor, tensor.size(), dtype=tensor.dtype, device=tensor.device)
        made._itself, made._uses = tensor, uses
        return made

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _used(func, args, kwargs)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        return _used(func, args, kwargs)


def _used(func: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    def itself(value: Any) -> Any:
        if type(value) is not UnreadTensor:
            return value
        value._uses.append(_name_of(func))
        return value._itself

    given, named = tree_map(itself, (tuple(args), dict(kwargs or {})))
    return func(*given, **named)


def _name_of(func: Any) -> str:
    name = getattr(func, "__name__", str(func))
    return getattr(getattr(func, "__self__", None), "__name__", name) if name == "__get__" else name
