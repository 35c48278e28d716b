"""Passes the library's log lines to Python's logger `warmgraph`."""
from __future__ import annotations

import atexit
import ctypes
import logging
import os
import sys
from typing import Any

from warmgraph.core.binding import _c

logger = logging.getLogger("warmgraph")

_LEVELS = {
    _c.wg_log_trace: logging.DEBUG, _c.wg_log_debug: logging.DEBUG, _c.wg_log_info: logging.INFO,
    _c.wg_log_warning: logging.WARNING, _c.wg_log_error: logging.ERROR,
}
_ENVIRONMENT = {
    "trace": logging.DEBUG, "debug": logging.DEBUG, "info": logging.INFO, "warn": logging.WARNING, "error": logging.ERROR,
    "off": logging.CRITICAL + 1,
}


class _DefaultHandler(logging.StreamHandler):  # type: ignore[type-arg]
    """With WARMGRAPH_LOG=info, prints to standard error like a C++ program, unless the program configured logging."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter("warmgraph: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        others = [one for one in logger.handlers if one is not self]
        if not others and not logging.getLogger().handlers:
            self.stream = sys.stderr
            super().emit(record)


class _Limit:
    """Keeps the library from making lines that Python's logger would drop. Making a single line can be slow: at a table's first call the
    library would read the header of each graph."""

    def __init__(self) -> None:
        self._last: int | None = None

    def follow(self, cdll: ctypes.CDLL) -> None:
        """Passes on the logger's current level. Called before the library makes an object."""
        level = logger.getEffectiveLevel()
        if level != self._last:
            self._last = level
            cdll.wg_limit_log(next((ours for ours, least in _LEAST if level <= least), _c.wg_log_error))


_LEAST = ((_c.wg_log_trace, logging.DEBUG), (_c.wg_log_info, logging.INFO), (_c.wg_log_warning, logging.WARNING))
limit = _Limit()


def _receive(level: int, line: bytes, _user: Any) -> None:
    logger.log(_LEVELS.get(level, logging.ERROR), "%s", line.decode("utf-8", "replace"))


def receive_from(cdll: ctypes.CDLL) -> None:
    """Starts receiving lines. Stops at interpreter exit, because then threads of the library must not call Python."""
    level = _ENVIRONMENT.get(os.environ.get("WARMGRAPH_LOG", ""))
    if level is not None:
        logger.setLevel(level)
        logger.addHandler(_DefaultHandler())
    kind: Any = cdll.wg_receive_log.argtypes[0]
    receiver = kind(_receive)
    cdll.wg_receive_log(receiver, None)
    process = os.getpid()

    def stop(_receiver: Any = receiver) -> None:
        if os.getpid() == process:
            cdll.wg_receive_log(kind(), None)

    atexit.register(stop)
