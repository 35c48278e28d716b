"""Describes PyTorch's tensors for the library: an element type and a range of memory, or the reason why this is not possible."""
from __future__ import annotations

import functools
from typing import Any, TypeGuard

import torch

from warmgraph import errors

_SHORT = {
    torch.uint8: "u8", torch.int8: "i8", torch.uint16: "u16", torch.int16: "i16", torch.uint32: "u32", torch.int32: "i32",
    torch.uint64: "u64", torch.int64: "i64", torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32", torch.float64: "f64",
    torch.bool: "bool",
}
# The element type of a complex number's real and imaginary parts.
_PARTS = {torch.complex32: "f16", torch.complex64: "f32", torch.complex128: "f64"}
DEVICE_TYPE = "cuda"  # the device on which graphs have their memory
MOST_DIMENSIONS = 8  # the most dimensions that the library guards itself
PLAIN_TYPES = (torch.Tensor, torch.nn.Parameter)


def text_of(dtype: torch.dtype) -> str:
    """The type's name without "torch.", e.g. "float32"."""
    return str(dtype).removeprefix("torch.")


def dtype_of(text: str) -> torch.dtype:
    """The type with the name from text_of. Raises Corrupt for any other name, because it comes from a file."""
    found = getattr(torch, text, None)
    if not isinstance(found, torch.dtype):
        raise errors.Corrupt(f"{text!r} is not an element type of this PyTorch")
    return found


def flat_type(dtype: torch.dtype, nbytes: int) -> tuple[str, int]:
    """Returns (type, count) for `nbytes` bytes of memory with such elements. Floats stay floats; types that the library lacks become bytes."""
    short = own_type(dtype) or _PARTS.get(dtype) or "u8"
    from warmgraph import dtypes

    size = dtypes.itemsize(short)
    return (short, nbytes // size) if nbytes % size == 0 else ("u8", nbytes)


def own_type(dtype: torch.dtype) -> str:
    """The library's name for the type; "" if the library has no such type."""
    return _SHORT.get(dtype, "")


def is_plain(tensor: Any) -> TypeGuard[torch.Tensor]:
    return type(tensor) in PLAIN_TYPES


def why_unusable(tensor: torch.Tensor) -> str:
    """Why the memory of a tensor cannot be followed, or ""."""
    if type(tensor) in PLAIN_TYPES and tensor.layout is torch.strided and tensor.device.type == DEVICE_TYPE \
            and not (tensor.is_nested or tensor.is_quantized or tensor.is_conj() or tensor.is_neg()):
        return ""  # an ordinary tensor in device memory
    if not is_plain(tensor):
        return f"is a {type(tensor).__module__}.{type(tensor).__qualname__}, a subclass of torch.Tensor without __tensor_flatten__: pass the tensors " \
               "that it holds"
    if tensor.is_nested or tensor.layout != torch.strided:
        return f"has the layout {'nested' if tensor.is_nested else tensor.layout}: pass the dense tensors that it consists of"
    if tensor.is_quantized:
        return f"is quantised ({tensor.dtype}): pass its integers and scales"
    if tensor.device.type != DEVICE_TYPE:
        return f"lies on {tensor.device}, expected a CUDA device: move it there"
    if is_lazy(tensor):
        return "is a lazily conjugated or negated view: call resolve_conj() or resolve_neg()"
    return ""


def read(tensor: torch.Tensor, may_be_hosts: bool) -> tuple[str, bool]:
    """Returns (the text for a fact, whether the tensor's memory can be followed). If it cannot, returns (the reason, False), or ("", False)
    for a plain tensor in host memory. may_be_hosts: accepts a host tensor, because its contents are compared."""
    if may_be_hosts and tensor.device.type == "cpu" != DEVICE_TYPE and type(tensor) in PLAIN_TYPES and tensor.layout == torch.strided:
        return "", False
    why = why_unusable(tensor)
    return (why, False) if why else (described(tensor), True)


def is_lazy(tensor: torch.Tensor) -> bool:
    """Whether the tensor's values are conjugated or negated values of those in memory. DLPack's exchange table does not show this."""
    return tensor.is_conj() or tensor.is_neg()


def can_be_lazy(tensor: torch.Tensor) -> bool:
    """Whether a tensor with the same DLPack description may be lazy. PyTorch's public functions make only these lazy: complex tensors
    (conj()) and strided views (`conj().imag`)."""
    return tensor.dtype.is_complex or tensor.numel() <= 1 or not tensor.is_contiguous()


def start_in_storage(tensor: torch.Tensor) -> int:
    """The number of bytes from the start of the tensor's storage to its first element."""
    return int(tensor.storage_offset()) * tensor.element_size()


def extent(tensor: torch.Tensor) -> int:
    """The number of bytes from the tensor's first element to the end of its last."""
    if tensor.numel() == 0:
        return 0
    last = sum((size - 1) * stride for size, stride in zip(tensor.size(), tensor.stride()))
    return (last + 1) * tensor.element_size()


def overlap(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors of one storage have a byte in common."""
    first = max(start_in_storage(one), start_in_storage(other))
    end = min(start_in_storage(one) + extent(one), start_in_storage(other) + extent(other))
    if first >= end:
        return False
    if one.element_size() != other.element_size():
        return True
    low = min(int(one.storage_offset()), int(other.storage_offset()))
    touched = torch.zeros(max(start_in_storage(each) + extent(each) for each in (one, other)) // one.element_size() - low, dtype=torch.bool,
                          device="cpu")
    touched.as_strided(one.size(), one.stride(), int(one.storage_offset()) - low).fill_(True)
    return bool(touched.as_strided(other.size(), other.stride(), int(other.storage_offset()) - low).any())


def layout_of(tensor: torch.Tensor) -> tuple[Any, ...]:
    """All properties of a tensor that a guard compares, except the address."""
    return (type(tensor), tensor.dtype, tensor.shape, tensor.stride(), tensor.storage_offset(), tensor.requires_grad, tensor.is_conj(),
            tensor.is_neg(), len(tensor.__dict__))


def described(tensor: torch.Tensor) -> str:
    """The tensor's facts except its address: type, sizes, strides and whether it requires grad."""
    return _described(tensor.dtype, tensor.size(), tensor.stride(), tensor.requires_grad)


@functools.lru_cache(maxsize=1024)
def _described(dtype: torch.dtype, sizes: torch.Size, strides: tuple[int, ...], requires_grad: bool) -> str:
    return f"{text_of(dtype)} {list(sizes)} strides {list(strides)}{', requires grad' if requires_grad else ''}"


def view_of(storage: Any, dtype: torch.dtype, offset_bytes: int, sizes: Any, strides: Any, device: Any) -> torch.Tensor:
    """A tensor of this type and layout over the memory of a storage."""
    element = torch.empty(0, dtype=dtype, device=device)
    return element.set_(storage, offset_bytes // element.element_size(), tuple(sizes), tuple(strides))
