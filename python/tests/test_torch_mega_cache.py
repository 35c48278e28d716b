"""PyTorch's own compile caches are passed from process to process. Inductor compiles for the host here."""
from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from typing import Any, Iterator

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed here")

import torch_on_the_host as host  # noqa: E402
import warmgraph  # noqa: E402
from test_mega_cache import new_key  # noqa: E402
from warmgraph import errors  # noqa: E402
from warmgraph.torch import GraphCache  # noqa: E402
from warmgraph.torch.record import _mega_cache  # noqa: E402

# Runs in a new process with an empty Inductor folder, so all artifacts must come from the cache.
SCRIPT = """
import json, sys
import pytest, torch
import torch_on_the_host as host
import warmgraph as wg

import torch._inductor.config, torch._inductor.cpu_vec_isa
# Compiled once in each process, for kernels of 64 elements: PyTorch's headers, and a program for each kind of vector instructions.
torch._inductor.config.cpp_cache_precompile_headers = False
torch._inductor.cpu_vec_isa.valid_vec_isa_list = lambda: []

host.use(pytest.MonkeyPatch())
calls, bundle, options = json.loads(sys.argv[1])
x = torch.arange(64.0)
functions = {
    "first": lambda x: torch.sin(x) * 2 + x,
    "second": lambda x: torch.cos(x) - x * 3,
    "third": lambda x: torch.tanh(x) * x,
}
for name in calls:
    cached = wg.cache_compile(functions[name], name=name, config=wg.Config(model="net", mega_cache=True, **options))
    assert torch.allclose(cached(x), functions[name](x))
if bundle:
    saved, info = wg.save_cache_artifacts(include_torch=True)
    open(bundle, "wb").write(saved)
from torch._dynamo.utils import counters
from warmgraph.torch.record import _mega_cache
one = _mega_cache.counts
print(json.dumps([counters["inductor"]["fxgraph_cache_hit"], counters["inductor"]["fxgraph_cache_miss"], one.handed, one.kept, one.failures,
                  one.last_failure]))
"""


class Made:
    """A cache folder and its bundle. Two processes filled it: one compiled two functions, the next a third one."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder, self._count = folder, iter(range(100))
        self.key, self.bundle = new_key(folder / "release.key"), folder / "cache.wgb"
        self.first = self.run(["first", "second"], sign_with_file=self.key)
        self.second = self.run(["third"], bundle=str(self.bundle), sign_with_file=self.key)
        self.bundle.chmod(0o600)

    def run(self, calls: list[str], cache: str = "cache", bundle: str = "", **options: Any) -> list[Any]:
        path, own = self._folder / "script.py", self._folder / f"inductor{next(self._count)}"
        path.write_text(SCRIPT)
        here = os.path.dirname(os.path.abspath(__file__))
        environment = {**os.environ, "WARMGRAPH_CACHE_DIR": str(self._folder / cache), "TORCHINDUCTOR_CACHE_DIR": str(own),
                       "PYTHONPATH": os.pathsep.join([here, os.environ.get("PYTHONPATH", "")])}
        done = subprocess.run([sys.executable, str(path), json.dumps([calls, bundle, options])], capture_output=True, text=True, check=False,
                              env=environment, timeout=600)
        assert done.returncode == 0, done.stderr
        found: list[Any] = json.loads(done.stdout.splitlines()[-1])
        return found


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return Made(tmp_path_factory.mktemp("mega_cache"))


@pytest.fixture
def key(tmp_path: pathlib.Path) -> str:
    return new_key(tmp_path / "release.key")


def test_what_two_processes_compiled_are_hits_of_pytorchs_in_the_next(made):
    hits, misses, handed, kept, failures, why = made.first
    assert (hits, misses, handed, failures) == (0, 2, 0, 0) and kept > 0, why
    hits, misses, handed, more, failures, why = made.second
    assert (hits, misses, handed, failures) == (0, 1, kept, 0) and more > 0, why
    hits, misses, handed, again, failures, why = made.run(["first", "second", "third"], sign_with_file=made.key)
    # The numbers are sums over both processes and both misses of the first process.
    assert (hits, misses, handed, again, failures) == (3, 0, kept + more, 0, 0), why


def test_a_bundle_brings_them_to_a_process_that_only_accepts_the_key(made):
    hits, misses, _, kept, failures, why = made.run(["third", "first"], "elsewhere", accept_file=made.key, bundles=[str(made.bundle)])
    assert (hits, misses, kept, failures) == (2, 0, 0, 0), why


def test_artifacts_of_another_key_cost_a_compilation_and_nothing_else(made, tmp_path):
    hits, misses, handed, kept, failures, why = made.run(["third"], accept_file=new_key(tmp_path / "other.key", "other"))
    assert (hits, misses, handed, kept, failures) == (0, 1, 0, 0, 1) and "is not accepted" in why


# --- when PyTorch's artifacts are used at all


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A list of the operations on PyTorch's artifacts, in order."""
    done: list[str] = []
    host.use(monkeypatch)
    monkeypatch.setattr(_mega_cache, "_carriers", {})
    monkeypatch.setattr(_mega_cache, "counts", _mega_cache.Counts())
    monkeypatch.setattr(_mega_cache.Carrier, "hand_over", lambda self: done.append("hand over"))
    monkeypatch.setattr(_mega_cache.Carrier, "keep", lambda self: done.append("keep"))
    yield done


