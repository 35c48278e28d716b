"""Makes a PyTorch capture, with the data that is needed to store it."""
from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import functools
import gc
import secrets
import sys
import threading
import time
from typing import Any, Callable, Iterator, Sequence

import torch

from warmgraph import errors
from warmgraph.core.binding._library import library
from warmgraph.torch.read import _libraries
from warmgraph.torch.record import _operators, _pool_memory
from warmgraph.torch.replay import _host_draws

SEED = 0x5EED  # the seed of the generator that a capture uses
_MOST_ALLOCATIONS = 1 << 20  # the most allocations in the allocator's history that are searched
_MOST_DISPLACED = 16  # the most segments of 2 MiB by which addresses are moved
_IS_CHILD = 4  # CU_GRAPH_NODE_TYPE_GRAPH
_streams: dict[int, torch.cuda.Stream] = {}
_abandoned: list[Any] = []  # the graphs of broken captures, which are kept because destroying them could abort the process


@dataclasses.dataclass
class Capture:
    """A finished capture. `scratch`: (name, pointer, bytes) of the memory in the capture's pool. `free`: (pointer, bytes) of memory that
    was free in the allocator all the time. `words`: pointers of the generator's seed and offset, if random numbers are drawn.
    `segments`: {pointer: end} of the allocator's memory at the end, or None. `trail`: the operators of the capture, if they were noted.
    `nbytes`: the device memory that the pool takes."""

    graph: Any
    pool: Any
    native: int
    scratch: list[tuple[str, int, int]]
    free: list[tuple[int, int]]
    words: list[int]
    segments: dict[int, int] | None = None
    keep: Any = None
    trail: Any = None
    nbytes: int = 0

    def free_blocks(self) -> list[tuple[int, int]]:
        """The memory (pointer, bytes) that belonged to nobody during the capture: it was always free, or was allocated later, e.g. for the
        pools of other captures."""
        if self.segments is None:
            return self.free
        return [*self.free, *_outside(_segments(_snapshot()), self.segments)]

    def close(self) -> None:
        """Returns the pool's memory to the driver. Other memory stays in the allocator's caches."""
        self.keep = None
        graph, self.graph = self.graph, None
        if graph is not None:
            graph.reset()
        del graph
        self.pool = None


class Addresses:
    """Takes a few MiB of a device's addresses, a different amount each time, so that the next pool has another address: a pool at the same
    address as in another process proves nothing."""

    def __init__(self, index: int) -> None:
        self._pointer, self._context, self._driver = ctypes.c_uint64(), ctypes.c_void_p(), _libraries.driver()
        device = ctypes.c_int()
        if self._driver.cuDeviceGet(ctypes.byref(device), ctypes.c_int(index)) or self._driver.cuDevicePrimaryCtxRetain(ctypes.byref(self._context), device):
            return
        self._device = device
        nbytes = ctypes.c_size_t(secrets.randbelow(_MOST_DISPLACED) + 1 << 21)
        self._within(lambda: self._driver.cuMemAlloc_v2(ctypes.byref(self._pointer), nbytes))

    def close(self) -> None:
        """Gives the addresses back. Repeating it does nothing."""
        pointer, self._pointer = self._pointer, ctypes.c_uint64()
        if pointer:
            self._within(lambda: self._driver.cuMemFree_v2(pointer))
        context, self._context = self._context, ctypes.c_void_p()
        if context:
            self._driver.cuDevicePrimaryCtxRelease_v2(self._device)

    def _within(self, work: Callable[[], Any]) -> None:
        """Runs `work` while the device's context is current. A thread that has not used the device has no current context."""
        if self._driver.cuCtxPushCurrent_v2(self._context) == 0:
            work()
            self._driver.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))


def captured(device: torch.device, work: Callable[[], Any], generator: Any = None, never_runs: bool = False) -> Capture:
    """Captures the work that `work` enqueues, without running it. Restores the state of the caller's generators and allocator. generator: the
    generator from which the work draws random numbers, or None. never_runs: the graph is only read."""
    torch.cuda.synchronize(device)
    torch._C._cuda_clearCublasWorkspaces()  # so that new workspaces come from this capture's pool
    graph = torch.cuda.CUDAGraph(keep_graph=True)
    with own_generator(device) as devices, contextlib.nullcontext() if generator in (None, devices) else _own_state(generator):
        words = _words(graph, generator) if generator is not None else []
        snapshot = _snapshot()
        before = _free(snapshot)
        with _pool_memory.pool_for(device, snapshot, never_runs) as pool, allocated(device) as made:
            _capture_into(graph, pool.id, device, work)
    scratch, free = memory_of(pool.id, before, _pool_memory.is_ordered(pool))
    # This excludes memory that was allocated elsewhere during the capture and is free again: it was written, and the graph may read it.
    free = _outside({start: start + size for start, size in free}, made)
    segments = _segments(_snapshot())
    torch._C._cuda_clearCublasWorkspaces()
    torch.cuda.synchronize(device)
    nbytes = _pool_memory.nbytes_of(pool, [size for _, _, size in scratch], never_runs)
    return Capture(graph, pool, graph.raw_cuda_graph(), scratch, free, _in_order(words), segments, nbytes=nbytes)


