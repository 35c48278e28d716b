"""Caches that wrapped functions share: one pool for each model, folder, ranks and configuration. Thread-safe."""
from __future__ import annotations

import dataclasses
import functools
import threading
from typing import Any, Callable, TypeVar

from warmgraph.config import Config, Path
from warmgraph.core.binding import _fork
from warmgraph.core.binding._library import library, text_or_none
from warmgraph.core.cache._cache import Cache, Statistics

_Made = TypeVar("_Made")
_lock = threading.RLock()


@dataclasses.dataclass(frozen=True)
class CacheLocation:
    """The key of a pool. Wrappers with equal keys share one pool."""

    model: str
    cache_dir: str  # the absolute path
    dynamic: bool
    ranks: tuple[int | None, int | None, int | None]
    config: Config

    def key(self) -> tuple[Any, ...]:
        return (_fork.generation(), self.model, self.cache_dir, self.dynamic, self.ranks, self.config.identity())

    def open(self) -> Cache:
        rank, tp_rank, pp_rank = self.ranks
        return Cache(self.model, config=self.config, cache_dir=self.cache_dir, dynamic=self.dynamic, global_rank=rank, tp_rank=tp_rank,
                     pp_rank=pp_rank)


def folder_of(cache_dir: Path | None) -> str:
    """The absolute path of the folder that the option `cache_dir` means now."""
    return str(library().wg_cache_folder(text_or_none(str(cache_dir) if cache_dir else None)).decode())


class Pool:
    """Caches of one model. In one cache, only one function can have a given name. A function with the same name and other facts (a text, a
    structure) uses the next cache."""

    def __init__(self, where: CacheLocation) -> None:
        self.where = where
        self.caches: list[Cache] = [where.open()]
        self._names: list[set[str]] = [set()]

    def make_function(self, name: str, make: Callable[[Cache, Callable[[], Any]], _Made]) -> _Made:
        """Calls `make` with a cache that has no function of this name, and with a callback for `make` to call when the function is
        destroyed."""
        cache = self.take(name)
        try:
            return make(cache, functools.partial(self.give_back, cache, name))
        except BaseException:
            self.give_back(cache, name)
            raise

    def take(self, name: str) -> Cache:
        with _lock:
            for cache, names in zip(self.caches, self._names):
                if name not in names:
                    names.add(name)
                    return cache
            self.caches.append(self.where.open())
            self._names.append({name})
            return self.caches[-1]

    def give_back(self, cache: Cache, name: str) -> None:
        """Makes the name free again in this cache. Call this when the function is destroyed, not before."""
        with _lock:
            self._names[self.caches.index(cache)].discard(name)

    def statistics(self) -> Statistics:
        total = self.caches[0].statistics()
        for cache in self.caches[1:]:
            total += cache.statistics()
        return total


_pools: dict[tuple[Any, ...], Pool] = {}


def pool_of(where: CacheLocation) -> Pool:
    with _lock:
        key = where.key()
        if key not in _pools:
            _pools[key] = Pool(where)
        return _pools[key]


def every_pool() -> list[Pool]:
    """All pools of this process, in the order in which they were opened."""
    with _lock:
        return list(_pools.values())


def every_cache() -> list[Cache]:
    with _lock:
        return [cache for pool in _pools.values() for cache in pool.caches]
