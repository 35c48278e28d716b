"""Artifacts that a process made or used are loaded into another folder; bundles are read without unpacking them."""
from __future__ import annotations

import os
import pathlib

import pytest

import warmgraph
from conftest import PRELUDE

SAVE = """
print(scale(x, 2.0)[3], scale.report().outcome)
saved, info = wg.save_cache_artifacts()
open({path!r}, "wb").write(saved)
print([kind.kind for kind in info.kinds], info.kinds[0].count, info.kinds[0].seconds > 0, dict(info.skipped))
"""


@pytest.fixture
def saved(process, tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "cache.wgb"
    assert process(SAVE.format(path=str(path))).lines() == ["6.0 recorded", "['entries', 'images', 'compiled'] 1 True {}"]
    os.chmod(path, 0o600)
    return path


def test_nothing_is_saved_where_nothing_was_made_or_used(process, saved):
    script = """
        wg.stats(scale)  # opens the cache
        print(wg.save_cache_artifacts())
        scale(x, 2.0)
        print(scale.report().outcome, wg.save_cache_artifacts()[1].kinds[0].count)
    """
    assert process(script).lines() == ["None", "replayed 1"]


def test_loaded_artifacts_make_the_first_call_a_hit_in_another_folder(process, saved, tmp_path):
    script = f"""
        loaded = wg.load_cache_artifacts(open({str(saved)!r}, "rb").read(), device=device)
        print([kind.count for kind in loaded.kinds], dict(loaded.there), dict(loaded.skipped))
        print(scale(x, 2.0)[3], scale.report().outcome)
        again = wg.load_cache_artifacts(open({str(saved)!r}, "rb").read(), device=device)
        print(again.kinds, len(again.there))
    """
    assert process(script, WARMGRAPH_CACHE_DIR=str(tmp_path / "elsewhere")).lines() == ["[1, 1, 1] {} {}", "6.0 replayed", "() 3"]


def test_a_bundle_serves_where_it_lies_without_a_folder(process, saved, tmp_path):
    layered = PRELUDE.replace('model="toy"', f'model="toy", policy="require_hit", bundles=[{str(saved)!r}]')
    assert layered != PRELUDE
    call = "print(scale(x, 2.0)[3], scale.report().outcome)\n"
    nowhere = tmp_path / "nowhere"
    assert process(layered + call, bare=True, WARMGRAPH_CACHE_DIR=str(nowhere)).lines() == ["6.0 replayed"]
    assert not nowhere.exists()


def test_a_bundle_is_asked_before_it_is_opened(saved, device):
    check = warmgraph.Cache("toy").check_bundle(device, saved)
    assert check["verdict"] == "fits" and "backend opencl" in check["environment"]
    assert len(check["environment_key"]) == 12 and check["environment_here"] == check["environment_key"]
    assert [(entry["name"].split("/")[0], entry["verdict"]) for entry in check["entries"]] == [("entries", "fits"), ("compiled", "fits")]


def test_a_new_shape_compiles_nothing_where_a_bundle_has_its_program(process, saved, tmp_path):
    layered = PRELUDE.replace('model="toy"', f'model="toy", policy="no_compile", bundles=[{str(saved)!r}]')
    assert layered != PRELUDE
    call = "print(scale(np.arange(128, dtype=np.float32), 2.0)[3], scale.report().outcome)\n"
    assert process(layered + call, bare=True, WARMGRAPH_CACHE_DIR=str(tmp_path / "elsewhere")).lines() == ["6.0 recorded"]


def test_damaged_artifacts_are_a_typed_error(saved, device, tmp_path):
    data, cache = saved.read_bytes(), warmgraph.Cache("toy", cache_dir=tmp_path / "elsewhere")
    with pytest.raises(warmgraph.Corrupt, match="truncated"):
        cache.load_cache_artifacts(device, data[:-1])
    with pytest.raises(warmgraph.Corrupt, match="its header alone takes"):
        cache.load_cache_artifacts(device, b"")
    damaged = bytearray(data)
    damaged[300] ^= 1
    assert len(cache.load_cache_artifacts(device, bytes(damaged)).skipped) == 1
    assert cache.load_cache_artifacts(device, data).kinds[0].names[0].startswith("entries/toy_")


def test_a_kind_that_is_off_is_neither_used_nor_counted(process, saved):
    off = PRELUDE.replace('model="toy"', 'model="toy", kinds=["compiled", "tuned"]')
    assert off != PRELUDE
    script = "print(scale(x, 2.0)[3], scale.report().outcome, wg.stats(scale)[0].kinds['entries'].misses)\n"
    assert process(off + script, bare=True).lines() == ["6.0 eager 0"]
