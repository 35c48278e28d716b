"""What PyTorch's current stream and generator give a replay."""
from __future__ import annotations

import torch

from .._device import Device
from . import _entry


def stream_of(device: Device, index: int) -> int:
    """The library's handle for PyTorch's current stream on a CUDA device."""
    return _entry.stream_view(device, torch._C._cuda_getCurrentRawStream(index))


def draw(device: torch.device, words: torch.Tensor, draws: int) -> None:
    """The words of one replay, and the generator as the function would leave it."""
    generator = torch.cuda.default_generators[device.index or 0]
    offset, seed = generator.get_offset(), generator.initial_seed()
    with torch.no_grad():
        words[0, 0].fill_(seed - (1 << 64) if seed >= 1 << 63 else seed)
        words[1, 0].fill_(offset)
    generator.set_offset(offset + draws)
