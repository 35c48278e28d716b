"""Handles the calls of a function that is always refused: they run uncached, and their values are not read. Each call checks only changes
that may end the refusal: types, dtypes and devices of arguments, and the code. The full check runs at the 2nd, 4th, 8th ... call."""
from __future__ import annotations

import threading
from typing import Any, Callable, Mapping

import torch

from warmgraph.calls._steady_calls import NOT_ALIKE
from warmgraph.torch.replay import _surrounding_work

FROM = 4  # number of refusals in a row after which a function is given up
_MOST_KINDS, _MOST_SHAPES = 64, 1024
_MOST_ITEMS = 32  # the most items of a container that are checked
_VALUES = (bool, str, type(None))  # such a value often chooses between branches of a function; a number is as often only a counter


class RefusedCalls:
    """The state for one object of a function that is given up. Several threads may call it at the same time."""

    def __init__(self, run: Callable[..., Any], code: Callable[[], Any], noted: Callable[[], None], keeps_grad: bool) -> None:
        """run: the function itself. code: returns the function's code. noted: counts a refusal."""
        self._run, self._code, self._was, self._noted, self._keeps_grad = run, code, code(), noted, keeps_grad
        self._kinds: set[Any] = set()  # argument types, dtypes and devices of refused calls
        self._shapes: set[Any] = set()  # shapes of the arguments of calls that were not refused
        self._lock = threading.Lock()
        self._calls, self._due = 0, 2

    def add(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Notes that a call with such arguments was refused."""
        if len(self._kinds) < _MOST_KINDS:
            self._kinds.add(_kinds(args, kwargs))

    def spare(self, shapes: set[Any]) -> None:
        """Sets the shapes whose calls always get the full check."""
        self._shapes = shapes

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Runs the call and returns its result. Returns NOT_ALIKE if the call needs the full check."""
        if _surrounding_work.is_inside() or self._code() is not self._was or self._is_due():
            return NOT_ALIKE
        if _kinds(args, kwargs) not in self._kinds or self._shapes and shapes(args, kwargs) in self._shapes:
            return NOT_ALIKE
        self._noted()
        if self._keeps_grad or not torch.is_grad_enabled():
            return self._run(*args, **kwargs)
        with torch.no_grad():
            return self._run(*args, **kwargs)

    def _is_due(self) -> bool:
        with self._lock:
            self._calls += 1
            if self._calls < self._due:
                return False
            self._due *= 2
            return True


def _kinds(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    return (*map(_kind, args), *((name, _kind(value)) for name, value in kwargs.items()))


def _kind(value: Any, is_inner: bool = False) -> Any:
    if isinstance(value, torch.Tensor):
        return type(value), value.dtype, value.device, value.requires_grad and torch.is_grad_enabled()
    if isinstance(value, _VALUES):
        return value
    if is_inner:
        return type(value)
    if type(value) in (list, tuple):
        return (type(value), *(_kind(one, True) for one in value[:_MOST_ITEMS]))
    if type(value) is dict:
        return (dict, *((name, _kind(one, True)) for name, one in list(value.items())[:_MOST_ITEMS] if isinstance(name, str)))
    return type(value)


def shapes(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    return tuple(tuple(one.shape) if isinstance(one, torch.Tensor) else one if isinstance(one, (*_VALUES, int, float)) else None for one in (*args, *kwargs.values()))


def note_shapes(known: set[Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Notes the shapes of a call that is recorded or replayed."""
    if len(known) < _MOST_SHAPES:
        known.add(shapes(args, kwargs))
