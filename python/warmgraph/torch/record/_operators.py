"""The operators that a thread reaches, each shown before it runs: what it asks for, what it writes, and in which stream it lies."""
from __future__ import annotations

import ctypes
import functools
import sys
from typing import Any, Callable, Iterator, Sequence

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from warmgraph import errors
from warmgraph.torch.read import _libraries, _tensors

CURE = "a replay would lack that work. Enqueue it in the current stream, or in one that waits for it (wait_stream) and is joined again"
# (operator, arguments by position, arguments by name)
Show = Callable[[Any, Sequence[Any], "dict[str, Any]"], None]
Run = Callable[[Any, Sequence[Any], "dict[str, Any]"], Any]  # the same; gives the operator's result
# Beside modes of an older PyTorch compiled code runs uncompiled.
LEAVES_COMPILED_CODE = hasattr(TorchDispatchMode, "ignore_compile_internals")
_MOST_ASKED = 200_000  # operators whose texts are kept
PLAIN = (bool, int, float, complex, str, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format)
_ITSELF = torch.Tensor.__torch_dispatch__  # of who leaves operators to PyTorch
_IS_CAPTURING = 1  # CU_STREAM_CAPTURE_STATUS_ACTIVE


class Shown(TorchDispatchMode):
    """Shows each operator to some that look at it, before it runs. What they raise is raised instead. One of higher order (flex_attention, torch.cond)
    is shown as a whole, and runs as without."""

    supports_higher_order_operators = True  # else PyTorch raises where one is called

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """PyTorch's own switch: what the function calls of compiled code is compiled and runs as without. Else it would run uncompiled, here and, what is
        met here first, ever after."""
        return True

    def __init__(self, shows: Sequence[Show], run: Run) -> None:
        super().__init__()
        self._shows, self._run = shows, run

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """PyTorch's own switch: else the first operator imports Dynamo, which takes seconds."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if any(one.__torch_dispatch__ is not _ITSELF for one in types):  # such a subclass does it by operators of its own, which are shown then
            return NotImplemented
        named = kwargs or {}
        for show in self._shows:
            show(func, args, named)
        return self._run(func, args, named)


class _ShownBesideDynamo(Shown):
    """Where Dynamo is imported: a layer that it was to compile and left alone runs with its frame evaluation, which must not meet ours."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return True

    __torch_dispatch__ = Shown.__torch_dispatch__  # PyTorch looks for it in the class itself


def as_it_is(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """The Run of who only looks."""
    return func(*args, **kwargs)


def shown_to(*shows: Show, run: Run = as_it_is) -> Any:
    """A context in which they see each operator of this thread, which `run` runs. Compiled functions guard on such modes, and would be compiled again."""
    return (_ShownBesideDynamo if "torch._dynamo" in sys.modules else Shown)(shows, run)


def compiled_graphs() -> int:
    """How many graphs Dynamo compiled so far in this process."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    return int(dynamo.counters["stats"]["unique_graphs"]) if dynamo is not None else 0


def tensors_in(values: Iterator[Any] | Sequence[Any]) -> Iterator[torch.Tensor]:
    for one in values:
        if isinstance(one, torch.Tensor):
            yield one
        elif isinstance(one, (list, tuple)):
            yield from tensors_in(one)


# --- what is asked for


class Asked:
    """Texts of the operators with their attributes: two runs with the same list asked for the same kernels."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.is_whole = True

    def __call__(self, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        self.is_whole = self.is_whole and len(self.texts) < _MOST_ASKED and hasattr(func, "_schema")  # none of higher order has one
        if len(self.texts) < _MOST_ASKED:
            self.texts.append(text_of(func, args, kwargs))

    def difference(self, other: Asked) -> str:
        """The first operator that `other` has otherwise, in words; "" where they ask for the same."""
        for number, (was, now) in enumerate(zip(self.texts, other.texts)):
            if was != now:
                return f"operator {number} was {was}, and is {now}"
        if len(self.texts) != len(other.texts):
            return f"it called {len(self.texts)} operators, and calls {len(other.texts)}"
        return "" if self.is_whole and other.is_whole else "not all operators that it calls are known"


def text_of(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    given = [_attribute(one) for one in args] + [f"{name}={_attribute(one)}" for name, one in sorted(kwargs.items())]
    return f"{func}({', '.join(given)})"


def _attribute(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"{_tensors.text_of(value.dtype)}{list(value.size())}"
    if isinstance(value, PLAIN):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_attribute, value))}]"
    return type(value).__name__


