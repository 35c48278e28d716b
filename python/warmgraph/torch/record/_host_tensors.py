"""Copies of host tensors to the device inside a function (`torch.tensor(3, device="cuda")`, masks, position tables). CUDA cannot capture a copy from
memory that is not page-locked, and a replay would read that memory again. If such a tensor has the same contents in the answer and in the captures, a
capture copies from a twin on the device instead. The library finds the twin as memory that the graph only reads, and the entry keeps its contents.

A host tensor that the function reaches is compared by its contents in each call, and numbers that are drawn and read are refused. So contents that
repeat follow from the code, plain values and compared contents.
"""
from __future__ import annotations

import contextlib
import ctypes
from typing import Any, Callable, Iterator, Sequence

import torch
from torch.overrides import TorchFunctionMode

from warmgraph import errors
from warmgraph.torch.read import _libraries, _tensors
from warmgraph.torch.record import _operators

_LARGEST = 4 << 20  # bytes of the largest host tensor that gets a twin
_MOST = 32 << 20  # bytes of all twins of a function
_ALIGNMENT = 512  # of the twins, as in PyTorch's allocator; also the size of a spare
_SPARES = 16
# Operators that copy all their host tensors to the device of the other tensors, or to `device`.
_COPYING = {"aten::_to_copy", "aten::copy_", "aten::index", "aten::_unsafe_index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_",
            "aten::_unsafe_index_put"}
_PIN = "aten::_pin_memory"


def _is_on_host(value: Any) -> bool:
    return type(value) in _tensors.PLAIN_TYPES and value.device.type == "cpu" and value.layout == torch.strided and value.numel() > 0


def _fills_by_mask(func: Any, args: Sequence[Any]) -> bool:
    """Whether the operator is `x[mask] = 3`: PyTorch reads the number on the host and calls masked_fill_, as long as the number lies there."""
    if "index_put" not in func._schema.name or len(args) < 3 or any(args[3:4]):
        return False
    indices = [one for one in args[1] if one is not None]
    return len(indices) == 1 and indices[0].dtype in (torch.bool, torch.uint8) and _is_on_host(args[2]) and args[2].numel() == 1


