"""Wraps modules as functions: each is called like the module, with its hooks; it is eager, or compiled by this package, by torch.compile,
or in place."""
from __future__ import annotations

import copy
import functools
import json
import os
import pickle
import subprocess
import sys
import types
from typing import Any, Iterator

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed here")

import torch_on_the_host as host  # noqa: E402
import warmgraph  # noqa: E402
from torch_on_the_host import refusal  # noqa: E402
from warmgraph import errors  # noqa: E402
from warmgraph.core.serving._entry_metadata import each_fact  # noqa: E402
from warmgraph.torch.read import _modules  # noqa: E402


@pytest.fixture(autouse=True)
def on_the_host(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    host.use(monkeypatch)
    yield
    torch._dynamo.reset() if hasattr(torch, "_dynamo") else None


class Net(torch.nn.Module):
    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(width, width)
        self.inner = torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.ReLU())

    def forward(self, x: Any, factor: float = 2.0, *, shift: float = 0.5) -> Any:
        return self.inner(self.linear(x)) * factor + shift


EAGER = {"backend": "eager"}


def wrap(module: Any, compile: Any = False, **options: Any) -> Any:
    return warmgraph.cache_compile(module, compile=compile, config=warmgraph.Config(model="net"), **options)


def states() -> list[str]:
    return [one.name for one in host.entries[-1].given.states]


NAMES = ["linear.weight", "linear.bias", "inner.0.weight", "inner.0.bias"]


def forms() -> list[Any]:
    """Returns (name, the wrapped part of a module, the option `compile`) for each form."""
    def in_place(net: Any) -> Any:
        net.compile(backend="eager", fullgraph=True)
        return net

    return [("eager", lambda net: net, False), ("compiled by us", lambda net: net, EAGER),
            ("torch.compile", lambda net: torch.compile(net, backend="eager", fullgraph=True), None), ("module.compile()", in_place, None)]


FORMS = pytest.mark.parametrize("form, how", [one[1:] for one in forms()], ids=[one[0] for one in forms()])


@FORMS
def test_a_module_is_called_as_it_is_recorded_and_replayed(form, how):
    net, x = Net().eval(), torch.randn(2, 4)
    cached = wrap(form(net), how)
    expected = net.inner(net.linear(x)) * 2.0 + 0.5
    assert torch.equal(cached(x), expected) and not refusal(cached)
    (entry,) = host.entries
    assert states() == NAMES and [one.name for one in entry.given.inputs] == ["x"]
    first, second = entry.captures
    assert not {at for _, at, _ in first.regions} & {at for _, at, _ in second.regions}
    cached(torch.randn(2, 4)), cached(torch.randn(2, 4))
    assert len(host.entries) == 1 and len(entry.calls) == 2
    assert torch.equal(net.linear.weight, net.linear.weight) and net.linear.weight.data_ptr() in [at for _, at, _ in first.regions]


@FORMS
def test_another_process_finds_the_modules_entry(form, how):
    torch.manual_seed(1)
    wrap(form(Net()), how)(torch.zeros(2, 4))
    wrap(form(Net()), how)(torch.zeros(2, 4))
    assert len(host.entries) == 2 and host.entries[1].captures is None and len(host.entries[1].calls) == 1


@FORMS
def test_its_folder_has_the_name_of_its_class(form, how):
    cached = warmgraph.cache_compile(form(Net()), compile=how)
    assert (cached._name(), cached._where().model) == ("Net", "Net") and "Net" in repr(cached)
    assert warmgraph.cache_compile(form(Net()), compile=how, name="net")._name() == "net"


def test_arguments_have_the_names_of_forwards_and_its_defaults():
    cached = wrap(Net())
    cached(torch.zeros(2, 4), shift=1.0)
    assert each_fact(host.entries[0].given.facts)["factor"] == "float 2.0" and each_fact(host.entries[0].given.facts)["shift"] == "float 1.0"
    with pytest.raises(TypeError):
        cached(torch.zeros(2, 4), scale=2)


@FORMS
def test_hooks_of_the_module_run_as_in_the_module(form, how):
    def double(module: Any, args: Any) -> Any:
        return (args[0] * 2,)

    def shift(module: Any, args: Any, kwargs: Any, result: Any) -> Any:
        return result + 3

    net, x = Net().eval(), torch.randn(2, 4)
    net.register_forward_pre_hook(double)
    net.register_forward_hook(shift, with_kwargs=True)
    cached = wrap(form(net), how)
    expected = net.inner(net.linear(x * 2)) * 2.0 + 0.5 + 3
    assert torch.allclose(cached(x), expected) and not refusal(cached)
    facts = each_fact(host.entries[0].given.facts)
    assert facts["self._forward_hooks[0] is called"] == "with keywords" and "double" in facts["self._forward_pre_hooks[0]"]


