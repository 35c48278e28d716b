"""Records the graphs that a process captures by torch.cuda.graph: the first process writes its captures to a folder, and the captures of a
second process prove them."""
from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import gc
import logging
import sys
import threading
import types
import weakref
from typing import Any, Callable, Mapping, Sequence

import torch

from warmgraph import errors
from warmgraph.calls import _names, _refusals
from warmgraph.calls._cached_function import CachedFunction
from warmgraph.config import Config, Path
from warmgraph.torch.calls._torch_function import TorchFunction
from warmgraph.torch.engines import _engines
from warmgraph.torch.read import _call_reader, _tensors
from warmgraph.torch.read._tensor_readers import TensorPlace
from warmgraph.torch.record import _caller_frames, _capture, _constants, _copied_graph, _operator_trail, _operators, _recording
from warmgraph.torch.replay import _entry, _launching, _modes, _moved_tensors, _outputs, _pausing, _regions, _surrounding_work
from warmgraph.torch.replay._torch_call import TorchCall, common_device

_log = logging.getLogger("warmgraph")
_lock = threading.RLock()
_open: list[Recorder] = []  # the open recorder, at most one
_NOWHERE = "; with record_all: name the tensor in the function that captures the graph. Random numbers are drawn from such memory: use cache_compile or capture_one for them"


@dataclasses.dataclass(frozen=True)
class SeenGraph:
    """A graph that the process captured. outcome: "written" (another process must prove it), "recorded" (proven by another process's
    capture), or "refused" (`why`). `inputs`, `outputs` and `states` have the names that a Server uses; `outputs` also has the variable
    in which the program keeps each output."""

    name: str
    outcome: str
    why: str = ""
    inputs: tuple[str, ...] = ()
    outputs: Mapping[str, str] = dataclasses.field(default_factory=dict)
    states: tuple[str, ...] = ()


def record_all(captures: Path, *, cache_dir: Path | None = None, config: Config | None = None, name: str = "graphs", version: str | None = None,
               global_rank: int | None = None, key: Callable[[Mapping[str, Any]], _engines.Key] | None = None, **options: Any) -> Recorder:
    """Observes every graph that this process captures from now on with torch.cuda.graph, or CUDAGraph.capture_begin and capture_end. Call
    it before the weights are made. The program itself is not affected: it keeps its own graphs, tensors and random numbers.

    The code that begins a capture must end it, and only one thread may capture at a time. Raises Unsupported if this PyTorch does not keep
    captured graphs. captures: the folder where one process leaves its captures for another. The other options are those of GraphCache. key:
    makes a graph's key from the variables of the code that captures it; by default a graph has this function's name and a number. Close the
    result, or use it in a `with`.
    """
    folder = _engines.folder_of(captures)
    if folder is None:
        raise errors.InvalidArgument("captures is None, expected the path of a folder: a graph is only recorded when two processes captured it")
    if key is not None and not callable(key):
        raise errors.InvalidArgument(f"key is {key!r}, expected a function that takes the variables of the code that captures a graph")
    if not hasattr(torch.cuda.CUDAGraph, "raw_cuda_graph"):
        raise errors.Unsupported(f"PyTorch {torch.__version__} cannot return a captured graph (torch.cuda.CUDAGraph.raw_cuda_graph), expected 2.9 or later")
    recorder = Recorder(folder, _engines.checked_options("record_all", ("captures", "key"), name, cache_dir=cache_dir, config=config, version=version,
                                                         global_rank=global_rank, **options), name, key)
    with _lock:
        if _open:
            raise errors.InvalidArgument("record_all() is already active in this process: close its recorder first")
        _open.append(recorder)
        recorder._begin()
    return recorder


