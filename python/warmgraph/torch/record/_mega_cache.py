"""Stores the results of PyTorch's compiler (its Mega-Cache: graphs, code, autotuning) beside the entries. They are given to PyTorch before
a miss compiles, and stored again after the miss (Config.mega_cache). A hit never uses this module.

The bytes hold pickles. The library stores them signed, and returns them only with an accepted signature. A failure is logged and counted, and costs
only a compilation."""
from __future__ import annotations

import contextlib
import dataclasses
import logging
import os
import platform
import threading
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, Mapping

import torch

from warmgraph import errors
from warmgraph.torch.read import _installed_code

if TYPE_CHECKING:
    from warmgraph.calls._cached_function import CachedFunction
    from warmgraph.core.cache._cache import Cache

_log = logging.getLogger("warmgraph")
_lock = threading.RLock()
_carriers: dict[Any, Carrier] = {}
_SIGNS = ("WARMGRAPH_SIGN_KEY", "WARMGRAPH_SIGN_KEY_FILE")


@dataclasses.dataclass
class Counts:
    """Counters of this process. `handed` and `kept`: number of PyTorch's artifacts; `failures`: failed attempts, each of which costs one
    compilation at most."""

    handed: int = 0
    kept: int = 0
    failures: int = 0
    last_failure: str = ""


counts = Counts()


class Carrier:
    """The artifacts of one model for one device and PyTorch version. Thread-safe."""

    def __init__(self, cache: Cache, facts: Mapping[str, str]) -> None:
        self._cache, self._facts = cache, facts
        self._known: set[tuple[str, str]] = set()  # the names of the artifacts that are stored
        self._is_handed, self._lock = False, threading.Lock()

    def hand_over(self) -> None:
        """Gives the stored artifacts to PyTorch. This is done only once in a process."""
        with self._lock:
            if self._is_handed:
                return
            self._is_handed = True
            data = self._cache.artifact("torch", self._facts)
            if data is None:
                return
            info = torch.compiler.load_cache_artifacts(data)
            if info is None:
                raise errors.Corrupt(f"PyTorch {torch.__version__} cannot read its own artifacts of {len(data)} bytes: they are made again")
            self._known |= _names_of(info)
            counts.handed += len(self._known)

    def keep(self) -> None:
        """Stores the artifacts that this process compiled or hit, together with those that are stored already. Does nothing if none is new."""
        with self._lock:
            saved = _all_artifacts(lambda: self._cache.artifact("torch", self._facts), self._known)
            if saved is None:
                return
            data, names = saved
            self._cache.put_artifact("torch", self._facts, data)
            counts.kept += len(names - self._known)
            self._known |= names


def _names_of(info: Any) -> set[tuple[str, str]]:
    return {(kind, key) for kind, keys in info.artifacts.items() for key in keys}


def _all_artifacts(kept: Callable[[], bytes | None], known: set[tuple[str, str]]) -> tuple[bytes, set[tuple[str, str]]] | None:
    """Returns (bytes, names), or None when no artifact is new. When a process saves twice, PyTorch 2.11 writes each kind twice, and reads
    only the last one; so all artifacts are written again, each kind once. Other versions without this interface save normally."""
    from torch.compiler import _cache

    manager: Any = getattr(_cache, "CacheArtifactManager", None)
    seen: Iterable[Any] | None = getattr(manager, "_seen_artifacts", None)
    if seen is None or not hasattr(manager, "with_fresh_cache") or not hasattr(manager, "_new_cache_artifacts"):
        saved = torch.compiler.save_cache_artifacts()
        return None if saved is None or _names_of(saved[1]) <= known else (saved[0], _names_of(saved[1]))
    mine = {(one.type(), one.key): one for one in list(seen)}
    if mine.keys() <= known:
        return None
    try:
        before = kept()
    except errors.Error:  # the stored bytes are damaged, or signed with another key: they are replaced
        before = None
    there = (manager.deserialize(before) if before is not None else None) or {}
    every = {(one.type(), one.key): one for group in there.values() for one in group} | mine
    with manager.with_fresh_cache():
        for (kind, _), one in every.items():
            manager._new_cache_artifacts[kind].append(one)
        saved = manager.serialize()
    return None if saved is None else (saved[0], set(every))


def facts_of(model: str, device: torch.device) -> dict[str, str]:
    """The facts by which artifacts are found. PyTorch itself checks further properties, and compiles when one differs."""
    on_gpu = device.type == "cuda"
    return {"model": model, "torch": str(torch.__version__), "torch.git": str(torch.version.git_version), "cuda": str(torch.version.cuda),
            "triton": _installed_code.version_of("triton"), "python": _installed_code.python_version(), "machine": platform.machine(),
            "gpu": torch.cuda.get_device_name(device) if on_gpu else "none",
            "gpu.architecture": "sm_{}{}".format(*torch.cuda.get_device_capability(device)) if on_gpu else "none"}


@contextlib.contextmanager
def around(wrapped: CachedFunction, device: torch.device, policy: str) -> Iterator[None]:
    """Surrounds a miss that compiles: gives the artifacts to PyTorch before it, and stores new ones after it."""
    if not wrapped.options.config.mega_cache or policy in ("off", "no_compile", "require_hit"):
        yield
        return
    carrier = _tried(f"'{wrapped._name()}'", lambda: _carrier_of(wrapped, device))
    if carrier is not None:
        _tried("artifacts that PyTorch compiled before are not used", carrier.hand_over)
    yield
    if carrier is not None and policy != "read_only" and _signs(wrapped):
        _tried("artifacts that PyTorch compiled are not stored", carrier.keep)


def _carrier_of(wrapped: CachedFunction, device: torch.device) -> Carrier:
    from warmgraph.core.cache._pools import pool_of

    where = wrapped._where()
    facts = facts_of(where.model, device)
    key = (where.key(), tuple(facts.items()))
    with _lock:
        if key not in _carriers:
            _carriers[key] = Carrier(pool_of(where).caches[0], facts)
        return _carriers[key]


def _signs(wrapped: CachedFunction) -> bool:
    """Whether artifacts can be signed. Without a signing key they are only read."""
    return bool(wrapped.options.config.sign_with_file) or any(os.environ.get(name) for name in _SIGNS)


def _tried(doing: str, do: Callable[[], Any]) -> Any:
    try:
        return do()
    except Exception as error:  # the call goes on without the artifacts
        counts.failures += 1
        counts.last_failure = f"{doing}: {error}"
        _log.warning("%s", counts.last_failure)
        _log.debug("where it failed", exc_info=error)
        return None


def summary() -> str:
    """One line with the counters; "" when all are zero."""
    if counts == Counts():
        return ""
    failures = f", {counts.failures} failures, the last: {counts.last_failure}" if counts.failures else ""
    return f"PyTorch's artifacts: {counts.handed} loaded, {counts.kept} stored{failures}"
