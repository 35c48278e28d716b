"""Replaces the facts of large models by digests: an entry's header has at most 1 MiB, and one layer of a language model has 13 KB of facts."""
from __future__ import annotations

import hashlib
import re
from typing import Mapping

from warmgraph.reading import _native_snapshots

_MOST = 192 << 10  # the most letters of the facts of one call
_DEEPEST = 12
_STEP = re.compile(r"\.|(?=\[)")


def is_too_much(facts: Mapping[str, str]) -> bool:
    return _letters(facts) > _MOST


def folded(facts: Mapping[str, str]) -> dict[str, str]:
    """Returns the same facts if they are short enough. Otherwise replaces all facts below a path by one digest; the paths are as long as
    the limit permits. A mismatch then names the layer instead of the value."""
    if not is_too_much(facts):
        return dict(facts)
    return _native_snapshots.folded_facts(dict(facts), _MOST, _DEEPEST) if _native_snapshots.is_possible() else _folded(facts)


def _folded(facts: Mapping[str, str]) -> dict[str, str]:
    """The same result as wg_fold_facts in python.h, for processes without native reading."""
    found: dict[str, str] = {}
    for depth in range(_DEEPEST, 0, -1):
        found = _at(facts, depth)
        if _letters(found) <= _MOST:
            break
    return found


def _at(facts: Mapping[str, str], depth: int) -> dict[str, str]:
    groups: dict[str, list[tuple[str, str]]] = {}
    for path, text in facts.items():
        groups.setdefault(_start(path, depth), []).append((path, text))
    return {start: rows[0][1] if rows == [(start, rows[0][1])] else _digest(rows) for start, rows in groups.items()}


def _start(path: str, depth: int) -> str:
    ends = [one.start() for one in _STEP.finditer(path)]
    return path if len(ends) < depth else path[:ends[depth - 1]]


def _digest(rows: list[tuple[str, str]]) -> str:
    state = hashlib.sha256()
    for path, text in sorted(rows):
        for part in (path.encode(), text.encode()):
            state.update(len(part).to_bytes(8, "little") + part)
    return f"{len(rows)} values, sha256 {state.hexdigest()}"


def _letters(facts: Mapping[str, str]) -> int:
    return sum(map(len, facts)) + sum(map(len, facts.values()))
