"""Notes the operators of a capture, the places that call them, and the nodes that they enqueue. A refusal of a node can then name them."""
from __future__ import annotations

import dataclasses
import re
from typing import Any, Callable, Mapping, Sequence

from warmgraph import errors
from warmgraph.torch.record import _capture_advice, _operators, _call_sites

_NODE = re.compile(r"\bnode (\d+)")


@dataclasses.dataclass(frozen=True)
class FailedOperator:
    """The first operator of a capture that raised an error. It keeps texts alone: the error would keep the tensors of the capture alive."""

    text: str
    raw: str
    is_of_capture: bool
    name: str
    advice: _capture_advice.Advice
    place: _call_sites.CallSite


class OperatorTrail:
    """Runs the operators of a capture with `run`, and notes each."""

    def __init__(self, enqueued: Callable[[], Any], run: _operators.Run, is_bounded: bool = True, is_whole: bool = True) -> None:
        """enqueued: returns the position of the stream's capture, (stream, capture, last nodes...). is_bounded: as in _call_sites.here.
        is_whole: whether all operators are noted, and not only the one that fails, which costs less."""
        self._enqueued, self._run, self._is_bounded, self._is_whole = enqueued, run, is_bounded, is_whole
        self._last: Any = None
        self._steps: list[Any] = []  # in the order of time: (operator, place, number) and positions (tuples of nodes)
        self._shown = 0
        self.failed: FailedOperator | None = None
        self.graph = 0  # the finished CUgraph, whose nodes are noted

    def enqueued(self) -> Any:
        """The same as the argument `enqueued`. Call it before and after each operator."""
        at = self._enqueued()
        if self._is_whole and at != self._last:
            self._last = at
            self._steps.append(_Position(at[2:] if isinstance(at, tuple) else ()))
        return at

    def shown(self, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        """An observer of the same operators, which numbers them."""
        self._shown += 1

    def __call__(self, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        if self._is_whole:
            self._steps.append((func, _call_sites.here(self._is_bounded), self._shown - 1))
        try:
            return self._run(func, args, kwargs)
        except Exception as error:
            if self.failed is None or not self.failed.is_of_capture:
                advice = _capture_advice.of_operator(func, args, kwargs, _call_sites.modules_around())
                self.failed = FailedOperator(str(error), _first_line(error), _capture_advice.is_of_capture(error), name_of(func), advice,
                                             _call_sites.here(self._is_bounded))
            raise

    def around(self, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Like calling this object, and also notes the positions before and after."""
        self.enqueued()
        result = self(func, args, kwargs)
        self.enqueued()
        return result

    def text_of_operator(self, number: int, roots: _call_sites.Roots) -> str:
        """The place that called the operator with this number, counted from 0; "" if that is not known."""
        return next((_call_sites.text_of(step[1], roots) for step in self._steps if not isinstance(step, _Position) and step[2] == number), "")

    def text_of_node(self, number: int, positions: Mapping[int, int], roots: _call_sites.Roots) -> str:
        """Says which operator enqueued a node, and where; "" if that is not known. positions: the numbers of nodes, by handle."""
        reached, operator, is_new = -1, None, False
        for step in self._steps:
            if not isinstance(step, _Position):
                operator, is_new = step, True
                continue
            at = max((positions.get(node, -1) for node in step), default=-1)
            if reached < number <= at:
                break
            reached, is_new = max(reached, at), False
        else:
            is_new = False
        if operator is None:
            return ""
        name, where = name_of(operator[0]), _call_sites.text_of(operator[1], roots)
        if is_new:
            return f"{where} calls {name}" if where else f"it calls {name}"
        return f"no operator of PyTorch enqueued this, after {where or 'it'} called {name}"


class _Position(tuple[int, ...]):
    """The last nodes of the stream's capture."""


def name_of(func: Any) -> str:
    """An operator's name as PyTorch's documents have it, e.g. aten::nonzero."""
    return str(func._schema.name) if hasattr(func, "_schema") else str(func)


def name_operator(error: errors.Error, trail: OperatorTrail | None, positions: Callable[[int], Mapping[int, int]], roots: _call_sites.Roots) -> None:
    """Puts the operator that enqueued the refused node, and its place, before the text of the library's refusal.
    positions: returns the numbers of a graph's nodes, by handle."""
    node = _NODE.search(str(error))
    if trail is not None and node is not None:
        place = trail.text_of_node(int(node[1]), positions(trail.graph), roots)
        if place:
            error.args = (f"{place}: {error}",)


def explained(error: Exception, trail: OperatorTrail | None, roots: _call_sites.Roots) -> Exception:
    """The refusal for an error that a capture raised. It names the module, the Python line and the operator. Returns `error` itself if
    nothing is known about it, or if it is no failure."""
    failed = trail.failed if trail is not None else None
    if failed is not None and failed.text != str(error) and not (failed.is_of_capture and _capture_advice.is_late(error)):
        failed = None
    place = failed.place if failed is not None else _call_sites.of_error(error)
    where = _call_sites.text_of(place, roots)
    if isinstance(error, errors.Error):
        if where and isinstance(error, errors.NotRecordable):
            error.args = (f"{where}: {error}",)
        return error
    if type(error).__module__.startswith("warmgraph.") or failed is None and not where:
        return error
    raw = _first_line(error) if failed is None else failed.raw
    subject = where if failed is None else f"{where or 'it'} calls {failed.name}, which"
    if not _capture_advice.is_of_capture(error):
        return errors.NotRecordable(f"{where}: {raw}" if failed is None else f"{subject} fails in the capture: {raw}")
    advice = failed.advice if failed is not None else _capture_advice.of_error(error, _call_sites.modules_around(error))
    return errors.NotRecordable(f"{subject} {advice.what}, so PyTorch cannot capture it: {advice.cure} ({raw})")


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"
