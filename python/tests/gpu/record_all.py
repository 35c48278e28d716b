"""Programs that capture graphs themselves: record_all() sees them in two processes, and a third serves them without PyTorch.

usage: record_all.py [--only PATTERN,PATTERN...] [--workers 4]     prints a table; exit status 1 if a program went wrong
       record_all.py --run PROGRAM --folder DIR --as plain|first|second|served    runs one process

The first process writes each graph. The captures of the second process prove the graphs. The third process replays them on the inputs and
weights of the second. Its results must be those of the programs' own replays. An earlier process ("plain") runs without record_all(): the
program's results must be the same.
"""
from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import fnmatch
import json
import os
import pathlib
import subprocess
import sys
import tempfile

LIMIT_S = 100


# --- The programs, written without warmgraph. run(torch) returns {graph: (replay, inputs by name, result by name, states by name)}


def mlp(torch):
    """The example from PyTorch's documentation."""
    net = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 64)).cuda()
    static_input = torch.randn(16, 64, device="cuda")
    with warmed_up(torch):
        net(static_input)
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        static_output = net(static_input)
    return {"graphs-mlp-0": (g.replay, {"static_input": static_input}, {"result0": static_output}, named("net", net))}


class Runner:
    """A table of graphs by batch size in one pool. The graphs write a cache."""

    def __init__(self, torch):
        self.torch = torch
        self.net = torch.nn.Linear(64, 64).cuda()
        self.tokens, self.kv = torch.randn(8, 64, device="cuda"), torch.zeros(8, 64, device="cuda")
        self.graphs, self.outputs, self.pool = {}, {}, None

    def capture(self, size):
        graph = self.torch.cuda.CUDAGraph()
        with self.torch.cuda.graph(graph, pool=self.pool):
            self.kv[:size].add_(self.tokens[:size])
            self.outputs[size] = self.torch.softmax(self.net(self.kv[:size]), dim=-1)
        self.graphs[size], self.pool = graph, graph.pool()


def table(torch):
    runner = Runner(torch)
    with warmed_up(torch):
        runner.net(runner.kv)
    for size in (8, 4, 1):
        runner.capture(size)
    found = {}
    for number, size in enumerate((8, 4, 1)):
        states = {**named("net", runner.net), "tokens": runner.tokens, "kv": runner.kv}
        found[f"graphs-capture-{number}"] = (runner.graphs[size].replay, {}, {"result0": runner.outputs[size]}, states)
    return found


@contextlib.contextmanager
def captured_by_helper(torch, graph):
    with torch.cuda.graph(graph):
        yield


def helper(torch):
    """A program that wraps PyTorch's context manager in its own one, and does the work in a function."""
    weight, x = torch.randn(32, 32, device="cuda"), torch.randn(32, 32, device="cuda")

    def work(y):
        return (y @ weight).relu(), y.sum(dim=0)

    with warmed_up(torch):
        work(x)
    g = torch.cuda.CUDAGraph()
    with captured_by_helper(torch, g):
        product, total = work(x)
    return {"graphs-helper-0": (g.replay, {"x": x}, {"result0": product, "result1": total}, {"work.weight": weight})}


def begin_and_end(torch):
    """A program that captures without torch.cuda.graph."""
    layer = torch.nn.LayerNorm(64).cuda()
    x, stream, g = torch.randn(4, 64, device="cuda"), torch.cuda.Stream(), torch.cuda.CUDAGraph(keep_graph=True)
    with warmed_up(torch):
        layer(x)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        g.capture_begin()
        y = layer(x)
        g.capture_end()
    torch.cuda.synchronize()
    return {"graphs-begin_and_end-0": (g.replay, {"x": x}, {"result0": y}, named("layer", layer))}


def convolutions(torch):
    import torchvision

    model = torchvision.models.resnet18().cuda().eval().to(memory_format=torch.channels_last)
    image = torch.randn(2, 3, 64, 64, device="cuda").to(memory_format=torch.channels_last)
    with warmed_up(torch):
        model(image)
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        scores = model(image)
    return {"graphs-convolutions-0": (g.replay, {"image": image}, {"result0": scores}, named("model", model))}


