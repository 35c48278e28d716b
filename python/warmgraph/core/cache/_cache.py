"""Caches and functions of the C interface."""
from __future__ import annotations

import ctypes
import dataclasses
import json
import os
import threading
import weakref
from typing import Any, Callable, Mapping, Sequence

from warmgraph import config as _config, dtypes, errors
from warmgraph.arrays._device import Array, Device, Program
from warmgraph.arrays._run import Run
from warmgraph.arrays._shapes import Tensor, pointer_array
from warmgraph.core.binding import _c, _frameworks
from warmgraph.core.binding._library import Handle, array_of, kind_of, library, text_or_none

OUTCOMES = {code: name[len("wg_outcome_"):] for name, code in _c.wg_outcome_values.items()}


@dataclasses.dataclass(frozen=True)
class Scalar:
    """A number that is patched at every call. It has a type ("i32", "u32", "i64", "u64", "f32" or "f64") and a range of values."""

    dtype: str
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", dtypes.canonical(self.dtype))
        if self.dtype not in ("i32", "u32", "i64", "u64", "f32", "f64"):
            raise errors.InvalidArgument(f"a scalar of type {self.dtype}, expected i32, u32, i64, u64, f32 or f64")
        if (self.low is None) != (self.high is None):
            raise errors.InvalidArgument("a scalar's range has one end, expected both ends or none")


@dataclasses.dataclass(frozen=True)
class Report:
    """The outcome of a function's first call, or of the latest variant that was loaded or recorded."""

    function: str
    outcome: str  # "recorded", "replayed", "eager" or "refused"
    reason: str
    entry: str
    first_call_ms: float
    phases: tuple[tuple[str, float], ...]
    recording_bytes: int = 0  #: the most device memory that the recording held at one time; 0: nothing was recorded


_COUNTED = ("entries", "compiled", "tuned", "profiles")


@dataclasses.dataclass(frozen=True)
class KindStatistics:
    """Counters of one kind; docs/kinds.md says what each kind counts. Times are in milliseconds."""

    hits: int = 0  #: stored artifacts that were used
    misses: int = 0  #: lookups that found no artifact that could be used
    made: int = 0  #: recorded entries, compiled programs, tuned kernels
    refused: int = 0  #: calls that could not be recorded, or programs that may not be compiled
    making_ms: float = 0.0
    load_ms: float = 0.0  #: time of loading and checking the artifacts of hits
    saved_ms: float = 0.0  #: time of the same work without the cache, minus load_ms
    miss_reasons: tuple[str, ...] = ()  #: reasons of misses ("decode: no entry"), the first 64

    def __add__(self, other: KindStatistics) -> KindStatistics:
        mine, others = dataclasses.astuple(self), dataclasses.astuple(other)
        return KindStatistics(*(one + more for one, more in zip(mine, others)))


@dataclasses.dataclass(frozen=True)
class RemoteStatistics:
    """Counters of a remote (Config.remote) in this process. Times are in milliseconds."""

    label: str  #: its URL without secrets and attributes
    hits: int = 0  #: objects that it gave, and lists of headers of a function
    misses: int = 0  #: those that it did not have
    puts: int = 0  #: objects that were sent
    bytes_read: int = 0
    bytes_left: int = 0  #: not fetched, because an object's header said that it does not fit
    bytes_written: int = 0
    read_ms: float = 0.0
    write_ms: float = 0.0
    skipped: int = 0  #: look-ups that went on without it while it did not answer
    errors: Mapping[str, int] = dataclasses.field(default_factory=dict)  #: failures by the word of their code: "io_failed", "untrusted"

    def __add__(self, other: RemoteStatistics) -> RemoteStatistics:
        failures = {word: self.errors.get(word, 0) + other.errors.get(word, 0) for word in {**self.errors, **other.errors}}
        counters = [field.name for field in dataclasses.fields(self)][1:-1]
        return RemoteStatistics(self.label, **{name: getattr(self, name) + getattr(other, name) for name in counters}, errors=failures)


