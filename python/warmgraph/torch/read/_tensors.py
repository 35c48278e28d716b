"""Says how the library sees a tensor of PyTorch's: an element type, a range of memory, or a refusal."""
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
# The parts of complex numbers, and how many elements of the type there are in one.
_PARTS = {torch.complex32: "f16", torch.complex64: "f32", torch.complex128: "f64"}
DEVICE_TYPE = "cuda"  # where the memory of graphs is
MOST_DIMENSIONS = 8  # of a tensor that the library guards by itself
PLAIN_TYPES = (torch.Tensor, torch.nn.Parameter)


def text_of(dtype: torch.dtype) -> str:
    """ "float32"."""
    return str(dtype).removeprefix("torch.")


def dtype_of(text: str) -> torch.dtype:
    """By the name that text_of gives. Corrupt for anything else: it comes from a file."""
    found = getattr(torch, text, None)
    if not isinstance(found, torch.dtype):
        raise errors.Corrupt(f"{text!r} is not an element type of this PyTorch")
    return found


def flat_type(dtype: torch.dtype, nbytes: int) -> tuple[str, int]:
    """(type, count) of `nbytes` bytes of memory that hold such elements: floats are compared as floats, what the library has no type
    for as bytes."""
    short = own_type(dtype) or _PARTS.get(dtype) or "u8"
    from warmgraph import dtypes

    size = dtypes.itemsize(short)
    return (short, nbytes // size) if nbytes % size == 0 else ("u8", nbytes)


def own_type(dtype: torch.dtype) -> str:
    """The library's name of the type; "" where it has no such type."""
    return _SHORT.get(dtype, "")


def is_plain(tensor: Any) -> TypeGuard[torch.Tensor]:
    return type(tensor) in PLAIN_TYPES


def why_unusable(tensor: torch.Tensor) -> str:
    """Why the memory of a tensor cannot be followed, or ""."""
    if type(tensor) in PLAIN_TYPES and tensor.layout is torch.strided and tensor.device.type == DEVICE_TYPE \
            and not (tensor.is_nested or tensor.is_quantized or tensor.is_conj() or tensor.is_neg()):
        return ""  # as most are
    if not is_plain(tensor):
        return f"is a {type(tensor).__module__}.{type(tensor).__qualname__}, a subclass of torch.Tensor: pass the tensors that it holds"
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
    """(what a fact says of it, whether its memory can be followed). Where it cannot: (why, False), or ("", False) of a plain one in the host's
    memory. may_be_hosts: such a one counts by its contents."""
    if may_be_hosts and tensor.device.type == "cpu" != DEVICE_TYPE and type(tensor) in PLAIN_TYPES and tensor.layout == torch.strided:
        return "", False
    why = why_unusable(tensor)
    return (why, False) if why else (described(tensor), True)


def is_lazy(tensor: torch.Tensor) -> bool:
    """Its values are not those in its memory, but those conjugated or negated. DLPack's exchange table does not say so."""
    return tensor.is_conj() or tensor.is_neg()


def can_be_lazy(tensor: torch.Tensor) -> bool:
    """Another tensor that looks like it to DLPack can be lazy: of public functions, conj() makes complex ones alone, and `conj().imag` views
    of every second number."""
    return tensor.dtype.is_complex or tensor.numel() <= 1 or not tensor.is_contiguous()


def start_in_storage(tensor: torch.Tensor) -> int:
    """Bytes from the start of its storage to its first element."""
    return int(tensor.storage_offset()) * tensor.element_size()


def extent(tensor: torch.Tensor) -> int:
    """Bytes from its first element to the end of its last."""
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
    """All that a guard compares of it, except for its address."""
    return (type(tensor), tensor.dtype, tensor.shape, tensor.stride(), tensor.storage_offset(), tensor.requires_grad, tensor.is_conj(),
            tensor.is_neg(), len(tensor.__dict__))


def described(tensor: torch.Tensor) -> str:
    """Type, sizes, strides and whether it requires grad: what a fact says besides where it lies."""
    return _described(tensor.dtype, tensor.size(), tensor.stride(), tensor.requires_grad)


@functools.lru_cache(maxsize=1024)
def _described(dtype: torch.dtype, sizes: torch.Size, strides: tuple[int, ...], requires_grad: bool) -> str:
    return f"{text_of(dtype)} {list(sizes)} strides {list(strides)}{', requires grad' if requires_grad else ''}"


def view_of(storage: Any, dtype: torch.dtype, offset_bytes: int, sizes: Any, strides: Any, device: Any) -> torch.Tensor:
    """A tensor over memory that a storage holds."""
    element = torch.empty(0, dtype=dtype, device=device)
    return element.set_(storage, offset_bytes // element.element_size(), tuple(sizes), tuple(strides))
