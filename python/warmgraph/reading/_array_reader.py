"""Reads a call on arrays."""
from __future__ import annotations

from typing import Any, Iterable

from warmgraph import errors
from warmgraph.arrays._array_arguments import argument_of
from warmgraph.arrays._device import Device
from warmgraph.reading import _reached_code
from warmgraph.reading._value_readers import PYTHON, read_host_array
from warmgraph.reading._walker import MOST_WALKS, Readers, WalkResult, Walker

ARRAYS = Readers(PYTHON)


@ARRAYS.reads_single(object)
def _read_array(walker: Walker, path: str, value: Any) -> bool:
    """Reads arrays of every kind that a function may be called with."""
    array = argument_of(value)
    if array is None:
        return False
    key = id(array.value)
    if key in walker.arrays:
        walker.fact(path, f"is {walker.arrays[key]}")
    elif walker.is_around and array.key() == ("host",):
        read_host_array(walker, path, array.value)
    else:
        walker.arrays[key] = path
        walker.fact(path, f"array {' '.join(map(str, array.key()))}")
        (walker.found.states if walker.is_around else walker.found.arguments).append((path, array))
        device = getattr(array.value, "device", None)
        if isinstance(device, Device):
            walker.found.devices.append(device)
    return True


def read(reached: _reached_code.ReachedCode, arguments: dict[str, Any], owner: Any, skipped: Iterable[str] = (), is_tolerant: bool = False) -> WalkResult:
    """Reads a call. Repeats this until reading finds no new code."""
    now = reached.latest()  # mostly this is the code that the last call found
    for _ in range(MOST_WALKS):
        walker = Walker(now, ARRAYS, is_tolerant)
        walker.arguments(arguments, skipped)
        walker.surroundings(owner)
        met = reached.with_met(walker.classes, walker.functions.values())
        if met is now:
            return walker.found
        now = met
    raise errors.NotRecordable("its arguments or objects changed while they were read: keep other threads from changing them")


def facts_of_arguments(reached: _reached_code.ReachedCode, arguments: dict[str, Any]) -> dict[str, str]:
    """The facts of the arguments alone. Values that cannot be compared are left out."""
    walker = Walker(reached, ARRAYS, is_tolerant=True)
    walker.arguments(arguments)
    return walker.found.facts
