#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains tiny-llama on corpus.txt, on one CPU thread, and writes ../weights/tiny-llama.safetensors.

The exact mathematics are in README.md; make_golden.py implements them a second time, in numpy.
"""

import argparse
import math
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path

# OpenBLAS reads this when numpy is imported; torch.set_num_threads does not affect it.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import safetensors_file

HERE = Path(__file__).parent
SEED = 1


@dataclass(frozen=True)
class Config:
    dim: int = 128
    n_layers: int = 4
    n_heads: int = 4
    n_kv_heads: int = 2
    hidden_dim: int = 352
    vocab_size: int = 256  # tokens are bytes
    max_seq_len: int = 256
    rope_theta: float = 10000.0
    norm_eps: float = 1e-5

    @property
    def head_dim(self):
        return self.dim // self.n_heads


class RmsNorm(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(config.dim))
        self.eps = config.norm_eps

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps) * self.weight


def rope_tables(config):
    """cos and sin of position * theta^(-2i / head_dim), each [max_seq_len, head_dim / 2]."""
    frequency = config.rope_theta ** (-torch.arange(0, config.head_dim, 2).double() / config.head_dim)
    angle = torch.arange(config.max_seq_len).double()[:, None] * frequency
    return angle.cos().float(), angle.sin().float()


def rotate(x, cos, sin):
    """Rotates the interleaved pairs (2i, 2i + 1) of the last axis; x is [batch, seq, heads, head_dim]."""
    even, odd = x[..., 0::2], x[..., 1::2]
    cos, sin = cos[:, None, :], sin[:, None, :]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        kv_dim = config.n_kv_heads * config.head_dim
        self.wq = nn.Linear(config.dim, config.dim, bias=False)
        self.wk = nn.Linear(config.dim, kv_dim, bias=False)
        self.wv = nn.Linear(config.dim, kv_dim, bias=False)
        self.wo = nn.Linear(config.dim, config.dim, bias=False)

    def forward(self, x, cos, sin, mask):
        batch, length, _ = x.shape
        config = self.config
        group = config.n_heads // config.n_kv_heads
        q = rotate(self.wq(x).view(batch, length, config.n_heads, config.head_dim), cos, sin)
        k = rotate(self.wk(x).view(batch, length, config.n_kv_heads, config.head_dim), cos, sin)
        v = self.wv(x).view(batch, length, config.n_kv_heads, config.head_dim)
        # Query head h reads key/value head h // group.
        q = q.transpose(1, 2)
        k = k.transpose(1, 2).repeat_interleave(group, 1)
        v = v.transpose(1, 2).repeat_interleave(group, 1)
        scores = q @ k.transpose(-1, -2) / math.sqrt(config.head_dim) + mask
        y = scores.softmax(-1) @ v
        return self.wo(y.transpose(1, 2).reshape(batch, length, config.dim))


class FeedForward(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.w1 = nn.Linear(config.dim, config.hidden_dim, bias=False)
        self.w2 = nn.Linear(config.hidden_dim, config.dim, bias=False)
        self.w3 = nn.Linear(config.dim, config.hidden_dim, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.attention_norm = RmsNorm(config)
        self.attention = Attention(config)
        self.ffn_norm = RmsNorm(config)
        self.feed_forward = FeedForward(config)

    def forward(self, x, cos, sin, mask):
        x = x + self.attention(self.attention_norm(x), cos, sin, mask)
        return x + self.feed_forward(self.ffn_norm(x))


class TinyLlama(nn.Module):
    """The attribute names become the tensor names in the weights file."""

    def __init__(self, config):
        super().__init__()
        self.tok_embeddings = nn.Embedding(config.vocab_size, config.dim)
        self.layers = nn.ModuleList(Block(config) for _ in range(config.n_layers))
        self.norm = RmsNorm(config)
        cos, sin = rope_tables(config)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)
        mask = torch.full((config.max_seq_len, config.max_seq_len), -math.inf).triu(1)
        self.register_buffer("mask", mask, persistent=False)
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                # Matrices that add to the residual stream start smaller: else its variance would grow with the depth.
                writes_residual = name.endswith(("wo.weight", "w2.weight"))
                nn.init.normal_(parameter, std=0.05 / math.sqrt(2 * config.n_layers) if writes_residual else 0.05)

    def forward(self, tokens):
        length = tokens.shape[1]
        cos, sin, mask = self.cos[:length], self.sin[:length], self.mask[:length, :length]
        x = self.tok_embeddings(tokens)
        for layer in self.layers:
            x = layer(x, cos, sin, mask)
        return self.norm(x) @ self.tok_embeddings.weight.T  # the head is tied to the embeddings


class Batches:
    """Random windows of the training text, and fixed windows of the held-out text."""

    def __init__(self, text, length, batch, rng):
        stories = text.splitlines(keepends=True)
        held_out = stories[:len(stories) // 30]
        self.valid = self.encode(held_out)
        self.train = self.encode(stories[len(held_out):])
        lengths = [len(story) for story in stories[len(held_out):]]
        self.starts = np.cumsum([0] + lengths[:-1])
        self.starts = self.starts[self.starts < len(self.train) - length]
        self.length, self.batch, self.rng = length, batch, rng

    @staticmethod
    def encode(stories):
        return np.frombuffer("".join(stories).encode("ascii"), np.uint8).astype(np.int64)

    def at(self, data, starts):
        windows = torch.from_numpy(np.stack([data[s:s + self.length + 1] for s in starts]))
        return windows[:, :-1], windows[:, 1:]

    def next(self):
        # Half of the windows begin with a story, like the prompts; the others begin anywhere, so that
        # the model also learns the ends of long stories.
        half = self.batch // 2
        anywhere = self.rng.integers(0, len(self.train) - self.length, self.batch - half)
        return self.at(self.train, np.concatenate([self.rng.choice(self.starts, half), anywhere]))

    def held_out(self):
        return self.at(self.valid, range(0, len(self.valid) - self.length, self.length))


def loss_of(model, batch):
    tokens, targets = batch
    return F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())


def learning_rate(step, steps, peak):
    warmup = min(100, steps // 10)
    if step < warmup:
        return peak * (step + 1) / warmup
    progress = (step - warmup) / max(1, steps - warmup)
    return peak * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * progress)))


def make_optimizer(model):
    # Norms are scales, and embeddings of rare bytes get few gradients: decay would only shrink them.
    decayed = [p for n, p in model.named_parameters() if p.dim() == 2 and n != "tok_embeddings.weight"]
    others = [p for n, p in model.named_parameters() if p.dim() != 2 or n == "tok_embeddings.weight"]
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, betas=(0.9, 0.98))


def train(model, batches, steps, peak_rate):
    optimizer = make_optimizer(model)
    begin = time.monotonic()
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, steps, peak_rate)
        loss = loss_of(model, batches.next())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 50 == 0 or step == steps - 1:
            print(f"step {step:5d}  loss {loss.item():.4f} nats/byte  {time.monotonic() - begin:6.1f} s", flush=True)


def save(model, config, path):
    metadata = {"name": "tiny-llama"} | {name: str(value) for name, value in asdict(config).items()}
    tensors = {name: parameter.detach().numpy() for name, parameter in model.named_parameters()}
    path.parent.mkdir(parents=True, exist_ok=True)
    safetensors_file.write(path, tensors, metadata)
    print(f"{path}: {len(tensors)} tensors, {path.stat().st_size} bytes")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--corpus", type=Path, default=HERE / "corpus.txt")
    parser.add_argument("--output", type=Path, default=HERE.parent / "weights" / "tiny-llama.safetensors")
    parser.add_argument("--steps", type=int, default=2400)
    parser.add_argument("--batch", type=int, default=12)
    parser.add_argument("--learning-rate", type=float, default=3e-3)
    options = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    config = Config()
    model = TinyLlama(config)
    print(f"{sum(p.numel() for p in model.parameters())} parameters")
    if not options.corpus.exists():
        raise SystemExit(f"{options.corpus} is not there: run make_corpus.py first")
    text = options.corpus.read_text(encoding="ascii")
    # Windows are as long as the context, because a shorter one would leave the last positions untrained.
    batches = Batches(text, config.max_seq_len, options.batch, np.random.default_rng(SEED))
    train(model, batches, options.steps, options.learning_rate)
    with torch.no_grad():
        print(f"held-out loss {loss_of(model, batches.held_out()).item():.4f} nats/byte")
    save(model, config, options.output)


if __name__ == "__main__":
    main()
