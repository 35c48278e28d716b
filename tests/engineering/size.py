#!/usr/bin/env python3
"""Reports the size of the tree, so that growth is noticed.

usage: size.py [--json] [--folders] [REVISION]

Counts raw lines and code lines of C, C++ and Python in the product and in its tests, without bench/ and samples/; functions and fields of the structs
that hold the parts of a function and of a cache; and the files of python/warmgraph that import each other in a circle, counting imports inside
functions and for types alone. --folders: lines of each folder. REVISION: a commit to count instead of the working tree.
"""
from __future__ import annotations

import ast
import collections
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SUFFIXES = (".c", ".cpp", ".h", ".hpp", ".cu", ".py")
LEFT_OUT = ("bench/", "samples/")
TESTS = ("tests/", "python/tests/")
PARTS = {"Function::Impl": "function_impl.hpp", "Cache::Impl": "cache_impl.hpp"}


def git(*arguments: str) -> str:
    return subprocess.run(["git", "-C", str(ROOT), *arguments], check=True, capture_output=True, text=True, errors="replace").stdout


def sources(revision: "str | None", suffixes: tuple[str, ...] = SUFFIXES) -> dict[str, str]:
    """Returns a map from path to text."""
    if revision is None:
        names = git("ls-files", "--cached", "--others", "--exclude-standard").splitlines()
        present = (name for name in sorted(set(names)) if name.endswith(suffixes) and (ROOT / name).is_file())
        return {name: (ROOT / name).read_text(errors="replace") for name in present}
    names = [name for name in git("ls-tree", "-r", "--name-only", revision).splitlines() if name.endswith(suffixes)]
    return {name: git("show", f"{revision}:{name}") for name in names}


def code_lines(name: str, text: str) -> int:
    """Counts the lines without blank and comment lines; a Python string that stands alone is a comment."""
    if name.endswith(".py"):
        text = re.sub(r'^\s*[rf]?"""(?:[^"]|"(?!""))*"""\s*$', "", text, flags=re.MULTILINE)
        comment = re.compile(r"\s*#")
    else:
        text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
        comment = re.compile(r"\s*//")
    return sum(1 for line in text.splitlines() if line.strip() and not comment.match(line))


def folder_of(name: str) -> str:
    parts = name.split("/")
    return "/".join(parts[:2]) if parts[0] in ("backends", "tests", "python") and len(parts) > 2 else parts[0]


def lines(files: dict[str, str]) -> dict[str, dict[str, int]]:
    """Maps "product", "tests" and each folder to {"raw": ..., "code": ...}."""
    counts: dict[str, dict[str, int]] = collections.defaultdict(lambda: {"raw": 0, "code": 0})
    for name, text in files.items():
        if name.startswith(LEFT_OUT):
            continue
        raw, code = text.count("\n"), code_lines(name, text)
        for key in ("tests" if name.startswith(TESTS) else "product", folder_of(name)):
            counts[key]["raw"] += raw
            counts[key]["code"] += code
    return dict(counts)


def body_of(text: str, struct: str) -> str:
    """Returns the direct members in `struct NAME {...};`, without nested braces and comments."""
    start = re.search(rf"\bstruct {re.escape(struct)}\b[^;{{]*\{{", text)
    if start is None:
        return ""
    body, depth = [], 1
    for character in re.sub(r"//[^\n]*", "", text[start.end():]):
        depth += (character == "{") - (character == "}")
        if depth == 0:
            break
        # A nested body ends a declaration, like ';'.
        body.append(character if depth == 1 and character != "}" else ";" if depth == 1 else " " if character == "\n" else "")
    return "".join(body)


