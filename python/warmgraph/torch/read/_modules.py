"""Handles modules that are called directly (`module(*args)`), and modules compiled by torch.compile(module) or module.compile()."""
from __future__ import annotations

import functools
import sys
import types
from typing import Any, Callable

import torch

from warmgraph import errors
from warmgraph.reading import _plain_values

HOOKS = tuple(sorted(name for name in torch.nn.Module().__dict__ if name.endswith("hooks")))
OF_EVERY_MODULE = frozenset({*torch.nn.Module().__dict__, "_compiled_call_impl"} - {"training"})
# For each dictionary of hooks: the dictionaries with the numbers of hooks that are called in a special way, and a word for that way.
_KINDS_OF_HOOKS = {"_forward_hooks": (("with keywords", "_forward_hooks_with_kwargs"), ("always", "_forward_hooks_always_called")),
                   "_forward_pre_hooks": (("with keywords", "_forward_pre_hooks_with_kwargs"),)}


def method_of(module: torch.nn.Module) -> types.MethodType:
    """A call of the module, `module(*args, **kwargs)` with its hooks, as a method of the module with the name of its class."""
    def call(module: Any, *args: Any, **kwargs: Any) -> Any:
        return module(*args, **kwargs)

    kind = type(_inner(module))
    call.__code__ = call.__code__.replace(co_name="call")  # needs its own code object, because Dynamo counts compilations by code object
    call.__name__, call.__qualname__, call.__module__, call.__doc__ = kind.__name__, kind.__qualname__, kind.__module__, kind.__doc__
    return types.MethodType(call, module)


def signed_by(module: torch.nn.Module) -> Callable[..., Any] | None:
    """The callable with the module's signature: its forward. None if the module has hooks that run before forward, because they may take
    other arguments."""
    inner = _inner(module)
    if any(getattr(one, "_forward_pre_hooks", None) for one in (module, inner)):
        return None
    return getattr(inner, "forward", None)


def compiled_from(module: Any) -> torch.nn.Module | None:
    """The original module, if torch.compile made this module from it; None for any other module."""
    kind = _kind_of_compiled()
    return module._orig_mod if kind is not None and isinstance(module, kind) else None


def _kind_of_compiled() -> Any:
    return getattr(sys.modules.get("torch._dynamo.eval_frame"), "OptimizedModule", None)


def _inner(module: torch.nn.Module) -> torch.nn.Module:
    compiled = compiled_from(module)
    return module if compiled is None else compiled  # this must test `is None`: the truth of a module may be its len()


def traced_of(module: Any) -> list[Any]:
    """The functions that PyTorch may have traced when it compiled this module."""
    inner = _inner(module)
    return [inner.forward, inner._call_impl, inner]


def is_compiled(module: Any) -> bool:
    """Whether the module itself is compiled. Its submodules may be compiled even if this is false."""
    return compiled_from(module) is not None or getattr(module, "_compiled_call_impl", None) is not None


def hooks_outside(module: Any) -> str:
    """The name of the dictionary with hooks on the result of torch.compile instead of the module; "" if there are none."""
    return next((name for name in HOOKS if "forward" in name and module.__dict__.get(name)), "")


def kinds_of_hook(module: Any, name: str, number: int) -> str:
    """The way in which a module calls one of its hooks, as words; "" for the usual way."""
    return ", ".join(words for words, held in _KINDS_OF_HOOKS.get(name, ()) if number in getattr(module, held, ()))


def kinds_of_hooks(module: Any) -> list[Any]:
    """The dictionaries that kinds_of_hook reads."""
    named = (held for kinds in _KINDS_OF_HOOKS.values() for _, held in kinds)
    return [module.__dict__[name] for name in named if name in module.__dict__]


def attributes_of(module: torch.nn.Module, of_classes: dict[str, Any]) -> list[tuple[str, Any]]:
    """The module's own attributes, and its classes' values, by name."""
    held = module.__dict__
    return [(name, held[name] if is_own else of_classes[name]) for name, is_own in _names_of((*held, None, *of_classes))]


@functools.lru_cache(maxsize=1024)
def _names_of(names: tuple[str | None, ...]) -> list[tuple[str, bool]]:
    """Returns (name, whether the attribute is the module's own) for each name. `names` has the module's own names, then None, then the
    names in its classes. The result is cached for modules of one kind."""
    at = names.index(None)
    own = set(names[:at]) - OF_EVERY_MODULE
    return [(name, name in own) for name in sorted(one for one in {*own, *names[at + 1:]} if one is not None)]


def how_compiled(compiled: Any) -> str:
    """Backend and options of a function or module that torch.compile returned, as a text that is the same in each process; "" when
    compilation is disabled for it. Raises NotRecordable when PyTorch does not give them."""
    callback = getattr(context_of(compiled), "callback", None)
    if callback is None or isinstance(callback, bool):
        return ""
    try:
        backend = _innermost(callback)
        given = {name: value for name, value in vars(backend).items() if name not in ("compiler_fn", "compiler_name")}
        name = getattr(backend, "compiler_name", None) or getattr(type(backend), "compiler_name", type(backend).__qualname__)
        return text_of_options({"backend": name, **given})
    except Exception as error:  # another PyTorch version may raise any error here
        raise errors.NotRecordable(f"PyTorch {torch.__version__} does not report the backend and options with which it compiles this function, and "
                                   "another process has to compare them: let cache_compile compile it (compile=...)") from error


def _innermost(backend: Any) -> Any:
    """The backend inside Dynamo's wrappers. Not every version has a function for this."""
    while hasattr(backend, "_torchdynamo_orig_backend"):
        backend = backend._torchdynamo_orig_backend
    return backend


def context_of(compiled: Any) -> Any:
    """The context that torch.compile made for its result, or for a module compiled in place. None if the object has no such context."""
    in_place = getattr(compiled, "_compiled_call_impl", None)
    compiled = compiled if in_place is None else in_place
    try:
        return compiled.__dict__.get("dynamo_ctx") or _closed_over(compiled)["self"]
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _closed_over(function: Any) -> dict[str, Any]:
    return {name: cell.cell_contents for name, cell in zip(function.__code__.co_freevars, function.__closure__)}


def text_of_options(value: Any) -> str:
    """A text for options of torch.compile that is the same in each process. Functions and objects are represented by their names."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {text_of_options(one)}" for key, one in sorted(value.items(), key=lambda pair: str(pair[0]))) + "}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(text_of_options, value))}]"
    if type(value) in _plain_values.KINDS:
        return _plain_values.text_of(value)
    kind = value if callable(value) and hasattr(value, "__qualname__") else type(value)
    return f"{kind.__module__}.{kind.__qualname__}"
