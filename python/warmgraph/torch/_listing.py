"""Facts in lists: what a walk finds of a model are hundreds, and the library passes on, compares and hashes one text sooner than a string for
each. It reads a list as the facts that it holds (cachefmt/fact_lists.hpp)."""
from __future__ import annotations

from typing import TYPE_CHECKING, Mapping

from . import _folding, _regions

if TYPE_CHECKING:
    from ._sharing import Part
    from ._walking import Walker

_SUFFIX = " *"
_REST = f"values{_SUFFIX}"


def listed(facts: dict[str, str], walker: Walker) -> dict[str, str]:
    """The same facts: those of each part that other walks found in a list, the others that were walked in one more. Too many are folded."""
    if _folding.is_too_much(facts):
        return _folding.folded(facts)
    found: dict[str, str] = {}
    rest = facts
    for _, part in walker.taken:
        held, texts, text = _of_part(part)
        name = part.path + _SUFFIX
        if text and name not in facts and list(map(facts.get, held)) == texts:
            found[name] = text
            rest = {path: value for path, value in rest.items() if path not in held}
    walked = {path: value for path, value in rest.items() if path in walker.found.facts or path.startswith("memory.")}
    text = _text(walked)
    if not text or _REST in facts:
        return {**rest, **found}
    return {**{path: value for path, value in rest.items() if path not in walked}, **found, _REST: text}


def _of_part(part: Part) -> tuple[dict[str, str], list[str], str]:
    """(what the part and its regions say, the texts of that, as a list). Made once for a table, while its memory stays where it is."""
    if part.listed is None:
        held = {**part.facts, **_regions.facts_of(part.regions[1] if part.regions is not None else ())}
        part.listed = held, list(held.values()), _text(held)
    return part.listed


def _text(facts: Mapping[str, str]) -> str:
    """"" where it would not be read as these facts."""
    text = "\n".join([f"{path}\t{facts[path]}" for path in sorted(facts)])
    return text if facts and _is_read_so(text, facts) else ""


def _is_read_so(text: str, facts: Mapping[str, str]) -> bool:
    """No value has a line's end, no name that or a tab."""
    paths = "".join(facts)
    return "\t" not in paths and "\n" not in paths and text.count("\n") == len(facts) - 1
