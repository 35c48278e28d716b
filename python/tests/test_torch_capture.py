"""Tests the description of PyTorch's allocator in a capture, without a GPU."""
from __future__ import annotations

import contextlib
import time
import types
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed here")

from warmgraph.torch.record import _capture  # noqa: E402

MIB = 1 << 20


def segment(at: int, size: int, pool: tuple[int, int] = (0, 0), **blocks: Any) -> dict[str, Any]:
    """A segment of the allocator. `at` and `size` are in MiB; blocks are {state: (at, size)}."""
    return {"address": at * MIB, "total_size": size * MIB, "segment_pool_id": pool,
            "blocks": [{"state": state, "address": a * MIB, "size": s * MIB} for state, (a, s) in blocks.items()]}


def in_mib(ranges: Any) -> list[tuple[int, int]]:
    return [(pointer / MIB, nbytes / MIB) for pointer, nbytes in ranges]


@pytest.mark.parametrize("now, then, found", [
    ([(10, 20)], [], [(10, 10)]),
    ([(10, 20)], [(10, 20)], []),
    ([(10, 20), (40, 50)], [(10, 20)], [(40, 10)]),
    ([(10, 20)], [(0, 10), (20, 30)], [(10, 10)]),
    ([(10, 20)], [(0, 12)], [(12, 8)]),
    ([(10, 20)], [(18, 30)], [(10, 8)]),
    ([(10, 20)], [(12, 14), (16, 17)], [(10, 2), (14, 2), (17, 3)]),
    ([(10, 20), (30, 40)], [(15, 35)], [(10, 5), (35, 5)]),
    ([(10, 20)], [(0, 30)], []),
])
def test_what_lies_outside_of_other_ranges(now: Any, then: Any, found: Any) -> None:
    assert _capture._outside(dict(now), dict(then)) == found


def test_memory_that_was_made_since_a_capture_was_nobodys_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = [segment(0, 20, active_allocated=(0, 8), inactive=(8, 12)), segment(64, 32, (0, 7), active_allocated=(64, 32))]
    monkeypatch.setattr(_capture, "_snapshot", lambda: snapshot)
    before = {8 * MIB: 20 * MIB}
    scratch, free = _capture.memory_of((0, 7), before)
    capture = _capture.Capture(None, None, 1, scratch, free, [], _capture._segments(snapshot))
    assert scratch == [("pool0", 64 * MIB, 32 * MIB)]
    assert in_mib(capture.free_blocks()) == [(8, 12)], "of its own pool nothing"

    snapshot.append(segment(128, 32, (0, 8), active_allocated=(128, 32)))  # the pool of another capture, with cuBLAS's workspace
    snapshot[0] = segment(0, 24, active_allocated=(0, 24))  # in the meantime it was allocated and has grown
    assert in_mib(capture.free_blocks()) == [(8, 12), (20, 4), (128, 32)]


def test_where_nobody_looked_nothing_counts_as_made_since(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_capture, "_snapshot", lambda: [segment(128, 32, active_allocated=(128, 32))])
    assert _capture.Capture(None, None, 1, [], [(4, 5)], []).free_blocks() == [(4, 5)]


def test_a_capture_says_what_the_allocator_had_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = [segment(0, 20, active_allocated=(0, 20))]

    def captured_into(graph: Any, pool: Any, device: Any, work: Any) -> None:
        work()
        snapshot.append(segment(64, 32, (0, 7), active_allocated=(64, 32)))

    graph = types.SimpleNamespace(raw_cuda_graph=lambda: 1)
    monkeypatch.setattr(_capture, "_snapshot", lambda: snapshot)
    monkeypatch.setattr(_capture, "_capture_into", captured_into)
    monkeypatch.setattr(_capture, "own_generator", lambda device: contextlib.nullcontext())
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device=None: None)
    monkeypatch.setattr(torch.cuda, "MemPool", lambda: types.SimpleNamespace(id=(0, 7)), raising=False)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", lambda keep_graph: graph)
    monkeypatch.setattr(torch._C, "_cuda_clearCublasWorkspaces", lambda: None, raising=False)
    monkeypatch.setattr(_capture, "allocated", lambda device: contextlib.nullcontext({4 * MIB: 6 * MIB}))
    capture = _capture.captured(torch.device("cuda", 0), lambda: None, False)
    assert capture.scratch == [("pool0", 64 * MIB, 32 * MIB)] and capture.free_blocks() == []
    snapshot[0] = segment(0, 20, active_allocated=(10, 10), inactive=(0, 10))
    del snapshot[1]
    again = _capture.captured(torch.device("cuda", 0), lambda: None, False)
    assert in_mib(again.free) == [(0, 4), (6, 4)], "who wrote there meanwhile has run"
    snapshot.append(segment(128, 32, (0, 8), active_allocated=(128, 32)))
    assert in_mib(capture.free_blocks()) == [(128, 32)]


def test_what_anybody_allocates_meanwhile_is_seen_by_the_allocators_record(monkeypatch: pytest.MonkeyPatch) -> None:
    for is_recorded in (False, True):
        states: list[Any] = []
        begin = time.time_ns() // 1000
        record = [[], [{"action": action, "addr": addr, "size": 8, "time_us": begin + 10_000_000 * is_late} for action, addr, is_late in (
            ("alloc", 64, True), ("free_completed", 96, True), ("alloc", 128, False))]]
        record[1][2]["time_us"] = begin - 10
        monkeypatch.setattr(torch._C, "_cuda_isHistoryEnabled", lambda: is_recorded, raising=False)
        monkeypatch.setattr(torch.cuda.memory, "_record_memory_history", lambda enabled, **options: states.append(enabled))
        monkeypatch.setattr(torch.cuda.memory, "_snapshot", lambda device: {"device_traces": record})
        with _capture.allocated(torch.device("cuda", 1)) as made:
            assert not made
        assert made == {64: 72} and states == ([] if is_recorded else ["all", None]), "somebody's record stays as it is"
