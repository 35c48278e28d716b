"""Finds PyTorch's current stream and advances its generator for a replay."""
from __future__ import annotations

import threading
from typing import Any, Callable, Sequence

import torch

from warmgraph import errors
from warmgraph.arrays._device import Device, stream_view
from warmgraph.torch.replay import _host_draws, _pausing

# After these errors nothing was enqueued, so the caller can run the function itself. (A forked child raises another error.)
NOT_LAUNCHED = (errors.InvalidArgument, errors.NotRecordable, errors.CompileFailed, errors.Corrupt, errors.Stale, errors.NotFound,
                errors.IoFailed, errors.NoSpace, errors.PermissionDenied, errors.DriverFailed, errors.OutOfMemory, errors.Internal,
                errors.Untrusted)


_devices: dict[int, Device] = {}
_lock = threading.RLock()


def device_of(index: int) -> Device:
    with _lock:
        if index not in _devices:
            _devices[index] = Device(f"cuda:{index}")
        return _devices[index]


def current_device() -> Device:
    return device_of(torch.cuda.current_device())


native_stream: Callable[[int], int] = getattr(torch._C, "_cuda_getCurrentRawStream", lambda index: 0)  # PyTorch's current stream


def view_of(device: Device, native: int) -> int:
    """The library's handle for a PyTorch stream."""
    return stream_view(device, native)


def stream_of(device: Device, index: int) -> int:
    """The library's handle for PyTorch's current stream on a CUDA device."""
    return view_of(device, native_stream(index))


def launched(entry: Any, device: torch.device, words: torch.Tensor | None, draws: int, launch: Callable[[int], Any],
             host_draws: Sequence[_host_draws.HostDraw] = (), generator: Any = None) -> None:
    """Calls `launch` with the current stream. `words`: the seed and offset of a function that draws random numbers, else None. The
    generators advance as in the function: with `words` the caller's `generator` or else the device's, by `host_draws` the host's. If nothing
    was launched, they keep their states."""
    stream = stream_of(entry.device, device.index or 0)
    _pausing.replayed()
    if words is None:
        launch(stream)
    else:
        _launch_with_words(device, words, draws, lambda: launch(stream), generator)
    _host_draws.draw(host_draws)


def _launch_with_words(device: torch.device, words: torch.Tensor, draws: int, launch: Callable[[], Any], generator: Any) -> None:
    if generator is None:
        generator = torch.cuda.default_generators[device.index or 0]
    elif generator.device.type != device.type or generator.device.index not in (None, device.index):  # None: torch.Generator("cuda")
        raise errors.NotRecordable(f"a torch.Generator is on {generator.device}, but the tensors are on {device}")
    offset, seed = generator.get_offset(), generator.initial_seed()
    with torch.no_grad():
        words[0, 0].fill_(seed - (1 << 64) if seed >= 1 << 63 else seed)
        words[1, 0].fill_(offset)
    generator.set_offset(offset + draws)
    try:
        launch()
    except errors.Error:
        generator.set_offset(offset)
        raise
