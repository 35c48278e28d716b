"""Functions are prefetched when a context is there, and not before."""
from __future__ import annotations

import sys
import threading
import time
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import warmgraph  # noqa: E402
from warmgraph import _ahead, _fork, _pools  # noqa: E402


def doubled(x: Any) -> Any:
    return x * 2


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> Any:
    """(names and devices that were begun, the device in use from now on)"""
    names: list[tuple[str, int]] = []
    device: list[int] = []
    _ahead._waiting.clear()  # of modules of other tests
    monkeypatch.setattr(_ahead, "begin", lambda wrapped, index, name: names.append((name or wrapped._name(), index)))
    monkeypatch.setattr(_ahead, "_device_in_use", lambda: device[0] if device else None)
    monkeypatch.setattr(_ahead, "_is_cuda_initialized", lambda: bool(device))
    yield names, device
    device.append(0)
    _ended()


def _ended() -> None:
    thread = _ahead._thread
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


def test_versions_of_the_installation_are_known_then(begun: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from warmgraph.torch import _code, _modes

    _, device = begun
    _modes._cudnn_version.cache_clear()
    monkeypatch.setattr(_code, "_versions", {})
    wrapped = warmgraph.cache_compile(doubled)
    time.sleep(0.03)
    assert _code._versions == {}, "wrapping reads nothing"
    device.append(0)
    _ended()
    assert "triton" in _code._versions and _modes._cudnn_version.cache_info().currsize == 1
    del wrapped


def test_what_is_gone_is_a_methods_or_is_not_wanted_is_not_begun(begun: Any) -> None:
    names, device = begun
    config = warmgraph.Config(prefetch=False)
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
    kept = warmgraph.cache_compile(doubled, config=warmgraph.Config(prefetch=False))
    kept.options.config.prefetch = True
    called = _ahead.expect(kept, "table-*", patience=5.0)
    assert called is not None
    _ahead.forget(kept)
    left = _ahead.expect(kept, "table-*", patience=0.03)
    assert left is not None and left.device is None
    _ended()
    assert names == [("table-*", 0)] and left.device == 0 and called.device is None


def test_it_ends_where_nothing_is_ever_used(begun: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    names, _ = begun
    monkeypatch.setattr(_ahead, "_LONGEST", 0.02)
    kept = warmgraph.cache_compile(doubled)
    _ended()
    assert _ahead._thread is None and names == []
    del kept


def test_a_child_has_a_thread_of_its_own(begun: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    names, device = begun
    kept = warmgraph.cache_compile(doubled)
    parents = _ahead._thread
    monkeypatch.setattr(_fork, "_generation", _fork.generation() + 1)
    monkeypatch.setattr(_pools, "_pools", {})  # its caches are not the parent's, which other tests ask
    childs = warmgraph.cache_compile(doubled, name="childs")
    assert _ahead._thread is not parents and isinstance(_ahead._thread, threading.Thread)
    device.append(0)
    _ended()
    assert names == [("childs", 0)]
    assert parents is not None
    parents.join(10)
    del kept


def test_without_cuda_nothing_is_in_use() -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a device")
    assert _ahead._device_in_use() is None


def _package(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """An installed one, with a module class of PyTorch's."""
    from warmgraph import _code as plain
    from warmgraph.torch import _code

    (tmp_path / "wg_ahead_package").mkdir()
    (tmp_path / "wg_ahead_package" / "__init__.py").write_text("import torch\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        return x\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(plain, "_INSTALLED", (*plain._INSTALLED, str(tmp_path)) if isinstance(plain._INSTALLED, tuple) else (plain._INSTALLED, str(tmp_path)))
    for name in [one for one in sys.modules if one.startswith("wg_ahead_")]:  # another test's
        monkeypatch.delitem(sys.modules, name)
    import wg_ahead_package  # type: ignore[import-not-found]

    return wg_ahead_package, _code


def test_while_a_context_is_made_classes_are_read_and_a_call_is_rehearsed(monkeypatch: pytest.MonkeyPatch) -> None:
    from warmgraph.torch import _entry

    declared: list[Any] = []
    spec = _entry.raw_spec
    monkeypatch.setattr(_entry, "raw_spec", lambda given: declared.append(given) or spec(given))
    monkeypatch.setattr(_ahead, "_device_in_use", lambda: None)
    initialized: list[bool] = []
    monkeypatch.setattr(_ahead, "_is_cuda_initialized", lambda: bool(initialized))
    _ahead._waiting.clear()
    kept = warmgraph.cache_compile(doubled)
    time.sleep(0.03)
    assert not declared, "PyTorch is not on its way to a device"
    initialized.append(True)
    end = time.monotonic() + 60
    while time.monotonic() < end and len(declared) < 3:
        time.sleep(0.01)
    assert [one.name for one in declared] == ["rehearsal"] * 3
    monkeypatch.setattr(_ahead, "_device_in_use", lambda: 0)
    monkeypatch.setattr(_ahead, "begin", lambda *_: None)
    _ended()
    assert _ahead._thread is None
    del kept


def test_who_calls_does_not_wait_for_what_is_read_ahead(begun: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []

    def pieces() -> Any:
        while True:
            read.append(1)
            yield

    monkeypatch.setattr(_ahead, "_pieces", pieces)
    _, device = begun
    kept = warmgraph.cache_compile(doubled)
    device.append(0)
    while not read:
        time.sleep(0.001)
    assert _ahead._thread is not None and _ahead._thread.is_alive()
    _ahead.leave_reading()
    _ended()
    assert _ahead._thread is None
    count = len(read)
    again = warmgraph.cache_compile(doubled, name="again")
    while len(read) == count:  # another one is expected
        time.sleep(0.001)
    _ahead.leave_reading()
    _ended()
    del kept, again


def test_what_fails_there_is_left(begun: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def pieces() -> Any:
        yield
        raise ZeroDivisionError

    monkeypatch.setattr(_ahead, "_pieces", pieces)
    names, device = begun
    kept = warmgraph.cache_compile(doubled)
    device.append(0)
    _ended()
    assert names == [("doubled", 0)] and _ahead._thread is None
    del kept


def test_a_rehearsal_leaves_nothing_behind() -> None:
    from warmgraph.torch import _rehearsal

    met: list[str] = []
    register = torch.nn.modules.module
    handles = [register.register_module_module_registration_hook(lambda *_: met.append("module")),
               register.register_module_buffer_registration_hook(lambda *_: met.append("buffer")),
               register.register_module_parameter_registration_hook(lambda *_: met.append("parameter"))]
    try:
        state, mode = torch.get_rng_state(), torch.is_grad_enabled()
        assert sum(1 for _ in _rehearsal.rehearse()) == 12
        assert torch.equal(torch.get_rng_state(), state) and torch.is_grad_enabled() == mode and met == []
        assert not torch.cuda.is_initialized() or torch.cuda.is_available()
    finally:
        for handle in handles:
            handle.remove()


def test_classes_that_models_name_are_read_ahead_as_well(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their configurations and caches, of the same package alone."""
    package, code = _package(tmp_path, monkeypatch)
    (tmp_path / "wg_ahead_package" / "config.py").write_text("class Base:\n    pass\n\nclass Config(Base):\n    kind = 'x'\n\n"
                                                             "class Other:\n    pass\n\n"
                                                             "class Unhashable(type):\n    def __eq__(self, other):\n        return self is other\n\n"
                                                             "class Odd(metaclass=Unhashable):\n    pass\n")
    (tmp_path / "wg_ahead_other.py").write_text("class Foreign:\n    pass\n")
    import wg_ahead_other  # type: ignore[import-not-found]
    import wg_ahead_package.config as config  # type: ignore[import-not-found]

    package.Config, package.Foreign = config.Config, wg_ahead_other.Foreign
    monkeypatch.setattr(code, "_known_digests", {})
    for _ in code.read_ahead(package.Net):
        pass
    read = {one.kind for one in code._known_digests.values() if one.kind is not config.Odd}
    assert {package.Net, config.Config, config.Base, config.Other} <= read and wg_ahead_other.Foreign not in read
    assert id(config.Odd) in code._known_digests, "which has no hash"


def test_installed_classes_are_read_ahead_and_anew_where_they_changed(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    package, code = _package(tmp_path, monkeypatch)
    read: list[type] = []
    anew = code._digests_anew
    monkeypatch.setattr(code, "_digests_anew", lambda kind, functions: (read.append(kind), anew(kind, functions))[1])
    assert sum(1 for _ in code.read_ahead(torch.nn.Module)) >= 1 and package.Net in read and "wg_ahead_package" in code._versions
    read.clear()
    before = code._digests_of(package.Net)
    assert read == [], "which was read"

    package.Net.forward.__code__ = (lambda self, x: x + 1).__code__
    assert code._digests_of(package.Net) != before and read == [package.Net]
    changed = code._digests_of(package.Net)
    package.Net.forward = lambda self, x: x + 2
    assert code._digests_of(package.Net) not in (before, changed) and read == [package.Net] * 2
    package.Net.more = lambda self: None
    code._digests_of(package.Net)
    assert read == [package.Net] * 3
    assert torch.nn.Module not in read, "PyTorch's count by their version"
