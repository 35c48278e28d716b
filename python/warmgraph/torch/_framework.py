"""What the package's half for PyTorch can do, as the core asks for it (core/binding/_frameworks.py)."""
from __future__ import annotations

import types
from typing import Any, Callable, Iterable

import torch

from warmgraph.arrays import _current_run
from warmgraph.calls._cached_function import CachedFunction
from warmgraph.core.binding import _frameworks
from warmgraph.torch.calls._torch_function import TorchFunction
from warmgraph.torch.pairs._pairs import PairFunction
from warmgraph.torch.read import _call_reader, _modules
from warmgraph.torch.record import _mega_cache
from warmgraph.torch.replay import _pausing, _preload


class TorchFramework:
    def is_call(self, owner: Any, values: Iterable[Any]) -> bool:
        return _call_reader.is_torch_call(owner, values)

    def function_of(self, wrapped: CachedFunction) -> TorchFunction:
        return (PairFunction if wrapped.options.pair else TorchFunction)(wrapped)

    def method_of(self, module: Any) -> types.MethodType:
        return _modules.method_of(module)

    def signed_by(self, module: Any) -> Callable[..., Any] | None:
        return _modules.signed_by(module)

    def request_preload(self, wrapped: CachedFunction) -> None:
        _preload.request(wrapped)

    def forget_preload(self, wrapped: CachedFunction) -> None:
        _preload.forget(wrapped)

    def pause_recording(self) -> str:
        return _pausing.pause()

    def summary(self) -> str:
        return _mega_cache.summary()


def register() -> None:
    """Called once, when this half is imported."""
    _current_run.tracing.append(torch.compiler.is_compiling)
    _frameworks.register(TorchFramework())
