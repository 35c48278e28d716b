"""The device memory of states. It is given by name, or filled from the entry or with zeros. All functions with the same state share it."""
from __future__ import annotations

import difflib
from typing import Any, Mapping, Sequence

from warmgraph import dtypes, errors
from warmgraph.arrays._array_arguments import argument_of
from warmgraph.arrays._device import Array, Device
from warmgraph.arrays._shapes import contiguous_strides
from warmgraph.core.binding._library import library
from warmgraph.core.serving._entry_metadata import Layout, State

def room(device: Device, layout: Layout) -> Array:
    """Allocates memory for an array of this layout."""
    buffer = device._allocate(layout.extent)
    return Array(device, buffer, (buffer.base, buffer.offset), layout.shape, layout.dtype, layout.strides)


def expect_fits(layout: Layout, value: Any) -> None:
    """Raises unless `value`, a NumPy or device array, has the layout's shape and type. A bf16 array is given as u16, because NumPy lacks
    bf16. The library gives a state without dimensions one dimension of one element."""
    dtype, shape = dtypes.canonical(value.dtype), tuple(value.shape)
    has_shape = shape == layout.shape or {shape, layout.shape} == {(), (1,)}
    if not has_shape or not (dtype == layout.dtype or (layout.dtype, dtype) == ("bf16", "u16")):
        raise errors.InvalidArgument(f"{layout.name} is {dtype}{list(value.shape)}, expected {layout.dtype}{list(layout.shape)}"
                                     + (", its bits as u16" if layout.dtype == "bf16" else ""))


def placed(layout: Layout, array: Array) -> Array:
    """The device array with this layout. Raises InvalidArgument when its strides differ."""
    expect_fits(layout, array)
    if array.size > 1 and any(one != other for size, one, other in zip(array.shape, array.strides, layout.strides) if size > 1):
        raise errors.InvalidArgument(f"{layout.name} has strides {list(array.strides)} on the device, expected {list(layout.strides)}")
    return Array(array.device, array._owner, array._address, layout.shape, layout.dtype, layout.strides, array, array._keep)


def lay_out(host: Any, layout: Layout, value: Any) -> None:
    """Copies the elements of a NumPy array into `host` at the layout's positions."""
    import numpy

    expect_fits(layout, value)
    steps = [stride * value.dtype.itemsize for stride in layout.strides]
    numpy.ndarray(layout.shape, value.dtype, host, layout.offset, steps)[...] = value


class States:
    """The states of one server on the device."""

    def __init__(self, device: Device, given: Mapping[str, Any]) -> None:
        self._device, self._given = device, given
        self._made: list[tuple[State, Array]] = []  # the states that have memory, each with its memory as an array of bytes

    def of(self, state: State) -> Array:
        """The state's memory, which is made at the first use."""
        for known, memory in self._made:
            if _is_same(known, state):
                return _as(memory, state)
        memory = self._filled(state)
        self._made.append((state, memory))
        return _as(memory, state)

    def named(self, name: str) -> Array:
        for state, memory in self._made:
            for part in state.names():
                if part.name == name:
                    return _as(memory, part)
        raise self._unknown(name)

    def names(self) -> list[str]:
        return [part.name for state, _ in self._made for part in state.names()]

    def bind(self, name: str, array: Array) -> State:
        """Uses this memory for the state from now on."""
        for at, (state, _) in enumerate(self._made):
            whole = [part for part in state.names() if part.name == name]
            if not whole:
                continue
            if whole[0].extent != state.nbytes:
                raise errors.InvalidArgument(f"{name} is a part of the state {state}: bind the whole, or write into state({name!r})")
            self._made[at] = (state, _bytes(placed(whole[0], array), state.nbytes))
            return state
        raise self._unknown(name)

    def _unknown(self, name: str) -> errors.InvalidArgument:
        near = difflib.get_close_matches(name, self.names(), 1)
        return errors.InvalidArgument(f"no function that was called has a state {name!r}"
                                      + (f": did you mean {near[0]!r}?" if near else f", there are: {', '.join(self.names()) or 'none'}"))

    def _filled(self, state: State) -> Array:
        parts = [(part, self._given[part.name]) for part in state.names() if part.name in self._given]
        missing = [part for part in state.needed() if not _covers([one for one, _ in parts], part)]
        if missing:
            names = " or ".join(sorted({repr(part.name) for part in state.names() if part.offset == missing[0].offset}))
            raise errors.InvalidArgument(f"the state {missing[0]} is missing, and the entry does not contain it: give it in weights under the name "
                                         f"{names}")
        arrays = [(part, self._on_device(part, value)) for part, value in parts]
        if len(arrays) == 1 and arrays[0][1] is not None and arrays[0][0].extent == state.nbytes:
            return _bytes(arrays[0][1], state.nbytes)
        return self._copied(state, [(part, value, array) for (part, value), (_, array) in zip(parts, arrays)])

    def _on_device(self, part: Layout, value: Any) -> Array | None:
        """The value as an array on the device; None if it is on the host."""
        leaf = argument_of(value)
        if leaf is None:
            raise errors.InvalidArgument(f"{part.name} is a {type(value).__name__}, expected an array")
        if leaf.is_host:
            return None
        return placed(part, leaf.on(self._device, self._device.empty))

    def _copied(self, state: State, parts: Sequence[tuple[Layout, Any, Array | None]]) -> Array:
        import numpy

        memory = room(self._device, Layout(state.name, "u8", (state.nbytes,), (1,)))
        owner = memory._owned()
        host = _plain_bytes(state, parts)
        if host is None:
            host = numpy.zeros(state.nbytes, numpy.uint8)
            if state.contents is not None:
                host[:] = numpy.frombuffer(state.contents, numpy.uint8)
            for part, value, array in parts:
                if array is None:
                    lay_out(host, part, value)
        if state.nbytes:
            owner.upload(host.ctypes.data, state.nbytes, 0)
        for part, _, array in parts:
            if array is not None and array.size:
                at = _as(memory, part)._memory().address
                library().wg_copy(self._device.stream, at, array._memory().address, array.extent)
                self._device.synchronize()
        return memory


def _plain_bytes(state: State, parts: Sequence[tuple[Layout, Any, Array | None]]) -> Any:
    """The host array of a state if it is a single array that can be copied directly; None when the state must be assembled."""
    import numpy

    if len(parts) != 1 or parts[0][2] is not None:
        return None
    part, value, _ = parts[0]
    expect_fits(part, value)
    is_plain = part.extent == state.nbytes == value.nbytes and part.strides == contiguous_strides(part.shape)
    return numpy.ascontiguousarray(value) if is_plain else None


def _is_same(one: State, other: State) -> bool:
    """Whether the states of two functions are the same memory: they have a common name at the same offset, and equal contents in the
    entries."""
    if one.nbytes != other.nbytes or one.contents != other.contents:
        return False
    places = {(part.name, part.offset) for part in one.names()}
    return any((part.name, part.offset) in places for part in other.names())


def _covers(given: Sequence[Layout], part: Layout) -> bool:
    """Whether the given ranges cover all of the part."""
    at = part.offset
    for one in sorted(given, key=lambda layout: layout.offset):
        if one.offset <= at < one.end:
            at = one.end
    return at >= part.end


def _as(memory: Array, layout: Layout) -> Array:
    base, offset = memory._address
    return Array(memory.device, memory._owner, (base, offset + layout.offset), layout.shape, layout.dtype, layout.strides, memory,
                 memory._keep)


def _bytes(array: Array, nbytes: int) -> Array:
    return Array(array.device, array._owner, array._address, (nbytes,), "u8", None, array, array._keep)
