"""Binds a loaded entry to a call's memory."""
from __future__ import annotations

import contextlib
import dataclasses
from typing import Any

import torch

from warmgraph.torch.read import _tensors
from warmgraph.torch.replay import _borrowed_results, _counters, _entry, _launching, _outputs
from warmgraph.torch.replay._regions import Region
from warmgraph.torch.replay._torch_call import TorchCall


@dataclasses.dataclass
class TorchVariant:
    """A loaded entry and the form of its result. explain() and report() use `function`."""

    function: _entry.Entry
    metadata: _outputs.Metadata
    words: torch.Tensor | None  # the generator's seed and offset, if the function draws random numbers
    borrowed: _borrowed_results.BorrowedResults | None = None  # the memory of the results, if results are borrowed


class BoundCall:
    """A variant bound to one call's memory, with its own or borrowed outputs. It may be launched several times."""

    def __init__(self, call: TorchCall, variant: TorchVariant, states: list[int] | None = None) -> None:
        """states: the current addresses of the call's states, if the caller has just read them."""
        self._call: TorchCall | None = call
        self.variant, self.device = variant, call.device
        self.borrowed = variant.borrowed
        if self.borrowed is not None and self.borrowed.overlaps((one.pointer, one.pointer + one.nbytes) for one in call.regions):
            self.borrowed = None
        self.generator = call.object(variant.metadata.generator) if variant.metadata.generator else None  # None: the device's
        self.outputs = self._memory()
        self._results = self.outputs
        self._staged: list[tuple[torch.Tensor, torch.Tensor]] = []  # (copy, original) for each input that was copied
        self.pointers = [self._pointer(region) for region in call.inputs]
        self.pointers += [one.data_ptr() for one in self.outputs if one.numel()]
        self.states = (states or [region.pointer for region in call.states]) + word_pointers(variant.words)

    def _memory(self) -> list[torch.Tensor]:
        """The memory of the outputs."""
        return self.borrowed.memory() if self.borrowed is not None else [one.allocate(self.device) for one in self.variant.metadata.outputs]

    def launch(self) -> None:
        """Launches in the current stream."""
        device, variant = self.device, self.variant
        advanced = _counters.places_of(variant.metadata.counters, self.call.arguments) if variant.metadata.counters else []
        for copy, of in self._staged:
            with torch.no_grad():
                copy.copy_(of)
        with self.borrowed.lock if self.borrowed is not None else contextlib.nullcontext():
            _launching.launched(variant.function, device, variant.words, variant.metadata.draws,
                                lambda stream: variant.function(stream, self.pointers, self.states), variant.metadata.host_draws, self.generator)
            if self.borrowed is not None:
                self._results = self.borrowed.lend()
        for place, by in advanced:
            place.set(place.get() + by)

    def result(self) -> Any:
        return _outputs.rebuilt(self.variant.metadata.tree, self._results, self.call.object)

    def last_result(self) -> Any:
        """The same as result(); afterwards the call is released."""
        try:
            return self.result()
        finally:
            self._call = None

    @property
    def call(self) -> TorchCall:
        assert self._call is not None, "it was let go"
        return self._call

    def _pointer(self, region: Region) -> int:
        """The address of an input. If the input is only read and less aligned than the kernels need (e.g. a row of a batch), it is copied,
        and this is the address of the copy."""
        pointer = region.pointer
        if pointer % self.variant.metadata.aligned.get(region.name, 1) == 0:
            return pointer
        tensor = region.places[0].tensor
        with torch.no_grad():
            of = _tensors.view_of(region.storage, torch.uint8, region.start, (region.nbytes,), (1,), tensor.device)
            self._staged.append((torch.empty_like(of), of))
        return self._staged[-1][0].data_ptr()


def word_pointers(words: torch.Tensor | None) -> list[int]:
    return [] if words is None else [words[i].data_ptr() for i in (0, 1)]


def words_of_generator(device: torch.device) -> torch.Tensor:
    """Two states for a replay (seed and offset), with the same alignment as in the recording."""
    return torch.zeros((2, _outputs.ALIGNMENT // 8), dtype=torch.int64, device=device)