def test_a_hook_that_comes_later_is_another_variant_and_runs():
    net, x = Net().eval(), torch.ones(2, 4)
    cached = wrap(net)
    for _ in range(4):
        cached(x)
    handle = net.register_forward_hook(lambda module, args, result: result + 100)
    assert cached(x).min() > 50 and len(host.entries) == 2
    handle.remove()
    cached(x)
    assert len(host.entries) == 2


def test_a_hook_before_may_take_what_forward_does_not():
    def without_unit(module: Any, args: Any, kwargs: Any) -> Any:
        kwargs = {name: value for name, value in kwargs.items() if name != "unit"}
        return args, kwargs

    net, x = Net().eval(), torch.ones(2, 4)
    cached = wrap(net)
    cached(x)
    net.register_forward_pre_hook(without_unit, with_kwargs=True)
    assert torch.equal(cached(x, unit="mm"), net(x, unit="mm")) and len(host.entries) == 2
    assert host.entries[1].given.inputs[0].name == "args_0"


def test_how_a_hook_is_called_is_a_guard():
    def hook(module: Any, args: Any, *rest: Any) -> Any:
        return rest[-1] + len(rest)

    for with_kwargs in (False, True):
        net = Net().eval()
        net.register_forward_hook(hook, with_kwargs=with_kwargs)
        wrap(net)(torch.ones(2, 4))
    assert len(host.entries) == 2 and all(one.captures for one in host.entries)


def test_a_hook_that_counts_is_refused_and_still_counts():
    seen: list[int] = []

    def count(module: Any, args: Any, result: Any) -> None:
        seen.append(1)

    net = Net().eval()
    net.linear.register_forward_hook(count)
    cached = wrap(net)
    for _ in range(3):
        cached(torch.ones(2, 4))
    assert len(seen) == 3 and not [one for one in host.entries if one.calls]


def test_hooks_on_what_torch_compile_returned_are_refused_and_run():
    net, x = Net().eval(), torch.ones(2, 4)
    compiled = torch.compile(net, backend="eager")
    cached = wrap(compiled, None)
    for _ in range(3):
        cached(x)
    assert len(host.entries) == 1
    torch.nn.Module.register_forward_hook(compiled, lambda module, args, result: result + 100)
    assert cached(x).min() > 50 and "_forward_hooks on the result of torch.compile" in refusal(cached)


def test_global_hooks_see_every_call():
    seen = []
    cached = wrap(Net())
    cached(torch.ones(2, 4)), cached(torch.ones(2, 4))
    handle = torch.nn.modules.module.register_module_forward_hook(lambda module, args, result: seen.append(type(module)))
    try:
        cached(torch.ones(2, 4))
    finally:
        handle.remove()
    assert Net in seen and torch.nn.Linear in seen


def test_a_call_method_of_the_users_own_is_what_is_called():
    class Odd(Net):
        def __call__(self, x: Any) -> Any:
            return super().__call__(x) * 0 + 7

    assert torch.equal(wrap(Odd())(torch.ones(2, 4)), torch.full((2, 4), 7.0)) and len(host.entries) == 1


def test_a_forward_that_is_put_into_the_object_is_called_and_counts():
    net, x = Net(), torch.ones(2, 4)
    cached = wrap(net)
    cached(x)
    net.forward = lambda y, plus: y + plus
    assert torch.equal(cached(x, 1.0), x + 1.0) and each_fact(host.entries[1].given.facts)["plus"] == "float 1.0"


def test_a_module_that_is_compiled_later_is_another_variant():
    net, x = Net(), torch.ones(2, 4)
    cached = wrap(net)
    cached(x), cached(x), cached(x)
    net.compile(backend="eager")
    cached(x)
    assert len(host.entries) == 2 and not refusal(cached)
    assert [one.given.facts["torch.compiled"][:5] for one in host.entries] == ["False", "True "]


def test_how_the_caller_compiled_is_a_guard():
    for backend in ("eager", "aot_eager"):
        wrap(torch.compile(Net(), backend=backend), None)(torch.ones(2, 4))
        wrap(torch.compile(Net().forward, backend=backend), None)(torch.ones(2, 4))
    assert len(host.entries) == 4 and all(one.captures for one in host.entries)
    (how,) = {one.given.facts["torch.compiled"] for one in host.entries if "aot" not in one.given.facts["torch.compiled"]}
    assert how.startswith("True {'backend': str 'eager', 'dynamic': NoneType None, 'kwargs': {}")  # later versions have more options


