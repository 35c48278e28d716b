"""When PyTorch's compiler (Dynamo) traces a function, it notes the values on which the trace depends. This module checks that the reader
makes facts of all these values, so that another process compares them. Only a miss that compiles uses this module, and it never imports
Dynamo."""
from __future__ import annotations

import collections
import contextlib
import dataclasses
import enum
import inspect
import logging
import os
import re
import sys
import threading
import types
from typing import Any, Callable, Iterator, Mapping, Sequence

import torch

from warmgraph import errors
from warmgraph.reading import _plain_values, _reached_code
from warmgraph.reading._walker import Walker
from warmgraph.torch.read import _installed_code, _modules

_log = logging.getLogger("warmgraph")
# The kinds of guards that the reader need not compare, each with the reason.
_NEED_NOTHING = {
    "SHAPE_ENV": "sizes and strides of all tensors and whole numbers of arguments are guards",
    "GRAD_MODE": "answers and captures run under no_grad",
    "DETERMINISTIC_ALGORITHMS": "a fact of _modes.py",
    "GLOBAL_STATE": "facts of _modes.py: autocast, default dtype, precisions, deterministic flags; threads are the host's",
    "DEFAULT_DEVICE": "a fact of _modes.py",
    "TORCH_FUNCTION_STATE": "calls under the caller's modes are not replayed",
    "FUNCTORCH_STACK_MATCH": "calls in vmap are not replayed",
    "AUTOGRAD_SAVED_TENSORS_HOOKS": "nothing is saved under no_grad",
}
# Sources that refer to the trace itself, and not to a value that exists longer.
_OF_THE_TRACE = {"ShapeEnvSource", "GlobalStateSource", "ConstantSource", "EphemeralSource", "SyntheticLocalSource", "TempLocalSource",
                 "BackwardStateSource"}
_WORDS = {"TYPE_MATCH": "the type of", "SEQUENCE_LENGTH": "the length of", "DICT_KEYS_MATCH": "the keys of", "MAPPING_KEYS_CHECK": "the keys of",
          "DICT_CONTAINS": "the keys of", "SET_CONTAINS": "the items of", "HASATTR": "whether there is", "TENSOR_MATCH": "the tensor",
          "CLOSURE_MATCH": "the function", "FUNCTION_MATCH": "the function", "CLASS_MATCH": "the class", "ID_MATCH": "the identity of"}
_CODE = (types.FunctionType, types.MethodType, types.BuiltinFunctionType, types.MethodWrapperType, types.WrapperDescriptorType,
         types.MethodDescriptorType, type)
_CONTAINERS = (dict, list, tuple, set, frozenset, types.MappingProxyType, types.CellType, range, slice)
_PLAIN = (*_plain_values.KINDS, torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Size, torch.Tensor, types.CodeType)
_ABSENT = object()
_MOST_TRACES = 64


@dataclasses.dataclass(frozen=True)
class Guard:
    kind: str
    source: Any  # Dynamo's description of the place where the value was found
    has_value: bool = False  # whether a value existed at this place


@dataclasses.dataclass
class _Trace:
    guards: list[Guard]
    judged_for: set[Any] = dataclasses.field(default_factory=set)


@dataclasses.dataclass(frozen=True)
class Frame:
    """The locals and globals of a traced function."""

    locals: Mapping[str, Any]
    globals: dict[str, Any]

    def fits(self, trace: Sequence[Guard]) -> bool:
        """Whether the trace belongs to this frame: all values that the trace checks must exist in it. A trace of another frame does not fit
        (e.g. the rest of a function after a graph break, which uses values that the function itself made)."""
        scope = {**_helpers(), "L": self.locals, "G": self.globals}
        return all(value_of(_name(one.source), scope) is not _ABSENT for one in trace if one.has_value)


