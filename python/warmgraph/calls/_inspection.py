"""Shows the caches' contents and why calls missed."""
from __future__ import annotations

import dataclasses
import os
import pathlib
import subprocess
from typing import Any

from warmgraph import errors
from warmgraph.arrays._device import Device
from warmgraph.calls import _refusals
from warmgraph.calls._cached_function import CachedFunction
from warmgraph.config import Config, Path
from warmgraph.core.binding import _command, _frameworks
from warmgraph.core.cache._cache import Cache, CacheInfo, Statistics, saved_artifacts
from warmgraph.core.cache._pools import every_cache, every_pool, pool_of


@dataclasses.dataclass(frozen=True)
class Cleared:
    """The number of removed entries (of removed files, for other kinds), and their folder."""

    folder: str
    entries: int


def stats(function: CachedFunction | None = None) -> list[Statistics]:
    """The counters of this process: for one function's cache, or for each open cache, with the cache's folder."""
    _refusals.keep_all()
    if function is not None:
        return [pool_of(function._where()).statistics()]
    return [pool.statistics() for pool in every_pool()]


def explain(function: CachedFunction) -> str:
    """The outcomes of a function's first calls in this process, with reasons: the folder, the last report, and each miss with the facts that
    differed from the nearest variant."""
    _refusals.keep_all()
    lines = [f"{function!r} in {function.cache_dir}"]
    disabled = pool_of(function._where()).caches[0].disabled_reason
    if disabled:
        lines.append(f"caching is off: {disabled}")
    report = function.report()
    if report is None:
        lines.append("not called in this process")
    elif report.entry or report.outcome != "refused":
        reason = f": {report.reason}" if report.reason else ""
        memory = f", {report.recording_bytes / 1e6:.1f} MB of device memory" if report.recording_bytes else ""
        lines.append(f"{report.outcome} in {report.first_call_ms:.1f} ms{memory}, entry {report.entry[:8] or 'none'}{reason}")
    lines += _refusals.lines_of(function)
    if function._shared.last_refusal and function._shared.last_refusal not in function._shared.runs_as_it_is:
        lines.append(f"refused: {function._shared.last_refusal}")
    framework = _frameworks.registered()
    lines += filter(None, [framework.summary() if framework is not None else ""])
    with function._shared.lock:
        misses = [variant.function.misses() for variant in function._shared.known.variants.values()]
    lines += [line for text in reversed(misses) for line in text.splitlines()]
    lines.append(f"of all processes: warmgraph explain {function._where().model}/{function._name()} --cache-dir {function.cache_dir}")
    return "\n".join(lines)


def clear(function: CachedFunction | None = None, *, kind: str = "entries") -> list[Cleared]:
    """Removes this rank's entries of one function, or of every open cache; the next calls record again. Artifacts that the model's other
    functions also use are kept. kind: artifacts to remove instead of entries, from every open folder; `function` must then be None:
    "compiled", "tuned", "profiles" or "torch"; or "all"."""
    if function is not None and kind != "entries":
        raise errors.InvalidArgument(f"kind is {kind!r}, expected 'entries' with a function: other kinds belong to no function")
    if function is not None:
        function.reset()
        cache = pool_of(function._where()).caches[0]
        return [Cleared(cache.directory, sum(cache.clear(name) for name in function._names()))]
    return [Cleared(pool.caches[0].directory, pool.caches[0].clear(kind=kind)) for pool in every_pool()]


def save_cache_artifacts(*, include_torch: bool = False) -> tuple[bytes, CacheInfo] | None:
    """The artifacts that this process made or hit through every open cache, as the bytes of a bundle (docs/bundles.md); None if there are
    no such artifacts. include_torch: also PyTorch's compiled code (Config.mega_cache); InvalidArgument when no cache has a key to sign
    the bundle."""
    return saved_artifacts(every_cache(), include_torch)


def load_cache_artifacts(artifacts: bytes, *, device: Device | None = None, config: Config | None = None, cache_dir: Path | None = None) -> CacheInfo:
    """Puts the bytes of save_cache_artifacts, from this or another machine, into the cache folder before the first call. Artifacts that do not fit the
    device (default "opencl"), its driver and the environment are skipped and named. Existing objects are not replaced."""
    cache = Cache("artifacts", config=config, cache_dir=cache_dir)
    return cache.load_cache_artifacts(device or Device(), artifacts)


def readable_cache(path: Path, file: Path | None = None) -> str:
    """Entries as text: all in a function's folder, or the one in an entry's file. `path` must end with
    <model>/<rank>/<function>[/<digest>.wg], like in a cache folder, because an entry's digest covers these names. If `file` is given,
    the text is also written to it."""
    target = pathlib.Path(os.path.abspath(path))
    if target.is_dir() and len(target.parents) < 3:
        raise errors.InvalidArgument(f"{target} is not the folder of a function: give one that ends with <model>/<rank>/<function>")
    if target.is_dir():
        name = [str(target.relative_to(target.parents[2])), "--cache-dir", str(target.parents[2])]
    elif target.exists():
        name = [str(target)]
    else:
        raise errors.NotFound(f"{target} does not exist")
    done = subprocess.run([_command.PROGRAM, "show", *name], capture_output=True, text=True, check=False,
                          env={**os.environ, "NO_COLOR": "1"})
    if done.returncode != 0:
        raise errors.NotFound(f"{target} cannot be read: {done.stderr.strip() or done.stdout.strip()}")
    if file is not None:
        pathlib.Path(file).write_text(done.stdout)
    return done.stdout