def test_a_function_is_refused_where_pytorch_does_not_say_how_it_was_compiled(monkeypatch):
    class Backend:
        __slots__ = ()  # objects of this class show no options

    compiled = torch.compile(lambda x: x + 1, backend="eager")
    monkeypatch.setattr(_modules, "_innermost", lambda callback: Backend())
    cached = wrap(compiled, None)
    assert torch.equal(cached(torch.ones(3)), torch.full((3,), 2.0)) and "does not report the backend" in refusal(cached)
    cached = wrap(torch.compiler.disable(lambda x: x + 2), None)  # PyTorch does not compile this function
    assert torch.equal(cached(torch.ones(3)), torch.full((3,), 3.0)) and not refusal(cached)


@pytest.mark.parametrize("how", [False, EAGER], ids=["eager", "compiled by us"])
@pytest.mark.parametrize("layer", ["module.compile()", "torch.compile"])
def test_submodules_that_the_caller_compiled_are_moved_in_place(layer, how):
    net, x = Net().eval(), torch.randn(2, 4)
    if layer == "torch.compile":
        net.inner = torch.compile(net.inner, backend="eager")
    else:
        net.inner.compile(backend="eager")
    at, expected = net.linear.weight.data_ptr(), net(x)
    cached = wrap(net, how)
    assert torch.equal(cached(x), expected) and not refusal(cached)
    first, second = host.entries[0].captures
    assert at in [one for _, one, _ in first.regions] and at not in [one for _, one, _ in second.regions]
    assert net.linear.weight.data_ptr() == at and torch.equal(net(x), expected)
    assert states() == (NAMES if layer == "module.compile()" else [name.replace("inner.", "inner._orig_mod.") for name in NAMES])


def test_a_compiled_module_among_the_arguments_is_moved_in_place():
    def work(module: Any, x: Any) -> Any:
        return module(x) + 1

    net = torch.compile(Net(), backend="eager")
    cached, x = wrap(work), torch.ones(2, 4)
    with torch.no_grad():
        assert torch.equal(cached(net, x), net(x) + 1) and not refusal(cached)
    first, second = host.entries[0].captures
    assert x.data_ptr() in [one for _, one, _ in first.regions] and x.data_ptr() not in [one for _, one, _ in second.regions]


def test_more_modules_of_a_class_than_dynamo_compiles_one_function_for():
    for width in range(1, 12):
        cached = wrap(Net(width), EAGER)
        cached(torch.ones(2, width))
        assert not refusal(cached)
    assert len(host.entries) == 11


