"""Readers of Python's own values, and of this package's devices and caches."""
from __future__ import annotations

import dataclasses
import enum
import functools
import hashlib
import logging
import operator
import pathlib
import re
import sys
import threading
import types
from typing import Any

from warmgraph import errors
from warmgraph.arrays._device import Device, Program
from warmgraph.core.cache._cache import Cache, Function
from warmgraph.reading import _code_objects, _identity_checks, _plain_values, _reached_code, _stored_attributes
from warmgraph.reading._walker import Readers, Walker

_SMALL_ARRAY = 64 << 10  # bytes of a host array that becomes a guard although it is not an argument
_BUILTIN = (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType, types.MethodWrapperType)
OF_ENUMERATORS = {"_value_", "_name_", "_sort_order_", "__objclass__"}

PYTHON = Readers()


def _is_kept_hash(kind: type, name: str, value: Any) -> bool:
    """True for a hash() that a library's object keeps (GenerationConfig of transformers): each process hashes texts differently, so the
    number means nothing in another process. Hashes have 61 bits; a small number is a setting, and returns False."""
    return type(value) is int and name.lower().endswith("hash") and abs(value) >= 1 << 32


PYTHON.of_process.append(_is_kept_hash)


# Readers that are registered later are tried earlier. This first reader of `object` handles all types without a reader below.
@PYTHON.reads(object)
def _read_object(walker: Walker, path: str, value: Any) -> None:
    text = text_of(value)
    if text is not None:
        walker.fact(path, text)
        return
    kind = type(value)
    walker.fact(path, _reached_code.name_of_class(kind))
    if walker.is_library_class(kind) and _stored_attributes.has_hidden_state(kind):
        raise errors.NotRecordable(f"{path} is a {kind.__module__}.{kind.__qualname__}, which cannot be compared in another process: store the "
                                   "values that the function needs as plain values")
    read_rest(walker, path, value)


@PYTHON.reads(type(threading.Lock()), type(threading.RLock()))
def _read_lock(walker: Walker, path: str, value: Any) -> None:
    """A lock changes no result; only code that asks whether it is held could."""
    def state() -> str:
        return f"{type(value).__name__} {repr(value)[1:].split()[0]}"  # "unlocked"

    walker.watch(lambda: (state(),))
    walker.fact(path, state())


@PYTHON.reads(set, frozenset)
def _read_set(walker: Walker, path: str, value: Any) -> None:
    if isinstance(value, set):
        walker.watch(lambda: tuple(value))
    walker.fact(path, f"{type(value).__qualname__} {{{', '.join(sorted(text_of_key(walker, path, one) for one in value))}}}")
    read_rest(walker, path, value)


@PYTHON.reads(list, tuple)
def _read_sequence(walker: Walker, path: str, value: Any) -> None:
    if type(value) is list:
        if walker.readers.is_watching:
            walker.watched.append(_identity_checks.of_list(value))
    elif isinstance(value, list):
        walker.watch(lambda: tuple(value))
    fields = getattr(value, "_fields", None)
    walker.fact(path, f"{type(value).__qualname__} of {len(value)}")
    for i, one in enumerate(value):
        walker.value(f"{path}.{fields[i]}" if fields else f"{path}[{i}]", one)
    read_rest(walker, path, value)


@PYTHON.reads(dict)
def _read_dict(walker: Walker, path: str, value: Any) -> None:
    walker.watch_dict(value)
    pairs = [(text_of_key(walker, path, key), one) for key, one in list(value.items())]
    order = f": {', '.join(key for key, _ in pairs)}" if len(pairs) > 1 else ""  # code that iterates over the dictionary sees the order
    walker.fact(path, f"{type(value).__qualname__} of {len(value)}{order}")
    for key, one in pairs:
        walker.value(f"{path}[{key}]", one)
    read_rest(walker, path, value)


@PYTHON.reads(object)
def _read_function(walker: Walker, path: str, value: Any) -> bool:
    """Reads callables that lead to a Python function."""
    if not (callable(value) or isinstance(value, functools.partialmethod)) or _reached_code.function_of(value) is None and _reached_code.below(value) is None:
        return False
    read_function(walker, path, value)
    return True


def read_function(walker: Walker, path: str, value: Any) -> None:
    """Makes the function's code a fact: code may be replaced (IPython's autoreload does so)."""
    if isinstance(value, types.FunctionType):
        walker.watch_function(value)
        walker.functions[id(value)] = value
        walker.fact(path, f"function {value.__qualname__} {_code_objects.code_digest(value.__code__).hex()}")
        # Functions with the same code may differ in their closures.
        named = walker.named_by_wrapper if walker.reached.is_library(value.__module__, value.__code__.co_filename) else walker.named
        for name, one in sorted(_reached_code.closed_over(value), key=lambda pair: pair[0]):
            named(f"{path}.{name}", one)
        return
    if isinstance(value, functools.partial):
        walker.watch(lambda: (value.func, value.args, value.keywords))
    walker.fact(path, type(value).__qualname__)
    walker.value(f"{path}.__wrapped__", _reached_code.below(value))
    if isinstance(value, types.MethodType):
        walker.value(f"{path}.__self__", value.__self__)
    elif isinstance(value, (functools.partial, functools.partialmethod)):
        walker.value(f"{path}.args", value.args)
        walker.value(f"{path}.keywords", value.keywords)


