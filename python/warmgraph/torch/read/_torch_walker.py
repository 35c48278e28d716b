"""Reads a call with PyTorch's tensors: each tensor by path, and every plain value of arguments, modules and configurations."""
from __future__ import annotations

import dataclasses
import enum
import functools
import hashlib
import sys
import types
from typing import Any, Callable, Iterable, Mapping, Protocol

import torch

from warmgraph import errors
from warmgraph.calls._cached_function import CachedFunction
from warmgraph.reading import _code_objects, _identity_checks, _plain_values, _reached_code, _stored_attributes, _walker
from warmgraph.torch.read import _installed_code, _modules, _tensors
from warmgraph.torch.read._tensor_checks import TensorChecks

_MOST_FACTS = 100_000
_LONGEST_MODULE = 2000  # letters of the plain values of one module
_SMALL = 64 << 10  # bytes of a tensor on the host that becomes a guard
_NONE = _plain_values.text_of(None)
_PLAIN_OF_TORCH = (torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Size)


@dataclasses.dataclass(slots=True, eq=False)  # not frozen, which takes three times as long to make
class Place:
    """Where a tensor was found. Nothing of it changes. `via`: "argument", "self" (the object of the method), or "elsewhere" (a closure, a global)."""

    path: str
    tensor: torch.Tensor
    via: str


def _of_contents(read: Callable[[], tuple[Any, ...]]) -> Callable[[], tuple[Any, ...]]:
    """For what is written in place."""
    held = read()
    return lambda: (read() == held,)


@dataclasses.dataclass(frozen=True)
class FactsOfArguments:
    """What a walk found of a call's arguments alone, as read_arguments finds it."""

    found: _walker.Found
    places: list[Place]
    objects: dict[str, Any]
    functions: dict[int, types.FunctionType]
    classes: dict[type, bool]


class KnownModules(Protocol):
    """What other walks found of modules (_shared_modules.SharedModules)."""

    def met(self, reached: _installed_code.TorchReached) -> dict[type, bool] | None: ...
    def note(self, reached: _installed_code.TorchReached, walker: Walker) -> None: ...
    def read(self, walker: Walker, path: str, module: torch.nn.Module) -> None: ...