def test_a_module_may_be_wrapped_before_it_is_made_and_hold_its_wrapper():
    class Whole(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cached = wrap(self)
            self.linear = torch.nn.Linear(4, 4)

        def forward(self, x: Any) -> Any:
            return self.linear(x)

    whole, x = Whole(), torch.ones(2, 4)
    assert torch.equal(whole.cached(x), whole(x)) and states() == ["linear.weight", "linear.bias"]
    twin = copy.deepcopy(whole)
    with pytest.raises(errors.InvalidArgument, match="copied or unpickled"):
        twin.cached(x)


def test_a_wrapper_of_a_module_is_pickled_unbound_and_stays_itself_on_a_class():
    cached = wrap(Net())
    with pytest.raises(errors.InvalidArgument, match="copied or unpickled"):
        pickle.loads(pickle.dumps(cached))(torch.ones(2, 4))
    holder = type("Holder", (), {"net": cached})
    assert holder().net is cached


def test_a_part_of_another_function_with_a_cache_is_a_part_of_it():
    part = wrap(Net())

    def work(x: Any) -> Any:
        return part(x) + 1

    cached, x = wrap(work), torch.ones(2, 4)
    assert torch.equal(cached(x), part.module(x) + 1) and len(host.entries) == 1


def test_a_script_module_is_refused_and_runs():
    module = torch.jit.script(torch.nn.Linear(4, 4))
    cached, x = wrap(module), torch.ones(2, 4)
    assert torch.equal(cached(x), module(x)) and "ScriptModule" in refusal(cached)


def test_a_class_of_modules_is_no_module():
    with pytest.raises(errors.InvalidArgument, match="not a Python function"):
        warmgraph.cache_compile(Net)


def test_frozen_weights_of_a_module():
    cached, x = wrap(Net()), torch.ones(2, 4)
    cached.freeze_weights()
    for _ in range(4):
        cached(x)
    assert len(host.entries) == 1 and len(host.entries[0].calls) == 3


OTHER_PROCESS = """
import json, sys
import pytest, torch, torch_on_the_host as host, warmgraph
from test_torch_modules import Net

patch = pytest.MonkeyPatch()
host.use(patch)
host.kept.update(json.loads(sys.stdin.read()))
before = set(sys.modules)
cached = warmgraph.cache_compile(Net(), config=warmgraph.Config(model="net", policy="require_hit"))
cached(torch.zeros(2, 4)), cached(torch.zeros(2, 4))
print([name for name in set(sys.modules) - before if name.startswith(("torch._dynamo", "torch._inductor", "triton"))])
print(len(host.entries[0].calls))
"""


def test_a_hit_of_a_module_that_was_compiled_loads_no_compiler(monkeypatch):
    monkeypatch.setattr(torch, "compile", lambda function, **options: function)
    monkeypatch.setattr(host._operators, "compiled_graphs", lambda: 0)
    cached = warmgraph.cache_compile(Net(), config=warmgraph.Config(model="net"))
    cached(torch.zeros(2, 4))
    done = subprocess.run([sys.executable, "-c", OTHER_PROCESS], input=json.dumps(host.kept), capture_output=True, text=True, check=False,
                          env={**os.environ, "PYTHONPATH": ":".join(sys.path)})
    assert done.stdout == "[]\n2\n", done.stderr


@pytest.mark.parametrize("is_held", ["no", "in a closure", "in a global"])
def test_a_step_that_calls_a_forward_which_the_caller_compiled_is_recorded_at_its_first_call(is_held):
    """When Dynamo compiles, it changes attributes of the function that torch.compile returned. This must not refuse the recording."""
    def step_of() -> Any:
        torch.manual_seed(0)
        net = Net().eval()
        net.forward = torch.compile(net.forward, **EAGER)
        compiled = net.forward
        if is_held == "in a global":
            module = types.ModuleType("steps")
            exec("def step(x):\n    return compiled(x) + 1\n", vars(module))
            module.compiled = compiled
            return module.step
        return (lambda x: compiled(x) + 1) if is_held == "in a closure" else (lambda x: net(x) + 1)

    x = torch.ones(2, 4)
    with torch.no_grad():
        wrap(step_of())(x)
        assert len(host.entries) == 1 and host.entries[0].captures is not None
        wrap(step_of())(x)
        assert host.entries[-1].captures is None, "another process finds it"
    assert any("'backend': str 'eager'" in fact for fact in host.entries[0].given.facts.values())
    assert any("weight" in state.name for state in host.entries[0].given.states), "its weights are states"


def test_the_weights_of_a_forward_of_pytorchs_own_that_the_caller_compiled_are_states():
    """Dynamo puts a wrapper that closes over the method around it; the weights must be found all the same."""
    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(8, 3)).eval()
    compiled = torch.compile(net.forward, **EAGER)
    with torch.no_grad():
        wrap(lambda x: compiled(x) + 1)(torch.ones(2, 4))
        wrap(compiled)(torch.ones(2, 4))
    assert [sum("weight" in state.name for state in entry.given.states) for entry in host.entries] == [2, 2]


def held_in(form: str, compile: Any) -> Any:
    """A function that reaches a compiled callable, which this form of holding it keeps."""
    class Holder:
        held = staticmethod(compile) if form == "a class, as a static method" else compile

        def by_object(self, x: Any) -> Any:
            return self.held(x) + 1

        @classmethod
        def by_class(cls, x: Any) -> Any:
            return cls.held(x) + 1

    class Module(torch.nn.Module):
        held = staticmethod(compile)

        def forward(self, x: Any) -> Any:
            return self.held(x) + 1

    holder = types.SimpleNamespace(held=compile)
    return {"a variable": lambda x: compile(x) + 1, "an attribute": lambda x: holder.held(x) + 1, "a class": Holder.by_class,
            "a class, as a static method": Holder().by_object, "the class of a module": Module(), "nothing": compile}[form]


@pytest.mark.parametrize("made", ["method", "partial", "object"])
@pytest.mark.parametrize("form", ["nothing", "a variable", "an attribute", "a class", "a class, as a static method", "the class of a module"])
def test_the_weights_of_a_callable_that_the_caller_compiled_are_states_wherever_it_is_held(form, made):
    class Steps:
        def __init__(self) -> None:
            self.net = Net().eval()

        def __call__(self, x: Any) -> Any:
            return self.net(x)

    if (form, made) == ("nothing", "object"):
        pytest.skip("only functions and methods are wrapped")
    net = Net().eval()
    given = {"method": net.forward, "partial": functools.partial(net.forward, factor=3.0), "object": Steps()}[made]
    x = torch.ones(2, 4)
    with torch.no_grad():
        cached = wrap(held_in(form, torch.compile(given, **EAGER)))
        cached(x)
        cached(x)
    assert refusal(cached) == "" and len(states()) == len(NAMES) and len(host.entries) == len(host.entries[0].calls) == 1