@PYTHON.reads(type)
def _read_class(walker: Walker, path: str, kind: type) -> None:
    is_users = not walker.reached.is_library(kind.__module__, None)
    if is_users:
        walker.watch_class(kind)
    walker.fact(path, f"class {_reached_code.name_of_class(kind)}")
    if not is_users:
        return
    walker.classes[kind] = True
    if issubclass(kind, enum.Enum):
        walker.fact(f"{path} members", " ".join(kind.__members__))
        walker.members(path, dict(kind.__members__), lambda _: True)
    else:
        walker.members(path, dict(walker.stored_in(kind)))


@PYTHON.reads(types.ModuleType)
def _read_python_module(walker: Walker, path: str, value: types.ModuleType) -> None:
    walker.fact(path, f"module {value.__name__}")
    if walker.is_library_module(value):
        return
    held = vars(value)
    named, count = [name for name in held if name in walker.reached.names], len(held)
    walker.watch(lambda: (len(held) == count, *map(held.get, named)))
    walker.members(path, held)


@PYTHON.reads(Cache, Function)
def _read_cache(walker: Walker, path: str, value: Any) -> None:
    walker.fact(path, type(value).__qualname__)


@PYTHON.reads(Device)
def _read_device(walker: Walker, path: str, value: Device) -> None:
    walker.found.devices.append(value)
    walker.fact(path, "device")


@PYTHON.reads(Program)
def _read_program(walker: Walker, path: str, value: Program) -> None:
    if all(one is not value for one in walker.found.programs):
        walker.found.programs.append(value)
    walker.found.devices.append(value.device)
    walker.fact(path, f"program {value.name}")  # the source and the options are not facts here, because the library guards them


@PYTHON.reads(slice, property)
def _read_parts(walker: Walker, path: str, value: Any) -> None:
    walker.fact(path, type(value).__qualname__)
    for name in ("start", "stop", "step") if isinstance(value, slice) else ("fget", "fset", "fdel"):
        walker.value(f"{path}.{name}", getattr(value, name))


@PYTHON.reads(*_BUILTIN)
def _read_built_in(walker: Walker, path: str, value: Any) -> None:
    """Reads a built-in method with the object that it is bound to (`table.get`)."""
    of = getattr(value, "__self__", None)
    is_plain = of is None or isinstance(of, (types.ModuleType, type)) or type(of).__name__ == "PyCapsule"
    around = getattr(of, "__name__", "") if is_plain else ""
    walker.fact(path, f"built-in {getattr(value, '__module__', None)}.{getattr(value, '__qualname__', value.__name__)} {around}".strip())
    if not is_plain:
        walker.value(f"{path}.__self__", of)


@PYTHON.reads(enum.Enum)
def _read_enumerator(walker: Walker, path: str, value: enum.Enum) -> None:
    kind = type(value)
    walker.watch_class(kind)
    walker.watch_dict(vars(value))
    walker.fact(path, _text_of_enumerator(value))
    if not walker.reached.is_library(kind.__module__, None):
        walker.classes.setdefault(kind, False)
        if not isinstance(value.value, _plain_values.KINDS):
            walker.value(f"{path}.value", value.value)
        walker.members(path, {name: one for name, one in vars(value).items() if name not in OF_ENUMERATORS})


@PYTHON.reads_single(*_plain_values.KINDS)
def _read_plain(walker: Walker, path: str, value: Any) -> bool:
    """Reads an object of a user's subclass of a plain type. The walker itself reads plain types."""
    if isinstance(value, enum.Enum):
        return False
    walker.expect_shallow(path)
    walker.fact(path, _plain_values.text_of(value))
    read_rest(walker, path, value)
    return True


def read_rest(walker: Walker, path: str, value: Any) -> None:
    """Reads the attributes of an object: a data class's fields, the attributes that code names, and all attributes if a library defines the
    class: the methods of such a class are not read, and may use any attribute."""
    kind = type(value)
    if kind.__module__ == "builtins":
        return
    if walker.readers.is_watching:
        _watch_attributes(walker, value)
    walker.classes.setdefault(kind, False)
    own = _stored_attributes.of_itself(value)
    if walker.is_library_class(kind):
        of_process = walker.readers.of_process
        walker.members(path, {name: one for name, one in sorted(own.items()) if not any(is_of(kind, name, one) for is_of in of_process)},
                       lambda name: not name.startswith("__"))
        own = {}
    elif dataclasses.is_dataclass(value):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if hasattr(value, field.name)}
        walker.members(path, fields, lambda _: True)
        own = {name: one for name, one in own.items() if name not in fields}
    walker.members(path, {**{name: one for name, one in walker.stored_in(kind) if f"{path}.{name}" not in walker.found.facts}, **own})


