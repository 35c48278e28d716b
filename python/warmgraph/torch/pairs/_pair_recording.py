"""A miss of a pair: the answer, one more run of both halves shows what they pass to each other; then each half is captured twice, checked
and stored."""
from __future__ import annotations

import contextlib
import dataclasses
import secrets
from typing import Any, Callable, Sequence

import torch

from warmgraph import errors
from warmgraph.calls._cached_function import HALVES, half_of
from warmgraph.core.cache._pools import pool_of
from warmgraph.torch.pairs import _pair_metadata
from warmgraph.torch.pairs._saved_tensors import Saver
from warmgraph.torch.read import _tensor_subclasses, _tensors
from warmgraph.torch.record import _answers, _capture, _copies, _operators
from warmgraph.torch.record._recording import _MOST_TRIES, Chance, RecordableFunction, Recording, chance_of, version_of
from warmgraph.torch.record._shadows import Shadows
from warmgraph.torch.replay import _bound_call, _declarations, _entry, _launching, _outputs
from warmgraph.torch.replay._outputs import Output
from warmgraph.torch.replay._torch_call import TorchCall

# The tolerance for captured gradients against the function's own, relative to the largest: two runs of a kernel with atomics differ as
# well.
_TOLERANCES = {torch.float64: 1e-6, torch.float32: 1e-3, torch.complex64: 1e-3, torch.complex128: 1e-6}
_LOW_TOLERANCE = 5e-2


def differentiable_of(call: TorchCall) -> list[torch.Tensor]:
    """The tensors that backward returns gradients for, in the order of the call."""
    found: dict[int, torch.Tensor] = {}
    for place in call.places:
        if place.tensor.requires_grad and place.tensor.numel():
            found.setdefault(id(place.tensor), place.tensor)
    return list(found.values())


class _Copy:
    """A copy of module and arguments. Its tensors are new leaves, on the same or on other storages. The original tensors cannot be used,
    because the caller's computations have tied them to streams."""

    def __init__(self, function: RecordableFunction, call: TorchCall, storages: dict[int, Any], swaps: bool) -> None:
        self.moved = _copies.MovedTensors(call.places, storages)
        for tensor in differentiable_of(call):
            self.moved.of(tensor).requires_grad_(True)
        self.regions = [self.moved.region(one) for one in call.regions]
        swapped, shared = function.in_place(call)
        (self.owner, self.arguments), memo = _copies.copied((call.owner, call.arguments), self.moved, shared)
        itself = {id(one) for one in (*swapped, *shared)}
        self.objects = {path: value if id(value) in itself else memo.get(id(value), value) for path, value in call.objects().items()}
        self.leaves = [self.moved.of(one) for one in differentiable_of(call)]
        self._swapped = swapped if swaps else []
        self._paths = {id(place.tensor): place.path for place in reversed(call.places)}
        self._callers = [(one, *_gradient_of(one)) for one in differentiable_of(call)]

    def path_with_gradient(self) -> str:
        """The path of the first tensor whose gradient the function itself has set, in the copy or the original; "" if there is none."""
        for leaf, (tensor, grad, version) in zip(self.leaves, self._callers):
            now, its_version = _gradient_of(tensor)
            if leaf.grad is not None or now is not grad or its_version != version:
                return self._paths[id(tensor)]
        return ""

    def in_place(self) -> Any:
        return _copies.swapped(self._swapped, self.moved)


@dataclasses.dataclass
class _Memory:
    """The memory of a capture besides the call's own tensors: results, saved tensors, gradients that backward receives, gradients that it
    returns."""

    results: list[torch.Tensor]
    saved: list[torch.Tensor]
    given: list[torch.Tensor]
    gradients: list[torch.Tensor]

    def all(self) -> list[torch.Tensor]:
        return [*self.results, *self.saved, *self.given, *self.gradients]

    def like(self, made: Sequence[torch.Tensor]) -> _Memory:
        """Makes a _Memory whose four lists have the same lengths, filled with the tensors of `made`."""
        rest = iter(made)
        return _Memory(*([next(rest) for _ in one] for one in (self.results, self.saved, self.given, self.gradients)))