class Recorder:
    """The result of record_all. `graphs`: the captured graphs in the order of their captures."""

    def __init__(self, folder: str, options: dict[str, Any], name: str, key: Callable[[Mapping[str, Any]], _engines.Key] | None) -> None:
        self.graphs: list[SeenGraph] = []
        self._folder, self._options, self._name, self._key = folder, options, name, key
        self._counts: collections.Counter[str] = collections.Counter()
        self._captures: dict[int, _CaptureStart] = {}  # the captures in progress, by the id of their graph
        self._hooks: _Hooks | None = None
        self._taken: _capture.Addresses | None = None
        self._keeping = contextlib.ExitStack()  # the context in which device code is kept

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        counts = collections.Counter(one.outcome for one in self.graphs)
        return f"<warmgraph recorder of {len(self.graphs)} graphs{''.join(f', {count} {outcome}' for outcome, count in sorted(counts.items()))}>"

    def __str__(self) -> str:
        """A table of the graphs."""
        rows = [("graph", "outcome", "inputs", "outputs", "states", "why")]
        rows += [(one.name, one.outcome, str(len(one.inputs)), str(len(one.outputs)), str(len(one.states)), one.why) for one in self.graphs]
        widths = [max(len(row[i]) for row in rows) for i in range(5)]
        return "\n".join("  ".join((*(cell.ljust(width) for cell, width in zip(row, widths)), row[5])).rstrip() for row in rows)

    def close(self) -> None:
        """Stops observing. Repeating it does nothing."""
        with _lock:
            if self in _open:
                _open.remove(self)
            hooks, self._hooks = self._hooks, None
            if hooks is not None:
                hooks.undo()
            taken, self._taken = self._taken, None
            if taken is not None:
                taken.close()
            self._keeping.close()
        for begun in list(self._captures.values()):  # the hooks will not report the end of these captures any more
            begun.leave()
        self._captures.clear()

    def _begin(self) -> None:
        self._keeping.enter_context(_pausing.recording())
        self._hooks = _Hooks(self)
        torch.cuda._lazy_call(self._move_what_comes)  # runs at once if CUDA is running already

    def _move_what_comes(self) -> None:
        """Takes some MiB of addresses, a different amount in each process, so that later memory has other addresses: memory at the same
        address as in another process proves nothing."""
        try:
            if self._hooks is not None and self._taken is None:
                self._taken = _capture.Addresses(torch._C._cuda_getDevice())
        except Exception:  # the program must not fail here; PyTorch reports CUDA's errors to it
            _log.debug("no addresses are taken", exc_info=True)

    # --- Called by the hooks

    def begun(self, graph: Any) -> None:
        is_alone = not self._captures
        try:
            if is_alone:  # with other captures in progress, these calls would break them
                torch.cuda.synchronize()
                torch._C._cuda_clearCublasWorkspaces()  # so that new workspaces come from this graph's pool
            self._captures[id(graph)] = _CaptureStart(is_alone, sys.exc_info()[1], _caller_frames.calling(), _live_tensors(), _capture.free_now())
            self._captures[id(graph)].enter()
        except Exception:
            _log.debug("a graph is not recorded", exc_info=True)

    def ending(self, graph: Any) -> None:
        begun = self._captures.get(id(graph))
        if begun is not None:
            begun.leave()

    def failed(self, graph: Any) -> None:
        """Called when PyTorch failed to begin a capture."""
        self.ending(graph)
        self._captures.pop(id(graph), None)

    def ended(self, graph: Any, is_whole: bool) -> None:
        """is_whole: whether PyTorch ended the graph's capture successfully."""
        begun, ended = self._captures.pop(id(graph), None), _caller_frames.calling()
        if begun is None or not is_whole or sys.exc_info()[1] not in (None, begun.raised):
            return
        try:
            seen = self._seen(graph, begun, ended)
        except Exception as error:
            seen = SeenGraph(self._numbered(self._name), "refused", errors.text_of(error))
            if not isinstance(error, errors.Error):
                _log.debug("'%s': where it failed", seen.name, exc_info=error)
        if seen.outcome == "refused":
            _log.warning("the graph '%s' is not recorded: %s", seen.name, seen.why)
        else:
            _log.info("graph '%s': %s", seen.name, seen.outcome)
        self.graphs.append(seen)

    def _seen(self, graph: Any, begun: _CaptureStart, ended: _caller_frames.CodePositions) -> SeenGraph:
        if not begun.is_alone or self._captures or _surrounding_work.is_captured():
            raise errors.NotRecordable("another capture is active, and recording would end it: capture one graph after the other")
        frame, variables = _caller_frames.variables_between(begun.spots, ended)
        name = self._name_of(frame, variables)
        wrapped = _engines.wrapped_by(self._options, name, _caller_frames.function_of(frame))
        if wrapped.policy in ("read_only", "require_hit", "off"):
            return SeenGraph(name, "refused", f"the policy is {wrapped.policy}")
        with _moved_tensors.paused(), _recording.lock, _pausing.recording():
            try:
                seen = _ObservedCapture(name, wrapped, variables, graph, begun).proven(self._folder)
            except errors.Error as error:
                seen = SeenGraph(name, "refused", str(error))
            else:
                if seen.outcome != "refused":
                    return seen
        _refusals.note(wrapped, seen.why, _launching.current_device)
        return seen

    def _name_of(self, frame: types.FrameType, variables: dict[str, Any]) -> str:
        if self._key is None:
            return self._numbered(f"{self._name}-{_names.folder_name(frame.f_code.co_name.strip('<>'))}")
        key = _engines.checked_key(self._key(types.MappingProxyType({**frame.f_locals, **variables})))
        name = _names.folder_name(f"{self._name}-{_engines.text_of(key)}")
        count = self._counts[name]
        self._counts[name] += 1
        return f"{name}-{count + 1}" if count else name

    def _numbered(self, name: str) -> str:
        self._counts[name] += 1
        return f"{name}-{self._counts[name] - 1}"


