"""The graphs of one table read shared modules only once. The stored facts must equal those of a full reading."""
from __future__ import annotations

import collections
import dataclasses
import gc
import types
import weakref
from typing import Any, Callable

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed here")

import torch_on_the_host as host  # noqa: E402
import warmgraph  # noqa: E402
from warmgraph.core.serving._entry_metadata import each_fact  # noqa: E402
from warmgraph.torch import GraphCache  # noqa: E402
from warmgraph.torch.read import _installed_code, _shared_modules, _tensor_checks, _tensor_readers  # noqa: E402
from warmgraph.torch.replay import _regions  # noqa: E402

pytestmark = pytest.mark.usefixtures("on_the_host")

Made = tuple[Any, Callable[[Any], Any]]  # (objects that must live as long as the table, a function that computes a graph's result)


class Block(torch.nn.Module):
    scale = 1.0

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.norm = torch.nn.Linear(4, 4), torch.nn.LayerNorm(4)
        self.settings = types.SimpleNamespace(widths=[1, 2], name="block")
        self.register_buffer("step", torch.zeros(1))

    def forward(self, x: Any) -> Any:
        for step in getattr(self, "steps", ()):
            x = x + len(step)
        x = self.act(x) if hasattr(self, "act") else x
        return self.norm(self.linear(x)) * self.scale * self.settings.widths[0]


class Kinds:
    def __init__(self, kind: Any) -> None:
        self.kind = kind

    def __call__(self, x: Any) -> Any:
        return x * self.kind.TESTS_FAILED.value


class Model(torch.nn.Module):
    def __init__(self, count: int = 3) -> None:
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block() for _ in range(count))

    def forward(self, x: Any) -> Any:
        for block in self.blocks:
            x = block(x)
        return x


def closed_over() -> Made:
    model = Model()
    return model, lambda x: lambda: model(x)


def in_an_object() -> Made:
    runner = types.SimpleNamespace(model=Model(), factor=2.0)
    return runner, lambda x: lambda: runner.model(x) * runner.factor


def of_a_method() -> Made:
    class Runner:
        def __init__(self) -> None:
            self.model, self.x = Model(), torch.ones(5, 4)

        def run(self) -> Any:
            return self.model(self.x)

    runner = Runner()
    return runner, lambda x: runner.run


def tied() -> Made:
    model = Model()
    model.blocks[1].linear.weight = model.blocks[0].linear.weight
    return model, lambda x: lambda: model(x)


def met_before() -> Made:
    """A function that also holds a weight directly. The weight's path there comes before its path in the model."""
    model = Model()
    a_weight, settings = model.blocks[0].linear.weight, model.blocks[1].settings
    return model, lambda x: lambda: model(x) * a_weight.sum() * settings.widths[0]


def met_after() -> Made:
    model = Model()
    z_weight, z_block = model.blocks[0].linear.weight, model.blocks[2]
    return model, lambda x: lambda: z_block(model(x)) * z_weight.sum()


def two_models() -> Made:
    first, second = Model(1), Model(2)
    second.blocks[0] = first.blocks[0]  # the block that both models share gets its path in the first model
    return (first, second), lambda x: lambda: second(first(x))


def around_itself() -> Made:
    model = Model()
    object.__setattr__(model.blocks[0], "whole", model)
    return model, lambda x: lambda: model(x)


def beside_a_weight() -> Made:
    """A function with a tensor in the storage of one of the model's tensors."""
    model = Model()
    row = model.blocks[0].linear.weight.detach()[1]
    return model, lambda x: lambda: model(x) * row


def with_hooks() -> Made:
    model = Model()
    model.blocks[0].register_forward_hook(lambda module, args, result: result + module.scale)
    return model, lambda x: lambda: model(x)


def of_a_package() -> Made:
    """A model with an object of an installed package's class that no code names."""
    model = Model()
    model.blocks[0].act = Kinds(pytest.ExitCode)
    return model, lambda x: lambda: model(x)


def with_a_helper() -> Made:
    model = Model()
    return model, lambda x: lambda: scaled(model(x))


def scaled(x: Any) -> Any:
    return x * 2


def other_scaled(x: Any) -> Any:
    return x * 3


def other_forward(self: Any, x: Any) -> Any:
    return x + 1


EVERY = [with_a_helper, closed_over, in_an_object, of_a_method, tied, met_before, met_after, two_models, around_itself, beside_a_weight, with_hooks,
         of_a_package]