class Walker(_walker.Walker):
    """One walk. `places` are the tensors in the order in which they were met, `objects` what a path names, `watched` what the object, the
    closures and the globals held, `compiled_via` where modules were met that PyTorch compiled, as Place.via says it."""

    def __init__(self, reached: _installed_code.TorchReached, is_tolerant: bool = False, known: KnownModules | None = None) -> None:
        """known: what other walks found of the surroundings' modules."""
        super().__init__(reached, is_tolerant)
        self.reached, self._known = reached, known
        self.parts: list[ModulePart] = []  # of `known`, which live as long as this walk
        self.around: _reached_code.Around | None = None  # as are these: what others of its code reach as well
        self.taken: list[tuple[int, ModulePart]] = []  # (where its places begin, the part)
        self.places: list[Place] = []
        self.objects: dict[str, Any] = {}
        self.watched: list[_identity_checks.Watched] = []
        self.compiled_via: set[str] = set()
        self._tensors: dict[int, str] = {}
        self._watched_classes: dict[type, _identity_checks.Watched] = {}
        self._values_of_classes: dict[type, dict[str, Any]] = {}
        self._classes_watched: set[type] = set()
        self._known_classes: dict[int, _stored_attributes.Stored] = {}  # by id, as this walk met them first

    def surroundings(self, owner: Any, named: Mapping[str, Any] = types.MappingProxyType({})) -> None:
        """`named`: what the caller names of them."""
        self.watched.clear()  # arguments are read at every call
        self.first_around = len(self.objects)
        found = dataclasses.replace(self.found, facts=dict(self.found.facts))
        self.of_arguments = FactsOfArguments(found, list(self.places), dict(self.objects), dict(self.functions), dict(self.classes))
        self._into = self.found.states
        for name, value in named.items():
            self.value(self._root(name, value), value)
        for function, names in zip(self._reached.functions, self._reached.globals):
            self.watched.append(_identity_checks.of_items(function.__globals__, names))
            self.watched.append(_identity_checks.of_function(function))
            self._compiled_functions(function, names)
            for held in (function.__dict__, function.__kwdefaults__):
                if held is not None:
                    self._watch_dict(held)
        inner = _modules.compiled_from(owner)
        if inner is not None:  # under the names that the module itself has
            self._compiled(self._root("self", inner), owner)
        super().surroundings(owner if inner is None else inner)
        self.watched += self._watched_classes.values()  # of arguments as well

    def _compiled_functions(self, function: types.FunctionType, names: Iterable[str]) -> None:
        """How those are compiled that its code has from torch.compile. Their code is followed as that of what torch.compile was given; of a method
        that torch.compile was given, the object is read."""
        named = [*((name, function.__globals__.get(name)) for name in names), *_reached_code.closed_over(function)]
        for name, value in named:
            if isinstance(value, types.FunctionType) and "_torchdynamo_orig_callable" in value.__dict__:
                self.compiled_via.add("elsewhere")
                self._fact(f"{function.__qualname__}.{name} compiled", _modules.how_compiled(value))
                if isinstance(given := _reached_code.compiled_from(value), types.MethodType):
                    self._named(f"{self._root(function.__name__, function)}.{name}.__self__", given.__self__)

    # --- values

    def _value(self, path: str, value: Any) -> None:
        if len(self.found.facts) > _MOST_FACTS:
            raise errors.NotRecordable(f"{path}: more than {_MOST_FACTS} values are reached from the function: pass what it needs")
        read = self._read.get(id(value))
        if read is not None:  # a configuration that each module has
            self.objects.setdefault(path, value)
            return self._fact(path, f"is {read[0]}")
        if not isinstance(value, _plain_values.KINDS):
            self.objects.setdefault(path, value)
        if isinstance(value, torch.Tensor):
            self._tensor(path, value)
        elif isinstance(value, CachedFunction):
            self._cached(path, value)
        elif isinstance(value, _PLAIN_OF_TORCH):
            self._fact(path, f"{type(value).__name__} {value}")
        elif type(value).__module__ == "torch._ops":
            self._fact(path, f"built-in {getattr(value, '__module__', None)}.{getattr(value, '__qualname__', value)}")
        else:
            super()._value(path, value)

    def _function(self, path: str, value: Any) -> None:
        """Its code is a fact, and may be exchanged (IPython's autoreload does)."""
        inner = _reached_code.compiled_from(value) if isinstance(value, types.FunctionType) else None
        if inner is not None:  # what torch.compile returned holds Dynamo's own objects, which change when it compiles: what it was given counts
            self.compiled_via.add(self._via(path))
            self.watched.append(_identity_checks.of_function(value))
            self._fact(f"{path} compiled", _modules.how_compiled(value))
            return self._function(path, inner)
        if isinstance(value, types.FunctionType):
            self.watched.append(_identity_checks.of_function(value))
        elif isinstance(value, functools.partial):
            self._watch(lambda: (value.func, value.args, value.keywords))
        super()._function(path, value)

    def _composite(self, path: str, value: Any) -> None:
        if isinstance(value, torch.nn.Module):
            if self._known is not None and self._into is self.found.states:
                self._known.read(self, path, value)
            else:
                self.read_module(path, value)
        elif isinstance(value, torch.Generator):
            raise errors.NotRecordable(f"{path} is a torch.Generator: random numbers are recorded of the default generator alone")
        elif type(value).__module__.startswith("triton.") and isinstance(getattr(value, "fn", None), types.FunctionType):
            self.functions[id(value.fn)] = value.fn  # whose globals are its helpers
            self.watched.append(_identity_checks.of_function(value.fn))
            self._fact(path, f"Triton kernel {_code_objects.code_digest(value.fn.__code__).hex()}")
        else:
            if isinstance(value, dict):
                self._watch_dict(value)
            elif type(value) is list:
                self.watched.append(_identity_checks.of_list(value))
            elif isinstance(value, (list, set)):
                self._watch(lambda: tuple(value))
            elif isinstance(value, enum.Enum):
                self._watch_class(type(value))
                self._watch_dict(vars(value))
            elif isinstance(value, types.ModuleType) and not self._is_library_module(value):
                self._watch_module(value)
            elif isinstance(value, type) and not self._reached.is_library(value.__module__, None):
                self._watch_class(value)
            super()._composite(path, value)

    def _cached(self, path: str, value: CachedFunction) -> None:
        """The code of one that is called. A module has more of them than its method calls."""
        self._fact(path, "function with a cache")
        name = path.rpartition(".")[2]
        if value._function is not None and (name in self._reached.names or not name.isidentifier() or not path.startswith("self.")):
            self._open.append(id(value))
            try:
                self.value(f"{path}.__wrapped__", value._function)
            finally:
                self._open.pop()

    def _array(self, path: str, leaf: Any) -> None:
        """Of other libraries: small ones on the host count by their contents."""
        if not leaf.is_host:
            raise errors.NotRecordable(f"{path} is a {type(leaf.value).__module__}.{type(leaf.value).__qualname__} on a device: pass a tensor "
                                       "of PyTorch's (torch.as_tensor)")
        array = leaf.value
        self._host_constant(path, array)
        self._watch(_of_contents(lambda: (array.dtype, array.shape, array.tobytes())))  # it may be written at any time

    def _rest(self, path: str, value: Any) -> None:
        kind = type(value)
        if kind.__module__ != "builtins":
            self._watch_class(kind)
            held = getattr(value, "__dict__", None)
            if isinstance(held, dict):
                self._watch_object(value, held)
            slots = _stored_attributes.slots(kind)
            if slots:
                self._watch(lambda: tuple(getattr(value, name, None) for name in slots))
        super()._rest(path, value)

    def _is_of_process(self, kind: type, name: str, value: Any) -> bool:
        """Contexts of PyTorch (torch.autocast) keep what they found when they were entered."""
        return super()._is_of_process(kind, name, value) or (name.startswith("prev") and kind.__module__.startswith("torch."))

    def _named_by_wrapper(self, path: str, value: Any) -> None:
        before = self._mark()
        try:
            self._named(path, value)
        except errors.NotRecordable:
            self._roll_back(before)

    def read_module(self, path: str, module: torch.nn.Module) -> None:
        kind = type(module)
        if isinstance(module, torch.jit.ScriptModule):
            raise errors.NotRecordable(f"{path} is a torch.jit.ScriptModule, whose code is not read: use the module that it was made of")
        inner = _modules.compiled_from(module)
        if inner is not None:
            self._fact(path, f"compiled {_modules.how_compiled(module)}", _LONGEST_MODULE)
            self._compiled(path, module)
            self.value(f"{path}._orig_mod", inner)
            return
        if _modules.is_compiled(module):
            self._fact(f"{path}._compiled_call_impl", f"compiled {_modules.how_compiled(module)}", _LONGEST_MODULE)
            self.compiled_via.add(self._via(path))
        self.classes.setdefault(kind, False)
        self._watch_class(kind)
        parts = (module._parameters, module._buffers, module._modules, module._forward_hooks, module._forward_pre_hooks)
        self.watched += _identity_checks.of_parts(module, module.__dict__, parts)
        if module._forward_hooks or module._forward_pre_hooks:
            for held in _modules.kinds_of_hooks(module):
                self._watch_dict(held)
        plain, others = [], {}
        for name, value in _modules.attributes_of(module, self._values_of_class(kind)):
            if type(value) in _plain_values.KINDS:
                plain.append(f"{name}={_plain_values.text_of(value)}")
            else:
                others[name] = value
        order = f" of {' '.join((*module._parameters, *module._buffers, *module._modules))}"  # who goes through them sees it
        self._fact(path, f"{_reached_code.name_of_class(kind)} {' '.join(plain)}{order}".strip(), _LONGEST_MODULE)
        for held in (module._parameters, module._buffers, module._modules):
            for name, value in list(held.items()):
                below = f"{path}.{name}"
                if value is None:
                    self._fact(below, _NONE)
                elif not self._is_tolerant and _tensors.is_plain(value):  # most of a model: by the shortest way
                    self.objects.setdefault(below, value)
                    self._tensor(below, value)
                else:
                    self.value(below, value)
        self._members(path, others, lambda _: True)
        for name in filter(module.__dict__.get, _modules.HOOKS):
            for at, (number, hook) in enumerate(list(getattr(module, name, {}).items())):
                self.value(f"{path}.{name}[{at}]", hook)
                kinds = _modules.kinds_of_hook(module, name, number)
                if kinds:
                    self._fact(f"{path}.{name}[{at}] is called", kinds)

    # --- what another walk found (_shared_modules.py)

    def opened(self) -> list[int]:
        """Ids of the objects that are being read, outermost first."""
        return list(self._open)

    def read_apart(self, path: str, module: torch.nn.Module) -> Walker:
        """A walk of the module alone, at this place, that has met nothing before."""
        one = Walker(self.reached)
        one._into, one._open = one.found.states, self.opened()
        one._stored, one._values_of_classes, one._known_classes = self._stored, self._values_of_classes, self._known_classes
        one.read_module(path, module)
        return one

    def met(self) -> tuple[dict[int, tuple[str, Any]], dict[int, str], dict[type, _identity_checks.Watched]]:
        """(objects that were read, paths of tensors, each by id; classes that are watched)."""
        return self._read, self._tensors, self._watched_classes

    def takes(self, part: ModulePart) -> bool:
        """What it found, as if it had been found here; not where both met an object: its first path is the one that counts."""
        if not (part.is_whole and part.ids.isdisjoint(self._read) and part.ids.isdisjoint(self._tensors)):
            return False
        self.parts.append(part)
        self.taken.append((len(self.places), part))
        kept: tuple[tuple[dict[Any, Any], dict[Any, Any]], ...] = (
            (self.found.facts, part.facts), (self.objects, part.objects), (self._read, part.read), (self._tensors, part.tensors),
            (self.functions, part.functions))
        for held, more in kept:
            held.update(more)
        self.places += part.places
        self.watched += part.watched
        self.compiled_via |= part.compiled_via
        for kind, is_constructed in part.classes.items():
            self.classes[kind] = is_constructed or self.classes.get(kind, False)
        for one, watched in part.watched_classes.items():
            self._watched_classes.setdefault(one, watched)
        return True

    def _compiled(self, path: str, module: Any) -> None:
        """What torch.compile returned, around the module that it was given."""
        outside = _modules.hooks_outside(module)
        if outside:
            raise errors.NotRecordable(f"{path} has {outside} of what torch.compile returned, which run around the compiled code: register them "
                                       "on the module that it was given")
        self.compiled_via.add(self._via(path))
        self._watch_object(module, module.__dict__)
        for held in (module._modules, *(module.__dict__[name] for name in _modules.HOOKS)):
            self._watch_dict(held)

    def _members(self, path: str, members: dict[str, Any], is_read: Callable[[str], bool] | None = None) -> None:
        """What cannot be compared is left out where no code that was read names it."""
        for name, one in list(members.items()) if is_read else sorted(members.items()):
            if not (is_read(name) if is_read else name in self._names):
                continue
            if type(one) in _plain_values.KINDS and len(self.found.facts) < _MOST_FACTS:  # as most are: nothing of it is refused
                self._fact(f"{path}.{name}", _plain_values.text_of(one))
                continue
            before = self._mark()
            try:
                self._value(f"{path}.{name}", one)
            except errors.NotRecordable:
                self._roll_back(before)
                if name in self._reached.names and not self._is_tolerant:
                    raise

    def _values_of_class(self, kind: type) -> dict[str, Any]:
        """Plain values of a module's classes, and what else of these the code names."""
        if kind not in self._values_of_classes:
            found: dict[str, Any] = {}
            for one in kind.__mro__:
                for name, value in self._stored_by(one).plain if one not in (torch.nn.Module, object) else ():
                    found.setdefault(name, value)
            for name, value in self._stored_in(kind):
                if name in self._names:
                    found.setdefault(name, value)
            self._values_of_classes[kind] = found
        return self._values_of_classes[kind]

    def _watch(self, look: Callable[[], tuple[Any, ...]]) -> None:
        self.watched.append(_identity_checks.Watched(look))

    def _watch_dict(self, held: Any) -> None:
        self.watched.append(_identity_checks.of_dict(held))

    def _watch_object(self, value: Any, held: dict[str, Any]) -> None:
        self.watched.append(_identity_checks.of_object(value, held))

    def _watch_class(self, kind: type) -> None:
        if kind in self._classes_watched:
            return
        self._classes_watched.add(kind)
        _installed_code.leave_slot_names(kind)
        for one in kind.__mro__:
            if one not in self._watched_classes and one not in (torch.nn.Module, object):
                self._watched_classes[one] = self._stored_by(one).watched

    def _stored_by(self, kind: type) -> _stored_attributes.Stored:
        """A change since then is seen by who looks at what is watched."""
        known = self._known_classes.get(id(kind))
        if known is None:
            known = self._known_classes[id(kind)] = _stored_attributes.stored_by(kind)
        return known

    def _watch_module(self, module: types.ModuleType) -> None:
        """What code names of it."""
        held = vars(module)
        names, count = [name for name in held if name in self._reached.names], len(held)
        self._watch(lambda: (len(held) == count, *map(held.get, names)))

    def _mark(self) -> tuple[int, ...]:
        return (len(self.found.facts), len(self.objects), len(self._read), len(self._tensors), len(self.places), len(self.watched))

    def _roll_back(self, mark: tuple[int, ...]) -> None:
        kept: tuple[dict[Any, Any], ...] = (self.found.facts, self.objects, self._read, self._tensors)
        for held, size in zip(kept, mark):
            while len(held) > size:
                held.popitem()
        del self.places[mark[4]:]
        self.taken = [one for one in self.taken if one[0] < mark[4]]
        del self.watched[mark[5]:]

    # --- tensors

    def _via(self, path: str) -> str:
        if self._into is self.found.arguments:
            return "argument"
        return "self" if path == "self" or path.startswith(("self.", "self[")) else "elsewhere"

    def _tensor(self, path: str, tensor: torch.Tensor) -> None:
        first = self._tensors.get(id(tensor))
        if first is not None:
            self._fact(path, f"is {first}")
            return
        via, is_hosts = self._via(path), tensor.device.type == "cpu" != _tensors.DEVICE_TYPE
        if via != "argument" and is_hosts and _tensors.is_plain(tensor) and tensor.layout == torch.strided:
            self._host_tensor(path, tensor)
        else:
            why = _tensors.why_unusable(tensor)
            if why:
                raise errors.NotRecordable(f"{path} {why}")
            self._fact(path, f"tensor {_tensors.described(tensor)}")
            self.places.append(Place(path, tensor, via))
        self._tensors[id(tensor)] = path
        if via != "argument":
            self._watch_dict(tensor.__dict__)
        if tensor.__dict__:
            self._members(path, tensor.__dict__)

    def _host_tensor(self, path: str, tensor: torch.Tensor) -> None:
        nbytes = tensor.numel() * tensor.element_size()
        if nbytes > _SMALL:
            raise errors.NotRecordable(f"{path} is a tensor of {nbytes} bytes on the host, which a graph cannot follow: move it to the "
                                       "device")
        self._watch(_of_contents(lambda: (_tensors.described(tensor), _bytes_of(tensor))))
        self._fact(path, f"host tensor {_tensors.described(tensor)} {hashlib.sha256(_bytes_of(tensor)).hexdigest()}")

    def _fact(self, path: str, text: str, longest: int = _walker._LONGEST) -> None:
        self.found.facts[path] = _plain_values.shortened(text, longest)


