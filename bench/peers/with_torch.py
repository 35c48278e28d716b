"""One process that starts in PyTorch: runs to its first result, then replays. Started by torch_peers.py, not by hand.

usage: with_torch.py SETTINGS      an object in JSON; the answer goes to its "answer"
"""
from __future__ import annotations

import faulthandler
import json
import logging
import os
import pathlib
import statistics
import sys
import time
import traceback

IMPORTING = time.monotonic()
FOLDER = pathlib.Path(__file__).resolve().parent
REPOSITORY = FOLDER.parents[1]
sys.path[1:1] = [str(REPOSITORY / "python"), str(REPOSITORY / "tests" / "gpu" / "torch")]

import cores  # noqa: E402  beside this file

STEPS, ROUNDS, SINGLE = 200, 5, 50  # replays in a row, number of rounds, and replays on an idle device
LEAST_STEPS, ROUND_S = 20, 0.5  # fewer in a row if a round would take longer
MEASURED_SIZES = (1, 8, 32)


# --- Replays in a steady state


def seconds_of(torch, call, steps):
    """Seconds of one of `steps` calls in a row, with the end of the last call."""
    torch.cuda.synchronize()
    started = time.monotonic()
    for _ in range(steps):
        call()
    torch.cuda.synchronize()
    return (time.monotonic() - started) / steps


def steps_for(torch, call):
    return int(max(LEAST_STEPS, min(STEPS, ROUND_S / seconds_of(torch, call, LEAST_STEPS))))


def enqueuing(torch, call):
    """Seconds of a call on an idle device, without waiting for its end."""
    times = []
    for _ in range(SINGLE):
        torch.cuda.synchronize()
        started = time.monotonic()
        call()
        times.append(time.monotonic() - started)
    torch.cuda.synchronize()
    return statistics.median(times)


def steady(torch, call):
    steps = steps_for(torch, call)
    return {"step_s": statistics.median(seconds_of(torch, call, steps) for _ in range(ROUNDS)), "enqueue_s": enqueuing(torch, call)}


def by_turns(torch, call, own):
    """Measures `call` and PyTorch's own graph of the same work in turns, in this process."""
    steps = min(steps_for(torch, one) for one in (call, own))
    pairs = [(seconds_of(torch, call, steps), seconds_of(torch, own, steps)) for _ in range(ROUNDS)]
    mine, its = (statistics.median(one) for one in zip(*pairs))
    return {"own_graph_s": its, "beside_own_graph_s": mine, "replay_ratio": mine / its}


def captured(torch, work, pool=None):
    """(graph, its result): captured as in PyTorch's documentation, after one run."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        work()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool):
        result = work()
    return graph, result


# --- Ways to start. Each returns (call, a function that runs after the clock stopped and returns more of the answer, or None)


def eager(torch, made, settings):
    return made.eager, None


def graph(torch, made, settings):
    own, result = captured(torch, made.eager)

    def call():
        own.replay()
        return result

    return call, None


def compile_(torch, made, settings):
    if os.environ.get("TORCH_CACHING_PRECOMPILE") and not getattr(torch._dynamo.config, "caching_precompile", None):
        raise Unavailable(f"torch {torch.__version__} has no torch._dynamo.config.caching_precompile")
    step = torch.compile(made.model, fullgraph=True, dynamic=False, mode="default")
    return lambda: step(*made.arguments), lambda call: counted(torch) | left_artifacts(torch, settings)


def mega(torch, made, settings):
    started = time.monotonic()
    data = (pathlib.Path(settings["folder"]) / settings["needs"]).read_bytes()
    if not data or torch.compiler.load_cache_artifacts(data) is None:
        raise Unavailable(f"load_cache_artifacts took none of {len(data)} bytes")
    loaded = time.monotonic() - started
    call, after = compile_(torch, made, settings)
    return call, lambda call: {**after(call), "loaded_s": loaded}


def left_artifacts(torch, settings):
    """Saves the Mega-Cache for another machine. Caching precompile then writes its own cache, too."""
    if not settings["leaves"]:
        return {}
    leave(settings)  # before the artifacts, because later ways need the caches even if the artifacts fail
    saved = torch.compiler.save_cache_artifacts()
    data = saved[0] if saved is not None else b""
    (pathlib.Path(settings["folder"]) / settings["leaves"]).write_bytes(data)
    return {"artifact_bytes": len(data)}


def counted(torch):
    """PyTorch's own counters of its caches."""
    counters = torch._dynamo.utils.counters
    wanted = [("inductor", "fxgraph_cache_hit"), ("inductor", "fxgraph_cache_miss"), ("aot_autograd", "autograd_cache_hit"),
              ("aot_autograd", "autograd_cache_miss"), ("dynamo_cache", "dynamo_cache_hit"), ("dynamo_cache", "dynamo_cache_miss")]
    return {"counters": {name: counters[group][name] for group, name in wanted if counters[group].get(name)}}


