"""Tests the reader of calls: it finds arrays by path, and every plain value."""
from __future__ import annotations

import collections
import copy
import dataclasses
import enum
import fractions
import functools
import logging
import math
import pathlib
import random
import re
import sys
import threading
import types
from typing import Any

import numpy
import pytest
from hypothesis import given, settings, strategies as st

from warmgraph import NotRecordable, Tensor, Unsupported, cache_compile
from warmgraph.calls import _array_call, _names, _side_effects
from warmgraph.reading import _array_reader, _reached_code


def f(x): return x


def read(owner=None, **arguments):
    return _array_reader.read(_reached_code.ReachedCode(f), arguments, owner)


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
@settings(deadline=None)
def test_equal_structures_have_equal_facts(tree):
    assert read(x=tree).facts == read(x=copy.deepcopy(tree)).facts


@given(trees, plain, plain)
@settings(deadline=None)
def test_another_value_is_seen_at_its_path(tree, one, other):
    same = type(one) is type(other) and repr(one) == repr(other)
    before, after = read(x=[tree, one]).facts, read(x=[tree, other]).facts
    changed = [path for path in before if before[path] != after.get(path)]
    assert changed == ([] if same else ["x[1]"])


@pytest.mark.parametrize("before, after, said", [
    ({"a": "int 1"}, {"a": "int 1"}, "None"),
    ({"a": "int 1", "b": "int 2"}, {"a": "int 1", "b": "int 3"}, "b was 'int 2' before the call and is 'int 3' after it"),
    ({"a": "int 1"}, {}, "a was 'int 1' before the call and is not there after it"),
    ({}, {"a": "int 1"}, "a was not there before the call and is 'int 1' after it"),
])
def test_what_a_call_changed_is_said_by_its_path(before, after, said):
    assert str(_side_effects.difference(before, after)) == said


@given(trees)
@settings(deadline=None)
def test_facts_are_plain_text_in_one_line(tree):
    for path, fact in read(x=tree).facts.items():
        assert fact.isascii() and "\n" not in fact and len(fact) <= 200
        assert path.isascii()


@given(trees)
@settings(deadline=None)
def test_arrays_are_replaced_where_they_are_and_nothing_else_is(tree):
    array, other = numpy.zeros(2), object()
    assert _array_call.rebuilt(tree, lambda value: value) is tree
    given_tree = {"a": [tree, array], "b": (array,), "c": Meta([1], array)}
    made = _array_call.rebuilt(given_tree, lambda value: other if value is array else value)
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
    reached = _reached_code.ReachedCode(model.forward)
    found = _array_reader.read(reached, {}, model)
    facts = found.facts
    assert facts["self.layers[1].width"] == "int 2"
    assert not any("unused" in path or "lock" in path for path in facts)
    model.layers[1].width = 3
    assert _array_reader.read(reached, {}, model).facts["self.layers[1].width"] == "int 3"
    assert {"forward", "__call__", "helper"} <= {one.__name__ for one in found.reached.functions}


FACTOR = 3


def uses_global(x):
    return x * FACTOR


def test_globals_and_closures_are_read(monkeypatch):
    def facts():
        return _array_reader.read(_reached_code.ReachedCode(uses_global), {}, None).facts

    assert facts()["test_walk.FACTOR"] == "int 3"
    monkeypatch.setitem(globals(), "FACTOR", 4)
    assert facts()["test_walk.FACTOR"] == "int 4"
    inside = [1, 2]

    def closes(x):
        return x, inside

    assert _array_reader.read(_reached_code.ReachedCode(closes), {}, None).facts["closes.inside[1]"] == "int 2"


def test_host_arrays_of_the_object_are_compared_by_contents():
    class Holder:
        def run(self):
            return self.table

    holder = Holder()
    holder.table = numpy.arange(4)
    reached = _reached_code.ReachedCode(holder.run)
    before = _array_reader.read(reached, {}, holder).facts
    holder.table[2] = 9
    assert _array_reader.read(reached, {}, holder).facts != before
    holder.table = numpy.zeros(100_000)
    with pytest.raises(NotRecordable, match="self.table is an array of 800000 bytes in host memory"):
        _array_reader.read(reached, {}, holder)


def doubled(function):
    @functools.wraps(function)
    def wrapper(x):
        return function(x) * FACTOR

    return wrapper


class Scale:
    factor = 2
    limits = types.SimpleNamespace(high=3)

    def __init__(self, by=FACTOR):
        self.by = by

    def __call__(self, x):
        return x * self.by


