"""PyTorch's own compile caches, carried from process to process: Inductor compiles for the host here."""
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
from warmgraph.torch import _mega_cache  # noqa: E402

# A process of its own, with nothing in Inductor's folder: what it finds came through the cache.
PRELUDE = """
import json, sys
import pytest, torch
import torch_on_the_host as host
import warmgraph as wg

host.use(pytest.MonkeyPatch())
config = wg.Config(model="net", mega_cache=True, **json.loads(sys.argv[1]))
x = torch.arange(64.0)

@wg.cache_compile(config=config)
def first(x):
    return torch.sin(x) * 2 + x

@wg.cache_compile(config=config)
def second(x):
    return torch.cos(x) - x * 3

def told():
    from torch._dynamo.utils import counters
    from warmgraph.torch import _mega_cache
    one = _mega_cache.counts
    print(json.dumps([counters["inductor"]["fxgraph_cache_hit"], counters["inductor"]["fxgraph_cache_miss"], one.handed, one.kept, one.failures,
                      one.last_failure]))
"""
BOTH = "assert torch.allclose(first(x), torch.sin(x) * 2 + x) and torch.allclose(second(x), torch.cos(x) - x * 3)\ntold()\n"


@pytest.fixture
def key(tmp_path: pathlib.Path) -> str:
    return new_key(tmp_path / "release.key")


@pytest.fixture
def run(tmp_path: pathlib.Path, folder: pathlib.Path) -> Any:
    count = iter(range(100))

    def run(script: str, cache: pathlib.Path = folder, **options: Any) -> list[Any]:
        path, own = tmp_path / "script.py", tmp_path / f"inductor{next(count)}"
        path.write_text(PRELUDE + script)
        here = os.path.dirname(os.path.abspath(__file__))
        environment = {**os.environ, "WARMGRAPH_CACHE_DIR": str(cache), "TORCHINDUCTOR_CACHE_DIR": str(own),
                       "PYTHONPATH": os.pathsep.join([here, os.environ.get("PYTHONPATH", "")])}
        done = subprocess.run([sys.executable, str(path), json.dumps(options)], capture_output=True, text=True, check=False, env=environment,
                              timeout=600)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    return run


def test_what_one_process_compiled_is_a_hit_of_pytorchs_in_the_next(run, key):
    (hits, misses, handed, kept, failures, why), = run(BOTH, sign_with_file=key)
    assert (hits, misses, handed, failures) == (0, 2, 0, 0) and kept > 0, why
    (hits, misses, handed, again, failures, why), = run(BOTH, sign_with_file=key)
    assert (hits, misses, failures, again) == (2, 0, 0, 0), why  # both functions, kept after two misses of one process
    assert handed == kept


def test_a_process_that_only_accepts_the_key_is_given_them_and_keeps_nothing(run, key):
    run(BOTH, sign_with_file=key)
    (hits, misses, _, kept, failures, why), = run(BOTH, accept_file=key)
    assert (hits, misses, kept, failures) == (2, 0, 0, 0), why


def test_what_a_later_process_adds_does_not_push_out_what_was_there(run, key):
    run("first(x)\ntold()\n", sign_with_file=key)
    run("second(x)\ntold()\n", sign_with_file=key)
    (hits, misses, *_), = run(BOTH, accept_file=key)
    assert (hits, misses) == (2, 0)


def test_artifacts_of_another_key_cost_a_compilation_and_nothing_else(run, key, tmp_path):
    run(BOTH, sign_with_file=key)
    (hits, misses, handed, kept, failures, why), = run(BOTH, accept_file=new_key(tmp_path / "other.key", "other"))
    assert (hits, misses, handed, kept) == (0, 2, 0, 0) and failures == 1 and "is not accepted" in why


def test_a_bundle_carries_them_to_another_folder(run, key, tmp_path):
    path = tmp_path / "cache.wgb"
    _, kinds = run(BOTH + f"""
saved, info = wg.save_cache_artifacts(include_torch=True)
open({str(path)!r}, "wb").write(saved)
print(json.dumps([kind.kind for kind in info.kinds]))
""", sign_with_file=key)
    assert kinds == ["torch"]
    path.chmod(0o600)
    (hits, misses, *_), = run(BOTH, cache=tmp_path / "elsewhere", accept_file=key, bundles=[str(path)])
    assert (hits, misses) == (2, 0)


# --- when it is asked at all


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What was done with PyTorch's artifacts, in its order."""
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
    from warmgraph.torch import _function

    monkeypatch.setattr(_function.TorchFunction, "_why_missing", lambda *_: "there is none")
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
    assert "2 failures, the last: what PyTorch compiled is not kept: of no use" in warmgraph.explain(cached)


def test_bytes_that_pytorch_does_not_read_are_a_failure_that_names_it(asked, key, monkeypatch):
    monkeypatch.undo()
    carrier = _mega_cache.Carrier(warmgraph.Cache("net", config=warmgraph.Config(sign_with_file=key)), {"torch": "x"})
    carrier._cache.put_torch_artifacts({"torch": "x"}, b"no artifacts")
    with pytest.raises(errors.Corrupt, match="does not read its own artifacts"):
        carrier.hand_over()
    carrier.hand_over()  # once in a process
