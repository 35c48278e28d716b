"""Passes memory of other CUDA libraries as arguments, with a fake driver that runs on the host (tests/fakes/fake_cuda)."""
from __future__ import annotations

import os

import pytest

FAKE = os.environ.get("WARMGRAPH_FAKE_CUDA", "")

SCRIPT = """

import numpy as np
import warmgraph as wg

device = wg.Device("cuda")
memory = device.array(np.arange(64, dtype=np.float32))

class Foreign:
    shape, dtype = (32,), "f32"
    @property
    def __cuda_array_interface__(self):
        pointer = memory._address[0] + memory._address[1] + 4 * 8
        return {"shape": (32,), "typestr": "<f4", "data": (pointer, False), "version": 3}

@wg.cache_compile(outputs=lambda x, more: [wg.like(x), wg.like(more)], config=wg.Config(model="toy"))
def copies(x, more):
    results = []
    for one in (x, more):
        y = wg.empty_like(one)
        wg.copy(y, one)
        results.append(y)
    return results

x = Foreign()
left, right = copies(x, memory)
print(copies.report().outcome, left.numpy()[:2].tolist(), right.numpy()[:2].tolist())
view = device.view(x)
print(view.shape, view.dtype, view._keep is x)
try:
    copies(memory, wg.Device("opencl").zeros(32, "f32"))
except wg.InvalidArgument as error:
    print(error)
try:
    view.numpy()
except wg.Unsupported as error:
    print("memory of another library" in str(error))
"""


@pytest.mark.skipif(not FAKE, reason="this build has no CUDA backend, and so no fake driver")
def test_memory_of_others_is_recorded_and_replayed(process):
    driver = {"WARMGRAPH_CUDA_DRIVER": FAKE, "WARMGRAPH_NVRTC": FAKE, "WARMGRAPH_CUPTI": FAKE}
    for outcome in ("recorded", "replayed"):
        assert process(SCRIPT, bare=True, **driver).lines() == [
            f"{outcome} [8.0, 9.0] [0.0, 1.0]", "(32,) f32 True",
            "<warmgraph.Array f32[32] on opencl:0> is not on cuda:0: move it there", "True"]