class ModulePart:
    """What a walk of its own found of one module. Whoever holds it holds the module, and nothing of the function that it was read for."""

    def __init__(self, walker: Walker, path: str, module: torch.nn.Module, packages: dict[str, None]) -> None:
        self.path = path
        self.packages, self._module, self._open = packages, module, walker.opened()
        self.facts, self.objects, self.places, self.watched = walker.found.facts, walker.objects, walker.places, walker.watched
        self.classes, self.functions, self.compiled_via = walker.classes, walker.functions, walker.compiled_via
        self.read, self.tensors, self.watched_classes = walker.met()
        self.ids = self.read.keys() | self.tensors.keys()
        self.is_whole = not (walker.found.programs or walker.found.devices)  # all that there is to it is here
        self._held = _identity_checks.Held([*self.watched, *self.watched_classes.values()])
        self._looks = TensorChecks(one.tensor for one in self.places)
        # For _regions: (where and how large their storages were, the regions, their ids), and what these say.
        self.regions: tuple[Any, list[Any], frozenset[int]] | None = None
        self.memory: dict[str, str] | None = None
        self.listed: tuple[dict[str, str], list[str], str] | None = None  # for _fact_lists: (all facts of both, their texts, as a list)

    def is_same(self, opened: list[int]) -> bool:
        """opened: ids of the objects around it."""
        return self._open == opened and self._held.is_same() and self._looks.are_same()


