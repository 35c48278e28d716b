"""Keeps device code from the moment when PyTorch starts CUDA: a kernel that was loaded earlier cannot be recorded.

`import warmgraph` only registers a hook in PyTorch. PyTorch may be imported before or after. CUPTI is loaded when CUDA starts, but not in a
process whose policy records nothing.
"""
from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import logging
import os
import sys
from typing import Any, Sequence

from warmgraph import errors

_log = logging.getLogger("warmgraph")
_RECORDS_NOTHING = ("read_only", "require_hit", "off")
_is_enabled = False


def enable() -> None:
    """Registers the hook. Called once, when the package is imported."""
    torch = sys.modules.get("torch")
    if hasattr(getattr(torch, "cuda", None), "_lazy_call"):
        _follow(torch)
    else:
        sys.meta_path.insert(0, _TorchFinder())


def _follow(torch: Any) -> None:
    global _is_enabled
    if not _is_enabled:
        _is_enabled = True
        torch.cuda._lazy_call(keep_device_code)  # runs before PyTorch loads its first kernel; runs at once if CUDA is running already


def keep_device_code() -> None:
    if os.environ.get("WARMGRAPH_POLICY") in _RECORDS_NOTHING:
        return
    try:
        from warmgraph.core.binding._library import library

        library().wg_prepare_recording_early()
    except (errors.Error, OSError) as error:
        _log.debug("device code is not kept: %s", error)


class _TorchFinder(importlib.abc.MetaPathFinder):
    """Lets the other finders import PyTorch, calls _follow() afterwards, and removes itself."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if fullname != "torch":
            return None
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        spec = importlib.util.find_spec("torch")
        if spec is not None and spec.loader is not None:
            spec.loader = _TorchLoader(spec.loader)
        return spec


class _TorchLoader(importlib.abc.Loader):
    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> Any:
        return self._loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        if hasattr(getattr(module, "cuda", None), "_lazy_call"):
            _follow(module)
