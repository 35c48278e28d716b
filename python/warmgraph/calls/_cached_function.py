"""Implements cache_compile: a Python function that enqueues work is recorded once, and replayed in every later process."""
from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
import logging
import operator
import os
import sys
import threading
import types
from typing import Any, Callable, Dict, Iterable, Mapping

from warmgraph import dtypes, errors
from warmgraph.arrays import _current_run
from warmgraph.arrays._array_arguments import TorchTensorError, expect_apart
from warmgraph.arrays._device import Array, Device, Program
from warmgraph.arrays._run import Run
from warmgraph.arrays._shapes import Tensor, like
from warmgraph.calls import _names, _refusals
from warmgraph.calls._array_call import RESULT, ArrayCall, ArrayVariant, StagingArrays, flat, rebuilt
from warmgraph.calls._known_calls import KnownCalls
from warmgraph.calls._side_effects import SideEffect
from warmgraph.calls._steady_calls import NOT_ALIKE
from warmgraph.config import Config, Path, unknown_option
from warmgraph.core.binding import _fork, _frameworks
from warmgraph.core.cache._cache import Report, Scalar, Spec
from warmgraph.core.cache._pools import CacheLocation, folder_of, pool_of
from warmgraph.reading import _array_reader, _plain_values, _reached_code
from warmgraph.reading._walker import WalkResult

_log = logging.getLogger("warmgraph")
HALVES = ("forward", "backward")


@dataclasses.dataclass
class Options:
    """The arguments of cache_compile."""

    config: Config
    dynamic: bool = True
    cache_dir: Path | None = None
    global_rank: int | None = None
    tp_rank: int | None = None
    pp_rank: int | None = None
    name: str | None = None
    version: str | None = None
    device: Any = None
    code: tuple[Program, ...] = ()
    outputs: Any = None
    scalars: Mapping[str, Scalar] = dataclasses.field(default_factory=dict)
    read_only: tuple[str, ...] = ()
    compile: Any = None
    borrow: bool = False
    pair: bool = False


class FunctionState:
    """The state that a wrapper shares with its bound forms. Loaded graphs belong to the function, so all objects share them."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.known = KnownCalls()
        self.reached: _reached_code.ReachedCode | None = None
        self.preloaded_on: int | None = None  # the device for which this function's graphs are preloaded (torch/replay/_preload.py)
        self.refused: set[str] = set()  # reasons that were already logged
        self.last_refusal = ""
        self.runs_as_it_is: dict[str, _refusals.Refusal] = {}  # refused calls, by the reason of the refusal
        self.refused_report: Report | None = None  # the report of the last refused call; None after a call that was recorded or replayed
        self.signature: inspect.Signature | None = None  # the signature of a method, without the parameter of its object
        self.frozen: dict[int, Any] = {}  # objects with frozen weights, by their id
        self.torchs: Any = None  # a torch.TorchFunction after the first call with PyTorch's tensors
        self.given_up: dict[int, Any] = {}  # by an object's id: a RefusedCalls (torch/replay/_refused_calls.py), if all its calls are refused
        self.steady = self.known.later  # a shortcut to `known.later`, because every call looks there first


def _defaults_of(func: Any) -> tuple[Any, Any, list[Any]]:
    """Returns (Python function, defaults, keyword-only defaults), which match the signature."""
    code = _reached_code.function_of(func) or func
    return code, getattr(code, "__defaults__", None), [*(getattr(code, "__kwdefaults__", None) or {}).values()]


class BoundArguments(Dict[str, Any]):
    """A call's arguments by name, with defaults. The caller gave the first `positional` ones by position, and those in `names` by name."""

    positional: int
    names: frozenset[str]