def _bytes_of(tensor: torch.Tensor) -> bytes:
    flat = tensor.detach().cpu().contiguous().reshape(-1)  # it may have been moved since
    return bytes(flat.view(torch.uint8).numpy().tobytes()) if flat.numel() else b""


def read(reached: _installed_code.TorchReached, arguments: dict[str, Any], owner: Any, named: Mapping[str, Any] = types.MappingProxyType({}),
         known: KnownModules | None = None, is_tolerant: bool = False) -> tuple[Walker, _installed_code.TorchReached]:
    """A call, as often as it takes until nothing new was met on the way; with the code that it may run. known: what calls of other functions
    found. is_tolerant: what cannot be compared is left out."""
    now: Any = reached.latest()
    classes = known.met(reached) if now is reached and known is not None else None
    if classes is not None:
        now = reached.with_met(classes, ())
    parts: list[ModulePart] = []  # of all walks: the next call takes as many
    for _ in range(_walker._MOST_WALKS):
        walker = Walker(now, is_tolerant, known)
        walker.parts = parts
        with now.noted() as packages:
            walker.arguments(arguments)
            walker.surroundings(owner, named)
        met: Any = reached.with_met(walker.classes, walker.functions.values())
        met.packages.update(packages)  # a walk leaves slots' names in a class, which makes another of it
        if met is now or met.reads_as(now):
            if known is not None:
                known.note(met, walker)
            return walker, met
        now = met
    raise errors.NotRecordable("what it uses changes while it is read: keep other threads from changing its arguments and objects")


def read_arguments(reached: _installed_code.TorchReached, arguments: dict[str, Any]) -> Walker:
    walker = Walker(reached)
    walker.arguments(arguments)
    return walker


def is_torch_call(owner: Any, values: Iterable[Any]) -> bool:
    """A module's method, or tensors among the arguments (or one step inside of them)."""
    return isinstance(owner, torch.nn.Module) or any(_has_tensor(value, 4) for value in values)


def _has_tensor(value: Any, depth: int) -> bool:
    if isinstance(value, torch.Tensor):
        return True
    if depth == 0 or isinstance(value, (*_plain_values.KINDS, type)):
        return False
    if isinstance(value, dict):
        return any(_has_tensor(one, depth - 1) for one in value.values())
    if isinstance(value, (list, tuple)):
        return any(_has_tensor(one, depth - 1) for one in value)
    if dataclasses.is_dataclass(value) or type(value).__module__.split(".")[0] not in sys.stdlib_module_names:
        return any(_has_tensor(one, depth - 1) for one in getattr(value, "__dict__", {}).values())
    return False
