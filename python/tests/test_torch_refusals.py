"""A call that cannot be recorded runs eagerly. It is counted by reason, stored beside the misses, and shown in all reports."""
from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
from typing import Any, Iterator

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed here")

import torch_on_the_host as host  # noqa: E402
import warmgraph  # noqa: E402
from warmgraph.calls import _refusals  # noqa: E402
from warmgraph.core.binding import _command  # noqa: E402
from warmgraph.torch import GraphCache  # noqa: E402
from warmgraph.torch.record import _operators  # noqa: E402
from warmgraph.torch.replay import _launching  # noqa: E402

X = torch.arange(8.0)


@pytest.fixture(autouse=True)
def on_the_host(monkeypatch: pytest.MonkeyPatch, device: warmgraph.Device) -> Iterator[None]:
    host.use(monkeypatch)
    monkeypatch.setattr(_operators, "compiled_graphs", lambda: 0)  # other tests may have compiled functions
    monkeypatch.setattr(_launching, "current_device", lambda: device)  # a real device of the library, which writes refusals into its folder
    monkeypatch.setattr(_refusals, "_noted", [])
    yield


def command(*arguments: str) -> str:
    done = subprocess.run([os.environ.get("WARMGRAPH_COMMAND", _command.PROGRAM), *arguments], capture_output=True, text=True, check=False,
                          env={**os.environ, "NO_COLOR": "1"})
    return done.stdout + done.stderr


def refused(name: str = "decode", **options: Any) -> Any:
    def work(x: Any) -> Any:
        return x * (3 if host.is_captured() else 2)

    return warmgraph.cache_compile(work, compile=False, name=name, config=warmgraph.Config(model="net"), **options)


def written(folder: Any, calls: int) -> tuple[Any, Any]:
    """Waits until the library's thread has written that `calls` calls were refused; returns (the usage file, its content)."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        for file in folder.glob("*/*/decode/usage.json"):
            with contextlib.suppress(OSError, ValueError):
                found = json.loads(file.read_text())
                if found["refusals"] == calls:
                    return file, found
        time.sleep(0.01)
    raise AssertionError(f"{calls} refusals were not written")


WHY = "the function behaves differently under capture: result0"


def test_a_refused_function_is_seen_in_its_own_process():
    cached = refused()
    assert cached.report() is None
    for _ in range(5):
        assert torch.equal(cached(X), X * 2)
    report, text = cached.report(), warmgraph.explain(cached)
    assert report.outcome == "refused" and report.function == "decode" and report.reason.startswith(WHY)
    assert f"ran as it is, 5 calls: {WHY}" in text and "not called in this process" not in text
    assert warmgraph.stats(cached)[0].kinds["entries"].refused == 5


def test_what_is_refused_is_kept_with_its_reason_and_its_cure(folder):
    cached = refused()
    for _ in range(5):
        cached(X)
    warmgraph.stats()
    usage, found = written(folder, 5)
    assert found["refusals"] == 5 and {"kind": "refused", "reason": "differs_under_capture", "count": 5, "bytes": 0} in found["events"]
    lines = (usage.parent / "misses.jsonl").read_text().splitlines()
    miss = json.loads(lines[-1])
    assert len(lines) == 2 and miss["end"] == "refused" and miss["calls"] == 5 and miss["reason"].startswith(WHY)
    assert "Do not ask in the function whether the stream is capturing" in miss["reason"]


def test_the_command_shows_it(folder):
    cached = refused()
    for _ in range(3):
        cached(X)
    warmgraph.stats()
    written(folder, 3)
    at = ("--cache-dir", str(folder))
    explained = command("explain", "net/decode", *at)
    assert "decode runs as it is (3 calls of process" in explained and WHY in explained and "record it: run it once" not in explained
    row = next(line for line in command("ls", *at).splitlines() if "decode" in line)
    assert row.endswith("3 calls: differs_under_capture")
    stats = command("stats", *at)
    assert f"decode runs as it is (3 calls: differs_under_capture): {WHY}" in stats and "Do not ask in the function whether" in stats
    (one,) = json.loads(command("stats", "--json", *at))["functions"]
    assert one["refusals"] == 3 and one["refusal"].startswith(WHY)
    assert json.loads(command("explain", "net/decode", "--json", *at))["runs_as_it_is"]["calls"] == 3
    prometheus = command("stats", "--prometheus", *at)
    assert any(line.startswith("warmgraph_refusals_total{") and line.endswith(" 3") for line in prometheus.splitlines())
    assert 'kind="refused",reason="differs_under_capture"} 3' in prometheus
    page = folder.parent / "report.html"
    command("report", "-o", str(page), *at)
    assert "3 calls: differs_under_capture" in page.read_text() and WHY in page.read_text()


def test_a_reason_has_one_line_however_often_it_comes_and_functions_one_each(folder):
    first, second = refused(), refused("other")
    for _ in range(100):
        first(X)
    second(X), first(X)
    warmgraph.stats()
    (misses,) = folder.glob("*/*/decode/misses.jsonl")
    assert [json.loads(line)["calls"] for line in misses.read_text().splitlines()[1:]] == [101]
    assert _refusals.summary().startswith("2 functions ran as they are: decode (101 calls: the function behaves differently")
    assert "warmgraph explain net/decode" in _refusals.summary()


def test_what_is_recorded_later_is_reported_as_such():
    def work(x: Any) -> Any:
        return x * (3 if host.is_captured() and x.numel() == 8 else 2)

    cached = warmgraph.cache_compile(work, compile=False, config=warmgraph.Config(model="net"))
    cached(X)
    assert cached.report().outcome == "refused"
    cached(X[:4].clone())
    assert cached.report().outcome == "replayed" and _refusals.summary().startswith("1 function ran as it is")


def test_a_graph_of_an_engine_that_is_refused_is_counted():
    graphs = GraphCache(config=warmgraph.Config(model="engine"))
    graphs.capture_one(4, lambda x=X.clone(): x * (3 if host.is_captured() else 2))
    assert _refusals.summary().startswith("1 function ran as it is: graphs-4 (1 call: ")


@pytest.mark.parametrize("why, word", [
    ("it enqueues aten.mul.Tensor in the default stream of cuda:0, which is not captured with it: ...", "another_stream"),
    ("self.steps was 'int 2' before the call and is 'int 3' after it: a replay would not change it. ...", "changes_python_values"),
    ("it draws random numbers on the host (torch), which a replay would not draw", "host_random"),
    ("x requires grad: call it under torch.no_grad(), or detach it", "gradients"),
    ("what nobody thought of", "not_recordable")])
def test_reasons_have_short_words(why, word):
    assert _refusals.word_of(why) == word


def test_one_line_at_the_end_of_the_process_says_it(process):
    done = process("""
        import logging
        logging.basicConfig(level=logging.WARNING)

        @wg.cache_compile(outputs=lambda x: wg.like(x), config=wg.Config(model="toy"))
        def stepping(x):
            settings["items"] = items
            y = wg.empty_like(x)
            program.launch("scale", x.size // 16, 16, x, y, np.float32(2))
            return y

        items, settings = iter([1]), {}
        print([stepping(x)[3] for _ in range(3)])
    """)
    assert done.lines() == ["[6.0, 6.0, 6.0]"] or "6.0" in done.out
    (line,) = [one for one in done.err.splitlines() if "ran as it is" in one]
    assert line.startswith("WARNING:warmgraph:1 function ran as it is: stepping (3 calls: ") and "warmgraph explain toy/stepping" in line
