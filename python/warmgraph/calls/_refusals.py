"""Counts the calls that run uncached because they cannot be recorded, by reason. The counts are stored beside the function's misses, and
logged at the end of the process."""
from __future__ import annotations

import atexit
import ctypes
import dataclasses
import logging
import re
import threading
from typing import Any, Callable, Protocol

from warmgraph.arrays._device import Device
from warmgraph.core.binding import _c, _fork
from warmgraph.core.binding._library import library
from warmgraph.core.cache._cache import Report
from warmgraph.core.cache._pools import pool_of

_log = logging.getLogger("warmgraph")
_lock = threading.Lock()
_noted: list[Refusal] = []
_ends: list[bool] = []  # not empty once _end() is registered for the end of the process
_MOST_NOTED = 1024  # the most reasons that are noted in one process
_MOST_PENDING = 1024  # number of calls after which the counts are written
_MOST_SAID = 5  # the most functions that the line at the process's end names
_LONGEST_SAID = 200  # the most letters of a reason in that line

_NAMES = re.compile(r"`[^`]*`|\S+:\d+ in \S+|\b\w+(::\w+)+")  # names of the program's modules, files and operators in a reason
# The word in the statistics for a reason that contains the text. The first match counts.
_WORDS = (
    ("so PyTorch cannot capture it", "not_capturable"),
    ("behaves differently under capture", "differs_under_capture"), ("something else at its second call", "differs_under_capture"),
    ("is not captured with it", "another_stream"), ("puts a gradient into", "backward_in_backward"), ("captured backward gives", "other_gradients"),
    ("on the host", "host_random"), ("torch.Generator", "own_generator"), ("generator", "seeds_the_generator"),
    ("requires grad", "gradients"), ("for backward", "gradients"), ("gradient", "gradients"), ("a replay would not change it", "changes_python_values"),
    ("it changed a setting", "changes_settings"), ("is another tensor after", "replaces_tensors"), ("lies in other memory", "replaces_tensors"),
    ("subclass of torch.Tensor", "tensor_subclass"), ("cannot be compared in another process", "not_comparable"), ("in host memory", "host_array"),
    ("which a replay cannot make", "result"), ("cannot be made again", "result"), ("shares memory with", "result"), ("which another process cannot find", "result"),
    ("PyTorch compiled it", "compiled_for_what_is_not_compared"), ("lies on", "several_devices"), ("no tensor on", "no_tensor"), ("collective", "collective"),
    ("lies in no declared region", "undeclared_memory"), ("follows no region", "undeclared_memory"), ("depends on addresses", "depends_on_addresses"),
    ("during CUDA graph capture", "not_capturable"), ("when stream is capturing", "not_capturable"), ("OutOfMemory", "out_of_memory"), ("out of memory", "out_of_memory"),
)


def word_of(why: str) -> str:
    text = _NAMES.sub("", why)
    return next((word for part, word in _WORDS if part in text), "not_recordable")


class RefusingFunction(Protocol):
    """The parts of a wrapper that its refusals need (_cached_function.CachedFunction)."""

    _shared: Any

    def _name(self) -> str: ...
    def _where(self) -> Any: ...


@dataclasses.dataclass
class Refusal:
    """One reason why calls of one function were refused. `calls`: number of calls in this process; `pending`: calls that are not stored
    yet."""

    function: str
    why: str
    where: Callable[[], Any]
    device: Callable[[], Device]
    calls: int = 0
    pending: int = 0
    is_kept: bool = False
    due: int = 1
    made_in: int = dataclasses.field(default_factory=_fork.generation)

    def keep(self) -> None:
        """Adds the count to the one stored beside the function's misses, which covers all processes. Ignores errors."""
        with _lock:
            pending, self.pending = self.pending, 0
            self.due = min(2 * self.due, _MOST_PENDING)
            if not pending and self.is_kept:
                return
            self.is_kept = True
        try:
            raw = _c.wg_refusal(size=ctypes.sizeof(_c.wg_refusal), word=word_of(self.why).encode(), text=self.why.encode("utf-8", "replace"), calls=pending)
            cache, device = pool_of(self.where()).caches[0], self.device()
            library().wg_cache_note_refusal(cache.pointer, device.pointer, self.function.encode(), ctypes.byref(raw))
        except Exception:
            _log.debug("the refusal of '%s' is not stored", self.function, exc_info=True)


def note(wrapped: RefusingFunction, why: str, device: Callable[[], Device], name: str | None = None, is_counted: bool = False) -> None:
    """Notes that a call ran uncached. device: returns the library's device for writing. is_counted: whether the library has already counted
    the call (but without the reason's text)."""
    shared = wrapped._shared
    refused = shared.runs_as_it_is.get(why)
    if refused is None:
        refused = Refusal(name or wrapped._name(), why, wrapped._where, device)
        with _lock:
            if len(_noted) >= _MOST_NOTED or len(shared.runs_as_it_is) >= _MOST_NOTED:
                return
            if not _ends:
                atexit.register(_end)
                _ends.append(True)
            _noted.append(refused)
            shared.runs_as_it_is[why] = refused
        shared.refused_report = Report(refused.function, "refused", why, "", 0.0, ())
    with _lock:
        refused.calls += 1
        refused.pending += 0 if is_counted else 1
        is_due = not refused.is_kept or refused.pending >= refused.due
    if is_due:
        refused.keep()


def keep_all() -> None:
    """Stores all pending counts."""
    with _lock:
        pending = [one for one in _noted if one.pending and one.made_in == _fork.generation()]
    for one in pending:
        one.keep()


def _calls_text(calls: int) -> str:
    return f"{calls} call{'' if calls == 1 else 's'}"


def lines_of(wrapped: RefusingFunction) -> list[str]:
    """The lines that explain() shows for a function."""
    return [f"ran as it is, {_calls_text(one.calls)}: {one.why}" for one in list(wrapped._shared.runs_as_it_is.values())]


def summary() -> str:
    """The functions that ran uncached and why, in one line; "" when none did."""
    with _lock:
        mine = [one for one in _noted if one.made_in == _fork.generation()]
    by_function: dict[tuple[str, str], list[Refusal]] = {}
    for one in mine:
        by_function.setdefault((one.where().model, one.function), []).append(one)
    if not by_function:
        return ""
    said = []
    for (model, name), reasons in list(by_function.items())[:_MOST_SAID]:
        most = max(reasons, key=lambda one: one.calls)
        why = most.why if len(most.why) <= _LONGEST_SAID else most.why[:_LONGEST_SAID - 3] + "..."
        said.append(f"{name} ({_calls_text(sum(one.calls for one in reasons))}: {why}; warmgraph explain {model}/{name})")
    more = len(by_function) - len(said)
    count = f"{len(by_function)} function{' ran as it is' if len(by_function) == 1 else 's ran as they are'}"
    return f"{count}: {'; '.join(said)}{f'; and {more} more' if more else ''}"


def _end() -> None:
    """Runs at the end of the process."""
    try:
        keep_all()
        text = summary()
        if text:
            _log.warning("%s", text)
    except Exception:
        _log.debug("the summary of refused functions failed", exc_info=True)
