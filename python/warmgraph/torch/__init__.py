"""PyTorch's half of the package. `import warmgraph` imports this half if PyTorch is already imported. Otherwise the first call with a
PyTorch tensor imports it, or a serving engine does (GraphCache, record_all). This half never imports PyTorch before the program does."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warmgraph.torch import _framework
from warmgraph.torch.engines._engines import Graph, GraphCache

__all__ = ["Graph", "GraphCache", "Recorder", "SeenGraph", "record_all"]

if TYPE_CHECKING:
    from warmgraph.torch.engines._record_all import Recorder, SeenGraph, record_all

_OF_RECORD_ALL = ("Recorder", "SeenGraph", "record_all")


def __getattr__(name: str) -> Any:
    """Imports a name when it is first used. A process that starts warm records nothing, so it need not wait for the import of the recording
    code."""
    if name not in _OF_RECORD_ALL:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from warmgraph.torch.engines import _record_all

    return getattr(_record_all, name)


_framework.register()