@dataclasses.dataclass
class _CaptureStart:
    """The state before a capture. raised: the exception that the program was handling. live: (tensor, its version) for each device tensor,
    by id. trail: the capture's operators, if they are noted."""

    is_alone: bool
    raised: BaseException | None
    spots: _caller_frames.CodePositions
    live: dict[int, tuple[weakref.ref[torch.Tensor], int | None]]
    free: dict[int, int]
    trail: _operator_trail.OperatorTrail | None = None
    _thread: int = dataclasses.field(default_factory=threading.get_ident)
    _over: contextlib.ExitStack = dataclasses.field(default_factory=contextlib.ExitStack)

    def enter(self) -> None:
        """Runs the capture's operators on a cleared stack, so that kernel parameters contain no old bytes from earlier operators."""
        if not _operators.compiled_graphs():  # not if compiled functions exist: they guard on such modes, and would be compiled again
            device = torch.device("cuda", torch.cuda.current_device() if torch.cuda.is_initialized() else 0)
            self.trail = _operator_trail.OperatorTrail(_constants.enqueued_in(device), _capture.cleared, is_bounded=False)
            self._over.enter_context(_operators.shown_to(run=self.trail.around))

    def leave(self) -> None:
        """Ends the clearing. Works only in the capturing thread, because PyTorch's modes belong to a thread."""
        if threading.get_ident() == self._thread:
            self._over.close()

    def had(self, tensor: torch.Tensor) -> bool:
        held = self.live.get(id(tensor))
        return held is not None and held[0]() is tensor

    def is_written(self, tensor: torch.Tensor) -> bool:
        """Whether the tensor was written since the capture began. Also true if its writes are not counted."""
        version = self.live[id(tensor)][1] if self.had(tensor) else None
        return version is None or version != _recording.version_of(tensor)


def _live_tensors() -> dict[int, tuple[weakref.ref[torch.Tensor], int | None]]:
    return {id(one): (weakref.ref(one), _recording.version_of(one)) for one in gc.get_objects()
            if type(one) in _tensors.PLAIN_TYPES and one.device.type == _tensors.DEVICE_TYPE}


class _Function(TorchFunction):
    """The code that captures a graph, as a function that can be recorded."""

    may_count = False

    def __init__(self, wrapped: CachedFunction, name: str) -> None:
        super().__init__(wrapped)
        self._graph_name = name

    def facts(self, call: TorchCall) -> dict[str, str]:
        return {**super().facts(call), "graph.key": self._graph_name}

    def declared(self, wrapped: CachedFunction, call: TorchCall) -> _entry.Declaration:
        """The declaration to the library. Memory that no variable refers to is not stored as a constant: it may be a weight, or a
        generator's words, which change later."""
        return dataclasses.replace(self._declaration(wrapped, call, self.facts(call)), keeps_undeclared=False)


