"""Serves functions without having their code. For example, recordings of PyTorch functions run without PyTorch."""
from __future__ import annotations

import dataclasses
import difflib
import threading
from typing import Any, Iterable, Mapping, Sequence

from warmgraph import errors
from warmgraph.arrays._array_arguments import argument_of, expect_apart
from warmgraph.arrays._device import Array, Device, stream_view
from warmgraph.arrays._shapes import Tensor
from warmgraph.config import Config, Path
from warmgraph.core.binding import _c
from warmgraph.core.binding._library import library
from warmgraph.core.cache._cache import Function, Report, Spec
from warmgraph.core.cache._pools import CacheLocation, Pool, folder_of, pool_of
from warmgraph.core.serving._entry_metadata import WORDS, Layout, State, StoredEntry, each_fact, stored_entry
from warmgraph.core.serving._state_memory import States, expect_fits, lay_out, placed, room

_MOST_NAMED = 4  # the most facts that a message names
_WORD = 8  # bytes of a generator's number in device memory


class Server:
    """The functions of one model, replayed from its cache without their code.

    model: as in Config. device: a Device or its id. weights: arrays by their names in state_dict(), from NumPy (bf16 as u16) or on the
    device; unused arrays are ignored. Functions of one server share a state by its name: weights are uploaded once, and one function reads
    the state that another one wrote. If a state is not given, it gets the contents in the entry, or zeros if the function writes it. If
    neither is possible, raises InvalidArgument. seed: the seed of the functions' random numbers. The other arguments are those of
    cache_compile.
    """

    def __init__(self, model: str = "", *, device: Any, weights: Mapping[str, Any] | None = None, seed: int = 0, config: Config | None = None,
                 cache_dir: Path | None = None, dynamic: bool = True, global_rank: int | None = None, tp_rank: int | None = None,
                 pp_rank: int | None = None) -> None:
        options = (config or Config()).copy()
        options.model = model or options.model
        if not options.model:
            raise errors.InvalidArgument("a server needs the model of its cache: give model=, or a Config with a model")
        self.device = device if isinstance(device, Device) else Device(device)
        self.seed, self.offset = seed, 0  # the generator starts as after torch.cuda.manual_seed
        self._pool: Pool = pool_of(CacheLocation(options.model, folder_of(cache_dir), dynamic, (global_rank, tp_rank, pp_rank), options))
        self._states = States(self.device, dict(weights or {}))
        self._functions: dict[tuple[str, str], ServedFunction] = {}
        self._lock = threading.RLock()

    def __repr__(self) -> str:
        return f"<warmgraph.Server of {self._pool.where.model} on {self.device.id}>"

    def function(self, name: str, entry: str = "") -> ServedFunction:
        """Returns a function, found by the name of its folder. `entry`: the first digits of an entry's digest; else each call finds an
        entry by its inputs. Raises NotFound when the function has no entry, and Stale when its entries are for another device or driver."""
        with self._lock:
            if (name, entry) not in self._functions:
                self._functions[name, entry] = ServedFunction(self, name, self._entries(name, entry))
            return self._functions[name, entry]

    def state(self, name: str) -> Array:
        """A state's memory. `name` is the state's name or the name of a tensor in it. The memory is available after a call of a function
        with this state."""
        with self._lock:
            return self._states.named(name)

    def states(self) -> list[str]:
        """The names that state() accepts."""
        with self._lock:
            return self._states.names()

    def bind(self, name: str, array: Any) -> None:
        """Moves a state to other memory on the device, for later calls of all functions. Work that was enqueued before uses the old memory."""
        with self._lock:
            state = self._states.bind(name, array if isinstance(array, Array) else self.device.view(array))
            for function in self._functions.values():
                function._rebind(state)

    def _entries(self, name: str, digits: str) -> list[StoredEntry]:
        cache = self._pool.caches[0]
        listed = [one for one in cache.entries(name, self.device) if one["digest"].startswith(digits)]
        where = f"of '{name}' of the model '{cache.model}' in {cache.directory}"
        if not listed:
            off = f" (caching is off: {cache.disabled_reason})" if cache.disabled_reason else ""
            raise errors.NotFound(f"there is no entry {f'{digits} ' if digits else ''}{where}{off}: record it first, with this model name, "
                                  "configuration and rank ('warmgraph ls' lists the entries)")
        usable = [one for one in listed if not one["misfit"]]
        if not usable:
            raise errors.Stale(f"no entry {where} is for {self.device.id}: {listed[0]['misfit']}; record it here")
        return [stored_entry(one) for one in usable]


