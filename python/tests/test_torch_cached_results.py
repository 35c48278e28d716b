"""Captures of functions that use a tensor which functools.lru_cache keeps, without a GPU."""
from __future__ import annotations

import functools
import threading
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed here")

import torch_on_the_host as host  # noqa: E402
from torch_on_the_host import refusal, wrap  # noqa: E402
from warmgraph import errors  # noqa: E402
from warmgraph.torch.record import _cached_results  # noqa: E402

pytestmark = pytest.mark.usefixtures("on_the_host")

X = torch.randn(3, 2)
# The functions note here by a computed name, which the guards do not see.
MADE: list[tuple[Any, ...]] = []  # the arguments of each run of a cached function's body
USED: list[Any] = []  # the cached functions' results that `work` functions used


def centers(height: int, width: int, dtype: Any = torch.float32) -> Any:
    globals()["MADE"].append((height, width))
    rows, columns = torch.arange(0.5, height, dtype=dtype) / height, torch.arange(0.5, width, dtype=dtype) / width
    return torch.stack(torch.meshgrid(rows, columns, indexing="ij"), -1)


@functools.lru_cache(maxsize=32)
def kept_centers(height: int, width: int, dtype: Any) -> Any:
    return centers(height, width, dtype)


def _wrapper(function: Any) -> Any:
    """As compile_compatible_method_lru_cache of transformers does it."""
    cached = functools.lru_cache(maxsize=32)(function)

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return cached(*args, **kwargs)

    return wrapper


in_a_closure = _wrapper(centers)


class Held:
    centers = staticmethod(functools.lru_cache(maxsize=None)(centers))

    @functools.lru_cache(maxsize=4)
    def of_object(self, height: int, width: int) -> Any:
        return centers(height, width)


class Net(torch.nn.Module):
    @functools.lru_cache(maxsize=4)
    def centers(self, height: int, width: int) -> Any:
        return centers(height, width)

    def forward(self, x: Any) -> Any:
        return used(x, self.centers(3, 2))


def used(x: Any, tensor: Any) -> Any:
    globals()["USED"].append(tensor)
    return x * tensor[..., 0] + 1


@pytest.fixture(autouse=True)
def nothing_is_kept() -> None:
    MADE.clear()
    USED.clear()
    for cache in (kept_centers, Held.centers, Held.of_object, Net.centers, in_a_closure.__closure__[0].cell_contents):
        cache.cache_clear()


CALLS = {
    "a global": (lambda x: used(x, kept_centers(3, 2, dtype=torch.float32)), lambda: kept_centers(3, 2, dtype=torch.float32)),
    "a closure": (lambda x: used(x, in_a_closure(3, 2)), lambda: in_a_closure(3, 2)),
    "a static method": (lambda x: used(x, Held.centers(3, 2)), lambda: Held.centers(3, 2)),
}


@pytest.mark.parametrize("case", CALLS)
@pytest.mark.parametrize("is_there", [False, True], ids=["the answer makes it", "an earlier call made it"])
def test_a_capture_computes_what_lru_cache_keeps(case: str, is_there: bool) -> None:
    work, kept = CALLS[case]
    before = kept() if is_there else None
    made = len(MADE)
    cached = wrap(work)
    y = cached(X)
    assert len(host.entries) == 1, refusal(cached)
    assert len(MADE) == made + (not is_there) + 2 + 1, "each capture, and the comparison"
    assert kept() is USED[0] and (before is None or kept() is before), "the cache keeps its tensor"
    assert torch.equal(y, work(X))
    assert USED[1] is not USED[0] and USED[2] is not USED[0] and USED[2] is not USED[1], "each capture computed its own"


def test_a_module_without_weights_may_be_an_argument() -> None:
    net = Net()
    cached = wrap(net)
    cached(X)
    assert len(host.entries) == 1 and net.centers(3, 2) is USED[0] is not USED[1], refusal(cached)
    assert Net.__dict__["centers"] is type(net).centers and Net.centers.cache_info().currsize == 1


@functools.lru_cache(maxsize=None)
def counter(size: int) -> Any:
    return torch.zeros(size)


@functools.lru_cache(maxsize=None)
def scratch(size: int) -> Any:
    return torch.empty(size)


WEIGHT = torch.ones(2)


@functools.lru_cache(maxsize=None)
def of_weight(size: int) -> Any:
    return WEIGHT[:size] * 2


@functools.lru_cache(maxsize=None)
def of_tensor(tensor: Any) -> Any:
    return tensor + 1


@functools.lru_cache(maxsize=None)
def raises_later(size: int) -> Any:
    globals()["MADE"].append((size,))
    if len(globals()["MADE"]) > 1:
        raise RuntimeError("only once")
    return torch.ones(size)


def counted(x: Any) -> Any:
    return x + counter(2).add_(1)


KEPT = {
    "written alike": (lambda x: x + counter(2).mul_(1), counter, "counter (its result is written)"),
    "written": (counted, counter, "counter (its result is written)"),
    "written elsewhere": (lambda x: x + counter(2), counter, "counter (its result is not what a new call gives)"),
    "of a weight": (lambda x: x + of_weight(2), of_weight, "of_weight (its result does not follow from its arguments)"),
    "of a tensor": (lambda x: x + of_tensor(WEIGHT), of_tensor, "of_tensor (its arguments are not plain values)"),
    "not again": (lambda x: x + raises_later(2), raises_later, "raises_later (RuntimeError in a capture)"),
    "not set": (lambda x: x + scratch(2).fill_(3), scratch, "scratch (its result does not follow from its arguments)"),
}


@pytest.mark.parametrize("case", KEPT)
def test_what_does_not_follow_from_the_arguments_is_used_as_it_is_kept_and_named(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    work, cache, why = KEPT[case]
    cache.cache_clear()
    kept: list[int] = []
    refused = errors.NotRecordable("kernel f, parameter 2 byte 8: 0x7fee lies in no declared region")

    def refuse(self: Any, *given: Any) -> None:
        kept.append(len(host.captures))
        raise refused

    monkeypatch.setattr(host.FakeEntry, "__init__", refuse)
    if case == "written elsewhere":
        counter(2).add_(1)
    cached = wrap(work)
    with torch.no_grad():
        y = cached(X)
    assert y is not None and not host.entries and kept, "the call has its result"
    assert f"in no declared region; it may be a tensor that functools.lru_cache keeps: {why}" in refusal(cached)


def test_inference_mode_is_no_obstacle() -> None:
    cached = wrap(CALLS["a global"][0])
    with torch.inference_mode():
        cached(torch.randn(3, 2))
    assert len(host.entries) == 1 and len(MADE) == 1 + 2 + 1, refusal(cached)


def test_other_threads_use_the_cache_meanwhile() -> None:
    kept_centers(3, 2, torch.float32)
    found: list[Any] = []

    def work(x: Any) -> Any:
        thread = threading.Thread(target=lambda: found.append(kept_centers(3, 2, torch.float32)))
        thread.start()
        thread.join()
        return used(x, kept_centers(3, 2, torch.float32))

    namespaces = _cached_results.Namespaces()
    namespaces(None, (), {})
    results = _cached_results.CachedResults(torch.device("cpu"), namespaces)
    with results.computed_again():
        work(X)
        assert isinstance(kept_centers.cache_info(), tuple)
    assert found[0] is kept_centers(3, 2, torch.float32) and USED[0] is not found[0]
