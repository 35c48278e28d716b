"""Checks Python objects natively before a call: dictionaries' contents, by identity, and tensors' addresses, through DLPack's exchange
table. This works with any version of Python and of a framework (wg_snapshot and related functions)."""
from __future__ import annotations

import array
import collections
import ctypes
import functools
import gc
import itertools
import sys
import types
from typing import Any, Callable, Collection, Iterable, Iterator, Sequence

from warmgraph.core.binding import _c
from warmgraph.core.binding._library import library

ABSENT = object()
_CAPSULE = b"dlpack_exchange_api"


def is_possible() -> bool:
    """True if Python is CPython with its global lock, which keeps dictionaries unchanged while they are read, and the library finds
    Python's functions."""
    return sys.implementation.name == "cpython" and getattr(sys, "_is_gil_enabled", lambda: True)() and _is_python_found()


@functools.cache
def _is_python_found() -> bool:
    return bool(_native().wg_snapshot_is_same(ctypes.byref(_c.wg_snapshot())) == 1)


def dict_of(mapping: Any) -> dict[Any, Any] | None:
    """The dictionary itself, or the dictionary behind a class's read-only view; None for a dictionary type with its own methods."""
    # Not for an OrderedDict with several items: move_to_end changes its order, which a comparison of its items does not show.
    if type(mapping) is dict or type(mapping) is collections.OrderedDict and len(mapping) < 2:
        return mapping
    if isinstance(mapping, types.MappingProxyType):
        found: list[Any] = gc.get_referents(mapping)
        if len(found) == 1 and type(found[0]) is dict:
            return found[0]
    return None


@functools.cache
def _native() -> Any:
    """The library, whose functions are called while holding Python's global lock."""
    held = library().with_lock()
    for name in ("wg_tensors_are_there", "wg_look_at_tensors", "wg_snapshot_is_same", "wg_steady_call_create"):
        getattr(held, name).restype = _c.FUNCTIONS[name][0]
    held.wg_list_facts.restype = ctypes.py_object
    return held


def _counted(name: str, *arguments: Any) -> Callable[[], int]:
    """A call of a native function with constant arguments. They are ctypes objects: converting them each time would take as long as the
    call."""
    return functools.partial(getattr(_native(), name), *arguments)


class _Watcher:
    """Gets Python's notice of each change of a watched dictionary. `events` counts the changes of all watched dictionaries."""

    def __init__(self) -> None:
        add, watch = ctypes.pythonapi.PyDict_AddWatcher, ctypes.pythonapi.PyDict_Watch
        add.argtypes, watch.argtypes = [ctypes.c_void_p], [ctypes.c_int, ctypes.py_object]
        held = library().with_lock()
        held.wg_dict_events.restype = ctypes.c_void_p
        self.events = ctypes.c_uint64.from_address(held.wg_dict_events())
        self._number = int(add(ctypes.cast(held.wg_note_dict_event, ctypes.c_void_p)))
        self._watch = functools.partial(watch, self._number)

    def watch(self, one: dict[Any, Any]) -> None:
        """Watches a dictionary for ever: nothing stops the watching, because others may need it, too. Python stops watching a deleted
        dictionary."""
        self._watch(one)


@functools.cache
def watcher() -> _Watcher | None:
    """The watcher; None except in Python 3.12 with a free watcher. Python 3.11 has no watchers; 3.13.0 misses attributes that are written
    past an object's dictionary."""
    if sys.version_info[:2] != (3, 12) or not is_possible():
        return None
    try:
        made, tried = _Watcher(), types.SimpleNamespace(a=0)
        made.watch(vars(tried))
        before = made.events.value
        tried.a = 1
        return made if made.events.value == before + 1 else None
    except (AttributeError, RuntimeError):
        return None


