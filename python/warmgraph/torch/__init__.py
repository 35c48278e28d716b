"""PyTorch's half of the package: imported with `import warmgraph` where PyTorch was imported before it, else when a wrapped function first
meets a tensor of PyTorch's, or by a serving engine for its GraphCache (record_all for a program that captures by itself). It never brings PyTorch in."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warmgraph.torch import _framework
from warmgraph.torch.engines._engines import Graph, GraphCache

__all__ = ["Graph", "GraphCache", "Recorder", "SeenGraph", "record_all"]

if TYPE_CHECKING:
    from warmgraph.torch.engines._record_all import Recorder, SeenGraph, record_all

_OF_RECORD_ALL = ("Recorder", "SeenGraph", "record_all")


def __getattr__(name: str) -> Any:
    """A process that starts warm records nothing, and need not wait for what does."""
    if name not in _OF_RECORD_ALL:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from warmgraph.torch.engines import _record_all

    return getattr(_record_all, name)


_framework.register()