class _ObservedCapture:
    """A captured graph with the inputs and outputs that the program's variables show."""

    def __init__(self, name: str, wrapped: CachedFunction, variables: dict[str, Any], graph: Any, begun: _CaptureStart) -> None:
        self._name, self._wrapped, self._graph, self._trail = name, wrapped, graph, begun.trail
        self._function = _Function(wrapped, name)
        self.scratch, self.free_blocks = _capture.memory_of(graph.pool(), begun.free)
        given, around = _caller_frames.split(variables)
        self._around = around
        walker, reached = _call_reader.read(self._function.reached, given, None, around, is_tolerant=True)
        made = [place for place in walker.places if not begun.had(place.tensor) and self._is_in_pool(place)]
        # Memory that earlier graphs left in the pool is scratch for this one; the trial shows whether the graph reads it.
        walker.places[:] = [place for place in walker.places if not self._is_in_pool(place)]
        if not made and not walker.places:
            raise errors.NotRecordable("no variable of the capturing code holds a tensor on a device: name the tensors that the graph reads in the "
                                       "function that captures it")
        device = common_device([*walker.places, *made])
        regions = _regions.regions_of(walker.places)
        for region in regions:
            region.is_written = any(begun.is_written(place.tensor) for place in region.places)
        around_it = _engines.ReadSurroundings(walker, reached, regions)
        self.call = TorchCall(given, None, walker, around_it, regions, device, _modes.modes(), walker.of_arguments)
        self._made = _apart(made)

    def _is_in_pool(self, place: TensorPlace) -> bool:
        at = _regions.storage_key(place.tensor)
        return any(start <= at < start + nbytes for _, start, nbytes in self.scratch)

    def proven(self, folder: str) -> SeenGraph:
        """Proves the graph by another process's capture in the folder. If there is no such capture, writes this one into the folder."""
        call = self.call
        results = {id(one) for one in self._made.values()}
        described = _outputs.described(self._made, {path: one for path, one in call.objects().items() if id(one) not in results}, call.regions)
        text = _outputs.to_text(described, call.regions, 0, call.around.objects)
        metadata = _outputs.from_text(text)
        if not described.fresh and not any(region.is_written for region in call.regions):
            raise errors.NotRecordable("none of the tensors that the graph writes is a variable of the capturing code: store its results in variables")
        given = self._function.declared(self._wrapped, call)
        proof = _Proof(self._function, self._wrapped, call)
        proof.variables = self._around
        paths = {id(tensor): path for path, tensor in self._made.items()}
        outputs = {one.name: paths[id(tensor)] for one, tensor in zip(described.outputs, described.fresh)}
        with contextlib.closing(_FirstCapture(self, described)) as first:
            outcome, why = proof.settled(folder, given, metadata, text, first)
        return SeenGraph(self._name, outcome, why, tuple(one.name for one in call.inputs), outputs, tuple(one.name for one in call.states))


def _apart(places: Sequence[TensorPlace]) -> dict[str, torch.Tensor]:
    """Tensors by path. If tensors share memory (e.g. a view and its base), only the largest is returned."""
    kept: list[TensorPlace] = []
    for one in sorted(places, key=lambda place: -_tensors.extent(place.tensor)):
        if not any(_regions.storage_key(one.tensor) == _regions.storage_key(other.tensor) and _tensors.overlap(one.tensor, other.tensor) for other in kept):
            kept.append(one)
    return {one.path: one.tensor for one in places if any(one is other for other in kept)}