class Snapshot:
    """The current contents of dictionaries and lists, classes and attributes. `is_same` returns true until one of them changes. If Python
    gives notice of changes, dictionaries are only compared after a notice."""

    def __init__(self, wholes: Sequence[dict[Any, Any]] = (), items: Sequence[tuple[dict[Any, Any], Any]] = (),
                 lists: Sequence[tuple[list[Any], list[Any]]] = (), objects: Sequence[tuple[Any, dict[Any, Any] | None, type]] = (),
                 attributes: Sequence[tuple[Any, str, Any]] = ()) -> None:
        """lists: (list, contents). objects: (object, dictionary of its attributes, class); None as the dictionary allows any (see
        are_attributes_in). attributes: (object, name, value of getattr or ABSENT)."""
        told = watcher() if wholes else None
        self.raw = raw = _c.wg_snapshot(is_told=int(told is not None))
        if told is not None:
            for held in wholes:
                told.watch(held)
            raw.has_seen, raw.seen = 1, told.events.value  # set before the contents are read, so that later changes are noticed
        parts = [[one for pair in held.items() for one in pair] for held in wholes]  # reads each dictionary once; other threads may write
        found = list(itertools.chain.from_iterable(parts))
        values = [held.get(key, ABSENT) for held, key in items]
        self._keep: list[Any] = [list(wholes), list(items), list(lists), list(objects), list(attributes), found, values]
        pairs, listed = array.array("Q", map(id, found)), array.array("Q", [id(one) for _, own in lists for one in own])
        self._keep += [pairs, listed]
        self._rows("dict", _c.wg_dict_look, zip(map(id, wholes), _parts(pairs, counts := [len(part) for part in parts]), (count // 2 for count in counts)))
        self._rows("item", _c.wg_dict_item_look, ((id(held), id(key), _id_of(value)) for (held, key), value in zip(items, values)))
        self._rows("list", _c.wg_list_look, zip([id(one) for one, _ in lists], _parts(listed, counts := [len(own) for _, own in lists]), counts))
        self._rows("object", _c.wg_object_look, ((id(one), 0 if held is None else id(held), id(kind), 0) for one, held, kind in objects))
        self._rows("attribute", _c.wg_attribute_look, ((id(one), id(name), _id_of(value)) for one, name, value in attributes))
        self._is_same = _counted("wg_snapshot_is_same", ctypes.byref(raw))

    def is_same(self) -> bool:
        return self._is_same() == 1

    def _rows(self, name: str, kind: Any, rows: Iterable[tuple[int, ...]]) -> None:
        numbers = array.array("Q", [number for row in rows for number in row])
        self._keep.append(numbers)
        setattr(self.raw, f"{name}s", ctypes.cast(numbers.buffer_info()[0], ctypes.POINTER(kind)))
        setattr(self.raw, f"{name}_count", 8 * len(numbers) // ctypes.sizeof(kind))


def _id_of(value: Any) -> int:
    return 0 if value is ABSENT else id(value)


def _parts(numbers: array.array[int], counts: Sequence[int]) -> Iterator[int]:
    """The address of each part of `numbers`; `counts` are the lengths of the parts."""
    first = numbers.buffer_info()[0]
    return (first + 8 * at for at in itertools.accumulate(counts, initial=0))


@functools.cache
def _own_attributes() -> Callable[[Any, None], Any]:
    read = ctypes.pythonapi.PyObject_GenericGetDict
    read.restype, read.argtypes = ctypes.py_object, [ctypes.py_object, ctypes.c_void_p]
    return read


def are_attributes_in(held: Any, value: Any) -> bool:
    """Whether the object's `__dict__` is a real dictionary of its own. It could also be made at each access (a property, a proxy)."""
    try:
        return _own_attributes()(value, None) is held
    except (AttributeError, TypeError):
        return False


class _Header(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("previous", ctypes.c_void_p)]


class _Api(ctypes.Structure):
    _fields_ = [("header", _Header), ("allocate", ctypes.c_void_p), ("export", ctypes.c_void_p), ("imported", ctypes.c_void_p),
                ("dltensor_from_object", ctypes.c_void_p), ("stream", ctypes.c_void_p)]


@functools.cache
def exchange_of(kind: type) -> int | None:
    """The address of the C function that describes a tensor of this class, from DLPack's exchange table (`__dlpack_c_exchange_api__`,
    DLPack 1.2). None when the class has no table of version 1."""
    capsule = getattr(kind, "__dlpack_c_exchange_api__", None)
    if capsule is None or not is_possible():
        return None
    python = ctypes.PyDLL(None)
    pointer_of = python.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    at = pointer_of(capsule, _CAPSULE)
    while at:
        header = _Header.from_address(at)
        if header.major == 1:
            read = _Api.from_address(at).dltensor_from_object
            return int(read) if read else None
        at = header.previous
    return None


class Tensors:
    """The state that tensors of one framework have now. The caller keeps the tensors alive."""

    def __init__(self, exchange: int, tensors: Sequence[Any]) -> None:
        """Makes `looks`, an array of wg_tensor_look with the tensors' descriptions and addresses."""
        self._objects, self._count = (ctypes.c_void_p * len(tensors))(*map(id, tensors)), len(tensors)
        self._own = (ctypes.c_uint64 * len(tensors))()
        self.looks = (_c.wg_tensor_look * len(tensors))()
        self._keep = self._numbers(exchange)
        self._are_there = _counted("wg_tensors_are_there", ctypes.c_void_p(exchange), ctypes.byref(self._objects), ctypes.byref(self.looks),
                                   ctypes.c_uint64(len(tensors)))

    def are_there(self) -> bool:
        """Whether each tensor has the same layout and address as before."""
        return self._count == 0 or self._are_there() == 1

    def addresses(self) -> list[int]:
        """The tensors' addresses when this object was made."""
        return self._own[:]

    def described(self) -> list[tuple[Any, ...]]:
        """Type, sizes, strides and address of each tensor when this object was made."""
        names = [field[0] for field in _c.wg_tensor_look._fields_ if field[0] not in ("sizes", "strides", "address")]
        return [(*(getattr(one, name) for name in names), one.sizes[:one.rank], one.strides[:one.rank], own) for one, own in zip(self.looks, self._own)]

    def _numbers(self, exchange: int) -> Any:
        """Fills `looks`, and returns the sizes and strides to which they point. Raises the framework's error when DLPack cannot describe a
        tensor."""
        room, count = 8 * self._count, ctypes.c_uint64(self._count)  # enough for up to four dimensions, the usual case
        while True:
            numbers = (ctypes.c_int64 * room)()
            needed = _native().wg_look_at_tensors(ctypes.c_void_p(exchange), ctypes.byref(self._objects), count, ctypes.byref(self.looks),
                                                  ctypes.byref(self._own), ctypes.byref(numbers), ctypes.c_uint64(room))
            if needed < 0:
                raise BufferError("a tensor cannot be described by DLPack")
            if needed <= room:
                return numbers
            room = needed


def listed_facts(facts: dict[str, str], known: Collection[str], beginning: str) -> tuple[str, dict[str, str]]:
    """Returns a pair: the facts that are in `known` or begin with `beginning`, as a list in wg_list_facts's format; and the other facts.
    REQUIRES: is_possible()."""
    apart: dict[str, str] = {}
    found: str = _native().wg_list_facts(ctypes.c_void_p(id(facts)), ctypes.c_void_p(id(known)), beginning.encode(), ctypes.c_void_p(id(apart)))
    return found, apart


def text_addresses(texts: list[str]) -> list[int]:
    """The address of each text, from wg_text_addresses. REQUIRES: is_possible()."""
    found = array.array("Q", bytes(8 * len(texts)))
    _native().wg_text_addresses(ctypes.c_void_p(id(texts)), ctypes.c_void_p(found.buffer_info()[0]))
    return found.tolist()


def folded_facts(facts: dict[str, str], most: int, deepest: int) -> dict[str, str]:
    """The facts folded by wg_fold_facts. REQUIRES: is_possible()."""
    found: dict[str, str] = {}
    _native().wg_fold_facts(ctypes.c_void_p(id(facts)), ctypes.c_uint64(most), ctypes.c_uint64(deepest), ctypes.c_void_p(id(found)))
    return found


def steady_call(raw: _c.wg_steady_call) -> Callable[[tuple[Any, ...], dict[str, Any]], Any]:
    """Makes a function with wg_steady_call_create()."""
    made = ctypes.c_void_p()
    library().expect_ok(_native().wg_steady_call_create(ctypes.c_uint64(ctypes.sizeof(raw)), ctypes.byref(raw), ctypes.byref(made)))
    found = ctypes.cast(made, ctypes.py_object).value
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(found))  # releases the reference that the library returned
    return found  # type: ignore[no-any-return]
