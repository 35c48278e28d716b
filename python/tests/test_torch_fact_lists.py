"""Packed into lists, facts stay the same, but need fewer texts."""
from __future__ import annotations

import types
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed here")

from warmgraph.reading import _native_snapshots  # noqa: E402
from warmgraph.torch.replay import _fact_lists, _long_facts  # noqa: E402


def walker_of(facts: dict[str, str], *parts: Any) -> Any:
    return types.SimpleNamespace(found=types.SimpleNamespace(facts=facts), taken=[(0, part) for part in parts])


def part_of(path: str, facts: dict[str, str], **regions: dict[str, str]) -> Any:
    made = [types.SimpleNamespace(facts=lambda held=held: held) for held in regions.values()]
    return types.SimpleNamespace(path=path, facts=facts, regions=((), made, frozenset(map(id, made))), memory=None, listed=None)


def each(facts: dict[str, str]) -> dict[str, str]:
    """The facts in the lists, as the library reads them."""
    found = {}
    for name, value in facts.items():
        if name.endswith(" *") and all("\t" in line for line in value.split("\n")):
            found.update(line.split("\t", 1) for line in value.split("\n"))
        else:
            found[name] = value
    return found


MODES = {"torch.version": "2", "python": "3"}


def test_what_was_walked_is_one_list_by_name():
    walked = {"model.b": "2", "model.a": "with a\ttab", "x": ""}
    facts = {**MODES, **walked, "memory.x": "at 0"}
    found = _fact_lists.listed(facts, walker_of(walked))
    assert found == {**MODES, "values *": "memory.x\tat 0\nmodel.a\twith a\ttab\nmodel.b\t2\nx\t"}
    assert each(found) == facts
    assert _fact_lists.listed(dict(reversed(facts.items())), walker_of(walked)) == found


def test_each_part_has_a_list_which_is_made_once():
    part = part_of("model", {"model": "M", "model.a": "1"}, weights={"memory.model.w": "at 0"})
    walked = {**part.facts, "x": "3"}
    facts = {**MODES, **walked, "memory.model.w": "at 0"}
    found = _fact_lists.listed(facts, walker_of(walked, part))
    assert found == {**MODES, "model *": "memory.model.w\tat 0\nmodel\tM\nmodel.a\t1", "values *": "x\t3"}
    again = _fact_lists.listed(facts, walker_of(walked, part))
    assert again == found and again["model *"] is found["model *"]
    part.regions, part.listed = ((), [types.SimpleNamespace(facts=lambda: {"memory.model.w": "at 8"})], frozenset()), None
    facts["memory.model.w"] = "at 8"
    assert "memory.model.w\tat 8" in _fact_lists.listed(facts, walker_of(walked, part))["model *"]


def test_a_part_that_the_call_sees_otherwise_is_not_taken_as_it_is():
    part = part_of("model", {"model": "M", "model.a": "1"})
    walked = {**part.facts, "model.a": "2"}
    found = _fact_lists.listed(walked, walker_of(walked, part))
    assert found == {"values *": "model\tM\nmodel.a\t2"}


@pytest.mark.parametrize("facts", [{"a": "line\nline"}, {"a\tb": "1"}, {"a\nb\tc": "1"}, {"values *": "1", "a": "2"}, {}])
def test_what_would_be_read_otherwise_stays_as_it_is(facts):
    assert _fact_lists.listed(facts, walker_of(facts)) == facts


def test_too_many_are_folded(monkeypatch):
    monkeypatch.setattr(_long_facts, "_MOST", 64)
    facts = {f"model.layers[{i}].a": "x" * 20 for i in range(10)}
    assert each(_fact_lists.listed({**MODES, **facts}, walker_of(facts))) == _long_facts.folded({**MODES, **facts}) != facts
    assert set(_fact_lists.listed({**MODES, **facts}, walker_of(facts))) == {"python", "values *"}


@pytest.mark.parametrize(("facts", "known"), [
    ({"b": "1", "a": "2", "memory.x": "3", "torch.y": "0"}, {"a", "b"}), ({}, set()), ({"torch.y": "1"}, set()), ({"a": ""}, {"a"}),
    ({"a": "x\ny"}, {"a"}), ({"a\tb": "x"}, {"a\tb"}), ({"a\nb": "x"}, {"a\nb"}), ({"a": "\t"}, {"a"}),
    ({"\U0001f600": "1", "é": "ü", "z": "2", "\uffff": "3"}, {"\U0001f600", "é", "z", "\uffff"}),
])
def test_the_library_lists_as_python_does(facts: dict[str, str], known: set[str]) -> None:
    for held in (known, dict.fromkeys(known), dict.fromkeys(known).keys()):
        assert _native_snapshots.listed_facts(facts, held, "memory.") == _fact_lists._listed(facts, held, "memory.")


def test_what_is_no_text_of_utf8_is_an_error_of_pythons() -> None:
    for facts in ({"a": "\ud800"}, {"\ud800": "a"}):
        with pytest.raises(UnicodeEncodeError):
            _native_snapshots.listed_facts(facts, dict.fromkeys(facts), "memory.")
