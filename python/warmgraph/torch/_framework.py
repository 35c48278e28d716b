"""What the package's half for PyTorch can do, as the core asks for it (_frameworks.py)."""
from __future__ import annotations

import types
from typing import Any, Callable, Iterable

import torch

from .. import _current_run, _frameworks, _preload
from .._compiled import CachedFunction
from . import _mega_cache, _modules, _pausing, _walking
from ._function import TorchFunction
from ._pairs import PairFunction


class TorchFramework:
    def is_call(self, owner: Any, values: Iterable[Any]) -> bool:
        return _walking.is_torch_call(owner, values)

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
