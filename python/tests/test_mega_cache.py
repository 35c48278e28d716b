"""PyTorch's compiled artifacts are stored as opaque bytes, and returned only with a key."""
from __future__ import annotations

import os
import pathlib
import secrets

import pytest

import warmgraph
from warmgraph import errors

FACTS = {"torch": "2.11.0", "gpu": "NVIDIA H100", "model": "net"}
DATA = b"pickles, as far as anybody knows" * 1000


def new_key(path: pathlib.Path, name: str = "release") -> str:
    path.write_text(f"{name}:hmac-sha256:{secrets.token_hex(32)}\n")
    path.chmod(0o600)
    return str(path)


@pytest.fixture
def key(tmp_path: pathlib.Path) -> str:
    return new_key(tmp_path / "release.key")


def cache(**options) -> warmgraph.Cache:
    return warmgraph.Cache("net", config=warmgraph.Config(**options))


def test_artifacts_are_found_by_their_facts_where_the_key_is_accepted(key):
    assert cache(sign_with_file=key).artifact("torch", FACTS) is None
    cache(sign_with_file=key).put_artifact("torch", FACTS, DATA)
    assert cache(sign_with_file=key).artifact("torch", FACTS) == DATA
    assert cache(accept_file=key).artifact("torch", FACTS) == DATA
    for name in FACTS:
        assert cache(accept_file=key).artifact("torch", {**FACTS, name: "another"}) is None


def test_without_a_key_nothing_is_kept_and_nothing_given(key, folder):
    with pytest.raises(errors.Untrusted, match="sign_with_file"):
        cache().put_artifact("torch", FACTS, DATA)
    assert not (folder / "torch").exists()
    cache(sign_with_file=key).put_artifact("torch", FACTS, DATA)
    with pytest.raises(errors.Untrusted, match="accept_file"):
        cache().artifact("torch", FACTS)  # raises, although the configuration does not require signatures


def test_artifacts_of_another_key_and_damaged_ones_are_refused(key, folder, tmp_path):
    cache(sign_with_file=key).put_artifact("torch", FACTS, DATA)
    with pytest.raises(errors.Untrusted, match="'release', which is not accepted"):
        cache(sign_with_file=new_key(tmp_path / "other.key", "other")).artifact("torch", FACTS)
    with pytest.raises(errors.Untrusted, match="forged"):
        cache(sign_with_file=new_key(tmp_path / "same.key")).artifact("torch", FACTS)
    (path,) = folder.glob("torch/*/*.mega_cache")
    changed = bytearray(path.read_bytes())
    changed[-1] ^= 1
    path.write_bytes(changed)
    damaged = cache(sign_with_file=key)
    assert damaged.artifact("torch", FACTS) is None and not path.exists()


def test_what_cannot_be_kept_is_refused(key):
    owner = cache(sign_with_file=key)
    for facts, data in (({}, DATA), ({"gpu": "x" * 2000}, DATA), (FACTS, b"")):
        with pytest.raises(errors.InvalidArgument):
            owner.put_artifact("torch", facts, data)
    for use in (lambda: owner.put_artifact("tuned", FACTS, DATA), lambda: owner.artifact("tuned", FACTS)):
        with pytest.raises(errors.InvalidArgument, match="the kind 'tuned': expected torch"):
            use()


def test_a_bundle_carries_them_only_where_that_was_asked_for_and_signed(key, tmp_path, device):
    first = cache(sign_with_file=key)
    first.put_artifact("torch", FACTS, DATA)
    assert first.save_cache_artifacts() is None
    saved, info = first.save_cache_artifacts(include_torch=True)
    assert [(kind.kind, kind.count) for kind in info.kinds] == [("torch", 1)] and len(saved) < len(DATA)
    with pytest.raises(errors.InvalidArgument, match="signed artifacts: set sign_with_file"):
        cache().save_cache_artifacts(include_torch=True)

    def elsewhere(name: str, **options) -> warmgraph.Cache:
        return warmgraph.Cache("net", config=warmgraph.Config(**options), cache_dir=tmp_path / name)

    for name, options in (("a", {}), ("b", {"accept_file": new_key(tmp_path / "other.key", "other")})):
        loaded = elsewhere(name, **options).load_cache_artifacts(device, saved)
        assert loaded.kinds == () and "not accepted" in next(iter(loaded.skipped.values()))
    third = elsewhere("c", accept_file=key)
    assert [kind.kind for kind in third.load_cache_artifacts(device, saved).kinds] == ["torch"]
    assert third.artifact("torch", FACTS) == DATA


def test_a_bundle_is_read_where_it_lies(key, tmp_path):
    first = cache(sign_with_file=key)
    first.put_artifact("torch", FACTS, DATA)
    path = tmp_path / "cache.wgb"
    path.write_bytes(first.save_cache_artifacts(include_torch=True)[0])
    os.chmod(path, 0o600)
    config = warmgraph.Config(accept_file=key, bundles=[str(path)])
    layered = warmgraph.Cache("net", config=config, cache_dir=tmp_path / "elsewhere")
    assert layered.artifact("torch", FACTS) == DATA and not (tmp_path / "elsewhere" / "torch").exists()


def test_mega_cache_is_off_and_wants_a_key(key, monkeypatch):
    assert warmgraph.Config().mega_cache is False
    for name in ("WARMGRAPH_SIGN_KEY", "WARMGRAPH_SIGN_KEY_FILE", "WARMGRAPH_ACCEPT_KEYS", "WARMGRAPH_ACCEPT_KEYS_FILE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(errors.InvalidArgument, match="set sign_with_file or accept_file"):
        warmgraph.cache_compile(lambda x: x, config=warmgraph.Config(mega_cache=True))
    warmgraph.cache_compile(lambda x: x, config=warmgraph.Config(mega_cache=True, accept_file=key))
    monkeypatch.setenv("WARMGRAPH_SIGN_KEY_FILE", key)
    warmgraph.cache_compile(lambda x: x, config=warmgraph.Config(mega_cache=True))