def wrapped(settings):
    """Wraps the step like a user of warmgraph does, before the weights are read."""
    import subjects
    import warmgraph

    how = {"dynamic": False, "mode": "default"} if settings["family"] == "compiled" else False
    return warmgraph.cache_compile(subjects.MODELS[settings["subject"]].forward, compile=how, cache_dir=settings["entries"], name="decode",
                                   config=warmgraph.Config(model=settings["subject"]))


def recording(torch, made, settings):
    from warmgraph.torch.record import _recording

    step, adoptions, adopted = settings["wrapped"].__get__(made.model), [], _recording.Recording.adopted

    def timed(self, given):
        started = time.monotonic()
        try:
            return adopted(self, given)
        finally:
            adoptions.append(time.monotonic() - started)

    _recording.Recording.adopted = timed

    def after(call):
        import warmgraph

        if warmgraph.stats(step)[0].kinds["entries"].made != 1:
            return {"wrong": f"recorded nothing: {warmgraph.explain(step)}"[:600]}
        leave(settings)
        # The same call as in the recording, so that Dynamo finds its compiled code.
        plain = torch.compile(type(made.model).forward, fullgraph=True, dynamic=False, mode="default") \
            if settings["family"] == "compiled" else type(made.model).forward
        own, _ = captured(torch, lambda: plain(made.model, *made.arguments))
        return {"recording_s": sum(adoptions), **by_turns(torch, call, own.replay)}

    return lambda: step(*made.arguments), after


def restored(torch, made, settings):
    step = settings["wrapped"].__get__(made.model)

    def after(call):
        compilers = sorted(name for name in ("torch._inductor", "triton") if name in sys.modules)
        more = {"phases": list(step.report().phases), "compilers": compilers}
        if settings["family"] == "eager":
            own, _ = captured(torch, made.eager)
            more |= by_turns(torch, call, own.replay)
        return more

    return lambda: step(*made.arguments), after


def leave(settings):
    if settings["leaves"]:
        (pathlib.Path(settings["folder"]) / settings["leaves"]).touch()


WAYS = {"eager": eager, "graph": graph, "compile": compile_, "mega": mega, "recording": recording, "restored": restored}


class Unavailable(Exception):
    """This PyTorch does not support the way."""


def started_once(torch, settings, ready, made):
    with torch.no_grad():
        call, after = WAYS[settings["start"]](torch, made, settings)
        tokens = call()[1].cpu().tolist()
        done = time.monotonic()
        core_s = cores.loop_seconds(cores.TIMES)
        print(f"first result after {done - ready:.4f} s", flush=True)
        answer = {"first_s": done - ready, "done": done, "core_after_s": core_s, "tokens": tokens, **steady(torch, call)}
        if call()[1].cpu().tolist() != tokens:
            answer["wrong"] = "later tokens are not the first ones"
        return answer | further(after, call)


def further(after, call):
    """Runs `after` when the clock has stopped. Its failure keeps the rest of the answer."""
    try:
        return after(call) if after is not None else {}
    except Exception as error:
        traceback.print_exc()
        return {"wrong": f"after its replays: {type(error).__name__}: {error}"[:600]}


# --- a table of graphs


def table_of_graphs(torch, table, settings):
    pool = torch.cuda.graph_pool_handle()

    def capture(size):
        own, result = captured(torch, table.forward(size), pool)
        return own.replay, result

    return capture, None


def table_cache(settings):
    """Makes the cache like an engine does, which knows its model's name before the weights are read."""
    import warmgraph
    from warmgraph.torch import GraphCache

    return GraphCache(cache_dir=settings["entries"], config=warmgraph.Config(model="table"))


