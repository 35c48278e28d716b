"""Names the place in the program where an operator is called: the module's path, and the line in the program's own code."""
from __future__ import annotations

import os
import sys
import types
from typing import Any, Callable, Iterable, Iterator, NamedTuple, Sequence, TypeVar

import torch

from warmgraph.torch.record import _caller_frames

_T = TypeVar("_T", bound=Callable[..., Any])
_CALLS_MODULE = torch.nn.Module._call_impl.__code__  # its frames hold the module in `self`
_MOST_FILES = 10_000
_is_of_program: dict[str, bool] = {}  # by file: whether it is the program's own code, and not PyTorch's or this package's
_outermost: set[types.CodeType] = set()


class CallSite(NamedTuple):
    """module: the innermost module that is called, or None. code, last: the innermost of the program's own functions and its instruction.
    backward: autograd's node, if backward calls the operator."""

    module: torch.nn.Module | None
    code: types.CodeType | None
    last: int
    backward: str = ""


Roots = Sequence[tuple[str, torch.nn.Module]]  # (path, module) of the modules that the program's function reaches


def outermost(function: _T) -> _T:
    """Marks a function of this package: the frames that it calls belong to the recorded call, the frames around it do not."""
    _outermost.add(function.__code__)
    return function


def here(is_bounded: bool = True) -> CallSite:
    """The place that calls now. It must be cheap: it runs for each operator. is_bounded: whether a function marked as outermost runs.
    It reads the variables of no function of the program, because Python would keep copies of them until the function returns."""
    frame: types.FrameType | None = sys._getframe(1)
    module, code, last = None, None, 0
    while frame is not None:
        now = frame.f_code
        if now is _CALLS_MODULE:
            if module is None:
                module = frame.f_locals["self"]
        elif code is None and (_is_of_program.get(now.co_filename) or now.co_filename not in _is_of_program and _is_programs(frame)):
            code, last = now, frame.f_lasti
        elif now in _outermost:
            is_bounded = False
            break
        if module is not None and code is not None:
            return CallSite(module, code, last)
        frame = frame.f_back
    return CallSite(None, None, 0, _backward()) if is_bounded else CallSite(module, code, last, _backward() if code is None else "")


def of_error(error: BaseException) -> CallSite | None:
    """The place that raised the error; None if it was raised outside the recorded call."""
    raised = _frames_of(error)
    module = next(_modules_in(frame for frame, _ in raised), None)
    own = next(((frame.f_code, last) for frame, last in raised if _is_programs(frame)), None)
    if own is None and module is None:
        return None
    return CallSite(module, *(own or (None, 0)))


def modules_around(error: BaseException | None = None) -> list[torch.nn.Module]:
    """The modules that are called now, or were called when the error was raised, innermost first."""
    return list(_modules_in(_frames_here() if error is None else (frame for frame, _ in _frames_of(error))))


def text_of(place: CallSite | None, roots: Roots) -> str:
    """The place in a message, e.g. "`model.layers.3.self_attn` (modeling_llama.py:312 in forward)"; "" if nothing of it is known."""
    if place is None:
        return ""
    line = _line_of(place.code, place.last) if place.code is not None else ""
    if place.module is None:
        return line or (f"the backward of {place.backward}" if place.backward else "")
    path = path_of(place.module, roots)
    return f"`{path}` ({line})" if line else f"`{path}`"


def path_of(module: torch.nn.Module, roots: Roots) -> str:
    for prefix, root in roots:
        for name, one in root.named_modules():
            if one is module:
                return ".".join(filter(None, (prefix, name))) or type(module).__name__
    return type(module).__name__


def _line_of(code: types.CodeType, last: int) -> str:
    line = next((line for start, end, line in code.co_lines() if start <= last < end and line is not None), code.co_firstlineno)
    return f"{os.path.basename(code.co_filename)}:{line} in {code.co_name}"


def _is_programs(frame: types.FrameType) -> bool:
    name = frame.f_code.co_filename
    found = _is_of_program.get(name)
    if found is None:
        found = _caller_frames.is_programs(frame)
        if len(_is_of_program) >= _MOST_FILES:
            _is_of_program.clear()
        if not name.startswith("<"):  # code without a file ("<string>") may belong to anybody
            _is_of_program[name] = found
    return found


def _backward() -> str:
    node = torch._C._current_autograd_node()
    return str(node.name()) if node is not None else ""


def _frames_here() -> Iterator[types.FrameType]:
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code not in _outermost:
        yield frame
        frame = frame.f_back


def _frames_of(error: BaseException) -> list[tuple[types.FrameType, int]]:
    """(frame, instruction) of the recorded call when it raised the error, innermost first; empty if it did not raise it."""
    found, traceback = [], error.__traceback__
    while traceback is not None:
        found.append((traceback.tb_frame, traceback.tb_lasti))
        traceback = traceback.tb_next
    at = max((i for i, (frame, _) in enumerate(found) if frame.f_code in _outermost), default=len(found))
    return found[:at:-1]


def _modules_in(frames: Iterable[types.FrameType]) -> Iterator[torch.nn.Module]:
    for frame in frames:
        if frame.f_code is _CALLS_MODULE:
            yield frame.f_locals["self"]
