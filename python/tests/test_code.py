"""A function's version changes when its behaviour changes, and only then."""
from __future__ import annotations

import functools
import gc
import importlib
import sys
import types
import weakref

import pytest

from warmgraph.reading import _array_reader, _code_objects, _reached_code


def made(source: str, path: str = "<a>", lines: int = 0, **more) -> types.FunctionType:
    space: dict = {"__name__": "user_module", **more}
    exec(compile("\n" * lines + source, path, "exec"), space)
    return space["f"]


def digest(function) -> str:
    return _reached_code.ReachedCode(function).digest()


BASE = "def f(x):\n    def g(y): return y in {1, 2, 3}\n    return g(x) + 1\n"


def test_paths_and_lines_do_not_count():
    assert digest(made(BASE)) == digest(made(BASE, "/elsewhere/b.py", 40))
    assert digest(made(BASE)) == digest(made(BASE + "\n# a comment\n"))


@pytest.mark.parametrize("change", [("+ 1", "+ 2"), ("{1, 2, 3}", "{1, 2, 4}"), ("return y in", "return y not in"), ("+ 1", "+ 1.0"),
                                    ("def f(x)", "def f(*x)")])
def test_what_it_does_counts_also_in_nested_functions(change):
    assert digest(made(BASE)) != digest(made(BASE.replace(*change)))


def test_a_named_function_counts_and_one_beside_it_does_not():
    source = "def h(x): return x + {}\ndef other(x): return {}\ndef f(x): return h(x)\n"
    assert digest(made(source.format(1, 1))) == digest(made(source.format(1, 2)))
    assert digest(made(source.format(1, 1))) != digest(made(source.format(2, 1)))


def test_closures_and_methods_count():
    source = "def outer():\n    def h(x): return x + {}\n    def f(x): return h(x)\n    return f\nf = outer()\n"
    assert digest(made(source.format(1))) != digest(made(source.format(2)))
    source = "class A:\n    def run(self): return self.step()\n    def step(self): return {}\n    def idle(self): return {}\nf = A.run\n"
    digests = {}
    for values in [(1, 1), (2, 1), (1, 2)]:
        function = made(source.format(*values))
        reached = _reached_code.ReachedCode(function)
        reached.add_class(type("B", (function.__globals__["A"],), {"__module__": "user_module"}))
        digests[values] = reached.digest()
    assert digests[1, 1] != digests[2, 1] and digests[1, 1] == digests[1, 2]


def test_the_digest_is_the_same_in_every_process(process):
    script = """
        from warmgraph.reading import _reached_code
        def f(x): return x in {"a", "b", "c", "d", "e"}
        print(_reached_code.ReachedCode(f).digest())
    """
    seen = {process(script, bare=True, PYTHONHASHSEED=seed).lines()[0] for seed in "123"}
    assert len(seen) == 1


