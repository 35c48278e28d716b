"""Looks at Python's objects natively before a call: what dictionaries hold, by identity, and where tensors lie, through DLPack's exchange
table. Tied to no version of Python or of a framework: their functions are handed to the library (wg_compare_dicts and its neighbours)."""
from __future__ import annotations

import array
import collections
import ctypes
import functools
import gc
import sys
import types
from typing import Any, Callable, Mapping, Sequence

from . import _c, errors
from ._library import Handle, library

_ABSENT = object()
_CAPSULE = b"dlpack_exchange_api"


def is_possible() -> bool:
    """In CPython with its lock, which keeps dictionaries still while they are read."""
    return sys.implementation.name == "cpython" and getattr(sys, "_is_gil_enabled", lambda: True)()


def dict_of(mapping: Any) -> dict[Any, Any] | None:
    """A dictionary itself, or the one that a class's read-only view shows; None for what has ways of its own."""
    # What an ordered one has beside its items is their order, which move_to_end changes and a look at its items does not show.
    if type(mapping) is dict or type(mapping) is collections.OrderedDict and len(mapping) < 2:
        return mapping
    if isinstance(mapping, types.MappingProxyType):
        found: list[Any] = gc.get_referents(mapping)
        if len(found) == 1 and type(found[0]) is dict:
            return found[0]
    return None


@functools.cache
def _native() -> Any:
    """The library's functions, called with Python's lock held."""
    held = library().with_lock()
    for name in ("wg_read_tensors", "wg_compare_dicts", "wg_compare_dict_items", "wg_compare_attributes", "wg_look_at_tensors", "wg_modules_read",
                 "wg_modules_hold_the_same", "wg_modules_are_the_same", "wg_modules_watch"):
        getattr(held, name).restype = _c.FUNCTIONS[name][0]
    return held


def _counted(name: str, *arguments: Any) -> Callable[[], int]:
    """A call of a function that counts, with arguments that stay. They are objects of ctypes', which a call takes as they are: to check and
    convert them each time would take as long as the call."""
    return functools.partial(getattr(_native(), name), *arguments)


@functools.cache
def _of_python(name: str) -> ctypes.c_void_p:
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p)


def _address(numbers: array.array[int]) -> ctypes.c_void_p:
    return ctypes.c_void_p(numbers.buffer_info()[0])


class _Watcher:
    """Python tells of each change of a dictionary that is watched. `events` counts them, over all of them."""

    def __init__(self) -> None:
        add, watch = ctypes.pythonapi.PyDict_AddWatcher, ctypes.pythonapi.PyDict_Watch
        add.argtypes, watch.argtypes = [ctypes.c_void_p], [ctypes.c_int, ctypes.py_object]
        held = library().with_lock()
        held.wg_dict_events.restype = ctypes.c_void_p
        self.events = ctypes.c_uint64.from_address(held.wg_dict_events())
        self._number = int(add(ctypes.cast(held.wg_note_dict_event, ctypes.c_void_p)))
        self._watch = functools.partial(watch, self._number)

    def watch(self, one: dict[Any, Any]) -> None:
        """For good: others may watch it too. A dictionary that goes takes it along."""
        self._watch(one)

    def watch_modules(self, modules: Modules) -> None:
        """The dictionaries that they hold."""
        modules.watch(self._number)


@functools.cache
def watcher() -> _Watcher | None:
    """Of Python 3.12 alone, where others leave one: 3.11 has none, and 3.13 tells nothing of an object's attributes that are written past its
    dictionary (seen in 3.13.0)."""
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


