"""PyTorch's half of the package: imported when a wrapped function first meets a tensor of PyTorch's, and never by `import warmgraph`."""
from __future__ import annotations

from ._function import TorchFunction
from ._walking import is_torch_call

__all__ = ["TorchFunction", "is_torch_call"]
