"""Tests functions that call an optimizer's step(), without a GPU: the places of states and gradients, and the calls that are replayed."""
from __future__ import annotations

import copy
import gc
import weakref
from typing import Any, Iterator

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed here")

import torch_on_the_host as host  # noqa: E402
from torch_on_the_host import refusal, wrap  # noqa: E402
from warmgraph.torch.calls import _torch_function  # noqa: E402
from warmgraph.torch.replay import _entry  # noqa: E402

KINDS: dict[str, tuple[Any, dict[str, Any], set[str]]] = {
    "sgd": (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "foreach": True}, {"momentum_buffer"}),
    "fused sgd": (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "fused": True}, {"momentum_buffer"}),
    "adam": (torch.optim.Adam, {"lr": 0.1, "foreach": True, "amsgrad": True}, {"step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"}),
    "adamw": (torch.optim.AdamW, {"lr": 0.1, "foreach": True}, {"step", "exp_avg", "exp_avg_sq"}),
    "fused adamw": (torch.optim.AdamW, {"lr": 0.1, "fused": True}, {"step", "exp_avg", "exp_avg_sq"}),
    "single adamw": (torch.optim.AdamW, {"lr": 0.1, "foreach": False}, {"step", "exp_avg", "exp_avg_sq"}),
    "rmsprop": (torch.optim.RMSprop, {"lr": 0.1, "foreach": True}, {"step", "square_avg"}),
}


class Replaying(host.FakeEntry):
    """An entry whose replay runs the optimizer in `of`, if it is bound to the memory that the optimizer uses now."""

    of: Any = None

    def launch(self, stream: int, args: Any = None) -> str:
        outcome = super().launch(stream, args)
        bound = {one.name.split("optimizer.")[-1]: pointer for one, pointer in zip(self.given.states, self.calls[-1][1])}
        assert bound == memory(Replaying.of)
        Replaying.of.step()
        return outcome


def memory(optimizer: Any) -> dict[str, int]:
    """The addresses that step() uses, by the names of the states."""
    found, number = {}, 0
    for i, group in enumerate(optimizer.param_groups):
        for j, one in enumerate(group["params"]):
            found[f"param_groups_{i}_params_{j}"] = one.data_ptr()
            if one.grad is not None:
                found[f"param_groups_{i}_params_{j}.grad"] = one.grad.data_ptr()
            found.update((f"state.{number}.{name}", value.data_ptr()) for name, value in optimizer.state.get(one, {}).items())
            number += 1
    return found