class Dicts:
    """Dictionaries and single items of others, as they are now. `are_same` holds until one of them has another object. Where Python tells of
    changes, what is in the dictionaries is looked at after one alone."""

    def __init__(self, wholes: Sequence[dict[Any, Any]], items: Sequence[tuple[dict[Any, Any], Any]], modules: Sequence[Modules] = ()) -> None:
        """modules: what they held when they were read."""
        told = watcher() if wholes or modules else None
        self._events = told.events if told is not None else None
        self._modules = modules
        if told is not None:
            for held in wholes:
                told.watch(held)
            for one in modules:
                told.watch_modules(one)
            # Before they are read: what changes from now on is looked at. Modules were read earlier.
            self._seen: int | None = None if modules else told.events.value
        objects = [one for held in wholes for pair in held.items() for one in pair]
        pairs, looks, at = array.array("Q", map(id, objects)), array.array("Q"), 0
        first = pairs.buffer_info()[0]
        for held in wholes:
            looks.extend((id(held), first + 16 * at, len(held)))
            at += len(held)
        single, values = array.array("Q"), [held.get(key, _ABSENT) for held, key in items]
        for (held, key), value in zip(items, values):
            single.extend((id(held), id(key), 0 if value is _ABSENT else id(value)))
        self._keep = (list(wholes), list(items), objects, values, pairs, looks, single)
        self._count, self._item_count = len(wholes), len(items)
        self._same = _counted("wg_compare_dicts", _of_python("PyDict_Next"), _address(looks), ctypes.c_uint64(self._count))
        self._same_items = _counted("wg_compare_dict_items", _of_python("PyDict_GetItem"), _address(single), ctypes.c_uint64(self._item_count))

    def are_same(self) -> bool:
        return self._are_wholes_same() and (self._item_count == 0 or self._same_items() == self._item_count)

    def _are_wholes_same(self) -> bool:
        if self._events is None:
            return self._look()
        now = self._events.value
        if now == self._seen:
            return True
        if not self._look():
            return False
        self._seen = now  # of before the look
        return True

    def _look(self) -> bool:
        if self._count != 0 and self._same() != self._count:
            return False
        for one in self._modules:
            if not one.hold_the_same():
                return False
        return True


@functools.cache
def _own_attributes() -> Callable[[Any, None], Any]:
    read = ctypes.pythonapi.PyObject_GenericGetDict
    read.restype, read.argtypes = ctypes.py_object, [ctypes.py_object, ctypes.c_void_p]
    return read


def are_attributes_in(held: Any, value: Any) -> bool:
    """Of an object whose `__dict__` is its own, and not made for who asks (a property, a proxy)."""
    try:
        return _own_attributes()(value, None) is held
    except (AttributeError, TypeError):
        return False


class Attributes:
    """Objects and the dictionaries of their attributes (are_attributes_in). `are_same` holds until one of them has another dictionary."""

    def __init__(self, objects: Sequence[Any], dicts: Sequence[dict[Any, Any]]) -> None:
        looks = array.array("Q", [number for pair in zip(map(id, objects), map(id, dicts)) for number in pair])
        self._keep, self._count = (list(objects), list(dicts), looks), len(objects)
        self._same = _counted("wg_compare_attributes", _of_python("PyObject_GenericGetDict"), _of_python("Py_DecRef"), _address(looks),
                              ctypes.c_uint64(self._count))

    def are_same(self) -> bool:
        return self._count == 0 or self._same() == self._count


class Lists:
    """Lists and the items that they held. `are_same` holds while they hold these."""

    def __init__(self, lists: Sequence[list[Any]], items: Sequence[list[Any]]) -> None:
        looks = array.array("Q", [number for held, own in zip(lists, items) for i, one in enumerate(own) for number in (id(held), i, id(one))])
        self._lists, self._counts, self._count = list(lists), list(map(len, items)), len(looks) // 3
        self._keep = ([list(one) for one in items], looks)
        # A position is a number where a key is a pointer, which a call passes alike; the item is borrowed, as a dictionary's.
        self._same = _counted("wg_compare_dict_items", _of_python("PyList_GetItem"), _address(looks), ctypes.c_uint64(self._count))

    def are_same(self) -> bool:
        # In this order: past the end of a list there is an exception.
        return list(map(len, self._lists)) == self._counts and (self._count == 0 or self._same() == self._count)


@functools.cache
def are_modules_readable() -> bool:
    """Modules(): the library finds Python's functions in this process."""
    try:
        return is_possible() and not Modules().is_closed
    except errors.Unsupported:
        return False


class Modules(Handle):
    """Modules of PyTorch that are read natively, and what they held then. `kept` keeps that alive."""

    _what = "reader of modules"

    def __init__(self) -> None:
        lib = library()
        super().__init__(lib.made("wg_modules_create", ctypes.sizeof(_c.wg_module_walk)), lib.wg_modules_destroy)
        self.kept: list[Any] = []
        handle = ctypes.c_void_p(self.pointer)
        self._read = functools.partial(_native().wg_modules_read, handle)
        self._hold_the_same = _counted("wg_modules_hold_the_same", handle)
        self._are_the_same = _counted("wg_modules_are_the_same", handle)

    def read(self, walk: _c.wg_module_walk, path: str, module: Any) -> None:
        """Once. Raises what the walk raises."""
        if self._read(ctypes.byref(walk), ctypes.py_object(path), ctypes.py_object(module)) != 0:
            raise errors.Error(f"{path} was not read, and nobody says why")

    def hold_the_same(self) -> bool:
        """Their dictionaries, and those of their parts and tensors."""
        return self._pointer is not None and self._hold_the_same() == 1

    def are_the_same(self) -> bool:
        """They are of their classes, and their attributes in their dictionaries."""
        return self._pointer is not None and self._are_the_same() == 1

    def is_same(self) -> bool:
        return self.hold_the_same() and self.are_the_same()

    def watch(self, watcher: int) -> None:
        _native().wg_modules_watch(ctypes.c_void_p(self.pointer), _of_python("PyDict_Watch"), ctypes.c_int32(watcher))