class ServedFunction:
    """A function of a Server. `entries` are its variants, the most recently used first."""

    def __init__(self, server: Server, name: str, entries: Sequence[StoredEntry]) -> None:
        self.name, self.entries = name, tuple(entries)
        self._server = server
        self._variants: dict[str, _Variant] = {}  # by the entry's digest
        self._chosen: dict[tuple[Any, ...], _Variant] = {}  # by ServedCall.look()
        self._last: _Variant | None = None

    def __repr__(self) -> str:
        return f"<warmgraph served function {self.name}>"

    @property
    def inputs(self) -> dict[str, Tensor]:
        """The inputs by name. Raises InvalidArgument when the variants have different inputs."""
        return _tensors(self._same("inputs"))

    @property
    def outputs(self) -> dict[str, Tensor]:
        return _tensors(self._same("outputs"))

    @property
    def states(self) -> dict[str, Tensor]:
        """The states by name; Server.state() has their memory."""
        return _tensors(self._same("states"))

    def __call__(self, inputs: Mapping[str, Any] | None = None, /, *, stream: Any = None, out: Mapping[str, Array] | None = None,
                 **more: Any) -> dict[str, Any]:
        """Enqueues the function and returns its outputs by name.

        Inputs and scalars are given by name, as a dict or as keywords. With NumPy arrays, the outputs are NumPy arrays (bf16 as u16), and
        an input gets the function's writes. With device arrays (Array, __cuda_array_interface__, DLPack) nothing is copied, outputs are new
        device arrays or the arrays in `out`, and the call does not wait. stream: an object with __cuda_stream__, else the device's default
        stream.
        """
        with self._server._lock:
            call = ServedCall.read(self._server.device, {**(inputs or {}), **more})
            self._last = self._variant_of(call)
            return self._last(call, _native_stream(self._server.device, stream), out or {})

    def report(self) -> Report | None:
        """The report of the last used variant; None before the first call."""
        return self._last.function.report() if self._last is not None else None

    def _same(self, what: str) -> tuple[Layout, ...]:
        first = getattr(self.entries[0], what)
        if any(getattr(entry, what) != first for entry in self.entries):
            raise errors.InvalidArgument(f"the {len(self.entries)} entries of '{self.name}' differ in their {what}: look at `entries` one by one")
        return first  # type: ignore[no-any-return]

    def _rebind(self, state: State) -> None:
        for variant in self._variants.values():
            variant.rebind(state)

    def _variant_of(self, call: ServedCall) -> _Variant:
        key = call.look()
        variant = self._chosen.get(key)
        if variant is None:
            entry = self._entry_of(call)
            variant = self._variants.get(entry.digest) or _Variant(self._server, self.name, entry)
            self._chosen[key] = self._variants[entry.digest] = variant
        return variant

    def _entry_of(self, call: ServedCall) -> StoredEntry:
        reasons = [(entry, call.why_not(entry)) for entry in self.entries]
        fitting = [entry for entry, why in reasons if not why]
        if len(fitting) == 1:
            return fitting[0]
        if fitting:
            raise errors.InvalidArgument(f"{len(fitting)} entries of '{self.name}' take these inputs, and differ in {_differences(fitting)}: "
                                         f"choose one by function({self.name!r}, entry=...) of "
                                         f"{', '.join(entry.digest[:8] for entry in fitting)}")
        if len(reasons) == 1:
            raise errors.InvalidArgument(f"'{self.name}' cannot be called with these inputs: {reasons[0][1]}")
        raise errors.InvalidArgument(f"no entry of '{self.name}' takes these inputs: "
                                     + "; ".join(f"{entry.digest[:8]}: {why}" for entry, why in reasons))


