"""Checks natively whether a call is like an earlier call that was replayed, and launches it."""
from __future__ import annotations

import contextlib
import ctypes
import functools
import inspect
import itertools
import logging
from typing import Any, Callable, Mapping, Sequence

import torch

from warmgraph import errors
from warmgraph.calls import _steady_calls
from warmgraph.calls._steady_calls import NOT_ALIKE, Tests
from warmgraph.core.binding import _fork
from warmgraph.reading import _native_snapshots
from warmgraph.torch.read import _argument_tests, _native_tensors, _tensors
from warmgraph.torch.replay import _entry, _launching, _modes, _moved_tensors, _outputs, _pausing
from warmgraph.torch.replay._bound_call import BoundCall
from warmgraph.torch.replay._torch_call import NotSteady, TorchCall

_log = logging.getLogger("warmgraph")


class SteadyTorchCall:
    """Made from a replayed call. `call` replays a call that is like that one; for any other call it returns NOT_ALIKE. Thread-safe."""

    def __init__(self, bound: BoundCall, args: tuple[Any, ...], kwargs: Mapping[str, Any], signature: inspect.Signature, outside: Outside) -> None:
        call, variant = bound.call, bound.variant
        framework = _native_tensors.framework()
        if framework is None or bound._staged or bound.borrowed is not variant.borrowed or not _defaults_are_fixed(args, kwargs, signature):
            raise NotSteady
        self._device, self._entry = call.device, variant.function
        self._words, self._draws, self._borrowed = variant.words, variant.metadata.draws, bound.borrowed
        self._host_draws, self._generator = variant.metadata.host_draws, bound.generator
        bound_states = self._entry.bound_states
        if bound_states != bound.states:  # in the meantime another thread has bound the entry to the memory of another object
            raise NotSteady
        self._args = self._entry.own_args()
        tests, is_plain = Tests(), self._words is None and self._borrowed is None and not self._host_draws
        self._asks_stream = is_plain and torch.cuda.is_initialized()
        attributes = [*outside(tests, self._asks_stream), *_modes.expect_outside(tests), *_modes.expect(tests, call.modes), (_fork, "_generation"),
                      (self._entry, "_pointer"), (self._entry, "bound_states")]
        makers = self._makers(bound, tests)
        given = _argument_tests.expect(tests, args, kwargs, call.around.reached)
        values = [value for _, value in given.values]
        if any(value is self._generator for value in values):  # a later call may have another one, and the path to it was not tested
            raise NotSteady
        if any(id(value) in call.around.ids and not (type(value) is tuple and not value) for value in values):  # there is only one empty tuple
            raise NotSteady  # an argument is also in the surroundings, so the call is not comparable with calls that have another argument
        always = _native_snapshots.Snapshot(given.classes, [(vars(one), name) for one, name in attributes])
        self._result, self._output = _result_of(variant.metadata.tree, call, values)
        result = _steady_calls.Result(self._result, self._output, [register for register, _ in given.values], NOT_ALIKE)
        lent = self._borrowed.ranges() if self._borrowed is not None else []
        states = [*((region.pointer, region.pointer + region.nbytes) for region in call.states), *lent]
        self._look = _steady_calls.make_steady_call(tests, call.around.ids, call.around.looks(always, _addresses(call, bound.states)), self._inputs(bound, given), states, makers, self._args,
                                        _entry.FLAT, framework, self._launch() if is_plain else None, result, _moved_tensors.moves,
                                        _native_tensors.telling_bytes())
        self.call = self._look if is_plain else self._called

    def _launch(self) -> _steady_calls.Launch:
        entry, index = self._entry, self._device.index or 0
        enqueue, is_capturing = (entry.enqueue_uncaptured, entry.is_capturing) if self._asks_stream else (entry.enqueue, None)
        return _steady_calls.Launch(entry.lock, _launching.native_stream, index, functools.partial(_launching.view_of, entry.device), _pausing.replays,
                                    _pausing.OFTEN, _pausing.replayed_often, enqueue, entry.handle, functools.partial(_failed, entry.expect_ok), is_capturing)

    def _called(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Replays a call that draws random numbers or borrows its results."""
        with _moved_tensors.using, self._borrowed.lock if self._borrowed is not None else contextlib.nullcontext(), self._entry.lock:
            found = self._look(args, kwargs)
            if found is NOT_ALIKE:
                return NOT_ALIKE
            outputs, values = found
            try:
                _launching.launched(self._entry, self._device, self._words, self._draws, functools.partial(self._entry.launch, args=self._args),
                                    self._host_draws, self._generator)
            except (errors.MissForbidden, *_launching.NOT_LAUNCHED):
                return NOT_ALIKE
            if self._borrowed is not None:
                outputs = self._borrowed.lend()
        return outputs[self._output] if self._result is None else self._result(outputs, values)

    def _inputs(self, bound: BoundCall, given: _argument_tests.TestedArguments) -> list[_steady_calls.Input]:
        """The tensors among the arguments, for the native check. Raises NotSteady when an input of the graph is not one whole tensor."""
        aligned = bound.variant.metadata.aligned
        tensors = {id(value): (register, value) for register, value in given.values if isinstance(value, torch.Tensor)}
        found = []
        for number, region in enumerate(bound.call.inputs):
            register, tensor = tensors.pop(id(region.places[0].tensor), (0, None))
            if tensor is None or len(region.places) != 1:
                raise NotSteady
            found.append(_steady_calls.Input(register, tensor, region.nbytes, aligned.get(region.name, 0), _entry.address_place(self._args, number)))
        if any(tensor.numel() for _, tensor in tensors.values()):
            raise NotSteady
        return found + [_steady_calls.Input(register, tensor, 0, 0, None) for register, tensor in tensors.values()]

    def _makers(self, bound: BoundCall, tests: Tests) -> list[_steady_calls.ResultMaker]:
        """The functions that make the outputs. Each output that is not empty gets a place for its address."""
        places = itertools.count(len(bound.call.inputs))
        at = [_entry.address_place(self._args, next(places)) if one.numel() else None for one in bound.outputs]
        if self._borrowed is None:
            makers = _makers_of(bound.variant.metadata.outputs, self._device, tests)
            return [_steady_calls.ResultMaker(make, arguments, place) for (make, arguments), place in zip(makers, at)]
        for one, place in zip(self._borrowed.memory(), at):
            if place is not None:
                ctypes.c_uint64.from_address(place).value = one.data_ptr() - _entry.FLAT
        return []


# Writes tests that a call is not inside a foreign run; if the flag is set, the launch itself asks whether its stream captures. Returns the
# attributes that must not change.
Outside = Callable[[Tests, bool], "list[tuple[Any, str]]"]


def _addresses(call: TorchCall, pointers: Sequence[int]) -> dict[int, int]:
    """The addresses of the states' tensors at the launch, by the tensor's id. They are compared, because another thread may have moved
    tensors since."""
    return {id(place.tensor): pointer + _tensors.start_in_storage(place.tensor) - region.start
            for region, pointer in zip(call.states, pointers) for place in region.places}


def _failed(expect_ok: Callable[[int], Any], status: int) -> Any:
    """Handles an error of a launch: returns NOT_ALIKE if nothing was launched, else raises the error."""
    try:
        expect_ok(status)
    except (errors.MissForbidden, *_launching.NOT_LAUNCHED):
        return NOT_ALIKE


def _makers_of(outputs: Sequence[_outputs.Output], device: torch.device, tests: Tests) -> list[tuple[Callable[..., Any], tuple[Any, ...]]]:
    """Returns (the function that allocates an output, its arguments) for each output. If it fits the device, this is the function that
    Inductor's code uses, which takes a third of the time."""
    rows = [(tuple(one.sizes), tuple(one.strides), _tensors.dtype_of(one.dtype)) for one in outputs]
    quick = getattr(getattr(getattr(torch._C, "_dynamo", None), "guards", None), f"_empty_strided_{device.type}", None)
    if quick is not None and device.type != "cpu":  # this function allocates on the current device
        current, index = torch._C._cuda_getDevice, device.index or 0
        if current() != index:
            quick = None
        elif not _modes.expect_code(tests, "device", index):
            tests.number(tests.answer(current), index)
    if quick is not None:
        return [(quick, row) for row in rows]
    return [(functools.partial(torch.empty_strided, dtype=dtype, device=device), (sizes, strides)) for sizes, strides, dtype in rows]


def _defaults_are_fixed(args: tuple[Any, ...], kwargs: Mapping[str, Any], signature: inspect.Signature) -> bool:
    """Whether the default values of the omitted parameters cannot change."""
    given = signature.bind(*args, **kwargs).arguments
    return all(_argument_tests.is_fixed(one.default) for name, one in signature.parameters.items()
               if name not in given and one.default is not one.empty)


def _result_of(tree: Any, call: TorchCall, values: Sequence[Any]) -> tuple[Callable[[Sequence[Any], tuple[Any, ...]], Any] | None, int]:
    """Returns (a function that makes the result from outputs and argument values, 0), or (None, the index of the output that is the
    result)."""
    if tree.keys() == {"output"}:
        return None, tree["output"]
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

    return rebuilt, 0


def steady_of(bound: BoundCall, args: tuple[Any, ...], kwargs: Mapping[str, Any], signature: inspect.Signature, outside: Outside) -> SteadyTorchCall | None:
    """Makes the tests for later calls. None when such calls must be read each time."""
    try:
        return SteadyTorchCall(bound, args, kwargs, signature, outside)
    except (NotSteady, _steady_calls.AddressesMoved, _argument_tests.NoTests):
        return None
    except Exception:  # an error here must not disturb the original call, which has its result
        _log.debug("later calls use the slower Python checks", exc_info=True)
        return None
