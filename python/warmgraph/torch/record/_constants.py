"""Provides the numbers that the host reads from tensors during a capture. Numbers that depend only on shapes and plain values (reading
`torch.arange(n)`) are the same in every replay. Reading waits for the device, which a capture must not do, so the capture gets the
answer's numbers."""
from __future__ import annotations

import ctypes
from typing import Any, Callable, Iterator, Sequence

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from warmgraph.torch.read import _libraries, _tensors
from warmgraph.torch.record import _operators

_READ = torch.ops.aten._local_scalar_dense.default  # the operator behind item(), bool(), int() and float()
# These operators use the sizes of their argument, but not its contents.
_LIKE = ("zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full")


class Constants:
    """The constant tensors among an operator's results: PyTorch's own operators computed them from constants only."""

    def __init__(self) -> None:
        self._known: dict[int, StorageWeakRef] = {}  # by storage; a weak reference, so that the storage's number is not reused

    def note(self, func: Any, args: Sequence[Any], kwargs: dict[str, Any], result: Any) -> None:
        """Notes what an operator did, after it ran."""
        given = list(_operators.tensors_in([*args, *kwargs.values()]))
        is_made = not given or _name(func) in _LIKE
        if not is_made and not any(map(self._has, given)):
            return  # its result is not constant, and it wrote no constant
        is_ours = getattr(func, "namespace", "") == "aten"
        follows = is_ours and _follows_from_arguments(func, args, kwargs) and (is_made or all(map(self._has, given)))
        if not is_ours:
            self._forget(given)  # the schema of a foreign operator may be wrong
        elif not follows:
            self._forget(_operators.written(func, args, kwargs))
        for one in _operators.tensors_in(result if isinstance(result, (list, tuple)) else [result]):
            if follows and _has_storage(one):
                reference = StorageWeakRef(one.untyped_storage())
                self._known[reference.cdata] = reference
            elif not follows:
                self._forget([one])

    def has(self, result: Any) -> bool:
        """Whether a result consists of constant tensors and plain values alone."""
        if isinstance(result, (list, tuple)):
            return all(map(self.has, result))
        return self._has(result) if isinstance(result, torch.Tensor) else _is_plain(result)

    def clear(self) -> None:
        """Regards no tensor as constant."""
        self._known.clear()

    def _has(self, tensor: torch.Tensor) -> bool:
        return bool(self._known) and _has_storage(tensor) and tensor.untyped_storage()._cdata in self._known

    def _forget(self, tensors: Iterator[torch.Tensor] | Sequence[torch.Tensor]) -> None:
        for one in tensors:
            if _has_storage(one):
                self._known.pop(one.untyped_storage()._cdata, None)


class HostReads:
    """The numbers that the host read during the answer. The key is the number of operators before."""

    def __init__(self, asked: _operators.OperatorTexts) -> None:
        self.asked = asked  # the operators of the same answer
        self.values: dict[int, Any] = {}
        self.varies = False  # whether a number was probably not constant, so that a capture cannot read it
        self._constants = Constants()

    def __call__(self, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        number = len(self.asked.texts) - 1
        result = func(*args, **kwargs)
        try:
            if _is_read(func, args):
                self.values[number] = result
                self.varies = self.varies or not self._constants.has(args[0])
            else:
                self._constants.note(func, args, kwargs, result)
        except Exception:  # the answer must not fail
            self.varies = True
        return result


class ConstantTracker:
    """Runs the operators of a capture. When the host reads a number from a constant tensor, returns the number that the answer read. Enqueued
    work other than PyTorch's own operators (a Triton kernel, a library) may write anywhere: after such work no tensor counts as constant."""

    def __init__(self, reads: HostReads, enqueued: Callable[[], Any], run: _operators.Run = _operators.as_it_is) -> None:
        """enqueued: returns a value that changes when the capturing stream gets more work."""
        self._reads, self._run, self._enqueued, self._last = reads, run, enqueued, enqueued()
        self._number, self._is_same = 0, reads.asked.is_whole  # _is_same: the capture requested the same operators as the answer so far
        self._constants = Constants()
        self.is_constant = self._constants.has

    def __call__(self, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        texts = self._reads.asked.texts
        self._is_same = self._is_same and self._number < len(texts) and texts[self._number] == _operators.text_of(func, args, kwargs)
        if self._enqueued() != self._last:
            self._constants.clear()
        number, self._number = self._number, self._number + 1
        if self._is_same and number in self._reads.values and _is_read(func, args) and self._constants.has(args[0]):
            return self._reads.values[number]
        result = self._run(func, args, kwargs)
        self._constants.note(func, args, kwargs, result)
        self._last = self._enqueued()
        return result


def enqueued_in(device: torch.device) -> Callable[[], Any]:
    """Returns a function for Heard: it returns the current position of the stream's capture."""
    driver, index = _libraries.driver(), device.index or 0
    status, number, graph = ctypes.c_int(), ctypes.c_uint64(), ctypes.c_void_p()
    nodes, count = ctypes.POINTER(ctypes.c_void_p)(), ctypes.c_size_t()

    def state() -> Any:
        stream = torch._C._cuda_getCurrentRawStream(index)
        failed = driver.cuStreamGetCaptureInfo_v2(ctypes.c_void_p(stream), ctypes.byref(status), ctypes.byref(number), ctypes.byref(graph),
                                                  ctypes.byref(nodes), ctypes.byref(count))
        return object() if failed else (stream, number.value, *(nodes[i] for i in range(count.value)))  # a new object equals no other value

    return state


def _is_read(func: Any, args: Sequence[Any]) -> bool:
    return func is _READ and bool(args[0].device.type == _tensors.DEVICE_TYPE)


def _name(func: Any) -> str:
    return str(func._schema.name).partition("::")[2]


def _follows_from_arguments(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """Whether an operator's result depends only on its arguments: it draws no random numbers, leaves nothing uninitialised, and returns no
    references."""
    if torch.Tag.nondeterministic_seeded in func.tags or "empty" in _name(func) or "resize" in _name(func):
        return False
    return all(map(_is_plain, (*args, *kwargs.values())))


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    return isinstance(value, (torch.Tensor, *_operators.PLAIN))


def _has_storage(tensor: torch.Tensor) -> bool:
    return type(tensor) in _tensors.PLAIN_TYPES and tensor.layout == torch.strided
