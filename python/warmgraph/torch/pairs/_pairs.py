"""Replays forward and backward of one function (`pair=True`): a call under gradients replays forward, and autograd calls backward. Tensors
that forward saves for backward are in the pair's own memory, which the next forward overwrites."""
from __future__ import annotations

import dataclasses
import logging
import threading
from typing import Any, Mapping, Sequence

import torch

from warmgraph import errors
from warmgraph.calls._cached_function import CachedFunction, half_of
from warmgraph.calls._steady_calls import Tests
from warmgraph.core.cache._pools import pool_of
from warmgraph.torch.calls._torch_function import TorchFunction
from warmgraph.torch.pairs import _pair_metadata, _pair_recording
from warmgraph.torch.read import _tensors
from warmgraph.torch.record import _recording
from warmgraph.torch.replay import _declarations, _entry, _launching, _moved_tensors, _outputs
from warmgraph.torch.replay._bound_call import BoundCall, TorchVariant
from warmgraph.torch.replay._outputs import Output
from warmgraph.torch.replay._torch_call import TorchCall

_log = logging.getLogger("warmgraph")
_HALF = "torch.half"  # the name of a fact


class Arena:
    """The memory for tensors that forward saves for backward. It comes from PyTorch's allocator and has constant addresses. Hold `lock`
    during a launch and the calls of this class for it."""

    def __init__(self, name: str, outputs: Sequence[Output], device: torch.device) -> None:
        self.lock = threading.RLock()
        self.generation = 0  # how many forwards have written this memory
        self._name, self._outputs, self._device = name, outputs, device
        self._memory: list[torch.Tensor] | None = None
        self._stream: Any = None  # the stream that used this memory last
        self._streams: set[int] = set()

    def memory(self) -> list[torch.Tensor]:
        with self.lock:
            if self._memory is None:
                self._memory = [one.allocate(self._device) for one in self._outputs]
            return self._memory

    def expect(self, generation: int) -> None:
        """Raises Stale when another forward has written the memory since then."""
        if generation != self.generation:
            raise errors.Stale(f"backward of call {generation} of '{self._name}' comes too late: call {self.generation} has overwritten its saved "
                               "tensors. Call backward before the next forward, or leave out pair=True")

    def enter(self) -> None:
        """Makes the current stream wait for the stream that used the memory last."""
        if self._device.type != "cuda":
            return
        now = torch.cuda.current_stream(self._device)
        if self._stream is not None and self._stream != now:
            now.wait_event(self._stream.record_event())
        self._stream = now
        if now.cuda_stream not in self._streams:  # record each further stream: PyTorch returns freed memory to the stream that allocated it
            self._streams.add(now.cuda_stream)
            for one in self.memory():
                one.record_stream(now)


@dataclasses.dataclass
class PairVariant(TorchVariant):
    """A loaded pair: both halves. `function` is the forward half."""

    backward: _entry.Entry = None  # type: ignore[assignment]  # the default exists only because fields with defaults precede it
    pair: _pair_metadata.Description = None  # type: ignore[assignment]
    arena: Arena = None  # type: ignore[assignment]

    @classmethod
    def of(cls, name: str, forward: TorchVariant, backward: _entry.Entry, device: torch.device) -> PairVariant:
        pair = _pair_metadata.description_of(forward.metadata)
        arena = Arena(name, forward.metadata.outputs[pair.results:], device)
        return cls(forward.function, forward.metadata, forward.words, None, backward, pair, arena)


