"""Triton kernels that tune themselves (triton.autotune). A tuner may take any of its configurations, so its choices are no facts; its
configurations, kernel and hooks are. An entry keeps the choice that its recording made."""
from __future__ import annotations

from typing import Any, Iterable

# Attributes that tuning and launching change: choices, times, and the arguments of the last launch.
OF_TUNING = {"cache", "best_config", "configs_timings", "bench_time", "nargs", "restore_copies", "do_bench"}


def is_tuner(value: Any) -> bool:
    return any(one.__name__ == "Autotuner" and one.__module__.startswith("triton.") for one in type(value).__mro__) \
        and isinstance(getattr(value, "cache", None), dict)


class Tuners:
    """The tuners among a call's objects, with the number of their choices before the call."""

    def __init__(self, objects: Iterable[tuple[str, Any]]) -> None:
        self._before = [(path, one, len(one.cache)) for path, one in objects if is_tuner(one)]

    def all(self) -> list[Any]:
        return [one for _, one, _ in self._before]

    def tuned(self) -> str:
        """The path of a kernel that has tuned itself since then, or ""."""
        return next((path for path, one, count in self._before if len(one.cache) != count), "")
