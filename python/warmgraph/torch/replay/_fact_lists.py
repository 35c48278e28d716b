"""Packs facts into lists: a walk finds hundreds of facts in a model, and the library handles one text faster than a string for each. The
library reads a list as the facts in it (cachefmt/fact_lists.hpp)."""
from __future__ import annotations

from typing import Collection, Mapping

from warmgraph.reading import _native_snapshots
from warmgraph.reading._walker import Walker
from warmgraph.torch.read._shared_modules import ModulePart
from warmgraph.torch.replay import _long_facts, _regions

_SUFFIX = " *"
_REST = f"values{_SUFFIX}"


def listed(facts: dict[str, str], walker: Walker) -> dict[str, str]:
    """The same facts in lists: one list for each part from another walk, and one for the rest of this walk. If there are too many facts,
    they are folded into one list."""
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
    """Moves the facts in `known`, and the facts about memory, into a list."""
    text, apart = (_native_snapshots.listed_facts if _native_snapshots.is_possible() else _listed)(facts, known, _regions.MEMORY)
    return {**apart, _REST: text} if text and _REST not in facts else facts


def _of_part(part: ModulePart) -> tuple[dict[str, str], list[str], str]:
    """Returns (the facts of the part and its regions, their texts, the facts as a list). They are made once for a table, and again if the
    memory of the part moves."""
    if part.listed is None:
        held = {**part.facts, **_regions.facts_of(part.regions[1] if part.regions is not None else ())}
        part.listed = held, list(held.values()), _text(held)
    return part.listed


def _listed(facts: Mapping[str, str], known: Collection[str], beginning: str) -> tuple[str, dict[str, str]]:
    """The same result as wg_list_facts in python.h, for processes without native reading."""
    apart = {path: value for path, value in facts.items() if path not in known and not path.startswith(beginning)}
    return _text({path: facts[path] for path in facts.keys() - apart.keys()}), apart


def _text(facts: Mapping[str, str]) -> str:
    """The facts as a list. Returns "" if a reader would not get the same facts back: a value has a line end, or a name has a line end or a
    tab."""
    text = "\n".join([f"{path}\t{facts[path]}" for path in sorted(facts)])
    paths = "".join(facts)
    is_so = "\t" not in paths and "\n" not in paths and text.count("\n") == len(facts) - 1
    return text if facts and is_so else ""
