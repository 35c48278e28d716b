"""Compares the facts before and after a call (plain values by path), because a replay would not repeat a change. See reading/_walker.py,
torch/read/_call_reader.py."""
from __future__ import annotations

import dataclasses
from typing import Any

from warmgraph import errors

_MOST_PATHS, _MOST_TIMES = 1000, 8


@dataclasses.dataclass(frozen=True)
class ValueChange:
    path: str
    was: str | None  # None if the value did not exist
    now: str | None

    def __str__(self) -> str:
        was, now = (repr(one) if one is not None else "not there" for one in (self.was, self.now))
        return f"{self.path} was {was} before the call and is {now} after it"


def difference(before: dict[str, str], after: dict[str, str]) -> ValueChange | None:
    for path in [*before, *after]:
        if before.get(path) != after.get(path):
            return ValueChange(path, before.get(path), after.get(path))
    return None


class ChangeHistory:
    """Finds the facts that a function's calls change each time. An object's first use may change a fact once (a flag, a size that grew);
    the next call then changes nothing. A fact that the next call changes from another value is a counter."""

    def __init__(self) -> None:
        self._seen: dict[tuple[int, str], tuple[str | None, int]] = {}  # by object and path: the first value, and the number of changes

    def is_again(self, owner: Any, change: ValueChange) -> bool:
        """Whether the fact is a counter, or a value that is set back before each call. If an object was deleted, a new object at its
        address may be mistaken for it."""
        if len(self._seen) > _MOST_PATHS:
            self._seen.clear()
        key = id(owner), change.path
        was, times = self._seen.get(key, (change.was, 0))
        self._seen[key] = was, times + 1
        return was != change.was or times >= _MOST_TIMES


class SideEffect(errors.NotRecordable):
    """The call changed a Python value that a replay would not change."""

    def __init__(self, change: ValueChange) -> None:
        super().__init__(f"{change}: a replay would not change it. Keep it in device memory, pass it as a scalar, or change it outside")
        self.change = change
