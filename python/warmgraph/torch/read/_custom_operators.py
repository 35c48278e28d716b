"""The implementations of operators that a function reaches as torch.ops.<namespace>.<name>: the user's Python code, or a C++ library."""
from __future__ import annotations

import functools
import hashlib
import linecache
import mmap
import os
import re
import sys
import uuid
from typing import Any, Iterator

import torch

from warmgraph.reading import _reached_code

_REGISTERED = re.compile(r"registered at (.+?):\d+")
# The beginning of a GNU build id in an ELF file (System V gABI, "Note Section"): sizes of name and digest (SHA-1), the kind NT_GNU_BUILD_ID, the name.
_BUILD_ID = b"\4\0\0\0\x14\0\0\0\3\0\0\0GNU\0"
_SIZE_OF_ID = 20
_TORCH, _PYTHON = (os.path.dirname(str(one.__file__)) + "/" for one in (torch, os))


def operators_of(reached: _reached_code.ReachedCode) -> dict[str, Any]:
    """The code behind each operator, by name. Operators of torch.library.custom_op and triton_op are objects whose functions are read like
    other functions. For operators registered by torch.library.Library, the functions are not available, so the registering file counts.
    For C++ operators the library's build id counts. A name is reached when the code names both its parts as attributes. Replacements of
    PyTorch's own operators are reached by all code."""
    found: dict[str, Any] = {f"torch's {name}": _sources(name, files) for name, files in _replaced()}
    names: set[str] = reached.attributes
    if "ops" not in names:
        return found
    defined = getattr(sys.modules.get("torch._library.custom_ops"), "OPDEFS", {})
    for whole in sorted({one.partition(".")[0] for one in torch._C._dispatch_get_all_op_names()}):
        space, _, name = whole.partition("::")
        if space in names and name in names:
            implemented = defined.get(whole) or _implemented(whole)
            if implemented is not None:
                found[f"torch.ops.{space}.{name}"] = implemented
    return found


def _replaced() -> Iterator[tuple[str, list[str]]]:
    """PyTorch's operators that other Python code replaces: (name, files with this code)."""
    for key in sorted(torch.library._impls):
        space, name, dispatched = key.split("/")
        if space == "aten" and dispatched != "Meta":
            files = [one for one in _files_of(f"aten::{name}") if _is_python(one)]
            if files:
                yield name, files


def _implemented(whole: str) -> str | None:
    """A text that identifies the operator's code. None if PyTorch implements it, because then PyTorch's version counts."""
    overloads = [one for one in torch._C._dispatch_get_all_op_names() if one.partition(".")[0] == whole]
    files = sorted({file for one in overloads for file in _files_of(one)})
    python = [one for one in files if _is_python(one)]
    libraries = _libraries_with(whole) if len(files) > len(python) or not files else ()
    if not python and not libraries:
        return None
    return " ".join([*([_sources(whole, python)] if python else []), *libraries])


def _files_of(overload: str) -> list[str]:
    """The files that register or implement an operator, except PyTorch's own Python files."""
    return sorted({file for file in _REGISTERED.findall(torch._C._dispatch_dump(overload)) if not file.startswith(_TORCH)})


def _is_python(file: str) -> bool:
    return file.endswith(".py") or bool(linecache.getlines(file))  # a notebook's cell exists only in linecache


def _sources(name: str, files: list[str]) -> str:
    digest = hashlib.sha256(name.encode())
    for file in files:
        try:
            with open(file, "rb") as source:
                digest.update(source.read())
        except OSError:
            lines = linecache.getlines(file)
            digest.update("".join(lines).encode() if lines else uuid.uuid4().bytes)  # random: an unreadable file must equal no other file
    return f"source {digest.hexdigest()[:16]}"


def _libraries_with(whole: str) -> tuple[str, ...]:
    """The build ids of the libraries that contain the operator's name: those loaded by torch.ops.load_library, and extension modules."""
    loaded = set(torch.ops.loaded_libraries)
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and ".so" in os.path.basename(file) and not file.startswith((_TORCH, _PYTHON)):
            loaded.add(file)
    return tuple(sorted(build for file in loaded for build in [_build_with(file, whole)] if build))


@functools.lru_cache(maxsize=4096)
def _build_with(file: str, whole: str) -> str:
    """The library's build id. Returns "" if the library does not have the operator, or cannot be read. A registration TORCH_LIBRARY(space,
    m) { m.def("name(Tensor x) -> Tensor"); } leaves both names in the library, where this function searches them."""
    space, _, name = whole.encode().partition(b"::")
    try:
        with open(file, "rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as contents:
            if contents.find(space + b"\0") < 0 or contents.find(name + b"(") < 0 and contents.find(name + b"\0") < 0:
                return ""
            at = contents.find(_BUILD_ID)
            if at >= 0:
                return f"build {contents[at + len(_BUILD_ID):at + len(_BUILD_ID) + _SIZE_OF_ID].hex()}"
            return f"file {hashlib.sha256(contents).hexdigest()}"
    except (OSError, ValueError):
        return ""
