"""Tests when recording of device code is paused and resumed. Here a fake takes the place of the library;
tests/capture/cuda_pausing_test.cpp tests the real library."""
from __future__ import annotations

import ctypes
import types
from typing import Any, Iterator

import pytest

torch = pytest.importorskip("torch")

from warmgraph import errors  # noqa: E402
from warmgraph.torch.replay import _pausing  # noqa: E402


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A list of the requests to the library. The process seems to have made no calls before."""
    calls: list[str] = []
    why = {"": ""}
    monkeypatch.setattr("warmgraph.core.cache._cache.paused_recording", lambda caches: calls.append("pause") or why[""])
    monkeypatch.setattr("warmgraph.core.binding._library.library",
                        lambda: types.SimpleNamespace(wg_prepare_recording_early=lambda: calls.append("prepare")))
    for name, value in (("replays", ctypes.c_uint64()), ("_misses", 0), ("_is_paused", False), ("_not_before", 0.0)):
        monkeypatch.setattr(_pausing, name, value)
    monkeypatch.setattr(_pausing, "why", why, raising=False)
    yield calls


def replay(times: int) -> None:
    for _ in range(times):
        _pausing.replayed()


def test_many_replays_in_a_row_pause_it_once(asked: list[str]) -> None:
    replay(255)
    assert asked == []
    replay(1)
    assert asked == ["pause"]
    replay(1000)
    assert asked == ["pause"], "it is paused already"


def test_where_it_is_refused_it_is_tried_again(asked: list[str]) -> None:
    _pausing.why[""] = "'f' was not called yet"
    replay(512)
    assert asked == ["pause", "pause"]


def test_what_fails_there_is_not_the_calls(asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(caches: Any) -> str:
        raise errors.Internal("no")

    monkeypatch.setattr("warmgraph.core.cache._cache.paused_recording", fails)
    replay(512)


def test_a_miss_begins_it_again_before_the_function_runs_and_holds_it(asked: list[str]) -> None:
    replay(256)
    with _pausing.recording():
        assert asked == ["pause", "prepare"]
        assert _pausing.pause() == "a call is being recorded"
    assert asked == ["pause", "prepare"]


def test_within_a_minute_of_a_miss_it_goes_on(asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with _pausing.recording():
        pass
    replay(512)
    assert asked == []
    now = _pausing.time.monotonic()
    monkeypatch.setattr(_pausing.time, "monotonic", lambda: now + 61)
    replay(256)
    assert asked == ["pause"]


def test_a_miss_that_raises_lets_it_go(asked: list[str]) -> None:
    with pytest.raises(ValueError):
        with _pausing.recording():
            raise ValueError
    assert _pausing.pause() == ""


def test_a_miss_whose_code_cannot_be_kept_goes_on(asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> None:
        raise errors.NotRecordable("another CUPTI subscriber is attached")

    replay(256)
    monkeypatch.setattr("warmgraph.core.binding._library.library", lambda: types.SimpleNamespace(wg_prepare_recording_early=fails))
    with _pausing.recording():
        pass


def test_it_is_not_paused_while_pytorch_is_profiled(asked: list[str]) -> None:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
        assert _pausing.pause() == "PyTorch's profiler runs"
    assert asked == []
    assert _pausing.pause() == ""