def free_now() -> dict[int, int]:
    """A dictionary {pointer: end} of the allocator's free memory."""
    return _free(_snapshot())


@contextlib.contextmanager
def allocated(device: torch.device) -> Iterator[dict[int, int]]:
    """Yields a dictionary {pointer: end} of all allocations on the device inside the block. It is filled at the end of the block."""
    made: dict[int, int] = {}
    is_recorded = bool(torch._C._cuda_isHistoryEnabled())  # other code may be recording the history; then its record is kept
    begin = time.time_ns() // 1000
    if not is_recorded:
        torch.cuda.memory._record_memory_history("all", context=None, max_entries=_MOST_ALLOCATIONS, clear_history=True)
    try:
        yield made
    finally:
        traces = torch.cuda.memory._snapshot(device)["device_traces"]
        if not is_recorded:
            torch.cuda.memory._record_memory_history(None)
        for one in traces[device.index or 0]:
            if one["action"] == "alloc" and one.get("time_us", begin) >= begin:
                made[one["addr"]] = max(made.get(one["addr"], 0), one["addr"] + one["size"])


def memory_of(pool: Any, before: dict[int, int], is_ordered: bool = False) -> tuple[list[tuple[str, int, int]], list[tuple[int, int]]]:
    """Returns (scratch, free), as in Capture, for a capture into the pool with this id. before: the result of free_now() before the
    capture. is_ordered: the pool is one of _pool_memory."""
    snapshot = _snapshot()
    segments = [one for one in snapshot if tuple(one["segment_pool_id"]) == tuple(pool)]
    # The same work allocates the same sizes. Only the addresses of ordered pools show the order of the requests.
    segments.sort(key=lambda one: (0 if is_ordered else -one["total_size"], one["address"]))
    return ([(f"pool{i}", one["address"], one["total_size"]) for i, one in enumerate(segments)], _free_throughout(before, _free(snapshot)))


def node_positions(native: int) -> dict[int, int]:
    """The library's numbers of a graph's nodes, by handle. A node that holds a child graph has the number of the child's last node."""
    driver, found, position = _libraries.driver(), dict[int, int](), -1
    for node in _nodes_of(driver, ctypes.c_void_p(native)):
        position += _size_of(driver, node)
        found[node] = position
    return found


def _nodes_of(driver: Any, graph: ctypes.c_void_p) -> list[int]:
    count = ctypes.c_size_t()
    if driver.cuGraphGetNodes(graph, None, ctypes.byref(count)):
        return []
    nodes = (ctypes.c_void_p * count.value)()
    return [] if driver.cuGraphGetNodes(graph, nodes, ctypes.byref(count)) else [one or 0 for one in nodes]


def _size_of(driver: Any, node: int) -> int:
    """The number of nodes for which a node counts: more than one for a node that holds a child graph."""
    kind, child = ctypes.c_int(), ctypes.c_void_p()
    if driver.cuGraphNodeGetType(ctypes.c_void_p(node), ctypes.byref(kind)) or kind.value != _IS_CHILD:
        return 1
    if driver.cuGraphChildGraphNodeGetGraph(ctypes.c_void_p(node), ctypes.byref(child)):
        return 1
    return max(1, sum(_size_of(driver, one) for one in _nodes_of(driver, child)))


def set_words(capture: Capture, device: torch.device, seed: int, offset: int) -> None:
    """Sets the generator words, so that the capture's next runs draw the numbers from this seed and offset."""
    for address, value in zip(capture.words, (seed, offset)):
        torch.as_tensor(_Word(address), device=device).fill_(value - (1 << 64) if value >= 1 << 63 else value)
    torch.cuda.synchronize(device)


