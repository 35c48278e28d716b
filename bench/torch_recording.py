"""Measures what recording adds to a model's first call: time, and device memory.

usage: torch_recording.py [--layers 24] [--width 2048] [--json FILE]       runs each row in a process of its own, prints a table
       torch_recording.py --run native|recorded|replayed --folder DIR     runs one process, prints a line of JSON

The model is transformers' Llama with about 1.5 billion parameters in bfloat16. Memory is the greatest part of the device's memory that was in use
during the first call, above the part before it, as the driver counts it; the weights are not part of it. "reported" is the report's own number for
the recording. warmgraph must be importable.
"""
from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time

VOCABULARY = 50_000


def model_of(torch, arguments):
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(vocab_size=VOCABULARY, hidden_size=arguments.width, intermediate_size=arguments.width * 11 // 4,
                         num_hidden_layers=arguments.layers, num_attention_heads=16, num_key_value_heads=8, max_position_embeddings=2048)
    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        model = LlamaForCausalLM(config).eval()
    torch.set_default_dtype(torch.float32)
    return model


class Peak:
    """The most device memory in use inside the block, above the memory in use before, in bytes."""

    def __init__(self, torch):
        self._torch, self._ends, self.bytes = torch, threading.Event(), 0

    def _used(self):
        free, total = self._torch.cuda.mem_get_info()
        return total - free

    def _watch(self, before):
        self._torch.cuda.set_device(0)
        while not self._ends.wait(0.0005):
            self.bytes = max(self.bytes, self._used() - before)

    def __enter__(self):
        self._torch.cuda.empty_cache()
        self._thread = threading.Thread(target=self._watch, args=(self._used(),))
        self._thread.start()
        return self

    def __exit__(self, *raised):
        self._ends.set()
        self._thread.join()


def run(arguments):
    if arguments.run != "native":
        import warmgraph  # before the process's first kernel: code that was loaded earlier cannot be recorded
    import torch

    model = model_of(torch, arguments)
    tokens = torch.randint(0, VOCABULARY, (1, 64), device="cuda")
    result = {"parameters": sum(one.numel() for one in model.parameters()), "weights": sum(one.nbytes for one in model.parameters())}
    call = lambda: model(input_ids=tokens, use_cache=False)  # noqa: E731
    if arguments.run != "native":
        policy = "require_hit" if arguments.run == "replayed" else "read_write"
        wrapped = warmgraph.cache_compile(model, compile=False, cache_dir=arguments.folder, config=warmgraph.Config(model="cost", policy=policy))
        call = lambda: wrapped(input_ids=tokens, use_cache=False)  # noqa: E731
    torch.cuda.synchronize()
    with torch.no_grad(), Peak(torch) as peak:
        started = time.perf_counter()
        call()
        torch.cuda.synchronize()
        result["first_ms"] = (time.perf_counter() - started) * 1e3
    result["peak"] = peak.bytes
    if arguments.run != "native":
        report = wrapped.report()
        result |= {"outcome": report.outcome, "reason": report.reason, "phases": report.phases, "reported": report.recording_bytes}
    print(json.dumps(result))


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--layers", type=int, default=26)
    parser.add_argument("--width", type=int, default=2048)
    parser.add_argument("--json")
    parser.add_argument("--run", choices=("native", "recorded", "replayed"))
    parser.add_argument("--folder")
    arguments = parser.parse_args()
    if arguments.run:
        run(arguments)
        return 0
    rows = {}
    with tempfile.TemporaryDirectory() as folder:
        for row in ("native", "recorded", "replayed"):
            command = [sys.executable, __file__, "--run", row, "--folder", folder, "--layers", str(arguments.layers), "--width", str(arguments.width)]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
            if done.returncode != 0:
                print(f"the process '{row}' ended with status {done.returncode}", file=sys.stderr)
                return 1
            rows[row] = json.loads(done.stdout.splitlines()[-1])
    native = rows["native"]
    print(f"{native['parameters'] / 1e9:.2f} billion parameters, {native['weights'] / 1e6:.0f} MB")
    print(f"{'':<10} {'outcome':<10} {'first call':>12} {'added':>10} {'memory':>10} {'added / weights':>16} {'reported':>10}")
    for name, row in rows.items():
        added, memory = row["first_ms"] - native["first_ms"], (row["peak"] - native["peak"]) / native["weights"]
        print(f"{name:<10} {row.get('outcome', ''):<10} {row['first_ms']:>9.0f} ms {added:>7.0f} ms {row['peak'] / 1e6:>7.0f} MB "
              f"{100 * memory:>14.1f} % {row.get('reported', 0) / 1e6:>7.0f} MB")
        if row.get("reason"):
            print(f"           {row['reason']}")
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(rows, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
