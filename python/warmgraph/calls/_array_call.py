"""Calls a function on arrays: finds the library's function for the call's structure, and keeps the call's state and results.
torch/replay/_torch_call.py and torch/calls/_torch_function.py do this for PyTorch's tensors.
"""
from __future__ import annotations

import collections
import copy
import dataclasses
import threading
import weakref
from typing import Any, Callable, Iterable, Mapping, Protocol

from warmgraph import errors
from warmgraph.arrays import _run
from warmgraph.arrays._array_arguments import argument_of
from warmgraph.arrays._device import Array, Device
from warmgraph.arrays._run import Run
from warmgraph.arrays._shapes import Tensor
from warmgraph.calls._side_effects import SideEffect, difference
from warmgraph.core.cache._cache import Function, Spec
from warmgraph.core.cache._pools import Pool
from warmgraph.reading._array_reader import facts_of_arguments
from warmgraph.reading._walker import WalkResult

RESULT = "return"  # the path of the outputs; no argument can have this name, because it is a keyword


class CallReader(Protocol):
    """The parts of a wrapper that a call needs (_cached_function.CachedFunction)."""

    options: Any

    def _read(self, bound: dict[str, Any], is_tolerant: bool = False) -> WalkResult: ...
    def _call_function(self, arguments: dict[str, Any]) -> Any: ...


class ArrayVariant:
    """The library's function for one structure of call: with the names, facts and code of its arguments. Shapes are the library's guards.
    The library's function is destroyed when this object has no more references and nothing runs."""

    def __init__(self, pool: Pool, name: str, device: Device, spec: Spec) -> None:
        itself = weakref.ref(self)

        def enqueue(run: Run) -> None:
            variant = itself()
            assert variant is not None  # the variant exists as long as its function is being called
            variant._enqueue(run)

        self.function = pool.make_function(name, lambda cache, destroyed: Function(cache, name, device, spec, enqueue, destroyed))
        self.refusal: Exception | None = None  # the error that refused the call which should have recorded this variant
        self._call = threading.local()
        self._free: collections.deque[dict[Any, list[Array]]] = collections.deque()

    def __call__(self, call: ArrayCall) -> str:
        self._call.now = call
        try:
            return self.function(call.values, call.regions)
        finally:
            self._call.now = None

    def staging(self) -> dict[Any, list[Array]]:
        try:
            return self._free.popleft()
        except IndexError:
            return {}

    def done_with(self, staging: dict[Any, list[Array]]) -> None:
        self._free.append(staging)

    def _enqueue(self, run: Run) -> None:
        call: ArrayCall = self._call.now
        try:
            if self.function.runs == 2:
                call.expect_unchanged()
            call.expect_shapes(run)
            call.enqueue(run, {name: run.number(call.names[name], scalar.dtype) for name, scalar in call.wrapped.options.scalars.items()})
        except Exception as error:
            self.refusal = error
            raise


