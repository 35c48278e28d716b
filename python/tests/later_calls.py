"""Helpers for the tests of later calls: a call that is replayed after quick checks (the steady path), and a count of full reads."""
from __future__ import annotations

import dataclasses
import enum
from typing import Any, Callable, Iterator

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed here")

import torch_on_the_host as host  # noqa: E402
from torch_on_the_host import wrap  # noqa: E402
from warmgraph.reading import _native_snapshots  # noqa: E402
from warmgraph.torch.calls import _torch_function  # noqa: E402

if _native_snapshots.exchange_of(torch.Tensor) is None:
    pytest.skip("this PyTorch or Python has no table of DLPack's", allow_module_level=True)

FACTOR = 2.0


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """Clears the recordings that objects of one class share, so that each test starts without any."""
    yield
    Net.step.reset()


class Kind(enum.Enum):
    ADD = 1
    MULTIPLY = 2


@dataclasses.dataclass
class Meta:
    tokens: Any
    is_prompt: bool
    sizes: list[int]
    scale: float = 0.0
    bias = 1


class Net(torch.nn.Module):
    heads = 2

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.norm = torch.nn.Sequential(torch.nn.LayerNorm(4), torch.nn.Dropout(0.0))

    @wrap
    def step(self, meta: Any, caches: Any, kind: Kind = Kind.ADD, *, dtype: Any = torch.float32) -> Any:
        y = self.norm(self.linear(meta.tokens)) * FACTOR + self.heads + meta.bias + meta.scale
        caches[0].add_(y)
        return {"y": y.to(dtype), "cache": caches[0], "row": caches[1][0], "kind": kind.name}


@pytest.fixture(autouse=True)
def on_the_host(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    host.use(monkeypatch)
    with torch.no_grad():
        yield


def aligned(*sizes: int) -> Any:
    """Memory that is aligned like memory from a GPU allocator."""
    count = torch.Size(sizes).numel()
    memory = torch.randn(count + 128)
    start = -memory.data_ptr() % 256 // 4
    return memory[start:start + count].view(sizes)


class Reads:
    """Counts the calls that were read completely."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count, read = 0, _torch_function.TorchFunction._read

        def counted(function: Any, *given: Any) -> Any:
            self.count += 1
            return read(function, *given)

        monkeypatch.setattr(_torch_function.TorchFunction, "_read", counted)

    def of(self, call: Callable[[], Any]) -> int:
        before = self.count
        call()
        return self.count - before


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    return Reads(monkeypatch)


class Given:
    """A call that can take the steady path. A test changes a part of it."""

    def __init__(self) -> None:
        self.net = Net()
        self.meta = Meta(aligned(2, 4), True, [2, 4])
        self.caches: Any = [aligned(2, 4), aligned(2, 4)]
        self.caches[0].mark = "a"  # sets an attribute, as mark_static_address does
        self.options: dict[str, Any] = {"dtype": torch.float32}
        for _ in range(3):
            self.call()

    def call(self) -> Any:
        return self.net.step(self.meta, self.caches, **self.options)


def weights_elsewhere(given: Given) -> None:
    given.net.linear.weight.data = given.net.linear.weight.data.clone()


def weight_replaced(given: Given) -> None:
    given.net.linear.weight = torch.nn.Parameter(torch.zeros(4, 4), requires_grad=False)