def _watch_attributes(walker: Walker, value: Any) -> None:
    kind = type(value)
    walker.watch_class(kind)
    held = getattr(value, "__dict__", None)
    if isinstance(held, dict):
        walker.watch_object(value, held)
    slots = _stored_attributes.slots(kind)
    if slots:
        walker.watch(lambda: tuple(getattr(value, name, None) for name in slots))


def read_host_array(walker: Walker, path: str, array: Any) -> None:
    """Makes a digest of a small array's contents a fact. A large array cannot be recorded."""
    if array.nbytes > _SMALL_ARRAY:
        raise errors.NotRecordable(f"{path} is an array of {array.nbytes} bytes in host memory, which a graph cannot follow: keep it on the device "
                                   "(device.array), or pass it as an argument")
    if array.dtype.hasobject:
        raise errors.NotRecordable(f"{path} is an array of Python objects, which cannot be compared in another process: use a list")
    digest = hashlib.sha256(array.tobytes()).hexdigest()
    kind = "" if type(array).__name__ == "ndarray" else f"{type(array).__qualname__} "
    walker.fact(path, f"host array {kind}{array.dtype.str} {array.shape} {digest}")


def text_of_key(walker: Walker, path: str, key: Any) -> str:
    if isinstance(key, _plain_values.KINDS) and not isinstance(key, enum.Enum):
        if type(key) in _plain_values.KINDS:
            return ascii(key)
        walker.classes.setdefault(type(key), False)  # the class's methods are called
        return _plain_values.text_of(key)
    if isinstance(key, enum.Enum):
        walker.value(f"{path}.keys.{type(key).__qualname__}.{key.name}", key)
        return _text_of_enumerator(key)
    if isinstance(key, type):
        walker.value(f"{path}.keys.{key.__qualname__}", key)
        return _reached_code.name_of_class(key)
    if isinstance(key, tuple):
        if type(key) is not tuple:
            walker.classes.setdefault(type(key), False)
        kind = "" if type(key) is tuple else f"{type(key).__qualname__}{getattr(key, '_fields', '')}"
        return f"{kind}({', '.join(text_of_key(walker, path, one) for one in key)})"
    operators = sys.modules.get("torch._ops")
    if operators is not None and isinstance(key, (operators.OpOverload, operators.OpOverloadPacket)):
        return f"operator {key}"
    if operators is not None and isinstance(key, (sys.modules["torch"].dtype, sys.modules["torch"].device)):
        return str(key)
    name = _name_of_function(key) if callable(key) else ""
    if name:  # a table of functions, e.g. the one by which a tensor's class replaces operators
        walker.value(f"{path}.keys.{name}", key)
        return name
    raise errors.NotRecordable(f"{path} has a key of type {type(key).__qualname__}, which cannot be compared in another "
                               "process: use numbers, texts or tuples of them")


def _text_of_enumerator(value: enum.Enum) -> str:
    plain = isinstance(value.value, _plain_values.KINDS)
    return f"{type(value).__qualname__}.{value.name}{f' {_plain_values.text_of(value.value)}' if plain else ''}"


def text_of(value: Any) -> str | None:
    """A text that describes a value completely, for some types. It leaves out details that do not change results. None for other types."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.generic):
        return f"{type(value).__name__} {value!r}"
    if numpy is not None and isinstance(value, numpy.dtype) or isinstance(value, range):
        return repr(value)
    if numpy is not None and isinstance(value, numpy.ufunc):
        return f"ufunc {value.__name__}"
    # An object with a Python __call__ may have the name of a function that it wraps (functools.update_wrapper).
    if callable(value) and not isinstance(getattr(type(value), "__call__", None), types.FunctionType) and _is_found_by_name(value):
        return f"{value.__module__}.{value.__qualname__}"
    if isinstance(value, pathlib.PurePath):
        return f"{type(value).__name__} {str(value)!r}"
    if isinstance(value, (operator.attrgetter, operator.itemgetter)):
        return repr(value)
    if isinstance(value, re.Pattern):
        return f"pattern {value.pattern!r} {value.flags}"
    if isinstance(value, (logging.Logger, logging.LoggerAdapter)):
        return type(value).__name__
    return None


def _name_of_function(value: Any) -> str:
    """The name by which a module or a class has this function, or ""."""
    if _is_found_by_name(value):
        return f"{value.__module__}.{value.__qualname__}"
    name, owner = getattr(value, "__name__", ""), getattr(value, "__objclass__", None)
    if owner is not None and getattr(owner, name, None) is value:  # torch.Tensor.t
        return f"{owner.__module__}.{owner.__qualname__}.{name}"
    module = getattr(value, "__module__", None) or ""
    return f"{module}.{name}" if name and getattr(sys.modules.get(module), name, None) is value else ""  # torch.relu


def _is_found_by_name(value: Any) -> bool:
    """Whether a module has the function under its own name."""
    found: Any = sys.modules.get(getattr(value, "__module__", None) or "")
    for name in str(getattr(value, "__qualname__", None)).split("."):
        found = getattr(found, name, None)
    return found is value