class CachedFunction:
    """A function with a cache. Its first call loads or records, later calls replay.

    If it is an attribute of a class, it binds to objects like a method; the objects share entries and loaded graphs. A copied or unpickled
    bound wrapper is unbound: wrap the copy's method.
    """

    def __init__(self, func: Callable[..., Any] | None, options: Options, description: str = "", module: Any = None) -> None:
        """`module`: a PyTorch module that `func` calls."""
        self.options = options
        self.module = module
        self._function = func
        self._description = description or _described(func)
        self._shared = FunctionState()
        self._object = id(getattr(func, "__self__", None))  # the key of its known later calls; wrappers without a function share none
        _frameworks.load_quietly()  # imports the framework's half now, so that the first call does not wait for it
        if func is not None:
            functools.update_wrapper(self, func, updated=())
            self._sign()

    def __repr__(self) -> str:
        return f"<warmgraph function {self._description}{'' if self._function is not None else ' (unbound)'}>"

    # --- Binding to objects, and copies

    def __set_name__(self, owner: type, name: str) -> None:
        framework = _frameworks.registered()
        if framework is not None and not self.options.config.model:
            framework.forget_preload(self)  # the class of the object gives the model's name, and the object is not known yet

    def __get__(self, instance: Any, owner: type | None = None) -> CachedFunction:
        if instance is None or self._function is None or self.module is not None:
            return self
        bound = _BoundFunction.__new__(_BoundFunction)
        bound._unbound, bound._instance = self, instance
        bound._shared, bound._object, bound.__module__ = self._shared, id(instance), self.__module__
        return bound

    def __deepcopy__(self, memo: dict[int, Any]) -> CachedFunction:
        is_bound = isinstance(self._function, types.MethodType)
        return CachedFunction(None if is_bound else self._function, copy.copy(self.options), self._description)

    def __reduce__(self) -> Any:
        options = {field.name: getattr(self.options, field.name) for field in dataclasses.fields(Options)}
        plain = {name: value for name, value in options.items() if name in _PICKLED}
        plain["config"] = {name: getattr(self.options.config, name) for name in vars(self.options.config)}
        return _unpickled, (self._description, plain)

    # --- Calls

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if _current_run.tracing and _current_run.tracing[0]():  # PyTorch is tracing the caller, and should trace the function itself
            return self._itself()(*args, **kwargs)
        known = self._shared.steady.get(self._object)
        if known:
            result = known[0].call(args, kwargs)
            if result is not NOT_ALIKE:
                return result
        if self._function is None:
            raise errors.InvalidArgument(f"this wrapper of {self._description} was copied or unpickled, so it belongs to no object: wrap the method "
                                         "of the new object (warmgraph.cache_compile)")
        if _current_run.current() is not None:  # another recorded function is running and calls this one, which is then a part of it
            return self._function(*args, **kwargs)
        given_up = self._shared.given_up.get(self._object)
        if given_up is not None:
            result = given_up.call(args, kwargs)
            if result is not NOT_ALIKE:
                return result
        if known and len(known) > 1:
            result = self._shared.torchs.again(self._object, args, kwargs)
            if result is not NOT_ALIKE:
                return result
        bound = self._bind(args, kwargs)
        torchs = self._find_torch_function(bound)
        if torchs is not None:
            return torchs(self, getattr(self._function, "__self__", None), bound, args, kwargs)
        try:
            found = self._read(bound)
        except TorchTensorError:  # a PyTorch tensor was found in the function's object or closure
            torchs = self._find_torch_function(bound, is_known=True)
            return torchs(self, getattr(self._function, "__self__", None), bound)
        except errors.NotRecordable as refusal:
            return self._run_uncached(bound, str(refusal))
        if self.options.pair:
            raise errors.InvalidArgument(f"'{self._name()}' is wrapped with pair=True, but got no PyTorch tensor: gradients are recorded only of "
                                         "PyTorch functions")
        self._expect_scalars(bound)
        why = self._shared.known.why_refused(found.facts)
        if why is not None:
            return self._run_uncached(bound, why)
        return self._answer(bound, found)

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        if not self._has_same_defaults():
            self._sign()
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = BoundArguments(bound.arguments)
        given.positional, given.names = len(args), frozenset(kwargs)
        return given

    def _sign(self) -> None:
        """Reads the signature of the function; for a module, the signature of its forward."""
        signed = self._signed()
        try:
            self._signature, self._defaults = inspect.signature(signed), _defaults_of(signed)
        except (TypeError, ValueError):
            if self.module is None:
                raise
            assert self._function is not None
            self._signature, self._defaults = inspect.signature(self._function), _defaults_of(self._function)

    def _signed(self) -> Callable[..., Any]:
        """The callable that has the signature."""
        assert self._function is not None
        if self.module is None:
            return self._function
        framework = _frameworks.load()
        return (framework.signed_by(self.module) if framework is not None else None) or self._function

    def _has_same_defaults(self) -> bool:
        code, defaults, named = self._defaults
        if self.module is not None and _defaults_of(self._signed())[0] is not code:
            return False
        if getattr(code, "__defaults__", None) is not defaults:
            return False
        now = getattr(code, "__kwdefaults__", None)
        return not named if now is None else len(now) == len(named) and all(map(operator.is_, now.values(), named))

    def _find_torch_function(self, bound: dict[str, Any], is_known: bool = False) -> Any:
        """The object that answers calls on PyTorch's tensors; None for other calls. Does not import PyTorch."""
        framework = _frameworks.load() if self._shared.torchs is None else None
        if framework is not None and (is_known or framework.is_call(getattr(self._function, "__self__", None), bound.values())):
            with self._shared.lock:
                self._shared.torchs = self._shared.torchs or framework.function_of(self)
        return self._shared.torchs

    def _reach(self) -> _reached_code.ReachedCode:
        assert self._function is not None
        with self._shared.lock:
            if self._shared.reached is None or not self._shared.reached.is_current():
                self._shared.reached = _reached_code.ReachedCode(self._function)
            return self._shared.reached

    def _read(self, bound: dict[str, Any], is_tolerant: bool = False) -> WalkResult:
        with self._shared.lock:  # the lock is needed, because reading may add code to the shared set
            return _array_reader.read(self._reach(), bound, getattr(self._function, "__self__", None), self.options.scalars, is_tolerant)

    def _call_function(self, arguments: dict[str, Any]) -> Any:
        assert self._function is not None
        return self._called(self._function, arguments)

    def _itself(self) -> Any:
        return self._function

    def _called(self, function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        """Calls `function` with the same arguments by position and by name as the caller, if they are known: a wrapper's real signature may
        differ from the one that it shows. Default values of plain types are not passed, because the function has them itself."""
        positional: list[Any] = []
        named: dict[str, Any] = {}
        how = arguments if isinstance(arguments, BoundArguments) else None
        for at, (name, parameter) in enumerate(self._signature.parameters.items()):
            is_passed = how is None or at < how.positional or name in how.names
            if how is not None and parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY) and at >= how.positional:
                if is_passed or type(arguments[name]) not in _plain_values.KINDS:
                    named[name] = arguments[name]
            elif parameter.kind is parameter.VAR_POSITIONAL:
                positional += list(arguments.get(name, ()))
            elif parameter.kind is parameter.VAR_KEYWORD:
                named.update(arguments.get(name, {}))
            elif parameter.kind is parameter.KEYWORD_ONLY:
                named[name] = arguments[name]
            else:
                positional.append(arguments[name])
        return function(*positional, **named)

    def _answer(self, bound: dict[str, Any], found: WalkResult) -> Any:
        call = ArrayCall(self, bound, found, self._device(found))
        staging: dict[Any, list[Array]] = {}
        spare: dict[Any, list[Array]] = {}
        variant: ArrayVariant | None = None
        call.result = self._declared_outputs(bound)
        key = self._key(call)
        with self._shared.lock:
            variant = self._shared.known.variant(key)
            if variant is not None:
                spare = variant.staging()
        taken = StagingArrays(call.device, spare, staging)
        self._place(call, taken)
        if variant is None:
            variant = self._new_variant(key, call)
        self._shared.known.last = variant
        if variant(call) == "refused":
            self._remember_refusal(call, variant.refusal or variant.function.report().reason)
        self._shared.refused_report = None  # the variant's own report replaces it
        result = self._result(call)
        if self._is_hosted(call):
            variant.done_with(staging)
        return result

    def _remember_refusal(self, call: ArrayCall, why: Exception | str) -> None:
        self._shared.last_refusal = text = str(why)
        self._shared.refused.add(text)  # the library has logged this reason already
        _refusals.note(self, text, lambda: call.device, is_counted=text not in self._shared.runs_as_it_is)
        # A counter has another value at each call. Without the following, the function would be tried and refused again for each value.
        if not isinstance(why, SideEffect) or why.change.was is None or why.change.now is None:
            return
        with self._shared.lock:
            if self._shared.known.is_changed_again(getattr(self._function, "__self__", None), why.change):
                self._shared.known.refuse(call.found.facts, str(why))

    def _place(self, call: ArrayCall, taken: StagingArrays) -> None:
        """Assigns device memory to all arrays of the call."""
        expect_apart([(name, leaf.value) for name, leaf in call.found.arguments if leaf.is_host])
        declared = [path for path, one in flat(RESULT, call.result) if isinstance(one, Tensor)]
        call.names = _names.binding_names([*(path for path, _ in call.found.leaves()), *declared, *self.options.scalars])
        for path, leaf in call.found.leaves():
            array = leaf.on(call.device, taken.array)
            call.values[call.names[path]] = call.given[id(leaf.value)] = array
            call.regions.append((call.names[path], array))
        for path, tensor in flat(RESULT, call.result):
            if isinstance(tensor, Tensor):
                array = taken.array(tensor.shape, tensor.dtype) if self._is_hosted(call) else call.device.empty(tensor.shape, tensor.dtype)
                call.outputs.append(array)
                call.values[call.names[path]] = array
                call.regions.append((call.names[path], array))
        for name in self.options.scalars:
            call.values[call.names[name]] = call.bound[name]

    def _is_hosted(self, call: ArrayCall) -> bool:
        return any(leaf.is_host for _, leaf in call.found.arguments)

    def _result(self, call: ArrayCall) -> Any:
        """The declared result with this call's arrays. They are NumPy arrays if an argument was a NumPy array."""
        outputs, hosted = iter(call.outputs), self._is_hosted(call)
        for path, leaf in call.found.arguments:
            leaf.done(call.values[call.names[path]])

        def filled(value: Any) -> Any:
            if isinstance(value, Tensor):
                array = next(outputs)
                return array.numpy() if hosted else array
            return value

        return rebuilt(call.result, filled)

    def _run_uncached(self, bound: dict[str, Any], why: str) -> Any:
        """Runs a function that cannot be recorded. It runs uncached, on the caller's memory."""
        if self.policy == "require_hit":
            raise errors.MissForbidden(f"'{self._name()}' cannot be replayed, and the policy is require_hit: {why}")
        if why not in self._shared.refused:
            self._shared.refused.add(why)
            _log.warning("cannot record '%s': %s", self._name(), why)
        self._shared.last_refusal = why
        found = self._read(bound, is_tolerant=True)
        call = ArrayCall(self, bound, found, self._device(found))
        call.result = self._declared_outputs(bound)
        self._place(call, StagingArrays(call.device, {}, {}))
        _refusals.note(self, why, lambda: call.device)
        with Run(self._name(), call.device, None, ()) as run:
            call.enqueue(run, {name: self._number(name, bound[name]) for name in self.options.scalars})
        return self._result(call)

    def _number(self, name: str, value: Any) -> Any:
        return dtypes.numpy_dtype(self.options.scalars[name].dtype).type(value)

    def _expect_scalars(self, bound: dict[str, Any]) -> None:
        for name in self.options.scalars:
            if name not in bound:
                raise unknown_option(f"'{self._name()}'", name, bound)

    def _declared_outputs(self, bound: dict[str, Any]) -> Any:
        outputs = self.options.outputs
        return self._called(outputs, dict(bound)) if callable(outputs) else outputs

    def _device(self, found: WalkResult) -> Device:
        if isinstance(self.options.device, Device):
            return self.options.device
        if isinstance(self.options.device, str):
            self.options.device = Device(self.options.device)
            return self.options.device  # type: ignore[no-any-return]
        for device in [program.device for program in self.options.code] + found.devices:
            return device
        raise errors.InvalidArgument(f"'{self._name()}' names no device: give cache_compile device=, or use a Program or an Array")

    # --- Names and variants in the library

    def _name(self) -> str:
        return self.options.name or self._name_of_itself()

    def _names(self) -> list[str]:
        """All names that this function has in the cache."""
        return [self._name(), *(half_of(self._name(), half) for half in HALVES if self.options.pair)]

    def _name_of_itself(self) -> str:
        return _names.folder_name(getattr(self._function, "__name__", self._description))

    def _where(self) -> CacheLocation:
        options = self.options
        return CacheLocation(options.config.model or self._model(), folder_of(options.cache_dir), options.dynamic,
                      (options.global_rank, options.tp_rank, options.pp_rank), options.config.copy())

    def _model(self) -> str:
        if self.module is not None:
            return self._name_of_itself()
        owner = getattr(self._function, "__self__", None)
        if owner is not None:
            return _names.folder_name((owner if isinstance(owner, type) else type(owner)).__name__)
        module = getattr(self._function, "__module__", None) or "main"
        if module == "__main__":
            module = os.path.splitext(os.path.basename(getattr(sys.modules["__main__"], "__file__", None) or "main"))[0]
        return _names.folder_name(module.rpartition(".")[2])

    def _version(self, found: WalkResult) -> str:
        return self.options.version or f"python {found.reached.digest()}"

    def _key(self, call: ArrayCall) -> tuple[Any, ...]:
        outputs = tuple((path, one.dtype if isinstance(one, Tensor) else id(type(one))) for path, one in flat(RESULT, call.result))
        return (_fork.generation(), self._where().key(), self._version(call.found), call.device.id, tuple(call.found.facts.items()), outputs)

    def _new_variant(self, key: tuple[Any, ...], call: ArrayCall) -> ArrayVariant:
        programs = list(self.options.code) + [one for one in call.found.programs if all(one is not other for other in self.options.code)]
        inputs = {call.names[path]: like(call.values[call.names[path]]) for path, _ in call.found.arguments}
        outputs = {call.names[path]: one for path, one in flat(RESULT, call.result) if isinstance(one, Tensor)}
        states = {call.names[path]: call.values[call.names[path]] for path, _ in call.found.states}
        scalars = {call.names[name]: scalar for name, scalar in self.options.scalars.items()}
        spec = Spec(inputs, outputs, states, frozenset(call.names[path] for path in self._read_only(call.found)), scalars,
                    call.found.facts, programs, self.options.config.environment, self._version(call.found), self.options.config.strict)
        known = self._shared.known
        with self._shared.lock:
            if key not in known.variants:
                known.keep(key, self.options.config.max_variants, lambda: ArrayVariant(pool_of(self._where()), self._name(), call.device, spec))
            return known.variants[key]  # type: ignore[no-any-return]

    def _read_only(self, found: WalkResult) -> list[str]:
        states = {name for name, _ in found.states}
        for name in self.options.read_only:
            if name not in states:
                raise unknown_option(f"read_only of '{self._name()}'", name, states)
        return list(self.options.read_only)

    # --- Inspection

    @property
    def policy(self) -> str:
        """The value of Config.policy, or of $WARMGRAPH_POLICY by default."""
        given = self.options.config.policy
        return given if given != "default" else os.environ.get("WARMGRAPH_POLICY") or "read_write"

    @property
    def cache_dir(self) -> str:
        """The folder of this function's cache."""
        return pool_of(self._where()).caches[0].directory

    def report(self) -> Any:
        """The report of this function's latest variant, or of the last refused call. None before the first call."""
        if self._shared.refused_report is not None:
            return self._shared.refused_report
        last = self._shared.known.last
        return last.function.report() if last is not None else None

    def freeze_weights(self) -> None:
        """For a function on PyTorch tensors: promises that the tensors and plain values in its object, closures and globals are not
        replaced, so that later calls check only their arguments. Weights may be written in place. Their memory is kept until reset(),
        which ends this, too. Replacing a weight in between has no effect."""
        owner = getattr(self._function, "__self__", None)
        with self._shared.lock:
            self._shared.frozen[id(owner)] = owner
            if self._shared.torchs is not None:
                self._shared.torchs.freeze(owner)

    def reset(self) -> None:
        """Frees the loaded graphs as soon as nothing runs; the next call loads them again."""
        with self._shared.lock:
            self._shared.frozen.clear()
            devices = {id(one.function.device): one.function.device for one in self._shared.known.variants.values()}
            self._shared.known.forget_variants()
            if self._shared.torchs is not None:
                self._shared.torchs.reset()
        for device in devices.values():
            device._collect()


