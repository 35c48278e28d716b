"""Registers PyTorch's half of the package with the core (core/binding/_frameworks.py)."""
from __future__ import annotations

import torch

from warmgraph.arrays import _current_run
from warmgraph.core.binding import _frameworks
from warmgraph.torch.calls._torch_function import TorchFunction
from warmgraph.torch.pairs._pairs import PairFunction
from warmgraph.torch.read import _call_reader, _modules
from warmgraph.torch.record import _mega_cache
from warmgraph.torch.replay import _preload


def register() -> None:
    """Registers the half. Called once, when this half is imported."""
    _current_run.tracing.append(torch.compiler.is_compiling)
    _frameworks.register(_frameworks.Framework(
        is_call=_call_reader.is_torch_call,
        function_of=lambda wrapped: (PairFunction if wrapped.options.pair else TorchFunction)(wrapped),
        method_of=_modules.method_of, signed_by=_modules.signed_by,
        request_preload=lambda wrapped: _preload.request(wrapped), forget_preload=lambda wrapped: _preload.forget(wrapped),
        summary=_mega_cache.summary))
