"""A decode step of a Llama-style model: captured by PyTorch, adopted, and replayed by a new process without PyTorch.

usage: llama_step.py LIBWARMGRAPH [--layers 16] [--dim 2048] [--heads 16] [--hidden 5632] [--vocabulary 32000] [--batch 8]
                     [--context 1024] [--attention efficient|math|any] [--runs 3] [--folder DIR] [--json FILE]

The defaults have 1.9 GB of weights, 1.1 GB of KV cache and about 182 graph nodes. For about 16.6 GB of weights: --layers 33 --dim 4096
--heads 32 --hidden 14336. Every stage runs in its own process: one process captures twice and adopts, and --runs processes restore. Their
time is measured from wg_cache_open, with the context and all memory ready, until the logits are on the host. bench/torch_peers.py compares
the same step with PyTorch's own ways to start. --folder is kept; without it a folder in /dev/shm is used and removed at the end.
$WARMGRAPH_CUPTI is the path of CUPTI, as for the other scripts. Exit status: 0 if the results are right, 1 if they are wrong or a stage
failed, 3 if the adoption is refused.
"""
import argparse
import array
import contextlib
import ctypes as c
import json
import mmap
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import memory_watch
import warmgraph_c as wg

SHAPE = {"layers": 16, "dim": 2048, "heads": 16, "hidden": 5632, "vocabulary": 32000, "batch": 8, "context": 1024}
FUNCTION, VERSION, MODEL = "decode", "llama-step 1", "llama-step"
REFUSED = 3
TOLERANCE = 2e-2


class Seconds:
    """Prints each phase with its seconds as soon as it ends, and keeps the numbers."""

    def __init__(self, stage):
        self.stage, self.times = stage, {}

    @contextlib.contextmanager
    def phase(self, name):
        started = time.perf_counter()
        try:
            yield
        except BaseException:
            print(f"[{self.stage}] {name}: FAILED after {time.perf_counter() - started:.2f} s", flush=True)
            raise
        self.times[name] = time.perf_counter() - started
        print(f"[{self.stage}] {name:<44} {self.times[name]:9.3f} s", flush=True)

    def say(self, text):
        print(f"[{self.stage}] {text}", flush=True)


def gigabytes(count):
    return "unknown" if count is None else f"{count / 1e9:.3f} GB"


# --- Code that both processes use: the regions in manifest.json


def state_layouts(regions):
    """The element types of the states. Floats are compared as floats; as bytes, they would have to be bitwise equal."""
    return [wg.Layout(r["name"].encode(), wg.DTYPES[r["dtype"]], 0, None, None)
            for r in regions if r["role"] in ("weight", "cache")]


def declared_tensors(regions, role):
    decls, keep = [], []
    for region in (r for r in regions if r["role"] == role):
        sizes = (c.c_int64 * len(region["sizes"]))(*region["sizes"])
        keep.append(sizes)
        decls.append(wg.TensorDecl(region["name"].encode(), wg.DTYPES[region["dtype"]], len(sizes), sizes))
    result = wg.array(wg.TensorDecl, decls)
    result.keep = keep
    return result


def function_spec(regions, pointers):
    """The declaration of the step, with the states at `pointers` (by name)."""
    spec = wg.FunctionSpec()
    spec.size, spec.name, spec.version = c.sizeof(spec), FUNCTION.encode(), VERSION.encode()
    inputs, outputs = declared_tensors(regions, "input"), declared_tensors(regions, "output")
    access = {"weight": wg.READ_ONLY, "cache": wg.READ_WRITE}
    states = wg.array(wg.StateDecl, [
        wg.StateDecl(r["name"].encode(), wg.Memory.at(pointers[r["name"]], r["bytes"]), access[r["role"]])
        for r in regions if r["role"] in access])
    spec.inputs, spec.input_count = inputs, len(inputs)
    spec.outputs, spec.output_count = outputs, len(outputs)
    spec.states, spec.state_count = states, len(states)
    layouts = state_layouts(regions)
    if layouts:
        given = wg.array(type(layouts[0]), layouts)
        spec.layouts, spec.layout_count = given, len(given)
        layouts = given
    spec.keep = (inputs, outputs, states, layouts)
    return spec


