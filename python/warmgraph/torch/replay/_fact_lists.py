"""Facts in lists: what a walk finds of a model are hundreds, and the library passes on, compares and hashes one text sooner than a string for
each. It reads a list as the facts that it holds (cachefmt/fact_lists.hpp)."""
from __future__ import annotations

from typing import Collection, Mapping

from warmgraph.reading import _native_snapshots
from warmgraph.reading._walker import Walker
from warmgraph.torch.read._shared_modules import ModulePart
from warmgraph.torch.replay import _long_facts, _regions

_SUFFIX = " *"
_REST = f"values{_SUFFIX}"


def listed(facts: dict[str, str], walker: Walker) -> dict[str, str]:
    """The same facts: those of each part that other walks found in a list, the others that were walked in one more. Too many are folded, in one
    list."""
    if _long_facts.is_too_much(facts):
        apart = {path for path in facts if path not in walker.found.facts and not path.startswith(_regions.MEMORY)}
        folded = _long_facts.folded(facts)
        return _with_list(folded, folded.keys() - apart)
    found: dict[str, str] = {}
    rest = facts
    for _, part in walker.taken:
        held, texts, text = _of_part(part)
        name = part.path + _SUFFIX
        if text and name not in facts and list(map(facts.get, held)) == texts:
            found[name] = text
            rest = {path: value for path, value in rest.items() if path not in held}
    return {**found, **_with_list(rest, walker.found.facts)}


def _with_list(facts: dict[str, str], known: Collection[str]) -> dict[str, str]:
    """With those that are known, and what is said of memory, in a list."""
    text, apart = (_native_snapshots.listed_facts if _native_snapshots.is_possible() else _listed)(facts, known, _regions.MEMORY)
    return {**apart, _REST: text} if text and _REST not in facts else facts


def _of_part(part: ModulePart) -> tuple[dict[str, str], list[str], str]:
    """(what the part and its regions say, the texts of that, as a list). Made once for a table, while its memory stays where it is."""
    if part.listed is None:
        held = {**part.facts, **_regions.facts_of(part.regions[1] if part.regions is not None else ())}
        part.listed = held, list(held.values()), _text(held)
    return part.listed


def _listed(facts: Mapping[str, str], known: Collection[str], beginning: str) -> tuple[str, dict[str, str]]:
    """As the library lists them (wg_list_facts in python.h)."""
    apart = {path: value for path, value in facts.items() if path not in known and not path.startswith(beginning)}
    return _text({path: facts[path] for path in facts.keys() - apart.keys()}), apart


def _text(facts: Mapping[str, str]) -> str:
    """"" where it would not be read as these facts: a value has a line's end, or a name that or a tab."""
    text = "\n".join([f"{path}\t{facts[path]}" for path in sorted(facts)])
    paths = "".join(facts)
    is_so = "\t" not in paths and "\n" not in paths and text.count("\n") == len(facts) - 1
    return text if facts and is_so else ""