class _Header(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("previous", ctypes.c_void_p)]


class _Api(ctypes.Structure):
    _fields_ = [("header", _Header), ("allocate", ctypes.c_void_p), ("export", ctypes.c_void_p), ("imported", ctypes.c_void_p),
                ("dltensor_from_object", ctypes.c_void_p), ("stream", ctypes.c_void_p)]


@functools.cache
def exchange_of(kind: type) -> int | None:
    """Where the function is that says where a tensor of this class lies: of DLPack's exchange table (`__dlpack_c_exchange_api__`, DLPack 1.2).
    None where the class has no table of version 1."""
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
    """Where tensors of one framework are. They look as they did when this was made, or `read` says no. Whoever calls `read` holds them."""

    def __init__(self, exchange: int, tensors: Sequence[Any], places: Mapping[int, tuple[Any, int]], base: int,
                 alignments: Mapping[int, int] = types.MappingProxyType({})) -> None:
        """`places`: by index, (structure, offset in it) of the u64 that gets a tensor's address, less `base`."""
        self._objects = (ctypes.c_void_p * len(tensors))(*map(id, tensors))
        self._own = (ctypes.c_uint64 * len(tensors))()
        self._looks = (_c.wg_tensor_look * len(tensors))()
        self._keep = places, self._numbers(exchange)
        for i, (structure, offset) in places.items():
            self._looks[i].address = ctypes.cast(ctypes.addressof(structure) + offset, ctypes.POINTER(ctypes.c_uint64))
        for i, alignment in alignments.items():
            self._looks[i].alignment = alignment
        self._moved, self._count = ctypes.c_int32(), len(tensors)
        self._ids = memoryview(self._objects).cast("B").cast("Q")  # quicker to write than the array itself
        self._read = _counted("wg_read_tensors", ctypes.c_void_p(exchange), ctypes.byref(self._objects), ctypes.byref(self._looks),
                              ctypes.c_uint64(len(tensors)), ctypes.c_uint64(base), ctypes.byref(self._moved))
        self.read()
        self._moved.value = 0
        self._have_left = False

    def read(self) -> bool:
        """Each looks as it did; their addresses are where they belong."""
        return self._count == 0 or self._read() == self._count

    def read_these(self, tensors: Sequence[Any]) -> bool:
        """The same of others, which are held meanwhile and not later."""
        if len(tensors) != self._count:
            return False
        ids, i = self._ids, 0
        for one in tensors:
            ids[i] = id(one)
            i += 1
        return self._read() == self._count

    def are_there(self) -> bool:
        """Each looks as it did, and lies where it lay when this was made. Once one has moved, none is taken to be there again: a read
        remembers new addresses, and who asks next would not see that."""
        if self._count == 0:
            return True
        if self._read() != self._count or self._moved.value != 0:
            self._have_left = self._have_left or self._moved.value != 0
            return False
        return not self._have_left

    @property
    def have_moved(self) -> bool:
        """In the last read: an address was another one than before."""
        return self._moved.value != 0

    @property
    def addresses(self) -> Sequence[int]:
        """Less `base`, where no place was given."""
        return list(self._own)

    def _numbers(self, exchange: int) -> Any:
        """Sizes and strides of all, which their looks point to. Raises what the framework raises where DLPack cannot say it."""
        room, count = 8 * len(self._objects), ctypes.c_uint64(len(self._objects))  # as most have up to four dimensions
        while True:
            numbers = (ctypes.c_int64 * room)()
            needed = _native().wg_look_at_tensors(ctypes.c_void_p(exchange), ctypes.byref(self._objects), count, ctypes.byref(self._looks),
                                                  ctypes.byref(self._own), ctypes.byref(numbers), ctypes.c_uint64(room))
            if needed < 0:
                raise BufferError("a tensor cannot be described by DLPack")
            if needed <= room:
                return numbers
            room = needed