def row_places(cache, position):
    """Returns (offset, bytes) for each row that a step writes into a cache [batch, heads, context, head_dim]. Each head has one row."""
    batch, heads, context, head_dim = cache["sizes"]
    row = head_dim * 2
    return [((head * context + position) * row, row) for head in range(batch * heads)]


# --- The process with PyTorch: it captures, adopts, and writes contents and reference


def graph_nodes(native):
    """The number of nodes of a CUgraph; None when the driver does not return it."""
    count = c.c_size_t(0)
    with contextlib.suppress(OSError):
        if c.CDLL("libcuda.so.1").cuGraphGetNodes(c.c_void_p(native), None, c.byref(count)) == 0:
            return count.value
    return None


def captured_twice(seconds, shape):
    """Returns (model, first, second, spacer). `first` and `second` are Steps; in the second one everything has other addresses."""
    import torch

    import llama_model

    with seconds.phase("model made on the device"):
        model, token, position = llama_model.made(shape)
        torch.cuda.synchronize()
    step = llama_model.compiled(model)
    inputs, outputs = {"token": token, "position": position}, llama_model.outputs_like(shape)
    with seconds.phase("compiled, first logits"):
        llama_model.run_into(step, inputs, outputs)
        torch.cuda.synchronize()
    with seconds.phase("warmed up twice more"):
        for _ in range(2):
            llama_model.run_into(step, inputs, outputs)
        torch.cuda.synchronize()
    compiled = llama_model.count_compiled()
    first = captured(seconds, "first capture", model, step, inputs, outputs)
    spacer = []
    with seconds.phase("weights and caches moved"):
        llama_model.move_states(model, spacer)
        spacer.append(torch.empty(3 << 20, dtype=torch.uint8, device="cuda"))
        inputs = {name: tensor.clone() for name, tensor in inputs.items()}
        spacer.append(torch.empty(3000, dtype=torch.uint8, device="cuda"))
        outputs = llama_model.outputs_like(shape)
        llama_model.run_into(step, inputs, outputs)
        torch.cuda.synchronize()
    second = captured(seconds, "second capture", model, step, inputs, outputs)
    if llama_model.count_compiled() != compiled:
        seconds.say("PyTorch compiled again when the weights moved: the captures may differ")
    return model, first, second, spacer


def captured(seconds, name, model, step, inputs, outputs):
    """Captures a Step, and stores in it the allocator's free blocks from before and after the capture."""
    import torch

    import llama_model

    with seconds.phase(name):
        before = wg.free_blocks(torch.cuda.memory_snapshot())
        result = llama_model.capture_step(model, step, inputs, outputs)
        result.captured.free_blocks = wg.free_throughout(before, wg.free_blocks(torch.cuda.memory_snapshot()))
    return result


def described(step):
    """Returns the regions of a Step for the manifest, and its tensors in the same order."""
    named = [("input", name, tensor) for name, tensor in step.inputs.items()]
    named += [("cache" if is_written else "weight", name, tensor) for name, tensor, is_written in step.states]
    named += [("output", name, tensor) for name, tensor in step.outputs.items()]
    regions, offset = [], 0
    for role, name, tensor in named:
        size = tensor.numel() * tensor.element_size()
        regions.append({"role": role, "name": name, "dtype": str(tensor.dtype).removeprefix("torch."), "sizes": list(tensor.size()),
                        "bytes": size, "offset": offset})
        offset += (size + 4095) // 4096 * 4096
    return regions, [tensor for _, _, tensor in named]


def write_tensor(file, tensor):
    """Writes a tensor's bytes, from the device or the host."""
    data = tensor.detach().contiguous().cpu()
    file.write((c.c_char * (data.numel() * data.element_size())).from_address(data.data_ptr()))


def write_contents(folder, regions, tensors):
    """Writes the contents of inputs and states, but not of outputs."""
    with open(folder / "contents.bin", "wb") as file:
        for region, tensor in zip(regions, tensors):
            if region["role"] != "output":
                file.seek(region["offset"])
                write_tensor(file, tensor)
        file.truncate(regions[-1]["offset"] + regions[-1]["bytes"])


def clear_rows(step, position):
    """Clears the rows that the step must write, so that the test notices a missing write."""
    for _, tensor, is_written in step.states:
        if is_written:
            tensor[:, :, position].zero_()


