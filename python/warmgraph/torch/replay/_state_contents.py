"""Makes the data about states for a process without PyTorch: the tensors in each storage, with their names in state_dict(), and the
contents of tensors that no weights file has."""
from __future__ import annotations

import base64
from typing import Any, Iterable, Mapping, Sequence

import torch

from warmgraph.arrays._shapes import contiguous_strides
from warmgraph.torch.read import _tensor_subclasses, _tensors
from warmgraph.torch.replay._regions import Region, storage_key

# Bytes: the most for one state, and the most for all states of an entry. A header has 1 MiB at most (docs/format.md), and also holds the
# facts.
MOST_OF_ONE = 64 << 10
MOST_OF_ALL = 256 << 10


def aliases(regions: Sequence[Region], objects: Mapping[str, Any]) -> dict[str, list[list[Any]]]:
    """{state: [[name, bytes from its start, type, sizes, strides], ...]} for each state, except a state that is a single tensor with the
    state's name. `objects`: the objects in the surroundings, by path."""
    states: dict[int, Region] = {int(region.storage.data_ptr()): region for region in regions if region.is_state}
    found: dict[str, list[list[Any]]] = {region.name: [] for region in states.values()}
    for path, value in objects.items():
        region = states.get(storage_key(value)) if _tensors.is_plain(value) and value.numel() else None
        layout = _layout(value) if region is not None else None
        if region is not None and layout is not None:
            found[region.name].append([path.removeprefix("self."), _tensors.start_in_storage(value) - region.start, *layout])
    plain = {region.name: [[region.name, 0, region.dtype, list(region.sizes), list(contiguous_strides(region.sizes))]] for region in states.values()}
    return {name: parts for name, parts in found.items() if parts and parts != plain[name]}


def contents(regions: Sequence[Region], objects: Mapping[str, Any]) -> dict[str, str]:
    """{state: base64} for each state that is only read and that no weights file has: buffers that are not persistent, and tensors in
    closures, globals and plain attributes. Leaves out gradients, and contents that are too large."""
    saved = {storage_key(tensor) for tensor in _in_state_dicts(objects.values()) if tensor.numel()}
    found, left = {}, MOST_OF_ALL
    for region in regions:
        is_asked = region.is_state and not region.is_written and int(region.storage.data_ptr()) not in saved \
            and all(place.parameter is None for place in region.places)
        if is_asked and region.nbytes <= min(MOST_OF_ONE, left):
            left -= region.nbytes
            found[region.name] = base64.b64encode(_bytes_of(region)).decode()
    return found


def _in_state_dicts(objects: Iterable[Any]) -> Iterable[torch.Tensor]:
    for module in objects:
        if isinstance(module, torch.nn.Module):
            kept = {name: one for name, one in module._buffers.items() if name not in module._non_persistent_buffers_set}
            for one in (*module._parameters.values(), *kept.values()):
                yield from _tensor_subclasses.plain_tensors(one)


def _layout(tensor: torch.Tensor) -> list[Any] | None:
    """Type, sizes and strides. A complex number becomes two numbers; an element of one byte in a type that the library lacks becomes a
    byte. None for other types that the library lacks."""
    sizes, strides = list(tensor.size()), list(tensor.stride())
    if _tensors.own_type(tensor.dtype):
        return [_tensors.own_type(tensor.dtype), sizes, strides]
    if tensor.is_complex():
        return [_tensors.flat_type(tensor.dtype, tensor.element_size())[0], [*sizes, 2], [*(2 * stride for stride in strides), 1]]
    return ["u8", sizes, strides] if tensor.element_size() == 1 else None


def _bytes_of(region: Region) -> bytes:
    with torch.no_grad():
        device = region.places[0].tensor.device
        view = _tensors.view_of(region.storage, torch.uint8, region.start, (region.nbytes,), (1,), device)
        return bytes(view.cpu().numpy().tobytes())
