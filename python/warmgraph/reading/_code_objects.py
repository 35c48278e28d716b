"""Reads a code object: finds the globals and attributes that it and its nested code objects name, and makes a digest that ignores line
numbers and paths."""
from __future__ import annotations

import dis
import functools
import hashlib
import marshal
import sys
import types
from typing import Any, Iterator

from warmgraph.reading import _plain_values

_GLOBALS = {"LOAD_GLOBAL", "STORE_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"}
# How Python 3.10 to 3.13 encode instructions (see dis.py): an instruction is two bytes, and its argument is an index into co_names. From 3.11 on
# LOAD_GLOBAL's lowest bit says whether NULL is pushed.
_IS_KNOWN_PYTHON = sys.implementation.name == "cpython" and (3, 10) <= sys.version_info[:2] <= (3, 13)
_SHIFTS = {dis.opmap[name]: int(name == "LOAD_GLOBAL" and sys.version_info >= (3, 11)) for name in _GLOBALS if name in dis.opmap}
_MATCH_CLASS = dis.opmap.get("MATCH_CLASS", -1)
_KINDS = frozenset(_plain_values.KINDS)
_MOST_CODE = 4096  # the most code objects whose names are kept


def nested(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from nested(constant)


def globals_in(code: types.CodeType) -> set[str]:
    return {name for each in nested(code) for name in (_names_of_globals(each) if _IS_KNOWN_PYTHON else _slowly_named_globals(each))}


def _names_of_globals(code: types.CodeType) -> Iterator[str]:
    """The same as _slowly_named_globals without dis, which makes an object for each instruction and would take most of the time of a
    model's first reading."""
    names, raw, more = code.co_names, code.co_code, 0
    for operation, argument in zip(raw[::2], raw[1::2]):
        if operation == dis.EXTENDED_ARG:
            more = (more | argument) << 8
            continue
        shift = _SHIFTS.get(operation)
        if shift is not None:
            yield names[(more | argument) >> shift]
        more = 0


def _slowly_named_globals(code: types.CodeType) -> Iterator[str]:
    return (str(one.argval) for one in dis.get_instructions(code) if one.opname in _GLOBALS)


class CodeNames:
    """The names that a code object uses."""

    def __init__(self, code: types.CodeType) -> None:
        self.code = code  # keeps the code object alive, because its id is the key

    @functools.cached_property
    def digest(self) -> bytes:
        return _digest_of(self.code)

    @functools.cached_property
    def globals(self) -> list[str]:
        return sorted(globals_in(self.code))

    @functools.cached_property
    def names(self) -> set[str]:
        return names_in(self.code)


def read_code(code: types.CodeType) -> CodeNames:
    """Reads a code object once and keeps the result by its id: code objects never change, and comparing two of them takes as long as
    reading one."""
    found = _read_codes.get(id(code))
    if found is None:
        if len(_read_codes) >= _MOST_CODE:
            _read_codes.clear()
        found = _read_codes[id(code)] = CodeNames(code)
    return found


_read_codes: dict[int, CodeNames] = {}


def names_in(code: types.CodeType) -> set[str]:
    """The attributes that the code may read: names in the code, and constant texts that could be names for getattr."""
    found = set(code.co_names)
    if _MATCH_CLASS in code.co_code[::2]:
        found.add("__match_args__")
    waiting: list[Any] = list(code.co_consts)
    while waiting:
        constant = waiting.pop()
        if isinstance(constant, types.CodeType):
            found |= names_in(constant)
        elif isinstance(constant, (tuple, frozenset)):
            waiting += constant
        elif isinstance(constant, str) and len(constant) <= 200:
            found |= {name for name in constant.split(".") if name.isidentifier()}
    return found


def code_digest(code: types.CodeType) -> bytes:
    return read_code(code).digest


def _digest_of(code: types.CodeType) -> bytes:
    """Digests a code object through marshal. That is faster than making texts, and a library's classes have hundreds of methods."""
    of_itself = (code.co_code, getattr(code, "co_exceptiontable", b""), code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount,
                 code.co_flags, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    return hashlib.sha256(_in_bytes(of_itself) + _constant(code.co_consts)).digest()


def _in_bytes(value: Any) -> bytes:
    """Converts a value to bytes that are the same in all processes. marshal's version 2 writes neither references nor marks of interned
    texts."""
    return marshal.dumps(value, 2)


def _constant(value: Any) -> bytes:
    if isinstance(value, types.CodeType):
        return b"code " + _digest_of(value)
    if isinstance(value, tuple) and not _KINDS.issuperset(map(type, value)):
        return b"tuple " + b"".join(map(_in_sequence, value))
    if isinstance(value, frozenset):  # the order of a frozenset differs between processes
        return b"set " + b"".join(sorted(map(_in_sequence, value)))
    if isinstance(value, tuple) or type(value) in _KINDS:
        return b"plain " + _in_bytes(value)
    return f"{type(value).__name__} {value!r}".encode("utf-8", "surrogatepass")  # e.g. a slice, which is a constant from Python 3.14 on


def _in_sequence(value: Any) -> bytes:
    text = _constant(value)
    return len(text).to_bytes(8, "little") + text
