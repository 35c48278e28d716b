"""Tests calls that draw random numbers from a generator of the caller's own."""
from __future__ import annotations

import contextlib
import types
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch_on_the_host as host  # noqa: E402
from torch_on_the_host import errors, refusal, wrap  # noqa: E402

from warmgraph.torch.record import _capture  # noqa: E402
from warmgraph.torch.replay import _launching, _outputs  # noqa: E402

pytestmark = pytest.mark.usefixtures("on_the_host")

X = torch.ones(8)


class Generator(torch.Generator):
    """A generator of the host that counts its numbers in an offset, as those of the device do."""

    def get_offset(self) -> int:
        return int.from_bytes(bytes(self.get_state()[16:24].tolist()), "little")

    def set_offset(self, offset: int) -> None:
        self.manual_seed(self.initial_seed())
        torch.rand(offset, generator=self)


def seeded(seed: int, offset: int = 0) -> Any:
    made = Generator()
    made.manual_seed(seed)
    made.set_offset(offset)
    return made


def draw(x: Any, generator: Any) -> Any:
    return x + 1 + 0 * torch.rand(8, generator=generator)


def words_of(monkeypatch: Any) -> list[tuple[int, int]]:
    """The (seed, offset) that each later replay writes for its graph."""
    seen: list[tuple[int, int]] = []
    real = host.FakeEntry.launch

    def launch(entry: Any, *args: Any, **kwargs: Any) -> Any:
        words = entry.bound_states[-2:]
        seen.append(tuple(_capture.ctypes.c_int64.from_address(one).value for one in words))
        return real(entry, *args, **kwargs)

    monkeypatch.setattr(host.FakeEntry, "launch", launch)
    return seen


def test_a_replay_draws_from_where_the_generator_is_and_advances_it(monkeypatch):
    generator, cached = seeded(5, 3), wrap(draw)
    cached(X, generator)
    assert generator.get_offset() == 11 and len(host.entries) == 1, refusal(cached)
    metadata = _outputs.from_text(host.entries[0].given.metadata)
    assert (metadata.generator, metadata.draws) == ("generator", 8)
    seen = words_of(monkeypatch)
    cached(X, generator)
    torch.rand(2, generator=generator)  # somebody else draws
    cached(X, generator)
    generator.manual_seed(9)
    cached(X, generator)
    assert seen == [(5, 11), (5, 21), (9, 0)] and (generator.initial_seed(), generator.get_offset()) == (9, 8)


def test_another_process_replays_with_its_own_generator(monkeypatch):
    wrap(draw)(X, seeded(5))
    seen, generator, later = words_of(monkeypatch), seeded(7, 2), wrap(draw)
    for _ in range(3):
        later(X, generator)
    assert len(host.entries) == 2 and seen == [(7, 2), (7, 10), (7, 18)]


def test_each_call_advances_the_generator_that_it_gets(monkeypatch):
    one, other, cached = seeded(1), seeded(2), wrap(draw)
    cached(X, one)
    seen = words_of(monkeypatch)
    for generator in (other, one, other, one, other):
        cached(X, generator)
    assert len(host.entries) == 1 and seen == [(2, 0), (1, 8), (2, 8), (1, 16), (2, 16)]


class Sampler:
    def __init__(self, generator: Any) -> None:
        self.generator = generator

    def step(self, x: Any) -> Any:
        return draw(x, self.generator)


def test_a_generator_that_the_object_holds_may_be_replaced(monkeypatch):
    sampler = Sampler(seeded(1))
    cached = wrap(sampler.step)
    cached(X)
    seen = words_of(monkeypatch)
    for _ in range(3):
        cached(X)
    sampler.generator = seeded(4)
    for _ in range(3):
        cached(X)
    assert len(host.entries) == 1 and seen == [(1, 8), (1, 16), (1, 24), (4, 0), (4, 8), (4, 16)]


