"""Tests copies of host tensors to the device inside a function. PyTorch's device without memory (meta) takes the place of the GPU."""
from __future__ import annotations

from typing import Any, Iterator

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed here")

from warmgraph import errors  # noqa: E402
from warmgraph.torch.read import _tensors  # noqa: E402
from warmgraph.torch.record import _host_tensors, _operators  # noqa: E402

DEVICE = torch.device("meta")
TABLE = torch.arange(6.0).reshape(2, 3)


@pytest.fixture(autouse=True)
def without_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_tensors, "DEVICE_TYPE", "meta")


def answered(work: Any) -> _host_tensors.HostCopies:
    copies = _host_tensors.HostCopies()
    with _host_tensors.shown(_operators.shown_to(copies.shown)):
        work()
    return copies


def captured(work: Any, copies: _host_tensors.HostCopies) -> list[str]:
    """The operators that run in a capture which copy from the host. None may, because CUDA would refuse them."""
    twins, refused = _host_tensors.Twins(copies, DEVICE), []

    def run(func: Any, args: Any, kwargs: Any) -> Any:
        if _host_tensors._host_tensors(func, args, kwargs):
            refused.append(func._schema.name)
        return func(*args, **kwargs)

    with _host_tensors.shown(_operators.shown_to(run=twins.run(run))):
        work()
    twins.close()
    return refused


def x() -> Any:
    return torch.empty(4, 3, device=DEVICE)


WORKS = {
    "tensor": lambda: torch.tensor([1, 2, 3], device=DEVICE), "scalar": lambda: torch.tensor(-1e9, dtype=torch.float16, device="meta"),
    "as_tensor": lambda: torch.as_tensor([1.5], device=DEVICE), "as_tensor with a type": lambda: torch.as_tensor([1.5], dtype=torch.float64, device=DEVICE),
    "to": lambda: TABLE.t().to(DEVICE), "to another type": lambda: TABLE.to(DEVICE, torch.float16), "copy_": lambda: x()[:2].copy_(TABLE),
    "new_tensor": lambda: x().new_tensor([1, 2]), "list index": lambda: x()[[0, 2]], "host index": lambda: x()[torch.tensor([0, 1])],
    "list and slice": lambda: x()[[0, 2], :2], "set by list": lambda: x().__setitem__([0, 1], TABLE),
    "index_put": lambda: x().index_put_((torch.tensor([1]),), torch.ones(3)), "pinned": lambda: torch.ops.aten._pin_memory(TABLE).to(DEVICE),
    "gradient": lambda: torch.tensor([1.0], device=DEVICE, requires_grad=True),
}


@pytest.fixture
def without_page_locks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    library = torch.library.Library("aten", "IMPL")
    library.impl("_pin_memory", lambda one, device=None: one.clone(), "CPU")
    yield
    library._destroy()


@pytest.mark.parametrize("name", WORKS)
def test_a_capture_copies_from_twins(name: str, without_page_locks: None) -> None:
    copies = answered(WORKS[name])
    assert len(copies.contents) in (1, 2)
    assert captured(WORKS[name], copies) == []


@pytest.mark.parametrize("put", [lambda one, mask, number: one.__setitem__(mask, 7.0), lambda one, mask, number: one.index_put_((mask,), number),
                                 lambda one, mask, number: one.__setitem__((slice(None), mask[0]), 7.0)])
def test_a_number_that_is_put_where_a_mask_is_true_stays_on_the_host(put: Any) -> None:
    """PyTorch puts a number of the device by way of nonzero, which waits for the device."""
    def work() -> None:
        put(x(), torch.empty(4, 3, device=DEVICE, dtype=torch.bool), torch.tensor(7.0))

    copies = answered(work)
    assert not copies.contents and captured(work, copies) == []


def test_numbers_that_are_added_where_a_mask_is_true_or_put_at_positions_are_copied() -> None:
    mask, at, number = torch.empty(4, 3, device=DEVICE, dtype=torch.bool), torch.empty(2, device=DEVICE, dtype=torch.long), torch.tensor(7.0)
    assert _host_tensors._host_tensors(torch.ops.aten.index_put_.default, (x(), [mask], number, True), {})
    assert _host_tensors._host_tensors(torch.ops.aten.index_put_.default, (x(), [at], number), {})
    assert not _host_tensors._host_tensors(torch.ops.aten.index_put_.default, (x(), [mask], number), {})


