"""What a function's code is: code objects, never source. Nested ones, constants, and the functions that it names, without line numbers and
paths."""
from __future__ import annotations

import dis
import hashlib
import platform
import sys
import sysconfig
import types
from typing import Any, Callable, Iterable, Iterator

_MOST = 10_000  # functions that one names
_NOT_OF_A_CALL = {"__init__", "__new__", "__del__", "__repr__", "__str__", "__reduce__", "__getstate__", "__setstate__", "__deepcopy__"}
_INSTALLED = tuple(folder + "/" for folder in {sysconfig.get_paths()[name] for name in ("purelib", "platlib", "stdlib")})


def function_of(callable_: Any) -> types.FunctionType | None:
    """The Python function below a method, a partial or a wrapper."""
    seen = 0
    while seen < 100:
        if isinstance(callable_, types.MethodType):
            callable_ = callable_.__func__
        elif hasattr(callable_, "__wrapped__"):
            callable_ = callable_.__wrapped__
        elif isinstance(callable_, types.FunctionType):
            return callable_
        else:
            return None
        seen += 1
    return None


class Reached:
    """The functions that a function names, itself included: through globals, what it closes over, and methods of the classes that were met.
    It grows while calls are read (`classes`), until nothing new is named."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.functions: list[types.FunctionType] = []  # the user's own; of libraries only the digest counts
        self.names: set[str] = set()  # attributes that any of them names
        self._package = (getattr(function_of(function), "__module__", None) or "").split(".")[0]
        self._seen: dict[int, Any] = {}
        self._classes: dict[type, None] = {}
        self._digests: set[bytes] = set()
        self._visit([function])

    def add_class(self, kind: type) -> None:
        """Its methods that are named, and those that Python calls by itself."""
        for one in kind.__mro__:
            if one not in self._classes and not self._is_library(one.__module__, None):
                self._classes[one] = None
                self._visit(self._methods(one))

    def digest(self) -> str:
        """The same in every process that runs the same code with the same Python."""
        state = hashlib.sha256(f"{sys.implementation.name} {platform.python_version_tuple()[:2]}".encode())
        for one in sorted(self._digests):
            state.update(one)
        return state.hexdigest()

    def _visit(self, found: Iterable[Any]) -> None:
        waiting = list(found)
        while waiting and len(self._seen) < _MOST:
            function = function_of(waiting.pop())
            if function is None or id(function) in self._seen:
                continue
            self._seen[id(function)] = function
            self._digests.add(code_digest(function.__code__))
            if self._is_library(function.__module__, function.__code__.co_filename):
                continue
            self.functions.append(function)
            before = len(self.names)
            self.names |= set(names_in(function.__code__))
            waiting += [function.__globals__.get(name) for name in globals_in(function.__code__)]
            waiting += [value for _, value in closed_over(function)]
            if len(self.names) > before:
                for kind in self._classes:
                    waiting += self._methods(kind)

    def _methods(self, kind: type) -> list[Any]:
        found = []
        for name, member in sorted(kind.__dict__.items()):
            if name in self.names or (name.startswith("__") and name not in _NOT_OF_A_CALL):
                found.append(member.fget if isinstance(member, property) else getattr(member, "__func__", member))
        return found

    def _is_library(self, module: str | None, file: str | None) -> bool:
        """Not the user's own: the standard library, what is installed (but for the function's own package), and this package."""
        package = (module or "").split(".")[0]
        if package == self._package:
            return False
        if package in sys.stdlib_module_names or package == __name__.split(".")[0]:
            return True
        file = file or getattr(sys.modules.get(module or ""), "__file__", None)
        return file is None or file.startswith(_INSTALLED)


def closed_over(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not set yet
            continue


def names_in(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from names_in(constant)


def globals_in(code: types.CodeType) -> set[str]:
    found = {str(one.argval) for one in dis.get_instructions(code) if one.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= globals_in(constant)
    return found


def code_digest(code: types.CodeType) -> bytes:
    state = hashlib.sha256()
    for part in (code.co_code, getattr(code, "co_exceptiontable", b"")):
        state.update(len(part).to_bytes(8, "little") + part)
    for number in (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags):
        state.update(number.to_bytes(8, "little"))
    for names in (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars):
        state.update(repr(names).encode())
    for constant in code.co_consts:
        state.update(_constant(constant))
    return state.digest()


def _constant(value: Any) -> bytes:
    if isinstance(value, types.CodeType):
        return code_digest(value)
    if isinstance(value, tuple):
        return b"(" + b",".join(_constant(one) for one in value) + b")"
    if isinstance(value, frozenset):  # whose order differs from process to process
        return b"{" + b",".join(sorted(_constant(one) for one in value)) + b"}"
    return f"{type(value).__name__} {value!r};".encode()