@dataclasses.dataclass
class ServedCall:
    """A call's arguments by name: arrays on the device, arrays on the host, and other values, which may be numbers."""

    arrays: dict[str, Array]
    hosts: dict[str, Any]
    numbers: dict[str, Any]

    @classmethod
    def read(cls, device: Device, given: Mapping[str, Any]) -> ServedCall:
        call = cls({}, {}, {})
        for name, value in given.items():
            leaf = argument_of(value)
            if leaf is None:
                call.numbers[name] = value
            elif leaf.is_host:
                call.hosts[name] = leaf.value
            else:
                call.arrays[name] = leaf.on(device, device.empty)
        return call

    def look(self) -> tuple[Any, ...]:
        """The key by which an entry for this call is remembered."""
        return (tuple((name, one.dtype, one.shape, one.strides) for name, one in self.arrays.items()),
                tuple((name, one.dtype, one.shape) for name, one in self.hosts.items()), tuple(self.numbers))

    def why_not(self, entry: StoredEntry) -> str:
        """Why the entry does not fit this call; "" when it fits."""
        given = {**self.arrays, **self.hosts, **self.numbers}
        known = [*(layout.name for layout in entry.inputs), *entry.scalars]
        missing = [name for name in known if name not in given]
        if missing:
            return f"{missing[0]!r} is missing, it takes {', '.join([*map(str, entry.inputs), *entry.scalars])}"
        try:
            _expect_known("it takes no", given, known)
            for layout in entry.inputs:
                self._expect_like(layout)
        except errors.InvalidArgument as error:
            return str(error)
        arrays = [name for name in entry.scalars if name not in self.numbers]
        return f"{arrays[0]} is an array, expected a number" if arrays else ""

    def _expect_like(self, layout: Layout) -> None:
        if layout.name in self.numbers:
            what = type(self.numbers[layout.name]).__name__
            raise errors.InvalidArgument(f"{layout.name} is a {what}, expected an array {layout.dtype}{list(layout.shape)}")
        if layout.name in self.arrays:
            placed(layout, self.arrays[layout.name])
        else:
            expect_fits(layout, self.hosts[layout.name])