def write_reference(folder, step, position):
    """Writes the results of PyTorch's own replay: the outputs, then the rows of every cache."""
    with open(folder / "reference.bin", "wb") as file:
        for tensor in step.outputs.values():
            write_tensor(file, tensor)
        for _, tensor, is_written in step.states:
            if is_written:
                write_tensor(file, tensor[:, :, position])


def adopted(seconds, library, device, folder, regions, tensors, first, second):
    """Adopts the captures, prints the results and returns them. Raises Failure when the adoption is refused."""
    cache = library.opened_cache(MODEL, folder / "cache")
    disabled = library.raw.wg_cache_disabled_reason(cache)
    if disabled:
        seconds.say(f"caching is off: {disabled.decode()}")
    spec = function_spec(regions, {r["name"]: t.data_ptr() for r, t in zip(regions, tensors)})
    natives = [wg.native_capture(first.captured), wg.native_capture(second.captured)]
    adoption = wg.Adoption(c.sizeof(wg.Adoption), c.pointer(natives[0]), c.pointer(natives[1]), 0, None, 0)
    device_memory = memory_watch.DeviceMemory()
    watch = memory_watch.Watch(device_memory)
    with seconds.phase("adopted"), watch:
        function = library.made("wg_cache_adopt", cache, device, c.byref(spec), c.byref(adoption))
    report = library.report(function)
    if report["reason"]:
        seconds.say(f"report: {report['outcome']}: {report['reason']}")
    print_phases(seconds, report)
    memory = watch.report
    for name in ("device_before", "device_peak", "device_after", "host_before", "host_peak", "host_after"):
        seconds.say(f"adoption, {name.replace('_', ' memory '):<30} {gigabytes(memory[name])}")
    if device_memory.reason:
        seconds.say(f"device memory is unknown: {device_memory.reason}")
    library.call("wg_function_destroy", function)
    library.call("wg_cache_close", cache)
    stored = sum(f.stat().st_size for f in (folder / "cache").rglob("*") if f.is_file())
    seconds.say(f"stored {stored / 1e6:.2f} MB")
    return {"seconds": seconds.times["adopted"], "report": report, "memory": memory, "stored_bytes": stored}


def print_phases(seconds, report):
    for name, milliseconds in report["phases"]:
        seconds.say(f"  {name:<20} {milliseconds:10.3f} ms")
    seconds.say(f"  {'first call':<20} {report['first_call_ms']:10.3f} ms")


def timed_replay(step, count=50):
    """The milliseconds that a replay by PyTorch takes."""
    import torch

    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(count):
        step.captured.graph.replay()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / count


def capture_stage(arguments, folder):
    seconds, results = Seconds("capture"), {}
    library = wg.Library(arguments.library)
    device = library.made("wg_device_open", b"cuda:0")
    with seconds.phase("wg_prepare_recording"):  # this must be called before PyTorch loads code
        library.call("wg_prepare_recording", device)
    with seconds.phase("import torch"):
        import torch

        import llama_model
    llama_model.choose_attention(arguments.attention)
    shape = llama_model.Shape(**shape_of(arguments))
    _, first, second, spacer = captured_twice(seconds, shape)
    position = int(first.inputs["position"].item())
    results |= {"torch": torch.__version__, "device": torch.cuda.get_device_name(), "nodes": graph_nodes(first.captured.native),
                "peak_allocated_by_torch": torch.cuda.max_memory_allocated()}
    regions, tensors = described(first)
    for role in ("weight", "cache"):
        results[f"{role}_bytes"] = sum(r["bytes"] for r in regions if r["role"] == role)
    seconds.say(f"{results['nodes']} graph nodes, weights {gigabytes(results['weight_bytes'])} in "
                f"{sum(r['role'] == 'weight' for r in regions)} tensors, KV cache {gigabytes(results['cache_bytes'])}, "
                f"PyTorch's peak {gigabytes(results['peak_allocated_by_torch'])}")
    clear_rows(first, position)
    torch.cuda.synchronize()
    status = 0
    try:
        results["adoption"] = adopted(seconds, library, device, folder, regions, tensors, first, second)
        with seconds.phase("contents written"):
            write_contents(folder, regions, tensors)
        with seconds.phase("PyTorch's own replay, reference written"):
            first.captured.graph.replay()
            torch.cuda.synchronize()
            write_reference(folder, first, position)
        results["native_replay_ms"] = timed_replay(first)
        seconds.say(f"native replay {results['native_replay_ms']:.3f} ms")
        (folder / "manifest.json").write_text(json.dumps({"position": position, "regions": regions}))
    except wg.Failure as failure:
        seconds.say(f"refused: {failure}")
        results["refused"], status = str(failure), REFUSED
    del spacer
    results["seconds"] = seconds.times
    (folder / "capture.json").write_text(json.dumps(results))
    return status


