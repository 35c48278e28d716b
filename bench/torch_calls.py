"""Measures the host's cost of a later call of a PyTorch function on a GPU: the time to enqueue it, in microseconds.

usage: torch_calls.py LIBWARMGRAPH [--json FILE] [--recording] [--only NAME]...

For functions of 8 tensors (eight), of many small layers (layers), and for a decode step of a Hugging Face Llama with a static cache (llama): PyTorch
eager, a replay of PyTorch's own graph, a call through the cache, and a call with frozen weights. `added` is the call's time minus that of PyTorch's
graph. The device is idle before each batch of calls, and the batch is small, so that no call waits for the device.

All calls are measured in turns, each round on the fastest core at that time, together with a fixed loop. Cores with other load work
at half their speed, for seconds at a time. So the table has the medians of the rounds on a fast core (with the share of these rounds, and the loop's
time on the fastest core), and below them the medians of all rounds.

Another process records. --recording measures in the recording process, where CUPTI keeps device code and makes each launch slower, also of
PyTorch's own graphs.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from peers import cores

CALLS, ROUNDS, LEAST_ROUNDS, EAGER_ROUNDS = 20, 100, 5, 10


def batch(torch, call):
    """Microseconds of one call, measured over several calls in a row on an idle device."""
    torch.cuda.synchronize()
    started = time.perf_counter()
    for _ in range(CALLS):
        call()
    return (time.perf_counter() - started) / CALLS * 1e6


def by_turns(torch, calls, rounds):
    """(microseconds of each in fast rounds, in all rounds, the share of fast rounds, microseconds of the fastest loop)."""
    found = []
    for _ in range(rounds):
        cores.settle()
        before = cores.loop_seconds()
        times = {name: batch(torch, call) for name, call in calls.items()}
        found.append((max(before, cores.loop_seconds()), times))
    torch.cuda.synchronize()
    least = cores.least_seconds()
    quick = [times for one, times in found if one <= cores.SLOWER * least]
    if len(quick) < LEAST_ROUNDS:
        quick = [times for _, times in sorted(found, key=lambda pair: pair[0])[:LEAST_ROUNDS]]
    return medians(quick), medians([times for _, times in found]), len(quick) / rounds, least * 1e6


def medians(rounds):
    """`added`: a call's time minus the graph's time in the same round."""
    found = {name: statistics.median(times[name] for times in rounds) for name in rounds[0]}
    if "cached" in found:
        found["added"] = statistics.median(times["cached"] - times["graph"] for times in rounds)
        found["frozen added"] = statistics.median(times["frozen"] - times["graph"] for times in rounds)
    return found


def native_graph(torch, call):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(2):
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph.replay


def eight(torch):
    def added(a, b, c, d, e, f, g, h):
        return a + b + c + d + e + f + g + h

    return added, [torch.randn(64, device="cuda") for _ in range(8)], 0


def layers(torch):
    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.up, self.down = torch.nn.LayerNorm(64), torch.nn.Linear(64, 128), torch.nn.Linear(128, 64)

        def forward(self, x):
            return x + self.down(torch.nn.functional.silu(self.up(self.norm(x))))

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = torch.nn.ModuleList(Block() for _ in range(25))

        def step(self, x):
            for block in self.blocks:
                x = block(x)
            return x

    model = Model().cuda().eval()
    return model.step, [torch.randn(4, 64, device="cuda")], len(list(model.parameters()))


def llama(torch):
    from transformers import LlamaConfig, LlamaForCausalLM, StaticCache

    config = LlamaConfig(hidden_size=256, intermediate_size=512, num_hidden_layers=16, num_attention_heads=4, num_key_value_heads=4, vocab_size=512)
    model = LlamaForCausalLM(config).cuda().eval()
    cache = StaticCache(config=config, max_batch_size=1, max_cache_len=8192,  # each call uses a row
                         device="cuda", dtype=torch.float32)

    class Decode(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def step(self, token, position, cache):
            return self.model(token, past_key_values=cache, cache_position=position, use_cache=True).logits[:, -1].argmax(-1, keepdim=True)

    model(torch.zeros(1, 4, dtype=torch.long, device="cuda"), past_key_values=cache, cache_position=torch.arange(4, device="cuda"), use_cache=True)
    decode = Decode().eval()
    return decode.step, [torch.zeros(1, 1, dtype=torch.long, device="cuda"), torch.tensor([5], device="cuda"), cache], len(list(model.parameters()))


SUBJECTS = [eight, layers, llama]


def chosen(arguments):
    return [subject for subject in SUBJECTS if arguments.only is None or subject.__name__ in arguments.only]


def recorded(arguments, folder):
    """Records in a process of its own."""
    only = [f"--only={subject.__name__}" for subject in chosen(arguments)]
    subprocess.run([sys.executable, __file__, arguments.library, "--record", folder, *only], check=True, stdout=subprocess.DEVNULL)


def record(torch, warmgraph, subject, folder):
    function, arguments, _ = subject(torch)
    cached = warmgraph.cache_compile(function, compile=False, cache_dir=folder, config=warmgraph.Config(model=subject.__name__))
    cached(*arguments)
    torch.cuda.synchronize()


def measured(torch, warmgraph, subject, folder):
    function, arguments, weights = subject(torch)
    cached, frozen = (warmgraph.cache_compile(function, compile=False, cache_dir=folder, config=warmgraph.Config(model=subject.__name__)) for _ in range(2))
    expected = function(*arguments)
    for _ in range(4):
        results = cached(*arguments), frozen(*arguments)
    frozen.freeze_weights()
    for _ in range(4):
        frozen(*arguments)
    assert frozen.report() is not None, frozen
    row = {"name": subject.__name__, "weights": weights, "outcome": cached.report().outcome if cached.report() else "refused",
           "equal": all(torch.equal(expected, one) if subject is not llama else one.shape == expected.shape for one in results)}
    _, eager, _, _ = by_turns(torch, {"eager": lambda: function(*arguments)}, EAGER_ROUNDS)
    calls = {"graph": native_graph(torch, lambda: function(*arguments)), "cached": lambda: cached(*arguments), "frozen": lambda: frozen(*arguments)}
    quick, every, share, loop = by_turns(torch, calls, ROUNDS)
    return {**row, **eager, **quick, "quick rounds": share, "loop": loop, "all rounds": every}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("--json")
    parser.add_argument("--recording", action="store_true")
    parser.add_argument("--only", action="append", choices=[subject.__name__ for subject in SUBJECTS])
    parser.add_argument("--record", metavar="FOLDER", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    os.environ["WARMGRAPH_LIBRARY"] = str(pathlib.Path(arguments.library).resolve())
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python"))
    with tempfile.TemporaryDirectory() as folder:
        if not arguments.recording and not arguments.record:
            recorded(arguments, folder)
            os.environ["WARMGRAPH_POLICY"] = "read_only"
        import warmgraph
        import torch

        torch.manual_seed(7)
        with torch.no_grad():
            if arguments.record:
                for subject in chosen(arguments):
                    record(torch, warmgraph, subject, arguments.record)
                return 0
            rows = all_measured(torch, warmgraph, folder, chosen(arguments), "recorded" if arguments.recording else "replayed")
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(rows, indent=1))
    return 0 if all(row["equal"] for row in rows) else 1


COLUMNS = ("eager", "graph", "cached", "added", "frozen", "frozen added")


def all_measured(torch, warmgraph, folder, subjects, outcome):
    rows = []
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}; microseconds to enqueue one call, {outcome}\n")
    print(f"{'function':<10} {'weights':>8}" + "".join(f" {name:>12}" for name in COLUMNS))
    for subject in subjects:
        rows.append(row := measured(torch, warmgraph, subject, folder))
        row["equal"] = row["equal"] and row["outcome"] == outcome
        print(f"{row['name']:<10} {row['weights']:>8}" + "".join(f" {row[name]:>12.1f}" for name in COLUMNS) + f"{'' if row['equal'] else '  WRONG'}  {row['outcome']}")
        print(f"  {row['quick rounds']:>4.0%} quick, all:               " + "".join(f" {row['all rounds'][name]:>12.1f}" for name in COLUMNS[1:])
              + f"  loop {row['loop']:.0f}", flush=True)
    return rows


if __name__ == "__main__":
    sys.exit(main())
