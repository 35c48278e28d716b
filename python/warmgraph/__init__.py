"""warmgraph records a function that launches accelerator work once, and replays it in every later process.

`cache_compile` wraps a function; docs/python.md has the rest. Importing loads no library and touches no device.
"""
from __future__ import annotations

from warmgraph.arrays._device import Array, Device, Local, Program
from warmgraph.arrays._run import copy, empty, empty_like, fill, forked
from warmgraph.arrays._shapes import Tensor, like
from warmgraph.calls._cached_function import CachedFunction, cache_compile
from warmgraph.calls._inspection import Cleared, clear, explain, load_cache_artifacts, readable_cache, save_cache_artifacts, stats
from warmgraph.config import Compression, Config
from warmgraph.core.binding import _early_recording, _frameworks
from warmgraph.core.binding._library import library
from warmgraph.core.cache._cache import ArtifactAmount, Cache, CacheInfo, Function, KindStatistics, PreloadProgress, RemoteStatistics, Report, Scalar, Spec, Statistics
from warmgraph.core.serving._server import ServedFunction, Server
from warmgraph.errors import (
    CompileFailed, Corrupt, DriverFailed, Error, Internal, InvalidArgument, IoFailed, MissForbidden, NoSpace, NotFound, NotRecordable,
    OutOfMemory, PartlyLaunched, PermissionDenied, Stale, Unsupported, Untrusted, VerificationFailed,
)

__all__ = [
    "Array", "ArtifactAmount", "Cache", "CacheInfo", "CachedFunction", "Cleared", "CompileFailed", "Compression", "Config", "Corrupt", "Device", "DriverFailed", "Error", "Function",
    "Internal", "InvalidArgument", "IoFailed", "KindStatistics", "Local", "MissForbidden", "NoSpace", "NotFound", "NotRecordable", "OutOfMemory",
    "PartlyLaunched", "PermissionDenied", "PreloadProgress", "Program", "RemoteStatistics", "Report", "Scalar", "ServedFunction", "Server", "Spec", "Stale", "Statistics", "Tensor", "Unsupported",
    "Untrusted", "VerificationFailed", "cache_compile", "clear", "copy", "empty", "empty_like", "explain", "fill", "forked", "like",
    "load_cache_artifacts", "readable_cache", "save_cache_artifacts", "stats", "version",
]


def version() -> str:
    """The library's version and the backends that it was built with, as in "0.1.0 (opencl, cuda)"."""
    return f"{library().wg_version().decode()} ({library().wg_backends().decode()})"


_early_recording.enable()
_frameworks.load_quietly()  # if the program has imported PyTorch, its half is imported now, so that no call waits for it
