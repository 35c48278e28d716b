#!/usr/bin/env python3
"""Counts the words of documents, and finds the comments and names that the project does not want.

usage: words.py [--check] [--list] [--draw SEED [COUNT]] [--messages] [REVISION]

Without an option it prints the counts. --check: exit status 1, with each place, where a comment begins with a word of BEGINNINGS or has one
of UNWANTED, a name of the glossary's column "not" is in use, or a document is longer than its limit. --list: prints these places.
--draw: prints COUNT (40) comment blocks, drawn with SEED, for a reader to judge. --messages: prints the texts that users can meet, one a line.
REVISION: reads a commit instead of the working tree.
"""
from __future__ import annotations

import io
import pathlib
import random
import re
import sys
import tokenize
from typing import Iterator, NamedTuple

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import size

BEGINNINGS = ("What", "Which", "Of", "Who", "Whoever", "Whose", "Whom")
UNWANTED = ("told", "met", "nobody's", "somebody's", "everybody's", "whoever", "whatever came of")
CODE = (".c", ".cpp", ".h", ".hpp", ".cu", ".cl", ".py")
GLOSSARY = "docs/glossary.md"
APART = ("docs/format.md",)  # a specification has no limit
PAGES = ("docs/", "samples/", "tests/", "README.md", "CHANGELOG.md")  # other documents state decisions beside their code
MOST_WORDS = {"README.md": 900, "docs/ARCHITECTURE.md": 1050, "": 32_000}  # "": all documents together


def sources(revision: "str | None") -> dict[str, str]:
    return size.sources(revision, (*CODE, ".md", ".sh", ".cmake", ".txt"))


class Comment(NamedTuple):
    file: str
    line: int
    text: str


def c_comments(text: str) -> Iterator[tuple[int, int, str]]:
    """(line, column, text) of each comment; a string that looks like one is none."""
    pattern = r'//(?:\\\n|[^\n])*|/\*.*?\*/|R"([^(\n]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-zA-Z])\'(?:\\.|[^\'\\\n])+\''
    for found in re.finditer(pattern, text, re.DOTALL):
        if found.group().startswith(("//", "/*")):
            before = text.rfind("\n", 0, found.start()) + 1
            yield text.count("\n", 0, found.start()) + 1, found.start() - before, found.group()


def blocks_of(file: str, text: str) -> list[Comment]:
    """Each run of whole comment lines and each comment behind code, without its marks."""
    lines = [(at, column, re.sub(r"^(?:///?<?|/\*+)\s?|\*/$", "", comment)) for at, column, comment in c_comments(text)]
    sources = text.splitlines()
    blocks: list[Comment] = []
    last = 0
    for at, column, comment in lines:
        stands_alone = not sources[at - 1][:column].strip()
        if stands_alone and blocks and last == at - 1:
            blocks[-1] = blocks[-1]._replace(text=f"{blocks[-1].text} {comment.strip()}")
        else:
            blocks.append(Comment(file, at, comment.strip()))
        last = at if stands_alone else 0
    return blocks


def python_blocks(file: str, text: str) -> list[Comment]:
    blocks: list[Comment] = []
    last, begins = 0, True
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and not token.string.startswith("#!"):
            words = token.string.lstrip("#").strip()
            alone = not token.line[:token.start[1]].strip()
            if alone and blocks and last == token.start[0] - 1:
                blocks[-1] = blocks[-1]._replace(text=f"{blocks[-1].text} {words}")
            else:
                blocks.append(Comment(file, token.start[0], words))
            last = token.start[0] if alone else 0
        elif token.type == tokenize.STRING and begins and token.string.lstrip("rR").startswith('"""'):
            blocks.append(Comment(file, token.start[0], " ".join(token.string.lstrip("rR").strip('"').split())))
        if token.type not in (tokenize.COMMENT, tokenize.NL):
            begins = token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING)
    return blocks


def comments(files: dict[str, str]) -> list[Comment]:
    found: list[Comment] = []
    for name, text in files.items():
        if name.endswith(CODE):
            found += python_blocks(name, text) if name.endswith(".py") else blocks_of(name, text)
    return [block for block in found if re.search(r"[a-z]{2}", block.text) and not re.match(r"(?:NOLINT|clang-format|type:|noqa|namespace\b|pragma|mypy:)", block.text)]


def begins_badly(block: Comment) -> bool:
    first = re.match(r"(?:\.\.\.\s*)?(\w+)", block.text)
    return block.text.startswith("...") or (first is not None and first.group(1) in BEGINNINGS)


def has_unwanted(block: Comment) -> bool:
    return re.search(rf"\b(?:{'|'.join(UNWANTED)})\b", block.text, re.IGNORECASE) is not None


def code_of(name: str, text: str) -> str:
    """Without comments and the contents of strings."""
    if name.endswith(".py"):
        kept = [token for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type == tokenize.NAME]
        return "\n".join(token.string for token in kept)
    pattern = r'//(?:\\\n|[^\n])*|/\*.*?\*/|R"([^(\n]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"'
    return re.sub(pattern, lambda found: "\n" * found.group().count("\n"), text, flags=re.DOTALL)


