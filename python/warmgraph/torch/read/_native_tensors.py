"""Lets the library read tensors' addresses and layouts natively, through PyTorch's own C functions or DLPack's exchange table."""
from __future__ import annotations

import ctypes
import functools
import logging
from typing import Any, Callable, Iterator

import torch

from warmgraph.calls._steady_calls import NativeTensors
from warmgraph.core.binding import _c
from warmgraph.core.binding._library import library
from warmgraph.reading import _native_snapshots
from warmgraph.torch.read import _libraries

_log = logging.getLogger("warmgraph")
# DLDataTypeCode and the number of bits for PyTorch's types.
_TYPES = {
    "int8": (0, 8), "int16": (0, 16), "int32": (0, 32), "int64": (0, 64), "uint8": (1, 8), "uint16": (1, 16), "uint32": (1, 32), "uint64": (1, 64),
    "float16": (2, 16), "float32": (2, 32), "float64": (2, 64), "bfloat16": (4, 16), "complex64": (5, 64), "complex128": (5, 128), "bool": (6, 8),
}
_FUNCTIONS = ("get_data_ptr", "get_dim", "get_sizes", "get_strides", "get_dtype", "get_device_type", "get_device_index", "get_layout")
_REQUIRES_GRAD = "_ZNK3c1010TensorImpl13requires_gradEv"
_AUTOGRAD_META = "_ZNK3c1010TensorImpl13autograd_metaEv"


def framework() -> NativeTensors | None:
    """The way to read tensors natively. None when this PyTorch has no way."""
    exchange = _native_snapshots.exchange_of(torch.Tensor)
    return None if exchange is None else _own(exchange) or NativeTensors(torch.Tensor, exchange, False)


@functools.cache
def _own(exchange: int) -> NativeTensors | None:
    """Uses PyTorch's C functions, which are faster. None when their results differ from DLPack's in this PyTorch."""
    if torch.version.hip is not None:  # in this build AMD devices are called "cuda", too
        return None
    try:
        raw = _functions(exchange)
        library().with_lock().wg_use_torch_tensors(ctypes.byref(raw))
        _expect_alike(exchange, raw)
    except (AttributeError, BufferError, OSError, ValueError) as error:
        _log.debug("PyTorch %s: the addresses of tensors are read through DLPack: %s", torch.__version__, error)
        return None
    return NativeTensors(torch.Tensor, _read_of_library(), True)


def _functions(exchange: int) -> _c.wg_torch_tensors:
    shim, core = _libraries.library("libtorch_cpu.so"), _libraries.library("libc10.so")
    kinds = torch.Tensor, torch.nn.Parameter
    raw = _c.wg_torch_tensors(at=_place_in_object(), otherwise=_c.wg_dltensor_reader(exchange), kinds=(ctypes.c_void_p * 2)(*map(id, kinds)),
                              strided=shim.aoti_torch_layout_strided(), cpu=shim.aoti_torch_device_type_cpu(), cuda=shim.aoti_torch_device_type_cuda())
    for name in _FUNCTIONS:
        setattr(raw, name, ctypes.cast(shim[f"aoti_torch_{name}"], type(getattr(raw, name))))
    raw.requires_grad = ctypes.cast(core[_REQUIRES_GRAD], type(raw.requires_grad))
    for name, (code, bits) in _TYPES.items():
        number = getattr(shim, f"aoti_torch_dtype_{name}", None)
        if number is not None:
            raw.types[number()] = _c.wg_torch_type(code, bits)
    return raw


def near(tensor: torch.Tensor) -> tuple[int, int, int]:
    """The addresses of PyTorch's data about a tensor: of the tensor itself, its storage, and its gradient; 0 for missing data."""
    autograd_meta = _autograd_meta()
    return tensor._cdata, tensor.untyped_storage()._cdata, (autograd_meta(tensor._cdata) or 0) if autograd_meta is not None else 0


@functools.cache
def _autograd_meta() -> Any:
    try:
        found = _libraries.library("libc10.so")[_AUTOGRAD_META]
    except (AttributeError, OSError):
        return None
    found.restype, found.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    return found


_WORD, _MOST_DIMENSIONS = 8, 5  # bytes of a word; the most dimensions that a c10::TensorImpl stores inline
_BODIES = (176, 184)  # bytes of a c10::TensorImpl: in PyTorch 2.13 to 2.15, and in 2.9 to 2.11


