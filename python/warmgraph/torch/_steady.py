"""A call that is like one that was replayed: looked at natively, and launched."""
from __future__ import annotations

import bisect
import ctypes
import functools
import inspect
import logging
from typing import TYPE_CHECKING, Any, Callable, Mapping, Sequence

import torch

from .. import _objects, errors
from . import _entry, _launching, _modes, _outputs, _structure, _tensors

if TYPE_CHECKING:
    from ._function import Bound, Call

_log = logging.getLogger("warmgraph")
OTHERWISE = object()  # this call is another one


class NotSteady(Exception):
    """Such calls are read each time."""


class Steady:
    """Made of a call that was replayed. `call` replays one that is like it, or gives OTHERWISE. Thread-safe."""

    def __init__(self, bound: Bound, args: tuple[Any, ...], kwargs: Mapping[str, Any], signature: inspect.Signature) -> None:
        call, variant = bound.call, bound.variant
        exchange = _objects.exchange_of(torch.Tensor)
        is_on_lent = bound.loan is not variant.loan
        if exchange is None or bound._staged or is_on_lent or not _defaults_are_fixed(call, args, kwargs, signature):
            raise NotSteady
        self._around, self._device, self._entry = call.around, call.device, variant.function
        self._itself = object()  # for the entry, which must not keep it
        self._has_same_modes = _modes.same_as(call.modes)
        self._words, self._draws, self._bound_states = variant.words, variant.metadata.draws, variant.function.bound_states
        if self._bound_states != bound.states:  # another thread bound the entry to another object's memory since
            raise NotSteady
        self._arguments = _structure.arguments_of(args, kwargs, call.around.reached, frozenset(call.around.ids))
        self._classes = _objects.Dicts(self._arguments.classes, []) if self._arguments.classes else None
        values, self._arguments.values = self._arguments.values, []
        where = [i for i, one in enumerate(values) if isinstance(one, torch.Tensor)]
        tensors = [values[i] for i in where]
        self._where = where if len(where) < len(values) else None  # of the tensors; None: all are
        self._inputs, self._extents, self._at = self._places(exchange, bound, tensors)
        self._weights = _objects.Tensors(exchange, [place.tensor for place in call.around.places], {}, 0)
        self._loan = bound.loan
        self._memory = self._loan.memory if self._loan is not None else _maker(variant.metadata.outputs, call.device)
        self._output_places = _output_places(bound, len(call.inputs))
        self._result = _result_of(variant.metadata.tree, call, values)
        lent = self._loan.ranges() if self._loan is not None else []
        self._ranges = sorted([*((region.pointer, region.pointer + region.nbytes) for region in call.states), *lent])

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self._loan is None:
            with self._entry.lock:
                done = self._launched(args, kwargs)
        else:
            with self._loan.lock, self._entry.lock:
                done = self._launched(args, kwargs)
        return OTHERWISE if done is None else self._result(*done)

    def _launched(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Sequence[torch.Tensor], tuple[Any, ...]] | None:
        """(outputs, what was read of the arguments); None where nothing was launched."""
        try:
            found = self._arguments.read(args, kwargs)
            if found is None or not self._is_like_it(found):
                return None
            outputs = self._memory()
            for i, place in self._output_places:
                place.value = outputs[i].data_ptr() - _entry.FLAT
        except Exception:  # whoever reads the call at length says what is wrong
            return None
        try:
            _launching.launched(self._entry, self._device, self._words, self._draws, self._entry.launch)
        except (errors.MissForbidden, *_launching.NOT_LAUNCHED):
            return None
        return outputs if self._loan is None else self._loan.lend(), found

    def _is_like_it(self, found: tuple[Any, ...]) -> bool:
        tensors = found if self._where is None else [found[i] for i in self._where]
        return self._has_same_modes() and (self._classes is None or self._classes.are_same()) \
            and self._around.is_steady(self._weights) and self._entry.bound_states is self._bound_states \
            and self._are_inputs_placed(tensors)

    def _are_inputs_placed(self, tensors: Sequence[torch.Tensor]) -> bool:
        """They look as they did, and none lies in memory of a state. That is asked of addresses that another call did not pass with: the last
        ones may be of one that did not, or that was read at length and has a result of its own."""
        entry = self._entry
        if not self._inputs.read_these(tensors):
            entry.placed_by = None
            return False
        if self._ranges and (entry.placed_by is not self._itself or self._inputs.have_moved):
            entry.placed_by = None
            if self._is_on_states():
                return False
            entry.placed_by = self._itself
        return True

    def _is_on_states(self) -> bool:
        """An argument lies in memory of a state, or of what is lent."""
        for at, extent in zip(self._at, self._extents):
            start = at.value + _entry.FLAT
            i = bisect.bisect_left(self._ranges, (start + extent, 0))
            if i > 0 and self._ranges[i - 1][1] > start:
                return True
        return False

    def _places(self, exchange: int, bound: Bound,
                tensors: Sequence[torch.Tensor]) -> tuple[_objects.Tensors, list[int], list[ctypes.c_uint64]]:
        """(the tensors of the arguments, bytes of each, where the addresses go)."""
        aligned, entry, index = bound.variant.metadata.aligned, bound.variant.function, {id(one): i for i, one in enumerate(tensors)}
        places, alignments, extents, at = {}, {}, [], []
        for number, region in enumerate(bound.call.inputs):
            i = index.pop(id(region.places[0].tensor), None)
            if i is None or len(region.places) != 1:
                raise NotSteady
            places[i], alignments[i] = entry.place_of(number), aligned.get(region.name, 0)
            extents.append(region.nbytes)
            at.append(ctypes.c_uint64.from_buffer(*places[i]))
        if any(tensors[i].numel() for i in index.values()):
            raise NotSteady
        return _objects.Tensors(exchange, tensors, places, _entry.FLAT, alignments), extents, at