def _goes_to_device(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    if not hasattr(func, "_schema") or func._schema.name not in _COPYING or _tensors.DEVICE_TYPE == "cpu" or _fills_by_mask(func, args):
        return False
    made_on = kwargs.get("device")
    if made_on is not None:
        return torch.device(made_on).type == _tensors.DEVICE_TYPE
    return any(one.device.type == _tensors.DEVICE_TYPE for one in _operators.tensors_in(args))


def _host_tensors(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> list[torch.Tensor]:
    """The host tensors that the operator copies to the device."""
    return [one for one in _operators.tensors_in(args) if _is_on_host(one)] if _goes_to_device(func, args, kwargs) else []


def _dense(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().resolve_conj().resolve_neg().contiguous()


def _key_of(tensor: torch.Tensor) -> tuple[Any, ...]:
    """The tensor's type, sizes and contents."""
    whole = _dense(tensor)
    return (tensor.dtype, tuple(tensor.size()), ctypes.string_at(whole.data_ptr(), whole.numel() * whole.element_size()))


class HostCopies:
    """Notes the contents of the host tensors that the answer copies to the device."""

    def __init__(self) -> None:
        self.contents: dict[tuple[Any, ...], torch.Tensor] = {}
        self._left = _MOST

    def shown(self, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        """For _operators.shown_to. It raises nothing, so that the answer is not disturbed."""
        with contextlib.suppress(Exception):
            for tensor in _host_tensors(func, args, kwargs):
                nbytes = tensor.numel() * tensor.element_size()
                if nbytes > min(_LARGEST, self._left):
                    continue
                key = _key_of(tensor)
                if key not in self.contents:
                    self.contents[key] = _dense(tensor).clone()
                    self._left -= nbytes


class _Range:
    def __init__(self, pointer: int, nbytes: int) -> None:
        self.__cuda_array_interface__ = {"shape": (nbytes,), "typestr": "|u1", "data": (pointer, False), "version": 3}


def _bytes_of(contents: torch.Tensor) -> torch.Tensor:
    return contents.reshape(-1).view(torch.uint8)


def _as(flat: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    return flat.view(like.dtype).reshape(like.size())


class Twins:
    """Device tensors with the contents of the noted host tensors. Each lies in an allocation of its own: the library keeps whole allocations. A
    function may choose other operators in a capture, and copy small host tensors that the answer did not copy: in the first capture these get
    spare memory, which is filled when the capture has ended."""

    def __init__(self, copies: HostCopies, device: torch.device) -> None:
        self._device = device
        self._twins: dict[tuple[Any, ...], torch.Tensor] = {}
        self._pointers: list[int] = []
        self._unfilled: list[tuple[torch.Tensor, torch.Tensor]] = []  # (memory, contents)
        self.takes_spares = False  # whether the present capture may use spare memory
        with torch.no_grad():
            for key, contents in copies.contents.items():
                flat = self._allocated(contents.numel() * contents.element_size())
                self._twins[key] = _as(flat, contents)
                flat.copy_(_bytes_of(contents))
            self._spares = [self._allocated(_ALIGNMENT) for _ in range(_SPARES)]

    def _allocated(self, nbytes: int) -> torch.Tensor:
        if self._device.type != "cuda":  # a device of tests
            return torch.empty(nbytes, dtype=torch.uint8, device=_tensors.DEVICE_TYPE)
        pointer, whole = ctypes.c_uint64(), ctypes.c_size_t((nbytes + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT)
        with torch.cuda.device(self._device):
            status = _libraries.driver().cuMemAlloc_v2(ctypes.byref(pointer), whole)
            if status != 0:
                raise errors.OutOfMemory(f"cuMemAlloc gave {status} for a host tensor's {nbytes} bytes on the device")
            self._pointers.append(pointer.value)
            _libraries.driver().cuMemsetD8_v2(pointer, ctypes.c_ubyte(0), whole)
            return torch.as_tensor(_Range(pointer.value, nbytes), device=self._device)

    def fill(self) -> None:
        """Fills the spare memory that a capture took. Call this when the capture has ended."""
        unfilled, self._unfilled = self._unfilled, []
        with torch.no_grad():
            for flat, contents in unfilled:
                flat.copy_(_bytes_of(contents))

    def nbytes(self) -> int:
        """The device memory that the twins take."""
        return sum(one.nbytes for one in self._twins.values())

    def run(self, run: _operators.Run) -> _operators.Run:
        """Runs operators with twins in place of host tensors that they copy."""
        def with_twins(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
            if hasattr(func, "_schema") and func._schema.name == _PIN and _is_on_host(args[0]):
                return args[0].clone()  # page-locked memory would not be needed
            if not _host_tensors(func, args, kwargs):
                return run(func, args, kwargs)
            return run(func, self._replaced(args), kwargs)

        return with_twins

    def _replaced(self, value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)(self._replaced(one) for one in value)
        if not _is_on_host(value) or value.numel() * value.element_size() > _LARGEST:
            return value
        key = _key_of(value)
        twin = self._twins.get(key)
        return twin if twin is not None else self._from_spare(key, _dense(value).clone())

    def _from_spare(self, key: tuple[Any, ...], contents: torch.Tensor) -> torch.Tensor:
        nbytes = contents.numel() * contents.element_size()
        if not self.takes_spares or not self._spares or nbytes > _ALIGNMENT:
            raise errors.NotRecordable(f"it copies a tensor from the host to the device, and its contents ({_tensors.described(contents)}) differ "
                                       "from call to call: pass it as an argument on the device")
        flat = self._spares.pop()[:nbytes]
        self._unfilled.append((flat, contents))
        self._twins[key] = _as(flat, contents)
        return self._twins[key]

    def close(self) -> None:
        """Frees the twins. No graph may read them any more."""
        self._twins.clear()
        self._spares.clear()
        pointers, self._pointers = self._pointers, []
        for pointer in pointers:
            _libraries.driver().cuMemFree_v2(ctypes.c_uint64(pointer))


class ShownConstructors(TorchFunctionMode):
    """Makes a host tensor and copies it where PyTorch makes a tensor on the device from Python's numbers at once. Otherwise observers of
    operators would see nothing."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given, made = kwargs or {}, None
        with contextlib.suppress(Exception):  # the call below raises what PyTorch raises
            if func in _CONSTRUCTORS:
                made = _made_on_host(func, args, given)
            elif func in _INDEXING and args[0].device.type == _tensors.DEVICE_TYPE != "cpu":
                args = (args[0], _index(args[1]), *args[2:])
        if made is None:
            return func(*args, **given)
        copied = made[0].to(made[1])
        return copied.requires_grad_() if given.get("requires_grad") else copied


def _made_on_host(func: Any, args: Sequence[Any], given: dict[str, Any]) -> tuple[torch.Tensor, torch.device] | None:
    """(the tensor of a constructor, made on the host; the device that it is wanted on); None if it is another kind of call."""
    like = args[0] if func is torch.Tensor.new_tensor else None
    rest = args[1:] if like is not None else args
    named = {**dict(zip(("data", "dtype", "device"), rest)), **given}
    data = named.pop("data", None)
    device = torch.device(named.pop("device", None) or (like.device if like is not None else torch.get_default_device()))
    is_on_device = device.type == _tensors.DEVICE_TYPE != "cpu"
    if data is None or isinstance(data, torch.Tensor) or not is_on_device or not named.keys() <= {"dtype", "requires_grad"}:
        return None
    dtype = named.get("dtype") or (like.dtype if like is not None else None)
    return torch.tensor(data, dtype=dtype, device="cpu"), device


def _index(index: Any) -> Any:
    """The same index with host tensors in place of lists of numbers."""
    if isinstance(index, tuple):
        return tuple(map(_index, index))
    is_list = isinstance(index, list) and index and all(type(one) in (int, bool) for one in index)
    return torch.tensor(index, device="cpu") if is_list else index


_CONSTRUCTORS: set[Callable[..., Any]] = {torch.tensor, torch.as_tensor, torch.Tensor.new_tensor}
_INDEXING: set[Callable[..., Any]] = {torch.Tensor.__getitem__, torch.Tensor.__setitem__}


@contextlib.contextmanager
def shown(mode: Any) -> Iterator[None]:
    """Enters a context of _operators.shown_to, in which constructors are shown too."""
    with ShownConstructors(), mode:
        yield
