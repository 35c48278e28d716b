"""What a later call of a function of PyTorch's costs the host, on a GPU: the time to enqueue it, in microseconds.

usage: torch_calls.py LIBWARMGRAPH [--json FILE] [--recording]

For functions of 8 tensors, of many small layers, and for a decode step of a Hugging Face Llama with a static cache: PyTorch eager, a replay of
PyTorch's own graph, a call through the cache, and one with frozen weights. `added` is what the call takes above PyTorch's own graph. The device is
idle before each batch of calls, and the batch is small, so that nothing waits for it.

Another process records; --recording measures in the one that records, where what keeps device code (CUPTI) makes each launch dearer, also of
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

CALLS, BATCHES = 20, 25


def per_call(torch, call):
    """Microseconds: the median of batches."""
    times = []
    for _ in range(BATCHES):
        torch.cuda.synchronize()
        started = time.perf_counter()
        for _ in range(CALLS):
            call()
        times.append((time.perf_counter() - started) / CALLS * 1e6)
    torch.cuda.synchronize()
    return statistics.median(times)


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
    cache = StaticCache(config=config, max_batch_size=1, max_cache_len=8192,  # each call takes a row
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


def recorded(library, folder):
    """By a process of its own."""
    subprocess.run([sys.executable, __file__, library, "--record", folder], check=True, stdout=subprocess.DEVNULL)


def record(torch, warmgraph, subject, folder):
    function, arguments, _ = subject(torch)
    cached = warmgraph.cache_compile(function, compile=False, cache_dir=folder, config=warmgraph.Config(model=subject.__name__))
    cached(*arguments)
    torch.cuda.synchronize()


def measured(torch, warmgraph, subject, folder):
    function, arguments, weights = subject(torch)
    cached = warmgraph.cache_compile(function, compile=False, cache_dir=folder, config=warmgraph.Config(model=subject.__name__))
    expected = function(*arguments)
    for _ in range(4):
        result = cached(*arguments)
    row = {"name": subject.__name__, "weights": weights, "outcome": cached.report().outcome if cached.report() else "refused",
           "equal": bool(torch.equal(expected, result)) if subject is not llama else result.shape == expected.shape}
    row["eager"] = per_call(torch, lambda: function(*arguments))
    row["graph"] = per_call(torch, native_graph(torch, lambda: function(*arguments)))
    row["cached"] = per_call(torch, lambda: cached(*arguments))
    cached.freeze_weights()
    row["frozen"] = per_call(torch, lambda: cached(*arguments))
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("--json")
    parser.add_argument("--recording", action="store_true")
    parser.add_argument("--record", metavar="FOLDER", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    os.environ["WARMGRAPH_LIBRARY"] = str(pathlib.Path(arguments.library).resolve())
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python"))
    with tempfile.TemporaryDirectory() as folder:
        if not arguments.recording and not arguments.record:
            recorded(arguments.library, folder)
            os.environ["WARMGRAPH_POLICY"] = "read_only"
        import warmgraph
        import torch

        torch.manual_seed(7)
        with torch.no_grad():
            if arguments.record:
                for subject in SUBJECTS:
                    record(torch, warmgraph, subject, arguments.record)
                return 0
            rows = all_measured(torch, warmgraph, folder, "recorded" if arguments.recording else "replayed")
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(rows, indent=1))
    return 0 if all(row["equal"] for row in rows) else 1


def all_measured(torch, warmgraph, folder, outcome):
    rows = []
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}; microseconds to enqueue one call, {outcome}\n")
    print(f"{'function':<10} {'weights':>8} {'eager':>9} {'graph':>9} {'cached':>9} {'added':>9} {'frozen':>9}")
    for subject in SUBJECTS:
        rows.append(row := measured(torch, warmgraph, subject, folder))
        row["equal"] = row["equal"] and row["outcome"] == outcome
        print(f"{row['name']:<10} {row['weights']:>8} {row['eager']:>9.1f} {row['graph']:>9.1f} {row['cached']:>9.1f} "
              f"{row['cached'] - row['graph']:>9.1f} {row['frozen']:>9.1f}{'' if row['equal'] else '  WRONG'}  {row['outcome']}")
    return rows


if __name__ == "__main__":
    sys.exit(main())
