"""PyTorch's entries hold data for processes without PyTorch: the names of the tensors in each storage, and small contents."""
from __future__ import annotations

import base64
import json
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed here")

import numpy as np  # noqa: E402

import torch_on_the_host as host  # noqa: E402
from torch_on_the_host import wrap  # noqa: E402
from warmgraph.core.serving import _entry_metadata  # noqa: E402
from warmgraph.torch.replay import _state_contents  # noqa: E402

pytestmark = pytest.mark.usefixtures("on_the_host")

TABLE = torch.arange(6.0)


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = torch.nn.Embedding(8, 4), torch.nn.Linear(4, 8, bias=False)
        self.head.weight = self.embed.weight
        self.register_buffer("scale", torch.full((4,), 2.0))
        self.register_buffer("inv_freq", torch.arange(4.0), persistent=False)
        self.kv = [torch.zeros(2, 4)]
        self.mask = torch.tensor([True, False, True, True])

    def step(self, x: Any) -> Any:
        self.kv[0][:, :] = self.embed(x) * self.scale * self.mask
        return self.head(self.kv[0] + self.inv_freq)


def metadata() -> dict[str, Any]:
    (text,) = host.kept.values()
    return json.loads(text)


def carried(found: dict[str, Any], state: str) -> Any:
    return base64.b64decode(found["contents"][state])


def test_tied_weights_have_both_names_and_others_only_where_theirs_differs():
    wrap(Net().step)(torch.tensor([1, 2]))
    assert metadata()["aliases"] == {
        "embed.weight": [["embed.weight", 0, "f32", [8, 4], [4, 1]], ["head.weight", 0, "f32", [8, 4], [4, 1]]],
        "kv_0": [["kv[0]", 0, "f32", [2, 4], [4, 1]]],
    }


def test_contents_are_those_that_no_file_of_weights_has():
    net = Net()
    wrap(net.step)(torch.tensor([1, 2]))
    found = metadata()
    assert sorted(found["contents"]) == ["inv_freq", "mask"] and found["written"] == ["kv_0"]
    assert carried(found, "inv_freq") == net.inv_freq.numpy().tobytes()
    assert carried(found, "mask") == bytes([1, 0, 1, 1])


def test_closures_and_globals_are_carried_and_modules_of_theirs_have_names():
    linear, offset = torch.nn.Linear(6, 6), torch.ones(6) * 3

    def work(x: Any) -> Any:
        return linear(x) * TABLE + offset

    wrap(work)(torch.ones(2, 6))
    found = metadata()
    assert sorted(found["contents"]) == ["test_torch_state_contents.TABLE", "work.offset"] and found["aliases"] == {}
    assert carried(found, "test_torch_state_contents.TABLE") == TABLE.numpy().tobytes()


def test_slices_of_one_storage_are_named_where_they_lie():
    flat = torch.arange(32.0)

    class Flat(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = torch.nn.Parameter(flat[:16].view(4, 4)), torch.nn.Parameter(flat[16:].view(4, 4).t())

        def step(self, x: Any) -> Any:
            return x @ self.a @ self.b

    wrap(Flat().step)(torch.ones(2, 4))
    found = metadata()
    assert found["aliases"] == {"a": [["a", 0, "f32", [4, 4], [4, 1]], ["b", 64, "f32", [4, 4], [1, 4]]]} and found["contents"] == {}


def test_numbers_that_the_library_has_no_type_for_are_their_parts():
    table, small = torch.ones(3, 2, dtype=torch.complex64), torch.ones(4).to(torch.float8_e4m3fn)

    def work(x: Any) -> Any:
        return x * table.real.sum() + small.to(torch.float32)

    wrap(work)(torch.ones(4))
    assert metadata()["aliases"] == {"work.table": [["work.table", 0, "f32", [3, 2, 2], [4, 2, 1]]]}
    assert sorted(metadata()["contents"]) == ["work.small", "work.table"]


def test_what_is_too_large_is_left_out(monkeypatch):
    monkeypatch.setattr(_state_contents, "MOST_OF_ONE", 64)
    monkeypatch.setattr(_state_contents, "MOST_OF_ALL", 100)
    first, large, second, third = torch.ones(16), torch.ones(17), torch.ones(10), torch.ones(9)

    def work(x: Any) -> Any:
        return x + first.sum() + large.sum() + second.sum() + third.sum()

    wrap(work)(torch.ones(4))
    assert sorted(metadata()["contents"]) == ["work.first", "work.third"]  # the first has 64 bytes, the third the last 36 of the limit


def test_a_weight_that_shares_a_storage_with_a_buffer_is_not_carried():
    class Shared(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(4))
            self.register_buffer("view", self.weight.data[:2], persistent=False)

        def step(self, x: Any) -> Any:
            return x * self.weight + self.view.sum()

    wrap(Shared().step)(torch.ones(4))
    assert metadata()["contents"] == {}


def test_a_hit_looks_at_neither_and_needs_neither():
    net = Net()
    wrap(net.step)(torch.tensor([1, 2]))
    (key,) = host.kept
    found = metadata()
    for member in ("aliases", "contents"):
        del found[member]
    host.kept[key] = json.dumps(found)  # as in an entry of an older version, which lacks these members
    wrap(net.step)(torch.tensor([1, 2]))
    assert [entry.captures is None for entry in host.entries] == [False, True]


def test_a_server_reads_what_is_written():
    """The PyTorch half writes names, places and contents; the serving half reads them."""
    net = Net()
    wrap(net.step)(torch.tensor([1, 2]))
    (entry,) = host.entries
    states = [{"name": one.name, "dtype": one.dtype, "sizes": list(one.sizes), "strides": [4, 1] if len(one.sizes) == 2 else [1],
               "bytes": one.nbytes, "read_only": not one.is_written} for one in entry.given.states]
    stored = _entry_metadata.stored_entry({"digest": "0", "recorded": "", "misfit": "", "inputs": [], "outputs": [], "states": states, "scalars": [],
                                   "values": [], "config": {}, "recorded_code": {}, "environment": [], "metadata": entry.given.metadata})
    states_by_name = {state.name: state for state in stored.states}
    assert [part.name for part in states_by_name["embed.weight"].names()] == ["embed.weight", "head.weight"]
    assert [part.name for part in states_by_name["kv_0"].names()] == ["kv[0]", "kv_0"] and states_by_name["kv_0"].is_zeroed
    assert states_by_name["inv_freq"].contents == np.arange(4, dtype=np.float32).tobytes()
    assert [state.name for state in stored.states if state.needed()] == ["scale", "embed.weight"]
    assert stored.read_only_inputs == {"x"}