def module_of(name, **members):
    module = types.ModuleType(name)
    module.__file__ = f"/elsewhere/{name}.py"
    exec("def helper(x, more=5): return x * WIDTH + more\ndef idle(x): return x", vars(module))
    vars(module).update({"WIDTH": 3, "UNUSED": 4, **members})
    return module


ops = module_of("ops")
TABLE = {"relu": uses_global}


@doubled
def decorated(x):
    return x


class Widths:
    narrow, wide = 2, 3


def uses_all(x, callback, config):
    y = callback(x, config) + ops.helper(x) + TABLE["relu"](x) + decorated(x)
    return Scale()(y) + Scale.limits.high + Widths.wide + Colour.blue.value


def callback(x, config):
    return x * config.width


class Plain:
    def __init__(self, **values):
        self.__dict__.update(values)


def uses_all_facts(**more):
    arguments = {"callback": callback, "config": Plain(width=1, other=2), **more}
    found = _array_reader.read(_reached_code.ReachedCode(uses_all), arguments, None)
    return {**found.facts, "code": found.reached.digest()}


def test_whatever_the_code_may_use_is_read(monkeypatch):
    before = uses_all_facts()
    assert before["config.width"] == "int 1" and "config.other" not in before
    assert before["test_walk.ops.WIDTH"] == "int 3" and not any("UNUSED" in path for path in before)
    assert before["helper.more"] == "int 5"
    assert before == uses_all_facts()

    def changed(*replacement):
        with monkeypatch.context() as patch:
            patch.setattr(*replacement)
            after = uses_all_facts()
        assert before == uses_all_facts()
        return sorted(path for path in {**before, **after} if before.get(path) != after.get(path))

    assert changed(ops, "WIDTH", 4) == ["ops.WIDTH", "test_walk.ops.WIDTH"]
    assert changed(ops, "idle", 4) == []
    assert "code" in changed(ops, "helper", module_of("ops").idle)
    assert changed(ops.helper, "__defaults__", (6,)) == ["helper.more"]
    assert changed(Scale.limits, "high", 4) == ["test_walk.Scale.limits.high"]
    assert changed(Widths, "wide", 4) == ["test_walk.Widths.wide"]
    assert changed(Scale.__init__, "__defaults__", (1,)) == ["__init__.by"]
    assert "code" in changed(Scale, "__call__", lambda self, x: x)
    assert "code" in changed(Scale, "__init__", lambda self: None)
    assert "code" in changed(decorated.__wrapped__, "__code__", (lambda x: x + 1).__code__)
    assert "code" in changed(sys.modules[__name__], "decorated", lambda x: x)
    monkeypatch.setitem(TABLE, "relu", lambda x: -x)
    assert uses_all_facts()["code"] != before["code"]


def test_what_a_function_argument_uses_is_read():
    def made(factor):
        return lambda x, config: x * factor * config.other

    assert uses_all_facts(callback=made(2)) == uses_all_facts(callback=made(2))
    facts = uses_all_facts(callback=made(3))
    assert facts != uses_all_facts(callback=made(2)) and facts["config.other"] == "int 2"
    partials = [uses_all_facts(callback=functools.partial(callback, **{name: 1})) for name in ("x", "config")]
    assert partials[0] != partials[1]


def test_functions_of_one_name_have_paths_of_their_own():
    def made(factor):
        def inner(x):
            return x * factor

        return inner

    one, other = made(1), made(2)

    def both(x):
        return one(x) + other(x)

    facts = _array_reader.read(_reached_code.ReachedCode(both), {"inner": 7}, None).facts
    assert {facts["inner"], facts["inner~2.factor"], facts["inner~3.factor"]} == {"int 7", "int 1", "int 2"}


def test_earlier_calls_do_not_change_what_a_call_is():
    reached = _reached_code.ReachedCode(callback)
    alone = _array_reader.read(_reached_code.ReachedCode(callback), {"config": Plain(width=1)}, None)
    _array_reader.read(reached, {"config": Layer(1), "x": uses_global}, None)
    after = _array_reader.read(reached, {"config": Plain(width=1)}, None)
    assert (after.facts, after.reached.digest()) == (alone.facts, alone.reached.digest())
    for _ in range(100):
        _array_reader.read(reached, {"config": lambda: None}, None)
    assert len(reached._larger) <= 32