@dataclasses.dataclass(frozen=True)
class Statistics:
    """A cache's counters in this process, and its folder."""

    folder: str
    kinds: Mapping[str, KindStatistics] = dataclasses.field(default_factory=dict)  #: counters of "entries", "compiled", "tuned" and "profiles"
    cache_faults: int = 0  #: failures of the disk and damaged files: they cost time only
    untrusted: int = 0  #: entries that were refused for their signature
    images_loaded: int = 0
    captures_written: int = 0
    captures_paired: int = 0
    captures_ignored: int = 0
    remotes: tuple[RemoteStatistics, ...] = ()  #: in the order of Config.remote

    def __add__(self, other: Statistics) -> Statistics:
        kinds = {kind: counters + other.kinds[kind] for kind, counters in self.kinds.items()}
        counters = {name: getattr(self, name) + getattr(other, name) for name in _COUNTERS}
        remotes = {one.label: one for one in self.remotes}
        for one in other.remotes:
            remotes[one.label] = remotes[one.label] + one if one.label in remotes else one
        return Statistics(self.folder, kinds, **counters, remotes=tuple(remotes.values()))


_COUNTERS = [field.name for field in dataclasses.fields(Statistics)][2:-1]


@dataclasses.dataclass(frozen=True)
class Spec:
    """A function's inputs, outputs, states and scalars. All their names must differ."""

    inputs: Mapping[str, Tensor] = dataclasses.field(default_factory=dict)
    outputs: Mapping[str, Tensor] = dataclasses.field(default_factory=dict)
    states: Mapping[str, Array] = dataclasses.field(default_factory=dict)
    read_only: frozenset[str] = frozenset()  # the states that the function only reads
    scalars: Mapping[str, Scalar] = dataclasses.field(default_factory=dict)
    facts: Mapping[str, str] = dataclasses.field(default_factory=dict)  # further guards, by name
    code: Sequence[Program] = ()
    environment: Sequence[str] = ()
    version: str = ""
    strict: bool = False
    metadata: str = ""  #: text that entries carry, for Cache.entries; it is not a guard
    recorded_code: Mapping[str, str] = dataclasses.field(default_factory=dict)  #: from Cache.entries, for Cache.load: replaces code and version


@dataclasses.dataclass(frozen=True)
class ArtifactAmount:
    """The amount of artifacts of one kind. `seconds`: the time that making them took (first calls without the cache, compiling, or tuning)."""

    kind: str  # "entries", "images", "constants", "compiled", "tuned", "profiles" or "torch"
    count: int
    bytes: int
    seconds: float
    names: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class CacheInfo:
    """The artifacts that were saved or loaded. `there`: artifacts that the folder had already. `skipped`: artifacts that do not fit, and
    why."""

    kinds: tuple[ArtifactAmount, ...] = ()
    there: Mapping[str, str] = dataclasses.field(default_factory=dict)
    skipped: Mapping[str, str] = dataclasses.field(default_factory=dict)


def _info_of(artifacts: int) -> CacheInfo:
    read = json.loads(library().wg_artifacts_info(artifacts).decode())
    kinds = tuple(ArtifactAmount(**{**kind, "names": tuple(kind["names"])}) for kind in read["kinds"])
    return CacheInfo(kinds, *({one["name"]: one["why"] for one in read[name]} for name in ("there", "skipped")))


def saved_artifacts(caches: Sequence[Cache], include_torch: bool = False) -> tuple[bytes, CacheInfo] | None:
    """The artifacts that this process recorded or hit through these caches, each once; None if there are no such artifacts."""
    lib = library()
    handles = (ctypes.c_void_p * len(caches))(*(cache.pointer for cache in caches))
    options = _c.wg_artifact_options(size=ctypes.sizeof(_c.wg_artifact_options), torch=int(include_torch))
    try:
        handle = lib.create("wg_save_cache_artifacts", handles, len(caches), ctypes.byref(options))
    except errors.NotFound:
        return None
    try:
        return _bytes_of(handle), _info_of(handle)
    finally:
        lib.wg_artifacts_destroy(handle)


def paused_recording(caches: Sequence[Cache]) -> str:
    """Stops keeping device code, for the whole process. Returns why it does not stop; empty: it stopped."""
    handles = (ctypes.c_void_p * len(caches))(*(cache.pointer for cache in caches))
    try:
        library().wg_pause_recording(handles, len(caches))
    except errors.Unsupported as error:
        return str(error)
    return ""


def _bytes_of(artifacts: int) -> bytes:
    size = ctypes.c_uint64()
    start = library().wg_artifacts_bytes(artifacts, ctypes.byref(size))
    return ctypes.string_at(start, size.value)


