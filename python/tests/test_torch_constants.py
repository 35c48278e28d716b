"""When the host reads a number in a capture, it gets the number from the answer, if this depends only on shapes and plain values."""
from __future__ import annotations

from typing import Any, Callable

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed here")

from warmgraph.torch.read import _tensors  # noqa: E402
from warmgraph.torch.record import _constants, _operators  # noqa: E402

X = torch.arange(8.0)
HEARD = 77


@pytest.fixture(autouse=True)
def on_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_tensors, "DEVICE_TYPE", "cpu")


def heard(work: Callable[[], Any], captured: Callable[[], Any] | None = None, enqueued: Callable[[], Any] = lambda: 0) -> list[Any]:
    """Runs `work` as a capture would, and returns its result. Each number that comes from the answer is HEARD."""
    asked = _operators.OperatorTexts()
    reads = _constants.HostReads(asked)
    with torch.no_grad(), _operators.shown_to(asked, run=reads):
        work()
    assert reads.values, "it reads something"
    reads.values = {number: HEARD for number in reads.values}
    with torch.no_grad(), _operators.shown_to(run=_constants.ConstantTracker(reads, enqueued)):
        return (captured or work)()


def test_what_follows_from_shapes_is_heard():
    def work() -> Any:
        positions = torch.arange(X.shape[0]) + 3
        step = torch.diff(positions.unsqueeze(0), prepend=positions[None, :1] - 1, dim=-1)
        return [((step != 1).cumsum(-1)[:, -1] == 0).all().item(), torch.ones_like(X).sum().item(), X.new_zeros(4)[2].item()]

    assert heard(work) == [HEARD] * 3


@pytest.mark.parametrize("number", [
    lambda: X.sum(), lambda: torch.arange(8.0).add_(X)[0], lambda: torch.arange(8.0)[:4].add_(X[:4])[0], lambda: torch.rand(3)[0],
    lambda: torch.empty(3).fill_(1.0)[0], lambda: torch.zeros(2).copy_(X[:2])[0], lambda: torch.zeros(8).index_put_((torch.arange(8),), X)[0],
    lambda: torch.zeros(2).normal_()[0], lambda: torch.from_numpy(X.numpy())[0], lambda: torch.tensor(3.0),
])
def test_what_follows_from_anything_else_is_read(number):
    assert HEARD not in heard(lambda: [number().item()])


def test_a_write_through_another_view_ends_it():
    def work() -> Any:
        whole = torch.zeros(8)
        first = whole.sum().item()
        whole.view(2, 4)[0].add_(X[:4])
        return [first, whole.sum().item()]

    assert heard(work) == [HEARD, 6.0]


def test_who_enqueues_beside_operators_ends_it():
    now = [0]

    def work() -> Any:
        whole = torch.zeros(8)
        now[0] += 1  # stands for a kernel, which may write to any memory
        return [whole.sum().item(), torch.zeros(8).sum().item()]

    assert heard(work, enqueued=lambda: now[0]) == [0.0, HEARD], "what is made later is constant again"


def test_an_operator_of_somebody_else_ends_it_for_what_it_is_given():
    library = torch.library.Library("warmgraph_constants", "DEF")
    library.define("touch(Tensor x) -> Tensor")
    library.impl("touch", lambda x: x.clone(), "CPU")

    def work() -> Any:
        whole = torch.zeros(8)
        return [torch.ops.warmgraph_constants.touch(whole).sum().item(), whole.sum().item()]

    assert heard(work) == [0.0, 0.0]
    library._destroy()


def test_a_capture_that_asks_for_something_else_reads_by_itself():
    def otherwise() -> Any:
        return [(torch.zeros(8) + 1).sum().item()]

    assert heard(lambda: [torch.zeros(8).sum().item()], otherwise) == [8.0]
    assert heard(lambda: [torch.zeros(8).sum().item()], lambda: [torch.zeros(9).sum().item()]) == [0.0]


def test_a_tensor_at_the_place_of_one_that_is_gone_is_not_taken_for_it():
    def work() -> Any:
        torch.zeros(1024)
        return [torch.from_numpy(X.numpy())[0].item() for _ in range(8)]

    assert HEARD not in heard(work)