class _BoundFunction(CachedFunction):
    # The wrapper that `object.method` returns, mostly used for a single call. Its members are made on demand, because a later call does not
    # need them.

    __doc__ = property(lambda self: self._unbound.__doc__)
    __slots__ = ("_unbound", "_instance")
    _unbound: CachedFunction
    _instance: Any

    def __getattr__(self, name: str) -> Any:
        if "_function" in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        shared, function = self._unbound._shared, types.MethodType(self._unbound._function, self._instance)  # type: ignore[arg-type]
        if shared.signature is None:
            shared.signature = inspect.signature(function)
        self.__dict__.update(self._unbound.__dict__, _signature=shared.signature, __signature__=shared.signature, _object=id(self._instance),
                             _function=function)
        return getattr(self, name)

    def _itself(self) -> Any:
        return types.MethodType(self._unbound._function, self._instance)  # type: ignore[arg-type]


_PICKLED = ("dynamic", "global_rank", "tp_rank", "pp_rank", "name", "version", "read_only", "borrow", "pair")


def _unpickled(description: str, options: dict[str, Any]) -> CachedFunction:
    return CachedFunction(None, Options(**{**options, "config": Config(**options["config"])}), description)


def half_of(name: str, half: str) -> str:
    """The name of one half of a pair in the cache."""
    return f"{name[:_names.LONGEST_NAME - 1 - len(half)]}.{half}"


