"""The reader of calls: arrays by path, and every plain value."""
from __future__ import annotations

import collections
import copy
import dataclasses
import enum
import threading
from typing import Any

import numpy
import pytest
from hypothesis import given, settings, strategies as st

from warmgraph import NotRecordable, Tensor, Unsupported, _code, _walk


def f(x): return x


def read(owner=None, **arguments):
    return _walk.read(_code.Reached(f), arguments, owner)


def paths(found) -> list[str]:
    return [path for path, _ in found.arguments]


@dataclasses.dataclass
class Meta:
    sizes: list[int]
    mask: Any = None


class Colour(enum.Enum):
    red = 1
    blue = 2


Pair = collections.namedtuple("Pair", "left right")

plain = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=300) | st.binary(max_size=8) \
    | st.sampled_from(Colour)
keys = st.text(max_size=4) | st.integers() | st.tuples(st.integers(), st.text(max_size=2))
trees = st.recursive(plain, lambda inner: st.lists(inner, max_size=4) | st.tuples(inner, inner) | st.dictionaries(keys, inner, max_size=4)
                     | st.builds(Meta, st.lists(st.integers(), max_size=3), inner) | st.builds(Pair, inner, inner), max_leaves=12)


@given(trees)
@settings(max_examples=150, deadline=None)
def test_equal_structures_have_equal_facts(tree):
    assert read(x=tree).facts == read(x=copy.deepcopy(tree)).facts


@given(trees, plain, plain)
@settings(max_examples=150, deadline=None)
def test_another_value_is_seen_at_its_path(tree, one, other):
    same = type(one) is type(other) and repr(one) == repr(other)
    before, after = read(x=[tree, one]).facts, read(x=[tree, other]).facts
    changed = [path for path in before if before[path] != after.get(path)]
    assert changed == ([] if same else ["x[1]"])


@given(trees)
@settings(max_examples=100, deadline=None)
def test_facts_are_plain_text_in_one_line(tree):
    for path, fact in read(x=tree).facts.items():
        assert fact.isascii() and "\n" not in fact and len(fact) <= 250
        assert path.isascii()


@given(trees)
@settings(max_examples=100, deadline=None)
def test_arrays_are_replaced_where_they_are_and_nothing_else_is(tree):
    array, other = numpy.zeros(2), object()
    assert _walk.rebuilt(tree, lambda value: value) is tree
    given_tree = {"a": [tree, array], "b": (array,), "c": Meta([1], array)}
    made = _walk.rebuilt(given_tree, lambda value: other if value is array else value)
    assert made["a"][0] is tree and made["a"][1] is other and made["b"] == (other,) and made["c"].mask is other
    assert given_tree["c"].mask is array and made["c"].sizes is given_tree["c"].sizes


def test_arrays_are_found_by_path_each_once():
    x, y = numpy.zeros(3, numpy.float32), numpy.zeros(3, numpy.float32)
    found = read(x=x, more={"kv": [y, (x,)]}, meta=Meta([1], y))
    assert paths(found) == ["x", "more['kv'][0]"]
    assert found.facts["more['kv'][1][0]"] == "is x"
    assert found.facts["meta.mask"] == "is more['kv'][0]"


def test_aliases_of_objects_are_seen():
    one = [1, 2]
    assert read(x=one, y=one).facts != read(x=one, y=[1, 2]).facts
    around: list = [1]
    around.append(around)
    assert read(x=around).facts == read(x=copy.deepcopy(around)).facts


def test_numbers_that_print_alike_differ():
    facts = [read(x=value).facts["x"] for value in (1, 1.0, True, "1", numpy.float32(1), numpy.int64(1), Colour.red, None)]
    assert len(set(facts)) == len(facts)


def test_long_texts_are_told_apart():
    assert read(x="a" * 5000 + "b").facts != read(x="a" * 5000 + "c").facts


class Layer:
    def __init__(self, width: int) -> None:
        self.width, self.unused, self.lock = width, 7, threading.Lock()

    def __call__(self, x: Any) -> Any:
        return self.helper(x)

    def helper(self, x: Any) -> Any:
        return x * self.width


class Model:
    def __init__(self) -> None:
        self.layers = [Layer(1), Layer(2)]
        self.other = threading.Lock()

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x


def test_objects_are_read_as_far_as_code_names_them():
    model = Model()
    reached = _code.Reached(model.forward)
    facts = _walk.read(reached, {}, model).facts
    assert facts["self.layers[1].width"] == "int 2"
    assert not any("unused" in path or "lock" in path for path in facts)
    model.layers[1].width = 3
    assert _walk.read(reached, {}, model).facts["self.layers[1].width"] == "int 3"
    assert {"forward", "__call__", "helper"} <= {one.__name__ for one in reached.functions}


FACTOR = 3


def uses_global(x):
    return x * FACTOR


def test_globals_and_closures_are_read(monkeypatch):
    def facts():
        return _walk.read(_code.Reached(uses_global), {}, None).facts

    assert facts()["test_walk.FACTOR"] == "int 3"
    monkeypatch.setitem(globals(), "FACTOR", 4)
    assert facts()["test_walk.FACTOR"] == "int 4"
    inside = [1, 2]

    def closes(x):
        return x, inside

    assert _walk.read(_code.Reached(closes), {}, None).facts["closes.inside[1]"] == "int 2"


def test_host_arrays_of_the_object_are_compared_by_contents():
    class Holder:
        def run(self):
            return self.table

    holder = Holder()
    holder.table = numpy.arange(4)
    reached = _code.Reached(holder.run)
    before = _walk.read(reached, {}, holder).facts
    holder.table[2] = 9
    assert _walk.read(reached, {}, holder).facts != before
    holder.table = numpy.zeros(100_000)
    with pytest.raises(NotRecordable, match="self.table is an array of 800000 bytes in host memory"):
        _walk.read(reached, {}, holder)


@pytest.mark.parametrize("value", [threading.Lock(), open("/dev/null"), iter([1]), {object(): 1}, {frozenset({1}): 2}])
def test_what_cannot_be_compared_is_refused_by_its_path(value):
    with pytest.raises(NotRecordable, match=r"^x\[0\]"):
        read(x=[value])


def test_too_deep_is_refused():
    deep: list = []
    for _ in range(100):
        deep = [deep]
    with pytest.raises(NotRecordable, match="nested more than"):
        read(x=deep)


def test_arrays_of_pytorch_are_refused_by_name():
    fake = type("Tensor", (), {"__module__": "torch"})()
    with pytest.raises(Unsupported, match="torch.Tensor is PyTorch's"):
        read(x=fake)


def test_names_become_folders():
    assert _walk.folder_name("<lambda>") == "_lambda_"
    assert _walk.folder_name("../..") == "_"
    assert Tensor(3, "float32") == Tensor([3], numpy.float32)
