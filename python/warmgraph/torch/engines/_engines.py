"""Graphs for serving engines, which hold a table of graphs by batch size. A graph is restored from the cache, or captured twice and stored,
or captured by PyTorch alone."""
from __future__ import annotations

import contextlib
import functools
import logging
import os
import threading
import types
from typing import Any, Callable, Mapping, Sequence, Tuple, Union

import torch

from warmgraph import errors
from warmgraph.calls import _names, _refusals
from warmgraph.calls._cached_function import CachedFunction, Options
from warmgraph.calls._side_effects import difference
from warmgraph.config import Config, Path, unknown_option
from warmgraph.reading import _reached_code
from warmgraph.reading._walker import Walker
from warmgraph.torch.calls._torch_function import TorchFunction
from warmgraph.torch.read import _call_reader, _custom_operators, _installed_code, _shared_modules
from warmgraph.torch.record import _capture, _mega_cache, _recording
from warmgraph.torch.replay import _garbage_collection, _launching, _moved_tensors, _pausing, _preload, _regions, _surrounding_work
from warmgraph.torch.replay._bound_call import BoundCall
from warmgraph.torch.replay._regions import Region
from warmgraph.torch.replay._torch_call import Surroundings, TorchCall

_log = logging.getLogger("warmgraph")
Key = Union[str, int, Tuple[Union[str, int], ...]]
_OPTIONS = ("dynamic", "tp_rank", "pp_rank")
_PATIENCE = 0.05  # seconds; a program that captures soon does not wait for preloading: it begins after the first graph


class Graph:
    """The graph that capture_one returns. It has `replay()`, `reset()` and `pool()` like torch.cuda.CUDAGraph. Use it from one thread at a
    time.

    outcome: "replayed" (restored from the cache), "recorded", or "captured" (by PyTorch alone; `why` has the reason)."""

    def __init__(self, key: Key, outcome: str, launch: Callable[[], Any], free: Callable[[], Any], pool: Any, why: str = "") -> None:
        self.key, self.outcome, self.why = key, outcome, why
        self._launch: Callable[[], Any] | None = launch
        self._free: Callable[[], Any] | None = free
        self._pool = pool

    def __repr__(self) -> str:
        return f"<warmgraph graph {self.key!r} ({self.outcome if self._launch is not None else 'reset'})>"

    def replay(self) -> None:
        """Enqueues the graph's work in the current stream, on the memory that capture_one used."""
        launch = self._launch
        if launch is None:
            raise errors.InvalidArgument(f"the graph {self.key!r} was reset and is empty: capture_one restores it")
        launch()

    def reset(self) -> None:
        """Frees the graph once its running work has ended. Repeating it does nothing."""
        free, self._free, self._launch = self._free, None, None
        if free is not None:
            free()

    def pool(self) -> Any:
        """The pool for the next capture_one or torch.cuda.graph: the pool that was given to capture_one, else the graph's own pool.
        Restored graphs take no memory from it."""
        if self._pool is None:
            self._pool = torch.cuda.graph_pool_handle()
        return self._pool