class BoundPair(BoundCall):
    """A pair bound to one call's memory. Forward is launched once; backward can be launched until another forward has run. This object
    holds no results; the results hold it."""

    variant: PairVariant

    def __init__(self, call: TorchCall, variant: PairVariant) -> None:
        super().__init__(call, variant)
        self.needed = [place.tensor for region in call.regions if region.name in variant.pair.used for place in region.places]
        self._generation = 0

    def _memory(self) -> list[torch.Tensor]:
        variant: Any = self.variant
        made = [one.allocate(self.device) for one in variant.metadata.outputs[:variant.pair.results]]
        return [*made, *variant.arena.memory()]

    def forward(self) -> list[torch.Tensor]:
        """Launches forward and returns its results."""
        arena = self.variant.arena
        with arena.lock:
            arena.enter()
            before, arena.generation = arena.generation, arena.generation + 1
            try:
                self.launch()
            except (errors.MissForbidden, *_launching.NOT_LAUNCHED):  # forward was not launched and has overwritten no saved tensors
                arena.generation = before
                raise
            self._generation = arena.generation
        results, self.outputs, self._results = self.outputs[:self.variant.pair.results], [], []
        return results

    def backward(self, gradients: Sequence[torch.Tensor | None]) -> list[torch.Tensor | None]:
        """Launches backward in the current stream, which autograd has set to the stream of forward. `gradients`: one for each result; None
        stands for zeros."""
        variant, arena = self.variant, self.variant.arena
        with _moved_tensors.using, arena.lock, torch.no_grad():
            arena.expect(self._generation)
            arena.enter()
            used = self._used()
            taken = [(start, start + size) for start, size in used.values()]
            keep = []
            for output, i in zip(variant.pair.given(variant.metadata.outputs), variant.pair.differentiable):
                keep.append(self._given(output, gradients[i], taken))
            made = [None if one is None else one.allocate(self.device) for one in variant.pair.gradients]
            pointers = [one.data_ptr() for one in (*keep, *arena.memory()) if one.numel()]
            pointers += [used[one.name][0] for one in self.call.inputs if one.name in used]
            pointers += [one.data_ptr() for one in made if one is not None and one.numel()]
            states = [used[one.name][0] for one in self.call.states if one.name in used]
            _launching.launched(variant.backward, self.device, None, 0, lambda stream: variant.backward(stream, pointers, states))
        return made

    def _used(self) -> dict[str, tuple[int, int]]:
        """The ranges (pointer, bytes) of the call's memory that backward reads. If forward used a copy for alignment, backward uses this
        copy."""
        copies = dict(zip((one.name for one in self.call.inputs), self.pointers))
        found = {}
        for region in self.call.regions:
            if region.name not in self.variant.pair.used:
                continue
            if region.storage.nbytes() != region.whole:
                raise errors.Stale(f"'{region.name}' has {region.storage.nbytes()} bytes of memory, and had {region.whole} in forward")
            pointer = copies[region.name] if any(copies.get(region.name) == copy.data_ptr() for copy, _ in self._staged) else region.pointer
            found[region.name] = (pointer, region.nbytes)
        return found

    def _given(self, output: Output, gradient: torch.Tensor | None, taken: list[tuple[int, int]]) -> torch.Tensor:
        """A gradient as backward needs it: with the layout and alignment of the recording, and in memory that overlaps nothing else."""
        if gradient is None:
            made = output.allocate(self.device).zero_()
        else:
            made = gradient.detach()
            start = made.data_ptr() if made.layout == torch.strided and made.numel() and not made.is_conj() and not made.is_neg() else 1
            end = start + _tensors.extent(made) if start != 1 else start
            is_apart = all(end <= first or last <= start for first, last in taken)
            if start % _outputs.ALIGNMENT or not is_apart or tuple(made.stride()) != output.strides \
                    or made.dtype != _tensors.dtype_of(output.dtype):
                made = output.allocate(self.device).copy_(made)
        if made.numel():
            taken.append((made.data_ptr(), made.data_ptr() + _tensors.extent(made)))
        return made


class _Step(torch.autograd.Function):
    """One call of a pair in autograd's graph."""

    @staticmethod
    def forward(ctx: Any, bound: BoundPair, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        results = bound.forward()
        ctx.bound = bound
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*(one for i, one in enumerate(results) if i not in bound.variant.pair.differentiable))
        ctx.save_for_backward(*bound.needed)
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor | None) -> Any:
        if torch.is_grad_enabled():
            raise errors.Unsupported("a recorded backward has no backward of its own: leave out create_graph=True, or pair=True")
        ctx.saved_tensors  # the access makes autograd raise an error if a saved tensor was written since, or if backward ran already
        return (None, *ctx.bound.backward(gradients))