@contextlib.contextmanager
def asked(as_answered: str) -> Iterator[list[str]]:
    """Yields a list. It is not empty after this thread has called torch.cuda.is_current_stream_capturing() inside the block. as_answered:
    with "yes" that function returns the same as during the answer (not capturing), with "no" the truth."""
    real, me, asks = torch.cuda.is_current_stream_capturing, threading.get_ident(), list[str]()

    @functools.wraps(real)
    def is_current_stream_capturing() -> bool:
        if threading.get_ident() != me:
            return bool(real())
        asks.append("torch.cuda.is_current_stream_capturing")
        return as_answered == "no" and bool(real())

    torch.cuda.is_current_stream_capturing = is_current_stream_capturing
    try:
        yield asks
    finally:
        torch.cuda.is_current_stream_capturing = real


def watch(device: torch.device) -> list[_operators.Show]:
    """The observers of a capture's operators. Call this when the capture has begun."""
    return [_operators.InCapture(device), _operators.expect_capturable]


def plain_graph(work: Callable[[], Any], pool: Any, stream: Any) -> tuple[Any, Any]:
    """Returns (PyTorch's own graph of the work in this pool, on the current device; the work's result). The work does not run."""
    device = torch.device("cuda", torch.cuda.current_device())
    torch.cuda.synchronize(device)
    results: list[Any] = []
    graph = torch.cuda.CUDAGraph()
    with uncached_autocast():
        _capture_into(graph, pool, device, lambda: results.append(work()), stream)
    return graph, results[0]


def _capture_into(graph: Any, pool: Any, device: torch.device, work: Callable[[], Any], stream: Any = None) -> None:
    """Captures `work`. `pool`: the id of a pool; None: the graph's own pool. `stream`: None: a stream of this module."""
    index = device.index or 0
    if stream is None:
        stream = _streams.setdefault(index, torch.cuda.Stream(device)) if index not in _streams else _streams[index]
    collects = gc.isenabled()
    gc.disable()  # the garbage collector is off, because destroying objects in a capture might wait for the device
    try:
        with torch.cuda.stream(stream):
            graph.capture_begin(**({} if pool is None else {"pool": pool}), capture_error_mode="thread_local")
            try:
                work()
            except BaseException:
                with contextlib.suppress(Exception):
                    graph.capture_end()
                _abandon(graph, pool, index)
                raise
            try:
                graph.capture_end()
            except BaseException:
                _abandon(graph, pool, index)
                raise
    finally:
        if collects:
            gc.enable()


def _abandon(graph: Any, pool: Any, index: int) -> None:
    """Ends a capture that CUDA has aborted but that PyTorch's allocator believes to be in progress. Otherwise the allocator aborts the
    process when it frees a pool."""
    _abandoned.append((graph, pool))
    with contextlib.suppress(Exception):  # fails if the allocator has noticed the end of the capture
        torch._C._cuda_endAllocateToPool(index, graph.pool() if pool is None else pool)


def generator_of(device: torch.device) -> Any:
    return torch.cuda.default_generators[device.index or 0]


@contextlib.contextmanager
def own_generator(device: torch.device, seed: int = SEED, offset: int = 0) -> Iterator[Any]:
    """Inside the block, the device's generator has a separate state. The caller's state is restored afterwards."""
    with _own_state(generator_of(device), seed, offset) as generator:
        yield generator


@contextlib.contextmanager
def _own_state(generator: Any, seed: int = SEED, offset: int = 0) -> Iterator[Any]:
    callers = generator.graphsafe_get_state()
    state = torch.Generator(generator.device)
    state.manual_seed(seed)
    state.set_offset(offset)
    generator.graphsafe_set_state(state.graphsafe_get_state())
    try:
        yield generator
    finally:
        generator.graphsafe_set_state(callers)


@contextlib.contextmanager
def uncached_autocast() -> Iterator[None]:
    """Clears autocast's cache of converted weights before and after the block. Without this, a capture would read conversions from outside
    and convert none itself, and later calls would read conversions in the memory of the capture. PyTorch converts again what it needs."""
    torch.clear_autocast_cache()
    try:
        yield
    finally:
        torch.clear_autocast_cache()