@dataclasses.dataclass(frozen=True)
class PreloadProgress:
    """The progress of Cache.preload. failed: number of entries that are damaged, or that the driver refused. function: the function of the
    last entry; "" when all are restored."""

    loaded: int
    failed: int
    total: int
    elapsed_ms: float
    function: str


def _preloaded(now: Any, function: str) -> PreloadProgress:
    return PreloadProgress(now.loaded, now.failed, now.total, now.elapsed_ms, function)


class Cache(Handle):
    """The cache of one model in one process. If its folder cannot be used, caching is off and `disabled_reason` says why."""

    _what = "cache"

    def __init__(self, model: str, *, config: _config.Config | None = None, cache_dir: _config.Path | None = None, dynamic: bool = False,
                 global_rank: int | None = None, tp_rank: int | None = None, pp_rank: int | None = None) -> None:
        given, lib = config or _config.Config(), library()
        options = _c.wg_cache_options()
        lib.wg_cache_options_init(ctypes.byref(options), ctypes.sizeof(options))
        # Where PyTorch runs, torch/replay/_pausing.py pauses: it knows off: PyTorch's profiler, and counts the replays of all caches.
        options.pauses_recording = int(_frameworks.registered() is None)
        pairs = [_c.wg_key_value(key.encode(), value.encode()) for key, value in given.model_config.items()]
        owners = (ctypes.c_uint32 * len(given.trusted_owners))(*given.trusted_owners)
        options.model, options.cache_dir = model.encode(), text_or_none(None if cache_dir is None else str(cache_dir))
        options.config, options.config_count = array_of(_c.wg_key_value, pairs), len(pairs)
        options.dynamic, options.policy = int(dynamic), _config.POLICIES[given.policy]
        options.trusted_owners, options.trusted_owner_count = owners, len(owners)
        options.sign_with_file, options.accept_file = text_or_none(given.sign_with_file or None), text_or_none(given.accept_file or None)
        if given.kinds is not None:
            codes = [_config.KINDS[kind] for kind in given.kinds]
            options.kinds, options.kind_count = (ctypes.c_int32 * max(len(codes), 1))(*codes), len(codes)    # no kind needs an array too
        limits = [_c.wg_kind_bytes(_config.KINDS[kind], size) for kind, size in given.max_bytes_by_kind.items()]
        options.max_bytes_by_kind, options.max_bytes_by_kind_count = array_of(_c.wg_kind_bytes, limits), len(limits)
        packed = [_c.wg_kind_compression(_config.KINDS[kind], one.level, one.above) for kind, one in given.compression.items()]
        options.compression, options.compression_count = array_of(_c.wg_kind_compression, packed), len(packed)
        options.profile = 0 if given.profile is None else 1 if given.profile else -1
        bundles = [os.fspath(file).encode() for file in given.bundles]
        options.bundles, options.bundle_count = array_of(ctypes.c_char_p, bundles), len(bundles)
        if given.remote is not None:
            urls = [url.encode() for url in given.remote]
            options.remotes, options.remote_count = (ctypes.c_char_p * max(len(urls), 1))(*urls), len(urls)  # no remote needs an array too
        options.cache_key_tag = text_or_none(given.cache_key_tag or None)
        for name in ("world_size", "max_variants", "probing_ms", "max_bytes", "max_files", "record_wait_ms", "remote_deadline_ms"):
            setattr(options, name, getattr(given, name))
        for name in ("accept_newer_driver", "share_with_group", "verify_on_load", "require_signed"):
            setattr(options, name, int(getattr(given, name)))
        for name, rank in (("global_rank", global_rank), ("tp_rank", tp_rank), ("pp_rank", pp_rank)):
            setattr(options, name, -1 if rank is None else rank)
        super().__init__(lib.create("wg_cache_open", ctypes.byref(options)), lib.wg_cache_close)
        self.model = model

    @property
    def directory(self) -> str:
        """The absolute path of the cache's folder."""
        return str(library().wg_cache_directory(self.pointer).decode())

    @property
    def disabled_reason(self) -> str:
        """Why caching is off; empty when it works."""
        return str(library().wg_cache_disabled_reason(self.pointer).decode())

    def summary(self) -> str:
        """One line with the hits, the misses and the time that was saved."""
        return library().text("wg_cache_summary", self.pointer)

    def readable(self, function: str) -> str:
        """The function's entries as text, as `warmgraph show` prints them."""
        return library().text("wg_cache_readable", self.pointer, function.encode())

    def statistics(self) -> Statistics:
        found = _c.wg_statistics(size=ctypes.sizeof(_c.wg_statistics))
        library().wg_cache_statistics(self.pointer, ctypes.byref(found))
        kinds = {kind: self._kind_statistics(_config.KINDS[kind]) for kind in _COUNTED}
        remotes = tuple(RemoteStatistics(**one) for one in json.loads(library().text("wg_cache_remote_statistics", self.pointer)))
        return Statistics(self.directory, kinds, **{name: getattr(found, name) for name in _COUNTERS}, remotes=remotes)

    def _kind_statistics(self, kind: int) -> KindStatistics:
        found = _c.wg_kind_statistics(size=ctypes.sizeof(_c.wg_kind_statistics))
        library().wg_cache_kind_statistics(self.pointer, kind, ctypes.byref(found))
        reasons = library().text("wg_cache_miss_reasons", self.pointer, kind)
        counters = [field.name for field in dataclasses.fields(KindStatistics)][:-1]
        return KindStatistics(**{name: getattr(found, name) for name in counters}, miss_reasons=tuple(reasons.splitlines()))

    def preload(self, functions: Sequence[str] = (), device: Device | None = None, *, wait: bool = False,
                progress: Callable[[PreloadProgress], Any] | None = None) -> PreloadProgress | None:
        """Restores entries before the calls that need them, in threads of the cache, which pause during first calls.

        functions: names of functions, which need not be wrapped yet; restores each function's last used entry that fits `device`. A name
        that ends in "*" stands for all functions of the model with this beginning. None: all entries of the functions that exist now. wait:
        wait until all are restored, return the counts, and call `progress` after each. Without `wait`, returns None at once. A call
        restores an entry that is not restored yet, or waits for it if it is being restored. An entry that cannot be used counts as failed,
        and raises nothing. Raises InvalidArgument for an impossible function name, for names without a device, and for `progress` without
        `wait`.
        """
        if progress is not None and not wait:
            raise errors.InvalidArgument("progress is given without wait: pass wait=True")
        names = [name.encode() for name in functions]
        options = _c.wg_preload_options(size=ctypes.sizeof(_c.wg_preload_options), wait=_c.wg_preload_all if wait else _c.wg_preload_none)
        options.functions = (ctypes.c_char_p * len(names))(*names) if names else None
        options.function_count = len(names)
        options.device = device.pointer if device is not None else None
        if progress is not None:
            told = progress

            def tell(now: Any, function: bytes, _user: Any) -> None:
                told(_preloaded(now.contents, function.decode()))

            options.progress = kind_of(_c.wg_preload_options, "progress")(tell)
        if not wait:
            library().wg_cache_preload(self.pointer, ctypes.byref(options), None)
            return None
        preload = library().create("wg_cache_preload", self.pointer, ctypes.byref(options))
        try:
            now = _c.wg_preload_progress(size=ctypes.sizeof(_c.wg_preload_progress))
            library().wg_preload_progress_of(preload, ctypes.byref(now))
        finally:
            library().wg_preload_destroy(preload)
        return _preloaded(now, "")

    def clear(self, function: str | None = None, *, kind: str = "entries") -> int:
        """Removes this rank's entries of one function (None: of all functions), or all files of another kind in the folder: "compiled", "tuned",
        "profiles" or "torch". "all": the files of each kind. Returns the number of removed files, not counting the images of entries.
        InvalidArgument: another kind, or `function` with a kind that belongs to no function."""
        removed = ctypes.c_uint64()
        library().wg_cache_clear(self.pointer, text_or_none(function), kind.encode(), ctypes.byref(removed))
        return removed.value

    def save_cache_artifacts(self, *, include_torch: bool = False) -> tuple[bytes, CacheInfo] | None:
        """The entries that this process recorded or hit through this cache, with the artifacts that they need, as a bundle's bytes; None if
        there are no such entries. include_torch: also PyTorch's compiled code (put_artifact); InvalidArgument when there is no key to
        sign the bundle."""
        return saved_artifacts([self], include_torch)

    def load_cache_artifacts(self, device: Device, artifacts: bytes) -> CacheInfo:
        """Puts a bundle's bytes into the folder. Skips and names artifacts that do not fit the device, its driver and the environment.
        Existing artifacts are not replaced."""
        lib = library()
        handle = lib.create("wg_load_cache_artifacts", self.pointer, device.pointer, artifacts, len(artifacts))
        try:
            return _info_of(handle)
        finally:
            lib.wg_artifacts_destroy(handle)

    def put_artifact(self, kind: str, facts: Mapping[str, str], data: bytes) -> None:
        """Keeps bytes that the program made under a kind and facts. kind: "torch", for the bytes of torch.compiler.save_cache_artifacts(),
        which hold pickles: the cache signs them. Untrusted: the cache has no key to sign with. InvalidArgument: another kind."""
        pairs = [_c.wg_key_value(key.encode(), value.encode()) for key, value in facts.items()]
        library().wg_cache_put_artifact(self.pointer, kind.encode(), array_of(_c.wg_key_value, pairs), len(pairs), data, len(data))

    def artifact(self, kind: str, facts: Mapping[str, str]) -> bytes | None:
        """The bytes that put_artifact() kept under this kind and these facts; None: there are no such bytes. Untrusted: no accepted key
        signed them."""
        lib, pairs = library(), [_c.wg_key_value(key.encode(), value.encode()) for key, value in facts.items()]
        try:
            handle = lib.create("wg_cache_get_artifact", self.pointer, kind.encode(), array_of(_c.wg_key_value, pairs), len(pairs))
        except errors.NotFound:
            return None
        try:
            return _bytes_of(handle)
        finally:
            lib.wg_artifacts_destroy(handle)

    def check_bundle(self, device: Device, file: _config.Path) -> dict[str, Any]:
        """Judges which artifacts of a bundle file fit the device. It reads only the header, the index and tuned configurations. For the result
        see wg_cache_check_bundle in warmgraph.h."""
        found: dict[str, Any] = json.loads(library().text("wg_cache_check_bundle", self.pointer, device.pointer, os.fspath(file).encode()))
        return found

    def wrap(self, name: str, device: Device, spec: Spec, body: Callable[[Run], Any]) -> Function:
        """Wraps `body`, which enqueues the function's work. A recording calls `body` more than once, and it must enqueue the same work each
        time."""
        return Function(self, name, device, spec, body)

    def entries(self, name: str, device: Device, *, spec: Spec | None = None, most: int | None = None) -> list[dict[str, Any]]:
        """Lists the stored entries of a function, the last used first, at most `most`, as wg_cache_entries in warmgraph.h describes them.

        spec: lists only entries whose facts hold here and whose inputs and states look like the spec's, which needs a version. Outputs are not
        compared: a caller may learn them from the entry. Reads headers alone, and no more than it needs.
        """
        query, keep = _c.wg_entry_query(size=ctypes.sizeof(_c.wg_entry_query)), list[Any]()
        if most is not None:
            if most < 1:
                raise errors.InvalidArgument(f"most is {most}, expected at least 1")
            query.most = most
        if spec is not None:
            raw, keep = _raw_spec(name, spec)
            query.spec = ctypes.pointer(raw)
        found = _entries(self, device, name.encode(), query)
        del keep
        return found

    def load(self, name: str, device: Device, spec: Spec) -> Function:
        """A function without code, for replay only. It uses the version of the recording, or the recorded_code from entries()."""
        return Function(self, name, device, spec, None)


