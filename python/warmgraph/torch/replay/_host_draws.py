"""Random numbers that a function draws from PyTorch's generator of the host but never reads (layer drop in evaluation mode). A replay draws as
many, so that the caller's later numbers are the same as without the cache."""
from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any, Iterable, Mapping, Sequence

import torch

_RAND = torch.ops.aten.rand.default
_MOST_AT_ONCE = 4096  # the most numbers that one operator draws in place of several operators
_TYPES = {"dtype": torch.dtype, "layout": torch.layout, "memory_format": torch.memory_format}


@dataclasses.dataclass(frozen=True)
class HostDraw:
    """An operator that makes a tensor of random numbers on the host, with its arguments."""

    operator: Any
    args: Sequence[Any]
    kwargs: Mapping[str, Any]


def is_draw(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> bool:
    """Whether an operator that returned `result` is one that HostDraw describes."""
    if not _is_seeded(func) or type(result) is not torch.Tensor or result.device.type != "cpu":
        return False
    return not kwargs.get("pin_memory") and all(map(_is_plain, (*args, *kwargs.values())))


def draw(draws: Iterable[HostDraw]) -> None:
    for one in draws:
        one.operator(*one.args, **one.kwargs)


def leading_from(state: torch.Tensor, draws: Sequence[HostDraw]) -> Sequence[HostDraw] | None:
    """Draws that take the generator of the host from `state` to its present state: `draws`, or fewer that do the same. None if `draws` lead to
    another state. The generator keeps its present state."""
    now = torch.get_rng_state()
    try:
        for some in (_joined(draws), draws):
            torch.set_rng_state(state)
            draw(some)
            if torch.equal(torch.get_rng_state(), now):
                return some
        return None
    finally:
        torch.set_rng_state(now)


def _joined(draws: Sequence[HostDraw]) -> list[HostDraw]:
    """Joins neighbours that differ only in their sizes to one operator: torch.rand takes the same amount of the generator for each number."""
    found: list[HostDraw] = []
    for one in draws:
        last = found[-1] if found else None
        if last is not None and last.operator is one.operator is _RAND and last.kwargs == one.kwargs:
            count = math.prod(last.args[0]) + math.prod(one.args[0])
            if count <= _MOST_AT_ONCE:
                found[-1] = dataclasses.replace(last, args=[[count]])
                continue
        found.append(one)
    return found


@functools.lru_cache(maxsize=None)
def _is_seeded(func: Any) -> bool:
    """Whether an operator of PyTorch draws random numbers."""
    return getattr(func, "namespace", "") == "aten" and torch.Tag.nondeterministic_seeded in func.tags


def _is_plain(value: Any) -> bool:
    """Whether the metadata can have this argument."""
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    return type(value) in (bool, int, str, type(None), torch.device, *_TYPES.values()) or type(value) is float and math.isfinite(value)


# --- In the metadata


def to_raw(draws: Iterable[HostDraw]) -> list[Any]:
    return [[one.operator._schema.name.partition("::")[2], one.operator._overloadname, _raw(one.args),
             [[name, _raw(value)] for name, value in one.kwargs.items()]] for one in draws]


def from_raw(raw: Iterable[Any]) -> tuple[HostDraw, ...]:
    """The draws of to_raw. Raises ValueError, TypeError or AttributeError for anything else."""
    return tuple(_draw_of(*one) for one in raw)


def _draw_of(name: str, overload: str, args: Sequence[Any], kwargs: Sequence[Any]) -> HostDraw:
    operator = getattr(getattr(torch.ops.aten, name), overload)
    if not _is_seeded(operator):
        raise ValueError(f"{operator} draws no random numbers")
    return HostDraw(operator, [_value(one) for one in args], {str(key): _value(value) for key, value in kwargs})


def _raw(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_raw(one) for one in value]
    if isinstance(value, torch.device):
        return {"device": str(value)}
    kind = next((kind for kind, one in _TYPES.items() if isinstance(value, one)), None)
    return value if kind is None else {kind: str(value).removeprefix("torch.")}


def _value(raw: Any) -> Any:
    if isinstance(raw, list):
        return [_value(one) for one in raw]
    if not isinstance(raw, dict):
        return raw
    (kind, name), = raw.items()
    if kind == "device":
        return torch.device(name)
    value = getattr(torch, name)
    if not isinstance(value, _TYPES[kind]):
        raise ValueError(f"torch.{name} is no {kind}")
    return value