def table_of_warmgraph(torch, table, settings):
    cache, outcomes = settings["table_cache"], []
    pool = torch.cuda.graph_pool_handle()

    def capture(size):
        one, result = cache.capture_one(size, table.forward(size), pool=pool, inputs=[table.token, table.position])
        outcomes.append(f"{one.outcome}: {one.why}" if one.why else one.outcome)
        return one.replay, result

    def after(graphs):
        wanted = "recorded" if settings["leaves"] else "replayed"
        others = [text for text in outcomes if text != wanted]
        if others:
            return {"wrong": f"{len(others)} of {len(outcomes)} graphs were not {wanted}: {others[0]}"[:600]}
        leave(settings)
        turns = {}
        for size in [] if settings["leaves"] else measured(table):
            own, _ = captured(torch, table.forward(size))
            turns[size] = by_turns(torch, graphs[size][0], own.replay)["replay_ratio"]
        return {"replay_ratio": statistics.median(turns.values()), "replay_ratios": turns} if turns else {}

    return capture, after


def measured(table):
    return [size for size in MEASURED_SIZES if size in table.sizes]


def table_once(torch, settings, ready, table):
    maker = table_of_graphs if settings["start"] == "table of graphs" else table_of_warmgraph
    with torch.no_grad():
        capture, after = maker(torch, table, settings)
        graphs, graph, first, done = {}, None, None, None
        for size in table.sizes:
            graphs[size] = capture(size)
            if first is None:
                torch.cuda.synchronize()
                graph = time.monotonic()  # the first graph is ready, as all graphs are below
                graphs[size][0]()
                graphs[size][1][1].cpu()
                first = time.monotonic()
                print(f"first graph after {graph - ready:.4f} s, the result of a replay after {first - ready:.4f} s", flush=True)
        torch.cuda.synchronize()
        done = time.monotonic()
        core_s = cores.loop_seconds(cores.TIMES)
        print(f"all graphs after {done - ready:.4f} s", flush=True)
        answer = {"graph_s": graph - ready, "first_s": first - ready, "all_s": done - ready, "done": first, "core_after_s": core_s, "tokens": {}}
        for size, (replay, result) in graphs.items():
            replay()
            answer["tokens"][str(size)] = result[1].cpu().tolist()
        for size in measured(table):
            answer[f"step{size}_s"] = steady(torch, graphs[size][0])["step_s"]
        return answer | further(after, graphs)


# --- one process


def machine(torch, settings):
    """Describes the machine; its imports put files into the page cache."""
    if not torch.cuda.is_available():
        raise Unavailable("PyTorch finds no CUDA device")
    ones = torch.ones(256, 256, device="cuda")
    (ones @ ones).sum().item()
    found = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "cuda": torch.version.cuda, "cores": os.cpu_count()}
    import torch._inductor.compile_fx  # noqa: F401
    import triton  # noqa: F401
    import warmgraph

    found["warmgraph"] = warmgraph.version()
    if settings["with_transformers"]:
        import transformers
        from transformers import LlamaForCausalLM  # noqa: F401

        found["transformers"] = transformers.__version__
    return found


def answered(settings):
    started = float(os.environ["PEERS_STARTED"])
    is_recording = bool(settings["leaves"])
    cores.settle()
    if settings["start"] in ("recording", "table") and is_recording:
        import warmgraph  # noqa: F401  before the first kernel of the process
    import torch

    if settings["start"] in ("restored", "table"):
        import warmgraph  # noqa: F401, F811

    logging.getLogger("torch._dynamo.guards").setLevel(logging.ERROR)  # caching precompile warns about each guard that it drops
    if settings["start"] == "machine":
        return machine(torch, settings)
    import subjects

    imported = time.monotonic()
    if settings["start"] in ("recording", "restored"):
        settings["wrapped"] = wrapped(settings)
    if settings["start"] == "table":
        settings["table_cache"] = table_cache(settings)
    cores.settle()  # now, so that few of the processor's caches change at the end
    made = subjects.MAKERS[settings["subject"]](settings)
    torch.cuda.synchronize()
    cores.settle()
    core_s = cores.loop_seconds(cores.TIMES)
    ready = time.monotonic()
    print(f"ready after {ready - started:.3f} s", flush=True)
    run = table_once if settings["subject"] == "table" else started_once
    answer = run(torch, settings, ready, made)
    return {"start_s": answer.pop("done") - started, "imported_s": imported - started, "model_s": ready - imported,
            "interpreter_s": IMPORTING - started, "core_s": max(core_s, answer.pop("core_after_s")), **answer}


def main():
    settings = json.loads(sys.argv[1])
    faulthandler.dump_traceback_later(settings["limit_s"], exit=True)  # shows where it hangs
    try:
        answer = answered(settings)
    except Unavailable as why:
        answer = {"reason": f"not available: {why}"}
    pathlib.Path(settings["answer"]).write_text(json.dumps(answer))


if __name__ == "__main__":
    main()
