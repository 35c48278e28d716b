"""Writes warmgraph/core/binding/_c.py, the ctypes declarations, from the C headers. The package's build runs it (python/CMakeLists.txt).

usage: generate_c_interface.py OUTPUT

The headers have a regular form on purpose. Text that this script does not understand is an error, so nothing is left out silently.
"""
from __future__ import annotations

import dataclasses
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
HEADERS = [HERE.parent / "c/include/warmgraph" / name for name in ("warmgraph.h", "python.h")]

BASIC = {
    "uint8_t": "c_uint8", "uint16_t": "c_uint16", "int32_t": "c_int32", "uint32_t": "c_uint32", "int64_t": "c_int64",
    "uint64_t": "c_uint64", "int": "c_int", "double": "c_double", "void": "None",
}


class NotUnderstood(Exception):
    pass


@dataclasses.dataclass
class Header:
    enums: dict[str, list[tuple[str, int]]]  # by the enum's name, as in "wg_status": [("wg_ok", 0), ...]
    handles: list[str]
    structs: dict[str, list[tuple[str, str]]]  # the fields of each structure, with their C types
    callbacks: dict[str, tuple[str, list[str]]]
    functions: dict[str, tuple[str, list[str]]]


def without_comments(text: str) -> str:
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    return re.sub(r"//[^\n]*", "", text)


def split_declaration(declaration: str) -> tuple[str, str]:
    """("const int64_t*", "sizes") for "const int64_t* sizes"; for an array, the type ends with its length."""
    declaration = " ".join(declaration.split())
    pointer = re.fullmatch(r"(.+?)\(\*(\w+)\)\((.*)\)", declaration)
    if pointer:
        return f"{pointer[1].strip()}(*)({pointer[3]})", pointer[2]
    match = re.fullmatch(r"(.+?[\s*])(\w+)(\[\d+\])?", declaration)
    if not match:
        raise NotUnderstood(declaration)
    return match[1].strip() + (match[3] or ""), match[2]


def split_parameters(text: str) -> list[str]:
    """The types of the parameters. A comma inside the parentheses of a function pointer does not separate parameters."""
    parts, depth = [""], 0
    for letter in text:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    if [part.strip() for part in parts] == ["void"]:
        return []
    nameless = re.compile(r"\s*(const )?\w+\s*\**\s*")
    types = [part.strip() if nameless.fullmatch(part) else split_declaration(part)[0] for part in parts]
    return [re.sub(r"\[\d+\]$", "*", kind) for kind in types]  # C passes an array as a pointer


def parsed(text: str) -> Header:
    text = without_comments(text)
    header = Header({}, [], {}, {}, {})
    for name, values in re.findall(r"typedef int32_t wg_(?:\w+);\s*enum (wg_\w+)_values \{(.*?)\};", text, flags=re.S):
        pairs = [re.fullmatch(r"\s*(wg_\w+) = (-?\d+)\s*", one) for one in values.split(",") if one.strip()]
        if not all(pairs):
            raise NotUnderstood(f"enum {name}_values")
        header.enums[name] = [(pair[1], int(pair[2])) for pair in pairs if pair]
    header.handles = re.findall(r"typedef struct (wg_\w+) \1;", text)
    for name, body, again in re.findall(r"typedef struct (wg_\w+) \{(.*?)\} (wg_\w+);", text, flags=re.S):
        assert name == again
        fields = [split_declaration(field) for field in body.split(";") if field.strip()]
        header.structs[name] = [(field, kind) for kind, field in fields]
    for result, name, parameters in re.findall(r"typedef (\w+\*?) \(\*(wg_\w+)\)\((.*?)\);", text, flags=re.S):
        header.callbacks[name] = (result, split_parameters(parameters))
    for result, name, parameters in re.findall(r"WARMGRAPH_API ([\w\s*]+?)\b(wg_\w+)\((.*?)\);", text, flags=re.S):
        header.functions[name] = (" ".join(result.split()).replace(" *", "*"), split_parameters(parameters))
    expect_all(text, header)
    return header


