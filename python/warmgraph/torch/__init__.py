"""PyTorch's half of the package. `import warmgraph` imports it if PyTorch is already imported; else the first call with a PyTorch tensor does,
or a serving engine for its GraphCache (record_all for a program that captures by itself). It never imports PyTorch first."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warmgraph.torch import _framework
from warmgraph.torch.engines._engines import Graph, GraphCache

__all__ = ["Graph", "GraphCache", "Recorder", "SeenGraph", "record_all"]

if TYPE_CHECKING:
    from warmgraph.torch.engines._record_all import Recorder, SeenGraph, record_all

_OF_RECORD_ALL = ("Recorder", "SeenGraph", "record_all")


def __getattr__(name: str) -> Any:
    """Imports on demand: a process that starts warm records nothing, and need not wait for this import."""
    if name not in _OF_RECORD_ALL:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from warmgraph.torch.engines import _record_all

    return getattr(_record_all, name)


_framework.register()