@pytest.fixture(autouse=True)
def on_the_host(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    host.use(monkeypatch)
    monkeypatch.setattr(_entry, "Entry", Replaying)
    yield
    Replaying.of = None


def made(kind: str = "adamw", **more: Any) -> Any:
    make, options, _ = KINDS[kind]
    torch.manual_seed(1)
    first, second = ([torch.nn.Parameter(torch.randn(4, 4)) for _ in range(2)] for _ in range(2))
    optimizer = Replaying.of = make([{"params": first}, {"params": second, "weight_decay": 0.5}], **{**options, **more})
    return optimizer


def parameters(optimizer: Any) -> list[Any]:
    return [one for group in optimizer.param_groups for one in group["params"]]


def set_gradients(optimizer: Any, number: int = 1) -> None:
    """Gives each parameter a new gradient."""
    for at, one in enumerate(parameters(optimizer)):
        one.grad = torch.full((4, 4), float(number + at))


def recorded(optimizer: Any) -> Any:
    """A function that calls step(), after the optimizer has made its state and the function was recorded."""
    def update() -> None:
        optimizer.step()

    step = wrap(update)
    for number in (1, 2):
        set_gradients(optimizer, number)
        step()
    assert len(host.entries) == 1, refusal(step)
    return step


def replays() -> list[int]:
    return [len(one.calls) for one in host.entries]


@pytest.mark.parametrize("kind", KINDS)
def test_five_steps_are_those_of_pytorch(kind: str):
    optimizer, other = made(kind), made(kind)
    Replaying.of = optimizer
    step = recorded(optimizer)
    for number in (1, 2):
        set_gradients(other, number)
        other.step()
    for number in (3, 4, 5):
        for one in (optimizer, other):
            one.zero_grad(set_to_none=True)
            set_gradients(one, number)
        step()
        other.step()
    assert replays() == [3]
    assert all(torch.equal(one, two) for one, two in zip(parameters(optimizer), parameters(other)))
    assert all(torch.equal(value, other.state[two][name]) for one, two in zip(parameters(optimizer), parameters(other))
               for name, value in optimizer.state[one].items())


@pytest.mark.parametrize("kind", KINDS)
def test_states_are_numbered_and_written(kind: str):
    recorded(made(kind))
    names = {one.name.removeprefix("update.optimizer."): one.is_written for one in host.entries[0].given.states}
    weights = {f"param_groups_{i}_params_{j}" for i in (0, 1) for j in (0, 1)}
    states = {f"state.{number}.{name}" for number in range(4) for name in KINDS[kind][2]}
    assert names.keys() == {*weights, *(f"{one}.grad" for one in weights), *states}
    assert all(names[one] for one in {*weights, *states})
    assert "fused" in kind or not any(names[f"{one}.grad"] for one in weights)


def test_the_first_step_makes_the_state_and_is_not_recorded():
    optimizer = made()
    step = wrap(lambda: optimizer.step())
    set_gradients(optimizer)
    step()
    assert not host.entries and "optimizer.state" in refusal(step) and "the next call" in refusal(step)


def test_a_method_of_the_optimizer_is_recorded():
    optimizer = made()
    set_gradients(optimizer)
    optimizer.step()
    step = wrap(optimizer.step)
    for _ in range(3):
        set_gradients(optimizer)
        step()
    assert replays() == [2]
    assert "state.0.exp_avg" in [one.name for one in host.entries[0].given.states]


def test_an_optimizer_that_is_an_argument_is_recorded(monkeypatch: pytest.MonkeyPatch):
    class Replayed(Replaying):
        def launch(self, stream: int, args: Any = None) -> str:
            outcome = host.FakeEntry.launch(self, stream, args)
            bound = {one.name.split("optimizer.")[-1]: pointer for one, pointer in zip(self.given.inputs, self.calls[-1][0])}
            now = memory(Replaying.of)
            assert bound.keys() == now.keys()
            assert all(bound[name] == now[name] for name in now if "grad" not in name)  # a gradient of less alignment is copied
            return outcome

    def update(optimizer: Any) -> None:
        optimizer.step()

    monkeypatch.setattr(_entry, "Entry", Replayed)
    optimizer, step = made(), wrap(update)
    set_gradients(optimizer)
    optimizer.step()
    for _ in range(3):
        set_gradients(optimizer)
        step(optimizer)
    assert replays() == [2]


def test_an_optimizer_in_an_object_is_recorded():
    class Trainer:
        def __init__(self) -> None:
            self.model = torch.nn.Linear(4, 4)
            self.optimizer = torch.optim.AdamW(self.model.parameters())

        def update(self) -> None:
            self.optimizer.step()

    trainer = Trainer()
    Replaying.of = trainer.optimizer
    step = wrap(trainer.update)
    for number in range(4):
        for one in trainer.model.parameters():
            one.grad = torch.ones_like(one)
        step()
    assert replays() == [2]


def test_weights_are_written_although_their_versions_stay(monkeypatch: pytest.MonkeyPatch):
    """Fused optimizers leave the versions. If the operators are not watched, all that an optimizer has counts as written."""
    monkeypatch.setattr(_torch_function.TorchFunction, "may_be_shown", lambda self, call: False)
    monkeypatch.setattr(_entry, "Entry", host.FakeEntry)  # Replaying knows no names in a model
    model = torch.nn.Linear(4, 4)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)

    def update() -> None:
        assert model.training
        optimizer.step()

    step = wrap(update)
    for _ in range(4):
        for one in model.parameters():
            one.grad = torch.ones_like(one)
        step()
    written = {one.name: one.is_written for one in host.entries[0].given.states}
    assert written["update.model.weight"] and written["update.optimizer.state.0.exp_avg"]


def test_old_gradients_are_not_kept():
    optimizer = made()
    step = recorded(optimizer)
    for _ in range(2):
        set_gradients(optimizer)
        old = [weakref.ref(one.grad) for one in parameters(optimizer)]
        step()
        optimizer.zero_grad(set_to_none=True)
        gc.collect()
        assert [one() for one in old] == [None] * 4
    assert replays() == [2]


def test_a_missing_gradient_is_a_guard():
    optimizer = made()
    step = recorded(optimizer)
    parameters(optimizer)[1].grad = None
    step()
    assert replays() == [0, 0] and "param_groups_0_params_1.grad" not in str([one.name for one in host.entries[1].given.states])
    step()
    set_gradients(optimizer)
    step()
    assert replays() == [1, 1]


def test_a_gradient_of_another_layout_is_a_guard():
    optimizer = made()
    step = recorded(optimizer)
    set_gradients(optimizer)
    parameters(optimizer)[0].grad = torch.ones(4, 4).t()
    step()
    assert replays() == [0, 0]
    parameters(optimizer)[0].grad = torch.ones(4, 4)
    step()
    assert replays() == [1, 0]