# --- The process without PyTorch


class Contents:
    """The bytes of a file in memory, with their address."""

    def __init__(self, path):
        self._file = open(path, "rb")  # noqa: SIM115: lives as long as this
        self.bytes = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_COPY)
        self._first = c.c_char.from_buffer(self.bytes)

    def pointer(self, offset):
        return c.c_void_p(c.addressof(self._first) + offset)


def made_buffers(seconds, library, device, regions, contents):
    """Returns {name: wg_buffer*}. The buffers have the contents that PyTorch wrote."""
    buffers = {}
    with seconds.phase("memory made"):
        for region in regions:
            buffers[region["name"]] = library.made("wg_buffer_create", device, c.c_uint64(region["bytes"]))
    with seconds.phase("contents uploaded"):
        for region in regions:
            if region["role"] != "output":
                library.call("wg_buffer_upload", buffers[region["name"]], contents.pointer(region["offset"]),
                             c.c_uint64(region["bytes"]), c.c_uint64(0))
        library.call("wg_device_synchronize", device)
    return buffers


def downloaded(library, buffer, size):
    data = bytearray(size)
    library.call("wg_buffer_download", buffer, (c.c_char * size).from_buffer(data), c.c_uint64(size), c.c_uint64(0))
    return data


def first_result(library, device, folder, spec, args, outputs, cache=None):
    """Returns (function, {"name": bytes}, milliseconds by step): from wg_cache_open until the result is on the host. cache: a cache that is
    already open and is preloading its entries (wg_cache_preload)."""
    stream = c.c_void_p(library.raw.wg_device_stream(device))
    outcome, milliseconds, results = c.c_int32(-1), {}, {}
    started = last = time.perf_counter()

    def lap(name):
        nonlocal last
        now = time.perf_counter()
        milliseconds[name], last = (now - last) * 1000, now

    if cache is None:
        cache = library.opened_cache(MODEL, folder / "cache")
    lap("open")
    function = library.made("wg_cache_load", cache, device, c.byref(spec))
    lap("load")
    library.call("wg_call", function, stream, args, c.c_uint64(len(args)), c.byref(outcome))
    lap("call")
    library.call("wg_stream_synchronize", stream)
    lap("synchronise")
    for name, (buffer, size) in outputs.items():
        results[name] = downloaded(library, buffer, size)
    lap("download")
    milliseconds["first result"] = (time.perf_counter() - started) * 1000
    milliseconds["outcome"] = wg.OUTCOMES.get(outcome.value, str(outcome.value))
    return function, results, milliseconds


def later_calls(library, device, function, args, count=20):
    """The median time of a call with its synchronisation, in milliseconds."""
    stream, times = c.c_void_p(library.raw.wg_device_stream(device)), []
    for _ in range(count):
        started = time.perf_counter()
        library.call("wg_call", function, stream, args, c.c_uint64(len(args)), None)
        library.call("wg_stream_synchronize", stream)
        times.append((time.perf_counter() - started) * 1000)
    return statistics.median(times)


def bf16_values(data):
    """Converts bfloat16 to Python floats: bfloat16 is the upper half of a float32."""
    halves = array.array("H", bytes(data))
    values = array.array("f")
    values.frombytes(array.array("I", [half << 16 for half in halves]).tobytes())
    return values


def not_close(data, expected, what):
    """Compares results with the expected ones. Returns "" or an error. NaN is never close, and a result with only zeros is an error."""
    found, wanted = bf16_values(data), bf16_values(expected)
    if len(found) != len(wanted):
        return f"{what}: {len(found)} values instead of {len(wanted)}"
    far = sum(not abs(a - b) <= TOLERANCE + TOLERANCE * abs(b) for a, b in zip(found, wanted))
    if far:
        worst = max(abs(a - b) for a, b in zip(found, wanted))
        return f"{what}: {far} of {len(wanted)} values differ by more than {TOLERANCE}, the worst by {worst}"
    if max((abs(b) for b in wanted), default=0) < 0.1:
        return f"{what}: PyTorch's own are all about zero, which proves nothing"
    return ""


