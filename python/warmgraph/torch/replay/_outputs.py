"""Describes a function's result for an entry: tensors that a replay writes, views of the call's tensors, objects of the call, and plain
values. An object of a plain Python class is its class and its attributes."""
from __future__ import annotations

import dataclasses
import json
import math
import sys
from typing import Any, Callable, Iterator, Mapping, Sequence

import torch

from warmgraph import errors
from warmgraph.core.serving._entry_metadata import VERSION
from warmgraph.reading import _stored_attributes
from warmgraph.torch.read import _tensors
from warmgraph.torch.replay import _counters, _host_draws, _state_contents
from warmgraph.torch.replay._regions import Region, storage_key

ALIGNMENT = 256  # bytes; the least alignment of cudaMalloc (CUDA C Programming Guide, Device Memory Accesses); guards compare none larger
_PLAIN = (bool, int, float, str, type(None))
# A class with a method of its own among these may store or do more than its objects' attributes show.
_OF_OBJECT = ("__new__", "__setattr__", "__getattribute__", "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__", "__getnewargs__",
              "__getnewargs_ex__", "__del__")


@dataclasses.dataclass(frozen=True)
class Output:
    """A tensor that the graph writes."""

    name: str
    dtype: str  # the name in PyTorch
    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    def allocate(self, device: torch.device) -> torch.Tensor:
        return torch.empty_strided(self.sizes, self.strides, dtype=_tensors.dtype_of(self.dtype), device=device)


@dataclasses.dataclass
class ResultDescription:
    """The structure of a result. `fresh`: the tensors for which `outputs` has an element, in the same order."""

    tree: Any
    outputs: list[Output]
    fresh: list[torch.Tensor]