def scaled(x):
    return x * FACTOR


def calls(x):
    return scaled(x) + decorated(x)


def test_what_is_replaced_while_the_process_runs_is_followed(monkeypatch):
    reached = _reached_code.ReachedCode(calls)
    before = reached.digest()
    assert reached.is_current()
    for replace in [lambda patch: patch.setattr(sys.modules[__name__], "scaled", lambda x: x),
                    lambda patch: patch.setattr(scaled, "__code__", (lambda x: x).__code__),
                    lambda patch: patch.setattr(decorated.__closure__[0], "cell_contents", scaled)]:
        with monkeypatch.context() as patch:
            replace(patch)
            assert not reached.is_current() and _reached_code.ReachedCode(calls).digest() != before
        assert reached.is_current()
    model = Model()
    model.cached = cache_compile(model.forward)
    found = model.cached._read({"x": 1})
    monkeypatch.setattr(Layer, "helper", lambda self, x: x)
    assert model.cached._read({"x": 1}).reached.digest() != found.reached.digest()


def test_long_values_and_odd_letters_stay_short():
    facts = [read(x=text).facts["x"] for text in ("\U00010000" * 25, "\U00010000" * 24 + "\U00010001", "\n" * 150, "\udc80" * 90)]
    assert len(set(facts)) == 4 and max(map(len, facts)) <= 200


def test_objects_of_libraries_are_read_whole():
    def fact(value):
        return read(x=value).facts

    for one, other in [(pathlib.Path("/a"), pathlib.Path("/b")), (fractions.Fraction(1, 2), fractions.Fraction(1, 3)),
                       (types.SimpleNamespace(a=1), types.SimpleNamespace(a=2)), (re.compile("a"), re.compile("a", re.I)),
                       (functools.partial(f, 1), functools.partial(f, 2)), (numpy.take, numpy.put), (numpy.tanh, numpy.sinh),
                       (math.sin, math.cos), (collections.OrderedDict(a=1), collections.OrderedDict(a=2)), (Meta, Pair)]:
        assert fact(one) == fact(copy.deepcopy(one)) != fact(other)
    assert fact(logging.getLogger("a")) == {"x": "Logger"}
    for hidden in (random.Random(3), numpy.random.default_rng(3), collections.deque([1]), ValueError("x")):
        with pytest.raises(NotRecordable, match="^x is a .* which cannot be compared"):
            fact(hidden)


class Slotted:
    __slots__ = ("__private", "public")

    def __init__(self, private):
        self.__private, self.public = private, 1

    def get(self):
        return self.__private


def test_slots_are_read_also_private_ones():
    facts = _array_reader.read(_reached_code.ReachedCode(Slotted.get), {}, Slotted(5)).facts
    assert facts == {"self": "test_walk.Slotted", "self._Slotted__private": "int 5"}


class Table(list):
    def look(self):
        return self[0] * self.factor


def test_containers_of_ones_own_have_attributes():
    tables = [Table([1]), Table([1])]
    tables[0].factor, tables[1].factor = 2, 3
    facts = [_array_reader.read(_reached_code.ReachedCode(Table.look), {}, table).facts for table in tables]
    assert facts[0]["self[0]"] == "int 1" and facts[0]["self.factor"] == "int 2" and facts[0] != facts[1]


@given(st.lists(st.text(max_size=6) | st.sampled_from(["x[0]", "x.0", "x['a']", "x[a]", "x" * 300, "größe"]), unique=True, max_size=8))
@settings(deadline=None)
def test_arrays_have_names_that_the_library_takes(paths):
    names = _names.binding_names(paths)
    assert list(names) == paths and len(set(names.values())) == len(paths)
    assert all(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}", name) for name in names.values())
    assert names == {path: _names.binding_names(paths[::-1])[path] for path in paths}
    assert _names.binding_names(["self.weights[0]", "kv['a'][1]"]) == {"self.weights[0]": "self.weights.0", "kv['a'][1]": "kv.a.1"}


@pytest.mark.parametrize("value", [open("/dev/null"), iter([1]), {object(): 1}, {frozenset({1}): 2}])
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
    with pytest.raises(Unsupported, match="torch.Tensor is given, expected an array"):
        read(x=fake)


def test_names_become_folders():
    assert _names.folder_name("<lambda>") == "_lambda_"
    assert _names.folder_name("../..") == "_"
    assert Tensor(3, "float32") == Tensor([3], numpy.float32)