class Function(Handle):
    """A function of a cache, called with named arrays and numbers."""

    _what = "function"

    def __init__(self, cache: Cache, name: str, device: Device, spec: Spec, body: Callable[[Run], Any] | None,
                 destroyed: Callable[[], Any] = lambda: None) -> None:
        self.cache, self.name, self.device, self.spec, self._body = cache, name, device, spec, body
        self._calls = threading.local()
        lib, (raw, keep) = library(), _raw_spec(name, spec)
        itself = weakref.ref(self)

        def run_body(recorder: int, _user: Any) -> int:
            function = itself()
            return function._run_body(recorder) if function is not None else 1

        callback = _c.wg_callback(run_body)
        if body is None:
            pointer = lib.create("wg_cache_load", cache.pointer, device.pointer, ctypes.byref(raw))
        else:
            pointer = lib.create("wg_wrap", cache.pointer, device.pointer, ctypes.byref(raw), callback, None)
        del keep

        def destroy(one: int, _callback: Any = callback) -> None:  # the default argument keeps the callback alive
            lib.wg_function_destroy(one)
            destroyed()

        super().__init__(pointer, device.later(destroy))

    def __call__(self, arguments: Mapping[str, Any], regions: Sequence[tuple[str, Array]] = (), stream: int | None = None) -> str:
        """Enqueues the function in the device's default stream, or in `stream` (the library's handle). Returns the outcome. `regions`:
        arrays that the body uses, with their names."""
        call = BodyCall(self.name, tuple(regions))
        args, keep = _raw_arguments(self.spec, arguments)
        outcome = ctypes.c_int32(-1)
        before = getattr(self._calls, "now", None)
        self._calls.now = call
        try:
            library().wg_call(self.pointer, self.device.stream if stream is None else stream, args, len(keep), ctypes.byref(outcome))
        except errors.Error as error:
            if call.raised is not None:
                raise call.raised from None
            raise error
        finally:
            self._calls.now = before
        if call.raised is not None and not isinstance(call.raised, Exception):  # a capture raised this error, after the answer was computed
            raise call.raised
        return OUTCOMES.get(outcome.value, "unknown")

    def bind(self, state: str, memory: Array) -> None:
        """Moves a state to other memory of the same size."""
        library().wg_bind(self.pointer, state.encode(), memory._memory())

    def report(self) -> Report:
        return report_of(self.pointer)

    def misses(self) -> str:
        """The last 16 misses of this function in this process, newest first, with the facts that differed."""
        return library().text("wg_function_misses", self.pointer)

    def _run_body(self, recorder: int) -> int:
        call: BodyCall | None = getattr(self._calls, "now", None)
        try:
            assert self._body is not None
            if call is None:
                raise errors.NotRecordable(f"'{self.name}' is used to record outside a call")
            call.count += 1
            with Run(self.name, self.device, recorder, call.regions, call.count == 1) as run:
                self._body(run)
            return 0
        except BaseException as error:  # no exception may pass through C code; __call__ raises it afterwards
            if call is not None:
                call.raised = error
            why = str(error) if isinstance(error, errors.NotRecordable) else f"it raises {type(error).__name__}: {error}"
            try:
                library().wg_recorder_fail(recorder, _c.wg_not_recordable, why.encode("utf-8", "replace"))
            except errors.NotRecordable:  # this error is expected
                pass
            return 1

    @property
    def runs(self) -> int:
        """How often the body has run in this thread's current call: the first run is the answer, the others are captures."""
        return int(self._calls.now.count)


