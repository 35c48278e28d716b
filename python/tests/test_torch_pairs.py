"""Tests forward and backward of functions under gradients, without a GPU: reading, capturing, declaring, and the memory that both halves of
a hit use."""
from __future__ import annotations

import threading
from typing import Any, Iterator

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed here")

import torch_on_the_host as host  # noqa: E402
import warmgraph  # noqa: E402
from torch_on_the_host import refusal  # noqa: E402
from warmgraph import errors  # noqa: E402
from warmgraph.torch.pairs import _pair_metadata, _saved_tensors  # noqa: E402
from warmgraph.torch.read import _tensors  # noqa: E402
from warmgraph.torch.replay import _entry, _outputs  # noqa: E402

WEIGHT = torch.nn.Parameter(torch.ones(4))


class Computing(host.FakeEntry):
    """An entry for Net that repeats the recorded work on the memory of its call."""

    def launch(self, stream: int, args: Any = None) -> str:
        outcome = super().launch(stream, args)
        pointers, states = self.calls[-1]
        declared = [*zip((*self.given.inputs, *self.given.outputs), pointers), *zip(self.given.states, states)]
        memory = {decl.name: _at(decl, pointer) for decl, pointer in declared}
        if self.given.name == "Net.forward" and "result0" in memory:
            y = torch.sigmoid(memory["x"] * memory["weight"])
            memory["result0"].copy_(y)
            memory["pair.saved0"].copy_(y.view(-1))
        elif self.given.name == "Net.backward":
            y, given = memory["pair.saved0"].view(memory["pair.grad0"].size()), memory["pair.grad0"]
            inner = given * y * (1 - y)
            gradients = [inner * memory["weight"], inner * memory["x"]] if "weight" in memory else [inner * memory["x"]]
            if "weight" not in memory:
                memory["pair.gradient0"].copy_(gradients[0].sum(0))
            else:
                memory["pair.gradient0"].copy_(gradients[0])
                memory["pair.gradient1"].copy_(gradients[1].sum(0))
        return outcome


def _at(decl: Any, pointer: int) -> Any:
    flat = torch.empty(0).set_(host._storage_at(pointer, decl.nbytes))
    strides = decl.strides or _saved_tensors._contiguous(decl.sizes)
    return flat.as_strided(decl.sizes, strides, 0)


