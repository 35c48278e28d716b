"""Adopts a graph that PyTorch captured, through warmgraph's C interface.

usage: adopt_torch_graph.py LIBWARMGRAPH FOLDER [once]

Leaves in FOLDER: cache/ (the entry), x.bin and <weight>.bin (contents), out.bin (the output of PyTorch's own replay), regions.txt (rows and
columns of x; then name, bytes). With `once`, only one capture is passed, and the adoption must be refused.
"""
import ctypes as c
import pathlib
import sys
import time

import warmgraph_c as wg

library_path, folder, once = sys.argv[1], pathlib.Path(sys.argv[2]), len(sys.argv) > 3
library = wg.Library(library_path)
device = library.made("wg_device_open", b"cuda:0")
# This must be called before PyTorch loads code: the tracker keeps the code of cuBLAS, Triton and attention kernels from here on.
library.call("wg_prepare_recording", device)

import torch  # noqa: E402: after warmgraph, on purpose

import capture_block as block_module  # noqa: E402

started = time.perf_counter()
block, compiled, first, second, spacer = block_module.capture_twice()
print(f"compiled, warmed up and captured twice in {time.perf_counter() - started:.2f} s")

options = wg.CacheOptions()
library.call("wg_cache_options_init", c.byref(options), c.c_uint64(c.sizeof(options)))
options.model = b"torch-block"
options.cache_dir = str(folder / "cache").encode()
options.world_size, options.global_rank = 1, 0
cache = library.made("wg_cache_open", c.byref(options))

sizes = (c.c_int64 * 2)(block_module.ROWS, block_module.DIM)
inputs = wg.array(wg.TensorDecl, [wg.TensorDecl(b"x", wg.BF16, 2, sizes)])
outputs = wg.array(wg.TensorDecl, [wg.TensorDecl(b"out", wg.BF16, 2, sizes)])
weights = [r for r in first.regions if r.name not in ("x", "out")]
states = wg.array(wg.StateDecl, [wg.StateDecl(r.name.encode(), wg.Memory.at(r.pointer, r.size), wg.READ_ONLY) for r in weights])
spec = wg.FunctionSpec()
spec.size, spec.name, spec.version = c.sizeof(spec), b"block", b"torch-block 1"
spec.inputs, spec.input_count = inputs, 1
spec.outputs, spec.output_count = outputs, 1
spec.states, spec.state_count = states, len(states)

torch.cuda.synchronize()
natives = [wg.native_capture(first), wg.native_capture(second)]
adoption = wg.Adoption(c.sizeof(wg.Adoption), c.pointer(natives[0]), None if once else c.pointer(natives[1]), 0, None, 0)
started = time.perf_counter()
try:
    function = library.made("wg_cache_adopt", cache, device, c.byref(spec), c.byref(adoption))
except wg.Failure as failure:
    print(f"refused: {failure}")
    sys.exit(3)
print(f"adopted in {time.perf_counter() - started:.2f} s")

# The reference is PyTorch's own replay of the first capture.
first.graph.replay()
torch.cuda.synchronize()
tensors = dict(zip([r.name for r in first.regions], first.keep))
with open(folder / "regions.txt", "w") as index:
    index.write(f"{block_module.ROWS} {block_module.DIM}\n")
    for region in first.regions:
        tensor = tensors[region.name]
        data = tensor.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes()
        assert len(data) == region.size
        (folder / f"{region.name}.bin").write_bytes(data)
        index.write(f"{region.name} {region.size}\n")
timing = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
timing[0].record()
for _ in range(200):
    first.graph.replay()
timing[1].record()
torch.cuda.synchronize()
print(f"native replay {timing[0].elapsed_time(timing[1]) / 200 * 1000:.1f} us")
library.call("wg_function_destroy", function)
library.call("wg_cache_close", cache)
