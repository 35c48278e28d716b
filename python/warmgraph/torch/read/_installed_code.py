"""The code of functions that use PyTorch: the user's own code counts by the functions that it names, an installed package by its version,
and the class of a module by all its methods."""
from __future__ import annotations

import contextlib
import dataclasses
import enum
import hashlib
import importlib.metadata
import operator
import platform
import sys
import types
from typing import Any, Iterable, Iterator, Mapping

from warmgraph.reading import _code_objects, _identity_checks, _reached_code, _stored_attributes

_ALWAYS_LIBRARY = {"torch", "warmgraph", "triton", "numpy"}
_SITES = {"site-packages", "dist-packages"}  # folders with another environment's packages; may be below the standard library's folder


class Origin(enum.Enum):
    """The owner of a module's code."""

    none = False  # the code is the user's own
    always = True  # the code belongs to PyTorch, to Python or to this package
    installed = "counts by the version of its package"

    def __bool__(self) -> bool:
        return self is not Origin.none


def is_library(module: str | None, file: str | None) -> Origin:
    """Whether the code belongs to a library. The answer is cached, because a walk asks for each class and its bases."""
    known = _known_libraries.get(module) if file is None else None
    if known is not None and known[0] is sys.modules.get(module or ""):
        return known[1]
    found = _is_library(module, file)
    if file is None:
        _known_libraries[module] = sys.modules.get(module or ""), found
    return found


_known_libraries: dict[str | None, tuple[Any, Origin]] = {}  # by the module's name: (the module, its origin)


def _is_library(module: str | None, file: str | None) -> Origin:
    if _is_always_library(package_of(module)):
        return Origin.always
    file = file or _reached_code.file_of(module)
    if file is not None and file.startswith(_reached_code._INSTALLED):
        return Origin.always if _is_always_library(package_of(module, file)) else Origin.installed
    return Origin.always if file is None and module != "__main__" else Origin.none


def _is_always_library(package: str) -> bool:
    return package in sys.stdlib_module_names or package in _ALWAYS_LIBRARY


def package_of(module: str | None, file: str | None = None) -> str:
    """The package of a module. If the code is in an installed file, it is the file's package, because a decorator's function claims the
    wrapped function's module."""
    folder = max((one for one in _reached_code._INSTALLED if file is not None and file.startswith(one)), key=len, default=None)
    if file is None or folder is None:
        return (module or "").split(".")[0]
    parts = file[len(folder):].split("/")
    return parts[parts[0] in _SITES and len(parts) > 1].split(".")[0]


def values_of(reached: _reached_code.ReachedCode) -> Iterator[Any]:
    """The values in the closures of the functions, and the globals that the functions name."""
    for function, names in zip(reached.functions, reached.globals):
        yield from (function.__globals__[name] for name in names if name in function.__globals__)
        for cell in function.__closure__ or ():
            with contextlib.suppress(ValueError):  # the cell is empty
                yield cell.cell_contents


class TorchReachedCode(_reached_code.ReachedCode):
    """Like Reached, but never follows installed code, even the function's own. For installed classes that a call finds, all methods count."""

    def __init__(self, function: Any, classes: Mapping[type, bool] = types.MappingProxyType({}),
                 functions: Iterable[types.FunctionType] = ()) -> None:
        self.packages: dict[str, None] = {}  # the installed packages to which code or classes belong
        self._hashed: dict[type, None] = {}
        super().__init__(function, classes, functions)

    def add_class(self, kind: type, is_constructed: bool = False) -> None:
        for one in kind.__mro__:
            if one in self._hashed:
                continue
            self._hashed[one] = None
            if self.is_library(one.__module__, None) and not _is_always_library(package_of(one.__module__)):
                self._digests.update(_digests_of(one))
                self._hold(one)
        super().add_class(kind, is_constructed)

    def _methods(self, kind: type, among: set[str] | None = None) -> list[Any]:
        """Returns the same methods, and also `forward` and similar ones, which PyTorch calls even if the user's code does not name them."""
        found, followed = super()._methods(kind, among), self._members[kind]
        for name in ("forward", "backward", "vjp", "setup_context") if among is None else ():
            member = kind.__dict__.get(name)
            if member is not None and name not in followed:
                followed.add(name)
                found.append(member)
                self._note(f"{kind.__module__}.{kind.__qualname__}", name, member)
                self._references.append((_identity_checks.Item(kind.__dict__, name), _reached_code._followed(member)))
        return found

    def _copy(self) -> TorchReachedCode:
        other: Any = super()._copy()
        other.packages = dict(self.packages)
        return other  # type: ignore[no-any-return]

    @contextlib.contextmanager
    def noted(self) -> Iterator[dict[str, None]]:
        """Collects the installed packages found inside the block."""
        before, self.packages = self.packages, {}
        try:
            yield self.packages
        finally:
            self.packages = {**before, **self.packages}

    def is_library(self, module: str | None, file: str | None) -> bool:
        found = is_library(module, file)
        if found is Origin.installed:
            self.packages[package_of(module, file)] = None
        return found is not Origin.none


def _digests_of(kind: type) -> list[bytes]:
    """The digests of a class's methods, by name. They are cached while the class's contents are the same: an installed base class has
    hundreds of methods."""
    held, known = kind.__dict__, _known_digests.get(id(kind))
    if known is None or not known.is_of(held):
        if len(_known_digests) >= _stored_attributes.MOST_CLASSES:
            _known_digests.clear()
        functions: list[tuple[types.FunctionType, types.CodeType]] = []
        known = _known_digests[id(kind)] = _Digests(kind, [*held], [*held.values()], functions, list(_digests_anew(kind, functions)))
    return known.found


@dataclasses.dataclass
class _Digests:
    """The digests of a class's methods, with the class's contents."""

    kind: type
    names: list[str]
    values: list[Any]
    functions: list[tuple[types.FunctionType, types.CodeType]]
    found: list[bytes]

    def is_of(self, held: Mapping[str, Any]) -> bool:
        return self.names == [*held] and all(map(operator.is_, self.values, held.values())) and all(map(_has_code, self.functions))


_known_digests: dict[int, _Digests] = {}


def _has_code(pair: tuple[types.FunctionType, types.CodeType]) -> bool:
    return pair[0].__code__ is pair[1]


def _digests_anew(kind: type, functions: list[tuple[types.FunctionType, types.CodeType]]) -> Iterator[bytes]:
    """Makes the digests. functions: receives the functions that were read."""
    for name, member in sorted(kind.__dict__.items()):
        if isinstance(member, property):
            member = member.fget
        function = _reached_code.function_of(getattr(member, "__func__", member))
        if isinstance(function, types.FunctionType):
            functions.append((function, function.__code__))
            yield hashlib.sha256(f"{kind.__module__}.{kind.__qualname__}.{name} ".encode() + _code_objects.code_digest(function.__code__)).digest()


def version_of(package: str) -> str:
    """The version of an installed package; "unknown" when it is not available."""
    if package not in _versions:
        try:
            found = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found = str(getattr(sys.modules.get(package), "__version__", "unknown"))
        _versions[package] = found
    return _versions[package]


_versions: dict[str, str] = {}


def python_version() -> str:
    return f"{sys.implementation.name} {platform.python_version()}"