def test_gradients_that_begin_to_share_memory_are_found():
    optimizer = made()
    step = recorded(optimizer)
    step()
    one, two, *_ = parameters(optimizer)
    one.grad = two.grad
    step()
    assert replays() == [1, 0]
    flat = torch.ones(32)
    one.grad, two.grad = flat[:16].view(4, 4), flat[16:].view(4, 4)
    step()
    assert replays()[:2] == [1, 0]


def test_a_gradient_that_is_an_argument_is_found():
    optimizer = made()

    def update(given: Any) -> Any:
        optimizer.step()
        return given + 1

    step = wrap(update)
    set_gradients(optimizer)
    step(torch.ones(4, 4))
    step(torch.ones(4, 4))
    before = len(host.entries)
    step(parameters(optimizer)[0].grad)
    assert before == 1 and replays()[0] == 0


@pytest.mark.parametrize("name, value", [("lr", 0.2), ("betas", (0.5, 0.6)), ("maximize", True)])
def test_a_changed_hyperparameter_is_a_miss(name: str, value: Any):
    optimizer = made()
    step = recorded(optimizer)
    before = optimizer.param_groups[1][name]
    step()
    optimizer.param_groups[1][name] = value
    step()
    assert replays() == [1, 0]
    optimizer.param_groups[1][name] = before
    step()
    assert replays() == [2, 0]


def test_a_rate_in_a_tensor_is_a_state():
    rate = torch.tensor(0.1)
    optimizer = made("adamw", lr=rate, capturable=False, foreach=False)
    set_gradients(optimizer)
    optimizer.step()

    def update() -> None:
        optimizer.step()

    step = wrap(update)
    step()
    names = [one.name for one in host.entries[0].given.states]
    assert "update.optimizer.param_groups_0_lr" in names


def test_a_loaded_state_is_followed():
    optimizer = made()
    step = recorded(optimizer)
    saved = copy.deepcopy(optimizer.state_dict())
    step()
    optimizer.load_state_dict(saved)
    step()  # Replaying compares the addresses
    assert replays() == [2] and float(optimizer.state[parameters(optimizer)[0]]["step"]) == 3


def test_a_replaced_state_is_followed():
    optimizer = made()
    step = recorded(optimizer)
    step()
    optimizer.state[parameters(optimizer)[2]]["exp_avg"] = torch.zeros(4, 4)
    step()
    assert replays() == [2]
    optimizer.state[parameters(optimizer)[2]].pop("exp_avg")
    with pytest.raises(KeyError):  # that of step(): no replay hides it
        step()


def test_another_parameter_group_is_a_miss():
    optimizer = made()
    step = recorded(optimizer)
    optimizer.add_param_group({"params": [torch.nn.Parameter(torch.ones(2))]})
    step()
    assert replays() == [0, 0]


def test_a_hook_is_a_guard_and_is_captured():
    optimizer = made()
    step = recorded(optimizer)

    def halve(optimizer: Any, args: Any, kwargs: Any) -> None:
        parameters(optimizer)[0].grad.mul_(0.5)

    handle = optimizer.register_step_pre_hook(halve)
    step()
    assert replays() == [0, 0]
    written = {one.name: one.is_written for one in host.entries[1].given.states}
    assert written["update.optimizer.param_groups_0_params_0.grad"]
    handle.remove()
    step()
    assert replays() == [1, 0]


def test_a_function_that_drops_gradients_is_refused():
    optimizer = made()

    def update() -> None:
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    step = wrap(update)
    for _ in range(4):
        set_gradients(optimizer)
        step()
    assert not host.entries and "param_groups_0_params_0.grad" in refusal(step)


def test_a_function_that_makes_new_gradients_is_refused():
    optimizer = made()

    def update() -> None:
        optimizer.step()
        parameters(optimizer)[0].grad = torch.zeros(4, 4)

    step = wrap(update)
    for _ in range(4):
        set_gradients(optimizer)
        step()
    assert not host.entries and "param_groups_0_params_0.grad is another tensor after the call" in refusal(step)


def test_a_module_that_only_has_an_optimizer_ignores_gradients(monkeypatch: pytest.MonkeyPatch):
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(4, 4)
            self.optimizer = torch.optim.AdamW(self.linear.parameters())

        def forward(self, x: Any) -> Any:
            return self.linear(x)

    monkeypatch.setattr(_entry, "Entry", host.FakeEntry)
    net = Net()
    call = wrap(net)
    call(torch.ones(2, 4))
    for one in net.parameters():
        one.grad = torch.ones_like(one)
    call(torch.ones(2, 4))
    assert replays() == [1]
    assert not any("grad" in one.name for one in host.entries[0].given.states)
