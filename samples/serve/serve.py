"""Generates the tokens that PyTorch generated, from the entries of record.py and a safetensors file: without PyTorch
and the model's code.

usage: serve.py FOLDER [--device cuda:0]
"""
import argparse
import json
import pathlib
import sys

import numpy

import start
import warmgraph
from warmgraph import safetensors


def generated(server, prompt, count):
    """Returns (the tokens, milliseconds from the process's start to the first token)."""
    tokens, first_ms = [], 0.0
    given = server.function("prompt")(tokens=numpy.array([prompt]))
    for position in range(len(prompt), len(prompt) + count):
        (next_token,) = given.values()
        tokens.append(int(next_token[0, 0]))
        first_ms = first_ms or start.since_start_ms()
        if len(tokens) < count:
            given = server.function("decode")(token=next_token, position=numpy.array([position]))
    return tokens, first_ms


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--device", default="cuda:0")
    options = parser.parse_args()
    golden = json.loads((options.folder / "golden.json").read_text())
    device = warmgraph.Device(options.device)
    device.warm_up()
    server = warmgraph.Server(golden["model"], device=device, cache_dir=options.folder / "cache",
                              weights=safetensors.load(options.folder / "model.safetensors"))
    tokens, first_ms = generated(server, golden["prompt"], len(golden["tokens"]))
    is_same = tokens == golden["tokens"]
    print(f"tokens {' '.join(map(str, tokens))}: {'those' if is_same else 'not those'} that PyTorch generated\n")
    print(f"{'process start to first token':<32}{'ms':>8}\n{'PyTorch':<32}{golden['first_token_ms']:>8.0f}\n{'warmgraph, Python':<32}{first_ms:>8.0f}")
    return 0 if is_same else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (warmgraph.Error, OSError) as error:
        sys.exit(f"serve.py: {error}")
