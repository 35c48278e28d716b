"""Tests the weights of later calls: changes of a weight, its address, and frozen weights."""
from __future__ import annotations

import gc
import weakref
from typing import Any, Callable

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed here")

import torch_on_the_host as host  # noqa: E402
from later_calls import Given, Meta, Net, aligned, forgotten, on_the_host, reads, weight_replaced, weights_elsewhere, wrap  # noqa: E402, F401  fixtures
from warmgraph.calls import _steady_calls  # noqa: E402
from warmgraph.torch.read import _native_tensors  # noqa: E402
from warmgraph.torch.replay import _bound_call  # noqa: E402

WEIGHTS: dict[str, Callable[[Any], Any]] = {
    "transposed": lambda weight: weight.t_(), "seen as its transposed": lambda weight: setattr(weight, "data", weight.data.t()),
    "swapped for its transposed": lambda weight: torch.utils.swap_tensors(weight, torch.nn.Parameter(weight.detach().t())),
    "swapped for another": lambda weight: torch.utils.swap_tensors(weight, torch.nn.Parameter(torch.randn(4, 4))),
    "elsewhere": lambda weight: setattr(weight, "data", weight.data.clone()), "set": lambda weight: weight.set_(torch.randn(4, 4)),
    "a row further": lambda weight: setattr(weight, "data", torch.cat([weight.data, weight.data])[1:5]),
    "its storage elsewhere": lambda weight: weight.untyped_storage().resize_(1 << 20),
}
_READERS = {"its bytes": lambda patch: None, "PyTorch": lambda patch: patch.setattr(_native_tensors, "telling_bytes", lambda: 0),
            "DLPack": lambda patch: patch.setattr(_native_tensors, "_own", lambda exchange: None)}


@pytest.fixture(params=_READERS)
def read_by(request, monkeypatch):
    """Chooses the way in which weights are read."""
    _READERS[request.param](monkeypatch)


@pytest.mark.usefixtures("read_by")
@pytest.mark.parametrize("change", WEIGHTS)
def test_a_weight_that_was_changed_in_place_is_noticed(change, reads):
    given = Given()
    assert reads.of(given.call) == 0
    WEIGHTS[change](given.net.linear.weight)
    assert reads.of(given.call) == 1


@pytest.mark.usefixtures("read_by")
def test_sizes_that_lie_outside_of_a_weight_are_noticed(reads):
    """The weight has six dimensions, so its sizes are stored outside of the tensor object, which stays the same."""
    weight = torch.zeros(2, 1, 1, 1, 1, 3)
    step, x = wrap(lambda x: x + weight.sum()), aligned(4)
    for _ in range(4):
        step(x)
    assert reads.of(lambda: step(x)) == 0
    weight.as_strided_((3, 1, 1, 1, 1, 2), (2, 2, 2, 2, 2, 1))
    assert reads.of(lambda: step(x)) == 1


@pytest.mark.usefixtures("read_by")
def test_a_weight_of_another_class_is_noticed(reads):
    given = Given()
    assert reads.of(given.call) == 0
    given.net.linear.weight.__class__ = type("Sub", (torch.nn.Parameter,), {})
    assert reads.of(given.call) == 1


@pytest.mark.usefixtures("read_by")
def test_a_weight_of_another_type_or_shape_is_noticed():
    """The function itself raises an error for these weights."""
    for change in (lambda weight: weight.data.view(torch.int32), lambda weight: weight.data.view(2, 8), lambda weight: weight.data[..., None], lambda weight: weight.data[:2]):
        given = Given()
        given.net.linear.weight.requires_grad_(False)
        given.call(), given.call(), given.call()
        calls = len(host.entries[-1].calls)
        given.net.linear.weight.data = change(given.net.linear.weight)
        with pytest.raises(RuntimeError):
            given.call()
        assert len(host.entries[-1].calls) == calls


def test_a_weight_that_requires_grad_from_now_on_is_noticed(reads):
    net = Net()
    net.requires_grad_(False)
    meta, caches = Meta(aligned(2, 4), True, [2, 4]), [aligned(2, 4), aligned(2, 4)]
    for _ in range(3):
        net.step(meta, caches)
    assert reads.of(lambda: net.step(meta, caches)) == 0
    net.linear.bias.requires_grad_(True)
    assert reads.of(lambda: net.step(meta, caches)) == 1


LAZY = {
    "a conjugate": lambda: torch.randn(4, dtype=torch.complex64),
    "a negative": lambda: torch.randn(4, dtype=torch.complex64).imag,
    "a negative number": lambda: torch.randn((), dtype=torch.complex64).imag,
}


@pytest.mark.parametrize("name", LAZY)
def test_a_weight_that_is_a_lazy_view_of_its_memory_from_now_on_is_noticed(name, reads):
    """`weight.data = weight.data.conj()` moves nothing, and DLPack does not show the change."""
    weight = LAZY[name]()
    whole = weight if weight.is_complex() else weight._base
    step, x = wrap(lambda x: x * weight), aligned(4)
    for _ in range(3):
        step(x)
    assert reads.of(lambda: step(x)) == 0
    before = weight.data_ptr(), weight.stride()
    weight.data = whole.conj() if weight.is_complex() else whole.conj().imag
    assert (weight.data_ptr(), weight.stride()) == before and (weight.is_conj() or weight.is_neg())
    assert reads.of(lambda: step(x)) == 1


