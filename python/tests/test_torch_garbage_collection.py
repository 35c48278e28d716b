"""Garbage collection is postponed while a call is read, and unchanged while the caller's function runs."""
from __future__ import annotations

import gc
from typing import Any, Iterator

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed here")

import torch_on_the_host as host  # noqa: E402
import warmgraph  # noqa: E402
from warmgraph.torch.calls import _torch_function  # noqa: E402
from warmgraph.torch.replay import _garbage_collection  # noqa: E402


@pytest.fixture(autouse=True)
def on_the_host(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    host.use(monkeypatch)
    with torch.no_grad():
        yield
    gc.enable()


SEEN: list[bool] = []


def noted(x: Any) -> Any:
    SEEN.append(gc.isenabled())
    return x + 1


def wrapped() -> Any:
    SEEN.clear()
    return warmgraph.cache_compile(noted, compile=False, config=warmgraph.Config(model="net"))


def test_it_is_on_in_the_function_and_after_the_call(monkeypatch):
    reading, read = [], _torch_function.TorchFunction._read

    def watched(function: Any, *given: Any) -> Any:
        reading.append(gc.isenabled())
        return read(function, *given)

    monkeypatch.setattr(_torch_function.TorchFunction, "_read", watched)
    cached = wrapped()
    cached(torch.zeros(4))
    assert reading == [False] and SEEN and all(SEEN) and gc.isenabled()


def test_who_has_none_keeps_none():
    gc.disable()
    cached = wrapped()
    for _ in range(3):
        cached(torch.zeros(4))
    assert not any(SEEN) and not gc.isenabled()


def test_it_is_on_after_a_failure():
    def fails(x: Any) -> Any:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        warmgraph.cache_compile(fails, compile=False)(torch.zeros(4))
    assert gc.isenabled()


def test_it_is_on_in_a_child_that_was_forked_meanwhile():
    import os

    with _garbage_collection.later:
        child = os.fork()
        if child == 0:
            os._exit(0 if gc.isenabled() else 1)
        assert not gc.isenabled()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