def test_modules_that_are_imported_inside_count(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    source = "def f(x):\n    import math, no_such_module\n    from inside import step\n    return step(x)\n"
    digests = []
    for more in (1, 2, 2):
        (tmp_path / "inside.py").write_text(f"def step(x): return x + {more}\n")
        monkeypatch.delitem(sys.modules, "inside", raising=False)
        importlib.invalidate_caches()
        digests.append(_array_reader.read(_reached_code.ReachedCode(made(source)), {}, None).reached.digest())
    assert digests[0] != digests[1] == digests[2]


def singly_dispatched(of_numbers, later=None):
    @functools.singledispatch
    def double(x):
        return x

    double.register(int)(of_numbers)
    if later is not None:
        double.register(float)(later)
    return lambda x: double(x)


def test_what_single_dispatch_chooses_from_counts():
    found = {_reached_code.ReachedCode(function).digest() for function in (
        singly_dispatched(lambda x: x * 2), singly_dispatched(lambda x: x * 3), singly_dispatched(lambda x: x * 2, lambda x: x * 4))}
    assert len(found) == 3
    assert _reached_code.ReachedCode(singly_dispatched(lambda x: x * 2)).digest() == _reached_code.ReachedCode(singly_dispatched(lambda x: x * 2)).digest()


def test_an_implementation_that_is_registered_later_is_other_code():
    function = singly_dispatched(lambda x: x * 2)
    reached = _reached_code.ReachedCode(function)
    assert reached.is_current() and reached.is_rest_current()
    function.__closure__[0].cell_contents.register(float)(lambda x: x * 4)
    assert not reached.is_current() and not reached.is_rest_current()


def test_methods_that_single_dispatch_chooses_from_count():
    def kind(of_numbers):
        class Doubled:
            @functools.singledispatchmethod
            def double(self, x):
                return x

            double.register(int)(of_numbers)

            def step(self, x):
                return self.double(x)

        return Doubled

    digests = {_reached_code.ReachedCode(kind(function)().step, {}).with_met({one: False}, []).digest()
               for function in (lambda self, x: x * 2, lambda self, x: x * 3) for one in [kind(function)]}
    assert len(digests) == 2


def test_users_implementations_of_a_librarys_function_count(monkeypatch):
    monkeypatch.setattr(_reached_code.ReachedCode, "_is_of_library", lambda self, function: "of_numbers" not in function.__qualname__)

    def of_numbers(x):
        return x * 2

    def of_numbers_otherwise(x):
        return x * 3

    assert _reached_code.ReachedCode(singly_dispatched(of_numbers)).digest() != _reached_code.ReachedCode(singly_dispatched(of_numbers_otherwise)).digest()


def test_libraries_are_not_followed():
    import numpy

    reached = _reached_code.ReachedCode(made("def f(x): return take(x)\n", take=numpy.take))
    assert [one.__name__ for one in reached.functions] == ["f"]


def test_globals_are_those_that_dis_tells():
    """Compares the globals that the package finds with those that dis finds, in all functions of some modules: with long jumps, nested
    functions, more than 256 names."""
    import argparse, ast, inspect, typing, decimal, tokenize, dataclasses as data

    seen = 0
    for module in (argparse, ast, inspect, typing, decimal, tokenize, data, _reached_code):
        for one in [*vars(module).values(), *(m for kind in vars(module).values() if isinstance(kind, type) for m in vars(kind).values())]:
            code = getattr(one, "__code__", None)
            if isinstance(code, types.CodeType):
                seen += 1
                for nested in _code_objects.nested(code):
                    assert set(_code_objects._names_of_globals(nested)) == set(_code_objects._slowly_named_globals(nested)), code.co_qualname if hasattr(code, "co_qualname") else code
    assert seen > 300
    many = "def many():\n" + "".join(f"    name{i} = other{i}\n    global written{i}\n    written{i} = other{i}.value\n" for i in range(700))
    made: dict = {}
    exec(many, made)
    code = made["many"].__code__
    assert set(_code_objects._names_of_globals(code)) == set(_code_objects._slowly_named_globals(code))
    assert {"other0", "other699", "written699"} <= _code_objects.globals_in(code)


@pytest.mark.parametrize("change", [slice(1, 3), slice(1, 2, 1), 1, 1.0, True, "1", b"1", (1,), (slice(1, 2),), frozenset({1}), -0.0, 0.0, None, ...])
def test_constants_of_all_kinds_are_told_apart(change):
    """In Python 3.14 slices can be constants; marshal cannot write them in format version 2."""
    def function():
        pass

    plain = function.__code__.replace(co_consts=(slice(1, 2),))
    changed = function.__code__.replace(co_consts=(change,))
    assert _code_objects._digest_of(changed) == _code_objects._digest_of(changed.replace(co_name="other"))
    assert _code_objects._digest_of(changed) != _code_objects._digest_of(plain)
    others = [function.__code__.replace(co_consts=(one,)) for one in (1, 1.0, True, "1", b"1", (1,), frozenset({1}), -0.0, 0.0, None, ...)]
    assert len({_code_objects._digest_of(one) for one in others}) == len(others)


def test_a_digest_that_was_asked_for_is_another_one_once_more_is_reached():
    class Kind:
        def __call__(self):
            return 1

    reached = _reached_code.ReachedCode(lambda: 1)
    first = reached.digest()
    assert reached.digest() == first
    reached.add_class(Kind)
    assert reached.digest() != first


TWINS = """
def helper(x): return x + {by}
class Base:
    def step(self): return {by}
def factory(held):
    def f(x): return helper(x) + held.step()
    return f
"""


def twins(by: int = 1) -> types.SimpleNamespace:
    space: dict = {"__name__": "user_module"}
    exec(compile(TWINS.format(by=by), "<a>", "exec"), space)
    return types.SimpleNamespace(**space, globals=space)


def taken(module, function):
    """Returns (the function's reached code, classes, the reached code around it)."""
    classes = {module.Base: False}
    around = _reached_code.ReachedCode(module.factory(module.Base())).with_met(classes, ()).around()
    assert around is not None
    reached = _reached_code.ReachedCode(function)
    return reached, classes, around


def test_another_function_of_its_code_reaches_the_same():
    module = twins()
    function = module.factory(module.Base())
    reached, classes, around = taken(module, function)
    assert reached.take_over(around, classes)
    found, anew = reached.with_met(classes, ()), _reached_code.ReachedCode(function, classes)
    assert found is reached.latest() and found.target is function
    assert found.reads_as(anew) and found.functions[0] is function and found.code is anew.code
    assert found.digest() == anew.digest()
    assert [(type(look), value) for look, value in found._references] == [(type(look), value) for look, value in anew._references]
    assert found.is_current()
    module.globals["helper"] = len
    assert not found.is_current()


def test_what_changes_meanwhile_is_not_taken_over():
    def new_helper(module): module.globals["helper"] = twins(2).helper
    def new_code(module): module.helper.__code__ = twins(2).helper.__code__
    def new_method(module): module.Base.step = twins(2).Base.step
    for change in (new_helper, new_code, new_method):
        module = twins()
        function = module.factory(module.Base())
        reached, classes, around = taken(module, function)
        change(module)
        reached = _reached_code.ReachedCode(function)
        assert not reached.take_over(around, classes), change.__name__
        assert reached.with_met(classes, ()).digest() == _reached_code.ReachedCode(function, classes).digest()


def test_functions_that_bring_code_along_or_lie_elsewhere_are_read_themselves():
    module = twins()
    wrapped = module.factory(module.Base())
    wrapped.__wrapped__ = module.helper
    changed = module.factory(module.Base())
    changed.__code__ = changed.__code__.replace(co_name="other")
    others = {"a function in its closure": module.factory(module.helper), "a method": module.factory(module.Base().step), "a class": module.factory(module.Base),
              "an attribute": wrapped, "other globals": twins().factory(module.Base()), "another code": changed}
    for what, function in others.items():
        reached, classes, around = taken(module, function)
        assert not reached.take_over(around, classes), what
        if what != "other globals":
            assert what == "another code" or reached.with_met(classes, ()).around() is None, what


def test_what_a_function_reached_keeps_nothing_that_it_closes_over():
    module = twins()
    held = module.Base()
    function = module.factory(held)
    alive, around = [weakref.ref(held), weakref.ref(function)], _reached_code.ReachedCode(function).around()
    del held, function
    gc.collect()
    assert around is not None and [one() for one in alive] == [None, None]
