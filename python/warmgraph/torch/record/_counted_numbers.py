"""Proves that a number in the arguments, which a call advances, decides nothing but the outcomes of comparisons.

In a capture the number is a CountedInt. It notes each comparison: where the number may be so that its outcome stays the same. A sum with a
plain int is a CountedInt too. Any other use that Python shows (a product, a text, a dictionary's key) refuses the recording, and names its line.
C code reads an int without asking. So in the second capture, C code reads another number than Python's comparisons use: then an operator that gets
the number has another attribute, which refuses the recording, and a kernel's parameter moves by a known distance, which the library refuses."""
from __future__ import annotations

import contextlib
import math
import operator
import pathlib
import secrets
import sys
from typing import Any, Callable, Iterator, Mapping, Sequence

from warmgraph import errors
from warmgraph.torch.record import _operators
from warmgraph.torch.replay import _counters

_LEAST_DISTANCE, _DISTANCES = 1 << 20, 1 << 20


class _Number:
    """One number of the call. `value`: before the call. `refused`: why it must stay a fact by its value."""

    def __init__(self, path: str, value: int, by: int) -> None:
        self.path, self.value, self.by = path, value, by
        self.low: int | None = None
        self.high: int | None = None
        self.without: set[int] = set()
        self.refused = ""

    def note(self, compare: Callable[[Any, Any], bool], offset: int, other: int | float) -> bool:
        """Compares the number plus `offset`, and notes where the outcome stays the same."""
        outcome = compare(self.value + offset, other)
        if isinstance(other, float) and not math.isfinite(other):
            return outcome
        if compare in (operator.eq, operator.ne):
            is_equal = outcome is (compare is operator.eq)
            if other == int(other):
                self._keep(int(other) - offset, int(other) - offset) if is_equal else self.without.add(int(other) - offset)
            return outcome
        is_less = outcome is (compare in (operator.lt, operator.le))  # else the number is larger, or equal
        has_equal = outcome is (compare in (operator.le, operator.ge))
        if is_less:
            self._keep(None, (math.floor(other) if has_equal else math.ceil(other) - 1) - offset)
        else:
            self._keep((math.ceil(other) if has_equal else math.floor(other) + 1) - offset, None)
        return outcome

    def _keep(self, low: int | None, high: int | None) -> None:
        if low is not None and (self.low is None or low > self.low):
            self.low = low
        if high is not None and (self.high is None or high < self.high):
            self.high = high

    def refuse(self, what: str) -> None:
        self.refused = self.refused or f"{self.path} is {what}{_line()}"

    def counter(self) -> _counters.Counter:
        without = tuple(sorted(one for one in self.without if (self.low is None or one >= self.low) and (self.high is None or one <= self.high)))
        return _counters.Counter(self.path, self.by, self.low, self.high, without)


def _line() -> str:
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return f" at {pathlib.Path(frame.f_code.co_filename).name}:{frame.f_lineno} (in {frame.f_code.co_name})"


class CountedInt(int):
    """The number plus `offset`. C code reads the same, plus a distance in the second capture."""

    of: _Number
    offset: int
    distance: int

    def __new__(cls, of: _Number, offset: int, distance: int) -> CountedInt:
        made = super().__new__(cls, of.value + offset + distance)
        made.of, made.offset, made.distance = of, offset, distance
        return made

    def _compared(self, compare: Callable[[Any, Any], bool], other: Any) -> Any:
        if isinstance(other, CountedInt):
            if other.of is not self.of:
                self.of.refuse(f"compared with {other.of.path}")
            return compare(self.of.value + self.offset, other.of.value + other.offset)
        if not isinstance(other, (int, float)):
            return NotImplemented
        return self.of.note(compare, self.offset, other)

    def __bool__(self) -> bool:
        return self.of.note(operator.ne, self.offset, 0)

    def _sum(self, other: Any, sign: int) -> Any:
        if isinstance(other, CountedInt) or not isinstance(other, int):
            return None
        return CountedInt(self.of, self.offset + sign * int(other), self.distance)

    def __add__(self, other: Any) -> Any:
        found = self._sum(other, 1)
        return found if found is not None else _other_use(self, operator.add, other)

    def __radd__(self, other: Any) -> Any:
        found = self._sum(other, 1)
        return found if found is not None else _other_use(self, lambda mine, one: one + mine, other)

    def __sub__(self, other: Any) -> Any:
        if isinstance(other, CountedInt) and other.of is self.of:
            return self.offset - other.offset
        found = self._sum(other, -1)
        return found if found is not None else _other_use(self, operator.sub, other)

    def __pos__(self) -> CountedInt:
        return self

    def __deepcopy__(self, memo: Any) -> CountedInt:
        return self

    def __copy__(self) -> CountedInt:
        return self


def _other_use(mine: CountedInt, work: Callable[..., Any], *others: Any) -> Any:
    """Does something else with the number, which refuses the recording. Tensors do it themselves, and their operator is compared."""
    if any(not isinstance(one, (int, float, complex)) for one in others):
        return NotImplemented
    mine.of.refuse("used in another way than in comparisons and sums")
    plain = [one.of.value + one.offset if isinstance(one, CountedInt) else one for one in others]
    return work(mine.of.value + mine.offset, *plain)


