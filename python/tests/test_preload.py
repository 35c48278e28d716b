"""Cache.preload restores entries before the calls that need them."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warmgraph as wg


def test_functions_are_preloaded_by_name_and_all_that_exist(device: wg.Device, program: wg.Program) -> None:
    def body(run: Any) -> None:
        at = {name: run.address(name) for name in ("x", "y")}
        program.launch("scale", 4, 16, *(array(name, at[name], run) for name in at), np.float32(2.0))

    def array(name: str, at: Any, run: Any) -> wg.Array:
        made = wg.Array(device, None, (at.base, at.offset), (64,), "f32")
        made._run = run
        return made

    spec = wg.Spec({"x": wg.Tensor(64, "f32")}, {"y": wg.Tensor(64, "f32")}, code=[program], version="1")
    x, y = device.array(np.arange(64, dtype=np.float32)), device.empty(64, "f32")
    for name in ("table-1", "table-2", "other"):
        assert wg.Cache("toy").wrap(name, device, spec, body)({"x": x, "y": y}) == "recorded"

    cache, told = wg.Cache("toy", config=wg.Config(policy="require_hit")), []
    now = cache.preload(["table-*", "none"], device, wait=True, progress=told.append)
    assert now is not None and (now.loaded, now.failed, now.total) == (2, 0, 2)
    assert sorted(one.function for one in told) == ["table-1", "table-2"] and told[-1].loaded == 2
    assert cache.preload(["other"], device) is None
    for name in ("table-1", "table-2", "other"):
        function = cache.wrap(name, device, spec, body)
        assert function({"x": x, "y": y}) == "replayed" and y.numpy()[3] == 6
    assert cache.statistics().kinds["entries"].hits == 3

    again = wg.Cache("toy", config=wg.Config(policy="require_hit"))
    functions = [again.wrap(name, device, spec, body) for name in ("table-1", "other")]
    now = again.preload(wait=True)
    assert now is not None and (now.loaded, now.total) == (2, 2)
    assert [function({"x": x, "y": y}) for function in functions] == ["replayed"] * 2


def test_wrong_wishes_are_refused(device: wg.Device) -> None:
    cache = wg.Cache("toy")
    with pytest.raises(wg.InvalidArgument, match="without a device"):
        cache.preload(["f"])
    with pytest.raises(wg.InvalidArgument, match="function name"):
        cache.preload(["../f"], device)
    with pytest.raises(wg.InvalidArgument, match="pass wait=True"):
        cache.preload(["f"], device, progress=print)