def _output_places(bound: Bound, first: int) -> list[tuple[int, ctypes.c_uint64]]:
    """(number of an output, where its address goes), of those that have elements."""
    found = [i for i, one in enumerate(bound.outputs) if one.numel()]
    return [(i, ctypes.c_uint64.from_buffer(*bound.variant.function.place_of(first + at))) for at, i in enumerate(found)]


def _maker(outputs: Sequence[_outputs.Output], device: torch.device) -> Callable[[], list[torch.Tensor]]:
    """Gives memory for the outputs of a call: by what Inductor's code calls, where that serves the device, in a third of the time."""
    rows = [(one.sizes, one.strides, _tensors.dtype_of(one.dtype)) for one in outputs]
    usual = [functools.partial(torch.empty_strided, sizes, strides, dtype=dtype, device=device) for sizes, strides, dtype in rows]
    quick = getattr(getattr(getattr(torch._C, "_dynamo", None), "guards", None), f"_empty_strided_{device.type}", None)
    if quick is None:
        return lambda: [make() for make in usual]
    made = [functools.partial(quick, *row) for row in rows]
    if device.type == "cpu":
        return lambda: [make() for make in made]
    current, index = torch._C._cuda_getDevice, device.index or 0
    return lambda: [make() for make in (made if current() == index else usual)]  # the quick ones make it on the current device


def _defaults_are_fixed(call: Call, args: tuple[Any, ...], kwargs: Mapping[str, Any], signature: inspect.Signature) -> bool:
    """Those of parameters that the call leaves out."""
    given = signature.bind(*args, **kwargs).arguments
    return all(_structure.is_fixed(one.default) for name, one in signature.parameters.items()
               if name not in given and one.default is not one.empty)


def _result_of(tree: Any, call: Call, values: Sequence[Any]) -> Callable[[Sequence[Any], tuple[Any, ...]], Any]:
    """Gives a result of outputs and of what was read of the arguments."""
    if tree.keys() == {"output"}:
        return lambda outputs, found, i=tree["output"]: outputs[i]  # type: ignore[misc]
    index = {id(one): i for i, one in enumerate(values)}
    of_arguments, others = {}, {}
    for path in _outputs.paths_in(tree):
        value = call.object(path)
        if id(value) in index:
            of_arguments[path] = index[id(value)]
        elif id(value) in call.around.ids:
            others[path] = value
        else:
            raise NotSteady

    def rebuilt(outputs: Sequence[Any], found: tuple[Any, ...]) -> Any:
        return _outputs.rebuilt(tree, outputs, lambda path: found[of_arguments[path]] if path in of_arguments else others[path])

    return rebuilt


def steady_of(bound: Bound, args: tuple[Any, ...], kwargs: Mapping[str, Any], signature: inspect.Signature) -> Steady | None:
    """None where each such call must be read."""
    try:
        return Steady(bound, args, kwargs, signature)
    except (NotSteady, _structure.NoCode):
        return None
    except Exception:  # the call that it was made of has its result
        _log.debug("later calls are read at length", exc_info=True)
        return None
