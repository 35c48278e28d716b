"""Measures the cost of the package's Python code for functions of PyTorch's tensors, without a GPU: host tensors stand for device tensors, and nothing
is captured or launched (python/tests/torch_on_the_host.py).

usage: torch_host.py LIBWARMGRAPH [--json FILE]

Milliseconds of `GraphCache.capture_one` for each graph of a table that is restored, and microseconds of a later call: of one tensor, of eight,
and of a module of 150 weights.
"""
import argparse
import ctypes
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time

GRAPHS, LAYERS, ROUNDS = 32, 16, 5
CALLS, BATCHES = 200, 25


def best_of(batches, count, call):
    """Seconds of one call, in the fastest batch."""
    times = []
    for _ in range(batches):
        started = time.perf_counter()
        for _ in range(count):
            call()
        times.append((time.perf_counter() - started) / count)
    return min(times)


def model_of(torch, layers):
    """The modules of a very small Llama: 8 weights a layer."""
    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            for name in ("q", "k", "v", "o", "up", "down"):
                setattr(self, name, torch.nn.Linear(8, 8, bias=False))
            self.first, self.second = torch.nn.LayerNorm(8, bias=False), torch.nn.LayerNorm(8, bias=False)

        def forward(self, x):
            h = self.first(x)
            x = x + self.o(self.q(h) + self.k(h) + self.v(h))
            return x + self.down(self.up(self.second(x)))

    return torch.nn.Sequential(*(Layer() for _ in range(layers)))


def table(torch, warmgraph):
    """(ms of the first graph, ms of each other graph), medians of rounds that restore all graphs."""
    from warmgraph.torch import GraphCache

    model, caches, tokens = model_of(torch, LAYERS), [torch.zeros(4, 8) for _ in range(LAYERS)], torch.zeros(2 * GRAPHS, 8)

    def graph_of(size):
        x, own = tokens[:size], caches

        def forward():
            own[0].add_(0)
            return model(x)

        return forward

    rounds = []
    for _ in range(ROUNDS + 1):  # the first round records
        graphs, held, times = GraphCache(config=warmgraph.Config(model="bench")), [], []
        for size in range(1, GRAPHS + 1):
            started = time.perf_counter()
            held.append(graphs.capture_one(size, graph_of(size)))
            times.append((time.perf_counter() - started) * 1e3)
        rounds.append(times)
    outcomes = {graph.outcome for graph, _ in held}
    if outcomes != {"replayed"}:
        raise RuntimeError(f"the table's graphs are {outcomes}, expected to be restored")
    return statistics.median(times[0] for times in rounds[1:]), statistics.median(one for times in rounds[1:] for one in times[1:])


def later_calls(torch, warmgraph):
    """{kind: microseconds}"""
    def wrapped(function, name):
        return warmgraph.cache_compile(function, compile=False, name=name, config=warmgraph.Config(model="bench"))

    def added(*tensors):
        return sum(tensors)

    model = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4), torch.nn.LayerNorm(4)) for _ in range(25)))
    module, x, eight = wrapped(model.forward, "module"), torch.ones(2, 4), [torch.ones(4) for _ in range(8)]
    kinds = {"one tensor": (wrapped(lambda x: x + 1, "one"), [x]), "8 tensors": (wrapped(added, "eight"), eight), "150 weights": (module, [x])}
    found = {}
    with torch.no_grad():
        for kind, (function, arguments) in kinds.items():
            for _ in range(50):
                function(*arguments)
            found[kind] = best_of(BATCHES, CALLS, lambda: function(*arguments)) * 1e6
        module.freeze_weights()
        found["150 weights, frozen"] = best_of(BATCHES, CALLS, lambda: module(x)) * 1e6
    return found


class _Patched:
    """The part of pytest's monkeypatch that is used."""

    @staticmethod
    def setattr(of, name, value):
        setattr(of, name, value)


def launched_by_nothing(entry):
    """Replaces a later call's launch by a C function that does nothing: isalpha, which returns 0 for the handle 1."""
    init = entry.__init__

    def made(self, *given):
        init(self, *given)
        self.enqueue = ctypes.CDLL(None).isalpha

    entry.__init__ = made


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", help="libwarmgraph.so of a build")
    parser.add_argument("--json", metavar="FILE", help="the numbers, for machines")
    given = parser.parse_args()
    root = pathlib.Path(__file__).resolve().parents[1]
    sys.path[:0] = [str(root / "python"), str(root / "python" / "tests")]
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(WARMGRAPH_LIBRARY=os.path.realpath(given.library), WARMGRAPH_CACHE_DIR=folder)
        import torch
        import torch_on_the_host
        import warmgraph

        torch_on_the_host.use(_Patched())
        launched_by_nothing(torch_on_the_host.FakeEntry)
        first, rest = table(torch, warmgraph)
        later = later_calls(torch, warmgraph)
    print(f"Python {sys.version.split()[0]}, PyTorch {torch.__version__}")
    print(f"a table of {GRAPHS} graphs over {8 * LAYERS} weights, restored: {first:.1f} ms for the first, {rest:.2f} for each of the rest")
    for kind, took in later.items():
        print(f"a later call, {kind}: {took:.2f} us")
    if given.json:
        numbers = {"first_graph_ms": first, "further_graph_ms": rest, "later_call_us": later}
        pathlib.Path(given.json).write_text(json.dumps(numbers, indent=2) + "\n")


if __name__ == "__main__":
    main()