def wrong_tokens(data, expected):
    """Compares greedy tokens. Close results may have different tokens where two logits are nearly equal, so one token in eight may differ."""
    found, wanted = array.array("q", bytes(data)), array.array("q", expected)
    different = sum(a != b for a, b in zip(found, wanted))
    if len(found) != len(wanted) or different > len(wanted) // 8:
        return f"next: {different} of {len(wanted)} tokens differ"
    return ""


def wrong_cache(library, buffer, region, position, before, expected):
    """Compares a cache: the rows that this step wrote must be equal to the rows that PyTorch wrote, and all other rows must be unchanged."""
    data, rows, places = downloaded(library, buffer, region["bytes"]), bytearray(), row_places(region, position)
    for offset, size in places:
        rows += data[offset:offset + size]
        data[offset:offset + size] = before[offset:offset + size]
    if bytes(data) != before:
        return f"{region['name']}: changed where the step writes nothing"
    return not_close(rows, expected, region["name"])


def mistakes(library, regions, position, buffers, results, contents, reference):
    """The differences from PyTorch's own replay of the first capture. `reference` has the order of write_reference."""
    found, at = [], 0
    for region in (r for r in regions if r["role"] == "output"):
        expected = reference[at:at + region["bytes"]]
        at += region["bytes"]
        data = results[region["name"]]
        found.append(wrong_tokens(data, expected) if region["name"] == "next" else not_close(data, expected, region["name"]))
    for region in (r for r in regions if r["role"] == "cache"):
        size = sum(size for _, size in row_places(region, position))
        before = contents.bytes[region["offset"]:region["offset"] + region["bytes"]]
        found.append(wrong_cache(library, buffers[region["name"]], region, position, before, reference[at:at + size]))
        at += size
    if at != len(reference):
        found.append(f"the reference has {len(reference)} bytes, expected {at}")
    return [text for text in found if text]


def restore_stage(arguments, folder):
    seconds = Seconds("restore")
    manifest = json.loads((folder / "manifest.json").read_text())
    regions, position = manifest["regions"], manifest["position"]
    contents = Contents(folder / "contents.bin")
    library = wg.Library(arguments.library)
    with seconds.phase("wg_device_open"):
        device = library.made("wg_device_open", b"cuda:0")
    library.call("wg_device_warm_up", device)
    buffers = made_buffers(seconds, library, device, regions, contents)
    pointers = {name: library.raw.wg_buffer_pointer(buffer) for name, buffer in buffers.items()}
    spec = function_spec(regions, pointers)
    args = wg.array(wg.Arg, [wg.memory_arg(r["name"], pointers[r["name"]], r["bytes"])
                             for r in regions if r["role"] in ("input", "output")])
    outputs = {r["name"]: (buffers[r["name"]], r["bytes"]) for r in regions if r["role"] == "output"}
    if "torch" in sys.modules:
        raise RuntimeError("the restoring process has imported torch")
    with seconds.phase("first result, from wg_cache_open to the host"):
        function, results, milliseconds = first_result(library, device, folder, spec, args, outputs)
    report = library.report(function)
    for name in ("open", "load", "call", "synchronise", "download", "first result"):
        seconds.say(f"{name:<22} {milliseconds[name]:10.3f} ms")
    print_phases(seconds, report)
    with seconds.phase("compared with PyTorch's own replay"):
        wrong = mistakes(library, regions, position, buffers, results, contents, (folder / "reference.bin").read_bytes())
    if milliseconds["outcome"] != "replayed":
        wrong.insert(0, f"the call was {milliseconds['outcome']}, not replayed: {report['reason']}")
    later = later_calls(library, device, function, args)
    seconds.say(f"later calls {later:.3f} ms, with their synchronisation")
    for text in wrong[:8]:
        seconds.say(f"wrong: {text}")
    seconds.say("right" if not wrong else "WRONG")
    (folder / "restored.json").write_text(json.dumps(
        {"milliseconds": milliseconds, "report": report, "later_call_ms": later, "wrong": wrong, "seconds": seconds.times}))
    return 1 if wrong else 0