class _Captures:
    """Both halves, captured on the same memory."""

    def __init__(self, recording: PairRecording, copy: _Copy, memory: _Memory) -> None:
        self._copy, self.memory = copy, memory
        self._halves: dict[str, _capture.Capture] = {}
        try:
            with copy.in_place():
                self._take(recording)
        except BaseException:
            self.close()
            raise
        named = zip(recording.names(), memory.all())
        self.where = {one.name: one.pointer for one in copy.regions}
        self.where.update({name: tensor.data_ptr() for name, tensor in named if tensor.numel()})
        self.where.update(zip(("generator.seed", "generator.offset"), self._halves["forward"].words))

    def _take(self, recording: PairRecording) -> None:
        saver, outputs = recording.saver.as_before(self._copy.regions, self.memory.saved), []

        def forward() -> None:
            outputs.extend(recording.ran_forward(self._copy, saver, self.memory.results))

        def backward() -> None:
            recording.ran_backward(outputs, self._copy, self.memory)

        self._halves["forward"] = recording.captured(_over(recording, forward), recording.draws)
        saver.end(list(recording.saver.used))
        self.filled = sorted(saver.filled)
        self._halves["backward"] = recording.captured(_over(recording, backward), False)
        outputs.clear()

    def nbytes(self) -> int:
        """The device memory that the captures take."""
        return sum(one.nbytes for one in self._halves.values())

    def half(self, half: str) -> _capture.Capture:
        return self._halves[half]

    def of(self, half: str, full: _entry.Declaration) -> _entry.CapturedGraph:
        one = self._halves[half]
        declared = (*full.inputs, *full.outputs, *full.states)
        return _entry.CapturedGraph(one.native, [(decl.name, self.where[decl.name], decl.nbytes) for decl in declared], one.scratch, one.free_blocks())

    def close(self) -> None:
        for one in reversed(list(self._halves.values())):  # backward first, because it frees memory in forward's pool
            one.close()
        self._halves.clear()