def not_wanted(glossary: str) -> list[tuple[str, str]]:
    """(identifier or option, folder) of the column "not"; the folder is empty where the whole tree is meant."""
    items = []
    for row in glossary.splitlines():
        cells = [cell.strip() for cell in row.strip().strip("|").split("|")]
        if row.startswith("|") and len(cells) == 3:
            items += re.findall(r"`([^`]+)`(?:\s*\(([\w./-]+)\))?", cells[2])
    return items


def is_inside(name: str, folder: str) -> bool:
    if folder:
        return name.startswith(folder.rstrip("/") + "/")
    return not name.startswith((*size.TESTS, *size.LEFT_OUT, "CHANGELOG.md"))


def names_back(files: dict[str, str]) -> list[str]:
    """Where a name is in use that the glossary has given up."""
    places = []
    code = {name: code_of(name, text) for name, text in files.items() if name.endswith(CODE)}
    for name, folder in not_wanted(files.get(GLOSSARY, "")):
        pattern = re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])")
        searched = files if name.startswith("--") else code
        places += [f"{file}: `{name}`" for file, text in searched.items() if file != GLOSSARY and is_inside(file, folder) and pattern.search(text)]
    return places


def documents(files: dict[str, str]) -> dict[str, int]:
    return {name: len(text.split()) for name, text in files.items() if name.endswith(".md") and name.startswith(PAGES) and name not in APART}


def too_long(files: dict[str, str]) -> list[str]:
    words = documents(files)
    words[""] = sum(words.values())
    return [f"{name or 'all documents'}: {words[name]:,} words, at most {most:,}" for name, most in MOST_WORDS.items() if words.get(name, 0) > most]


def messages(files: dict[str, str]) -> list[Comment]:
    """Strings of product code that are sentences, with neighbouring literals joined."""
    found = []
    for name, text in files.items():
        if name.startswith(size.TESTS) or not name.endswith(CODE):
            continue
        pattern = r'"(?:\\.|[^"\\\n])*"(?:\s*\n?\s*f?"(?:\\.|[^"\\\n])*")*'
        for literal in re.finditer(pattern, code_without_comments(name, text)):
            joined = "".join(re.findall(r'"((?:\\.|[^"\\\n])*)"', literal.group()))
            if joined.count(" ") >= 3 and re.search(r"[a-z]{3} [a-z]", joined):
                found.append(Comment(name, text.count("\n", 0, literal.start()) + 1, joined))
    return found


def code_without_comments(name: str, text: str) -> str:
    if name.endswith(".py"):
        return re.sub(r'"""(?:[^"]|"(?!""))*"""|^\s*#[^\n]*', lambda found: "\n" * found.group().count("\n"), text, flags=re.MULTILINE)
    pattern = r'//(?:\\\n|[^\n])*|/\*.*?\*/|("(?:\\.|[^"\\\n])*")'
    return re.sub(pattern, lambda found: found.group(1) or "\n" * found.group().count("\n"), text, flags=re.DOTALL)


class Words(NamedTuple):
    documents: int
    comments: int
    beginnings: list[str]
    unwanted: list[str]
    names: list[str]
    long: list[str]

    def places(self) -> list[str]:
        return [*self.beginnings, *self.unwanted, *self.names, *self.long]


def measure(files: dict[str, str]) -> Words:
    blocks = comments(files)
    place = "{0.file}:{0.line}: {0.text:.100}".format
    return Words(sum(documents(files).values()), len(blocks), [place(block) for block in blocks if begins_badly(block)],
                 [place(block) for block in blocks if has_unwanted(block)], names_back(files), too_long(files))


def table(words: Words) -> str:
    rows = [("words of documents", words.documents), ("comments", words.comments), ("  that begin with What, Which, Of, Who", len(words.beginnings)),
            ("  with told, met, nobody's", len(words.unwanted)), ("names that the glossary gave up", len(words.names))]
    return "\n".join(["the words", *(f"  {what:40}{count:8,}" for what, count in rows)])


def main(arguments: list[str]) -> int:
    options = [argument for argument in arguments if argument.startswith("-")]
    values = [argument for argument in arguments if argument not in options]
    numbers = [int(values.pop(0)) for _ in range(2) if "--draw" in options and values and values[0].isdigit()]
    if set(options) - {"--check", "--list", "--draw", "--messages"} or len(values) > 1 or ("--draw" in options and not numbers):
        print(__doc__, file=sys.stderr)
        return 2
    files = sources(values[0] if values else None)
    if "--draw" in options:
        drawn = random.Random(numbers[0]).sample(comments(files), numbers[1] if len(numbers) > 1 else 40)
        print("\n\n".join(f"{at}. {block.file}:{block.line}\n   {block.text}" for at, block in enumerate(drawn, 1)))
        return 0
    if "--messages" in options:
        print("\n".join(f"{text.file}:{text.line}: {text.text}" for text in messages(files)))
        return 0
    words = measure(files)
    print(table(words))
    if {"--check", "--list"} & set(options):
        print("\n".join(words.places()))
    return 1 if "--check" in options and words.places() else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