class PairFunction(TorchFunction):
    """A function that is a pair under gradients. In other calls it is like any other function."""

    may_count = False
    may_give_up = False  # a pair refuses calls depending on gradients, so a refused call does not predict the next one

    def __init__(self, wrapped: CachedFunction) -> None:
        super().__init__(wrapped)
        self._hooks: dict[int, list[Any]] = {}  # the backward hooks of the modules, by the serial number of the surroundings

    def _expect_outside(self, tests: Tests, asks_stream: bool) -> list[tuple[Any, str]]:
        tests.same(tests.answer(torch.is_grad_enabled), False)
        return super()._expect_outside(tests, asks_stream)

    def as_it_is(self, wrapped: CachedFunction, owner: Any, arguments: dict[str, Any], keeps_grad: bool = False) -> Any:
        return super().as_it_is(wrapped, owner, arguments, keeps_grad or torch.is_grad_enabled())

    def reset(self) -> None:
        super().reset()
        self._hooks.clear()

    def _answer(self, wrapped: CachedFunction, owner: Any, arguments: dict[str, Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        if not torch.is_grad_enabled():
            return super()._answer(wrapped, owner, arguments, args, kwargs)
        try:
            call, _, variant = self._read(owner, arguments)
            needs_grad = bool(_pair_recording.differentiable_of(call))
            why = self._why_not(call)
        except Exception as error:
            return self._failed(wrapped, owner, arguments, error)
        if not needs_grad:
            with torch.no_grad():
                return super()._answer(wrapped, owner, arguments, args, kwargs)
        if why:
            return self._refuse(wrapped, owner, arguments, why)
        if variant is None:
            return self._first(wrapped, call)
        try:
            return self._replay(call, variant)
        except errors.MissForbidden:  # an input has another alignment, or overlaps others differently: this is handled like a first call
            self._around.pop(id(owner), None)
        except _launching.NOT_LAUNCHED as error:
            return self._failed(wrapped, owner, arguments, error)
        try:
            call = self._read_all(owner, arguments)
        except Exception as error:
            return self._failed(wrapped, owner, arguments, error)
        return self._first(wrapped, call)

    def _why_not(self, call: TorchCall) -> str:
        """Why this call cannot be a pair, or "". This is checked at each call, because it may change."""
        hooks = torch.nn.modules.module
        if torch._C._autograd._top_saved_tensors_default_hooks(True) is not None:
            return "torch.autograd.graph.saved_tensors_hooks is active around the call, but a replay would not call its hooks"
        if hooks._global_backward_hooks or hooks._global_backward_pre_hooks or any(self._hooks_of(call)):
            return "a module has hooks for backward, which a replay does not call: register them on the result, or on its inputs"
        return ""

    def _hooks_of(self, call: TorchCall) -> list[Any]:
        serial = call.around.serial
        if serial not in self._hooks:
            if len(self._hooks) > 64:
                self._hooks.clear()
            self._hooks[serial] = _backward_hooks(call.around.objects)
        return [*self._hooks[serial], *_backward_hooks(call.walker.objects)]

    # --- Overrides of TorchFunction

    def _key(self, call: TorchCall) -> Any:
        key = super()._key(call)
        return key if key is None else (key, torch.is_grad_enabled())

    def facts(self, call: TorchCall) -> dict[str, str]:
        found = super().facts(call)
        return {**found, _HALF: "of a pair"} if torch.is_grad_enabled() else found

    def _declaration(self, wrapped: CachedFunction, call: TorchCall, facts: dict[str, str]) -> _entry.Declaration:
        given = super()._declaration(wrapped, call, facts)
        return dataclasses.replace(given, name=half_of(given.name, "forward")) if torch.is_grad_enabled() else given

    def _load(self, wrapped: CachedFunction, call: TorchCall, given: _entry.Declaration) -> TorchVariant | None:
        forward = super()._load(wrapped, call, given)
        if forward is None or not torch.is_grad_enabled():
            return forward
        try:
            return self._with_backward(wrapped, call, given, forward)
        except (errors.Corrupt, errors.Stale) as error:
            _log.warning("'%s' is recorded again: %s", given.name, error)
            return None

    def _with_backward(self, wrapped: CachedFunction, call: TorchCall, given: _entry.Declaration, forward: TorchVariant) -> PairVariant | None:
        declared = _pair_recording.backward_declaration(given, wrapped._name(), forward.metadata)
        device, pool = _launching.device_of(call.device.index or 0), pool_of(wrapped._where())
        text = _entry.found(pool.caches[0], device, declared)
        if text is None:
            _log.info("'%s' is recorded again: '%s' is missing", given.name, declared.name)
            return None
        full = _declarations.completed(declared, _outputs.from_text(text), [])
        backward = pool.make_function(full.name, lambda cache, destroyed: _entry.Entry(cache, device, full, None, destroyed))
        variant = PairVariant.of(wrapped._name(), forward, backward, call.device)
        if len(variant.pair.gradients) != len(_pair_recording.differentiable_of(call)):
            raise errors.Corrupt(f"it has {len(variant.pair.gradients)} gradients, and the call {len(_pair_recording.differentiable_of(call))}")
        return variant

    def _replay(self, call: TorchCall, variant: TorchVariant) -> Any:
        if not isinstance(variant, PairVariant):
            return super()._replay(call, variant)
        bound = BoundPair(call, variant)
        results = _Step.apply(bound, *_pair_recording.differentiable_of(call))
        return _outputs.rebuilt(variant.metadata.tree, results, call.object)

    def _new_recording(self, wrapped: CachedFunction, call: TorchCall) -> _recording.Recording:
        if torch.is_grad_enabled():
            return _pair_recording.PairRecording(self, wrapped, call)
        return super()._new_recording(wrapped, call)

    def _adopted(self, wrapped: CachedFunction, call: TorchCall, given: _entry.Declaration, recording: _recording.Recording) -> TorchVariant:
        variant = super()._adopted(wrapped, call, given, recording)
        if not isinstance(recording, _pair_recording.PairRecording):
            return variant
        assert recording.backward is not None
        return PairVariant.of(wrapped._name(), variant, recording.backward, call.device)


def _backward_hooks(objects: Mapping[str, Any]) -> list[Any]:
    """The dictionaries of backward hooks in the modules. A hook that is added later appears in them, too."""
    modules = (one for one in objects.values() if isinstance(one, torch.nn.Module))
    return [held for one in modules for held in (one._backward_hooks, one._backward_pre_hooks)]
