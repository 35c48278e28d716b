"""Says why an operator cannot run in a capture, and what to write in its place."""
from __future__ import annotations

import re
from typing import Any, NamedTuple, Sequence

import torch

from warmgraph.torch.read import _tensors
from warmgraph.torch.record import _operators


class Advice(NamedTuple):
    """what: what the operator does, after "which". cure: what the program should do."""

    what: str
    cure: str


_READS = Advice("waits for the device to read numbers (item(), tolist(), int(), bool() or `if` on a tensor)",
                "keep the numbers in tensors (torch.where), or compute them outside and pass them")
_SHAPES = Advice("gives a result whose shape depends on numbers in device memory",
                 "use shapes that follow from the arguments' shapes (torch.where, or multiply by the mask; output_size= of repeat_interleave)")
_FROM_HOST = Advice("copies a tensor from the host to the device",
                    "a tensor made on the host is copied to the device inside the function: make it outside, or make it on the device with device= "
                    "(torch.arange, zeros, full; torch.tensor copies in any case)")
_TO_HOST = Advice("copies a tensor from the device to the host", "return the tensor, and read it outside")
_BETWEEN = Advice("copies a tensor between host and device",
                  f"{_FROM_HOST.cure}. If it is a copy to the host (cpu(), tolist(), numpy()): {_TO_HOST.cure}")
_BFLOAT16 = "model.to(torch.bfloat16), or model.set_experts_implementation(\"batched_mm\") of transformers"
_GROUPS = Advice("reads the sizes of its groups on the host unless its numbers are bfloat16", f"use bfloat16 ({_BFLOAT16})")
_WAITS = Advice("waits for the device, or does something else that CUDA forbids in a capture", "call it outside the function")
_OTHER = Advice("waits for the device in the middle", "call it outside the function")
_EXPERTS = ". A layer of experts in float32 chooses its rows by numbers in device memory: in bfloat16 transformers computes it with grouped_mm, " \
           f"which can be captured ({_BFLOAT16})"
_OF_EXPERTS = re.compile("moe|expert", re.IGNORECASE)

_READING_ONE = "_local_scalar_dense"
_READING = {_READING_ONE, "item", "equal", "is_nonzero", "allclose"}
_SHAPING = {"nonzero", "nonzero_numpy", "argwhere", "masked_select", "_unique", "_unique2", "unique_dim", "unique_consecutive",
            "unique_dim_consecutive", "bincount", "repeat_interleave"}
_COPYING = {"_to_copy", "copy_", "copy", "to", "_copy_from", "clone"}
_INDEXING = {"index", "index_put_", "index_put", "_index_put_impl_", "_unsafe_index"}
_GROUPING = {"_grouped_mm", "grouped_mm_fallback"}
_MASKS = (torch.bool, torch.uint8)


def waits(text: str) -> bool:
    """Whether the operator of a text (_operators.text_of) surely waits for the device in a capture. Reading one number does not, if the number
    is constant (_constants.HostReads)."""
    name = text.partition("(")[0].split(".")[1:2]
    return any(one in _SHAPING or one in _READING and one != _READING_ONE for one in name)


def is_of_capture(error: Exception) -> bool:
    """Whether PyTorch or CUDA raised the error because the stream captures."""
    return "captur" in str(error)


def is_late(error: Exception) -> bool:
    """Whether an earlier error is the cause: it ended the capture, and the program went on."""
    return "previous error during capture" in str(error) or "capture_end" in str(error)


def of_operator(func: Any, args: Sequence[Any], kwargs: dict[str, Any], around: Sequence[torch.nn.Module]) -> Advice:
    """around: the modules that are called now, innermost first."""
    name = str(getattr(getattr(func, "_schema", None), "name", func)).rpartition("::")[2]
    return _with_experts(_of_name(name, args, kwargs), around)


def _of_name(name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Advice:
    given = list(_operators.tensors_in([*args, *kwargs.values()]))
    if name in _GROUPING:
        return _GROUPS
    if name in _READING:
        return _READS
    if name in _COPYING:
        return _of_copy(name, given, kwargs)
    if name in _SHAPING or name in _INDEXING and any(one.dtype in _MASKS for one in given[1:]):
        return _SHAPES
    if name in _INDEXING and any(_is_on_host(one) for one in given):
        return _FROM_HOST
    return _OTHER


def _of_copy(name: str, given: Sequence[torch.Tensor], kwargs: dict[str, Any]) -> Advice:
    source = given[-1] if name.startswith("copy") else given[0] if given else None
    if source is None:
        return _BETWEEN
    target = given[0].device if name.startswith("copy") else kwargs.get("device")
    if _is_on_host(source):
        return _FROM_HOST
    return _TO_HOST if target is None or torch.device(target).type != _tensors.DEVICE_TYPE else _BETWEEN


def of_error(error: Exception, around: Sequence[torch.nn.Module]) -> Advice:
    """For an error that no operator raised. around: the modules that were called, innermost first."""
    return _with_experts(_BETWEEN if "Cannot copy between" in str(error) else _WAITS, around)


def _with_experts(advice: Advice, around: Sequence[torch.nn.Module]) -> Advice:
    for module in around if advice is not _GROUPS else ():
        weight = next((one for one in module.parameters() if one.is_floating_point()), None)
        if _OF_EXPERTS.search(type(module).__name__) and weight is not None and weight.dtype == torch.float32:
            return Advice(advice.what, advice.cure + _EXPERTS)
    return advice


def _is_on_host(tensor: torch.Tensor) -> bool:
    return bool(tensor.device.type != _tensors.DEVICE_TYPE)
