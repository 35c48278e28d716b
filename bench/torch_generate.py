"""Measures transformers' generate() with a static cache: the first token, and tokens per second.

usage: torch_generate.py [--models gemma3,mistral,llama] [--tokens 128] [--json FILE]      runs each row in a process of its own, prints a table
       torch_generate.py --run native|recorded|replayed --model gemma3 --folder DIR        runs one process, prints a line of JSON

The models have random weights in bfloat16: Gemma 3 as its model of one billion parameters, Mistral and Llama with 16 layers 2,048 wide. Sliding
windows have 96 tokens, so that a prompt of 64 is within the window and the answer passes it. The first token's time begins with the weights on
the device. "tokens/s" is that of a second call. warmgraph must be importable.
"""
from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time

WINDOW, PROMPT = 96, 64
ROWS = ("native", "recorded", "replayed")


def model_of(torch, name):
    import transformers

    small = dict(vocab_size=32_000, hidden_size=2048, intermediate_size=5632, num_hidden_layers=16, num_attention_heads=16, num_key_value_heads=4)
    makes = {"gemma3": lambda: transformers.Gemma3ForCausalLM(transformers.Gemma3TextConfig(
                 vocab_size=262_144, hidden_size=1152, intermediate_size=6912, num_hidden_layers=26, num_attention_heads=4, num_key_value_heads=1,
                 head_dim=256, sliding_window=WINDOW)),
             "mistral": lambda: transformers.MistralForCausalLM(transformers.MistralConfig(**small, sliding_window=WINDOW)),
             "llama": lambda: transformers.LlamaForCausalLM(transformers.LlamaConfig(**small))}
    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        model = makes[name]().eval()
    torch.set_default_dtype(torch.float32)
    model.generation_config.eos_token_id = None  # each call makes all tokens
    return model


class FirstToken:
    """Receives tokens from generate(), and keeps the time of the first one that is new."""

    def __init__(self):
        self.puts, self.at = 0, 0.0

    def put(self, tokens):
        self.puts += 1
        if self.puts == 2:
            self.at = time.perf_counter()

    def end(self):
        pass


def run(arguments):
    if arguments.run != "native":
        import warmgraph  # before the process's first kernel: code that was loaded earlier cannot be recorded
    import torch

    model = model_of(torch, arguments.model)
    tokens = torch.randint(3, 32_000, (1, PROMPT), device="cuda")
    torch.cuda.synchronize()

    def generated(streamer=None):
        return model.generate(input_ids=tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=arguments.tokens, do_sample=False,
                              cache_implementation="static", disable_compile=True, streamer=streamer)

    started, first, wrapped = time.perf_counter(), FirstToken(), None
    if arguments.run != "native":
        policy = "read_only" if arguments.run == "replayed" else "read_write"  # the first pass, which fills the cache, is not recorded
        model.forward = wrapped = warmgraph.cache_compile(model.forward, compile=False, cache_dir=arguments.folder,
                                                          config=warmgraph.Config(model=arguments.model, policy=policy))
    answer = generated(first)[0].tolist()
    result = {"first_ms": (first.at - started) * 1e3, "whole_ms": (time.perf_counter() - started) * 1e3, "tokens": answer}
    started = time.perf_counter()
    again = generated()[0].tolist()
    result |= {"tokens_per_s": arguments.tokens / (time.perf_counter() - started), "same": again == answer}
    if wrapped:
        entries = warmgraph.stats(wrapped)[0].kinds["entries"]
        refused = [one for one in (*wrapped._shared.refused, *wrapped._shared.runs_as_it_is) if one]
        result |= {"recorded": entries.made, "hits": entries.hits, "refused": list(dict.fromkeys(refused))}
    print(json.dumps(result))


def rows_of(arguments, name):
    with tempfile.TemporaryDirectory() as folder:
        for row in ROWS:
            command = [sys.executable, __file__, "--run", row, "--model", name, "--folder", folder, "--tokens", str(arguments.tokens)]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
            yield row, json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else None


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--models", default="gemma3,mistral,llama")
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--json")
    parser.add_argument("--run", choices=ROWS)
    parser.add_argument("--model")
    parser.add_argument("--folder")
    arguments = parser.parse_args()
    if arguments.run:
        run(arguments)
        return 0
    found, failed = {}, False
    print(f"{'model':<10} {'':<10} {'first token':>14} {'first call':>12} {'tokens/s':>10} {'entries':>8} {'hits':>6}")
    for name in arguments.models.split(","):
        rows = found[name] = dict(rows_of(arguments, name))
        for row, one in rows.items():
            if one is None:
                print(f"{name:<10} {row:<10} the process failed")
                failed = True
                continue
            same = one["same"] and (rows["native"] or {}).get("tokens") == one["tokens"]
            failed = failed or not same
            print(f"{name:<10} {row:<10} {one['first_ms']:>11.0f} ms {one['whole_ms']:>9.0f} ms {one['tokens_per_s']:>10.1f} {one.get('recorded', ''):>8} "
                  f"{one.get('hits', ''):>6}{'' if same else '  OTHER TOKENS'}", flush=True)
            for why in one.get("refused", []):
                print(f"           {why[:300]}")
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(found, file, indent=1)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
