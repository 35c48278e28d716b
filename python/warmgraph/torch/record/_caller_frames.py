"""Finds the variables that running code names between two of its instructions. A program that captures a graph need then not declare the
graph's inputs."""
from __future__ import annotations

import collections
import dataclasses
import dis
import sys
import types
from typing import Any, Mapping

import torch

from warmgraph import errors

_NOT_CALLERS = ("torch", "warmgraph")  # packages whose frames are not the program's own code
_OF_VARIABLES = ("FAST", "NAME", "GLOBAL", "DEREF", "CLOSURE")  # in names of instructions that use variables (docs.python.org, dis)
_DEEPEST = 3  # the deepest nesting of containers in which tensors count as inputs


@dataclasses.dataclass(frozen=True)
class CodePositions:
    """The position of the calling code: each frame with its current instruction, innermost first."""

    frames: tuple[tuple[types.FrameType, int], ...]


def calling() -> CodePositions:
    """The current position, without PyTorch's and this package's frames."""
    found, frame = [], sys._getframe(1)
    while frame is not None:
        if is_programs(frame):
            found.append((frame, frame.f_lasti))
        frame = frame.f_back  # type: ignore[assignment]
    return CodePositions(tuple(found))


def is_programs(frame: types.FrameType) -> bool:
    """Whether the frame runs the program's own code, or that of another library."""
    return _package(frame) not in _NOT_CALLERS


def is_ours(frame: types.FrameType) -> bool:
    return _package(frame) == "warmgraph"


def _package(frame: types.FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def variables_between(began: CodePositions, ended: CodePositions) -> tuple[types.FrameType, dict[str, Any]]:
    """Returns (the innermost frame that named a variable between the two positions, its variables by name). Raises NotRecordable when no
    frame named a variable."""
    first = {id(frame): at for frame, at in began.frames}
    for frame, last in ended.frames:
        names = _names(frame.f_code, first.get(id(frame), sys.maxsize), last)
        visible = collections.ChainMap(frame.f_locals, frame.f_globals)
        found = {name: visible[name] for name in names if name in visible}
        if found:
            return frame, found
    raise errors.NotRecordable("the code that captures the graph is not found: begin and end the capture in one function, as `with torch.cuda.graph(g):` does")


def _names(code: types.CodeType, first: int, last: int) -> dict[str, None]:
    """The names that instructions from `first` to `last` use, in the order of the code."""
    found: dict[str, None] = {}
    for one in dis.get_instructions(code):
        if first < one.offset < last and one.opname.startswith(("LOAD_", "STORE_")) and any(kind in one.opname for kind in _OF_VARIABLES):
            for name in one.argval if isinstance(one.argval, tuple) else (one.argval,):
                found[name] = None
    return found


def function_of(frame: types.FrameType) -> types.FunctionType:
    """A function made of the frame's code, closure and globals. It is for the reader, which expects a function."""
    held = frame.f_locals
    cells = tuple(types.CellType(held[name]) if name in held else types.CellType() for name in frame.f_code.co_freevars)
    return types.FunctionType(frame.f_code, frame.f_globals, frame.f_code.co_name, None, cells)


def split(variables: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Splits the variables into two groups: tensors and containers of tensors, which the program writes before each replay; and everything
    else (modules, objects, functions)."""
    given = {name: value for name, value in variables.items() if _holds_tensors(value, _DEEPEST)}
    return given, {name: value for name, value in variables.items() if name not in given}


def _holds_tensors(value: Any, depth: int) -> bool:
    if isinstance(value, torch.Tensor):
        return not isinstance(value, torch.nn.Parameter)
    if depth == 0:
        return False
    if isinstance(value, dict):
        return any(_holds_tensors(one, depth - 1) for one in value.values())
    if isinstance(value, (list, tuple)):
        return any(_holds_tensors(one, depth - 1) for one in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, (type, torch.nn.Module)):
        held = [getattr(value, field.name, None) for field in dataclasses.fields(value)]
        return not any(isinstance(one, torch.nn.Module) for one in held) and any(_holds_tensors(one, depth - 1) for one in held)
    return False
