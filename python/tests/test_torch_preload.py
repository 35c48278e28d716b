"""Graphs are restored before the calls that need them once a context exists, and not before."""
from __future__ import annotations

import threading
import time
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import warmgraph  # noqa: E402
from warmgraph.core.binding import _fork  # noqa: E402
from warmgraph.core.cache import _pools  # noqa: E402
from warmgraph.torch.calls import _torch_function  # noqa: E402
from warmgraph.torch.replay import _launching, _preload  # noqa: E402


def doubled(x: Any) -> Any:
    return x * 2


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Yields (names and devices of preloads that began, a list with the current device, which is empty while there is no context)."""
    names: list[tuple[str, int]] = []
    device: list[int] = []
    _preload._waiting.clear()  # requests from other tests
    monkeypatch.setattr(_preload, "begin", lambda wrapped, index, name: names.append((name or wrapped._name(), index)))
    monkeypatch.setattr(_preload, "_device_in_use", lambda: device[0] if device else None)
    yield names, device
    device.append(0)
    _ended()


def _ended() -> None:
    thread = _preload._thread
    if thread is not None:
        thread.join(10)


def test_what_is_wrapped_is_begun_once_a_device_is_in_use(begun: Any) -> None:
    names, device = begun
    first = warmgraph.cache_compile(doubled)
    second = warmgraph.cache_compile(doubled, name="twice")
    time.sleep(0.03)
    assert names == []
    device.append(1)
    _ended()
    assert names == [("doubled", 1), ("twice", 1)]
    third = warmgraph.cache_compile(doubled, name="later")
    _ended()
    assert names[2:] == [("later", 1)]
    del first, second, third


def test_what_is_gone_is_a_methods_or_is_not_wanted_is_not_begun(begun: Any) -> None:
    names, device = begun
    config = warmgraph.Config(preload=False)
    kept = warmgraph.cache_compile(doubled, name="unwanted", config=config)
    warmgraph.cache_compile(doubled, name="gone")

    class Model:
        @warmgraph.cache_compile
        def step(self, x: Any) -> Any:
            return x

        def other(self, x: Any) -> Any:
            return x

    bound = warmgraph.cache_compile(Model().other)
    device.append(0)
    _ended()
    assert names == [("other", 0)]
    del kept, bound


def test_who_calls_at_once_is_waited_for(begun: Any) -> None:
    names, device = begun
    device.append(0)
    kept = warmgraph.cache_compile(doubled, config=warmgraph.Config(preload=False))
    kept.options.config.preload = True
    called = _preload.request(kept, "table-*", patience=5.0)
    assert called is not None
    _preload.forget(kept)
    left = _preload.request(kept, "table-*", patience=0.03)
    assert left is not None and left.device is None
    _ended()
    assert names == [("table-*", 0)] and left.device == 0 and called.device is None


def test_it_ends_where_nothing_is_ever_used(begun: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    names, _ = begun
    monkeypatch.setattr(_preload, "_LONGEST", 0.02)
    kept = warmgraph.cache_compile(doubled)
    _ended()
    assert _preload._thread is None and names == []
    del kept


def test_a_child_has_a_thread_of_its_own(begun: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    names, device = begun
    kept = warmgraph.cache_compile(doubled)
    parents = _preload._thread
    monkeypatch.setattr(_fork, "_generation", _fork.generation() + 1)
    monkeypatch.setattr(_pools, "_pools", {})  # a child gets its own caches, because other tests use the parent's
    childs = warmgraph.cache_compile(doubled, name="childs")
    assert _preload._thread is not parents and isinstance(_preload._thread, threading.Thread)
    device.append(0)
    _ended()
    assert names == [("childs", 0)]
    assert parents is not None
    parents.join(10)
    del kept


def test_without_cuda_nothing_is_in_use() -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a device")
    assert _preload._device_in_use() is None


def test_it_is_begun_in_the_background_once_for_each_device(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    asked: list[str] = []
    monkeypatch.setenv("WARMGRAPH_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(warmgraph.Cache, "preload", lambda self, names, device: asked.extend(names))
    monkeypatch.setattr(_launching, "device_of", lambda index: index)
    monkeypatch.setattr(_preload, "_device_in_use", lambda: 0)
    _preload._waiting.clear()
    wrapped = warmgraph.cache_compile(doubled, compile=False, config=warmgraph.Config(model="preload"))
    _ended()
    assert asked == ["doubled"]
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    function = _torch_function.TorchFunction(wrapped)
    function.begin(wrapped)
    assert asked == ["doubled"] and _preload.was_begun(wrapped, 0)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    function.begin(wrapped)
    assert asked == ["doubled", "doubled"], "on another device"
