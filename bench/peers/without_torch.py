"""One process without PyTorch: runs the adopted step to its first result, then replays. Started by torch_peers.py, not by hand.

usage: without_torch.py SETTINGS      an object in JSON; the answer goes to its "answer"
"""
from __future__ import annotations

import array
import ctypes as c
import faulthandler
import json
import os
import pathlib
import statistics
import sys
import time

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
sys.path[1:1] = [str(REPOSITORY / "tests" / "gpu" / "torch")]

import cores  # noqa: E402  beside this file

STEPS, ROUNDS = 200, 5


def steady(library, device, function, args):
    """Seconds of one of many calls in a row, and of enqueuing one call on an idle device."""
    stream, outcome, count = c.c_void_p(library.raw.wg_device_stream(device)), None, c.c_uint64(len(args))

    def seconds(steps):
        library.call("wg_stream_synchronize", stream)
        started = time.monotonic()
        for _ in range(steps):
            library.call("wg_call", function, stream, args, count, outcome)
        enqueued = time.monotonic()
        library.call("wg_stream_synchronize", stream)
        return (time.monotonic() - started) / steps, (enqueued - started) / steps

    seconds(20)
    return {"step_s": statistics.median(seconds(STEPS)[0] for _ in range(ROUNDS)),
            "enqueue_s": statistics.median(seconds(1)[1] for _ in range(50))}


def served(settings, started):
    """The answer for `step`: restores the entry that llama_step.py adopted, through the C interface."""
    import llama_step
    import warmgraph_c as wg

    folder, seconds = pathlib.Path(settings["folder"]) / "adopted", llama_step.Seconds("without torch")
    regions = json.loads((folder / "manifest.json").read_text())["regions"]
    contents, library = llama_step.Contents(folder / "contents.bin"), wg.Library(settings["library"])
    cores.settle()
    device = library.made("wg_device_open", b"cuda:0")
    library.call("wg_device_warm_up", device)
    imported = time.monotonic()
    # Like the ways with PyTorch, which know the function before the weights are read.
    cache = library.opened_cache(llama_step.MODEL, folder / "cache")
    wait_for_nothing, names = 2, (c.c_char_p * 1)(llama_step.FUNCTION.encode())
    options = wg.PreloadOptions(c.sizeof(wg.PreloadOptions), wait=wait_for_nothing, functions=names, function_count=1, device=device)
    library.call("wg_cache_preload", cache, c.byref(options), None)
    buffers = llama_step.made_buffers(seconds, library, device, regions, contents)
    pointers = {name: library.raw.wg_buffer_pointer(buffer) for name, buffer in buffers.items()}
    spec = llama_step.function_spec(regions, pointers)
    args = wg.array(wg.Arg, [wg.memory_arg(r["name"], pointers[r["name"]], r["bytes"]) for r in regions if r["role"] in ("input", "output")])
    tokens = {r["name"]: (buffers[r["name"]], r["bytes"]) for r in regions if r["name"] == "next"}
    cores.settle()
    core_s = cores.loop_seconds(cores.TIMES)
    ready = time.monotonic()
    function, results, milliseconds = llama_step.first_result(library, device, folder, spec, args, tokens, cache)
    done = time.monotonic()
    answer = {"start_s": done - started, "imported_s": imported - started, "model_s": ready - imported, "first_s": done - ready, "core_s": core_s,
              "tokens": array.array("q", bytes(results["next"])).tolist(), "phases": library.report(function)["phases"]}
    if milliseconds["outcome"] != "replayed":
        answer["wrong"] = f"the call was {milliseconds['outcome']}: {library.report(function)['reason']}"
    return answer | steady(library, device, function, args)


def main():
    settings = json.loads(sys.argv[1])
    faulthandler.dump_traceback_later(settings["limit_s"], exit=True)
    answer = served(settings, float(os.environ["PEERS_STARTED"]))
    if "torch" in sys.modules:
        answer["wrong"] = "this process has imported torch"
    pathlib.Path(settings["answer"]).write_text(json.dumps(answer))


if __name__ == "__main__":
    main()
