"""Lets captures compute what functools.lru_cache keeps. A cached function returns a tensor that an earlier call computed: memory that nothing
declares, and that another process does not have. So inside a capture such functions are called again, and the graph computes their results.

Stored contents or a state would be another way, but then the contents must be proven for a cache that another call filled, in a process that may
have changed them. A result is computed again only if it follows from plain arguments, if the capture does not write it, and if a new result equals
the kept one, bit by bit, after the answer. Otherwise something has written the kept tensor, or it depends on more than its arguments. Then the
capture uses the kept tensor, and the library decides about its memory."""
from __future__ import annotations

import contextlib
import dataclasses
import functools
import gc
import sys
import threading
import types
from typing import Any, Callable, Iterator, Tuple

import torch

from warmgraph import errors
from warmgraph.torch.read import _tensors
from warmgraph.torch.record import _constants, _operators

_Binding = Tuple[Any, Callable[[Any], None]]  # (a cache, a function that puts another object into its place)
_Cache = type(functools.lru_cache(lambda: None))
_IN_UNDECLARED = ("lies in no declared region", "follows no region")  # the library's messages about memory that nothing declares


class UsedAsKept(errors.NotRecordable):
    """A result of a cached function must not be computed again. The next capture uses the kept one."""


class Namespaces:
    """For _operators.shown_to: the variables of the modules whose code calls operators. (The garbage collector does not list all cached functions:
    not those from before gc.freeze().)"""

    def __init__(self) -> None:
        self.found: dict[int, dict[str, Any]] = {}

    def __call__(self, func: Any, args: Any, kwargs: Any) -> None:
        frame: types.FrameType | None = sys._getframe(1)
        while frame is not None:
            self.found[id(frame.f_globals)] = frame.f_globals
            frame = frame.f_back


@dataclasses.dataclass
class _Call:
    """A call whose result a capture computed. `storages`: the result's memory. `is_written`: whether an operator wrote it afterwards."""

    cache: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    storages: list[Any]
    is_written: bool = False

    def why_not(self) -> str:
        """Why the result must not be computed again; "" if it may be. REQUIRES: nothing is captured."""
        if self.is_written:
            return "its result is written"
        try:
            with torch.no_grad():
                is_same = _is_same(self.cache(*self.args, **self.kwargs), self.cache.__wrapped__(*self.args, **self.kwargs))
        except Exception as error:
            return f"{type(error).__name__} in a new call"
        return "" if is_same else "its result is not what a new call gives"


class CachedResults:
    """The cached functions of these namespaces that keep tensors on the device, when the object is made."""

    def __init__(self, device: torch.device, namespaces: Namespaces) -> None:
        self._device = device
        found = [one for namespace in namespaces.found.values() if not _is_of_tools(namespace) for one in _bindings_in(namespace)]
        self._bindings = [one for one in found if any(_keeps(kept, device) for kept in gc.get_referents(one[0]))]
        self._caches = list({id(cache): cache for cache, _ in self._bindings}.values())
        self._as_kept: dict[int, str] = {}  # by the cache's id: why its results are not computed again
        self._calls: list[_Call] = []  # the calls whose results the capture computed
        self.has_failed = False  # whether the last capture must be repeated
        self._is_proven = False

    @contextlib.contextmanager
    def computed_again(self) -> Iterator[None]:
        """Inside the block this thread's calls of the cached functions compute their results, each once. The caches do not change."""
        self._calls.clear()
        self.has_failed = False
        stand_ins = {id(one): self._stand_in(one) for one in self._caches}
        try:
            for cache, put in self._bindings:
                put(stand_ins[id(cache)])
            yield
        finally:
            for cache, put in self._bindings:
                put(cache)

    def shown(self, func: Any, args: Any, kwargs: Any) -> None:
        """For _operators.shown_to, in the capture: notes which computed results are written."""
        if self._calls:
            written = {one.untyped_storage()._cdata for one in _operators.written(func, args, kwargs) if one.layout == torch.strided}
            for call in self._calls if written else []:
                call.is_written = call.is_written or any(one._cdata in written for one in call.storages)

    def expect_right(self) -> None:
        """Raises UsedAsKept if a result that the last capture computed differs from the kept one, or if computing one failed."""
        calls, self._calls = self._calls, []
        for one in calls if not self._is_proven and not self.has_failed else []:
            why = one.why_not()
            if why:
                self._leave(one.cache, why)
        if self.has_failed:
            raise UsedAsKept(self.text())
        self._is_proven = True

    def text(self) -> str:
        """Names the functions whose kept results are used, with reasons; "" if there are none."""
        named = [f"{one.__qualname__} ({self._as_kept[id(one)]})" for one in self._caches if id(one) in self._as_kept]
        return f"a tensor that functools.lru_cache keeps: {', '.join(named)}" if named else ""

    def explain(self, error: errors.Error) -> None:
        """Adds text() to an error about memory that nothing declares."""
        text = self.text()
        if text and text not in str(error) and any(one in str(error) for one in _IN_UNDECLARED):
            error.args = (f"{error}; it may be {text}",)

    def _leave(self, cache: Any, why: str) -> None:
        self._as_kept[id(cache)] = why
        self.has_failed = True

    def _stand_in(self, cache: Any) -> Any:
        thread, computed = threading.get_ident(), dict[Any, Any]()

        @functools.wraps(cache)
        def computed_again(*args: Any, **kwargs: Any) -> Any:
            if threading.get_ident() != thread or id(cache) in self._as_kept:
                return cache(*args, **kwargs)
            if not all(map(_is_plain, (*args, *kwargs.values()))):
                self._as_kept[id(cache)] = "its arguments are not plain values"
                return cache(*args, **kwargs)
            key = functools._make_key(args, kwargs, cache.cache_parameters()["typed"])
            if key not in computed:
                computed[key] = self._computed(cache, args, kwargs)
            return computed[key]

        computed_again.cache_info, computed_again.cache_clear = cache.cache_info, cache.cache_clear  # type: ignore[attr-defined]
        return computed_again

    def _computed(self, cache: Any, args: Any, kwargs: Any) -> Any:
        tracker = _constants.ConstantTracker(_constants.HostReads(_operators.OperatorTexts()), _constants.enqueued_in(self._device))
        try:
            with _operators.shown_to(run=tracker):
                result = cache.__wrapped__(*args, **kwargs)
        except Exception as error:
            self._leave(cache, f"{type(error).__name__} in a capture")
            raise
        if not tracker.is_constant(result):
            self._leave(cache, "its result does not follow from its arguments")
        self._calls.append(_Call(cache, args, kwargs, [one.untyped_storage() for one in _operators.tensors_in([result])]))
        return result