def _method(name: str) -> Callable[..., Any]:
    real = getattr(int, name)

    def method(self: CountedInt, *others: Any) -> Any:
        return _other_use(self, real, *others)

    method.__name__ = name
    return method


def _text_method(name: str) -> Callable[..., Any]:
    real = getattr(int, name)

    def method(self: CountedInt, *given: Any) -> Any:
        self.of.refuse("made a text or another object")
        return real(self.of.value + self.offset, *given)

    method.__name__ = name
    return method


def _comparison(compare: Callable[[Any, Any], bool]) -> Callable[..., Any]:
    return lambda self, other: self._compared(compare, other)


for _compare in (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne):
    setattr(CountedInt, f"__{_compare.__name__}__", _comparison(_compare))
for _name in ("mul", "truediv", "floordiv", "mod", "divmod", "pow", "lshift", "rshift", "and", "or", "xor"):
    for _side in ("", "r"):
        setattr(CountedInt, f"__{_side}{_name}__", _method(f"__{_side}{_name}__"))
for _name in ("__rsub__", "__neg__", "__abs__", "__invert__", "__round__", "__trunc__", "__floor__", "__ceil__", "__float__", "__int__", "__index__"):
    setattr(CountedInt, _name, _method(_name))
for _name in ("__repr__", "__str__", "__format__", "__hash__", "__reduce_ex__", "bit_length", "to_bytes", "conjugate"):
    setattr(CountedInt, _name, _text_method(_name))


def is_reason_of(error: errors.Error) -> bool:
    """Whether a capture was refused because of a counted number."""
    return "each call changes " in str(error)


class CountedNumbers:
    """The numbers that a call advanced, for its captures."""

    def __init__(self, numbers: Mapping[str, int], moved: Mapping[str, int]) -> None:
        """`numbers`: the values before the call, by path. `moved`: how far the call advanced them."""
        self._numbers = [_Number(path, numbers[path], by) for path, by in moved.items()]
        self.distance = _LEAST_DISTANCE + secrets.randbelow(_DISTANCES)  # of what C code reads in the second capture

    @contextlib.contextmanager
    def counted_in(self, arguments: Mapping[str, Any], is_second: bool) -> Iterator[None]:
        """Inside the block, the arguments hold counted numbers. Afterwards they hold what they held before. Raises NotRecordable if the block
        used a number in a way that is not proven."""
        places = []
        for one in self._numbers:
            place = _counters.place_in(arguments, one.path)
            if place is None:
                raise errors.NotRecordable(f"each call changes {one.path}, which a replay cannot set: keep the number in device memory, or change it outside")
            places.append((one, place, place.get()))
        try:
            for one, place, _ in places:
                one.refused = ""  # a capture before this one may have been another attempt
                place.set(CountedInt(one, 0, self.distance if is_second else 0))
            try:
                yield
            except Exception as error:
                if not is_second or isinstance(error, errors.Error):
                    raise
                raise errors.NotRecordable(f"each call changes {self.text()}, and with another number the function raises "
                                           f"{type(error).__name__}: {error}. Keep the number in device memory, or change it outside") from error
            for one, place, _ in places:
                left = place.get()
                if not isinstance(left, CountedInt) or left.of is not one or left.offset != one.by:
                    one.refuse("not advanced by the same distance in each call")
        finally:
            for _, place, was in places:
                place.set(was)
        self._expect_proven()

    def _expect_proven(self) -> None:
        for one in self._numbers:
            if one.refused:
                raise errors.NotRecordable(f"each call changes {one.path} by {one.by}, and {one.refused}, so that it decides more than comparisons: keep the "
                                           "number in device memory, or change it outside")

    def expect_same(self, asked: _operators.OperatorTexts) -> _operators.Show:
        """For the second capture: an observer that refuses an operator which the first capture did not call. asked: the first capture's
        operators."""
        number = 0

        def show(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
            nonlocal number
            text = _operators.text_of(func, args, kwargs)
            if number >= len(asked.texts) or asked.texts[number] != text:
                raise errors.NotRecordable(f"each call changes {self.text()}, and the number reaches {func}: keep it in device memory "
                                           "(a tensor), or pass it as one")
            number += 1

        return show

    def expect_not_in(self, result: Any) -> None:
        """Refuses a result that has one of the numbers."""
        values = result.values() if isinstance(result, dict) else result if isinstance(result, (list, tuple)) else [result]
        for one in values:
            if isinstance(one, CountedInt):
                raise errors.NotRecordable(f"each call changes {one.of.path}, and the result has this number: return it as a tensor")
            if isinstance(one, (dict, list, tuple)):
                self.expect_not_in(one)

    def text(self) -> str:
        """The numbers, for messages."""
        return self._numbers[0].path + (f" (and {len(self._numbers) - 1} others)" if len(self._numbers) > 1 else "")

    def counters(self) -> _counters.Counters:
        """REQUIRES: both captures were made."""
        return tuple(one.counter() for one in self._numbers)