def frames_of(functions: Sequence[Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Frame]:
    """The frames that a call with these arguments makes: one for each of these functions and methods, and one for the function of PyTorch
    that wraps library functions."""
    inline = getattr(sys.modules.get("torch._dynamo.external_utils"), "wrap_inline", None)
    found: list[Frame | None] = []
    for one in functions:
        below, given = (one.__func__, (one.__self__, *args)) if isinstance(one, types.MethodType) else (one, args)
        found.append(_frame(below, given, kwargs))
        if inline is not None:
            found += [_frame(inline(one), args, kwargs), _frame(inline(below), given, kwargs)]
    return [one for one in found if one is not None]


def _frame(function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Frame | None:
    if not isinstance(function, types.FunctionType):
        return None
    try:
        bound = inspect.signature(function, follow_wrapped=False).bind(*args, **kwargs)
    except TypeError:
        return None
    bound.apply_defaults()
    return Frame({**dict(_reached_code.closed_over(function)), **bound.arguments}, function.__globals__)


class Traces:
    """The traces that were made while a function ran inside `noticed`. Thread-safe."""

    def __init__(self) -> None:
        self._lock, self._running = threading.Lock(), collections.Counter[int]()  # the ids of threads inside `noticed`
        self._made: collections.deque[_Trace] = collections.deque(maxlen=_MOST_TRACES)

    @contextlib.contextmanager
    def noticed(self, compiled: Any) -> Iterator[None]:
        """Collects the traces of `compiled` that this thread makes inside the block. The option `guard_filter_fn` of torch.compile sees the
        same guards, but not with a mode, or when the caller compiled. Therefore the filter is set in torch.compile's own state; the
        caller's filter is still called."""
        hooks: Any = getattr(_modules.context_of(compiled), "_hooks", None)
        if not hasattr(hooks, "guard_filter_fn"):  # another PyTorch version lacks this
            yield
            return
        me = threading.get_ident()
        with self._lock:
            if not self._running:
                self._callers, hooks.guard_filter_fn = hooks.guard_filter_fn, self._notice(hooks.guard_filter_fn)
            self._running[me] += 1
        try:
            yield
        finally:
            with self._lock:
                self._running -= collections.Counter([me])
                if not self._running:
                    hooks.guard_filter_fn = self._callers

    def _notice(self, callers: Any) -> Callable[[Sequence[Any]], Sequence[bool]]:
        def notice(entries: Sequence[Any]) -> Sequence[bool]:
            if threading.get_ident() in self._running:
                try:
                    self._made.append(_Trace([Guard(one.guard_type, one.orig_guard.originating_source, one.has_value) for one in entries]))
                except Exception:  # another PyTorch version may fail here, which must not break its compilation
                    _log.debug("PyTorch's guards are not seen", exc_info=True)
            return callers(entries) if callers is not None else [True] * len(entries)

        return notice

    def expect_compared(self, walker: Walker, frames: Sequence[Frame], of: Any = None, environment: Sequence[str] = ()) -> None:
        """Raises NotRecordable if a trace of such a call depends on a value that the reader did not read; the message names the value.
        Traces of other calls are ignored. `of`: the call's owner and code. A trace that was already checked for the same `of` is not
        checked again, because traces guard all types. `environment`: the variables that are guarded."""
        for trace in list(self._made):
            frame = next((one for one in frames if one.fits(trace.guards)), None) if of not in trace.judged_for else None
            if frame is None:
                continue
            why = why_not_compared(trace.guards, walker, frame, environment)
            if why:
                raise errors.NotRecordable(why)
            trace.judged_for.add(of)


def why_not_compared(trace: Sequence[Guard], walker: Walker, frame: Frame, environment: Sequence[str] = ()) -> str:
    """The reason why a guard could fail in another process although all facts are equal there; "" if no guard could."""
    reader = _Reader(walker, frame, environment)
    for guard in trace:
        if guard.kind not in _NEED_NOTHING and not reader.compares(guard.source):
            return f"PyTorch compiled it for {_WORDS.get(guard.kind, 'the value of')} {words_of(guard.source)}, which is not compared in " \
                   "another process: name it where the code reads it (not by getattr with a computed name), pass it, or list a variable of the " \
                   "environment in Config.environment"
    return ""


class _Comparison(enum.Enum):
    """How a value is compared."""

    read = "its facts"
    library = "the version of its package"


class _Reader:
    """Decides, for a source of Dynamo, whether the walk compared the value."""

    def __init__(self, walker: Walker, frame: Frame, environment: Sequence[str] = ()) -> None:
        self._environment = {form for name in environment for form in (name, os.fsencode(name))}
        self._walker, self._reached, self._frame = walker, walker.found.reached, frame
        self._paths: dict[int, list[str]] = {}
        for path, value in walker.objects.items():
            self._paths.setdefault(id(value), []).append(path)
        self._scope = {**_helpers(), "L": frame.locals, "G": frame.globals}
        self._known: dict[str, tuple[_Comparison | None, Any]] = {}

    def compares(self, source: Any) -> bool:
        return type(source).__name__ in _OF_THE_TRACE or self._look(source)[0] is not None

    def _look(self, source: Any) -> tuple[_Comparison | None, Any]:
        """Returns how the value of a source is compared, and the value."""
        name = _name(source)
        if name not in self._known:
            value = value_of(name, self._scope)
            self._known[name] = self._how(source, value), value
        return self._known[name]

    def _how(self, source: Any, value: Any) -> _Comparison | None:
        kind, base = type(source).__name__, getattr(source, "base", None)
        if kind in _OF_THE_TRACE:
            return _Comparison.read
        if isinstance(value, _CODE) and not self._is_code_compared(value):
            return None
        if base is None:
            return self._how_root(source, value)
        how, around = self._look(base)
        if how is not None and _is_namespace(base):  # for the namespace of an object, the object itself counts
            how, around = self._look(base.base)
        return self._how_part(how, around, _key(source), value) if how is not None else None

    def _how_root(self, source: Any, value: Any) -> _Comparison | None:
        if type(source).__name__ == "LocalSource":
            return _Comparison.read  # a local variable is an argument, the method's object, or in the closure, and all of these are read
        if isinstance(value, types.ModuleType):  # a module is a global, or Dynamo has imported it
            return _Comparison.library if self._is_library(value.__name__, getattr(value, "__file__", None)) else _Comparison.read
        name = getattr(source, "global_name", None)
        if name is None:
            return None
        if name.startswith("__builtins_dict__") or name.startswith("___unnamed_scope") and _is_of_named_tuple(value):
            return _Comparison.library
        return self._how_global(self._frame.globals, name, value)

    def _how_global(self, around: dict[str, Any], name: str, value: Any) -> _Comparison | None:
        """How a value in a module is compared."""
        if self._is_library(around.get("__name__"), around.get("__file__")):
            return self._how_in_library(value)
        named = any(function.__globals__ is around and name in names for function, names in zip(self._reached.functions, self._reached.globals))
        return _Comparison.read if named or self._is_fact(sys.modules.get(str(around.get("__name__"))), name) else None

    def _how_in_library(self, value: Any) -> _Comparison | None:
        """How a value in an installed package is compared: by the package's version, unless other code put the value there."""
        if id(value) in self._paths and not isinstance(value, _PLAIN):
            return _Comparison.read
        if isinstance(value, torch.Tensor) or not isinstance(value, (*_PLAIN, *_CODE, *_CONTAINERS, types.ModuleType)) and value is not _ABSENT \
                and not self._is_library(type(value).__module__, None):
            return None
        return _Comparison.library

    def _how_part(self, how: _Comparison, around: Any, key: Any, value: Any) -> _Comparison | None:
        if isinstance(around, types.ModuleType):
            return self._how_global(vars(around), key, value) if isinstance(key, str) else how
        if around is getattr(os.environ, "_data", os.environ) and isinstance(key, (str, bytes)):
            return _Comparison.read if key in self._environment else None
        if how is _Comparison.library:
            return self._how_in_library(value)
        if isinstance(around, type):
            return self._how_in_class(around, key, value)
        if isinstance(around, types.FunctionType):  # the value is in the function's closure or among its defaults
            library = self._is_library(around.__module__, around.__code__.co_filename)
            return self._how_in_library(value) if library and id(around) not in self._followed() else _Comparison.read
        if around is _ABSENT or not isinstance(key, str) or isinstance(around, (*_PLAIN, *_CONTAINERS)) and not hasattr(around, "__dict__"):
            return _Comparison.read  # the walk compares all items and properties of such values
        return self._how_attribute(around, key, value)

    def _how_attribute(self, around: Any, name: str, value: Any) -> _Comparison | None:
        if name in ("__dict__", "__class__", "__func__", "__self__") or self._is_fact(around, name):
            return _Comparison.read
        if isinstance(around, (dict, list, tuple, torch.Tensor)) and name not in getattr(around, "__dict__", ()):
            return _Comparison.read  # the value is an item, found by its key
        if isinstance(around, torch.nn.Module):
            held = (around._parameters, around._buffers, around._modules)
            if name in _modules.OF_EVERY_MODULE or name == "training" or any(name in one for one in held):
                return _Comparison.read
            if isinstance(around.__dict__.get(name), _plain_values.KINDS):
                return _Comparison.read
        if value is _ABSENT or name not in getattr(around, "__dict__", {}):
            return self._how_in_class(type(around), name, value)
        return None

    def _how_in_class(self, kind: type, name: Any, value: Any) -> _Comparison | None:
        """How a value in a class is compared. All objects of the class share the value, or it does not exist."""
        if isinstance(value, _CODE) or not isinstance(name, str) or name.startswith("__"):
            return _Comparison.read  # the class's code is compared
        owner: type = next((one for one in kind.__mro__ if name in one.__dict__), kind)
        if self._is_library(owner.__module__, None):
            return self._how_in_library(value)
        is_plain_of_module = issubclass(kind, torch.nn.Module) and isinstance(value, (*_plain_values.KINDS, list, tuple, dict))
        return _Comparison.read if is_plain_of_module or name in self._reached.names else None

    def _is_fact(self, around: Any, name: str) -> bool:
        facts = self._walker.found.facts
        return any(f"{path}.{name}" in facts for path in self._paths.get(id(around), ()))

    def _is_code_compared(self, value: Any) -> bool:
        if isinstance(value, type):
            return value in self._walker.classes or value in self._reached._classes or self._is_library(value.__module__, None)
        function = _reached_code.function_of(value)
        if function is None:
            return True  # the function is built-in
        return id(function) in self._followed() or self._is_library(function.__module__, function.__code__.co_filename)

    def _followed(self) -> Mapping[int, Any]:
        return self._reached._seen

    @staticmethod
    def _is_library(module: str | None, file: str | None) -> bool:
        return bool(_installed_code.is_library(module, file))


def _is_of_named_tuple(scope: Any) -> bool:
    """Whether collections.namedtuple executed a class's __new__ in this scope."""
    return isinstance(scope, dict) and str(scope.get("__name__")).startswith("namedtuple_") and scope.get("_tuple_new") is tuple.__new__


def value_of(name: str, scope: dict[str, Any]) -> Any:
    """The value with this name. Returns _ABSENT when it does not exist, because some guards check that."""
    try:
        return eval(name, scope)  # the name is a text that Dynamo wrote
    except Exception:
        return _ABSENT


def _helpers() -> dict[str, Any]:
    """Functions that the names of Dynamo's sources may call."""
    return dict(getattr(sys.modules.get("torch._dynamo.guards"), "_get_closure_vars", dict)())


def _name(source: Any) -> str:
    try:
        name = source.name
        return str(name() if callable(name) else name)
    except NotImplementedError:
        return ""


def _is_namespace(source: Any) -> bool:
    return type(source).__name__ == "TypeDictSource" or getattr(source, "member", None) == "__dict__"


def _key(source: Any) -> Any:
    """The attribute or item that a source names; None for other sources (a type, a length)."""
    for name in ("member", "index", "idx_key"):
        if hasattr(source, name):
            return getattr(source, name)
    return None


_HELD_BY_MODULES = re.compile(r"\._(?:modules|parameters|buffers)\['([A-Za-z0-9_]+)'\]")
_ROOT = re.compile(r"\b[LG]\['([^']*)'\]")
_ATTRIBUTE = re.compile(r"object\.__getattribute__\(([^()]*), '(\w+)'\)")
_IN_CLASS = re.compile(r"dict\(type\(([^()]*)\)\.__dict__\)\['(\w+)'\]")


def words_of(source: Any) -> str:
    """The source in the words of the user's code, e.g. "self.config.width", if that is short."""
    def root(found: re.Match[str]) -> str:
        name = found[1]
        return name[len("__import_"):].replace("_dot_", ".") if name.startswith("__import_") else name

    text = _HELD_BY_MODULES.sub(r".\1", _ROOT.sub(root, _name(source)))
    return _plain_values.shortened(_IN_CLASS.sub(r"\1.\2", _ATTRIBUTE.sub(r"\1.\2", text)), 300)
