"""Changes of watched objects are noticed, either by checking each dictionary or because Python reports the change."""
from __future__ import annotations

import collections
import sys
import types
from typing import Any, Callable

import pytest

from warmgraph.reading import _identity_checks, _native_snapshots

pytestmark = pytest.mark.skipif(not _native_snapshots.is_possible(), reason="this Python's dictionaries are not looked at natively")


class Plain:
    kind = 1

    def __init__(self) -> None:
        self.value: Any = 1


class Slots:
    __slots__ = ("__dict__", "other")

    def __init__(self) -> None:
        self.value: Any = 1


def set_value(one: Any, value: Any) -> None:
    one.value = value


def set_item(one: Any, value: Any) -> None:
    one["value"] = value


def made_hot(change: Callable[[Any, Any], None], one: Any) -> None:
    """Makes the change often: the interpreter then replaces the instructions by specialised ones."""
    for i in range(3000):
        change(one, i)
    change(one, 1)


@pytest.fixture(params=["told", "looked at"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "looked at":
        monkeypatch.setattr(_native_snapshots, "watcher", lambda: None)
    elif _native_snapshots.watcher() is None:
        pytest.skip("a Python that tells of changes to a dictionary is 3.12 or newer")
    return str(request.param)


def watch_of(one: Any) -> _identity_checks.Watch:
    held = one if isinstance(one, dict) else _native_snapshots.dict_of(one.__dict__)
    return _identity_checks.Watch([_identity_checks.of_dict(held) if isinstance(one, (dict, type)) else _identity_checks.of_object(one, held)])


CHANGES: dict[str, Callable[[Any], None]] = {
    "an attribute": lambda one: set_value(one, 2),
    "a new attribute": lambda one: setattr(one, "more", 2),
    "an attribute that goes": lambda one: delattr(one, "value"),
    "past the class": lambda one: object.__setattr__(one, "value", 2),
    "the dictionary of the attributes": lambda one: vars(one).update(value=2),
    "another dictionary": lambda one: setattr(one, "__dict__", {"value": 1}),
    "another class": lambda one: setattr(one, "__class__", type("Other", (type(one),), {"__slots__": ()})),
}


@pytest.mark.parametrize("kind", [Plain, Slots, types.SimpleNamespace])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("is_hot", [False, True])
def test_what_changes_of_an_object_is_seen(way, kind, change, is_hot):
    if kind is types.SimpleNamespace and change in ("past the class", "another class", "another dictionary"):
        pytest.skip("a SimpleNamespace has no such change")
    one = kind(value=1) if kind is types.SimpleNamespace else kind()
    watched = watch_of(one)
    if is_hot:
        made_hot(set_value, one)
    assert watched.are_same() and watched.are_same()
    CHANGES[change](one)
    assert not watched.are_same() and not watched.are_same()


@pytest.mark.parametrize("kind", [dict, collections.OrderedDict])
@pytest.mark.parametrize("change", [lambda one: set_item(one, 2), lambda one: one.pop("value"), lambda one: one.clear(),
                                    lambda one: one.setdefault("more", 1), lambda one: one.update(value=3)])
def test_what_changes_of_a_dictionary_is_seen(way, kind, change):
    one = kind(value=1)
    watched = watch_of(one)
    made_hot(set_item, one)
    assert watched.are_same()
    change(one)
    assert not watched.are_same()


@pytest.mark.parametrize("of", [lambda one: _identity_checks.WatchedState(one), _identity_checks.Watch], ids=["slowly", "natively"])
@pytest.mark.parametrize("change", [
    lambda one: set_value(one, 2), lambda one: one.full.update(a=2), lambda one: one.full.pop("a"), lambda one: one.full.update(b=2),
    lambda one: one.empty.update(a=1), lambda one: set_item(one.ordered, 1), lambda one: one.long.move_to_end("a")])
def test_what_changes_of_the_parts_of_an_object_is_seen(way, of, change):
    one = Plain()
    one.full, one.empty, one.ordered = {"a": 1}, {}, collections.OrderedDict()
    one.long = collections.OrderedDict(a=1, b=2)  # the order is checked by Python code, not natively
    watched = of(_identity_checks.of_parts(one, vars(one), (one.full, one.empty, one.ordered))
                 + _identity_checks.of_parts(one, vars(one), (one.full, one.long)))
    are_same = watched.is_same if isinstance(watched, _identity_checks.WatchedState) else watched.are_same
    assert are_same()
    change(one)
    assert not are_same()


def test_what_changes_of_a_class_is_seen(way):
    kind = type("Kind", (Plain,), {"value": 1})
    watched = watch_of(kind)
    assert watched.are_same()
    set_value(kind, 2)
    assert not watched.are_same()


class Shown:
    """An object whose `__dict__` is made anew at each access."""

    __slots__ = ("a",)

    def __init__(self) -> None:
        self.a = 1

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        return {"a": self.a}


class Hidden(Plain):
    held: dict[str, Any] = {"a": 1}

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        return type(self).held


@pytest.mark.parametrize("kind", [Shown, Hidden])
def test_attributes_that_are_made_for_who_asks_are_compared_as_they_were_given(way, kind):
    one = kind()
    watched = _identity_checks.of_object(one, one.__dict__)
    assert watched.is_same() and _identity_checks.Watch([watched]).are_same() and not watched.is_owned


def test_the_order_of_an_ordered_dictionary_counts(way):
    one = collections.OrderedDict(first=1, second=2)
    watched = watch_of(one) if _native_snapshots.dict_of(one) else _identity_checks.Watch([_identity_checks.of_dict(one)])
    assert watched.are_same()
    one.move_to_end("first")
    assert not watched.are_same()
    few = collections.OrderedDict(first=1)
    watched = watch_of(few)
    assert watched.are_same()
    few["second"] = 2
    assert not watched.are_same()


def test_what_is_as_it_was_again_is_the_same(way):
    one = Plain()
    watched = watch_of(one)
    one.value = 2
    assert not watched.are_same()
    one.value = 1
    assert watched.are_same()


def test_a_change_before_the_look_counts_at_the_next_one_alone(way):
    one = {"value": 1}
    snapshot = _native_snapshots.Snapshot([one])
    one["value"] = 2
    one["value"] = 1
    assert snapshot.is_same() and snapshot.is_same()
    one["value"] = 2
    assert not snapshot.is_same() and not snapshot.is_same()


def test_a_change_after_its_first_look_is_seen(way):
    """Another thread makes the change during the first check."""
    one = {"value": 1}

    class Rest(_identity_checks.WatchedObjects):
        def is_same(self) -> bool:
            one["value"] = 2
            return True

    held = _identity_checks.WatchedState([_identity_checks.of_dict(one), Rest(tuple)])
    assert held.is_same()
    assert not held.is_same()


def test_nothing_is_looked_at_while_python_tells_of_nothing():
    if _native_snapshots.watcher() is None:
        pytest.skip("a Python that tells of changes to a dictionary is 3.12 or newer")
    one, other = {"value": 1}, {"value": 1}
    snapshot = _native_snapshots.Snapshot([one])
    _native_snapshots.Snapshot([other])
    raw = snapshot.raw
    raw.dicts[0].count = 7  # a complete check would notice this number
    assert snapshot.is_same()
    other["value"] = 2  # Python reports this change, too
    assert not snapshot.is_same()
    raw.dicts[0].count = 1
    assert snapshot.is_same()
    raw.dicts[0].count = 7
    assert snapshot.is_same()


ATTRIBUTES: dict[str, tuple[str, Callable[[Any], None]]] = {
    "another value": ("value", lambda one: set_value(one, 2)),
    "none": ("value", lambda one: delattr(one, "value")),
    "one that was not there": ("more", lambda one: setattr(one, "more", 1)),
}


@pytest.mark.parametrize("change", ATTRIBUTES)
def test_what_an_attribute_is_counts(change):
    one, (name, changed) = Plain(), ATTRIBUTES[change]
    snapshot = _native_snapshots.Snapshot(attributes=[(one, name, getattr(one, name, _native_snapshots.ABSENT))])
    assert snapshot.is_same()
    changed(one)
    assert not snapshot.is_same()


@pytest.mark.parametrize("change", [lambda held: held.append(1), lambda held: held.pop(), lambda held: held.__setitem__(1, "c"), lambda held: held.clear()])
def test_what_a_list_holds_counts(change):
    held, other = ["a", "b"], ["d"]
    snapshot = _native_snapshots.Snapshot(lists=[(held, list(held)), (other, list(other))])
    assert snapshot.is_same()
    change(held)
    assert not snapshot.is_same()


def test_a_look_keeps_nothing():
    one, value = Plain(), object()
    one.value = value
    held, listed = {"a": value}, [value]
    snapshot = _native_snapshots.Snapshot([held], [(held, "a")], [(listed, [value])], [(one, vars(one), Plain)], [(one, "value", value), (one, "none", _native_snapshots.ABSENT)])
    before = [sys.getrefcount(thing) for thing in (one, value, held, listed, vars(one), Plain)]
    for _ in range(100):
        assert snapshot.is_same()
    assert [sys.getrefcount(thing) for thing in (one, value, held, listed, vars(one), Plain)] == before


def test_the_first_item_of_a_dictionary_counts_and_one_that_is_not_there():
    one: dict[str, int] = {"a": 1}
    snapshot = _native_snapshots.Snapshot(items=[(one, "a"), (one, "b")])
    assert snapshot.is_same()
    one["b"] = 1
    assert not snapshot.is_same()
    del one["b"]
    assert snapshot.is_same()
    one["a"] = 2
    assert not snapshot.is_same()


def test_python_is_asked_where_it_tells_of_everything():
    assert (_native_snapshots.watcher() is not None) == (sys.version_info[:2] == (3, 12))