class _FirstCapture:
    """The program's capture. At its end it copies its results into outputs."""

    def __init__(self, seen: _ObservedCapture, described: _outputs.ResultDescription) -> None:
        call = seen.call
        self.outputs = [one.allocate(call.device) for one in described.outputs]
        copies = [_copied_graph.Copy(fresh.data_ptr(), output.data_ptr(), _tensors.extent(fresh))
                  for fresh, output in zip(described.fresh, self.outputs) if fresh.numel()]
        self._copied = _copied_graph.CopiedGraph(seen._graph.raw_cuda_graph(), copies)
        self.capture = _capture.Capture(None, None, self._copied.native, seen.scratch, seen.free_blocks, [], trail=seen._trail)
        if seen._trail is not None:
            seen._trail.graph = seen._graph.raw_cuda_graph()
        self.pointers = [one.pointer for one in call.inputs] + [one.data_ptr() for one in self.outputs if one.numel()]
        self.pointers += [one.pointer for one in call.states]

    def nbytes(self) -> int:
        """The device memory that it takes beside the program's."""
        return sum(one.nbytes for one in self.outputs)

    def close(self) -> None:
        self._copied.close()


class _Proof(_recording.Recording):
    """A recording of a graph that the program captured itself. variables: the objects that the capturing code names."""

    variables: dict[str, Any] = {}

    def _roots(self) -> list[tuple[str, torch.nn.Module]]:
        return [*((name, one) for name, one in self.variables.items() if isinstance(one, torch.nn.Module)), *super()._roots()]

    def _judge(self, first: Any) -> None:
        """Returns no judge: the program's own graph is the reference, because its work never ran outside a graph."""

    def settled(self, folder: str, given: _entry.Declaration, metadata: _outputs.Metadata, text: str, first: Any) -> tuple[str, str]:
        """Returns the outcome, and why the graph was refused."""
        try:
            entry, _, _ = self._adopt(given, metadata, text, first, folder)
        except errors.NotFound:
            self._write(folder, given, metadata, text, first)
            return "written", ""
        except (errors.NotRecordable, errors.VerificationFailed) as error:
            with contextlib.suppress(errors.Error):  # the capture is written nevertheless: the next process may use other addresses
                self._write(folder, given, metadata, text, first)
            return "refused", str(error) + (_NOWHERE if "lies in no declared region" in str(error) else "")
        entry.close()
        entry.device._collect()
        return "recorded", ""


class _Hooks:
    """Hooks in PyTorch's graph class. PyTorch 2.14's own hook (register_graph_instantiate_hook) does not report when a capture begins."""

    def __init__(self, recorder: Recorder) -> None:
        kind: Any = torch.cuda.CUDAGraph
        self._kind = kind
        self._before = {name: kind.__dict__[name] for name in ("__init__", "capture_begin", "capture_end") if name in kind.__dict__}
        made, begin, end = kind.__init__, kind.capture_begin, kind.capture_end

        @functools.wraps(made)
        def init(graph: Any, keep_graph: bool = False) -> None:
            made(graph, True)  # makes the graph with keep_graph, so that the captured graph stays readable
            graph._warmgraph_is_kept = keep_graph

        @functools.wraps(begin)
        def capture_begin(graph: Any, *args: Any, **kwargs: Any) -> None:
            if hasattr(graph, "_warmgraph_is_kept") and not _caller_frames.is_ours(sys._getframe(1)):
                recorder.begun(graph)
            try:
                begin(graph, *args, **kwargs)
            except BaseException:
                recorder.failed(graph)
                raise

        @functools.wraps(end)
        def capture_end(graph: Any) -> None:
            is_whole = False
            recorder.ending(graph)
            try:
                end(graph)
                is_whole = True
            finally:
                recorder.ended(graph, is_whole)
            if getattr(graph, "_warmgraph_is_kept", None) is False:
                graph.instantiate()  # with keep_graph PyTorch leaves this to the caller; without it the end of a capture does it

        for name, function in (("__init__", init), ("capture_begin", capture_begin), ("capture_end", capture_end)):
            setattr(kind, name, function)

    def undo(self) -> None:
        for name in ("__init__", "capture_begin", "capture_end"):
            if name in self._before:
                setattr(self._kind, name, self._before[name])
            else:
                delattr(self._kind, name)

