"""Readers of tensors, and of PyTorch's other objects except modules. `TORCH` has all readers for a call on tensors."""
from __future__ import annotations

import dataclasses
import hashlib
import types
from typing import Any, Callable

import torch

from warmgraph import errors
from warmgraph.arrays._array_arguments import argument_of
from warmgraph.calls._cached_function import CachedFunction
from warmgraph.reading import _code_objects, _identity_checks, _reached_code
from warmgraph.reading._reached_code import below, compiled_from
from warmgraph.reading._value_readers import PYTHON, read_function, read_host_array, read_rest
from warmgraph.reading._walker import Readers, Walker
from warmgraph.torch.read import _modules, _tensor_subclasses, _tensors, _triton_tuners

_SMALL = 64 << 10  # the most bytes of a host tensor that becomes a guard

TORCH = Readers(PYTHON, is_watching=True, most_facts=100_000)
TORCH.unwatched.add(torch.nn.Module)
# PyTorch's contexts (torch.autocast) keep the previous state from when they were entered. This state is not a fact.
TORCH.of_process.append(lambda kind, name, value: name.startswith("prev") and kind.__module__.startswith("torch."))


@dataclasses.dataclass(slots=True, eq=False)  # not frozen, because making a frozen object takes three times as long
class TensorPlace:
    """A tensor and where it was found. An instance is never modified. `via`: "argument", "self" (the method's object), or "elsewhere" (a
    closure, a global). `parameter`: if the tensor is the gradient of an optimizer's parameter, this parameter. `is_optimized`: whether an
    optimizer may write the tensor."""

    path: str
    tensor: torch.Tensor
    via: str
    parameter: torch.Tensor | None = None
    is_optimized: bool = False


def via_of(walker: Walker, path: str) -> str:
    """The value of Place.via for an object that is found at this path now."""
    if not walker.is_around:
        return "argument"
    return "self" if path == "self" or path.startswith(("self.", "self[")) else "elsewhere"


@TORCH.reads_single(object)
def _read_operator(walker: Walker, path: str, value: Any) -> bool:
    if type(value).__module__ != "torch._ops":
        return False
    walker.fact(path, f"built-in {getattr(value, '__module__', None)}.{getattr(value, '__qualname__', value)}")
    return True


@TORCH.reads_single(object)
def _read_foreign_array(walker: Walker, path: str, value: Any) -> bool:
    """Reads other libraries' arrays: small arrays on the host are compared by their contents."""
    found = argument_of(value)
    if found is None:
        return False
    if not found.is_host:
        raise errors.NotRecordable(f"{path} is a {type(found.value).__module__}.{type(found.value).__qualname__} on a device, expected a PyTorch "
                                   "tensor: convert it (torch.as_tensor)")
    array = found.value
    read_host_array(walker, path, array)
    walker.watch(_of_contents(lambda: (array.dtype, array.shape, array.tobytes())))  # watched, because the array may be written at any time
    return True


@TORCH.reads_single(torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Size)
def _read_plain(walker: Walker, path: str, value: Any) -> None:
    walker.fact(path, f"{type(value).__name__} {value}")


@TORCH.reads_single(CachedFunction)
def _read_cached(walker: Walker, path: str, value: CachedFunction) -> None:
    """Reads the code of a cached function if that code is called. A module may have more cached functions than its method calls."""
    walker.fact(path, "function with a cache")
    name = path.rpartition(".")[2]
    if value._function is not None and (name in walker.reached.names or not name.isidentifier() or not path.startswith("self.")):
        walker.opened.append(id(value))
        try:
            walker.value(f"{path}.__wrapped__", value._function)
        finally:
            walker.opened.pop()


@TORCH.reads_single(torch.Tensor)
def read_tensor(walker: Walker, path: str, tensor: torch.Tensor) -> None:
    first = walker.arrays.get(id(tensor))
    if first is not None:
        walker.fact(path, f"is {first}")
        return
    if type(tensor) not in _tensors.PLAIN_TYPES and _tensor_subclasses.has_parts(tensor):
        _read_parts(walker, path, tensor)
        return
    via = via_of(walker, path)
    text, is_of_device = _tensors.read(tensor, may_be_hosts=via != "argument")
    if is_of_device:
        walker.found.facts[path] = f"tensor {text}"
        walker.places.append(TensorPlace(path, tensor, via))
    elif text:
        raise errors.NotRecordable(f"{path} {text}")
    else:
        _read_host_tensor(walker, path, tensor)
    walker.arrays[id(tensor)] = path
    held = tensor.__dict__
    if via != "argument":
        walker.watched.append(_identity_checks.of_dict(held))
    if held:
        walker.members(path, held)


