"""Finds the generator from which a call draws its random numbers on the device: the device's own, or one of the caller's."""
from __future__ import annotations

import dataclasses
from typing import Any

import torch

from warmgraph import errors
from warmgraph.torch.record import _capture
from warmgraph.torch.replay._torch_call import TorchCall


@dataclasses.dataclass
class Draws:
    """Random numbers that a call draws. `path`: of the generator in the call; "" for the device's generator. `seed`, `offset`: its state
    before the call. `count`: how far the call advances the offset."""

    path: str
    generator: Any
    seed: int
    offset: int
    count: int = 0

    @property
    def name(self) -> str:
        return f"the torch.Generator {self.path}" if self.path else "the device's generator"

    def after(self) -> Draws:
        """The same with the generator's present offset."""
        count = self.generator.get_offset() - self.offset
        if count < 0 or self.generator.initial_seed() != self.seed:
            raise errors.NotRecordable(f"it seeds {self.name}, or sets its offset: do it outside")
        return dataclasses.replace(self, count=count)


class CallGenerators:
    """The generators that a call reaches. Made before the answer."""

    def __init__(self, call: TorchCall) -> None:
        devices = _capture.generator_of(call.device)
        found = {id(devices): ("", devices)}
        for path, one in call.objects().items():
            if isinstance(one, torch.Generator):
                found.setdefault(id(one), (path, one))
        self._before = [Draws(path, one, one.initial_seed(), one.get_offset()) for path, one in found.values()]
        self.of_device = self._before[0]

    def own(self) -> list[Any]:
        """The caller's generators, which must not be copied."""
        return [one.generator for one in self._before[1:]]

    def drawn(self) -> Draws:
        """The draws of the answer. Raises NotRecordable if more than one generator advanced."""
        after = [one.after() for one in self._before]
        used = [one for one in after if one.count]
        if len(used) > 1:
            raise errors.NotRecordable(f"it draws random numbers from {used[0].name} and from {used[1].name}: draw from one of them")
        return used[0] if used else after[0]