# --- The process that starts the others


def shape_of(arguments):
    return {name: getattr(arguments, name) for name in SHAPE}


def estimated_bytes(shape):
    """How many bytes the weights and the KV cache need, for choosing a folder with enough space."""
    s = argparse.Namespace(**shape)
    weights = s.layers * (4 * s.dim * s.dim + 3 * s.dim * s.hidden) + 2 * s.vocabulary * s.dim
    return 2 * weights + 4 * s.layers * s.batch * s.context * s.dim


@contextlib.contextmanager
def working_folder(arguments):
    """The folder of --folder, which is kept. Without --folder, a folder that is removed at the end; it is in memory if memory has enough
    space."""
    if arguments.folder:
        folder = pathlib.Path(arguments.folder).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        yield folder
        return
    needed = estimated_bytes(shape_of(arguments)) * 1.05 + 2e9
    places = [p for p in ("/dev/shm", tempfile.gettempdir()) if os.path.isdir(p)]
    place = next((p for p in places if shutil.disk_usage(p).free > needed), places[-1])
    folder = pathlib.Path(tempfile.mkdtemp(prefix="warmgraph-llama-", dir=place))
    print(f"[main] contents of {gigabytes(estimated_bytes(shape_of(arguments)))} go to {folder}", flush=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def shape_options(arguments):
    return [text for name, value in shape_of(arguments).items() for text in (f"--{name}", str(value))] + [
        "--attention", arguments.attention]


def stage(arguments, folder, option):
    """Runs this script again for one stage. Returns the stage's exit status. The stage prints to this process's output."""
    command = [sys.executable, __file__, arguments.library, option, str(folder), *shape_options(arguments)]
    started = time.perf_counter()
    status = subprocess.run(command, check=False).returncode
    how = f"signal {-status}" if status < 0 else f"status {status}"
    print(f"[main] {option} ended with {how} after {time.perf_counter() - started:.2f} s", flush=True)
    return status


def read_json(path):
    return json.loads(path.read_text()) if path.exists() else {}


def restored(arguments, folder):
    """Runs --runs processes. Returns (their results, the exit status)."""
    runs, status = [], 0
    for _ in range(arguments.runs):
        (folder / "restored.json").unlink(missing_ok=True)
        status = stage(arguments, folder, "--restore") or status
        runs.append(read_json(folder / "restored.json"))
    times = [run["milliseconds"]["first result"] for run in runs if run]
    median = statistics.median(times) if times else None
    if times:
        print(f"[main] first result, restored: median {median:.3f} ms of {', '.join(f'{t:.3f}' for t in times)}", flush=True)
    return {"runs": runs, "median_first_result_ms": median}, status


def run_all(arguments, folder, results):
    """Runs all stages. Returns the exit status. In any case, `results` has the findings so far."""
    for left in ("capture.json", "manifest.json"):  # removes files that an earlier run left in the same folder
        (folder / left).unlink(missing_ok=True)
    shutil.rmtree(folder / "cache", ignore_errors=True)
    status = stage(arguments, folder, "--capture")
    results["capture"] = read_json(folder / "capture.json")
    if status == 0:
        results["restored"], restored_status = restored(arguments, folder)
        status = 1 if restored_status else 0
    elif status != REFUSED:
        status = 1
    if results["capture"].get("refused"):
        print(f"refused: {results['capture']['refused']}", flush=True)
    print("right" if status == 0 else "refused" if status == REFUSED else "WRONG", flush=True)
    return status


def add_shape(parser):
    for name, value in SHAPE.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--attention", choices=("efficient", "math", "any"), default="efficient")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    add_shape(parser)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--folder")
    parser.add_argument("--json")
    parser.add_argument("--capture", help=argparse.SUPPRESS)
    parser.add_argument("--restore", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.capture:
        return capture_stage(arguments, pathlib.Path(arguments.capture))
    if arguments.restore:
        return restore_stage(arguments, pathlib.Path(arguments.restore))
    results = {"arguments": vars(arguments)}
    try:
        with working_folder(arguments) as folder:
            return run_all(arguments, folder, results)
    finally:
        if arguments.json:
            pathlib.Path(arguments.json).write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    sys.exit(main())
