"""Tests models whose facts are too large for an entry's header."""
from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed here")

from warmgraph.reading import _native_snapshots  # noqa: E402
from warmgraph.torch.replay import _long_facts  # noqa: E402


def facts_of(layers: int) -> dict[str, str]:
    found = {"torch.version": "2.11.0", "token": "tensor int64 [8, 1] strides [1, 1]", "self.config.heads": "int 16"}
    for layer in range(layers):
        for part in ("attention", "mlp"):
            for i in range(50):
                found[f"self.model.layers[{layer}].{part}.weight{i}"] = "tensor bfloat16 [2048, 2048] strides [2048, 1], requires grad"
    return found


def letters(facts: dict[str, str]) -> int:
    return sum(len(path) + len(text) for path, text in facts.items())


def differing(one: dict[str, str], other: dict[str, str]) -> list[str]:
    return [path for path in {**one, **other} if one.get(path) != other.get(path)]


def test_few_facts_stay_as_they_are():
    assert _long_facts.folded(facts_of(2)) == facts_of(2)


@pytest.mark.parametrize("layers", [40, 126, 1000])
def test_many_facts_fit_and_say_where_they_differ(layers):
    found = _long_facts.folded(facts_of(layers))
    assert letters(found) <= 192 << 10
    assert found["torch.version"] == "2.11.0" and found["self.config.heads"] == "int 16" and "token" in found
    changed = facts_of(layers)
    changed["self.model.layers[7].mlp.weight3"] = "tensor float32 [2048, 2048] strides [2048, 1], requires grad"
    (where,) = differing(found, _long_facts.folded(changed))
    assert where.startswith("self.model.layers[7]")


@pytest.mark.parametrize("change", ["removed", "added", "renamed", "moved"])
def test_no_change_is_lost(change):
    before, after = facts_of(300), facts_of(300)
    path = "self.model.layers[7].mlp.weight3"
    text = after.pop(path)
    if change == "added":
        after = {**before, f"{path}.scale": "float 0.5"}
    elif change == "renamed":
        after[f"{path}0"] = text
    elif change == "moved":  # the same letters in two facts, but divided at another place
        after[path + "t"] = text[1:]
    assert _long_facts.folded(before) != _long_facts.folded(after)


@pytest.mark.parametrize("most", [1, 64, 400, 4096, 32 << 10, 1 << 20])
@pytest.mark.parametrize("deepest", [1, 3, 12])
def test_the_library_folds_as_python_does(monkeypatch: pytest.MonkeyPatch, most: int, deepest: int) -> None:
    monkeypatch.setattr(_long_facts, "_MOST", most)
    monkeypatch.setattr(_long_facts, "_DEEPEST", deepest)
    odd = {"": "nothing", "a": "1", "a.": "2", ".a": "3", "[0]": "4", "a[0].b": "5", "a[0][1]": "6", "a-b": "7", "aB.c": "8", "ä.ö[ü].😀": "ß" * 9,
           "ä.ö[ü].￿": "x", "a..b": "9", "a.[b": "10"}
    for facts in (odd, facts_of(3), {**odd, **facts_of(40)}):
        expected, found = _long_facts._folded(facts), _native_snapshots.folded_facts(facts, most, deepest)
        assert found == expected and list(found) == list(expected)


def test_what_is_no_text_of_utf8_is_not_folded() -> None:
    with pytest.raises(UnicodeEncodeError):
        _native_snapshots.folded_facts({"\ud800": "1"}, 1, 1)


def test_the_order_of_facts_does_not_matter():
    facts = facts_of(300)
    assert _long_facts.folded(facts) == _long_facts.folded(dict(reversed(facts.items())))


def test_a_model_of_many_layers_is_recorded_with_folded_facts(monkeypatch: pytest.MonkeyPatch):
    import torch_on_the_host as host
    import warmgraph

    host.use(monkeypatch)
    monkeypatch.setattr(_long_facts, "_MOST", 4096)

    class Deep(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.ModuleList(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.GELU()) for _ in range(30))
            self.step = warmgraph.cache_compile(self.work, compile=False, config=warmgraph.Config(model="deep"))

        def work(self, x: Any) -> Any:
            for layer in self.layers:
                x = layer(x)
            return x

    deep = Deep().eval()
    with torch.no_grad():
        deep.step(torch.randn(2, 4))
        (entry,) = host.entries
        assert letters(dict(entry.given.facts)) <= 4096
        deep.layers[3].train()
        deep.step(torch.randn(2, 4))
    assert len(host.entries) == 2
