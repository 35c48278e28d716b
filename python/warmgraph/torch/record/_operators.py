"""Shows each operator that a thread calls to observers before it runs. They note which kernels it requests and which tensors it writes, and
check its stream."""
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
# The arguments of an observer: (operator, arguments by position, arguments by name).
Show = Callable[[Any, Sequence[Any], "dict[str, Any]"], None]
Run = Callable[[Any, Sequence[Any], "dict[str, Any]"], Any]  # gets the same arguments, and returns the operator's result
# Without this, compiled code would run uncompiled inside such a mode (older PyTorch).
LEAVES_COMPILED_CODE = hasattr(TorchDispatchMode, "ignore_compile_internals")
_MOST_ASKED = 200_000  # the most operators whose texts are kept
PLAIN = (bool, int, float, complex, str, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format)
_ITSELF = torch.Tensor.__torch_dispatch__  # this function belongs to subclasses that leave their operators to PyTorch
_IS_CAPTURING = 1  # CU_STREAM_CAPTURE_STATUS_ACTIVE


class OperatorMode(TorchDispatchMode):
    """Shows each operator to observers before it runs. An observer's exception replaces the operator. A higher-order operator (flex_attention,
    torch.cond)
    is shown as a whole, and runs normally."""

    supports_higher_order_operators = True  # without this, PyTorch raises when such an operator is called

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """PyTorch's own switch: compiled code that the function calls stays compiled. Without the switch this code would always run
        uncompiled when its first call is inside such a mode."""
        return True

    def __init__(self, shows: Sequence[Show], run: Run) -> None:
        super().__init__()
        self._shows, self._run = shows, run

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """PyTorch's own switch: without it the first operator imports Dynamo, which takes seconds."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if any(one.__torch_dispatch__ is not _ITSELF for one in types):  # the subclass calls other operators itself, and these are shown
            return NotImplemented
        named = kwargs or {}
        for show in self._shows:
            show(func, args, named)
        return self._run(func, args, named)


class _OperatorModeBesideDynamo(OperatorMode):
    """The variant of Shown for processes that have imported Dynamo. There, a layer that Dynamo decided not to compile runs with Dynamo's
    frame evaluation, which must not compile this mode."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return True

    __torch_dispatch__ = OperatorMode.__torch_dispatch__  # PyTorch looks this name up in the class itself


def as_it_is(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Runs the operator without a change. For contexts that only observe."""
    return func(*args, **kwargs)


def shown_to(*shows: Show, run: Run = as_it_is) -> Any:
    """A context in which the observers see each operator of this thread, and `run` runs it. Compiled functions would be compiled again
    inside this context."""
    return (_OperatorModeBesideDynamo if "torch._dynamo" in sys.modules else OperatorMode)(shows, run)


def compiled_graphs() -> int:
    """The number of graphs that Dynamo has compiled in this process."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    return int(dynamo.counters["stats"]["unique_graphs"]) if dynamo is not None else 0


def tensors_in(values: Iterator[Any] | Sequence[Any]) -> Iterator[torch.Tensor]:
    for one in values:
        if isinstance(one, torch.Tensor):
            yield one
        elif isinstance(one, (list, tuple)):
            yield from tensors_in(one)


# --- Requested operators


class OperatorTexts:
    """The list of requested operators, as texts with their attributes. Two runs with the same list requested the same kernels."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.is_whole = True

    def __call__(self, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        self.is_whole = self.is_whole and len(self.texts) < _MOST_ASKED and hasattr(func, "_schema")  # a higher-order operator has no schema
        if len(self.texts) < _MOST_ASKED:
            self.texts.append(text_of(func, args, kwargs))

    def difference(self, other: OperatorTexts, place_of: Callable[[int], str] = lambda number: "") -> str:
        """Describes the first operator that differs in `other`; "" when all are equal. place_of: returns the place that called the operator of
        `other` with this number, or ""."""
        for number, (was, now) in enumerate(zip(self.texts, other.texts)):
            if was != now:
                place = place_of(number)
                return f"{f'in {place} ' if place else ''}operator {number} was {was}, and is {now}"
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


# --- Written tensors


@functools.lru_cache(maxsize=None)
def _written_by(func: Any) -> tuple[tuple[int, str], ...]:
    """Returns (position, name) of the arguments that an operator writes. Normalisations write running statistics, although their schemas do
    not say so."""
    if not hasattr(func, "_schema"):  # a higher-order operator; its writes appear in the tensors' versions
        return ()
    return tuple((i, one.name) for i, one in enumerate(func._schema.arguments)
                 if one.alias_info is not None and one.alias_info.is_write or one.name.startswith("running_"))


def written(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Iterator[torch.Tensor]:
    """The tensors that the operator writes."""
    for position, name in _written_by(func):
        yield from tensors_in([args[position] if position < len(args) else kwargs.get(name)])


# --- Operators that must not run in a capture


# These operators fail in a capture. A failed eigenvalue decomposition also leaves its library's handle unusable for later calls (cuSOLVER
# of CUDA 13.0).
_NOT_CAPTURABLE = {"aten::_linalg_eigh", "aten::_linalg_svd", "aten::linalg_eig", "aten::linalg_lstsq", "aten::linalg_ldl_factor_ex"}
# CUDA itself raises errors with these texts (about captures or memory); they do not come from a library.
_OF_CAPTURES = ("captur", "out of memory")
_MOST_FAILED = 1024
_failed: set[str] = set()  # operators, with their attributes, for which a library failed in a capture of this process


def expect_capturable(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """For shown_to, within a capture: refuses operators (by name) that may make a library unusable."""
    name = func._schema.name if hasattr(func, "_schema") else ""
    if name in _NOT_CAPTURABLE or _failed and _text_with_devices(func, args, kwargs) in _failed:
        raise errors.NotRecordable(f"it calls {func}, which {'failed in a capture before' if name not in _NOT_CAPTURABLE else 'cannot be captured'} "
                                   "and may leave its library unusable: call it outside")


def note_failed(func: Any, args: Sequence[Any], kwargs: dict[str, Any], error: Exception) -> None:
    """Notes an operator that raised this error in a capture."""
    if len(_failed) < _MOST_FAILED and not any(one in str(error) for one in _OF_CAPTURES):
        _failed.add(_text_with_devices(func, args, kwargs))


def _text_with_devices(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    return f"{text_of(func, args, kwargs)} {[str(one.device) for one in tensors_in([*args, *kwargs.values()])]}"


# --- The stream of an operator


class InCapture:
    """Refuses work in a stream that is not part of the current capture: such work would run at once, and be missing in replays."""

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
        """The number of the capture to which the stream belongs. The legacy stream never belongs to a capture."""
        status, number = ctypes.c_int(), ctypes.c_uint64()
        failed = self._driver.cuStreamGetCaptureInfo_v2(ctypes.c_void_p(stream), ctypes.byref(status), ctypes.byref(number), None, None, None) if stream else 1
        return number.value if failed == 0 and status.value == _IS_CAPTURING else None


def _device_of(args: Sequence[Any], kwargs: dict[str, Any]) -> int | None:
    """The device in whose current stream an operator enqueues its work; None if it runs on the host."""
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
    """Whether an operator only makes another view of a tensor, and enqueues nothing."""
    return bool(getattr(func, "is_view", False))


def _stream_text(stream: int) -> str:
    return {0: "the default stream", 1: "the legacy default stream", 2: "the per-thread default stream"}.get(stream, f"the stream {stream:#x}")
