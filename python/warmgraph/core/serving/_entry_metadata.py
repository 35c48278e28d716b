"""Describes an entry's inputs, outputs and states for a process that does not have the function's code."""
from __future__ import annotations

import base64
import binascii
import dataclasses
import json
from typing import Any, Mapping

from warmgraph import dtypes, errors
from warmgraph.arrays._shapes import extent_bytes
from warmgraph.core.cache._cache import Scalar

TORCH = "warmgraph.torch"  # the metadata of PyTorch's functions has its version under this key
VERSION = 1
WORDS = ("generator.seed", "generator.offset")  # the states that a function has if it draws random numbers


@dataclasses.dataclass(frozen=True)
class Layout:
    """The layout of elements in memory. `strides` are in elements."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0  # offset in bytes from the start of the state's memory

    @property
    def extent(self) -> int:
        """The number of bytes from the start of the first element to the end of the last."""
        return extent_bytes(self.shape, self.strides, dtypes.itemsize(self.dtype))

    @property
    def end(self) -> int:
        return self.offset + self.extent

    def __str__(self) -> str:
        return f"{self.name} {self.dtype}{list(self.shape)}"


@dataclasses.dataclass(frozen=True)
class State(Layout):
    """Memory that lives across calls. `parts`: the tensors in it, by their names in PyTorch's state_dict(); tied weights are two names of
    one range. A state without parts is one array, whose name is the state's."""

    is_read_only: bool = False
    is_zeroed: bool = False  # the function writes the state, so it begins with zeros
    parts: tuple[Layout, ...] = ()
    contents: bytes | None = None  # the contents that the entry stores

    @property
    def nbytes(self) -> int:
        return self.extent

    def names(self) -> list[Layout]:
        """The arrays that a caller can give for this state: its parts, and the whole under the state's name unless a part has this name."""
        whole = Layout(self.name, self.dtype, self.shape, self.strides)
        return [*self.parts] if any(part.name == self.name for part in self.parts) else [*self.parts, whole]

    def needed(self) -> list[Layout]:
        """The arrays that a caller must give, each under any name that covers it."""
        return [] if self.is_zeroed or self.contents is not None else list(self.parts or self.names())


@dataclasses.dataclass(frozen=True)
class StoredEntry:
    """One recording of a function. `facts`: further facts of the recording; facts that are lists are not expanded (see each_fact).
    `read_only_inputs`: the inputs that the function is known to only read. `draws`: how far a call advances the generator's offset."""

    digest: str
    recorded: str
    misfit: str
    inputs: tuple[Layout, ...]
    outputs: tuple[Layout, ...]
    states: tuple[State, ...]
    scalars: Mapping[str, Scalar]
    facts: Mapping[str, str]
    recorded_code: Mapping[str, str]
    environment: tuple[str, ...]
    read_only_inputs: frozenset[str] = frozenset()
    draws: int = 0


def stored_entry(raw: Mapping[str, Any]) -> StoredEntry:
    """Converts an element of wg_cache_entries. Raises Corrupt or Stale when PyTorch's metadata is damaged or has another version."""
    if raw["values"]:
        names = ", ".join(value["name"] for value in raw["values"])
        raise errors.Unsupported(f"entry {raw['digest'][:8]} is specialised on the numbers {names} (Spec::values), which only C and C++ can give")
    metadata = _metadata(raw["metadata"])
    scalars = {one["name"]: Scalar(one["dtype"], *(one["range"] or (None, None))) for one in raw["scalars"]}
    return StoredEntry(
        raw["digest"], raw["recorded"], raw["misfit"], _layouts(raw["inputs"]), _layouts(raw["outputs"]),
        tuple(_state(one, metadata) for one in raw["states"]), scalars, raw["config"], raw["recorded_code"], tuple(raw["environment"]),
        metadata.read_only_inputs, metadata.draws)


def each_fact(facts: Mapping[str, str]) -> dict[str, str]:
    """The facts, with each list of facts replaced by the facts in it (cachefmt/fact_lists.hpp)."""
    found: dict[str, str] = {}
    for name, value in facts.items():
        rows = [line.split("\t", 1) for line in value.split("\n")] if name.endswith(" *") else []
        found.update({row[0]: row[1] for row in rows} if rows and all(len(row) == 2 for row in rows) else {name: value})
    return found


@dataclasses.dataclass(frozen=True)
class _Metadata:
    written: frozenset[str] = frozenset()
    parts: Mapping[str, tuple[Layout, ...]] = dataclasses.field(default_factory=dict)
    contents: Mapping[str, bytes] = dataclasses.field(default_factory=dict)
    read_only_inputs: frozenset[str] = frozenset()
    draws: int = 0


def _metadata(text: str) -> _Metadata:
    """The metadata of a PyTorch function's entry; empty metadata for any other text, which the caller of Cache.wrap wrote."""
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict) or TORCH not in found:
        if f'"{TORCH}"' in text:
            raise errors.Corrupt("the entry's metadata cannot be read: record the function again")
        return _Metadata()
    if found[TORCH] != VERSION:
        raise errors.Stale(f"the entry's metadata has version {found[TORCH]}, expected {VERSION}: record the function again")
    try:
        return _Metadata(
            frozenset(map(str, found["written"])),
            {str(state): tuple(_part(*part) for part in parts) for state, parts in found.get("aliases", {}).items()},
            {str(state): base64.b64decode(data, validate=True) for state, data in found.get("contents", {}).items()},
            frozenset(map(str, found["aligned"])), int(found["draws"]))
    except (ValueError, KeyError, TypeError, AttributeError, binascii.Error) as error:
        raise errors.Corrupt(f"the entry's metadata cannot be read ({error}): record the function again") from None


def _part(name: str, offset: int, dtype: str, shape: list[int], strides: list[int]) -> Layout:
    part = Layout(str(name), dtypes.canonical(dtype), tuple(map(int, shape)), tuple(map(int, strides)), int(offset))
    if len(part.shape) != len(part.strides) or min((part.offset, *part.shape, *part.strides)) < 0:
        raise ValueError(f"{part} lies at {part.offset} with strides {list(part.strides)}")
    return part


def _layout(raw: Mapping[str, Any]) -> Layout:
    return Layout(raw["name"], raw["dtype"], tuple(raw["sizes"]), tuple(raw["strides"]))


def _layouts(raw: list[Mapping[str, Any]]) -> tuple[Layout, ...]:
    return tuple(map(_layout, raw))


def _state(raw: Mapping[str, Any], metadata: _Metadata) -> State:
    layout, name = _layout(raw), raw["name"]
    state = State(name, layout.dtype, layout.shape, layout.strides, 0, raw["read_only"], name in metadata.written,
                  metadata.parts.get(name, ()), metadata.contents.get(name))
    if any(part.end > state.nbytes for part in state.parts) or (state.contents is not None and len(state.contents) != state.nbytes):
        raise errors.Corrupt(f"the entry's metadata does not cover the {state.nbytes} bytes of {state} exactly: record the function again")
    return state