@pytest.mark.parametrize("name", WORKS)
def test_constructors_that_are_shown_make_the_same(name: str, without_page_locks: None) -> None:
    plain = WORKS[name]()
    with _host_tensors.shown(_operators.shown_to()):
        shown = WORKS[name]()
    if plain is not None:
        assert [(one.dtype, one.size(), one.stride(), one.device, one.requires_grad) for one in (plain, shown)][0] == \
            (shown.dtype, shown.size(), shown.stride(), shown.device, shown.requires_grad)


def test_contents_that_differ_from_call_to_call_are_refused() -> None:
    count = [0]

    def counts() -> None:
        count[0] += 1
        torch.tensor([count[0]], device=DEVICE)

    with pytest.raises(errors.NotRecordable, match=r"differ from call to call: pass it as an argument"):
        captured(counts, answered(counts))
    with pytest.raises(errors.NotRecordable):
        captured(lambda: torch.tensor([1.0], device=DEVICE), answered(lambda: torch.tensor([1], device=DEVICE)))


def test_a_first_capture_may_copy_small_host_tensors_that_the_answer_did_not_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    filled: list[Any] = []
    monkeypatch.setattr(_host_tensors, "_bytes_of", lambda contents: filled.append(contents.tolist()) or contents.reshape(-1).view(torch.uint8).to("meta"))
    twins = _host_tensors.Twins(_host_tensors.HostCopies(), DEVICE)

    def copied(number: Any) -> Any:
        with _host_tensors.shown(_operators.shown_to(run=twins.run(_operators.as_it_is))):
            return torch.tensor(number, device=DEVICE)

    twins.takes_spares = True
    assert [(one.size(), one.dtype) for one in (copied(-1e9), copied([1, 2]), copied(-1e9))] == [((), torch.float32), ((2,), torch.int64), ((), torch.float32)]
    assert not filled, "nothing is copied while a capture is under way"
    twins.fill()
    assert filled == [-1e9, [1, 2]]
    with pytest.raises(errors.NotRecordable, match="differ from call to call"):
        copied([0.0] * 129)  # larger than a spare
    twins.takes_spares = False
    copied([1, 2])
    with pytest.raises(errors.NotRecordable, match="differ from call to call"):
        copied([1, 3])


def test_what_stays_on_the_host_or_on_the_device_is_left_alone() -> None:
    def work() -> None:
        torch.tensor([1]), x()[0], x() * torch.tensor(2.0), x().to(DEVICE), TABLE.to(torch.float16), x()[0, 1:], x().new_zeros(2)
        torch.tensor([1], device="cpu"), torch.as_tensor(x()), x().__setitem__(0, 3.0)

    copies = answered(work)
    assert not copies.contents and captured(work, copies) == []


def test_mistakes_are_pytorchs_own() -> None:
    for wrong in (lambda: torch.tensor("text", device=DEVICE), lambda: torch.tensor([1], device="nowhere"), lambda: x()[["a"]], lambda: torch.tensor()):
        with pytest.raises(Exception) as plain:
            wrong()
        with pytest.raises(type(plain.value)) as shown:
            answered(wrong)
        assert str(shown.value) == str(plain.value)


def test_large_tensors_get_no_twin(monkeypatch: pytest.MonkeyPatch) -> None:
    large = torch.zeros((_host_tensors._LARGEST >> 2) + 1)
    assert not answered(lambda: large.to(DEVICE)).contents
    assert captured(lambda: large.to(DEVICE), _host_tensors.HostCopies()) == ["aten::_to_copy"], "PyTorch refuses it with its own text"
    monkeypatch.setattr(_host_tensors, "_MOST", 24)
    copies = answered(lambda: (TABLE.to(DEVICE), (TABLE + 1).to(DEVICE), TABLE.to(DEVICE)))
    assert len(copies.contents) == 1


def test_a_recording_lets_only_its_first_capture_take_spares_and_fills_them(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch_on_the_host as host
    from warmgraph.torch.record import _recording

    noted: list[Any] = []

    class Noted(_host_tensors.Twins):
        def run(self, run: Any) -> Any:
            noted.append(self.takes_spares)
            return super().run(run)

        def fill(self) -> None:
            noted.append("filled")

        def close(self) -> None:
            noted.append("closed")

    host.use(monkeypatch)
    monkeypatch.setattr(_recording._host_tensors, "Twins", Noted)
    host.wrap(lambda one: one * 2)(torch.ones(3))
    assert noted == [True, "filled", False, "filled", "closed"]
