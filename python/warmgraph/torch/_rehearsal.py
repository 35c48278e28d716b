"""What Python does for the first time in a process when a call is read (it loads, specialises, fills what is kept): done before that, on a
model of our own, which has no memory on the device and touches no state of PyTorch's."""
from __future__ import annotations

import types
from typing import Any, Iterator

import torch

from . import _call, _code, _entry, _listing, _modes, _regions, _walking

_TIMES = 3  # CPython 3.11 and later specialise what ran twice


def rehearse() -> Iterator[None]:
    """In pieces, and in any thread."""
    for _ in range(_TIMES):
        model, weights = _model(), [torch.empty(2, device="cpu"), torch.empty((2, 3), device="cpu")]
        walker, reached = _walking.read(_code.Reached(_forward), {"x": 1, "y": [1.5, "text", None], "z": {"a": (True,)}}, model)
        yield
        places = [_walking.Place(f"self.weight{i}", tensor, "self") for i, tensor in enumerate(weights)]
        regions = _regions.regions_of(places)
        walker.places += places
        yield
        _call.Surroundings(walker, reached, regions).is_same()
        yield
        facts = {**_modes.facts(_modes.modes(), {}, ""), **walker.found.facts, **_regions.facts_of(regions)}
        decls = [one.decl() for one in regions]
        _entry.raw_spec(_entry.Declaration("rehearsal", [], [], decls, _listing.listed(facts, walker), (), reached.digest()))
        yield


def _forward(self: Any, x: Any, y: Any, z: Any) -> Any:
    return self.first(x, self.config.kind), self.config.sizes, self.second(y), z


def _model() -> torch.nn.Module:
    """Its parts are put in place past what PyTorch calls for each that is registered."""
    first, second, inner = torch.nn.Identity(), torch.nn.ReLU(), torch.nn.Module()
    for name in ("weight", "bias"):
        first._parameters[name], inner._buffers[name] = None, torch.empty(0, device="cpu")
    inner.__dict__["config"] = first.__dict__["config"] = types.SimpleNamespace(kind="none", sizes=[1, 2], flag=True, more={"a": 1})
    inner._modules.update(first=first, second=second, third=torch.nn.ReLU())
    return inner