def _described(func: Any) -> str:
    return f"{getattr(func, '__module__', None)}.{getattr(func, '__qualname__', type(func).__name__)}"


def cache_compile(func: Callable[..., Any] | None = None, *, config: Config | None = None, dynamic: bool = True, cache_dir: Path | None = None,
                  global_rank: int | None = None, tp_rank: int | None = None, pp_rank: int | None = None, name: str | None = None,
                  version: str | None = None, device: Device | str | None = None, code: Iterable[Program] = (), outputs: Any = None,
                  scalars: Mapping[str, Scalar] = types.MappingProxyType({}), read_only: Iterable[str] = (),
                  compile: bool | dict[str, Any] | None = None, borrow: bool = False, pair: bool = False, **unknown: Any) -> Any:
    """Wraps a function, a bound method, or a torch.nn.Module, also as a decorator. A module is called as usual (`module(*args)`) and has
    the name of its class. Wrapping reads and opens nothing: the first call does. For a function on PyTorch tensors, the graphs that an
    earlier process needed are restored in the background once CUDA runs (Config.preload).

    config: a Config. dynamic: "dynamic" rather than "static" in the folder's name. cache_dir: else $WARMGRAPH_CACHE_DIR, else
    .warmgraph_cache. global_rank, tp_rank, pp_rank: else the launcher's environment. name: the function's folder; else its own name.
    version: your own code identity; else a digest of its code objects. device: a Device or its id; else that of its Programs and
    Arrays. code: Programs that are not found through arguments, attributes, closures and globals. outputs: a Tensor, a structure of them,
    or a function of the arguments that returns one; an argument in it stands for itself. scalars: {argument: Scalar}, numbers that are
    patched at every call. read_only: states (paths such as "self.weights") that the function only reads. compile, for PyTorch: None or True
    compiles with torch.compile(fullgraph=True), a dict gives further arguments of torch.compile, False runs eagerly; an already
    compiled function is not compiled again. borrow, for PyTorch: True returns results in the entry's memory: each call overwrites the results
    of the previous call, and using those tensors then raises RuntimeError. pair, for PyTorch: True records a call under gradients as a forward and
    a backward half, eagerly (compile must not be given); under torch.no_grad() it is an ordinary function.
    """
    options = {one: value for one, value in locals().items() if one not in ("func", "unknown")}
    for one in unknown:
        raise unknown_option("cache_compile", one, options)
    if config is None:
        options["config"] = config = Config()
    if not isinstance(config, Config):
        raise errors.InvalidArgument(f"config is {config!r}, expected a warmgraph.Config")
    config.expect_key()
    if not (compile is None or isinstance(compile, (bool, dict))):
        raise errors.InvalidArgument(f"compile is {compile!r}, expected True, False or a dict of torch.compile's arguments")
    if not isinstance(borrow, bool):
        raise errors.InvalidArgument(f"borrow is {borrow!r}, expected True or False")
    _check_pair(options)
    options.update(code=tuple(code), read_only=tuple(read_only))
    if func is None:
        return functools.partial(cache_compile, **options)
    if any(kind(func) for kind in (inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction)):
        raise errors.InvalidArgument(f"{_described(func)} is a generator or a coroutine, whose call enqueues nothing: wrap a function")
    if isinstance(func, (staticmethod, classmethod)):
        kind = type(func).__name__
        raise errors.InvalidArgument(f"{_described(func)} is a {kind}: put @{kind} above @cache_compile")
    framework = _frameworks.load() if _frameworks.is_module(func) else None
    if framework is not None:
        return _requested(CachedFunction(framework.method_of(func), Options(**options), module=func))
    if _reached_code.function_of(func) is None:
        raise errors.InvalidArgument(f"{func!r} is not a Python function or method: wrap the method that it calls")
    return _requested(CachedFunction(func, Options(**options)))


def _check_pair(options: dict[str, Any]) -> None:
    """Raises InvalidArgument for options that a pair cannot have: a pair is captured eagerly, on its own memory."""
    pair = options["pair"]
    if not isinstance(pair, bool):
        raise errors.InvalidArgument(f"pair is {pair!r}, expected True or False")
    if not pair:
        return
    if options["compile"]:
        raise errors.InvalidArgument(f"pair and compile={options['compile']!r} cannot be used together: pairs are recorded only of eager functions")
    if options["borrow"]:
        raise errors.InvalidArgument("pair and borrow cannot be used together: autograd keeps results for as long as it needs them")
    options["compile"] = False


def _requested(wrapped: CachedFunction) -> CachedFunction:
    framework = _frameworks.registered()
    if framework is not None:
        framework.request_preload(wrapped)
    return wrapped
