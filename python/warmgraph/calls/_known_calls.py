"""Remembers the calls of one function, on arrays or on a framework's tensors.

Two calls are the same if their keys are equal. A key holds the device, the code, and all facts. A refused call is found by its facts alone,
without the facts that the function itself changes each time: otherwise the function would be tried again for each value of a counter. A
later call is not read. After a call was read, a list of tests is made from it (SteadyTorchCall). If a later call passes all tests, reading
it would give the same key.
"""
from __future__ import annotations

import collections
import threading
from typing import Any, Callable, Mapping

from warmgraph.calls._side_effects import ChangeHistory, ValueChange

_MOST_REFUSED = 4096
_MOST_LATER = 8  # the most lists of tests that are kept for one object

Key = tuple[Any, ...]


class KnownCalls:
    """Remembered calls. Use this from one thread at a time, except put_first()."""

    def __init__(self) -> None:
        self.variants: collections.OrderedDict[Key, Any] = collections.OrderedDict()  # loaded graphs, the last used at the end
        self.last: Any = None  # the variant that answered the last call
        self._changes = ChangeHistory()
        self._changing: set[str] = set()  # paths of the facts that the function itself changes each time
        self._refused: dict[Key, str] = {}
        self.later: dict[int, list[Any]] = {}  # the tests of later calls, by the id of the wrapper's object, the last used first
        self._lock = threading.Lock()  # guards the lists in `later`, which other threads read

    def variant(self, key: Key) -> Any:
        """The variant for this key; None if there is no variant yet."""
        found = self.variants.get(key)
        if found is not None:
            self.variants.move_to_end(key)
        return found

    def keep(self, key: Key, most: int, made: Callable[[], Any]) -> bool:
        """Makes a variant and keeps it; keeps at most `most` variants. Returns whether it dropped the least recently used ones."""
        went = False
        self.variants.pop(key, None)
        while len(self.variants) >= max(1, most):
            self.variants.popitem(last=False)
            went = True
        self.variants[key] = made()
        if went:
            self.later.clear()
        return went

    def is_changed_again(self, owner: Any, change: ValueChange) -> bool:
        """Notes that a call with this object changed a fact. Returns True if calls change this fact each time; then refusals ignore it from
        now on."""
        if not self._changes.is_again(owner, change):
            return False
        self._changing.add(change.path)
        return True

    def refuse(self, facts: Mapping[str, str], why: str) -> None:
        if len(self._refused) >= _MOST_REFUSED:
            self._refused.clear()
        self._refused[self._unchanging(facts)] = why

    def why_refused(self, facts: Mapping[str, str]) -> str | None:
        """The reason why a call with these facts was refused; None if no such call was refused."""
        return self._refused.get(self._unchanging(facts)) if self._refused else None

    def forget_refused(self) -> None:
        self._refused.clear()

    def forget_variants(self) -> None:
        self.variants.clear()
        self.later.clear()
        self.last = None

    def put_first(self, owner: int, one: Any) -> None:
        """Makes `one` the first list of tests that is tried for this object."""
        with self._lock:
            known = self.later.setdefault(owner, [])
            known[:] = [one, *(other for other in known if other is not one)][:_MOST_LATER]

    def _unchanging(self, facts: Mapping[str, str]) -> Key:
        return tuple(pair for pair in facts.items() if pair[0] not in self._changing)
