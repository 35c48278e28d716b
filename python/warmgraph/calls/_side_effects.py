"""Facts of a call, before and after: plain values by path (reading/_walker.py, torch/read/_call_reader.py), of which a replay changes none."""
from __future__ import annotations

import dataclasses
from typing import Any

from warmgraph import errors

_MOST_PATHS, _MOST_TIMES = 1000, 8


@dataclasses.dataclass(frozen=True)
class Difference:
    path: str
    was: str | None  # None: not there
    now: str | None

    def __str__(self) -> str:
        was, now = (repr(one) if one is not None else "not there" for one in (self.was, self.now))
        return f"{self.path} was {was} before the call and is {now} after it"


def difference(before: dict[str, str], after: dict[str, str]) -> Difference | None:
    for path in [*before, *after]:
        if before.get(path) != after.get(path):
            return Difference(path, before.get(path), after.get(path))
    return None


class Changes:
    """Of one function's calls. What a call changed may be what an object makes at its first use (a flag, a size that grew), and its next call
    may change nothing. What is changed from another value the next time is a counter."""

    def __init__(self) -> None:
        self._seen: dict[tuple[int, str], tuple[str | None, int]] = {}  # by object and path: what it was at first, and how often it was changed

    def is_again(self, owner: Any, change: Difference) -> bool:
        """A counter, or one that somebody sets back each time. An object that took the place of another in memory may be taken for that."""
        if len(self._seen) > _MOST_PATHS:
            self._seen.clear()
        key = id(owner), change.path
        was, times = self._seen.get(key, (change.was, 0))
        self._seen[key] = was, times + 1
        return was != change.was or times >= _MOST_TIMES


class Changed(errors.NotRecordable):
    """The answer changed a Python value that a replay would leave as it is."""

    def __init__(self, change: Difference) -> None:
        super().__init__(f"{change}: a replay would not change it. Keep it in device memory, pass it as a scalar, or change it outside")
        self.change = change