def llama(torch):
    """A decode step of transformers, with its static cache."""
    import transformers

    config = transformers.LlamaConfig(hidden_size=128, intermediate_size=256, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                                      vocab_size=512, max_position_embeddings=64)
    model = transformers.LlamaForCausalLM(config).cuda().eval()
    cache = transformers.StaticCache(config=config, max_batch_size=1, max_cache_len=32, device="cuda", dtype=torch.float32)
    token, position = torch.tensor([[7]], device="cuda"), torch.tensor([3], device="cuda")

    def step():
        return model(input_ids=token, cache_position=position, past_key_values=cache, use_cache=True).logits

    with warmed_up(torch):
        step()
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        logits = step()
    return {"graphs-llama-0": (g.replay, {"token": token, "position": position}, {"result0": logits}, None)}


def dropout(torch):
    """A program whose graph draws random numbers."""
    x, g = torch.ones(64, 64, device="cuda"), torch.cuda.CUDAGraph()
    with warmed_up(torch):
        torch.nn.functional.dropout(x)
    with torch.cuda.graph(g):
        y = torch.nn.functional.dropout(x)
    return {"graphs-dropout-0": (g.replay, {}, {"result0": y}, {"x": x})}


def graphed_callables(torch):
    """A program that lets PyTorch's own code capture forward and backward."""
    net, x = torch.nn.Linear(16, 16).cuda(), torch.randn(4, 16, device="cuda")
    with torch.enable_grad():
        graphed = torch.cuda.make_graphed_callables(net, (x,))
    result = torch.empty(4, 16, device="cuda")
    return {"": (lambda: result.copy_(graphed(x)), {"x": x}, {"result0": result}, None)}


def reduce_overhead(torch):
    """A program that lets Inductor's own code capture."""
    net, x = torch.nn.Linear(16, 16).cuda(), torch.randn(4, 16, device="cuda")
    compiled, result = torch.compile(net, mode="reduce-overhead"), torch.empty(4, 16, device="cuda")
    for _ in range(3):
        compiled(x)
    return {"": (lambda: result.copy_(compiled(x)), {"x": x}, {"result0": result}, None)}


PROGRAMS = {one.__name__: one for one in (mlp, table, helper, begin_and_end, convolutions, llama, dropout, graphed_callables, reduce_overhead)}
REFUSED = {"dropout": "Random numbers", "graphed_callables": "is not found", "reduce_overhead": "is not found"}  # a part of each reason
NOT_SERVED = ("llama",)  # not served, because this script does not pass the weights under the graph's names