def wrapped(key: str, **options: Any) -> Any:
    compile = options.pop("compile", {"backend": "eager"})
    config = warmgraph.Config(**{"model": "net", "mega_cache": True, "sign_with_file": key, **options})
    return warmgraph.cache_compile(add_one, compile=compile, config=config)


def add_one(x: Any) -> Any:
    return x + 1


def test_a_miss_hands_over_before_it_compiles_and_keeps_after(asked, key):
    cached = wrapped(key)
    x = torch.ones(4)
    cached(x)
    assert asked == ["hand over", "keep"]
    cached(x)
    cached(torch.ones(4))
    assert asked == ["hand over", "keep"], "a later call is no miss"
    wrapped(key)(x)
    assert asked == ["hand over", "keep"], "a first call that finds its entry is a hit"


@pytest.mark.parametrize("options", [{"mega_cache": False}, {"compile": False}, {"policy": "off"}, {"policy": "no_compile"}])
def test_nothing_is_asked_where_it_is_off_or_nothing_is_compiled(asked, key, options):
    wrapped(key, **options)(torch.ones(4))
    assert asked == []


def test_require_hit_asks_for_nothing(asked, key, monkeypatch):
    from warmgraph.torch.calls import _torch_function

    monkeypatch.setattr(_torch_function.TorchFunction, "_why_missing", lambda *_: "there is none")
    with pytest.raises(errors.MissForbidden):
        wrapped(key, policy="require_hit")(torch.ones(4))
    assert asked == []


def test_read_only_is_given_them_and_keeps_nothing(asked, key):
    wrapped(key, policy="read_only")(torch.ones(4))
    assert asked == ["hand over"]


def test_a_failure_is_logged_and_counted_and_the_call_goes_on(asked, key, monkeypatch, caplog):
    def fail(self: Any) -> None:
        raise errors.Corrupt("of no use")

    monkeypatch.setattr(_mega_cache.Carrier, "hand_over", fail)
    monkeypatch.setattr(_mega_cache.Carrier, "keep", fail)
    cached = wrapped(key)
    assert torch.equal(cached(torch.ones(4)), torch.full((4,), 2.0))
    assert _mega_cache.counts.failures == 2 and "of no use" in caplog.text
    assert "2 failures, the last: artifacts that PyTorch compiled are not stored: of no use" in warmgraph.explain(cached)


def captured(key: str, size: int = 4, forward: Any = None, **options: Any) -> Any:
    """A graph of an engine whose function compiles itself."""
    x, work = torch.ones(size), torch.compile(add_one, backend="eager")
    cache = GraphCache(config=warmgraph.Config(**{"model": "net", "mega_cache": True, "sign_with_file": key, **options}))
    return cache.capture_one(size, forward or (lambda: work(x)))[0]


def test_an_engines_miss_is_handed_them_and_its_hit_is_not(asked, key):
    assert captured(key).outcome == "recorded" and asked == ["hand over", "keep"]
    assert captured(key).outcome == "replayed" and asked == ["hand over", "keep"]
    assert captured(key, 8).outcome == "recorded" and asked == ["hand over", "keep"] * 2


def test_what_pytorch_alone_captures_is_handed_them_too(asked, key, monkeypatch):
    assert captured(key, policy="read_only").outcome == "captured" and asked == ["hand over"]
    asked.clear()

    def refuse(*_: Any) -> Any:
        raise errors.NotRecordable("no graph")

    monkeypatch.setattr(host._recording.Recording, "adopted", refuse)
    assert captured(key).outcome == "captured" and asked == ["hand over", "keep"]


def test_an_answer_that_makes_something_is_handed_them_once(asked, key):
    made: dict[str, Any] = {}

    def forward() -> Any:
        if "x" not in made:
            made["x"] = torch.zeros(4)
        return x + made["x"]

    x = torch.ones(4)
    assert captured(key, forward=forward).outcome == "recorded" and asked == ["hand over", "keep"]


def test_an_engine_whose_function_fails_keeps_nothing(asked, key):
    def forward() -> Any:
        raise KeyError("mine")

    weight = torch.ones(4)
    with pytest.raises(KeyError, match="mine"):
        captured(key, forward=lambda: forward() + weight)
    assert asked == ["hand over"]


@pytest.mark.parametrize("options", [{"mega_cache": False}, {"policy": "off"}])
def test_an_engine_asks_for_nothing_where_it_is_off(asked, key, options):
    assert captured(key, **options).outcome == ("recorded" if "mega_cache" in options else "captured") and asked == []


def test_an_engine_without_a_key_is_an_error(monkeypatch):
    for name in _mega_cache._SIGNS:
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(errors.InvalidArgument, match="no key says whose artifacts"):
        GraphCache(config=warmgraph.Config(model="net", mega_cache=True))


def test_bytes_that_pytorch_does_not_read_are_a_failure_that_names_it(asked, key, monkeypatch):
    monkeypatch.undo()
    carrier = _mega_cache.Carrier(warmgraph.Cache("net", config=warmgraph.Config(sign_with_file=key)), {"torch": "x"})
    carrier._cache.put_artifact("torch", {"torch": "x"}, b"no artifacts")
    with pytest.raises(errors.Corrupt, match="cannot read its own artifacts"):
        carrier.hand_over()
    carrier.hand_over()  # the second call does nothing, because artifacts are given once per process