def _read_parts(walker: Walker, path: str, tensor: torch.Tensor) -> None:
    """Reads a tensor of a subclass as its parts, its class, its context and its other attributes."""
    why = _tensor_subclasses.why_unusable(tensor)
    if why:
        raise errors.NotRecordable(f"{path} {why}")
    kind, held = type(tensor), vars(tensor)
    parts, context = _tensor_subclasses.parts_of(tensor)
    walker.arrays[id(tensor)] = path
    walker.fact(path, f"tensor {_reached_code.name_of_class(kind)} {_tensors.described(tensor)} of {' '.join(parts)}")
    walker.classes.setdefault(kind, False)
    walker.watch_class(kind)
    walker.watch_dict(held)
    walker.value(f"{path}.__tensor_flatten__", context)
    for name, value in {**parts, **held}.items():
        walker.value(f"{path}.{name}", value)


def _read_host_tensor(walker: Walker, path: str, tensor: torch.Tensor) -> None:
    nbytes = tensor.numel() * tensor.element_size()
    if nbytes > _SMALL:
        raise errors.NotRecordable(f"{path} is a tensor of {nbytes} bytes on the host, which a graph cannot follow: move it to the "
                                   "device")
    walker.watch(_of_contents(lambda: (_tensors.described(tensor), _bytes_of(tensor))))
    walker.fact(path, f"host tensor {_tensors.described(tensor)} {hashlib.sha256(_bytes_of(tensor)).hexdigest()}")


def _of_contents(read: Callable[[], tuple[Any, ...]]) -> Callable[[], tuple[Any, ...]]:
    """Makes a check for contents that may be written in place."""
    held = read()
    return lambda: (read() == held,)


def _bytes_of(tensor: torch.Tensor) -> bytes:
    flat = tensor.detach().cpu().contiguous().reshape(-1)  # the tensor may have moved to another device since it was found
    return bytes(flat.view(torch.uint8).numpy().tobytes()) if flat.numel() else b""


@TORCH.reads(torch.Generator)
def _read_generator(walker: Walker, path: str, value: torch.Generator) -> None:
    """Reads a generator. Its seed and offset are no facts, because a replay draws from where the generator is."""
    if value.device.type != _tensors.DEVICE_TYPE:
        raise errors.NotRecordable(f"{path} is a torch.Generator of {value.device}, whose random numbers no graph can draw: make it on the device of "
                                   "the tensors")
    walker.fact(path, "the device's generator" if any(value is one for one in torch.cuda.default_generators) else "generator")
    if type(value) is not torch.Generator:
        read_rest(walker, path, value)


@TORCH.reads(object)
def _read_triton_kernel(walker: Walker, path: str, value: Any) -> bool:
    if not type(value).__module__.startswith("triton.") or not isinstance(getattr(value, "fn", None), types.FunctionType):
        return False
    walker.functions[id(value.fn)] = value.fn  # this adds the function's globals, which include its helper functions
    walker.watch_function(value.fn)
    walker.fact(path, f"Triton kernel {_code_objects.code_digest(value.fn.__code__).hex()}")
    return True


@TORCH.reads(object)
def _read_triton_tuner(walker: Walker, path: str, value: Any) -> bool:
    if not _triton_tuners.is_tuner(value):
        return False
    held = {name: one for name, one in vars(value).items() if name not in _triton_tuners.OF_TUNING}
    walker.classes.setdefault(type(value), False)
    walker.watch_class(type(value))
    walker.watched.append(_identity_checks.of_items(vars(value), list(held)))
    walker.fact(path, f"Triton tuner {_reached_code.name_of_class(type(value))}")
    for name, one in held.items():
        walker.value(f"{path}.{name}", one)
    return True


@TORCH.reads(types.FunctionType)
def _read_compiled_function(walker: Walker, path: str, value: types.FunctionType) -> bool:
    """Reads the function that torch.compile was given. The function that torch.compile returned is not read, because it holds Dynamo's own
    objects, which change with each compilation."""
    inner = compiled_from(value)
    if inner is None:
        return False
    walker.compiled_via.add(via_of(walker, path))
    walker.watch_function(value)
    walker.fact(f"{path} compiled", _modules.how_compiled(value))
    if isinstance(inner, types.FunctionType) and _read_compiled_function(walker, path, inner):
        return True
    if below(inner) is None and not isinstance(inner, types.FunctionType):  # an object with __call__
        walker.value(f"{path}.__wrapped__", inner)
    else:
        read_function(walker, path, inner)
    return True
