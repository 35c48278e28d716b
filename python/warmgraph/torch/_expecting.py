"""What a first call will meet, as the last used entry says it: its code is read before the call, in the background."""
from __future__ import annotations

import contextlib
import json
import sys
import types
from typing import TYPE_CHECKING, Any, Callable, Iterator

from .. import errors
from . import _code, _declarations, _entry, _launching, _modes, _outputs

if TYPE_CHECKING:
    from .._compiled import CachedFunction
    from ._walking import Walker

_MOST = 500  # of each


def names_of(walker: Walker) -> dict[str, Any]:
    """The classes that a walk met, in its order: [module, name in it, whether code makes objects of it]; and functions. Nothing where another
    process would not find one of them by that, or where there are many."""
    classes, functions = walker.classes, list(walker.functions.values())
    if max(len(classes), len(functions)) > _MOST or not all(map(_is_found, [*classes, *functions])):
        return {}
    return {"classes": [[*_name_of(kind), is_constructed] for kind, is_constructed in classes.items()], "functions": list(map(_name_of, functions))}


def _name_of(value: Any) -> tuple[str, str]:
    return value.__module__, value.__qualname__


def _is_found(value: Any) -> bool:
    try:
        return _named(*_name_of(value)) is value
    except (AttributeError, KeyError, TypeError):
        return False


def prepared(wrapped: CachedFunction, index: int, name: str = "") -> Iterator[None]:
    """Leaves what the function's code reaches for its first call, in pieces. index: of the device. name: of a table's functions, "graphs-*",
    which `wrapped` stands for: what they met is left. Nothing is imported, and no code of the program's runs."""
    from .._pools import pool_of

    function = wrapped._function
    if function is None:
        return
    _modes.settle(index)
    yield
    cache, device = pool_of(wrapped._where()).caches[0], _launching.device_of(index)
    text = next(filter(None, (_entry.latest(cache, device, one) for one in ([name] if name else wrapped._names()))), "")
    yield
    met = _met_in(text)
    if met is None:
        return
    with contextlib.suppress(errors.Error):
        _declarations.expect(_outputs.from_text(text))
    wrapped.sign_ahead()
    yield
    for kind in met[0]:
        _code.leave_slot_names(kind)
    reached = _code.Reached(plain_of(function), imports=False)
    yield
    larger: Any = reached.with_met(*met)  # a table's have this code in common, which is read once
    larger.digest()
    for package in larger.packages:
        yield
        _code.version_of(package)
    if name:
        wrapped._shared.met_ahead = met
    elif reached.is_whole and larger.is_whole:
        reached.imports = larger.imports = True  # what it meets besides is read when it is called
        wrapped._shared.reached_ahead = reached


def taken(wrapped: CachedFunction) -> _code.Reached:
    """What the function's code reaches: what was left of it. Each call that is read looks whether that is so still."""
    assert wrapped._function is not None
    target, found = plain_of(wrapped._function), wrapped._shared.reached_ahead
    wrapped._shared.reached_ahead = None
    return found if found is not None and found.target is target else _code.Reached(target)


def plain_of(function: Callable[..., Any]) -> Callable[..., Any]:
    return function.__func__ if isinstance(function, types.MethodType) else function


def _met_in(text: str) -> tuple[dict[type, bool], list[types.FunctionType]] | None:
    """None where one of them is not there, or nothing is said of any: the text is a file's."""
    try:
        met = json.loads(text)["met"]
        classes = {_named(module, name): bool(is_constructed) for module, name, is_constructed in met["classes"]}
        functions = [_named(module, name) for module, name in met["functions"]]
    except (ValueError, TypeError, AttributeError, KeyError):
        return None
    is_so = all(isinstance(kind, type) for kind in classes) and all(isinstance(one, types.FunctionType) for one in functions)
    return (classes, functions) if is_so and classes else None


def _named(module: str, name: str) -> Any:
    """Past what a module or a class may do when it is asked for an attribute: lazy ones import."""
    found: Any = sys.modules[module]
    for part in name.split("."):
        found = vars(found)[part]
    return found.__func__ if isinstance(found, (staticmethod, classmethod)) else found
