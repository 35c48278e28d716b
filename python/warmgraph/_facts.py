"""Facts of a call, before and after: plain values by path (_walk.py, torch/_walking.py), of which a replay changes none."""
from __future__ import annotations

import dataclasses

from . import errors


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


class Changed(errors.NotRecordable):
    """The answer changed a Python value that a replay would leave as it is."""

    def __init__(self, change: Difference) -> None:
        super().__init__(f"{change}: a replay would not change it. Keep it in device memory, pass it as a scalar, or change it outside")
        self.change = change