def test_weights_that_moved_are_bound_where_they_are():
    given = Given()
    weights_elsewhere(given)
    given.call()
    _, states = host.entries[0].calls[-1]
    assert given.net.linear.weight.data_ptr() in states


def test_weights_that_moved_are_bound_in_each_graph_that_has_them():
    """A call of another shape reads the weights before it is recognised as another call. The next call with the first shape must still see
    the change."""
    net, calls = Net(), {}
    for rows in (2, 3):
        calls[rows] = (Meta(aligned(rows, 4), True, [2, 4]), [aligned(rows, 4), aligned(rows, 4)])
    for _ in range(4):
        for rows in calls:
            net.step(*calls[rows])
    assert len(host.entries) == 2
    before = net.linear.weight.data
    net.linear.weight.data = before.clone()
    assert net.linear.weight.data_ptr() != before.data_ptr()
    for rows in (3, 3, 2):
        net.step(*calls[rows])
    assert len(host.entries) == 2
    for entry in host.entries:
        _, states = entry.calls[-1]
        assert net.linear.weight.data_ptr() in states


def _at_aligned(tensor: Any) -> None:
    tensor.data = aligned(*tensor.shape).copy_(tensor.data)


@pytest.mark.parametrize("when", ["launched", "looked at"])
def test_a_weight_that_another_thread_moves_meanwhile_is_bound_where_it_is(when, monkeypatch):
    weight, x = aligned(2, 4), aligned(2, 4)
    step, elsewhere = wrap(lambda x: x * weight), [torch.randn(2, 4) for _ in range(3)]
    step(x)

    def moved() -> None:
        weight.data = elsewhere.pop()

    with monkeypatch.context() as patch:
        if when == "launched":  # at this point Python's lock is released
            launch = _bound_call.BoundCall.launch
            patch.setattr(_bound_call.BoundCall, "launch", lambda bound: (launch(bound), elsewhere and moved()))
        else:  # checked again after the weight has moved back
            made, lay = _steady_calls.make_steady_call, weight.data
            patch.setattr(_steady_calls, "make_steady_call", lambda *given: (setattr(weight, "data", elsewhere[0]), made(*given), setattr(weight, "data", lay))[1])
        for _ in range(6):
            step(x)
    if when == "looked at":
        weight.data = elsewhere[0]
    step(x)
    _, states = host.entries[-1].calls[-1]
    assert states == [weight.untyped_storage().data_ptr()]


def test_an_argument_on_a_weight_is_never_taken_for_one_beside_it():
    """Also holds for a second call with the same address."""
    net = Net()
    _at_aligned(net.linear.weight)
    apart, on_weight = [aligned(2, 4), aligned(2, 4)], [net.linear.weight.data[:2], aligned(2, 4)]
    meta = Meta(aligned(2, 4), True, [2, 4])
    for _ in range(4):
        net.step(meta, apart)
    first = len(host.entries[0].calls)
    for _ in range(4):
        net.step(meta, on_weight)
    assert len(host.entries[0].calls) == first
    net.step(meta, apart)
    assert len(host.entries[0].calls) == first + 1


def test_two_objects_share_a_graph_and_not_their_weights(reads):
    """Both objects take the steady path with their own weights."""
    first, second = Given(), Given()
    assert len(host.entries) == 1
    for given in (first, second, first, second):
        given.call()
        assert given.net.linear.weight.data_ptr() in host.entries[0].calls[-1][1]


class TestFrozen:
    def test_weights_are_not_looked_at_and_their_memory_is_kept(self, reads):
        given = Given()
        given.net.step.freeze_weights()
        weight = given.net.linear.weight
        at, memory = weight.data_ptr(), weakref.ref(weight)
        weight_replaced(given)
        del weight
        gc.collect()
        assert reads.of(given.call) == 0
        assert at in host.entries[0].calls[-1][1] and memory() is not None

    def test_arguments_are(self, reads):
        given = Given()
        given.net.step.freeze_weights()
        given.meta.is_prompt = False
        assert reads.of(given.call) == 1

    def test_it_may_come_before_the_first_call(self, reads):
        net = Net()
        net.step.freeze_weights()
        meta, caches = Meta(aligned(2, 4), True, [2, 4]), [aligned(2, 4), aligned(2, 4)]
        for _ in range(3):
            net.step(meta, caches)
        net.heads = 7
        assert reads.of(lambda: net.step(meta, caches)) == 0

    def test_reset_ends_it(self, reads):
        given = Given()
        given.net.step.freeze_weights()
        given.net.step.reset()
        for _ in range(3):
            given.call()
        given.net.heads = 7
        assert reads.of(given.call) == 1