@contextlib.contextmanager
def host_random(draws: Sequence[_host_draws.HostDraw] = ()) -> Iterator[list[str]]:
    """Yields a list of the host generators that were used inside the block. `draws`: draws that do not count. Restores the generators'
    states afterwards, because the answer has already drawn the caller's numbers. PyTorch's generator begins with another seed than the
    answer: a function that seeds it would otherwise leave the state from which it began."""
    drawn: list[str] = []
    before = [(name, get(), get, put) for name, get, put in _host_generators()]
    begin = torch.Generator("cpu").manual_seed(torch.initial_seed() ^ SEED).get_state()
    torch.set_rng_state(begin)
    try:
        yield drawn
    finally:
        for name, state, get, put in before:
            is_torch = name == "torch"
            is_same = _is_state(get(), begin if is_torch else state)
            if not is_same and not (is_torch and draws and _host_draws.leading_from(begin, draws) is not None):
                drawn.append(name)
            if is_torch or not is_same:
                put(state)


def _host_generators() -> Iterator[tuple[str, Callable[[], Any], Callable[[Any], Any]]]:
    yield "torch", torch.get_rng_state, torch.set_rng_state
    if "random" in sys.modules:
        yield "random", sys.modules["random"].getstate, sys.modules["random"].setstate
    if "numpy.random" in sys.modules:
        yield "numpy.random", sys.modules["numpy.random"].get_state, sys.modules["numpy.random"].set_state


def _is_state(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    return len(one) == len(other) and all(repr(a) == repr(b) if isinstance(a, (int, float, str, type(None))) else bytes(a) == bytes(b)
                                          if not isinstance(a, tuple) else a == b for a, b in zip(one, other))


def cleared(func: Any, args: Any, kwargs: Any) -> Any:
    """Runs an operator on a zeroed stack: bytes of kernel parameters that the operator never writes are then zero, and not old bytes."""
    library().wg_clear_stack()
    try:
        return func(*args, **kwargs)
    except RuntimeError as error:
        _operators.note_failed(func, args, kwargs, error)
        raise


class _Word:
    def __init__(self, address: int) -> None:
        self.__cuda_array_interface__ = {"shape": (1,), "typestr": "<i8", "data": (address, False), "version": 3}


def _words(graph: Any, generator: Any) -> list[int]:
    before = _in_use()
    graph.register_generator_state(generator)
    words = sorted(_in_use() - before)
    if len(words) != 2:
        raise errors.NotRecordable(f"a generator's state took {len(words)} blocks of memory when a graph was registered, expected 2: this version of "
                                   "PyTorch is not supported")
    return words


def _in_order(words: list[int]) -> list[int]:
    """Sorts the pointers of the two words by the contents of the words: first the word with the seed, then the word with the offset."""
    if not words:
        return []
    values = [int(torch.as_tensor(_Word(address), device="cuda").item()) for address in words]
    if sorted(values) != [0, SEED]:
        raise errors.NotRecordable(f"a generator's state holds {values}, expected {SEED} and 0")
    return words if values[0] == SEED else words[::-1]


def _snapshot() -> list[dict[str, Any]]:
    try:
        return torch.cuda.memory_snapshot(include_traces=False)  # type: ignore[no-any-return]
    except TypeError:  # an older PyTorch does not take this argument
        return torch.cuda.memory_snapshot()  # type: ignore[no-any-return]


def _in_use() -> set[int]:
    return {block["address"] for segment in _snapshot() for block in segment["blocks"] if block["state"] == "active_allocated"}


def _free(snapshot: list[dict[str, Any]]) -> dict[int, int]:
    """A dictionary {pointer: end} of the allocator's free memory."""
    return {block["address"]: block["address"] + block["size"] for segment in snapshot for block in segment["blocks"]
            if block["state"] == "inactive"}


def _segments(snapshot: list[dict[str, Any]]) -> dict[int, int]:
    """A dictionary {pointer: end} of all the allocator's memory."""
    return {one["address"]: one["address"] + one["total_size"] for one in snapshot}


def _outside(ranges: dict[int, int], others: dict[int, int]) -> list[tuple[int, int]]:
    """Returns (pointer, bytes) of the memory that is in `ranges` but not in `others`."""
    found, taken = [], sorted(others.items())
    for start, end in sorted(ranges.items()):
        for a, b in taken:
            if b <= start or a >= end:
                continue
            if a > start:
                found.append((start, a - start))
            start = max(start, b)
        if start < end:
            found.append((start, end - start))
    return found


def _free_throughout(before: dict[int, int], after: dict[int, int]) -> list[tuple[int, int]]:
    """The memory that is in free blocks both before and after."""
    found, later = [], sorted(after.items())
    first = 0
    for start, end in sorted(before.items()):
        while first < len(later) and later[first][1] <= start:
            first += 1
        for i in range(first, len(later)):
            a, b = later[i]
            if a >= end:
                break
            found.append((max(start, a), min(end, b) - max(start, a)))
    return found