# --- what is written


@functools.lru_cache(maxsize=None)
def _written_by(func: Any) -> tuple[tuple[int, str], ...]:
    """(position, name) of the arguments that an operator writes. The running statistics of normalisations are written, and their schemas do not say
    so."""
    if not hasattr(func, "_schema"):  # of higher order: what it writes shows in versions of tensors
        return ()
    return tuple((i, one.name) for i, one in enumerate(func._schema.arguments)
                 if one.alias_info is not None and one.alias_info.is_write or one.name.startswith("running_"))


def written(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Iterator[torch.Tensor]:
    """What the operator writes into."""
    for position, name in _written_by(func):
        yield from tensors_in([args[position] if position < len(args) else kwargs.get(name)])


# --- what must not run in a capture


# In a capture they fail, and an eigenvalue decomposition leaves the handle of its library unusable: every later call fails too (cuSOLVER of CUDA 13.0).
_NOT_CAPTURABLE = {"aten::_linalg_eigh", "aten::_linalg_svd", "aten::linalg_eig", "aten::linalg_lstsq", "aten::linalg_ldl_factor_ex"}
# Errors that say nothing of a library: CUDA's about captures, and those of memory.
_OF_CAPTURES = ("captur", "out of memory")
_MOST_FAILED = 1024
_failed: set[str] = set()  # operators with their attributes, during which a library failed in a capture of this process


def expect_capturable(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """For shown_to, within a capture: refuses by name what may leave a library broken."""
    name = func._schema.name if hasattr(func, "_schema") else ""
    if name in _NOT_CAPTURABLE or _failed and _text_with_devices(func, args, kwargs) in _failed:
        raise errors.NotRecordable(f"it calls {func}, which {'failed in a capture before' if name not in _NOT_CAPTURABLE else 'cannot be captured'} "
                                   "and may leave its library unusable: call it outside")


def note_failed(func: Any, args: Sequence[Any], kwargs: dict[str, Any], error: Exception) -> None:
    """An operator raised this in a capture."""
    if len(_failed) < _MOST_FAILED and not any(one in str(error) for one in _OF_CAPTURES):
        _failed.add(_text_with_devices(func, args, kwargs))


def _text_with_devices(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    return f"{text_of(func, args, kwargs)} {[str(one.device) for one in tensors_in([*args, *kwargs.values()])]}"


# --- where it lies


class InCapture:
    """Refuses work in a stream that does not capture with the one that is current when this is made: it would run at once, and in no replay."""

    def __init__(self, device: torch.device) -> None:
        self._driver = _libraries.driver()
        self._id = self._capture_of(torch._C._cuda_getCurrentRawStream(device.index or 0))

    def __call__(self, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        index = _device_of(args, kwargs)
        if index is None or _only_looks(func):
            return
        stream = torch._C._cuda_getCurrentRawStream(index)
        if self._id is None or self._capture_of(stream) != self._id:
            raise errors.NotRecordable(f"it enqueues {func} in {_stream_text(stream)} of cuda:{index}, which is not captured with it: {CURE}")

    def _capture_of(self, stream: int) -> int | None:
        """The number of the capture that the stream is a part of. The legacy stream is a part of none."""
        status, number = ctypes.c_int(), ctypes.c_uint64()
        failed = self._driver.cuStreamGetCaptureInfo_v2(ctypes.c_void_p(stream), ctypes.byref(status), ctypes.byref(number), None, None, None) if stream else 1
        return number.value if failed == 0 and status.value == _IS_CAPTURING else None


def _device_of(args: Sequence[Any], kwargs: dict[str, Any]) -> int | None:
    """The device in whose current stream it enqueues; None: it lies on the host."""
    for one in tensors_in([*args, *kwargs.values()]):
        if one.device.type == _tensors.DEVICE_TYPE:
            return one.device.index or 0
    made_on = kwargs.get("device")
    if made_on is None or torch.device(made_on).type != _tensors.DEVICE_TYPE:
        return None
    index = torch.device(made_on).index
    return index if index is not None else int(torch.cuda.current_device())


@functools.lru_cache(maxsize=None)
def _only_looks(func: Any) -> bool:
    """It gives another view of a tensor, and enqueues nothing."""
    return bool(getattr(func, "is_view", False))


def _stream_text(stream: int) -> str:
    return {0: "the default stream", 1: "the legacy default stream", 2: "the per-thread default stream"}.get(stream, f"the stream {stream:#x}")
