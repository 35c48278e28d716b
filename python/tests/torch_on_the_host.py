"""Lets the package's PyTorch half run without a GPU: tensors on the host take the place of device tensors, a capture runs its work, and an
entry notes how it was made and called."""
from __future__ import annotations

import contextlib
import ctypes
import gc
import io
import threading
import types
import weakref
from typing import Any

import torch

import warmgraph
from warmgraph import errors
from warmgraph.core.binding import _c
from warmgraph.core.cache import _cache
from warmgraph.core.serving._entry_metadata import each_fact
from warmgraph.torch.pairs import _pair_recording
from warmgraph.torch.read import _tensors
from warmgraph.torch.record import _capture, _constants, _operators, _recording, _stray_work
from warmgraph.torch.replay import _entry, _launching

entries: list[FakeEntry] = []
kept: dict[str, str] = {}  # the stored metadata, by the facts of the entry
captures: list[_capture.Capture] = []
plain: list[FakeGraph] = []  # the graphs that PyTorch alone captured
written: list[tuple[Any, str]] = []  # (capture, folder) for each capture that was written for other processes
others: dict[str, Exception | None] = {}  # by folder: the result of pairing with another process's capture; no item: no such capture


_ENQUEUE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(_c.wg_arg), ctypes.c_uint64, ctypes.c_void_p)


_IS_CAPTURING = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
under_way: list[Any] = []  # captures that have begun and not ended


def is_captured() -> bool:
    return bool(under_way)


captured_streams: set[int] = set()  # handles of the streams that are capturing


class FakeEntry:
    recording_bytes = 0

    def __init__(self, cache: Any, device: Any, given: Any, captures: Any, destroyed: Any, judge: Any = None) -> None:
        self.device, self.given, self.captures, self.calls, self.is_closed = device, given, captures, [], False
        self.bound_states, self.lock = [one.pointer for one in given.states], threading.Lock()
        self._pointer = 1
        self._error: errors.Error | None = None
        self._args = (_c.wg_arg * (len(given.inputs) + len(given.outputs)))()
        self.handle, self.enqueue = ctypes.c_void_p(1), _ENQUEUE(lambda function, stream, args, count, outcome: self._enqueued(stream, args, count))
        self.enqueue_uncaptured, self.is_capturing = self.enqueue, _IS_CAPTURING(lambda stream: int((stream or 0) in captured_streams))
        if captures is not None and isinstance(captures[1], str):
            end = others.get(captures[1], errors.NotFound("no other process's capture of this call is there"))
            if end is not None:
                raise end
        self.agreement = _judged(captures[0], judge) if captures is not None and judge is not None else ""
        entries.append(self)
        if captures is not None:
            kept[_key(given)] = given.metadata

    def __call__(self, stream: int, pointers: Any, states: Any) -> str:
        if states != self.bound_states:
            self.bound_states = list(states)
        for arg, pointer in zip(self._args, pointers):
            arg.memory.address.offset = pointer - _entry.FLAT
        return self.launch(stream)

    def own_args(self) -> Any:
        return type(self._args).from_buffer_copy(self._args)

    def launch(self, stream: int, args: Any = None) -> str:
        given = self._args if args is None else args
        self._noted([one.memory.address.offset + _entry.FLAT for one in given])
        return "replayed"

    def _enqueued(self, stream: Any, args: Any, count: int) -> int:
        try:
            self.launch(stream or 0, args[:count])
            return int(_c.wg_ok)
        except errors.Error as error:
            self._error = error
            return error.code

    def expect_ok(self, status: int) -> None:
        if status != _c.wg_ok:
            raise self._error or errors.of_status(status, "")

    def _noted(self, pointers: list[int]) -> None:
        self.calls.append((pointers, self.bound_states))

    def close(self) -> None:
        self.is_closed = True

    def report(self) -> Any:
        return types.SimpleNamespace(outcome="replayed", reason="", entry="", first_call_ms=0.0, phases=(), recording_bytes=self.recording_bytes)

    def misses(self) -> str:
        return ""


def _judged(captured: Any, judge: Any) -> str:
    """Runs and judges the captured graph as the library does: three runs from the present contents of memory, which are restored
    afterwards."""
    graph = captures[captured.native - 1].graph
    before = [(pointer, ctypes.string_at(pointer, nbytes)) for name, pointer, nbytes in captured.regions if not name.startswith("generator.")]

    def put_back() -> None:
        for pointer, contents in before:
            ctypes.memmove(pointer, contents, len(contents))

    try:
        for _ in range(3):
            put_back()
            graph.run_again()
            judge.after_run()
        return str(judge.agreement())
    finally:
        put_back()


class FakeGraph:
    """A graph of PyTorch alone. A replay calls the captured function and writes to the memory of its result."""

    def __init__(self, work: Any, pool: Any, stream: Any) -> None:
        self.work, self.its_pool, self.stream, self.is_reset, self.result = work, pool, stream, False, work()
        plain.append(self)

    def replay(self) -> None:
        self.result.copy_(self.work())

    def reset(self) -> None:
        self.is_reset = True

    def pool(self) -> Any:
        return self.its_pool or (0, 7)


class FakeCapturedGraph:
    """A capture runs its work and then undoes its writes, so that it seems to run nothing. A replay runs the work again. `run_again` does
    not call the function, but writes the results of the capture again, for runs that start from the same memory contents."""

    def __init__(self, work: Any) -> None:
        before = {pointer: (storage, storage.clone()) for pointer, storage in _storages().items()}
        under_way.append(work)
        try:
            work()
        finally:
            under_way.pop()
        self.replay, self.is_reset = work, False
        written = [(storage, contents) for storage, contents in before.values() if not torch.equal(_bytes(storage), _bytes(contents))]
        self._left = [(storage, storage.clone()) for storage, _ in written]
        for storage, contents in written:
            storage.copy_(contents)

    def run_again(self) -> None:
        for storage, left in self._left:
            storage.copy_(left)

    def reset(self) -> None:
        self.is_reset, self._left = True, []