class GraphCache:
    """A cache of graphs by key. config, cache_dir, global_rank, tp_rank, pp_rank, dynamic and version are those of warmgraph.cache_compile.
    name: the graphs' folders begin with this name, e.g. "graphs-32" for the key 32. captures: a folder where processes share captures:
    the first process captures each graph once, and the second process's capture proves it."""

    def __init__(self, *, cache_dir: Path | None = None, config: Config | None = None, name: str = "graphs", version: str | None = None,
                 global_rank: int | None = None, captures: Any = None, **options: Any) -> None:
        self._options = checked_options("GraphCache", ("captures",), name, cache_dir=cache_dir, config=config, version=version, global_rank=global_rank,
                                        **options)
        self.name, self._captures = name, folder_of(captures)
        self._lock = threading.RLock()
        self._warned: set[str] = set()
        self._are_others_begun = False
        self._shared_modules = _shared_modules.SharedModules()
        self._table = self._function_of(f"{name}-table", _nothing)  # a function that represents all graphs of the table
        self._request = _preload.request(self._table, self._all(), _PATIENCE) if self._table.options.config.model else None

    def capture_one(self, key: Key, forward_fn: Callable[[], Any], *, pool: Any = None, stream: Any = None, inputs: Any = None,
                    states: Any = None) -> tuple[Graph, Any]:
        """Returns (graph, output): a graph of `forward_fn()`, and its result, whose tensors each replay() writes again at the same
        addresses.

        forward_fn takes no arguments and reads tensors that keep their addresses. inputs: tensors that it reads; states: tensors that live
        from one replay to the next (weights, KV caches); {name: tensor} or a list. By default both are found in the object of a bound
        method, in closures and globals. A hit captures nothing and does not call forward_fn; the graph's work runs once, as it does in a
        miss. A function that cannot be recorded is captured by PyTorch alone, into `pool`, and a warning says why; under the policy
        require_hit, MissForbidden is raised instead.
        """
        if _surrounding_work.is_captured():
            raise errors.InvalidArgument(f"capture_one({key!r}) is called while the current stream is captured: end that capture before")
        wrapped = self._wrapped(checked_key(key), forward_fn)
        named, around = _named("input", inputs), _named("state", states)
        both = sorted(named.keys() & around.keys())
        if both:
            raise errors.InvalidArgument(f"'{both[0]}' is both an input and a state: use it for only one of them")
        function = EngineFunction(wrapped, key, around, self._captures, self._shared_modules)
        # Leaving `compiling` stores PyTorch's compiled code. This happens once the graph is ready, in every case.
        with self._lock, torch.cuda.stream(stream) if stream is not None else contextlib.nullcontext(), function.compiling:
            try:
                with _moved_tensors.using, _garbage_collection.later:
                    if not self._is_begun():
                        function.begin(wrapped)
                    outcome, bound = function.obtained(wrapped, named)
                    self._begin_others(wrapped)
            except errors.MissForbidden:
                raise
            except _CallerError as own:
                raise own.error from None
            except _recording.CaptureWritten as written:
                return self._given(key, function, wrapped, written, pool, stream)
            except Exception as error:  # an engine needs a graph in any case
                return self._captured(key, function, wrapped, error, pool, stream)
        result = bound.last_result()  # releases the call's hundreds of objects: keeping them would start Python's garbage collector
        return Graph(key, outcome, bound.launch, functools.partial(_free, bound, function.kept), pool), result

    def _is_begun(self) -> bool:
        """Whether preloading of the graphs has begun. From now on, graphs that the program asks for come first."""
        if self._are_others_begun:
            return True
        _preload.forget(self._table)
        if self._request is None or self._request.device is None:
            return False
        return self._request.device == torch.cuda.current_device()

    def _begin_others(self, wrapped: CachedFunction) -> None:
        """Starts preloading the table's other graphs, once the first graph is ready."""
        if not self._are_others_begun and torch.cuda.is_initialized():
            self._are_others_begun = True
            _preload.begin(wrapped, torch.cuda.current_device(), self._all())

    def _all(self) -> str:
        return f"{_names.folder_name(self.name)}-*"

    def _wrapped(self, key: Key, forward_fn: Callable[[], Any]) -> CachedFunction:
        if not callable(forward_fn):
            raise errors.InvalidArgument(f"forward_fn is {forward_fn!r}, expected a function without arguments")
        if not isinstance(forward_fn, (types.FunctionType, types.MethodType)):
            forward_fn = _around(forward_fn)
        return self._function_of(f"{self.name}-{text_of(key)}", forward_fn)

    def _function_of(self, name: str, function: Callable[[], Any]) -> CachedFunction:
        return wrapped_by(self._options, name, function)

    def _given(self, key: Key, function: EngineFunction, wrapped: CachedFunction, written: _recording.CaptureWritten, pool: Any,
               stream: Any) -> tuple[Graph, Any]:
        """Makes this process's graph from the capture that was written for another process."""
        _log.info("graph %r of '%s': %s", key, self.name, written)
        if written.graph is None:
            graph, output = function.plain(wrapped, pool, stream)
            return Graph(key, "captured", graph.replay, graph.reset, pool if pool is not None else graph.pool(), str(written)), output
        captured = written.graph
        return Graph(key, "captured", captured.graph.replay, functools.partial(_close, captured, function.kept), pool, str(written)), written.result

    def _captured(self, key: Key, function: EngineFunction, wrapped: CachedFunction, error: Exception, pool: Any,
                  stream: Any) -> tuple[Graph, Any]:
        why = errors.text_of(error)
        if wrapped.policy == "require_hit":
            raise errors.MissForbidden(f"'{wrapped._name()}' cannot be replayed, and the policy is require_hit: {why}") from error
        if not isinstance(error, _PolicyRefusal):
            _refusals.note(wrapped, why, _launching.current_device, is_counted=getattr(error, "is_counted", False))
        if why not in self._warned:
            self._warned.add(why)
            level = logging.INFO if isinstance(error, _PolicyRefusal) else logging.WARNING
            _log.log(level, "graph %r of '%s' is captured only by PyTorch, and not stored: %s", key, self.name, why)
            if not isinstance(error, errors.Error):
                _log.debug("graph %r of '%s': where it failed", key, self.name, exc_info=error)
        graph, output = function.plain(wrapped, pool, stream)
        return Graph(key, "captured", graph.replay, graph.reset, pool if pool is not None else graph.pool(), why), output


def _nothing() -> None:
    pass