@contextlib.contextmanager
def warmed_up(torch):
    """Runs the work in another stream before the capture, as PyTorch's documentation advises."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        yield
    torch.cuda.current_stream().wait_stream(stream)


def named(prefix, module):
    return {f"{prefix}.{name}": one for name, one in module.state_dict().items()}


# --- Starting the processes


def record(name, folder, how):
    import numpy
    import torch

    import warmgraph
    from warmgraph.torch import record_all

    torch.manual_seed(7)
    taken = torch.empty(3 << 20, dtype=torch.uint8, device="cuda") if how == "second" else None
    seen, recorder = contextlib.nullcontext(), None
    if how != "plain":
        seen = recorder = record_all(folder / "captures", cache_dir=folder / "cache", config=warmgraph.Config(model=name))
    with seen, torch.no_grad():
        graphs = PROGRAMS[name](torch)
    print(recorder, file=sys.stderr)
    kept = {}
    for graph, (replay, inputs, results, states) in graphs.items():
        for one in inputs.values():
            one.copy_(torch.randn_like(one) if one.is_floating_point() else one + 1)
        before = {key: one.clone() for key, one in (states or {}).items()}
        replay()
        torch.cuda.synchronize()
        for kind, tensors in (("input", inputs), ("result", results), ("state", before)):
            kept.update({f"{graph} {kind} {key}": one.detach().cpu().numpy() for key, one in tensors.items()})
    numpy.savez(folder / f"{how}.npz", **kept)
    del taken
    found = recorder.graphs if recorder is not None else []
    print(json.dumps({"outcomes": [one.outcome for one in found], "why": [one.why for one in found if one.why]}))


def differing(folder, how):
    """Returns the names of the results that are not the same as without record_all()."""
    import numpy

    plain, seen = numpy.load(folder / "plain.npz"), numpy.load(folder / f"{how}.npz")
    return [key for key in plain if not numpy.array_equal(plain[key], seen[key])]


def serve(name, folder):
    import numpy

    import warmgraph

    kept = numpy.load(folder / "second.npz")
    worst, graphs = 0.0, sorted({key.split(" ")[0] for key in kept})
    for graph in graphs:
        given = {kind: {key.split(" ")[2]: kept[key] for key in kept if key.startswith(f"{graph} {kind} ")} for kind in ("input", "result", "state")}
        function = warmgraph.Server(name, device="cuda:0", cache_dir=folder / "cache", weights=given["state"]).function(graph)
        got = function(given["input"])
        for key, expected in given["result"].items():
            result = got[key] if isinstance(got[key], numpy.ndarray) else got[key].numpy()  # a graph without inputs returns device arrays
            numpy.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-3)
            worst = max(worst, float(numpy.abs(result - expected).max()))
    print(json.dumps({"graphs": len(graphs), "worst": worst, "torch": "torch" in sys.modules}))


def process(name, folder, how):
    """Runs a program in a new process. Returns (output, the end of standard error)."""
    environment = {**os.environ, "WARMGRAPH_POLICY": "require_hit" if how == "served" else "read_write"}
    try:
        done = subprocess.run([sys.executable, __file__, "--run", name, "--folder", str(folder), "--as", how], env=environment, capture_output=True,
                              text=True, errors="replace", timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired as late:
        return None, f"took longer than {LIMIT_S} s\n{late.stderr or ''}"
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    return (json.loads(lines[-1]) if done.returncode == 0 and lines else None), f"{how}: status {done.returncode}\n{done.stderr[-3000:]}"


def chain(name, folder):
    """Runs all processes of a program. Returns (errors, the processes' output)."""
    folder.mkdir()
    texts = [process(name, folder, "plain")[1]]
    for how, outcome in {"first": "written", "second": "recorded"}.items():
        found, text = process(name, folder, how)
        texts.append(text)
        if found is None or set(found["outcomes"]) != {"refused" if name in REFUSED and found["why"] else outcome} or name in REFUSED and how == "second" \
                and not found["why"]:
            return f"the {how} process gave {found}", texts
        if any(REFUSED.get(name, "") not in why for why in found["why"]):
            return f"the {how} process gave other reasons: {found['why']}", texts
        changed = differing(folder, how)
        if changed:
            return f"the {how} process gave something else without record_all(): {changed}", texts
    if name in NOT_SERVED or name in REFUSED:
        return "", [*texts, str(found)]
    found, text = process(name, folder, "served")
    wrong = "" if found is not None and not found["torch"] else f"served: {found}"
    return wrong, [*texts, text, str(found)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="*")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--run")
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--as", dest="how")
    arguments = parser.parse_args()
    if arguments.run:
        if arguments.how == "served":
            serve(arguments.run, arguments.folder)
        else:
            record(arguments.run, arguments.folder, arguments.how)
        return 0
    names = [name for name in PROGRAMS if any(fnmatch.fnmatch(name, pattern) for pattern in arguments.only.split(","))]
    status = 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(arguments.workers) as pool:
        for name, (wrong, texts) in zip(names, pool.map(lambda name: chain(name, pathlib.Path(folder) / name), names)):
            if wrong:
                status = 1
                print("\n".join(texts))
            print(f"{name:<18} {f'WRONG {wrong}' if wrong else f'ok  {texts[-1]}'}", flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