def expect_all(text: str, header: Header) -> None:
    for what, pattern, found in [
        ("functions", r"\bWARMGRAPH_API\b", header.functions), ("enums", r"\benum \w+ \{", header.enums),
        ("typedefs of structs", r"\btypedef struct\b", {**header.structs, **dict.fromkeys(header.handles)}),
    ]:
        count = len(re.findall(pattern, text))
        if count != len(found):
            raise NotUnderstood(f"{count} {what} in the header, {len(found)} understood")


def python_type(header: Header, kind: str) -> str:
    kind = " ".join(re.sub(r"\bconst\b", " ", kind).split()).replace(" *", "*")
    array = re.fullmatch(r"(.+)\[(\d+)\]", kind)
    if array:
        return f"{python_type(header, array[1])} * {array[2]}"
    function = re.fullmatch(r"(.+?)\(\*\)\((.*)\)", kind)
    if function:
        return callback(header, function[1], split_parameters(function[2]))
    if kind in BASIC:
        return BASIC[kind] if kind == "void" else f"ctypes.{BASIC[kind]}"
    if kind in header.enums:
        return "ctypes.c_int32"
    if kind in header.structs:
        return kind
    if kind in header.callbacks:
        return kind
    if kind == "char*":
        return "ctypes.c_char_p"
    if kind == "void*" or kind.endswith("*") and kind[:-1] in header.handles:
        return "ctypes.c_void_p"
    if kind.endswith("*"):
        return f"ctypes.POINTER({python_type(header, kind[:-1])})"
    raise NotUnderstood(f"type {kind}")


def callback(header: Header, result: str, parameters: list[str]) -> str:
    # The type of a result: ctypes converts a C text to bytes (c_char_p).
    types = [python_type(header, result)] + [python_type(header, parameter) for parameter in parameters]
    return f"ctypes.CFUNCTYPE({', '.join(types)})"


def wrapped(line: str, indent: str) -> str:
    """Breaks a line that is longer than 120 columns."""
    start = len(line) - len(line.lstrip())
    rows = [line[:start]]
    for word in line[start:].split(" "):
        if rows[-1].strip() and len(rows[-1]) + len(word) + 1 > 120:
            rows.append(indent)
        rows[-1] += word if rows[-1].strip() == "" else " " + word
    return "\n".join(rows)


def written(header: Header) -> str:
    lines = [
        '"""The C interface, for ctypes. Made by python/generate_c_interface.py from warmgraph.h and python.h: do not edit."""',
        "# mypy: disable-error-code=\"valid-type, misc\"", "import ctypes", "",
    ]
    for name, values in header.enums.items():
        lines += [f"{value} = {number}" for value, number in values]
        lines += [wrapped(f"{name}_values = {{{', '.join(f'{value!r}: {value}' for value, _ in values)}}}", "    "), ""]
    for name, (result, parameters) in header.callbacks.items():
        lines += [f"{name} = {callback(header, result, parameters)}", ""]
    for name, fields in header.structs.items():
        lines += ["", f"class {name}(ctypes.Structure):", "    _fields_ = ["]
        lines += [f"        (\"{field}\", {python_type(header, kind)})," for field, kind in fields]
        lines += ["    ]", ""]
    lines += ["", "STRUCTS = ["]
    lines += [f"    {name}," for name in header.structs]
    lines += ["]", "", "# By name: the result's type and the arguments'.", "FUNCTIONS = {"]
    for name, (result, parameters) in header.functions.items():
        arguments = ", ".join(python_type(header, parameter) for parameter in parameters)
        lines.append(wrapped(f"    \"{name}\": ({python_type(header, result)}, [{arguments}]),", "        "))
    lines += ["}", "", "# Those whose result is a wg_status."]
    status = [name for name, (result, _) in header.functions.items() if result == "wg_status"]
    lines += [wrapped(f"STATUS = frozenset({{{', '.join(repr(name) for name in status)}}})", "    ")]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def declarations() -> str:
    return "\n".join(header.read_text() for header in HEADERS)


def main() -> int:
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    pathlib.Path(sys.argv[1]).write_text(written(parsed(declarations())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