class _Variant:
    """A loaded entry that works on the server's states."""

    def __init__(self, server: Server, name: str, entry: StoredEntry) -> None:
        self._server, self._entry, self._device = server, entry, server.device
        self._words = {state.name: room(self._device, state) for state in entry.states if state.name in WORDS and entry.draws}
        states = {state.name: self._words.get(state.name) or server._states.of(state) for state in entry.states}
        spec = Spec(_tensors(entry.inputs), _tensors(entry.outputs), states,
                    frozenset(state.name for state in entry.states if state.is_read_only), entry.scalars, entry.facts, (),
                    entry.environment, recorded_code=entry.recorded_code)
        self.function = server._pool.make_function(name, lambda cache, destroyed: Function(cache, name, self._device, spec, None, destroyed))
        self._staged: dict[str, Array] = {}  # device memory for the inputs and outputs that are on the host

    def __call__(self, call: ServedCall, stream: int | None, out: Mapping[str, Array]) -> dict[str, Any]:
        expect_apart(list(call.hosts.items()))
        arguments: dict[str, Any] = dict(call.numbers)
        for layout in self._entry.inputs:
            array = call.arrays.get(layout.name)
            arguments[layout.name] = placed(layout, array) if array is not None else self._uploaded(layout, call.hosts[layout.name])
        outputs = {layout.name: self._output(layout, bool(call.hosts), out) for layout in self._entry.outputs}
        _expect_known(f"'{self.function.name}' has no output", out, outputs)
        self._draw(stream)
        self.function({**arguments, **outputs}, stream=stream)
        if not call.hosts:
            return outputs
        if stream is not None:
            library().wg_stream_synchronize(stream)
        for name, value in call.hosts.items():
            if value.flags.writeable and name not in self._entry.read_only_inputs:
                value[...] = _downloaded(arguments[name])
        return {name: out[name] if name in out else _downloaded(array) for name, array in outputs.items()}

    def rebind(self, state: State) -> None:
        for own in self._entry.states:
            if own.name not in self._words and {part.name for part in own.names()} & {part.name for part in state.names()}:
                self.function.bind(own.name, self._server._states.of(own))

    def _kept(self, layout: Layout) -> Array:
        if layout.name not in self._staged:
            self._staged[layout.name] = room(self._device, layout)
        return self._staged[layout.name]

    def _uploaded(self, layout: Layout, value: Any) -> Array:
        import numpy

        array = self._kept(layout)
        host = numpy.zeros(layout.extent, numpy.uint8)
        lay_out(host, layout, value)
        if layout.extent:
            self._device.synchronize()
            array._owned().upload(host.ctypes.data, layout.extent, 0)
        return array

    def _output(self, layout: Layout, is_hosted: bool, out: Mapping[str, Array]) -> Array:
        given = out.get(layout.name)
        if given is None:
            return self._kept(layout) if is_hosted else room(self._device, layout)
        return placed(layout, given)

    def _draw(self, stream: int | None) -> None:
        """Enqueues the writes of this call's seed and offset into device memory, and advances the offset for the next call."""
        server = self._server
        for name, value in zip(WORDS, (server.seed, server.offset)):
            array, raw = self._words.get(name), (value % (1 << 64)).to_bytes(_WORD, "little")
            for at in (0, _WORD // 2) if array is not None else ():  # two fills, because CUDA fills with at most four bytes
                address = array._memory().address  # type: ignore[union-attr]
                library().wg_fill(self._device.stream if stream is None else stream, _c.wg_address(address.base, address.offset + at),
                                  raw[at:at + _WORD // 2], _WORD // 2, _WORD // 2)
        server.offset += self._entry.draws


def _tensors(layouts: Sequence[Layout]) -> dict[str, Tensor]:
    return {layout.name: Tensor(layout.shape, layout.dtype) for layout in layouts}


def _downloaded(array: Array) -> Any:
    if array.dtype != "bf16":
        return array.numpy()
    return Array(array.device, array._owner, array._address, array.shape, "u16", array.strides, array).numpy()


def _native_stream(device: Device, stream: Any) -> int | None:
    """The library's handle for a stream, through the protocol of CUDA's Python libraries (cuda.core, __cuda_stream__)."""
    if stream is None:
        return None
    given = getattr(stream, "__cuda_stream__", None)
    if given is None:
        raise errors.InvalidArgument(f"a {type(stream).__name__} has no __cuda_stream__: pass a CUDA stream of a library that supports this protocol")
    version, handle = given() if callable(given) else given
    if version != 0:
        raise errors.Unsupported(f"__cuda_stream__ of version {version}, expected 0")
    return stream_view(device, int(handle))


def _expect_known(what: str, given: Iterable[str], known: Iterable[str]) -> None:
    known = list(known)
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            raise errors.InvalidArgument(f"{what} {name!r}" + (f": did you mean {near[0]!r}?" if near else f", it has {', '.join(known)}"))


def _differences(entries: Sequence[StoredEntry]) -> str:
    """The names of the facts and parts that differ among entries with the same inputs."""
    pairs = [{**each_fact(entry.facts), **entry.recorded_code} for entry in entries]
    names = sorted({name for pair in pairs for name in pair if any(pair.get(name) != other.get(name) for other in pairs)})
    rest = [f"their {what}" for what in ("outputs", "states", "environment")
            if any(getattr(entry, what) != getattr(entries[0], what) for entry in entries)]
    shown = [f"{name} ({', '.join(repr(pair.get(name, 'not there')) for pair in pairs)})" for name in names[:_MOST_NAMED]]
    return ", ".join([*rest, *shown, *(["more"] if len(names) > _MOST_NAMED else [])]) or "only alignment or overlaps"