def members(text: str, struct: str) -> tuple[int, int]:
    """Returns the number of functions and of fields. Types, class constants and friends do not count; `a, b` are two fields."""
    functions = fields = 0
    for statement in body_of(text, struct).split(";"):
        statement = re.sub(r"\b(?:public|private|protected):|\[\[[^\]]*\]\]", "", statement).strip()
        if not statement or re.match(r"(?:using|struct|class|enum|friend|template|static constexpr|static_assert)\b", statement):
            continue
        declarator = re.sub(r"<[^<>]*(?:<[^<>]*(?:<[^<>]*>[^<>]*)*>[^<>]*)*>", "", statement.partition("=")[0])
        if "(" in declarator:
            functions += "= delete" not in statement
        elif re.search(r"\w\s*[\w*&]+", declarator):
            fields += 1 + declarator.count(",")
    return functions, fields


def imports_of(name: str, text: str, modules: dict[str, str]) -> set[str]:
    """Returns the package's files that this file imports, at any place in it."""
    package = name.removesuffix(".py").split("/")
    if package[-1] == "__init__":
        package.append("")
    found = set()

    def note(module: str) -> None:
        if module in modules:
            found.add(modules[module])

    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                note(alias.name)
        elif isinstance(node, ast.ImportFrom):
            base = package[1:len(package) - node.level] if node.level else []
            module = ".".join([*base, *(node.module.split(".") if node.module else [])])
            for alias in node.names:
                inner = f"{module}.{alias.name}"
                note(inner if inner in modules else module)
    return found - {name}


def circles(files: dict[str, str]) -> list[int]:
    """Returns the number of files in each circle of imports, the largest first."""
    names = [name for name in files if name.startswith("python/warmgraph/")]
    modules = {name.removeprefix("python/").removesuffix(".py").removesuffix("/__init__").replace("/", "."): name for name in names}
    edges = {name: imports_of(name, files[name], modules) for name in names}

    def reached_from(name: str) -> set[str]:
        seen, waiting = set(), [name]
        while waiting:
            for other in edges[waiting.pop()] - seen:
                seen.add(other)
                waiting.append(other)
        return seen

    reached = {name: reached_from(name) for name in names}
    rounds = {frozenset(other for other in reached[name] if name in reached[other]) for name in names if name in reached[name]}
    return sorted(map(len, rounds), reverse=True)


def measure(revision: "str | None" = None) -> dict[str, object]:
    files = sources(revision)
    found = {pathlib.PurePath(name).name: text for name, text in files.items()}
    parts = {struct: members(found.get(file, ""), struct) for struct, file in PARTS.items()}
    return {"lines": lines(files), "parts": {name: {"functions": f, "fields": d} for name, (f, d) in parts.items()}, "circles": circles(files)}


def table(size: "dict[str, object]") -> str:
    of, width = size["lines"], 42
    rows = ["the house" + " " * (width - 9) + "   lines  of code"]
    for name, what in (("product", "product"), ("tests", "tests")):
        rows.append(f"  {what:{width - 2}}{of[name]['raw']:8,} {of[name]['code']:8,}")
    rows.append(" " * width + "functions  fields")
    for struct, counts in size["parts"].items():
        rows.append(f"  {struct:{width - 2}}{counts['functions']:9} {counts['fields']:7}")
    round_trips = ", ".join(f"{files} files" for files in size["circles"]) or "none"
    return "\n".join([*rows, f"  {'circles of imports in Python':{width - 2}}{round_trips:>17}"])


def main(arguments: list[str]) -> int:
    options = {argument for argument in arguments if argument.startswith("-")}
    revisions = [argument for argument in arguments if argument not in options]
    if options - {"--json", "--folders"} or len(revisions) > 1:
        print(__doc__, file=sys.stderr)
        return 2
    size = measure(*revisions)
    if "--json" in options:
        print(json.dumps(size, indent=2))
        return 0
    print(table(size))
    if "--folders" in options:
        for folder, counts in sorted(size["lines"].items()):
            if folder not in ("product", "tests"):
                print(f"  {folder:40}{counts['raw']:8,} {counts['code']:8,}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