def _entries(cache: Cache, device: Device, name: bytes, query: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(library().text("wg_cache_entries", cache.pointer, device.pointer, name, ctypes.byref(query)))
    return found


def found_metadata(cache: Cache, device: Device, raw_spec: Any) -> str | None:
    """The metadata of the last used entry under this spec; None: there is no such entry, or the folder cannot be read."""
    query = _c.wg_entry_query(size=ctypes.sizeof(_c.wg_entry_query), spec=ctypes.pointer(raw_spec), most=1, metadata_only=1)
    try:
        found = _entries(cache, device, raw_spec.name, query)
    except (errors.IoFailed, errors.PermissionDenied):  # the library counted and logged it
        return None
    return str(found[0]["metadata"]) if found else None


def stored_metadata(cache: Cache, device: Device, name: str, most: int) -> list[str]:
    """The metadata of a function's entries, the last used first; [] if the folder cannot be read."""
    query = _c.wg_entry_query(size=ctypes.sizeof(_c.wg_entry_query), spec=None, most=most, metadata_only=1)
    try:
        return [str(one["metadata"]) for one in _entries(cache, device, name.encode(), query)]
    except (errors.IoFailed, errors.PermissionDenied):  # the library counted and logged it
        return []


def report_of(function: int) -> Report:
    lib = library()
    handle = lib.create("wg_function_report", function)
    try:
        phases = [(lib.wg_report_phase_name(handle, i).decode(), lib.wg_report_phase_ms(handle, i))
                  for i in range(lib.wg_report_phase_count(handle))]
        return Report(lib.wg_report_function(handle).decode(), OUTCOMES.get(lib.wg_report_outcome(handle), "unknown"),
                      lib.wg_report_reason(handle).decode(), lib.wg_report_entry(handle).decode(),
                      lib.wg_report_first_call_ms(handle), tuple(phases), lib.wg_report_recording_bytes(handle))
    finally:
        lib.wg_report_destroy(handle)


@dataclasses.dataclass
class BodyCall:
    name: str
    regions: tuple[tuple[str, Array], ...]
    count: int = 0
    raised: BaseException | None = None


def _declared(tensors: Mapping[str, Tensor], keep: list[Any]) -> Any:
    rows = []
    for name, tensor in tensors.items():
        sizes = pointer_array(tensor.shape)
        keep.append(sizes)
        rows.append(_c.wg_tensor_decl(name.encode(), dtypes.CODES[tensor.dtype], len(tensor.shape), sizes))
    return array_of(_c.wg_tensor_decl, rows)


def _raw_spec(name: str, spec: Spec) -> tuple[Any, list[Any]]:
    """A wg_function_spec, and the objects that must stay alive until the C function that gets it returns."""
    keep: list[Any] = []
    raw = _c.wg_function_spec(size=ctypes.sizeof(_c.wg_function_spec), name=name.encode(), version=spec.version.encode(),
                              strict=int(spec.strict), metadata=spec.metadata.encode() or None)
    states, layouts = [], []
    for state, memory in spec.states.items():
        access = _c.wg_access_read_only if state in spec.read_only else _c.wg_access_read_write
        sizes, strides = pointer_array(memory.shape), pointer_array(memory.strides)
        keep += [sizes, strides]
        states.append(_c.wg_state_decl(state.encode(), memory._memory(), access))
        layouts.append(_c.wg_layout(state.encode(), dtypes.CODES[memory.dtype], memory.ndim, sizes, strides))
    scalars = [_c.wg_scalar_decl(one.encode(), dtypes.CODES[kind.dtype], int(kind.low is not None), kind.low or 0, kind.high or 0)
               for one, kind in spec.scalars.items()]
    facts = [_c.wg_key_value(key.encode(), value.encode()) for key, value in spec.facts.items()]
    recorded = [_c.wg_key_value(key.encode(), value.encode()) for key, value in spec.recorded_code.items()]
    programs = [ctypes.c_void_p(program.pointer) for program in spec.code]
    environment = [variable.encode() for variable in spec.environment]
    lists: list[tuple[str, str, Any, list[Any]]] = [
        ("states", "state_count", _c.wg_state_decl, states), ("layouts", "layout_count", _c.wg_layout, layouts),
        ("scalars", "scalar_count", _c.wg_scalar_decl, scalars), ("config", "config_count", _c.wg_key_value, facts),
        ("code", "code_count", ctypes.c_void_p, programs), ("environment", "environment_count", ctypes.c_char_p, environment),
        ("recorded_code", "recorded_code_count", _c.wg_key_value, recorded),
    ]
    for field, count, kind, rows in lists:
        setattr(raw, field, array_of(kind, rows))
        setattr(raw, count, len(rows))
    raw.inputs, raw.input_count = _declared(spec.inputs, keep), len(spec.inputs)
    raw.outputs, raw.output_count = _declared(spec.outputs, keep), len(spec.outputs)
    keep += [states, layouts, scalars, facts, recorded, programs, environment]
    return raw, keep


def _raw_arguments(spec: Spec, arguments: Mapping[str, Any]) -> tuple[Any, list[Any]]:
    args, keep = (_c.wg_arg * max(len(arguments), 1))(), []
    for arg, (name, value) in zip(args, arguments.items()):
        keep.append(value)
        arg.name = name.encode()
        if not isinstance(value, Array):
            _set_number(arg, spec.scalars[name].dtype, value)
        else:
            arg.memory = value._memory()
            arg.kind = _c.wg_arg_memory if name in spec.states else _c.wg_arg_tensor
            if name not in spec.states:
                arg.dtype, arg.rank = dtypes.CODES[value.dtype], value.ndim
                arg.sizes, arg.strides = pointer_array(value.shape), pointer_array(value.strides)
    return args, keep


def _set_number(arg: Any, dtype: str, value: Any) -> None:
    import numpy

    kind = dtypes.numpy_dtype(dtype)
    if kind.kind in "iu":
        whole, limits = int(value), numpy.iinfo(kind)
        if whole != value or not limits.min <= whole <= limits.max:
            raise errors.InvalidArgument(f"'{arg.name.decode()}' is {value}, expected a whole number of type {dtype}")
        value = whole
    arg.kind, arg.dtype = _c.wg_arg_number, dtypes.CODES[dtype]
    arg.bits = int.from_bytes(numpy.array(value, kind).tobytes().ljust(8, b"\0"), "little")