class _ResultReader:
    def __init__(self, objects: dict[str, Any], regions: Sequence[Region], takes_parts: bool) -> None:
        self._takes_parts = takes_parts
        self._paths = {id(value): path for path, value in reversed(objects.items()) if not isinstance(value, (*_PLAIN, type, tuple))}
        self._regions = {int(region.storage.data_ptr()): region for region in regions}
        self.outputs: list[Output] = []
        self.fresh: list[torch.Tensor] = []
        self._seen: dict[int, int] = {}
        self._places: list[tuple[str, torch.Tensor]] = []  # the path of each tensor in `fresh`
        self._device_of = next(((region.places[0].path, region.places[0].tensor.device) for region in regions), None)
        self._made: dict[int, tuple[str, Any]] = {}  # by id: (path, value) of the containers and objects that a replay makes

    def tree(self, path: str, value: Any) -> Any:
        if isinstance(value, _PLAIN) and type(value) in _PLAIN:
            return {"plain": repr(value) if isinstance(value, float) and not math.isfinite(value) else value,
                    **({"type": "float"} if isinstance(value, float) else {})}
        if id(value) in self._paths:
            return {"same": self._paths[id(value)]}
        if isinstance(value, torch.Tensor):
            return self._tensor(path, value)
        if isinstance(value, (type, torch.dtype, torch.device)):
            return self._named(path, value)
        self._expect_once(path, value)
        self._expect_no_more(path, value)
        if isinstance(value, dict) and not dataclasses.is_dataclass(value):
            return {"dict": _class_name(path, value), "items": [[self._key(path, key), self.tree(f"{path}[{key!r}]", one)]
                                                               for key, one in value.items()]}
        if isinstance(value, (list, tuple)):
            fields = getattr(value, "_fields", None)
            return {"sequence": _class_name(path, value), "named": fields is not None,
                    "of": [self.tree(f"{path}[{i}]", one) for i, one in enumerate(value)]}
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return {"data": _class_name(path, value), "fields": [[field.name, self.tree(f"{path}.{field.name}", getattr(value, field.name))]
                                                                 for field in dataclasses.fields(value)]}
        why = _why_not_made(type(value))
        if why:
            raise errors.NotRecordable(f"{path} is a {type(value).__module__}.{type(value).__qualname__}, which a replay cannot make ({why}): "
                                       "return tensors, plain values, and lists, tuples, dicts, data classes and plain objects of them")
        return {"object": _class_name(path, value), "fields": [[name, self.tree(f"{path}.{name}", one)] for name, one in vars(value).items()]}

    def _named(self, path: str, value: Any) -> Any:
        """Describes a class, an element type or a device."""
        if isinstance(value, type):
            return {"class": _name_of_class(path, value)}
        if isinstance(value, torch.dtype):
            return {"dtype": _tensors.text_of(value)}
        if value.type != _tensors.DEVICE_TYPE or value.index is None:
            return {"device": str(value)}
        if self._device_of is None or value != self._device_of[1]:
            raise errors.NotRecordable(f"{path} is the device {value}, but the call's tensors do not lie there: return the index as a number")
        return {"device_of": self._device_of[0]}  # a later process may use another device

    def _expect_once(self, path: str, value: Any) -> None:
        other = self._made.setdefault(id(value), (path, value))[0] if not isinstance(value, tuple) else path
        if other != path:
            raise errors.NotRecordable(f"{path} and {other} are one {type(value).__qualname__}, but a replay makes each anew: return it once")

    def _expect_no_more(self, path: str, value: Any) -> None:
        fields = {field.name for field in dataclasses.fields(value)} if dataclasses.is_dataclass(value) else set()
        more = sorted(set(getattr(value, "__dict__", ())) - fields)
        if more and isinstance(value, (dict, list, tuple)) or more and fields:
            raise errors.NotRecordable(f"{path} has the attribute {more[0]!r}, which a replay cannot make: store it in an item or a field")

    def _expect_apart(self, path: str, tensor: torch.Tensor) -> None:
        for other_path, other in self._places:
            if storage_key(tensor) == storage_key(other) and _tensors.overlap(tensor, other):
                raise errors.NotRecordable(f"{path} shares memory with {other_path}, but a replay gives each its own memory: return the whole tensor "
                                           "before its parts, one of the two, or a clone()")
        self._places.append((path, tensor))

    def _whole_of(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """An earlier result that contains this tensor. In a replay the tensor then has the same layout inside that result."""
        for _, other in self._places:
            if storage_key(tensor) == storage_key(other):
                start = _tensors.start_in_storage(tensor) - _tensors.start_in_storage(other)
                is_within = 0 <= start <= _tensors.extent(other) - _tensors.extent(tensor) and start % tensor.element_size() == 0
                if is_within and _is_dense(other):
                    return other
        return None

    def _key(self, path: str, key: Any) -> Any:
        if type(key) not in (str, int, bool):
            raise errors.NotRecordable(f"{path} has the key {key!r} of type {type(key).__qualname__}: return dicts with texts or numbers as keys")
        return key

    def _tensor(self, path: str, tensor: torch.Tensor) -> Any:
        why = _tensors.why_unusable(tensor)
        if why:
            raise errors.NotRecordable(f"{path} {why}")
        if id(tensor) in self._seen:
            return {"output": self._seen[id(tensor)]}
        region = self._regions.get(storage_key(tensor)) if tensor.numel() else None
        if region is not None:  # the result is a view of one of the call's tensors
            first = region.places[0]
            return {"view": first.path, **_seen_from(first.tensor, tensor)}
        whole = self._whole_of(tensor) if self._takes_parts and tensor.numel() else None
        if whole is not None:
            return {"part": self._seen[id(whole)], **_seen_from(whole, tensor)}
        self._expect_apart(path, tensor)
        like = torch.empty_like(tensor, device="meta")  # has no gaps, and the same order of dimensions
        self._seen[id(tensor)] = len(self.outputs)
        self.outputs.append(Output(f"result{len(self.outputs)}", _tensors.text_of(tensor.dtype), tuple(tensor.size()), tuple(like.stride())))
        self.fresh.append(tensor)
        return {"output": self._seen[id(tensor)]}


def _seen_from(base: torch.Tensor, tensor: torch.Tensor) -> dict[str, Any]:
    return {"start": _tensors.start_in_storage(tensor) - _tensors.start_in_storage(base), "dtype": _tensors.text_of(tensor.dtype), "sizes": list(tensor.size()),
            "strides": list(tensor.stride())}


def _seen(tree: Any, base: torch.Tensor) -> torch.Tensor:
    start = _tensors.start_in_storage(base) + tree["start"]
    return _tensors.view_of(base.untyped_storage(), _tensors.dtype_of(tree["dtype"]), start, tree["sizes"], tree["strides"], base.device)


def _is_dense(tensor: torch.Tensor) -> bool:
    """Whether the tensor has no gaps between elements, so that torch.empty_like gives the same strides."""
    like = torch.empty_like(tensor, device="meta")
    return like.stride() == tensor.stride() and _tensors.extent(tensor) == tensor.numel() * tensor.element_size()


def _class_name(path: str, value: Any) -> str:
    return _name_of_class(path, type(value))


def _name_of_class(path: str, kind: type) -> str:
    name = f"{kind.__module__}:{kind.__qualname__}"
    if "<locals>" in kind.__qualname__ or _found(name) is not kind:
        raise errors.NotRecordable(f"{path} is a {kind.__module__}.{kind.__qualname__}, which another process cannot find: define the "
                                   "class at the top of its module")
    return name


def _why_not_made(kind: type) -> str:
    """Why an object of the class is more than the attributes that it shows, or ""."""
    if not kind.__dictoffset__ or _stored_attributes.has_hidden_state(kind):
        return "its state lies not in attributes alone"
    slots = [name for name in _stored_attributes.slots(kind) if name not in ("__dict__", "__weakref__")]
    own = next((name for name in _OF_OBJECT if getattr(kind, name, None) is not getattr(object, name, None)), "")
    return f"it has the slot {slots[0]!r}" if slots else f"its class has its own {own}" if own else ""


def described(value: Any, objects: dict[str, Any], regions: Sequence[Region], takes_parts: bool = False) -> ResultDescription:
    """Describes a result. Raises NotRecordable, which names the value, if a replay cannot return a value. takes_parts: a view of an earlier
    result gets no output of its own."""
    describer = _ResultReader(objects, regions, takes_parts)
    tree = describer.tree("result", value)
    return ResultDescription(tree, describer.outputs, describer.fresh)


# --- Metadata


def to_text(described: ResultDescription, regions: Sequence[Region], draws: int, objects: Mapping[str, Any],
            host_draws: Sequence[_host_draws.HostDraw] = (), generator: str = "") -> str:
    """The text that an entry stores as its metadata. `objects`: the objects in the surroundings, by path. The members for aliases and
    contents are for processes without PyTorch (core/serving/_entry_metadata.py); older entries lack these members."""
    return json.dumps({
        "warmgraph.torch": VERSION, "result": described.tree, "draws": draws,
        "outputs": [[one.name, one.dtype, list(one.sizes), list(one.strides)] for one in described.outputs],
        "written": [region.name for region in regions if region.is_state and region.is_written],
        "aligned": {region.name: alignment_of(region.pointer) for region in regions if not region.is_state and not region.is_written},
        "aliases": _state_contents.aliases(regions, objects), "contents": _state_contents.contents(regions, objects),
        **({"host_draws": _host_draws.to_raw(host_draws)} if host_draws else {}), **({"generator": generator} if generator else {}),
    }, separators=(",", ":"))


def with_counters(text: str, counters: _counters.Counters) -> str:
    """The metadata of an entry with counters."""
    return json.dumps({**json.loads(text), "counters": _counters.to_raw(counters)}, separators=(",", ":"))


def alignment_of(pointer: int) -> int:
    return min(pointer & -pointer, ALIGNMENT) or ALIGNMENT


@dataclasses.dataclass(frozen=True)
class Metadata:
    tree: Any
    outputs: tuple[Output, ...]
    written: frozenset[str]  # names of the states that the function writes
    draws: int  # how far a call advances the generator's offset
    aligned: Mapping[str, int]  # for each input that is not written: its alignment in the recording, in bytes
    pair: Any = None  # for _pair_metadata, in a forward half
    host_draws: tuple[_host_draws.HostDraw, ...] = ()  # random numbers of the host that a call draws and does not read
    generator: str = ""  # the path of the caller's generator from which a call draws; "": the device's
    counters: _counters.Counters = ()  # numbers in the arguments that a call advances


def from_text(text: str) -> Metadata:
    """Reads the metadata. Raises Corrupt for a text that to_text does not write."""
    try:
        found = json.loads(text)
        if found["warmgraph.torch"] != VERSION:
            raise errors.Stale(f"metadata of version {found['warmgraph.torch']}, expected {VERSION}")
        outputs = tuple(Output(str(name), str(dtype), tuple(map(int, sizes)), tuple(map(int, strides)))
                        for name, dtype, sizes, strides in found["outputs"])
        return Metadata(found["result"], outputs, frozenset(map(str, found["written"])), int(found["draws"]),
                        {str(name): max(1, int(alignment)) for name, alignment in found["aligned"].items()}, found.get("pair"),
                        _host_draws.from_raw(found.get("host_draws", ())), str(found.get("generator", "")), _counters.from_raw(found.get("counters", ())))
    except (ValueError, KeyError, TypeError, AttributeError, RuntimeError) as error:
        raise errors.Corrupt(f"the entry's metadata cannot be read: {error}") from None


# --- Making the result again


def rebuilt(tree: Any, outputs: Sequence[torch.Tensor], objects: Callable[[str], Any]) -> Any:
    """Makes the result of a replay. `objects(path)` returns the call's object at the path."""
    if "plain" in tree:
        return float(tree["plain"]) if tree.get("type") == "float" else tree["plain"]
    if "same" in tree:
        return objects(tree["same"])
    if "output" in tree:
        return outputs[tree["output"]]
    if "view" in tree:
        return _seen(tree, objects(tree["view"]))
    if "part" in tree:
        return _seen(tree, outputs[tree["part"]])
    if "sequence" in tree:
        kind, items = _class(tree["sequence"]), [rebuilt(one, outputs, objects) for one in tree["of"]]
        return kind(*items) if tree["named"] else kind(items)
    if "dict" in tree:
        pairs = {key: rebuilt(one, outputs, objects) for key, one in tree["items"]}
        kind = _class(tree["dict"])
        return pairs if kind is dict else kind(pairs)
    if "object" in tree:
        made = object.__new__(_class(tree["object"]))
        vars(made).update({name: rebuilt(one, outputs, objects) for name, one in tree["fields"]})
        return made
    if "class" in tree:
        return _class(tree["class"])
    if "dtype" in tree:
        return _tensors.dtype_of(tree["dtype"])
    if "device" in tree:
        return torch.device(tree["device"])
    if "device_of" in tree:
        return objects(tree["device_of"]).device
    return _data(_class(tree["data"]), {name: rebuilt(one, outputs, objects) for name, one in tree["fields"]})


def _data(kind: Any, fields: dict[str, Any]) -> Any:
    if issubclass(kind, dict):  # transformers' output classes fill themselves from keyword arguments
        return kind(**{name: value for name, value in fields.items() if value is not None})
    made = object.__new__(kind)
    for name, value in fields.items():
        object.__setattr__(made, name, value)
    return made


def _class(name: str) -> Any:
    """The class with this name. Imports nothing: if the class's module is not loaded, raises NotFound."""
    found = _found(name)
    if not isinstance(found, type):
        module, _, path = name.partition(":")
        raise errors.NotFound(f"the result is a {path} of {module}, but this module is not imported: import it before the call")
    return found


def _found(name: str) -> Any:
    module, _, path = name.partition(":")
    found: Any = sys.modules.get(module)
    for part in path.split("."):
        found = getattr(found, part, None)
    return found


def paths_in(tree: Any, kinds: Sequence[str] = ("same", "view", "device_of")) -> Iterator[str]:
    """The paths that `rebuilt` will use for results of these kinds."""
    if isinstance(tree, dict):
        yield from (tree[kind] for kind in kinds if isinstance(tree.get(kind), str))
        for one in tree.values():
            yield from paths_in(one, kinds)
    elif isinstance(tree, list):
        for one in tree:
            yield from paths_in(one, kinds)


def why_not_rebuilt(metadata: Metadata, objects: Callable[[str], Any]) -> str:
    """Why `rebuilt` would fail, or "". Call this before a launch, because after it the caller's memory is already changed."""
    try:
        rebuilt(metadata.tree, [one.allocate(torch.device("meta")) for one in metadata.outputs], objects)
    except Exception as error:
        return f"the result cannot be made again ({type(error).__name__}: {error}): return lists, tuples, dicts, data classes or plain objects"
    return ""


def missing_class(tree: Any) -> str:
    """The reason why `rebuilt` would not find a class, or ""."""
    if isinstance(tree, dict):
        for kind in ("sequence", "dict", "data", "object", "class"):
            if kind in tree:
                try:
                    _class(tree[kind])
                except errors.NotFound as error:
                    return str(error)
        return next(filter(None, map(missing_class, tree.values())), "")
    if isinstance(tree, list):
        return next(filter(None, map(missing_class, tree)), "")
    return ""