@functools.cache
def telling_bytes() -> int:
    """How many bytes of a c10::TensorImpl describe the tensor: if they are unchanged, then the type, sizes, strides, storage, offset and
    lazy bits are unchanged. Returns 0 when these bytes do not show a change of one of these properties."""
    try:
        with torch.inference_mode(False), torch.no_grad():
            for size in _BODIES:
                ends = [_last_change(tensor, change, size) for tensor, change in _changes()]
                if all(ends):
                    return max(ends)
            _log.debug("PyTorch %s: tensors are read through Python, because changes are only detected up to %s", torch.__version__, ends)
    except (AttributeError, RuntimeError, TypeError, ValueError) as error:
        _log.debug("PyTorch %s: tensors are read through Python: %s", torch.__version__, error)
    return 0


def _last_change(tensor: torch.Tensor, change: Callable[[], Any], size: int) -> int:
    """Where the last word ends that the change modifies; 0 if it modifies no word."""
    before = ctypes.string_at(tensor._cdata, size)
    change()
    after = ctypes.string_at(tensor._cdata, size)
    return max((at + _WORD for at in range(0, size, _WORD) if before[at:at + _WORD] != after[at:at + _WORD]), default=0)


def _changes() -> Iterator[tuple[torch.Tensor, Callable[[], Any]]]:
    """Pairs of a tensor and a function that changes one of its properties."""
    ones = (1,) * _MOST_DIMENSIONS
    for i in range(_MOST_DIMENSIONS):
        for sizes, strides in (((*ones[:i], 2, *ones[i + 1:]), ones), (ones, (*ones[:i], 2, *ones[i + 1:]))):
            one = _zeros().as_strided(ones, ones)
            yield one, functools.partial(one.as_strided_, sizes, strides)
    one = _zeros()
    yield one, functools.partial(one.as_strided_, (8, 1), (1, 1))
    one = _zeros().as_strided((4,), (1,))
    yield one, functools.partial(one.as_strided_, (4,), (1,), 1)
    one = _zeros()
    yield one, functools.partial(one.set_, _zeros().untyped_storage(), 0, (8,), (1,))
    one = _zeros()
    yield one, functools.partial(setattr, one, "data", one.view(torch.int32))
    one = _zeros()
    yield one, functools.partial(setattr, one, "data", torch._neg_view(one))
    one = torch.zeros(8, dtype=torch.complex64, device="cpu")
    yield one, functools.partial(setattr, one, "data", one.conj())


def _zeros() -> torch.Tensor:
    return torch.zeros(8, dtype=torch.float32, device="cpu")


def _place_in_object() -> int:
    """The offset, in a Python tensor object, of the pointer to the C++ tensor. Raises ValueError when the pointer is not found."""
    tried = [torch.empty(1), torch.empty(0), torch.nn.Parameter(torch.empty(2))]
    places = range(object.__basicsize__, torch.Tensor.__basicsize__, ctypes.sizeof(ctypes.c_void_p))
    found = [at for at in places if all(ctypes.c_void_p.from_address(id(one) + at).value == one._cdata for one in tried)]
    if len(found) != 1:
        raise ValueError(f"a tensor's own pointer is found {len(found)} times in its object, expected once")
    return found[0]


def _expect_alike(exchange: int, raw: _c.wg_torch_tensors) -> None:
    """Raises ValueError unless PyTorch's C functions and DLPack agree for tensors of all kinds, and PyTorch's C functions give the right
    requires_grad."""
    base, weight = torch.zeros(4, 6), torch.nn.Parameter(torch.zeros(1, 6))
    with torch.enable_grad():
        tried = [base[1:, ::2].t(), base[2, 3], base[:, :0], weight, weight.expand(3, 6), weight.detach(), torch.empty(1, 2, 1, 3, 1, 2, 1),
                 *(torch.zeros(3, dtype=getattr(torch, name)) for name in _TYPES if hasattr(torch, name))]
    for one in tried:
        said, own = (_native_snapshots.Tensors(read, [one]).described() for read in (exchange, _read_of_library()))
        if said != own or bool(raw.requires_grad(one._cdata)) != one.requires_grad:
            raise ValueError(f"DLPack reports {said} for a tensor that requires grad ({one.requires_grad}), expected {own}")


def _read_of_library() -> int:
    return ctypes.cast(library().with_lock().wg_read_torch_tensor, ctypes.c_void_p).value or 0