def _bytes(storage: Any) -> torch.Tensor:
    return torch.empty(0, dtype=torch.uint8).set_(storage)


_known: dict[int, weakref.ref[Any]] = {}  # tensors that existed before the test


def _tensors_of(objects: list[Any]) -> list[Any]:
    return [one for one in objects if type(one) in (torch.Tensor, torch.nn.Parameter)]


def _remember() -> None:
    """Remembers all tensors that exist now. A search in all objects of Python takes longer than a test, so later searches only look at
    newer objects."""
    gc.collect()
    for one in _tensors_of(gc.get_objects()):
        _known[id(one)] = weakref.ref(one)
    gc.freeze()


def _storages() -> dict[int, Any]:
    """The storages of all tensors that Python holds, by address."""
    found = {}
    for one in [*(reference() for reference in list(_known.values())), *_tensors_of(gc.get_objects())]:
        if one is None or one.device.type != "cpu" or one.layout != torch.strided or not one.numel():
            continue
        with contextlib.suppress(RuntimeError):  # raised by a borrowed result that is stale
            found[one.untyped_storage().data_ptr()] = one.untyped_storage()
    return found


def _write_capture(cache: Any, device: Any, given: Any, captured: Any, folder: str) -> None:
    written.append((captured, folder))


def _plain_graph(work: Any, pool: Any, stream: Any) -> Any:
    graph = FakeGraph(work, pool, stream)
    return graph, graph.result


def _stored_metadata(cache: Any, device: Any, name: str, most: int) -> list[str]:
    return list(kept.values())


def _key(given: Any) -> str:
    inputs = [(one.name, one.dtype, one.sizes, one.strides) for one in (*given.inputs, *given.states) if "generator." not in one.name]
    return repr((given.name, sorted(each_fact(given.facts).items()), given.version, inputs))


class FakeShadows:
    """Storages with the contents of the originals, because captures run their work here."""

    def __init__(self, device: Any, ranges: Any) -> None:
        self.storages = [torch.empty(size, dtype=torch.uint8).untyped_storage() for _, size in ranges]
        for storage, (pointer, size) in zip(self.storages, ranges):
            storage.copy_(_storage_at(pointer, size))
        self.pointers = [storage.data_ptr() for storage in self.storages]
        self.nbytes = 4096

    def close(self) -> None:
        self.storages = []


def _storage_at(pointer: int, size: int) -> Any:
    return torch.frombuffer((ctypes.c_uint8 * size).from_address(pointer), dtype=torch.uint8).untyped_storage()


def _captured(device: Any, work: Any, generator: Any = None, never_runs: bool = False) -> Any:
    state = generator.get_state() if isinstance(generator, torch.Generator) else None
    capture = _capture.Capture(FakeCapturedGraph(work), None, len(captures) + 1, [("pool0", 4096, 64)], [],
                               [512, 1024] if generator is not None else [], nbytes=64)
    if state is not None:  # the caller's state is another one than the capture's
        generator.set_state(state)
    captures.append(capture)
    return capture


def use(monkeypatch: Any) -> None:
    entries.clear()
    kept.clear()
    captures.clear()
    plain.clear()
    written.clear()
    others.clear()
    _remember()
    monkeypatch.setattr(_tensors, "DEVICE_TYPE", "cpu")
    monkeypatch.setattr(_launching, "device_of", lambda index: types.SimpleNamespace(stream=0, _collect=lambda: None))
    monkeypatch.setattr(_entry, "Entry", FakeEntry)
    monkeypatch.setattr(_entry, "write_capture", _write_capture)
    monkeypatch.setattr(_entry, "found", lambda cache, device, given: kept.get(_key(given)))
    monkeypatch.setattr(_cache, "stored_metadata", _stored_metadata)
    monkeypatch.setattr(_launching, "native_stream", lambda index: 0)
    monkeypatch.setattr(_launching, "view_of", lambda device, native: 0)
    monkeypatch.setattr(_recording, "Shadows", FakeShadows)
    monkeypatch.setattr(_pair_recording, "Shadows", FakeShadows)
    monkeypatch.setattr(_capture, "captured", _captured)
    monkeypatch.setattr(_capture, "plain_graph", _plain_graph)
    monkeypatch.setattr(_capture, "Addresses", lambda index: io.StringIO())
    monkeypatch.setattr(_capture, "generator_of", lambda device: FakeGenerator())
    monkeypatch.setattr(_capture, "own_generator", lambda device, seed=0, offset=0: contextlib.nullcontext())
    monkeypatch.setattr(_capture, "set_words", lambda capture, device, seed, offset: None)
    monkeypatch.setattr(_capture, "watch", lambda device: [_operators.expect_capturable])
    monkeypatch.setattr(_constants, "enqueued_in", lambda device: lambda: 0)
    monkeypatch.setattr(_stray_work, "refused", lambda device: contextlib.nullcontext())
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device=None: None)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", is_captured)


def wrap(function: Any, **options: Any) -> Any:
    return warmgraph.cache_compile(function, **{"compile": False, "config": warmgraph.Config(model="net"), **options})


def refusal(cached: Any) -> str:
    return str(cached._shared.last_refusal)


class FakeGenerator:
    def get_offset(self) -> int:
        return 0

    def initial_seed(self) -> int:
        return 0


__all__ = ["captures", "entries", "errors", "kept", "others", "plain", "refusal", "use", "wrap", "written"]
