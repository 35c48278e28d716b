"""Numbers in arguments that each call advances (`cache.length += 1`). A replay advances them as the function would. The entry says from where
to where a number may be: there, each comparison of the function has the same outcome (record/_counted_numbers.py)."""
from __future__ import annotations

import dataclasses
import re
from typing import Any, Callable, Mapping, Sequence

from warmgraph import errors

_INT = re.compile(r"int (-?\d{1,18})")
_ROOT, _STEP = re.compile(r"[A-Za-z_]\w*"), re.compile(r"\.([A-Za-z_]\w*)|\[(\d{1,9})\]|\['([^'\\]*)'\]")
_MOST = 1024  # the most counters of a call


@dataclasses.dataclass(frozen=True)
class Counter:
    """`path`: where the number is. `by`: how far a call advances it. `low`, `high`: the least and the largest value before a call of this
    entry; None: any. `without`: values between them that are excluded."""

    path: str
    by: int
    low: int | None = None
    high: int | None = None
    without: tuple[int, ...] = ()

    def holds(self, value: int) -> bool:
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high) and value not in self.without

    def fact(self) -> str:
        """The fact of the entry in place of the number's value."""
        bounds = [f"from {self.low}"] * (self.low is not None) + [f"to {self.high}"] * (self.high is not None)
        besides = f" but {', '.join(map(str, self.without))}" if self.without else ""
        return f"int {' '.join(bounds) or 'of any value'}{besides}, advanced by {self.by}"


Counters = tuple[Counter, ...]


def number_of(fact: str | None) -> int | None:
    """The number of a fact about an int; None for other facts."""
    found = _INT.fullmatch(fact or "")
    return int(found[1]) if found else None


def advanced(before: Mapping[str, str], after: Mapping[str, str], of_arguments: Mapping[str, str]) -> dict[str, int]:
    """How far each changed number moved, by path, if all that changed are numbers in the arguments; else an empty dictionary."""
    changed = [path for path in {**before, **after} if before.get(path) != after.get(path)]
    moved: dict[str, int] = {}
    for path in changed:
        was, now = number_of(before.get(path)), number_of(after.get(path))
        if was is None or now is None or path not in of_arguments or len(moved) >= _MOST:
            return {}
        moved[path] = now - was
    return moved


def fitting(all_of: Sequence[Counters], facts: Mapping[str, str]) -> list[Counters]:
    """The counters of entries that fit the numbers in these facts."""
    return [counters for counters in all_of if all(_fits(one, number_of(facts.get(one.path))) for one in counters)]


def _fits(counter: Counter, number: int | None) -> bool:
    return number is not None and counter.holds(number)


def masked(counters: Counters, facts: dict[str, str]) -> dict[str, str]:
    """The facts of a call as its entry has them."""
    return {**facts, **{one.path: one.fact() for one in counters}} if counters else facts


def key_of(all_of: Sequence[Counters], facts: Mapping[str, str]) -> Any:
    """A key of these facts. Facts that differ only in numbers have one key if the same entries fit them, and each of these entries advances
    the numbers."""
    fits = tuple(fitting(all_of, facts)) if all_of else ()
    paths = set.intersection(*({one.path for one in counters} for counters in fits)) if fits else ()
    return (tuple(item for item in facts.items() if item[0] not in paths) if paths else tuple(facts.items())), fits


# --- Where a number is


@dataclasses.dataclass(frozen=True)
class NumberPlace:
    """An attribute or item that holds an int."""

    holder: Any
    key: Any

    def get(self) -> Any:
        return self.holder[self.key]

    def set(self, value: int) -> None:
        self.holder[self.key] = value


def place_in(arguments: Mapping[str, Any], path: str) -> NumberPlace | None:
    """The place of a number in the arguments; None if it cannot be set without running the object's code."""
    root = _ROOT.match(path)
    if root is None or root[0] not in arguments:
        return None
    value, at, holder, key = arguments[root[0]], root.end(), None, None
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            return None
        at = step.end()
        name, index, item = step.groups()
        key = name if name is not None else int(index) if index is not None else item
        holder = _holder(value, name)
        try:
            value = holder[key] if holder is not None else None
        except (KeyError, IndexError):
            return None
        if holder is None:
            return None
    return NumberPlace(holder, key) if holder is not None and type(value) is int else None


def _holder(value: Any, name: str | None) -> Any:
    """The dictionary or list that holds an attribute or item of the value."""
    if name is None:
        return value if type(value) in (list, dict) else None
    try:
        attributes = vars(value)
    except TypeError:
        return None
    return attributes if type(attributes) is dict and not hasattr(getattr(type(value), name, None), "__set__") else None


def places_of(counters: Counters, arguments: Mapping[str, Any]) -> list[tuple[NumberPlace, int]]:
    """(place, how far to advance it) for each number of a call. Raises MissForbidden if a replay cannot set one."""
    found = [(place_in(arguments, one.path), one) for one in counters]
    missing = next((one.path for place, one in found if place is None), None)
    if missing is not None:
        raise errors.MissForbidden(f"{missing} cannot be set by a replay")
    return [(place, one.by) for place, one in found if place is not None]


# --- Metadata


def to_raw(counters: Counters) -> list[Any]:
    return [[one.path, one.by, one.low, one.high, list(one.without)] for one in counters]


def from_raw(raw: Any) -> Counters:
    def number(value: Any) -> int:
        if type(value) is not int:
            raise ValueError(f"a counter has {value!r}, expected a number")
        return value

    def bound(value: Any) -> int | None:
        return None if value is None else number(value)

    return tuple(Counter(str(path), number(by), bound(low), bound(high), tuple(map(number, without))) for path, by, low, high, without in raw)


def stored_in(texts: Sequence[str], read: Callable[[str], Any]) -> list[Counters]:
    """The counters of stored entries. `texts`: the entries' metadata. `read`: _outputs.from_text."""
    found: list[Counters] = []
    for text in texts:
        if '"counters"' not in text:
            continue
        try:
            counters = read(text).counters
        except errors.Error:
            continue
        if counters and counters not in found:
            found.append(counters)
    return found