def table(shares: bool, of: Callable[[Any], Any], inputs: list[Any]) -> list[Any]:
    """The graphs of one table. `shares`: whether they share what they read."""
    one = GraphCache(config=warmgraph.Config(model="shared"))
    if not shares:
        one._shared_modules = None  # type: ignore[assignment]
    return [one.capture_one(i, of(x))[0] for i, x in enumerate(inputs)]


def told() -> list[Any]:
    """The declarations of each entry that the library got."""
    return [(one.given.name, sorted(each_fact(one.given.facts).items()), one.given.version, one.given.inputs, one.given.states) for one in host.entries]


@pytest.mark.parametrize("make", EVERY)
def test_the_library_is_told_what_a_walk_of_each_graph_would_tell_it(make: Callable[[], Made], monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(1)
    kept, of = make()
    inputs = [torch.ones(2, 4), torch.ones(3, 4), torch.ones(4, 4)]
    alone = table(False, of, inputs)
    expected = told()
    assert {one.outcome for one in alone} == {"recorded"}, alone[0].why
    host.entries.clear()
    monkeypatch.delattr(host._recording.Recording, "answer")  # without this attribute, nothing is shared
    shared = table(True, of, inputs)
    assert {one.outcome for one in shared} == {"replayed"} and told() == expected


def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A list that gets the path of each module that is read from now on."""
    found: list[str] = []
    read = _shared_modules._read_apart
    monkeypatch.setattr(_shared_modules, "_read_apart", lambda walker, path, module: (found.append(path), read(walker, path, module))[1])
    return found


def test_a_model_is_read_for_the_first_graph_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    kept, of = closed_over()
    cache, found = GraphCache(), reads(monkeypatch)
    first = cache.capture_one(1, of(torch.ones(1, 4)))
    assert set(found) == {"<lambda>.model"}
    found.clear()
    second = cache.capture_one(2, of(torch.ones(2, 4)))
    assert not found and first[0].outcome == second[0].outcome == "recorded"


def plain() -> Any:
    return lambda x: x + 1


def no_change(model: Any) -> None:
    pass


def other_value(model: Any) -> None:
    model.blocks[1].settings.name = "other"


def other_attribute(model: Any) -> None:
    model.blocks[1].linear.in_features = 5


def other_item(model: Any) -> None:
    model.blocks[1].settings.widths[0] = 7


def other_class(model: Any) -> None:
    class Other(torch.nn.LayerNorm):
        pass

    model.blocks[1].norm.__class__ = Other


def other_type(model: Any) -> None:
    model.blocks[1].step.data = torch.zeros(1, dtype=torch.int64)


def other_shape(model: Any) -> None:
    model.blocks[1].step.resize_(3)


def other_weight(model: Any) -> None:
    model.blocks[1].linear.weight = torch.nn.Parameter(torch.ones(4, 4))


def other_grad(model: Any) -> None:
    model.blocks[1].linear.weight.requires_grad_(False)


def one_block_less(model: Any) -> None:
    del model.blocks[2]


def in_training(model: Any) -> None:
    model.blocks[1].eval()


def a_hook(model: Any) -> None:
    model.blocks[1].register_forward_pre_hook(lambda module, args: None)


def a_tie(model: Any) -> None:
    model.blocks[2].linear.bias = model.blocks[1].linear.bias


def other_order(model: Any) -> None:
    model.blocks[1].steps.move_to_end("scale")


def other_code(model: Any) -> None:
    model.blocks[1].act.__code__ = (lambda x: x * 2).__code__


def another_class_of_weight(model: Any) -> None:
    model.blocks[1].norm.weight.__class__ = type("Weight", (torch.nn.Parameter,), {})


@pytest.mark.parametrize("change", [no_change, other_order, other_code, other_value, other_attribute, other_item, other_class, other_type, other_shape, other_weight,
                                    other_grad, one_block_less, in_training, a_hook, a_tie])
def test_what_changes_between_two_graphs_is_seen(change: Callable[[Any], None]) -> None:
    model, of = closed_over()
    model.blocks[1].steps, model.blocks[1].act = collections.OrderedDict(scale=1, shift=2), plain()
    cache, x = GraphCache(config=warmgraph.Config(model="shared", policy="refresh")), torch.ones(2, 4)
    kept = [cache.capture_one(1, of(x)), cache.capture_one(2, of(x))]
    before = told()[-1]
    change(model)
    kept.append(cache.capture_one(2, of(x)))
    after = told()[-1]
    host.entries.clear()
    GraphCache(config=warmgraph.Config(model="shared", policy="refresh")).capture_one(2, of(x))
    assert after == told()[-1]
    assert (after == before) == (change is no_change)


@pytest.mark.parametrize("change", [lambda patch: None, lambda patch: patch.setitem(globals(), "scaled", other_scaled), lambda patch: patch.setattr(Model, "forward", other_forward),
                                    lambda patch: patch.setattr(scaled, "__code__", other_scaled.__code__)])
def test_code_that_changes_between_two_graphs_is_seen(change: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    model, of = with_a_helper()
    cache, x, read = GraphCache(config=warmgraph.Config(model="shared", policy="refresh")), torch.ones(2, 4), []
    kept = [cache.capture_one(1, of(x))]
    init = _installed_code.TorchReachedCode.__init__
    monkeypatch.setattr(_installed_code.TorchReachedCode, "__init__", lambda self, function, classes={}, *more: (read.append(len(classes)), init(self, function, classes, *more))[-1])
    kept.append(cache.capture_one(2, of(x)))
    before, is_taken_over = told()[-1], read == [0]
    change(monkeypatch)
    read.clear()
    kept.append(cache.capture_one(2, of(x)))
    after, is_again = told()[-1], read == [0]
    host.entries.clear()
    GraphCache(config=warmgraph.Config(model="shared", policy="refresh")).capture_one(2, of(x))
    assert is_taken_over, "what another graph reached is not read again"
    assert after == told()[-1] and (after == before) == is_again
    for graph, _ in kept:
        graph.reset()
    gc.collect()
    read.clear()
    cache.capture_one(2, of(x))
    assert read != [0], "it is known as long as a graph is"


def test_a_weight_of_a_class_that_cannot_be_followed_is_refused_as_by_a_table_of_its_own() -> None:
    model, of = closed_over()
    cache, x = GraphCache(), torch.ones(2, 4)
    kept = [cache.capture_one(1, of(x))[0], cache.capture_one(2, of(x))[0]]
    another_class_of_weight(model)
    graph, alone = cache.capture_one(2, of(x))[0], GraphCache().capture_one(2, of(x))[0]
    assert graph.outcome == alone.outcome == "captured" and graph.why == alone.why and kept[0].outcome == "recorded"


def test_a_value_of_a_class_that_changes_is_seen() -> None:
    model, of = closed_over()
    cache, x = GraphCache(), torch.ones(2, 4)
    kept = cache.capture_one(1, of(x))
    try:
        Block.scale = 3.0
        cache.capture_one(1, of(x))
    finally:
        Block.scale = 1.0
    assert [one.captures is not None for one in host.entries] == [True, True] and kept[0].outcome == "recorded"


def test_weights_that_moved_are_bound_where_they_are() -> None:
    model, of = closed_over()
    cache, x = GraphCache(), torch.ones(2, 4)
    kept = [cache.capture_one(1, of(x))]
    model.blocks[0].linear.weight.data = model.blocks[0].linear.weight.data.clone()
    kept.append(cache.capture_one(2, of(x)))
    states = {one.name: one.pointer for one in host.entries[-1].given.states}
    assert model.blocks[0].linear.weight.data_ptr() in states.values()


def test_graphs_that_were_reset_hold_no_model() -> None:
    model, of = closed_over()
    other, of_other = closed_over()
    cache, gone, stays = GraphCache(), weakref.ref(model), weakref.ref(other)
    graphs = [cache.capture_one(i, of(torch.ones(2, 4)))[0] for i in (1, 2)]
    last = cache.capture_one(3, of_other(torch.ones(2, 4)))[0]
    for one in graphs:
        one.reset()
    del model, other, of, of_other
    host.entries.clear(), host.captures.clear()
    gc.collect()
    assert gone() is None and stays() is not None and last.outcome == "recorded"


def test_a_graph_that_was_reset_holds_nothing_of_its_own_while_others_share_its_model() -> None:
    model, of = closed_over()
    own, other = torch.ones(2, 4), torch.ones(3, 4)
    cache, gone = GraphCache(), weakref.ref(own)
    first, last = cache.capture_one(1, of(own))[0], cache.capture_one(2, of(other))[0]
    first.reset()
    del own
    host.entries.clear(), host.captures.clear()
    gc.collect()
    assert gone() is None and last.outcome == "recorded"


def test_a_graph_that_was_reset_holds_no_function_of_its_own_while_others_of_its_code_are_there() -> None:
    model, x = Model(), torch.ones(2, 4)

    def of(steps: list[Any]) -> Callable[[], Any]:
        return lambda: steps[0](model(x))

    steps, cache = [plain()], GraphCache()
    gone = weakref.ref(steps[0])
    first, last = cache.capture_one(1, of(steps))[0], cache.capture_one(2, of([plain()]))[0]
    first.reset()
    del steps
    host.entries.clear(), host.captures.clear()
    gc.collect()
    assert gone() is None and last.outcome == "recorded"


def test_what_an_answer_changes_is_seen() -> None:
    model = Model()
    model.seen = set()
    x = torch.ones(2, 4)

    def graph() -> Any:
        model.seen.add(len(model.seen))
        return model(x)

    one, _ = GraphCache().capture_one(1, graph)
    assert one.outcome == "captured" and "seen" in one.why


def places(**tensors: Any) -> list[Any]:
    return [_tensor_readers.TensorPlace(path.replace("__", "."), one, "elsewhere") for path, one in tensors.items()]


def regions(walker: Any) -> list[Any]:
    return [{**{field.name: getattr(one, field.name) for field in dataclasses.fields(one) if field.compare}, "places": [place.path for place in one.places],
             "facts": one.facts()} for one in _regions.regions_of_walk(walker)]


SHARED = torch.zeros(8)
WALKS = {
    "apart": lambda a, b: ([*places(x=torch.zeros(2)), *a, *places(y=torch.zeros(3)), *b, *places(z=torch.zeros(4))], [1, 4]),
    "nothing around them": lambda a, b: ([*a, *b], [0, 2]),
    "nothing within": lambda a, b: ([*places(x=torch.zeros(2)), *places(y=torch.zeros(2))], [1, 1]),
    "empty tensors": lambda a, b: ([*places(x=torch.zeros(0)), *a, *places(y=torch.zeros(0)), *b], [1, 4]),
    "one storage around a part": lambda a, b: ([*places(x=SHARED[:2]), *a, *places(y=SHARED[2:]), *b], [1, 4]),
    "a storage of a part's": lambda a, b: ([*places(x=a[0].tensor[:2]), *a, *b], [1, 3]),
    "a name of a part's": lambda a, b: ([*places(m__a=torch.zeros(2)), *a, *b], [1, 3]),
    "a name of a later part's": lambda a, b: ([*a, *places(n__a=torch.zeros(2)), *b], [0, 3]),
}


@pytest.mark.parametrize("name", WALKS)
def test_regions_with_parts_are_those_of_all_places(name: str) -> None:
    first, second = places(m__a=torch.zeros(4), m__b=torch.zeros(5)), places(n__a=torch.zeros(6), n__b=torch.zeros(7, 2).t())
    if name == "nothing within":
        first = second = []
    parts = [types.SimpleNamespace(places=one, regions=None) for one in (first, second)]
    every, starts = WALKS[name](first, second)
    walker = types.SimpleNamespace(places=every, taken=list(zip(starts, parts)))
    expected = regions(types.SimpleNamespace(places=every, taken=[]))
    assert regions(walker) == expected
    assert regions(walker) == expected  # now taken from the parts that are known


def test_regions_of_a_part_are_made_once_and_anew_where_its_storages_are_others() -> None:
    part = types.SimpleNamespace(places=places(m__a=torch.zeros(4), m__b=torch.zeros(5)), regions=None)
    walker = types.SimpleNamespace(places=part.places, taken=[(0, part)])
    first, second = _regions.regions_of_walk(walker), _regions.regions_of_walk(walker)
    assert [id(one) for one in first] == [id(one) for one in second]
    part.places[0].tensor.untyped_storage().resize_(64)
    assert [one.whole for one in _regions.regions_of_walk(walker)] == [64, 20]
    part.places[1].tensor.data = torch.zeros(9)[:5]
    assert [one.whole for one in _regions.regions_of_walk(walker)] == [64, 36]


def test_what_dlpack_does_not_say_of_a_tensor_is_looked_at() -> None:
    numpy = pytest.importorskip("numpy")
    memory = numpy.zeros(12, numpy.float32)
    first, second = torch.from_numpy(memory[:8]), torch.from_numpy(memory[4:])  # two storages of the same size
    weight = torch.zeros(4)

    def is_same_after(change: Any) -> bool:
        weight.data = first[4:]
        looks = _tensor_checks.TensorChecks([weight])
        assert looks.are_same() and looks.are_same()  # the first check makes the native snapshot, the second one uses it
        address = weight.data_ptr()
        change()
        assert weight.data_ptr() == address
        return looks.are_same()

    assert is_same_after(lambda: None)
    assert not is_same_after(lambda: setattr(weight, "data", second[:4])), "another storage at its address"
    assert not is_same_after(lambda: setattr(weight, "data", torch._neg_view(weight.data)))
    assert not is_same_after(lambda: weight.requires_grad_())
