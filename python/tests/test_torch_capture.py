"""Tests the description of PyTorch's allocator in a capture, without a GPU."""
from __future__ import annotations

import contextlib
import ctypes
import time
import types
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed here")

from warmgraph import errors  # noqa: E402
from warmgraph.torch.record import _capture, _pool_memory, _shadows  # noqa: E402

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


def test_only_the_addresses_of_an_ordered_pool_show_the_order_of_its_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_capture, "_snapshot", lambda: [segment(64, 2, (0, 7)), segment(32, 20, (0, 7)), segment(96, 20, (0, 7))])
    plain, ordered = (_capture.memory_of((0, 7), {}, is_ordered)[0] for is_ordered in (False, True))
    assert [one[1] // MIB for one in plain] == [32, 96, 64] and [one[1] // MIB for one in ordered] == [32, 64, 96]


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
    monkeypatch.setattr(_pool_memory, "pool_for", lambda device, snapshot, never_runs: contextlib.nullcontext(types.SimpleNamespace(id=(0, 7))))
    monkeypatch.setattr(torch.cuda, "CUDAGraph", lambda keep_graph: graph)
    monkeypatch.setattr(torch._C, "_cuda_clearCublasWorkspaces", lambda: None, raising=False)
    monkeypatch.setattr(_capture, "allocated", lambda device: contextlib.nullcontext({4 * MIB: 6 * MIB}))
    capture = _capture.captured(torch.device("cuda", 0), lambda: None)
    assert capture.scratch == [("pool0", 64 * MIB, 32 * MIB)] and capture.free_blocks() == []
    snapshot[0] = segment(0, 20, active_allocated=(10, 10), inactive=(0, 10))
    del snapshot[1]
    again = _capture.captured(torch.device("cuda", 0), lambda: None)
    assert in_mib(again.free) == [(0, 4), (6, 4)], "who wrote there meanwhile has run"
    snapshot.append(segment(128, 32, (0, 8), active_allocated=(128, 32)))
    assert in_mib(capture.free_blocks()) == [(128, 32)]


@pytest.mark.parametrize("case", ["ordered", "expandable", "unsupported", "full", "old"])
def test_a_pool_is_ordered_where_the_device_can_do_it(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []

    def opened(device: int, is_shared: int) -> None:
        calls.append(("open", device, is_shared))
        if case in ("unsupported", "full"):
            raise errors.Unsupported("no addresses") if case == "unsupported" else errors.OutOfMemory("full")

    raw = types.SimpleNamespace(wg_capture_pool_open=opened, wg_capture_pool_close=lambda: calls.append("close"),
                                wg_capture_pool_allocate=ctypes.c_void_p(16), wg_capture_pool_release=ctypes.c_void_p(32))
    monkeypatch.setattr(_pool_memory, "library", lambda: raw)
    monkeypatch.setattr(_pool_memory, "_allocators", [])
    monkeypatch.setattr(_pool_memory, "_refused", set())
    monkeypatch.setattr(_pool_memory._launching, "device_of", lambda index: types.SimpleNamespace(pointer=5 + index))
    monkeypatch.setattr(torch.cuda, "MemPool", lambda *allocator: ("pool", *allocator), raising=False)
    if case == "old":
        monkeypatch.delattr(torch._C, "_cuda_customAllocator", raising=False)
    else:
        monkeypatch.setattr(torch._C, "_cuda_customAllocator", lambda take, give: (take, give), raising=False)
    snapshot = [{"is_expandable": case == "expandable"}]
    for _ in range(2):
        with _pool_memory.pool_for(torch.device("cuda", 1), snapshot, True) as pool:
            assert pool == (("pool", (16, 32)) if case == "ordered" else ("pool",))
            assert "close" not in calls
        expected = {"ordered": [("open", 6, 1), "close"], "full": [("open", 6, 1)], "unsupported": [("open", 6, 1)]}.get(case, [])
        assert calls == expected, "after Unsupported nothing is tried again"
        if case != "unsupported":
            calls.clear()


def test_a_pool_that_never_runs_takes_a_piece_of_memory_for_each_segment() -> None:
    librarys, pytorchs, sizes = types.SimpleNamespace(allocator=object()), types.SimpleNamespace(allocator=None), [2 * MIB, 20 * MIB, 1000 * MIB]
    assert _pool_memory.nbytes_of(librarys, sizes, never_runs=True) == (2 + 2 + 8) * MIB
    assert _pool_memory.nbytes_of(librarys, sizes, never_runs=False) == _pool_memory.nbytes_of(pytorchs, sizes, never_runs=True) == sum(sizes)


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


class FakeDriver:
    """Notes the mappings. A reservation lies where it is wished for, and a mapping must be as large as its piece of memory (as in driver 580)."""

    def __init__(self) -> None:
        self.pieces: dict[int, int] = {}
        self.mapped: dict[int, int] = {}

    def cuMemGetAllocationGranularity(self, unit: Any, properties: Any, kind: int) -> int:
        unit._obj.value = 2 * MIB
        return 0

    def cuMemAddressReserve(self, start: Any, size: Any, alignment: Any, wish: Any, flags: Any) -> int:
        start._obj.value = wish.value
        return 0

    def cuMemCreate(self, handle: Any, size: Any, properties: Any, flags: Any) -> int:
        handle._obj.value = len(self.pieces) + 1
        self.pieces[handle._obj.value] = size.value
        return 0

    def cuMemMap(self, address: Any, size: Any, offset: Any, handle: Any, flags: Any) -> int:
        if self.pieces[handle.value] != size.value:
            return 801
        assert not any(start < address.value + size.value and address.value < start + taken for start, taken in self.mapped.items())
        self.mapped[address.value] = size.value
        return 0

    def cuMemUnmap(self, address: Any, size: Any) -> int:
        assert self.mapped.pop(address.value) == size.value
        return 0

    def cuMemRelease(self, handle: Any) -> int:
        del self.pieces[handle.value]
        return 0

    cuMemSetAccess = cuMemAddressFree = lambda self, *arguments: 0


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    driver = FakeDriver()
    monkeypatch.setattr(_shadows._libraries, "driver", lambda: driver)
    monkeypatch.setattr(torch.cuda, "device", lambda device: contextlib.nullcontext())
    monkeypatch.setattr(torch, "as_tensor", lambda one, device: types.SimpleNamespace(untyped_storage=lambda: one))
    return driver


def test_no_shadow_lies_a_multiple_of_4_gib_from_its_original(driver: FakeDriver) -> None:
    """A word of a small number and an old upper half of an address moves by such a distance, and would look like an address."""
    for low in range(32 * MIB, 48 * MIB, 2 * MIB):  # here shadows begin
        shadows = _shadows.Shadows(torch.device("cuda", 0), [(0x7F00_0000_0000 + low, 1)])
        assert (shadows.pointers[0] - low) % (1 << 32)
        shadows.close()


def test_shadows_map_whole_pieces_and_have_no_addresses_just_above_a_multiple_of_4_gib(driver: FakeDriver) -> None:
    vgg = 411_041_792  # bytes of its largest weight: a piece of 4 MiB does not divide the size
    ranges = [(0x7F00_0000_0000 + 17 * i * MIB + i, size) for i, size in enumerate([vgg, 1, 2 * MIB, 3 << 30, 3 << 30, 500, vgg] * 3)]
    shadows = _shadows.Shadows(torch.device("cuda", 0), ranges)
    at = list(zip(shadows.pointers, ranges))
    assert all(start % 512 == was % 512 for start, (was, _) in at)
    assert all(start >> 32 == (start + size - 1) >> 32 and start & 0xFFFF_FFFF >= 1 << 16 for start, (_, size) in at)
    assert len({start - was for start, (was, _) in at}) == len(ranges)
    for start, (_, size) in at:
        assert all(any(low <= byte < low + taken for low, taken in driver.mapped.items()) for byte in (start, start + size - 1))
    shadows.close()
    assert not driver.mapped and not driver.pieces