class PairRecording(Recording):
    """Answers and records one call under gradients. `backward`: the backward half, once it is stored."""

    may_draw_on_host = False
    backward: _entry.Entry | None = None
    saver: Saver  # the saver of the first run

    def answer(self) -> Any:
        """Runs the function and returns its result, which has the caller's autograd graph."""
        self._result = self._answer()
        return self._result

    @property
    def draws(self) -> bool:
        return self._draws != 0

    def _notice(self) -> None:
        """Notes what the answer wrote. Memory whose writes autograd does not count is included: a normalisation's running statistics."""
        super()._notice()
        of_parts = next((path for path, one in self._call.objects().items() if _tensor_subclasses.has_parts(one)), "")
        if of_parts:
            raise errors.NotRecordable(f"{of_parts} is a subclass of torch.Tensor, which a pair cannot have: call it under torch.no_grad()")
        if self._drawn.path:
            raise errors.NotRecordable(f"{self._drawn.path} is a torch.Generator, but a pair draws from the device's generator alone: leave it out")
        for region in self._call.regions:
            needing = next((place for place in region.places if place.tensor.requires_grad), None)
            if needing is not None and region.is_written:
                raise errors.NotRecordable(f"{needing.path} requires grad and is written in place, but a replay cannot report this to autograd: "
                                           "write into a clone()")
            region.is_written = region.is_written or (region.is_state and needing is None)

    def adopted(self, given: _entry.Declaration) -> tuple[_entry.Entry, _outputs.Metadata, torch.Tensor | None]:

        call = self._call
        self._notice()
        self._expect_possible()
        described = _outputs.described(self._result, call.objects(), call.regions)
        self._expect_differentiable(described)
        self._described = described
        torch.cuda.synchronize(call.device)
        with self.twins(), _capture.uncached_autocast(), self._start.there():
            self._run_eagerly()
            entry, metadata = self.as_answered_too(lambda: self._captured_and_adopted(given))
        return entry, metadata, _bound_call.words_of_generator(call.device) if metadata.draws else None

    # --- Calls that cannot be a pair

    def _expect_possible(self) -> None:
        call, function = self._call, self._function
        if function.is_compiled_already or call.walker.compiled_via:
            raise errors.NotRecordable("PyTorch compiled it, or a module in it, but pairs are recorded only of eager functions")
        elsewhere = next((place for place in call.places if place.via == "elsewhere" and place.tensor.requires_grad), None)
        if elsewhere is not None:
            raise errors.NotRecordable(f"{elsewhere.path} requires grad, and the function reaches it through a closure or a global: wrap the module "
                                       "(cache_compile(module, pair=True)) or its method, or pass it as an argument")

    def _expect_differentiable(self, described: _outputs.ResultDescription) -> None:
        views = (self._call.object(path) for path in _outputs.paths_in(described.tree, ("view",)))
        if any(isinstance(base, torch.Tensor) and base.requires_grad for base in views):
            raise errors.NotRecordable("its result is a view of a tensor that requires grad, and a replay would lose the gradient of that tensor: "
                                       "make the view outside, or return a clone()")
        if not any(one.requires_grad for one in described.fresh):
            raise errors.NotRecordable("none of its results requires grad: call it under torch.no_grad()")

    # --- One run of both halves

    def _run_eagerly(self) -> None:
        """Runs both halves eagerly, from the memory contents that the answer started from. Libraries initialise, and the run shows which
        tensors are saved. Its saved tensors and gradients are the reference for the captured ones. The caller's memory and generator do
        not change."""
        call = self._call
        storages = {int(one.storage.data_ptr()): one.storage if _requires_grad(one) else one.storage.clone() for one in call.regions}
        copy = _Copy(self._function, call, storages, swaps=True)
        saver = Saver(copy.regions, call.device, self.draws)
        with _capture.own_generator(call.device, self._drawn.seed, self._drawn.offset), _capture.host_random() as drawn, copy.in_place(), _NoHooks():
            results = [one.allocate(call.device) for one in self._described.outputs]
            outputs = self.ran_forward(copy, saver, results)
            self._own_saved = [one.clone() for one in saver.memory]
            given = [_pattern(self._described.outputs[i], call.device) for i in self._differentiable()]
            generator = _capture.generator_of(call.device)
            offset = generator.get_offset()
            with _operators.shown_to(saver.shown):
                gradients = _gradients(outputs, copy, given)
            if generator.get_offset() != offset:
                raise errors.NotRecordable("its backward draws random numbers, but only forward may draw them")
        if drawn:
            raise errors.NotRecordable(f"it draws random numbers on the host ({', '.join(drawn)}), which a replay would not draw: pass them "
                                       "as tensors, or draw them on the device")
        self.saver = saver
        self._gradients = self._gradient_outputs(gradients)
        self._own = [one for one in gradients if one is not None]
        self._saved = [Output(f"pair.saved{i}", _tensors.text_of(one.dtype), tuple(one.size()), (1,)) for i, one in enumerate(saver.memory)]
        self._memory = _Memory(results, saver.memory, given, [one.allocate(call.device) for one in self._gradients if one is not None])

    def _gradient_outputs(self, gradients: Sequence[torch.Tensor | None]) -> list[Output | None]:
        found: list[Output | None] = []
        for gradient in gradients:
            why = "" if gradient is None else _tensors.why_unusable(gradient)
            if why:
                raise errors.NotRecordable(f"a gradient {why}")
            if gradient is None:
                found.append(None)
                continue
            like = torch.empty_like(gradient, device="meta")
            count = sum(one is not None for one in found)
            found.append(Output(f"pair.gradient{count}", _tensors.text_of(gradient.dtype), tuple(gradient.size()), tuple(like.stride())))
        if not any(found):
            raise errors.NotRecordable("no tensor that requires grad gets a gradient from its result: call it under torch.no_grad()")
        return found

    def _differentiable(self) -> list[int]:
        return [i for i, one in enumerate(self._described.fresh) if one.requires_grad]

    def names(self) -> list[str]:
        """The names of _Memory.all()."""
        return [*(one.name for one in self._described.outputs), *(one.name for one in self._saved),
                *(f"pair.grad{n}" for n in range(len(self._memory.given))), *(one.name for one in self._gradients if one is not None)]

    # --- Running and capturing

    def ran_forward(self, copy: _Copy, saver: Saver, results: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Runs forward, and copies its results to `results`. Returns the results that require grad."""
        self._captured_call = (copy.owner, copy.arguments)
        with torch.autograd.set_multithreading_enabled(False):
            with torch.enable_grad(), saver.hooks():
                result = self._function.run(self._wrapped, copy.owner, copy.arguments)
            now = _outputs.described(result, copy.objects, copy.regions)
        was = self._described
        if now.tree != was.tree or now.outputs != was.outputs or [a.requires_grad for a in now.fresh] != [a.requires_grad for a in was.fresh]:
            raise _answers.CaptureDiffers(f"it returns something else at its second call: {now.tree}, but {was.tree} at the first")
        if copy.path_with_gradient():
            raise errors.NotRecordable("it calls backward() itself: return the loss, and call it outside")
        with torch.no_grad():
            for output, fresh in zip(results, now.fresh):
                if fresh.numel():
                    output.copy_(fresh.detach())
        return [one for one in now.fresh if one.requires_grad]

    def ran_backward(self, outputs: Sequence[torch.Tensor], copy: _Copy, memory: _Memory) -> None:
        found = _gradients(outputs, copy, memory.given)
        if [one is None for one in found] != [one is None for one in self._gradients]:
            raise errors.NotRecordable("its backward gives other gradients at its second call")
        with torch.no_grad():
            for output, gradient in zip(memory.gradients, [one for one in found if one is not None]):
                output.copy_(gradient)

    # --- Adoption

    def _texts(self) -> tuple[str, str]:
        """The metadata of both halves."""
        call, described = self._call, self._described
        saved = [self._saved[i] for i in self._first.filled]
        base = _outputs.to_text(_outputs.ResultDescription(described.tree, [*described.outputs, *saved], []), call.regions, self._draws, call.around.objects)
        pair = _pair_metadata.Description(secrets.randbits(128), len(described.outputs), tuple(self._differentiable()), 
                                            frozenset((*self.saver.used, *self.saver.reread)), tuple(self._gradients))
        made = _outputs.ResultDescription({"sequence": "builtins:list", "named": False, "of": [{"output": i} for i in range(len(pair.list_made()))]},
                                  pair.list_made(), [])
        inputs = [one for one in call.regions if one.name in pair.used and not one.is_state]
        return _pair_metadata.with_pair(base, pair), _outputs.to_text(made, inputs, 0, {})

    def _captured_and_adopted(self, given: _entry.Declaration) -> tuple[_entry.Entry, _outputs.Metadata]:
        """Stores backward before forward: then a process that finds forward also finds backward, unless backward was removed meanwhile."""
        self._first = self._captured_here()
        try:
            texts = dict(zip(HALVES, self._texts()))
            metadata = _outputs.from_text(texts["forward"])
            why = _outputs.why_not_rebuilt(metadata, self._call.object)
            if why:
                raise errors.NotRecordable(why)
            self._second = _ShadowCaptures(self)
            try:
                self.backward = self._tried("backward", given, texts)
                return self._tried("forward", given, texts), metadata
            finally:
                self._second.close()
        finally:
            self._first.close()
            torch.cuda.synchronize(self._call.device)

    def _captured_here(self) -> _Captures:
        storages = {int(one.storage.data_ptr()): one.storage for one in self._call.regions}
        return _Captures(self, _Copy(self._function, self._call, storages, swaps=False), self._memory)

    def _judge_of_half(self, half: str) -> _entry.Judge:
        """The judge of a half. Forward must give the answer's results, and save the tensors that the uncaptured function saves. Backward
        must give the function's own gradients."""
        memory = self._memory
        if half == "backward":
            declared = [one for one in self._gradients if one is not None]
            return _GradientJudge([_answers.ResultPair(one.name, own, found) for one, own, found in zip(declared, self._own, memory.gradients)])
        results = [_answers.ResultPair(one.name, answer.detach(), found)
                   for one, answer, found in zip(self._described.outputs, self._described.fresh, memory.results)]
        given_by_nobody = set() if self.draws else set(self.saver.of_host.values())  # words of a generator that draws nothing may differ
        saved = [_answers.ResultPair(f"its saved tensor for backward ({self._saved[i].name})", self._own_saved[i], memory.saved[i])
                 for i in self._first.filled if i not in given_by_nobody]
        return self.judge_of([*results, *saved], None)

    def _tried(self, half: str, given: _entry.Declaration, texts: dict[str, str]) -> _entry.Entry:
        for tried in range(1, _MOST_TRIES + 1):
            try:
                return self._adopt_half(half, given, texts)
            except errors.NotRecordable as error:
                chance = chance_of(error)
                if chance is None or tried == _MOST_TRIES:
                    raise
                self._second.close()
                if chance is Chance.number:
                    self._first.close()
                    self._first = self._captured_here()
                self._second = _ShadowCaptures(self)
        raise AssertionError("unreachable")

    def _adopt_half(self, half: str, given: _entry.Declaration, texts: dict[str, str]) -> _entry.Entry:

        metadata = {one: _outputs.from_text(texts[one]) for one in HALVES}
        if half == "forward":
            full = _declarations.completed(given, metadata[half], self._first.half(half).words, texts[half],
                             [*self._memory.results, *(self._memory.saved[i] for i in self._first.filled)])
        else:
            declared = backward_declaration(given, self._wrapped._name(), metadata["forward"])
            inputs = [dataclasses.replace(one, pointer=self._first.where[one.name]) for one in declared.inputs]
            full = _declarations.completed(dataclasses.replace(declared, inputs=inputs), metadata[half], [], texts[half], self._memory.gradients)
        full = dataclasses.replace(full, part=(_pair_metadata.description_of(metadata["forward"]).recording, HALVES.index(half)))
        judge = self._judge_of_half(half)
        device = _launching.device_of(self._call.device.index or 0)
        captures = (self._first.of(half, full), self._second.captures.of(half, full))
        _capture.set_words(self._first.half(half), self._call.device, self._drawn.seed, self._drawn.offset)
        torch.cuda.synchronize(self._call.device)
        pool = pool_of(self._wrapped._where())
        with self.naming_operators(self._first.half(half)):
            entry = pool.make_function(full.name, lambda cache, destroyed: _entry.Entry(cache, device, full, captures, destroyed, judge))
        tensors = [*self._memory.all(), *self._own_saved, *self._own]
        entry.recording_bytes = self._start.nbytes() + self._first.nbytes() + self._second.nbytes() + sum(one.nbytes for one in tensors)
        return entry


class _GradientJudge:
    """Checks that a captured backward gives the function's own gradients. The kernels of backward may add numbers in another order each
    time."""

    def __init__(self, given: Sequence[_answers.ResultPair]) -> None:
        self._given = given

    def after_run(self) -> None:
        for name, own, found in self._given:
            tolerance = _TOLERANCES.get(own.dtype, _LOW_TOLERANCE)
            largest = float(torch.nan_to_num(own.abs().float(), 0.0, 0.0, 0.0).max()) if own.numel() else 0.0
            if not torch.allclose(found.to(own.dtype), own, rtol=tolerance, atol=tolerance * largest, equal_nan=True):
                raise _answers.CaptureDiffers(f"the captured backward gives another {name} than the function itself: they differ by "
                                       f"{float((found - own).abs().float().max()):.3g}, the largest is {largest:.3g}")

    def agreement(self) -> str:
        return "within the tolerance of gradients"


class _ShadowCaptures:
    """Both halves, captured with all tensors on shadows."""

    def __init__(self, recording: PairRecording) -> None:
        call, memory = recording._call, recording._memory
        storages = list({int(one.storage.data_ptr()): one.storage for one in call.regions}.items())
        tensors = [one for one in memory.all() if one.numel()]
        ranges = [(pointer, storage.nbytes()) for pointer, storage in storages]
        ranges += [(one.data_ptr(), _tensors.extent(one)) for one in tensors]
        self._shadows = Shadows(call.device, ranges)
        try:
            moved = dict(zip([pointer for pointer, _ in storages], self._shadows.storages))
            rest = iter(self._shadows.storages[len(storages):])
            made = [_tensors.view_of(next(rest), one.dtype, 0, one.size(), one.stride(), call.device) if one.numel() else one
                    for one in memory.all()]
            self.captures = _Captures(recording, _Copy(recording._function, call, moved, swaps=True), memory.like(made))
        except BaseException:
            self._shadows.close()
            raise

    def nbytes(self) -> int:
        """The device memory that it takes."""
        return self.captures.nbytes() + self._shadows.nbytes

    def close(self) -> None:
        self.captures.close()
        self._shadows.close()


def backward_declaration(given: _entry.Declaration, name: str, forward: _outputs.Metadata) -> _entry.Declaration:
    """Makes the declaration of the backward half from that of the forward half. `given`: forward's declaration for the look-up."""
    pair = _pair_metadata.description_of(forward)
    inputs = [_declarations.output_decl(one, 0) for one in (*pair.given(forward.outputs), *forward.outputs[pair.results:]) if _declarations.has_elements(one)]
    inputs += [one for one in given.inputs if one.name in pair.used]
    states = [one.with_access(False) for one in given.states if one.name in pair.used]
    return dataclasses.replace(given, name=half_of(name, "backward"), inputs=inputs, outputs=[], states=states, metadata="",
                               facts={**given.facts, _pair_metadata.BACKWARD_OF: f"{pair.recording:032x}"}, raw_facts=[])


def _gradients(outputs: Sequence[torch.Tensor], copy: _Copy, given: Sequence[torch.Tensor]) -> Sequence[torch.Tensor | None]:
    """Computes gradients in this thread, because a capture belongs to a thread. Autocast is off, as when autograd calls backward."""
    with torch.autograd.set_multithreading_enabled(False), _no_autocast():
        found = torch.autograd.grad(list(outputs), copy.leaves, list(given), allow_unused=True)
    written = copy.path_with_gradient()
    if written:
        raise errors.NotRecordable(f"its backward puts a gradient into {written} by itself (a backward() that it calls), which a replay would not: "
                                   "return the gradient from the autograd function's backward, or use torch.utils.checkpoint with "
                                   "use_reentrant=False")
    return found


def _gradient_of(tensor: torch.Tensor) -> tuple[torch.Tensor | None, int | None]:
    """Returns (the tensor's gradient, how often the gradient was written). PyTorch would warn when the gradient of a non-leaf is read."""
    grad = tensor.grad if tensor.is_leaf or tensor.retains_grad else None
    return grad, None if grad is None else version_of(grad)


def _no_autocast() -> Any:
    return torch.autocast("cuda", enabled=False) if torch.is_autocast_enabled("cuda") else contextlib.nullcontext()


def _over(recording: Recording, work: Callable[[], None]) -> Callable[[], None]:
    def over() -> None:
        with recording.over():
            work()

    return over


def _requires_grad(region: Any) -> bool:
    return any(place.tensor.requires_grad for place in region.places)


def _pattern(output: Output, device: torch.device) -> torch.Tensor:
    """A gradient for testing backward: its numbers are exact in each type, and their sum is small."""
    made = output.allocate(device)
    values = (torch.arange(made.numel(), device=device) % 13 - 6).to(torch.float32) / 8
    return made.copy_(values.view(made.size()))


class _NoHooks(torch.overrides.TorchFunctionMode):
    """Refuses hooks on tensors that the function computes: backward calls these hooks, but a replay would not."""

    _HOOKS = (torch.Tensor.register_hook, torch.Tensor.register_post_accumulate_grad_hook, torch.Tensor.retain_grad)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in self._HOOKS:
            raise errors.NotRecordable(f"it calls {func.__name__} on a tensor, but a replay of backward calls no hooks: register hooks outside")
        return func(*args, **(kwargs or {}))
