#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes golden.json: the expected answers of ../weights/tiny-llama.safetensors, from an independent reference.

The reference shares no model code with train.py: numpy in double precision, every step computed over the
whole sequence without a KV cache. So its error is far below that of any f32 implementation.
"""

import argparse
import json
from pathlib import Path

import numpy as np

import safetensors_file

HERE = Path(__file__).parent
PROMPTS = [
    "T",
    "Long ago",
    "Once upon a time",
    "The little fox was called Rosie. One day",
    "Once there was a kind bear who lived in a quiet cave in the woods",
]
N_GENERATED = 48
LOGITS_AT = (0, 1, 2, 16)
# With a smaller margin between the best token and the next, an f32 implementation's rounding could decide.
MIN_MARGIN = 2e-3


class Reference:
    def __init__(self, path):
        tensors, metadata = safetensors_file.read(path)
        self.weights = {name: tensor.astype(np.float64) for name, tensor in tensors.items()}
        self.config = {
            name: float(value) if name in ("rope_theta", "norm_eps") else int(value)
            for name, value in metadata.items() if name != "name"
        }
        self.head_dim = self.config["dim"] // self.config["n_heads"]

    def rms_norm(self, x, weight):
        return x / np.sqrt(np.mean(x * x, -1, keepdims=True) + self.config["norm_eps"]) * weight

    def rope(self, heads):
        """heads is [heads, seq, head_dim]; the pair (2i, 2i + 1) is one complex number, turned by an angle."""
        positions = np.arange(heads.shape[1])[:, None]
        frequencies = self.config["rope_theta"] ** (-np.arange(0, self.head_dim, 2) / self.head_dim)
        turned = (heads[..., 0::2] + 1j * heads[..., 1::2]) * np.exp(1j * positions * frequencies)
        return np.stack((turned.real, turned.imag), -1).reshape(heads.shape)

    def split_heads(self, x):
        return x.reshape(len(x), -1, self.head_dim).transpose(1, 0, 2)

    def attention(self, x, prefix):
        q = self.rope(self.split_heads(x @ self.weights[prefix + "wq.weight"].T))
        k = self.rope(self.split_heads(x @ self.weights[prefix + "wk.weight"].T))
        v = self.split_heads(x @ self.weights[prefix + "wv.weight"].T)
        group = len(q) // len(k)
        future = np.triu(np.ones((len(x), len(x)), bool), 1)
        outputs = []
        for head, query in enumerate(q):
            scores = query @ k[head // group].T / np.sqrt(self.head_dim)
            scores[future] = -np.inf
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            outputs.append(weights / weights.sum(-1, keepdims=True) @ v[head // group])
        return np.concatenate(outputs, -1) @ self.weights[prefix + "wo.weight"].T

    def feed_forward(self, x, prefix):
        gate = x @ self.weights[prefix + "w1.weight"].T
        up = x @ self.weights[prefix + "w3.weight"].T
        return (gate / (1 + np.exp(-gate)) * up) @ self.weights[prefix + "w2.weight"].T

    def last_logits(self, tokens):
        embeddings = self.weights["tok_embeddings.weight"]
        x = embeddings[tokens]
        for i in range(self.config["n_layers"]):
            layer = f"layers.{i}."
            normed = self.rms_norm(x, self.weights[layer + "attention_norm.weight"])
            x = x + self.attention(normed, layer + "attention.")
            normed = self.rms_norm(x, self.weights[layer + "ffn_norm.weight"])
            x = x + self.feed_forward(normed, layer + "feed_forward.")
        return self.rms_norm(x[-1], self.weights["norm.weight"]) @ embeddings.T


def rounded(logits):
    return [float(f"{value:.6g}") for value in logits]


def make_case(reference, prompt):
    prompt_tokens = list(prompt.encode("ascii"))
    generated = []
    kept = {}
    smallest_margin = np.inf
    for step in range(N_GENERATED):
        logits = reference.last_logits(prompt_tokens + generated)
        second, best = np.argsort(logits)[-2:]
        smallest_margin = min(smallest_margin, logits[best] - logits[second])
        if step in LOGITS_AT:
            kept[str(step)] = rounded(logits)
        generated.append(int(best))
    text = bytes(generated).decode("ascii")
    print(f"{prompt!r} -> {text!r}, smallest margin {smallest_margin:.4f}")
    if smallest_margin <= MIN_MARGIN:
        raise SystemExit(f"near-tie at prompt {prompt!r}: margin {smallest_margin:.2g}, "
                         f"expected more than {MIN_MARGIN:.2g}; choose another prompt")
    return {"prompt": prompt, "prompt_tokens": prompt_tokens, "generated_tokens": generated, "text": text,
            "logits": kept}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--weights", type=Path, default=HERE.parent / "weights" / "tiny-llama.safetensors")
    parser.add_argument("--output", type=Path, default=HERE / "golden.json")
    options = parser.parse_args()

    reference = Reference(options.weights)
    golden = {"config": reference.config, "cases": [make_case(reference, prompt) for prompt in PROMPTS]}
    options.output.write_text(json.dumps(golden, separators=(",", ":")) + "\n", encoding="ascii")
    print(f"{options.output}: {options.output.stat().st_size} bytes")


if __name__ == "__main__":
    main()