@pytest.fixture(autouse=True)
def on_the_host(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    host.use(monkeypatch)
    monkeypatch.setattr(_entry, "Entry", Computing)
    yield


def wrap(function: Any, **options: Any) -> Any:
    return warmgraph.cache_compile(function, pair=True, config=warmgraph.Config(model="pairs"), **options)


class Net(torch.nn.Module):
    """A module whose backward needs x, the weight if x requires grad, and the result of the sigmoid."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.linspace(-1, 1, 4))
        self.unused = torch.nn.Parameter(torch.ones(2))

    def forward(self, x: Any) -> Any:
        return torch.sigmoid(x * self.weight)


def recorded(**options: Any) -> tuple[Any, Any]:
    """Records a module with one input of 3 x 4. Returns (module, its pair)."""
    net = Net()
    cached = wrap(net, **options)
    cached(torch.randn(3, 4)).sum()
    assert not refusal(cached)
    return net, cached


def names(decls: Any) -> list[str]:
    return [one.name for one in decls]


# --- A miss


def test_a_miss_answers_under_autograd_and_adopts_both_halves():
    net, x = Net(), torch.randn(3, 4)
    cached = wrap(net)
    y = cached(x)
    assert not refusal(cached)
    y.sum().backward()
    assert torch.allclose(net.weight.grad, (y * (1 - y) * x).sum(0)) and net.unused.grad is None
    backward, forward = host.entries
    assert (forward.given.name, backward.given.name) == ("Net.forward", "Net.backward")
    assert names(forward.given.inputs) == ["x"] and names(forward.given.states) == ["weight", "unused"]
    assert names(forward.given.outputs) == ["result0", "pair.saved0"]
    assert names(backward.given.inputs) == ["pair.grad0", "pair.saved0", "x"]
    assert names(backward.given.outputs) == ["pair.gradient0"] and names(backward.given.states) == []
    recording = _pair_metadata.description_of(_outputs.from_text(forward.given.metadata)).recording
    assert backward.given.facts[_pair_metadata.BACKWARD_OF] == f"{recording:032x}"
    assert (forward.given.part, backward.given.part) == ((recording, 0), (recording, 1))


def test_both_halves_are_captured_on_the_callers_memory_and_elsewhere():
    net, x = Net(), torch.randn(3, 4, requires_grad=True)
    wrap(net)(x)
    for entry in host.entries:
        first, second = entry.captures
        places = dict((name, at) for name, at, _ in first.regions)
        assert places["x"] == x.data_ptr() and places["weight"] == net.weight.data_ptr()
        assert names(entry.given.states)[:1] == ["weight"] and [one[0] for one in second.regions] == [one[0] for one in first.regions]
        assert not {at for _, at, _ in first.regions} & {at for _, at, _ in second.regions}


def test_what_autograd_does_not_count_as_written_is_a_written_state():
    class Normal(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = torch.nn.BatchNorm1d(4)

        def forward(self, x: Any) -> Any:
            return self.norm(x)

    net = Normal()
    cached = wrap(net)
    cached(torch.randn(8, 4))
    assert not refusal(cached)
    backward, forward = host.entries
    assert {one.name for one in forward.given.states if one.is_written} == {"norm.running_mean", "norm.running_var", "norm.num_batches_tracked"}
    assert not any(one.is_written for one in backward.given.states)
    assert net.norm.num_batches_tracked.item() == 1  # from the answer: the effects of all other runs are undone


def test_the_callers_gradients_and_tensors_are_left_alone():
    net, x = Net(), torch.randn(3, 4, requires_grad=True)
    wrap(net)(x)
    assert x.grad is None and net.weight.grad is None and x.is_leaf and net.weight.is_leaf


def test_an_activation_of_an_earlier_layer_gets_its_gradient():
    net, x = Net(), torch.randn(3, 4, requires_grad=True)
    cached = wrap(net)
    for _ in range(2):
        x.grad = net.weight.grad = None
        cached(x * 2).sum().backward()
        y = torch.sigmoid(x * 2 * net.weight)
        assert torch.allclose(x.grad, (2 * y * (1 - y) * net.weight).detach(), atol=1e-6)
    assert not refusal(cached) and len(host.entries) == 2


# --- A hit


def test_a_training_loop_has_the_losses_of_the_function_itself():
    losses = []
    for is_cached in (True, False):
        torch.manual_seed(3)
        net = Net()
        step = wrap(net) if is_cached else net
        optimizer = torch.optim.SGD(net.parameters(), lr=0.5, momentum=0.9)
        found = []
        for _ in range(20):
            optimizer.zero_grad()
            loss = (step(torch.randn(3, 4)) - 0.25).square().mean()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        losses.append(found)
    assert losses[0] == pytest.approx(losses[1], rel=1e-5) and losses[0][-1] < losses[0][0]
    assert [len(one.calls) for one in host.entries] == [19, 19]


def test_a_second_forward_overwrites_what_the_first_saved():
    net, cached = recorded()
    first, second = cached(torch.randn(3, 4)), cached(torch.randn(3, 4))
    with pytest.raises(errors.Stale, match="backward of call 1 of 'Net' comes too late: call 2 has overwritten"):
        first.sum().backward()
    assert net.weight.grad is None
    second.sum().backward()
    assert net.weight.grad is not None


def test_a_gradient_never_lies_in_the_arena_and_is_summed_up():
    net, cached = recorded()
    x = torch.randn(3, 4)
    for count in (1, 2):
        y = cached(x)
        y.sum().backward()
        assert torch.allclose(net.weight.grad, count * (y * (1 - y) * x).sum(0).detach(), atol=1e-6)
    backward, _ = host.entries
    saved = {pointers[1] for pointers, _ in backward.calls}
    given = {pointers[3] for pointers, _ in backward.calls}
    assert len(saved) == 1 and net.weight.grad.data_ptr() not in saved and not saved & given
    kept = net.weight.grad.clone()
    held, net.weight.grad = net.weight.grad, None
    cached(torch.randn(3, 4)).sum().backward()
    assert torch.equal(held, kept)


def test_backward_twice_needs_retain_graph_as_ever():
    net, cached = recorded()
    y = cached(torch.randn(3, 4))
    y.sum().backward(retain_graph=True)
    once = net.weight.grad.clone()
    y.sum().backward()
    assert torch.allclose(net.weight.grad, 2 * once)
    with pytest.raises(RuntimeError, match="second time"):
        y.sum().backward()


def test_a_gradient_of_the_gradient_is_refused():
    net, cached = recorded()
    x = torch.randn(3, 4)
    with pytest.raises(errors.Unsupported, match="create_graph"):
        torch.autograd.grad(cached(x).sum(), net.weight, create_graph=True)


def test_an_input_that_was_written_since_forward_is_noticed():
    _, cached = recorded()
    x = torch.randn(3, 4)
    y = cached(x)
    x.add_(1)
    with pytest.raises(RuntimeError, match="inplace operation"):
        y.sum().backward()


def test_weights_that_moved_since_forward_are_read_where_they_are():
    net, cached = recorded()
    wanted = torch.randn(3, 4, requires_grad=True)
    cached(wanted)
    y = cached(wanted)
    net.weight.data = net.weight.data.clone()
    y.sum().backward()
    entry = next(one for one in host.entries if one.calls and one.given.name == "Net.backward")
    assert entry.calls[-1][1] == [net.weight.data_ptr()]


@pytest.mark.parametrize("kind", ["expanded", "an input", "transposed", "unaligned"])
def test_a_gradient_that_cannot_be_bound_is_copied(kind):
    net, cached = recorded()
    x = torch.randn(3, 4)
    y = cached(x)
    given = {"expanded": lambda: torch.ones(()).expand(3, 4), "an input": lambda: x,
             "transposed": lambda: torch.randn(4, 3).t(), "unaligned": lambda: torch.randn(64)[1:13].view(3, 4)}[kind]()
    y.backward(given)
    assert torch.allclose(net.weight.grad, (given * y * (1 - y) * x).sum(0).detach(), atol=1e-6)
    (pointers, _), = host.entries[0].calls
    assert pointers[0] != given.data_ptr()


def test_a_result_without_gradient_is_given_zeros():
    class Two(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(4))

        def forward(self, x: Any) -> Any:
            return {"loss": (x * self.weight).sum(), "logits": x * self.weight, "count": (x > 0).sum(), "x": x}

    cached, x = wrap(Two()), torch.randn(3, 4)
    assert [one.requires_grad for one in cached(x).values()] == [True, True, False, False]
    found = cached(x)
    assert not refusal(cached)
    assert [one.requires_grad for one in found.values()] == [True, True, False, False] and found["x"] is x
    found["loss"].backward()
    backward = host.entries[0]
    assert names(backward.given.inputs)[:2] == ["pair.grad0", "pair.grad1"] and len(backward.calls) == 1


def test_another_process_finds_both_halves():
    recorded()
    before = len(host.entries)
    net = Net()
    cached = wrap(net)
    cached(torch.randn(3, 4)).sum().backward()
    assert [one.captures for one in host.entries[before:]] == [None, None] and net.weight.grad is not None


def test_a_pair_whose_backward_is_not_there_is_recorded_anew():
    recorded()
    for key in [key for key in host.kept if "Net.backward" in key]:
        del host.kept[key]
    before = len(host.entries)
    wrap(Net())(torch.randn(3, 4)).sum().backward()
    assert sorted(one.given.name for one in host.entries[before:] if one.captures is not None) == ["Net.backward", "Net.forward"]


def test_metadata_that_is_damaged_is_recorded_anew():
    recorded()
    for key, text in host.kept.items():
        host.kept[key] = text.replace('"differentiable":[0]', '"differentiable":[7]')
    before = len(host.entries)
    wrap(Net())(torch.randn(3, 4)).sum().backward()
    assert len([one for one in host.entries[before:] if one.captures is not None]) == 2


def test_backward_may_run_in_another_thread():
    net, cached = recorded()
    y = cached(torch.randn(3, 4))
    thread = threading.Thread(target=lambda: y.sum().backward())
    thread.start()
    thread.join()
    assert net.weight.grad is not None


def test_without_gradients_it_is_a_function_as_any_other():
    net, x = Net(), torch.randn(3, 4)
    cached = wrap(net)
    with torch.no_grad():
        for _ in range(5):  # the last calls take the steady path
            assert not cached(x).requires_grad
    assert [one.given.name for one in host.entries] == ["Net"]
    for _ in range(3):
        assert cached(x).requires_grad
    assert [one.given.name for one in host.entries] == ["Net", "Net.backward", "Net.forward"]
    with torch.no_grad():
        assert not cached(x).requires_grad
    net.requires_grad_(False)
    assert not cached(x).requires_grad


def test_methods_and_modules_as_arguments_are_pairs():
    class Trainer:
        def __init__(self) -> None:
            self.net = Net()
            self.step = wrap(self.loss)

        def loss(self, x: Any) -> Any:
            return self.net(x).sum()

    def loss_of(net: Any, x: Any) -> Any:
        return net(x).sum()

    trainer, net, cached = Trainer(), Net(), wrap(loss_of)
    for _ in range(2):
        assert trainer.step(torch.randn(3, 4)).requires_grad and cached(net, torch.randn(3, 4)).requires_grad
    assert not refusal(trainer.step) and not refusal(cached) and len(host.entries) == 4


def test_clear_asks_for_both_halves_as_well():
    _, cached = recorded()
    assert cached._names() == ["Net", "Net.forward", "Net.backward"]
    assert [one.entries for one in warmgraph.clear(cached)] == [0]  # this process wrote no entry


# --- refusals


def _written_in_place(net: Any, x: Any) -> Any:
    return x.mul_(2) * net.weight


def _hooked(net: Any, x: Any) -> Any:
    y = x * net.weight
    y.register_hook(lambda gradient: gradient)
    return y


def _backward_itself(net: Any, x: Any) -> Any:
    loss = (x * net.weight).sum()
    loss.backward(retain_graph=True)
    return loss


@pytest.mark.parametrize("function, words", [
    (lambda net, x: x * WEIGHT * net.weight, "closure or a global"), (_written_in_place, "written in place"), (_hooked, "register_hook"),
    (_backward_itself, "calls backward"), (lambda net, x: (x * net.weight, net.weight[1:]), "view of a tensor that requires grad"),
    (lambda net, x: x * 2, "none of its results requires grad")])
def test_what_cannot_be_a_pair_is_refused_by_name_and_answered(function, words):
    net = Net()
    cached = wrap(function)
    x = torch.randn(3, 4) if function is not _written_in_place else torch.randn(3, 4, requires_grad=True) * 1
    found = cached(net, x)
    assert words in refusal(cached) and not host.entries
    assert isinstance(found, tuple) or found.requires_grad or "none" in words
    cached(net, x.detach())


def test_hooks_for_backward_are_refused_also_where_they_come_later():
    net, cached = recorded()
    seen = []
    handle = net.register_full_backward_hook(lambda *_: seen.append(1))
    cached(torch.randn(3, 4)).sum().backward()
    assert seen == [1] and "hooks for backward" in refusal(cached)
    handle.remove()
    cached(torch.randn(3, 4)).sum().backward()
    assert seen == [1] and len(host.entries[0].calls) == 1


def test_hooks_on_weights_are_called_by_autograd():
    net, cached = recorded()
    seen = []
    net.weight.register_hook(lambda gradient: seen.append(gradient.clone()))
    cached(torch.randn(3, 4)).sum().backward()
    assert len(seen) == 1 and torch.equal(seen[0], net.weight.grad)


def test_hooks_for_what_is_saved_are_refused():
    _, cached = recorded()
    with torch.autograd.graph.save_on_cpu():
        assert cached(torch.randn(3, 4)).requires_grad
    assert "saved_tensors_hooks" in refusal(cached) and not host.entries[1].calls


def test_a_module_that_pytorch_compiled_is_refused():
    net = Net()
    net.compile(backend="eager")
    cached = wrap(net)
    assert cached(torch.randn(3, 4)).requires_grad
    assert "compiled" in refusal(cached) and not host.entries


def test_require_hit_says_so_without_a_pair(monkeypatch):
    monkeypatch.setenv("WARMGRAPH_POLICY", "require_hit")
    with pytest.raises(errors.MissForbidden):
        wrap(Net())(torch.randn(3, 4))
    monkeypatch.setenv("WARMGRAPH_POLICY", "read_only")
    assert wrap(Net())(torch.randn(3, 4)).requires_grad
    assert not host.captures


def test_captured_gradients_that_differ_from_the_functions_own_are_refused(monkeypatch):
    def spoilt(graph: Any) -> None:
        run_again(graph)
        recording[0]._memory.gradients[0].add_(1)

    from warmgraph.torch.pairs import _pair_recording

    recording: list[Any] = []
    init, run_again = _pair_recording.PairRecording.__init__, host.FakeCapturedGraph.run_again
    monkeypatch.setattr(_pair_recording.PairRecording, "__init__", lambda self, *args: (init(self, *args), recording.append(self))[0])
    monkeypatch.setattr(host.FakeCapturedGraph, "run_again", spoilt)
    cached = wrap(Net())
    assert cached(torch.randn(3, 4)).requires_grad
    assert "than the function itself" in refusal(cached) and not host.entries


@pytest.mark.parametrize("options, words", [({"compile": True}, "eager"), ({"borrow": True}, "borrow"), ({"pair": 1}, "True or False")])
def test_options_that_exclude_a_pair(options, words):
    with pytest.raises(errors.InvalidArgument, match=words):
        warmgraph.cache_compile(Net(), **{"pair": True, **options})


# --- saved values


class Saved:
    """The values that one function saves. They are allocated again and copied there."""

    def __init__(self, function: Any, *tensors: Any) -> None:
        self.saver = _saved_tensors.Saver([], torch.device("cpu"), False)
        with self.saver.hooks():
            self.result = function(*tensors)

    @property
    def sizes(self) -> list[int]:
        return [one.numel() for one in self.saver.memory]


def test_a_tensor_that_two_operators_save_is_saved_once():
    x = torch.randn(3, 4, requires_grad=True)

    def work(x: Any) -> Any:
        h = torch.relu(x * 2)
        return h.exp().sum() + (h.view(12) @ h.reshape(-1)) + (h.t() @ h).sum()

    found = Saved(work, x)
    (gradient,) = torch.autograd.grad(found.result, x)
    assert found.sizes.count(12) == 2  # h and the result of exp(h)
    assert torch.allclose(gradient, torch.autograd.grad(work(x), x)[0])


@pytest.mark.parametrize("view", [lambda t: t.expand(5, 3, 4), lambda t: t.permute(1, 0), lambda t: t[:, ::2], lambda t: t[:, 1:3].t(),
                                  lambda t: t[0, 0]])
def test_a_saved_view_has_its_elements_again(view):
    x = torch.randn(3, 4, requires_grad=True)

    def work(x: Any) -> Any:
        return (view(x.exp()) * view(x * 3)).sum()

    found = Saved(work, x)
    assert max(found.sizes) <= 12
    assert torch.allclose(torch.autograd.grad(found.result, x)[0], torch.autograd.grad(work(x), x)[0])


def test_numbers_on_the_host_are_saved_as_they_are(monkeypatch):
    monkeypatch.setattr(_tensors, "DEVICE_TYPE", "cuda")
    x = torch.randn(3, requires_grad=True)
    found = Saved(lambda x: x * torch.tensor(2.0) * 3.0, x)
    assert not found.saver.filled and torch.equal(torch.autograd.grad(found.result.sum(), x)[0], torch.full((3,), 6.0))


@pytest.mark.parametrize("draws", [True, False])
def test_what_lies_on_the_device_in_a_capture_alone_has_its_place(monkeypatch, draws):
    class Attention(torch.autograd.Function):
        """A function that saves its seed like PyTorch's attention: in a capture on the device, else on the host."""

        @staticmethod
        def forward(ctx: Any, x: Any, seed: Any) -> Any:
            ctx.save_for_backward(x * 2, seed, x * 3)
            return x * 1

        @staticmethod
        def backward(ctx: Any, given: Any) -> Any:
            twice, seed, thrice = ctx.saved_tensors
            return given * twice * thrice * seed.sum(), None

    x, seed = torch.randn(3, requires_grad=True), torch.tensor(7)
    monkeypatch.setattr(_tensors, "DEVICE_TYPE", "cuda")
    first = _saved_tensors.Saver([], torch.device("cpu"), draws)
    with first.hooks():
        Attention.apply(x, seed)
    assert not first.filled and [one.numel() for one in first.memory] == [3, 1, 3]
    monkeypatch.setattr(_tensors, "DEVICE_TYPE", "cpu")
    first.of_host = {1: 1}  # the other tensors are on the device
    memory = [torch.empty_like(one) for one in first.memory]
    second = first.as_before([], memory)
    with second.hooks():
        y = Attention.apply(x, seed)
    second.end([])
    assert second.filled == [0, 1, 2] and memory[1].tolist() == [7 if draws else 0]
    assert torch.allclose(torch.autograd.grad(y.sum(), x)[0], 6 * x * x * (7 if draws else 0))


def test_what_is_saved_must_be_the_same_in_each_capture():
    x = torch.randn(3, requires_grad=True)
    first = Saved(lambda x: x.exp().sin().cos(), x).saver
    for other in (lambda x: x.exp(), lambda x: x.exp().sin().cos().cos(), lambda x: x[:2].exp().sin().cos()):
        second = first.as_before([], [torch.empty_like(one) for one in first.memory])
        with pytest.raises(errors.NotRecordable, match="at its second call"):
            with second.hooks():
                other(x)
            second.end([])


def test_backward_declares_what_a_checkpoint_computes_again():
    from torch.utils.checkpoint import checkpoint

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = torch.nn.Linear(4, 8), torch.nn.Linear(8, 4)

        def forward(self, x):
            return self.second(checkpoint(lambda y: torch.tanh(self.first(y)), x, use_reentrant=False))

    cached = warmgraph.cache_compile(Net(), pair=True)
    cached(torch.randn(2, 4)).sum().backward()
    backward = next(one for one in host.entries if one.given.name.endswith(".backward"))
    assert {one.name for one in backward.given.states} >= {"first.weight", "first.bias", "second.weight"}
    assert any(one.name == "x" for one in backward.given.inputs)
