"""Helpers for the tests of hostile calls: they wrap a function, and check whether it was replayed."""
from __future__ import annotations

import dataclasses
import functools
import sys
import types
from typing import Any, Callable

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed here")

import torch_on_the_host as host  # noqa: E402
import warmgraph  # noqa: E402
from torch_on_the_host import refusal  # noqa: E402

X = torch.ones(4)


@dataclasses.dataclass
class Settings:
    width: int = 1
    nested: Any = dataclasses.field(default_factory=lambda: {"a": [1, {"b": 2}]})


def wrap(function: Any, **options: Any) -> Any:
    return warmgraph.cache_compile(function, **{"compile": False, "config": warmgraph.Config(model="hostile"), **options})


def replays() -> int:
    return sum(len(one.calls) for one in host.entries)


def expect_noticed(call: Callable[[], Any], change: Callable[[], Any]) -> None:
    """Expects that the call replays before `change` and not after it."""
    call(), call(), call()
    before = replays()
    assert before >= 1
    change()
    call()
    assert replays() == before


def expect_apart(*functions: Any) -> None:
    """Calls each function as a separate process would, and expects that each has its own entry."""
    for function in functions:
        wrap(function)(X)
        assert replays() == 0
    assert len(host.entries) == len(functions)


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
        self.eps = 0.5
        self.step = wrap(self.work)

    def work(self, x: Any) -> Any:
        return self.b(self.a(x)) + self.eps


def users(source: str, **around: Any) -> Any:
    """Returns the function `work` of a user's module with this source."""
    module = sys.modules["users_source"] = types.ModuleType("users_source")
    module.__file__ = "/users/source.py"
    held = vars(module)
    held.update({"torch": torch, "functools": functools, **around})
    exec(compile(source, "/users/source.py", "exec"), held)  # noqa: S102
    return held["work"]