class _CallerError(Exception):
    """Carries an exception of forward_fn, which goes to the caller."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class _PolicyRefusal(errors.NotRecordable):
    """The policy does not permit recording."""


class ReadSurroundings(Surroundings):
    """The surroundings of a graph, which are always read completely."""

    def _remember(self, walker: Walker, regions: Sequence[Region]) -> None:
        pass

    def is_same(self) -> bool:
        return False


class EngineFunction(TorchFunction):
    """forward_fn for one capture_one. For the second capture, its tensors themselves are moved to other memory, because an engine's objects
    cannot be copied."""

    may_count = False

    def __init__(self, wrapped: CachedFunction, key: Key, states: dict[str, Any], captures: str | None, known: _shared_modules.SharedModules) -> None:
        """known: the modules that the table's other graphs have read."""
        super().__init__(wrapped)
        self.captures, self._shared_modules = captures, known
        self._key_text, self._states = repr(key), states
        self._owner = getattr(wrapped._function, "__self__", self.held)
        self.kept: list[Any] = []  # storages that replays use, and the shared findings of the table
        self.compiling = contextlib.ExitStack()  # a miss enters the context that stores PyTorch's compiled code
        self._has_run = self._is_all_read = False
        for name, default in _defaults(wrapped).items():
            self._states = {**self._states, f"{self._plain.__name__}.{name}": default}

    def obtained(self, wrapped: CachedFunction, inputs: dict[str, Any]) -> tuple[str, BoundCall]:
        """Returns (outcome, the variant bound to this memory). The work has run once. Raises _CallerError for an exception of forward_fn, and
        MissForbidden if the policy forbids the miss."""
        try:
            return self._found_or_recorded(wrapped, self._read_all(self._owner, inputs))
        except _recording.RecordNextTime as change:  # the first answer made an object; the second one uses it
            _log.info("graph %s runs once more: %s", self._key_text, change)
            return self._found_or_recorded(wrapped, self._read_all(self._owner, inputs))

    def _found_or_recorded(self, wrapped: CachedFunction, call: TorchCall) -> tuple[str, BoundCall]:
        policy, given = wrapped.policy, self._declaration(wrapped, call, self.facts(call))
        variant = self._load(wrapped, call, given) if policy != "off" else None
        if variant is not None:
            try:
                return "replayed", self._launched(BoundCall(call, variant, [one.pointer for one in given.states]), call)
            except errors.MissForbidden as miss:  # an input has another alignment, or overlaps others differently
                _log.info("'%s': %s", given.name, miss)
        if policy == "require_hit":
            raise errors.MissForbidden(self._why_missing(wrapped, call, given))
        if not self._is_all_read:
            self.compiling.enter_context(_mega_cache.around(wrapped, call.device, policy))
        if policy in ("read_only", "off"):
            raise _PolicyRefusal(f"the policy is {policy}")
        with _pausing.recording():
            recording = _recording.Recording(self, wrapped, call)
            recording.may_draw_on_host = False  # a replay of PyTorch's own graph draws none
            self._is_all_read = True
            try:
                recording.answer()
            except Exception as error:
                raise _CallerError(error) from None
            self._has_run = True
            self._keep_memory(call)
            variant = self._adopted(wrapped, call, given, recording)
        return "recorded", BoundCall(call, variant)

    def _launched(self, bound: BoundCall, call: TorchCall) -> BoundCall:
        bound.launch()
        self._keep_memory(call)
        return bound

    def _keep_memory(self, call: TorchCall) -> None:
        self.kept = [*call.walker.parts, call.walker.around, *(region.storage for region in call.regions)]

    def plain(self, wrapped: CachedFunction, pool: Any, stream: Any) -> tuple[Any, Any]:
        """Returns (PyTorch's own graph, its result). Runs the work once before the capture, because libraries initialise at their first
        use."""
        def work() -> Any:
            with torch.no_grad():
                return self.run(wrapped, self._owner, {})

        if not self._has_run:
            work()
        return _capture.plain_graph(work, pool, stream)

    # --- Overrides of TorchFunction

    def _invoked(self, wrapped: CachedFunction, target: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        return target()

    def in_place(self, call: TorchCall) -> tuple[list[torch.Tensor], list[Any]]:
        return [place.tensor for place in call.places], [call.owner, *call.arguments.values()]

    def _expect_unchanged(self, wrapped: CachedFunction, call: TorchCall, name: str) -> dict[str, int]:
        now, _ = self._walked(call.owner, call.arguments)
        if now.found.facts.keys() != call.walker.found.facts.keys():
            raise _recording.RecordNextTime(f"'{name}' created or dropped an object that it uses: {difference(call.walker.found.facts, now.found.facts)}")
        return super()._expect_unchanged(wrapped, call, name)

    def _read_all(self, owner: Any, arguments: dict[str, Any]) -> TorchCall:
        walker, reached = self._walked_anew(owner, arguments)
        regions = _regions.regions_of_walk(walker)
        return self._call_of(owner, arguments, walker, ReadSurroundings(walker, reached, regions), regions)

    def facts(self, call: TorchCall) -> dict[str, str]:
        return {**super().facts(call), "graph.key": self._key_text}

    def _walked(self, owner: Any, arguments: dict[str, Any]) -> tuple[Walker, _installed_code.TorchReachedCode]:
        # After an answer everything is read again, without the shared modules.
        return _call_reader.read(self.reached, arguments, owner, {**_custom_operators.operators_of(self.reached), **self._states}, None if self._is_all_read else self._shared_modules)


def _free(bound: BoundCall, kept: list[Any]) -> None:
    entry = bound.variant.function
    if not _surrounding_work.is_captured():
        torch.cuda.synchronize(bound.device)
    entry.close()
    entry.device._collect()
    kept.clear()


def _close(captured: _capture.Capture, kept: list[Any]) -> None:
    if not _surrounding_work.is_captured():
        torch.cuda.synchronize()
    captured.close()
    kept.clear()


def checked_options(who: str, more: Sequence[str], name: str, *, cache_dir: Path | None, config: Config | None, version: str | None, global_rank: int | None,
                    **options: Any) -> dict[str, Any]:
    """Checks the options for wrapped_by(). `who`: the caller's function. `more`: further options that it accepts."""
    for one in options:
        if one not in _OPTIONS:
            raise unknown_option(who, one, ("cache_dir", "config", "name", "version", "global_rank", *more, *_OPTIONS))
    if config is not None and not isinstance(config, Config):
        raise errors.InvalidArgument(f"config is {config!r}, expected a warmgraph.Config")
    if not isinstance(name, str) or not name:
        raise errors.InvalidArgument(f"name is {name!r}, expected a text")
    if config is not None:
        config.expect_key()
    return {"cache_dir": cache_dir, "config": config or Config(), "version": version, "global_rank": global_rank, "compile": False, **options}


def wrapped_by(options: Mapping[str, Any], name: str, function: Callable[..., Any]) -> CachedFunction:
    """Wraps a function of the cache. Its folder has this name."""
    return CachedFunction(function, Options(**{**options, "config": options["config"].copy(), "name": _names.folder_name(name)}))


def folder_of(captures: Any) -> str | None:
    if captures is None:
        return None
    try:
        path = os.path.abspath(os.fsdecode(captures))
    except TypeError:
        raise errors.InvalidArgument(f"captures is {captures!r}, expected the path of a folder") from None
    if not os.fsdecode(captures) or "\0" in path:
        raise errors.InvalidArgument(f"captures is {captures!r}, expected the path of a folder")
    return path


def _around(forward_fn: Callable[[], Any]) -> Callable[[], Any]:
    """Wraps a partial or a callable object in a function that closes over it, with the module of the caller's code. It is then read like
    any other function."""
    def graph() -> Any:
        return forward_fn()

    below = _reached_code.function_of(forward_fn)
    graph.__module__ = (below or type(forward_fn)).__module__
    graph.__code__ = graph.__code__.replace(co_filename="<graph>")
    return graph


def _defaults(wrapped: CachedFunction) -> dict[str, Any]:
    """The default values of forward_fn's parameters (`lambda x=x: model(x)`)."""
    try:
        return wrapped._bind((), {})
    except TypeError as error:
        raise errors.InvalidArgument(f"{wrapped._description} cannot be called without arguments ({error}): give capture_one a function that binds "
                                     "them (functools.partial)") from None


def _named(kind: str, tensors: Any) -> dict[str, Any]:
    if tensors is None:
        return {}
    if isinstance(tensors, Mapping):
        if not all(isinstance(name, str) and name for name in tensors):
            raise errors.InvalidArgument(f"{kind}s has the names {list(tensors)}, expected texts")
        return dict(tensors)
    if isinstance(tensors, Sequence) and not isinstance(tensors, (str, bytes)):
        return {f"{kind}{i}": one for i, one in enumerate(tensors)}
    raise errors.InvalidArgument(f"{kind}s is a {type(tensors).__qualname__}, expected {{name: tensor}} or a list of tensors")


def checked_key(key: Any) -> Key:
    parts = key if isinstance(key, tuple) else (key,)
    if not parts or not all(type(one) in (str, int) for one in parts):
        raise errors.InvalidArgument(f"the key is {key!r}, expected a text, a whole number, or a tuple of them")
    return key  # type: ignore[no-any-return]


def text_of(key: Key) -> str:
    return "-".join(map(str, key)) if isinstance(key, tuple) else str(key)
