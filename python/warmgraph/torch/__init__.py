"""PyTorch's half of the package: imported with `import warmgraph` where PyTorch was imported before it, else when a wrapped function first
meets a tensor of PyTorch's, or by a serving engine for its GraphCache. It never brings PyTorch in."""
from __future__ import annotations

from ._engines import Graph, GraphCache
from ._function import TorchFunction
from ._modules import method_of, signed_by
from ._pairs import PairFunction
from ._walking import is_torch_call

__all__ = ["Graph", "GraphCache", "PairFunction", "TorchFunction", "is_torch_call", "method_of", "signed_by"]
