"""Tests calls of Triton kernels that tune themselves."""
from __future__ import annotations

import time
from typing import Any

import pytest

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")
autotuner = pytest.importorskip("triton.runtime.autotuner")

import torch_on_the_host as host  # noqa: E402
import triton.language as tl  # noqa: E402
from torch_on_the_host import refusal, wrap  # noqa: E402

from warmgraph.core.serving._entry_metadata import each_fact  # noqa: E402

pytestmark = pytest.mark.usefixtures("on_the_host")

X = torch.ones(8)


@triton.jit
def first(x, n, BLOCK: tl.constexpr):
    tl.store(x, n)


@triton.jit
def second(x, n, BLOCK: tl.constexpr):
    tl.store(x, n + 1)


class Tuner(autotuner.Autotuner):
    """A tuner whose kernel runs on the host."""

    def run(self, x: Any, n: int) -> Any:
        self.nargs = {"x": x, "n": n}
        if (n,) not in self.cache:
            self.configs_timings = {one: time.perf_counter() for one in self.configs}
            self.cache[n,], self.bench_time = self.configs[len(self.cache) % 2], time.perf_counter()
        self.best_config, self.nargs = self.cache[n,], None
        return x + n


def tuner(kernel: Any = first, blocks: Any = (16, 32), key: Any = ("n",), hook: Any = None) -> Any:
    return Tuner(kernel, ["x", "n", "BLOCK"], [triton.Config({"BLOCK": one}) for one in blocks], list(key), None, None, pre_hook=hook)


def call_of(kernel: Any) -> Any:
    return wrap(lambda x, n: kernel.run(x, n))


def test_a_kernel_that_tuned_itself_is_recorded_at_the_next_call_and_replayed_before_it_is_tuned():
    kernel = tuner()
    cached = call_of(kernel)
    cached(X, 3)
    assert not host.entries and "kernel tuned itself: the next call is recorded" in refusal(cached)
    cached(X, 3)
    assert len(host.entries) == 1 and len(kernel.cache) == 1, refusal(cached)
    later = tuner()  # of another process
    again = call_of(later)
    again(X, 3)
    assert len(host.entries) == 2 and len(host.entries[1].calls) == 1 and not later.cache


def test_choices_for_other_arguments_and_times_are_no_facts():
    kernel = tuner()
    cached = call_of(kernel)
    cached(X, 3)
    cached(X, 3)
    facts = each_fact(host.entries[0].given.facts)
    assert not [path for path in facts if any(name in path for name in ("cache[", "bench_time", "timings", "nargs", "best_config"))]
    for _ in range(4):
        kernel.run(X, 4)  # tuned elsewhere
        kernel.run(X, 5)
        cached(X, 3)
    assert len(host.entries) == 1 and len(host.entries[0].calls) == 4


@pytest.mark.parametrize("other", [
    lambda: tuner(blocks=(16, 64)), lambda: tuner(kernel=second), lambda: tuner(key=("x",)), lambda: tuner(hook=lambda *args, **kwargs: 1),
])
def test_another_kernel_configuration_key_or_hook_is_another_call(other):
    for kernel in (tuner(), other()):
        cached = call_of(kernel)
        cached(X, 3)
        cached(X, 3)
    assert len(host.entries) == 2 and not any(one.calls for one in host.entries)


def test_a_configuration_that_is_replaced_later_is_noticed():
    kernel = tuner()
    cached = call_of(kernel)
    for _ in range(4):
        cached(X, 3)
    assert len(host.entries[0].calls) == 2
    kernel.configs = [triton.Config({"BLOCK": 128})]
    cached(X, 3)
    assert len(host.entries) == 2


def test_a_tuner_of_a_module_is_not_copied(monkeypatch):
    class Module(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.kernel = tuner()

        def forward(self, x: Any) -> Any:
            return self.kernel.run(x, 3)

    def copied(self: Any, memo: Any) -> Any:
        raise TypeError("a tuner is not copied")

    monkeypatch.setattr(autotuner.Autotuner, "__deepcopy__", copied, raising=False)
    cached = wrap(Module())
    cached(X)
    cached(X)
    assert len(host.entries) == 1, refusal(cached)


def test_triton_s_own_tuner_is_read():
    kernel = triton.autotune([triton.Config({"BLOCK": 16})], key=["n"])(first)
    cached = wrap(lambda x: (kernel, x + 1)[1])
    cached(X)
    facts = each_fact(host.entries[0].given.facts)
    assert any("Triton tuner" in text for text in facts.values()) and any("Triton kernel" in text for text in facts.values())