def _is_of_tools(namespace: dict[str, Any]) -> bool:
    package = str(namespace.get("__name__")).partition(".")[0]
    return package in ("torch", __name__.partition(".")[0]) or package in sys.stdlib_module_names and package != "__main__"


def _keeps(value: Any, device: torch.device, depth: int = 3) -> bool:
    if isinstance(value, torch.Tensor):
        return bool(value.device.type == _tensors.DEVICE_TYPE and (value.device.index or 0) == (device.index or 0))
    if isinstance(value, dict):
        value = list(value.values())
    return isinstance(value, (list, tuple)) and depth > 0 and any(_keeps(one, device, depth - 1) for one in value)


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    if isinstance(value, torch.nn.Module):
        return next(value.parameters(), None) is None and next(value.buffers(), None) is None
    return isinstance(value, _operators.PLAIN)


def _is_same(kept: Any, new: Any) -> bool:
    if type(kept) is not type(new):
        return False
    if isinstance(kept, (list, tuple)):
        return len(kept) == len(new) and all(map(_is_same, kept, new))
    if not isinstance(kept, torch.Tensor):
        return isinstance(kept, _operators.PLAIN) and bool(kept == new)
    layouts = [(one.dtype, one.device, one.size(), one.stride()) for one in (kept, new)]
    return layouts[0] == layouts[1] and torch.equal(*(one.detach().reshape(-1).contiguous().view(torch.uint8) for one in (kept, new)))


def _bindings_in(namespace: dict[str, Any]) -> Iterator[_Binding]:
    """The variables of a module, the attributes of its classes, and the closures of its functions that hold a cache."""
    for name, value in list(namespace.items()):
        if type(value) is _Cache:
            yield value, functools.partial(namespace.__setitem__, name)
        elif isinstance(value, type) and value.__module__ == namespace.get("__name__"):
            yield from _bindings_in_class(value)
        else:
            yield from _bindings_in_closure(value)


def _bindings_in_class(kind: type) -> Iterator[_Binding]:
    for name, value in list(kind.__dict__.items()):
        held = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
        if type(held) is _Cache:
            yield held, functools.partial(_put_in_class, kind, name, value)
        else:
            yield from _bindings_in_closure(held)


def _put_in_class(kind: type, name: str, original: Any, value: Any) -> None:
    is_wrapped = isinstance(original, (staticmethod, classmethod))
    setattr(kind, name, original if value is (original.__func__ if is_wrapped else original) else type(original)(value) if is_wrapped else value)


def _bindings_in_closure(function: Any) -> Iterator[_Binding]:
    for cell in getattr(function, "__closure__", None) or () if isinstance(function, types.FunctionType) else ():
        with contextlib.suppress(ValueError):  # the closure's variable is not set yet
            if type(cell.cell_contents) is _Cache:
                yield cell.cell_contents, functools.partial(setattr, cell, "cell_contents")