def test_the_second_capture_draws_from_the_callers_generator(monkeypatch):
    generator, drawn, real = seeded(3), [], host._captured

    def captured(device: Any, work: Any, given: Any = None, never_runs: bool = False) -> Any:
        def noted() -> None:
            before = generator.get_offset()
            work()
            drawn.append((given is generator, generator.get_offset() - before))

        return real(device, noted, given)

    monkeypatch.setattr(_capture, "captured", captured)
    wrap(lambda x, held: draw(x, held["g"]))(X, {"g": generator})
    assert drawn == [(True, 8)] * 2 and generator.get_offset() == 8


def of_two(x: Any, one: Any, other: Any) -> Any:
    return draw(x, one) + draw(x, other)


def of_the_first(x: Any, one: Any, other: Any) -> Any:
    return draw(x, one)


def seeding(x: Any, generator: Any) -> Any:
    generator.manual_seed(3)
    return draw(x, generator)


def test_one_of_several_generators_may_be_drawn_from(monkeypatch):
    one, other, cached = seeded(1), seeded(2), wrap(of_the_first)
    cached(X, one, other)
    seen = words_of(monkeypatch)
    cached(X, other, one)
    assert seen == [(2, 0)] and one.get_offset() == 8 and other.get_offset() == 8
    cached(X, one, one)  # another call than one with two generators
    assert len(host.entries) == 2


@pytest.mark.parametrize("work, generators, text", [
    (of_two, (1, 2), "it draws random numbers from the torch.Generator one and from the torch.Generator other: draw from one of them"),
    (seeding, (1,), "it seeds the torch.Generator generator, or sets its offset: do it outside"),
])
def test_other_uses_of_generators_are_refused_by_name(work, generators, text):
    cached = wrap(work)
    cached(X, *map(seeded, generators))
    assert not host.entries and text in refusal(cached)


def test_a_generator_and_the_devices_are_refused(monkeypatch):
    class Drawing(host.FakeGenerator):
        count = 0

        def get_offset(self) -> int:
            Drawing.count += 4
            return Drawing.count

    monkeypatch.setattr(_capture, "generator_of", lambda device: Drawing())
    cached = wrap(draw)
    cached(X, seeded(1))
    assert not host.entries and "from the device's generator and from the torch.Generator generator" in refusal(cached)


def test_a_generator_of_another_device_is_refused(monkeypatch):
    generator = types.SimpleNamespace(device=torch.device("cuda", 1))
    with pytest.raises(errors.NotRecordable, match="a torch.Generator is on cuda:1, but the tensors are on cuda:0"):
        _launching._launch_with_words(torch.device("cuda", 0), torch.zeros(2, 1), 4, lambda: None, generator)


def test_a_pair_draws_from_the_devices_generator_alone():
    weight = torch.ones(8, requires_grad=True)
    cached = wrap(lambda x, g: draw(x * weight, g), pair=True)
    cached(X, seeded(1))
    assert not host.entries and "g is a torch.Generator, but a pair draws from the device's generator alone" in refusal(cached)


def test_a_capture_separates_and_registers_the_generator(monkeypatch):
    log: list[Any] = []

    class Device:
        device = torch.device("cpu")

        def __init__(self, name: str) -> None:
            self.name, self.state = name, "callers"

        def graphsafe_get_state(self) -> Any:
            return self.state

        def graphsafe_set_state(self, state: Any) -> None:
            self.state = state

    monkeypatch.undo()
    devices, own = Device("device's"), Device("own")
    monkeypatch.setattr(_capture, "generator_of", lambda device: devices)
    made = types.SimpleNamespace(manual_seed=lambda seed: None, set_offset=lambda offset: None, graphsafe_get_state=lambda: "separate")
    monkeypatch.setattr(torch, "Generator", lambda device: made)
    with _capture.own_generator(torch.device("cuda", 0)) as found, _capture._own_state(own):
        log.append((found is devices, devices.state, own.state))
    with contextlib.suppress(ValueError), _capture._own_state(own):
        raise ValueError
    assert log == [(True, "separate", "separate")] and devices.state == own.state == "callers"