@dataclasses.dataclass
class ArrayCall:
    """One call of a function on arrays, with its state."""

    wrapped: CallReader
    bound: dict[str, Any]
    found: WalkResult
    device: Device
    names: dict[str, str] = dataclasses.field(default_factory=dict)  # the library's name of each array and scalar, by path
    values: dict[str, Any] = dataclasses.field(default_factory=dict)  # arrays and numbers, by the library's name
    regions: list[tuple[str, Array]] = dataclasses.field(default_factory=list)
    given: dict[int, Array] = dataclasses.field(default_factory=dict)  # device array of each argument, by the argument's id
    outputs: list[Array] = dataclasses.field(default_factory=list)
    result: Any = None  # the declared outputs: Tensors, or arrays from the arguments

    def expect_unchanged(self) -> None:
        """Raises Changed if the call changed a fact. Called after the answer, before the first capture."""
        changed = difference(self.found.facts, self.wrapped._read(self.bound, is_tolerant=True).facts)
        if changed is not None:
            raise SideEffect(changed)

    def expect_shapes(self, run: Run) -> None:
        for path, _ in self.found.arguments:
            if run.tensor(self.names[path]).shape != self.values[self.names[path]].shape:
                raise errors.NotRecordable(f"'{run.name}' is recorded with {path} of another shape than in this call")

    def enqueue(self, run: Run, numbers: Mapping[str, Any]) -> None:
        """Runs the function, and copies its results to the outputs."""
        arguments = copy.copy(self.bound)
        arguments.update({name: numbers[name] if name in numbers else rebuilt(value, self._given) for name, value in self.bound.items()})
        copies = {name: value for name, value in arguments.items() if value is not self.bound[name] and name not in numbers}
        before = self._facts_of(copies)
        returned = self.wrapped._call_function(arguments)
        change = difference(before, self._facts_of(copies))
        if change is not None:
            raise errors.InvalidArgument(f"'{run.name}' changes {change.path}, from {change.was!r} to {change.now!r}, but it was given a copy: pass "
                                         "device arrays where it changes them (device.array), or change them outside")
        wanted, got = list(flat(RESULT, self.result)), list(flat(RESULT, returned))
        if self.wrapped.options.outputs is None:
            if got:
                raise errors.InvalidArgument(f"'{run.name}' returns {got[0][1]!r} as {got[0][0]}, but declares no outputs: give cache_compile "
                                             "outputs=, a Tensor or a function of the arguments that returns them")
            return
        if [path for path, _ in wanted] != [path for path, _ in got]:
            raise errors.InvalidArgument(f"'{run.name}' returns arrays as {[path for path, _ in got]}, expected {[path for path, _ in wanted]} as "
                                         "declared")
        outputs = iter(self.outputs)
        for (path, tensor), (_, array) in zip(wanted, got):
            if isinstance(tensor, Tensor):
                self._copy_out(run, path, tensor, array, next(outputs))

    def _facts_of(self, copies: dict[str, Any]) -> dict[str, str]:
        """The facts of lists and dicts that are copies: their host arrays were replaced. The caller would not see a change in the copies,
        so a change must be found."""
        return facts_of_arguments(self.found.reached, copies)  # unreadable values are ignored, so that the caller gets the answer

    def _copy_out(self, run: Run, path: str, tensor: Tensor, array: Any, output: Array) -> None:
        if not isinstance(array, Array) or (array.shape, array.dtype) != (tensor.shape, tensor.dtype):
            raise errors.InvalidArgument(f"'{run.name}' returns {array!r} as {path}, expected {tensor} as declared")
        _run.copy(output, array)

    def _given(self, value: Any) -> Any:
        return self.given.get(id(value), value)


def flat(path: str, value: Any) -> Iterable[tuple[str, Any]]:
    """The arrays and Tensors in a structure, each with its path."""
    if isinstance(value, (list, tuple)):
        for i, one in enumerate(value):
            yield from flat(f"{path}[{i}]", one)
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from flat(f"{path}[{key!r}]", one)
    elif dataclasses.is_dataclass(value) and not isinstance(value, (type, Tensor)):
        for field in dataclasses.fields(value):
            yield from flat(f"{path}.{field.name}", getattr(value, field.name))
    elif isinstance(value, Tensor) or argument_of(value) is not None:
        yield path, value


@dataclasses.dataclass
class StagingArrays:
    """Staging memory of a call. It is taken from the previous call if it fits, so that addresses stay the same."""

    device: Device
    spare: dict[Any, list[Array]]
    staging: dict[Any, list[Array]]

    def array(self, shape: Any, dtype: Any) -> Array:
        wanted = Tensor(shape, dtype)
        kept = self.spare.get(wanted)
        array = kept.pop(0) if kept else self.device.empty(wanted.shape, wanted.dtype)
        self.staging.setdefault(wanted, []).append(array)
        return array


def rebuilt(value: Any, replace: Callable[[Any], Any]) -> Any:
    """A copy of lists, tuples, dicts and data classes in which `replace` has replaced arrays. Returns the same object when nothing in it
    changes."""
    given = replace(value)
    if given is not value:
        return given
    if isinstance(value, (list, tuple)):
        items = [rebuilt(one, replace) for one in value]
        if all(one is other for one, other in zip(items, value)):
            return value
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, dict):
        pairs = {key: rebuilt(one, replace) for key, one in value.items()}
        return value if all(pairs[key] is value[key] for key in value) else _like_dict(value, pairs)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        changed = {name: rebuilt(one, replace) for name, one in fields.items()}
        if all(changed[name] is one for name, one in fields.items()):
            return value
        copy = object.__new__(type(value))
        for name, one in {**getattr(value, "__dict__", {}), **changed}.items():
            object.__setattr__(copy, name, one)
        return copy
    return value


def _like_dict(value: Any, pairs: dict[Any, Any]) -> Any:
    return pairs if type(value) is dict else type(value)(pairs)
