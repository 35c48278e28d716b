"""The data about a pair in the forward half's metadata: which of its outputs are results, and the inputs and outputs of backward."""
from __future__ import annotations

import dataclasses
import json
from typing import Any, Sequence

from warmgraph import errors
from warmgraph.torch.read import _tensors
from warmgraph.torch.replay._outputs import Metadata, Output

BACKWARD_OF = "torch.pair.of"  # a fact of a backward half: the recording's id, by which only the forward half finds it


@dataclasses.dataclass(frozen=True)
class Description:
    """The data about a pair. recording: the id that both entries have. results: how many of forward's outputs are results of the call; the
    others are saved for backward. differentiable: the indices of the results for which backward gets a gradient. used: the inputs and
    states that backward reads. gradients: for each tensor of the call that requires grad, its gradient or None."""

    recording: int
    results: int
    differentiable: tuple[int, ...]
    used: frozenset[str]
    gradients: tuple[Output | None, ...]

    def given(self, outputs: Sequence[Output]) -> list[Output]:
        """The gradients that backward receives. `outputs`: the outputs of forward."""
        return [dataclasses.replace(outputs[i], name=f"pair.grad{n}") for n, i in enumerate(self.differentiable)]

    def list_made(self) -> list[Output]:
        """The gradients that backward returns."""
        return [one for one in self.gradients if one is not None]


def with_pair(text: str, described: Description) -> str:
    """Adds the description to a forward half's metadata."""
    raw = {"recording": f"{described.recording:032x}", "results": described.results, "differentiable": list(described.differentiable), "used": sorted(described.used),
           "gradients": [None if one is None else [one.name, one.dtype, list(one.sizes), list(one.strides)] for one in described.gradients]}
    return json.dumps({**json.loads(text), "pair": raw}, separators=(",", ":"))


def description_of(metadata: Metadata) -> Description:
    """Reads the description from metadata. Raises Corrupt for a text that with_pair does not write."""
    raw, count = metadata.pair, len(metadata.outputs)
    try:
        found = Description(int(raw["recording"], 16), int(raw["results"]), tuple(map(int, raw["differentiable"])), frozenset(map(str, raw["used"])),
                            tuple(None if one is None else _output(*one) for one in raw["gradients"]))
    except (ValueError, KeyError, TypeError) as error:
        raise errors.Corrupt(f"the pair's metadata cannot be read: {error}") from None
    if not 0 <= found.results <= count or not all(0 <= i < found.results for i in found.differentiable) or not found.differentiable:
        raise errors.Corrupt(f"the pair's metadata has {found.results} results of {count} outputs, and gradients of {found.differentiable}")
    return found


def _output(name: Any, dtype: Any, sizes: Any, strides: Any) -> Output:
    _tensors.dtype_of(str(dtype))
    return Output(str(name), str(dtype), tuple(map(int, sizes)), tuple(map(int, strides)))
