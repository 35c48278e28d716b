"""libwarmgraph, loaded at its first use. A status that is not wg_ok is raised as the exception of its code."""
from __future__ import annotations

import ctypes
import os
import pathlib
import threading
from typing import Any, Callable

from warmgraph import errors
from warmgraph.core.binding import _c, _fork, _log

FOLDER = pathlib.Path(__file__).resolve().parents[2]  # the package's folder
_NAME = "libwarmgraph.so.0"
_LIKELY_TEXT = 64 << 10  # letters in the first buffer; enough for most texts, so that one call suffices (a call may read a folder)
_lock = threading.Lock()
_library: Library | None = None


class Library:
    """The C functions as attributes: `library().wg_device_open(...)`."""

    def __init__(self, path: pathlib.Path) -> None:
        # The loader finds the wheel's shared libraries. libcuda and libOpenCL are only loaded when the first device is opened.
        self._cdll = ctypes.CDLL(str(path), mode=os.RTLD_NOW | os.RTLD_LOCAL)
        for name, (result, arguments) in _c.FUNCTIONS.items():
            function = getattr(self._cdll, name)
            function.restype, function.argtypes = result, arguments
            if name in _c.STATUS:
                function.errcheck = self._check
            setattr(self, name, function)
        _log.receive_from(self._cdll)

    def __getattr__(self, name: str) -> Any:  # this method exists only for type checkers: all functions are set above
        raise AttributeError(name)

    def _check(self, status: int, _function: Any, _arguments: Any) -> int:
        if status != _c.wg_ok:
            raise errors.of_status(status, self._cdll.wg_last_error().decode("utf-8", "replace"))
        return status

    def unchecked(self, name: str) -> Any:
        """A function that returns its status, for `expect_ok`. It takes ctypes objects without conversion, which is faster."""
        function = self._cdll[name]
        function.restype = _c.FUNCTIONS[name][0]
        return function

    def expect_ok(self, status: int) -> None:
        if status != _c.wg_ok:
            self._check(status, None, None)

    def with_lock(self) -> ctypes.PyDLL:
        """The C functions in a form in which a call keeps Python's global lock."""
        return ctypes.PyDLL(None, handle=self._cdll._handle)

    def create(self, name: str, *arguments: Any) -> int:
        """Calls a function whose last argument receives the handle, and returns the handle."""
        handle = ctypes.c_void_p()
        _log.limit.follow(self._cdll)
        getattr(self, name)(*arguments, ctypes.byref(handle))
        assert handle.value is not None
        return handle.value

    def text(self, name: str, *arguments: Any) -> str:
        """Calls a function that writes a text into a buffer, in the way of snprintf, and returns the text."""
        function, length = getattr(self, name), ctypes.c_uint64(_LIKELY_TEXT)
        while True:
            buffer = ctypes.create_string_buffer(length.value + 1)
            asked = length.value
            function(*arguments, buffer, len(buffer), ctypes.byref(length))
            if length.value <= asked:
                return buffer.value.decode("utf-8", "replace")


def library() -> Library:
    """Loads the library at the first call. Thread-safe. Raises NotFound when the package was not installed from a wheel."""
    global _library
    if _library is None:
        with _lock:
            if _library is None:
                path = pathlib.Path(os.environ.get("WARMGRAPH_LIBRARY") or FOLDER / _NAME)
                if not path.exists():
                    raise errors.NotFound(f"{path} does not exist: install the package (pip install .), "
                                          "do not import it from the source folder, or name the library ($WARMGRAPH_LIBRARY)")
                _library = Library(path)
    return _library


class Handle:
    """An object of the library. close() or garbage collection destroys it once."""

    _what = "handle"

    def __init__(self, pointer: int, destroy: Callable[[int], Any]) -> None:
        self._pointer: int | None = pointer
        self._destroy = destroy
        self._made_in = _fork.generation()

    @property
    def pointer(self) -> int:
        self.expect_open()
        assert self._pointer is not None
        return self._pointer

    def expect_open(self) -> None:
        if self._pointer is None:
            raise errors.InvalidArgument(f"this {self._what} is closed: make a new one")
        if self._made_in != _fork.generation():
            _fork.expect_same(self._made_in, f"this {self._what}")

    @property
    def is_closed(self) -> bool:
        return self._pointer is None

    def close(self) -> None:
        """Frees the object. Using it afterwards raises InvalidArgument; closing it again does nothing."""
        pointer, self._pointer = self._pointer, None
        if pointer is not None and self._made_in == _fork.generation():
            self._destroy(pointer)

    def __del__(self) -> None:
        try:
            self.close()
        except Exception:  # the interpreter exits, or the library was unloaded
            pass


def text_or_none(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def array_of(kind: Any, items: list[Any]) -> Any:
    return (kind * len(items))(*items) if items else None


def kind_of(structure: Any, member: str) -> Any:
    """The ctypes class of a structure's member."""
    kinds: dict[str, Any] = dict(structure._fields_)  # no member of the structures is a bit field
    return kinds[member]
