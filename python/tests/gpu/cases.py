"""PyTorch functions that are recorded in one process and replayed in the next, and compared with PyTorch itself.

usage: cases.py [--only PATTERN,PATTERN...] [--workers 6]     runs each case cold and warm, prints a table; exit status 1 if a case went
wrong
       cases.py --run CASE --folder DIR --as first|cold|warm|plain  runs one process of a case

The table has milliseconds of the first call: "plain" without warmgraph (compiled code finds Inductor's and Triton's own caches filled),
"cold" with the recording, "warm" in the next process. Then come the milliseconds of a later call, plain and warm. Each process has its
model on the device before its first call; in a first call, PyTorch also starts libraries (cuBLAS, cuDNN) that a hit does not need. `--only
'engine_pair*'`: the graph is captured once in a first process and once in the cold one; after the times, the table has the number of
captures that proved an entry. With `--only 'pair_*'`, functions run under gradients, forward and backward.
"""
from __future__ import annotations

import argparse
import concurrent.futures
import ctypes
import dataclasses
import faulthandler
import fnmatch
import json
import logging
import os
import pathlib
import subprocess
import sys
import tempfile
import time

STEPS = 3
LIMIT_S = 100
MOST_LETTERS = 6000  # the most characters of a failed case's output that are printed
COMPILERS = ("torch._dynamo", "torch._inductor", "triton")


# --- The cases. Each returns (call, arguments of each step). It is made twice with the same seed: with the cache and without


@dataclasses.dataclass
class InputMeta:
    data: object
    is_prompt: bool


def wrapped(function, options, how):
    """Wraps a function. `options`: the options of the cache; None: no wrapping; "plain": as PyTorch alone would run it."""
    if options is None or options == "plain":
        import torch

        return torch.compile(function, fullgraph=True) if options and how["compile"] is not False else function
    import warmgraph

    return warmgraph.cache_compile(function, **options, **how)


def mlp(torch, options, compile=False):
    class Mlp(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.down = torch.nn.Linear(64, 256), torch.nn.Linear(256, 64)
            self.norm = torch.nn.LayerNorm(64)
            self.step = wrapped(self.forward_step, options, {"compile": compile})

        def forward_step(self, x):
            return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))

    model = Mlp().cuda().eval()
    return model.step, [(torch.randn(32, 64, device="cuda"),) for _ in range(STEPS)]


def mlp_compiled(torch, options):
    return mlp(torch, options, compile=None)


def function_with_global(torch, options):
    global SCALE
    SCALE = torch.rand(128, device="cuda")
    offset = torch.rand(128, device="cuda")

    def scaled(x, factor=2.0):
        y = x * SCALE * factor + offset
        return {"y": y, "row": y[1], "x": x, "half": x[:, ::2], "n": 3}

    return wrapped(scaled, options, {"compile": False}), [(torch.randn(4, 128, device="cuda"),) for _ in range(STEPS)]


def torchair(torch, options, compile=None):
    """The example in TorchAir's documentation, as a case."""
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear1 = torch.nn.Linear(2, 1)
            self.linear2 = torch.nn.Linear(2, 1)
            for param in self.parameters():
                torch.nn.init.ones_(param)
            self.cached_prompt = wrapped(self.prompt, options, {"compile": compile})
            self.cached_decode = wrapped(self.decode, options, {"compile": compile})

        def forward(self, x, kv):
            if x.is_prompt:
                return self.cached_prompt(x, kv)
            return self.cached_decode(x, kv)

        def _forward(self, x, kv):
            return self.linear2(x.data) + self.linear2(kv[0])

        def prompt(self, x, y):
            return self._forward(x, y)

        def decode(self, x, y):
            return self._forward(x, y)

    model = Model().cuda()
    kv = [torch.randn(2, 2, device="cuda")]
    return model, [(InputMeta(torch.randn(2, 2, device="cuda"), i == 0), kv) for i in range(STEPS)]


def torchair_eager(torch, options):
    return torchair(torch, options, compile=False)


def llama(torch, options, compile=False):
    """A decode step of LlamaForCausalLM, after a prompt in its static cache."""
    from transformers import LlamaConfig, LlamaForCausalLM, StaticCache

    config = LlamaConfig(vocab_size=512, hidden_size=256, intermediate_size=512, num_hidden_layers=2, num_attention_heads=4,
                         num_key_value_heads=2, max_position_embeddings=64, attn_implementation="sdpa")

    class Decoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = LlamaForCausalLM(config)
            self.step = wrapped(self.decode, options, {"compile": compile})

        def prompt(self, tokens, position, cache):
            return self.model(input_ids=tokens, position_ids=position.unsqueeze(0), past_key_values=cache, use_cache=True)

        def decode(self, token, position, cache):
            return self.model(input_ids=token, position_ids=position.unsqueeze(0), past_key_values=cache, use_cache=True)

    model = Decoder().cuda().eval()
    cache = StaticCache(config=config, max_cache_len=64)
    prompt = 5
    with torch.no_grad():
        model.prompt(torch.randint(0, 512, (2, prompt), device="cuda"), torch.arange(prompt, device="cuda"), cache)
    tokens = torch.randint(0, 512, (STEPS, 2, 1), device="cuda")
    return model.step, [(tokens[i], torch.tensor([prompt + i], device="cuda"), cache) for i in range(STEPS)]


def llama_compiled(torch, options):
    return llama(torch, options, compile=None)


def module(torch, options, compile=False, form=lambda torch, net: net):
    """A module with hooks, which is itself the wrapped function."""
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.down = torch.nn.Linear(64, 256), torch.nn.Linear(256, 64)

        def forward(self, x, factor=0.5):
            return {"y": x + self.down(torch.nn.functional.gelu(self.up(x))) * factor}

    net = Net().cuda().eval()
    net.register_forward_pre_hook(lambda module, args: (args[0] * 2, *args[1:]))
    net.up.register_forward_hook(lambda module, args, result: result + 1)
    cached = wrapped(form(torch, net), options, {"compile": compile})
    return cached, [(torch.randn(32, 64, device="cuda"),) for _ in range(STEPS)]


def module_compiled(torch, options):
    return module(torch, options, compile=None)


def module_of_torch_compile(torch, options):
    """A module that the user compiled with torch.compile. A hit runs none of the compiled code."""
    return module(torch, options, compile=None, form=lambda torch, net: torch.compile(net, fullgraph=True))


def module_compiled_in_place(torch, options):
    def in_place(torch, net):
        net.compile(fullgraph=True)
        return net

    return module(torch, options, compile=None, form=in_place)


def module_with_compiled_layer(torch, options):
    def layer(torch, net):
        net.down.compile(fullgraph=True)
        return net

    return module(torch, options, form=layer)


class Borrowing:
    """A module with borrowed results. Results of earlier calls become stale; one of them may be an argument of the next call."""

    def __init__(self, torch, options):
        self.is_cached, self.calls, self.places, self.last = isinstance(options, dict), 0, set(), None
        self.net = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 64)).cuda().eval()
        self.cached = wrapped(self.net, {**options, "borrow": True} if self.is_cached else options, {"compile": False})

    def __call__(self, x):
        found = self.cached(x)
        self.calls += 1
        if self.is_cached and self.calls > 1:  # not in the first call, because a recording may return the function's own result
            self.expect_borrowed(found)
        chained = self.cached(found)  # this call must not overwrite its argument
        return [found.clone(), chained.clone()]

    def expect_borrowed(self, found):
        self.places.add(found.data_ptr())
        assert len(self.places) == 1, self.places
        if self.last is not None:
            try:
                self.last.sum()
            except RuntimeError as error:
                assert "borrowed result" in str(error), error
            else:
                raise AssertionError("a stale result was used")
        self.last = found[1:]


def borrowed(torch, options):
    return Borrowing(torch, options), [(torch.randn(32, 64, device="cuda"),) for _ in range(2 * STEPS)]


def convolutions(torch, options):
    nn = torch.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 64, 3, stride=2), nn.ReLU())
            self.head = nn.Linear(64, 10)
            self.step = wrapped(self.classify, options, {"compile": False})

        def classify(self, images):
            features = self.body(images)
            return self.head(features.mean((2, 3))), features

    model = Net().cuda().eval().to(memory_format=torch.channels_last)
    return model.step, [(torch.randn(4, 3, 64, 64, device="cuda").to(memory_format=torch.channels_last),) for _ in range(STEPS)]


def dropout(torch, options, compile=False):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(256, 256)
            self.step = wrapped(self.train_step, options, {"compile": compile})

        def train_step(self, x):
            return torch.nn.functional.dropout(self.linear(x), 0.25, self.training)

    model = Net().cuda().train()
    torch.manual_seed(11)
    return model.step, [(torch.ones(64, 256, device="cuda"),) for _ in range(STEPS)]


def fourier(torch, options):
    weights = torch.rand(501, device="cuda")

    def filtered(x):
        return torch.fft.irfft(torch.fft.rfft(x) * weights, n=1000)

    return wrapped(filtered, options, {"compile": False}), [(torch.randn(4, 1000, device="cuda"),) for _ in range(STEPS)]


def running_state(torch, options):
    """A module with a buffer that it writes, and a tensor that is not registered."""
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("total", torch.zeros(128))
            self.mask = torch.arange(128, device="cuda") % 2
            self.step = wrapped(self.add, options, {"compile": False})

        def add(self, x):
            self.total.add_(x.sum(0) * self.mask)
            return self.total / 2, self.total

    model = Net().cuda()
    return model.step, [(torch.randn(8, 128, device="cuda"),) for _ in range(STEPS)]


def several_shapes(torch, options):
    linear = torch.nn.Linear(64, 64).cuda()

    def step(x):
        return torch.softmax(linear(x), -1)

    return wrapped(step, options, {"compile": False}), [(torch.randn(4 * (i + 1), 64, device="cuda"),) for i in range(STEPS)]


class Engine:
    """A table of graphs by batch size that share one buffer, as in serving engines. In the second round, the largest graph is freed and
    restored."""

    def __init__(self, torch, options):
        self.model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 64)).cuda().eval()
        self.buffer, self.kv = torch.zeros(8, 64, device="cuda"), torch.zeros(8, 64, device="cuda")
        self.table, self.outcomes, self.refused, self.calls = {}, [], [], 0
        if isinstance(options, dict):
            from warmgraph.torch import GraphCache

            self.cache = GraphCache(**options)

    def forward_of(self, size):
        x, kv, model = self.buffer[:size], self.kv, self.model

        def forward():
            kv[:size].copy_(x)
            return {"logits": model(x) + kv[:size], "x": x}

        return forward

    def capture(self, size):
        graph, output = self.table[size] = self.cache.capture_one(size, self.forward_of(size), inputs=[self.buffer], states={"kv": self.kv})
        self.outcomes.append(graph.outcome)
        self.refused += [graph.why] if graph.why else []
        return graph, output

    def __call__(self, x):
        size, self.calls = len(x), self.calls + 1
        self.buffer[:size].copy_(x)
        if not hasattr(self, "cache"):
            return self.forward_of(size)()
        if self.calls == 2 * STEPS:
            self.table.pop(size)[0].reset()
        graph, output = self.table.get(size) or self.capture(size)
        self.buffer.fill_(7)  # overwrites the contents that the buffer had during the capture
        graph.replay()
        self.buffer[:size].copy_(x)
        graph.replay()
        return {name: one.clone() for name, one in output.items()}


def engine_table(torch, options):
    engine = Engine(torch, options)
    return engine, [(torch.randn(size, 64, device="cuda"),) for _ in range(2) for size in (1, 2, 4)]


class SmallEngine(Engine):
    """One graph of a small MLP, whose weights and biases are adjacent in one segment of the allocator."""

    def __init__(self, torch, options, moved):
        """moved: the buffer, too, gets another address in each process. Otherwise only the weights get another address."""
        if isinstance(options, dict):
            options = {**options, "captures": os.path.join(options["cache_dir"], "captures")}
        self.taken = [torch.empty((1 << 19) + 512, dtype=torch.uint8, device="cuda")] if moved and AS == "cold" else []
        self.x = torch.zeros(8, 64, device="cuda")
        if AS == "cold":  # the cold process fills the rest of a segment of 2 MiB and the start of the next one
            self.taken += [torch.empty(1 << 19, dtype=torch.uint8, device="cuda") for _ in range(5)]
        super().__init__(torch, options)
        self.buffer = self.x

    def forward_of(self, size):
        x, model = self.buffer[:size], self.model

        def forward():
            return {"logits": model(x)}

        return forward

    def capture(self, size):
        graph, output = self.table[size] = self.cache.capture_one(size, self.forward_of(size))
        self.outcomes.append(graph.outcome)
        self.refused += [graph.why] if graph.why and AS != "first" else []
        return graph, output


def engine_pair(torch, options):
    return SmallEngine(torch, options, moved=True), [(torch.randn(4, 64, device="cuda"),) for _ in range(STEPS)]


def engine_pair_that_stays(torch, options):
    return SmallEngine(torch, options, moved=False), [(torch.randn(4, 64, device="cuda"),) for _ in range(STEPS)]


class Pair:
    """A module under gradients: each call is a forward and a backward. Its results are the loss and the gradients of the input and the weights."""

    def __init__(self, torch, options, net, loss=None):
        self.torch, self.calls = torch, 0
        self.net = net.cuda().train()
        self.loss = loss or (lambda found: found.square().mean())
        self.is_cached = isinstance(options, dict)
        self.cached = wrapped(self.net, {**options, "pair": True} if self.is_cached else options, {"compile": False})

    def __call__(self, *given):
        self.calls += 1
        self.net.zero_grad()
        given = [one.clone().requires_grad_(one.is_floating_point()) for one in given]
        with self.torch.enable_grad():
            return self.step(*given)

    def step(self, *given):
        loss = self.loss(self.cached(*given))
        loss.backward()
        self.expect_apart()
        return [loss.detach(), *(one.grad for one in given if one.requires_grad), *self.gradients()]

    def gradients(self):
        """Returns copies of the gradients, because later calls must not change them."""
        return [one.grad.clone() for one in self.net.parameters() if one.grad is not None]

    def expect_apart(self):
        """Expects that no .grad is in the arena, which the next forward overwrites."""
        arena = getattr(self.cached._shared.known.last, "arena", None) if self.is_cached else None
        if arena is None:
            return
        saved = {one.untyped_storage().data_ptr() for one in arena.memory()}
        assert saved and not saved & {one.grad.untyped_storage().data_ptr() for one in self.net.parameters() if one.grad is not None}


def _mlp_of(torch, *more):
    nn = torch.nn
    return nn.Sequential(nn.LayerNorm(64), nn.Linear(64, 256), nn.GELU(), *more, nn.Linear(256, 64))


def pair_mlp(torch, options):
    return Pair(torch, options, _mlp_of(torch)), [(torch.randn(32, 64, device="cuda"),) for _ in range(STEPS)]


def pair_dropout(torch, options):
    pair = Pair(torch, options, _mlp_of(torch, torch.nn.Dropout(0.25)))
    torch.manual_seed(11)
    return pair, [(torch.ones(64, 64, device="cuda"),) for _ in range(STEPS)]


class PairOfConvolutions(Pair):
    """A pair whose results include the running statistics, which forward writes."""

    def step(self, *given):
        return [*super().step(*given), *(one.clone() for one in self.net.buffers())]


def pair_conv_batchnorm(torch, options):
    nn = torch.nn
    net = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 64, 3, stride=2), nn.ReLU(),
                        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))
    return PairOfConvolutions(torch, options, net), [(torch.randn(4, 3, 64, 64, device="cuda"),) for _ in range(STEPS)]


class PairInTraining(Pair):
    """A pair in a training step with SGD and momentum."""

    def __init__(self, torch, options, net):
        import torch._dynamo  # the optimizer imports Dynamo, so here a hit may do so, too

        super().__init__(torch, options, net)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.05, momentum=0.9)

    def step(self, x):
        self.optimizer.zero_grad()
        loss = self.loss(self.cached(x) - x.detach().roll(1, 0))
        loss.backward()
        self.optimizer.step()
        return [loss.detach()]


def pair_training(torch, options):
    return PairInTraining(torch, options, _mlp_of(torch)), [(torch.randn(32, 64, device="cuda"),) for _ in range(20)]


class PairForLong(Pair):
    """A pair in a training loop: micro-batches whose gradients are summed, autocast with a scaled loss, and an optimizer whose step is cached
    too."""

    def __init__(self, torch, options, net, micro=1, is_scaled=False, adam=None):
        import torch._dynamo  # the optimizer imports Dynamo, so here a hit may do so, too

        super().__init__(torch, options, net)
        self.micro, self.scaler = micro, torch.amp.GradScaler("cuda", init_scale=256.0, growth_interval=20) if is_scaled else None
        parameters = list(self.net.parameters())
        self.optimizer = torch.optim.AdamW(parameters, **adam) if adam else torch.optim.SGD(parameters, lr=0.05, momentum=0.9)
        self.update = wrapped(self.optimizer.step, options, {"compile": False}) if adam else self.optimizer.step

    def step(self, x):
        torch, total = self.torch, 0.0
        for part in x.detach().chunk(self.micro):
            with torch.autocast("cuda", torch.float16, enabled=self.scaler is not None):
                loss = self.loss((self.cached(part) - part.roll(1, 0)).float()) / self.micro
            (self.scaler.scale(loss) if self.scaler is not None else loss).backward()
            total = total + loss.detach()
        if self.scaler is not None:
            self.scaler.step(self.optimizer)
            self.scaler.update()
        else:
            with torch.no_grad():
                self.update()
        return [total, *(one.detach().clone() for one in self.net.parameters())] if self.calls % 20 == 0 else [total]


class Checkpointed:
    """Makes a module whose layers are checkpointed."""

    def __init__(self, torch, **how):
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = torch.nn.ModuleList(_mlp_of(torch) for _ in range(3))

            def forward(self, x):
                from torch.utils.checkpoint import checkpoint

                for layer in self.layers:
                    x = x + checkpoint(layer, x, **how)
                return x

        self.net = Net()


def _batches(torch, count=100):
    return [(torch.randn(32, 64, device="cuda"),) for _ in range(count)]


def pair_for_long(torch, options):
    return PairForLong(torch, options, _mlp_of(torch)), _batches(torch)


def pair_for_long_checkpointed(torch, options):
    return PairForLong(torch, options, Checkpointed(torch, use_reentrant=False).net), _batches(torch)


def pair_for_long_reentrant(torch, options):
    """PyTorch's older checkpoint calls backward itself."""
    return PairForLong(torch, options, Checkpointed(torch, use_reentrant=True).net), _batches(torch)


def pair_for_long_accumulated(torch, options):
    return PairForLong(torch, options, _mlp_of(torch), micro=4), _batches(torch)


def pair_for_long_scaled(torch, options):
    return PairForLong(torch, options, _mlp_of(torch), is_scaled=True), _batches(torch)


def pair_for_long_adam(torch, options):
    return PairForLong(torch, options, _mlp_of(torch), adam={"lr": 1e-3, "capturable": True}), _batches(torch)


class PairTwoForwards(Pair):
    """A pair whose second forward, before the first backward, overwrites the saved values."""

    def step(self, x):
        first = self.cached(x)
        is_replayed = self.is_cached and "_Step" in type(first.grad_fn).__name__
        second = self.cached(x * 0.5)
        if is_replayed:
            import warmgraph

            try:
                first.sum().backward()
            except warmgraph.Stale as error:
                assert "has overwritten its saved tensors" in str(error), error
            else:
                raise AssertionError("a backward used what a later forward saved")
        self.net.zero_grad()
        second.square().mean().backward()
        return [second.detach(), *self.gradients()]


def pair_second_forward(torch, options):
    return PairTwoForwards(torch, options, _mlp_of(torch)), [(torch.randn(32, 64, device="cuda"),) for _ in range(STEPS)]


class PairAccumulating(Pair):
    """A pair that sums the gradients of two batches. Copies of the first batch's gradients are compared, too."""

    def step(self, x):
        self.loss(self.cached(x)).backward()
        self.expect_apart()
        kept = [one.grad for one in self.net.parameters()]
        values = self.gradients()
        for one in self.net.parameters():
            one.grad = None
        self.loss(self.cached(x * 0.5)).backward()
        assert all(self.torch.equal(one, value) for one, value in zip(kept, values)), "a later backward changed a gradient that was kept"
        self.loss(self.cached(x * 2)).backward()
        self.expect_apart()
        return [*kept, *self.gradients()]


def pair_accumulation(torch, options):
    return PairAccumulating(torch, options, _mlp_of(torch)), [(torch.randn(32, 64, device="cuda"),) for _ in range(STEPS)]


def pair_language_model(torch, options):
    """A language model from tokens to a loss: an embedding, causal attention, cross entropy. The logits are a result, too, but get no
    gradient."""
    nn = torch.nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.qkv, self.head = nn.Embedding(128, 64), nn.Linear(64, 192), nn.Linear(64, 128)

        def forward(self, tokens, targets):
            h = self.embedding(tokens)
            q, k, v = (one.view(*tokens.shape, 4, 16).transpose(1, 2) for one in self.qkv(h).chunk(3, -1))
            attended = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            logits = self.head(h + attended.transpose(1, 2).reshape(h.shape))
            return nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten()), logits

    pair = Pair(torch, options, Model(), loss=lambda found: found[0])
    return pair, [(torch.randint(0, 128, (2, 32), device="cuda"), torch.randint(0, 128, (2, 32), device="cuda")) for _ in range(STEPS)]


class PairUnderAutocast(Pair):
    def step(self, x):
        with self.torch.autocast("cuda", self.torch.bfloat16):
            found = self.cached(x)
        loss = found.float().square().mean()
        loss.backward()
        return [loss.detach(), x.grad, *self.gradients()]


def pair_autocast(torch, options):
    return PairUnderAutocast(torch, options, _mlp_of(torch)), [(torch.randn(32, 64, device="cuda"),) for _ in range(STEPS)]


# --- Functions that enqueue other work during a capture, or work in another stream. If a replay would be wrong, they are refused with a
# reason


def logits_of(torch, options, model, **more):
    """The logits of a transformers language model. If its stream is capturing, the model builds its masks in another way."""
    model = model.cuda().eval()

    def logits(tokens):
        return model(tokens, use_cache=False, **{name: tokens for name in more.get("also", ())}).logits

    return wrapped(logits, options, {"compile": False}), [(torch.randint(1, 512, (2, 16), device="cuda"),) for _ in range(STEPS)]


def doge(torch, options):
    from transformers import DogeConfig, DogeForCausalLM

    config = DogeConfig(vocab_size=512, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                        max_position_embeddings=64, keep_window_size=4)
    return logits_of(torch, options, DogeForCausalLM(config))


def umt5(torch, options):
    from transformers import UMT5Config, UMT5ForConditionalGeneration

    config = UMT5Config(vocab_size=512, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_decoder_layers=2, num_heads=4)
    return logits_of(torch, options, UMT5ForConditionalGeneration(config), also=("decoder_input_ids",))


def qwen2(torch, options):
    """A model that is called without a cache and without a mask: it reads from its own position tensor whether the sequences are packed."""
    from transformers import Qwen2Config, Qwen2ForCausalLM

    config = Qwen2Config(vocab_size=512, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2)
    return logits_of(torch, options, Qwen2ForCausalLM(config))


def mistral(torch, options):
    from transformers import MistralConfig, MistralForCausalLM

    config = MistralConfig(vocab_size=512, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2)
    return logits_of(torch, options, MistralForCausalLM(config))


def gemma(torch, options):
    from transformers import GemmaConfig, GemmaForCausalLM

    config = GemmaConfig(vocab_size=512, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=16)
    return logits_of(torch, options, GemmaForCausalLM(config))


def reads_a_constant(torch, options):
    """A function that reads a number from a tensor on the host; the number depends only on a shape."""
    def forward(x):
        positions = torch.arange(x.shape[0], device="cuda")
        return x * 2 if bool((positions.diff() == 1).all()) else x + int(positions.sum())

    return wrapped(forward, options, {"compile": False}), [(torch.randn(8, 64, device="cuda"),) for _ in range(STEPS)]


def reads_what_a_kernel_wrote(torch, options):
    """A function that reads memory to which PyTorch's operators wrote zeros, and a foreign kernel other numbers afterwards."""
    global tl
    import triton
    import triton.language as tl

    @triton.jit
    def copy(x, y, n: tl.constexpr):
        at = tl.arange(0, n)
        tl.store(y + at, tl.load(x + at))

    def forward(x):
        y = torch.zeros(512, device="cuda")
        copy[(1,)](x, y, 512)
        return x * float(y[0])

    return wrapped(forward, options, {"compile": False}), [(torch.randn(512, device="cuda"),) for _ in range(STEPS)]


def in_own_thread(torch, options):
    """A function that dequantises in its own thread, where the default stream is current."""
    import threading

    whole, scale = torch.randint(-127, 127, (64, 64), device="cuda", dtype=torch.int8), torch.rand(64, 1, device="cuda")

    def forward(x):
        made = []

        def dequantise():
            with torch.no_grad():
                made.append(whole.float() * scale)

        thread = threading.Thread(target=dequantise)
        thread.start()
        thread.join()
        return x @ made.pop()

    return wrapped(forward, options, {"compile": False}), [(torch.randn(8, 64, device="cuda"),) for _ in range(STEPS)]


PEERS = []  # addresses that the library keeps


class Raw:
    """Device memory that no tensor owns, like the memory of a library."""

    def __init__(self, torch, nbytes):
        torch.zeros(1, device="cuda")  # this makes a context on the device
        self._driver, self._pointer, self.dtype = ctypes.CDLL("libcuda.so.1"), ctypes.c_uint64(), torch.int64
        assert self._driver.cuMemAlloc_v2(ctypes.byref(self._pointer), ctypes.c_size_t(nbytes)) == 0

    def data_ptr(self):
        return self._pointer.value

    def write(self, numbers):
        values = (ctypes.c_uint64 * len(numbers))(*numbers)
        assert self._driver.cuMemcpyHtoD_v2(self._pointer, values, ctypes.c_size_t(8 * len(numbers))) == 0


def registered_after_capture(torch, options):
    """A function that uses a library like custom all-reduces: its kernels read a table of addresses, and the library fills the table after
    a capture has ended."""
    global tl
    import triton
    import triton.language as tl

    @triton.jit
    def add_through(table, x, y, n: tl.constexpr):
        at = tl.arange(0, n)
        other = tl.load(table).to(tl.pointer_type(tl.float32))
        tl.store(y + at, tl.load(x + at) + tl.load(other + at))

    table = Raw(torch, 64)
    PEERS.append(torch.randn(512, device="cuda"))
    table.write([PEERS[-1].data_ptr()])

    def forward(x):
        y = torch.empty_like(x)
        add_through[(1,)](table, x, y, 512)
        return y * 2

    return wrapped(forward, options, {"compile": False}), [(torch.randn(512, device="cuda"),) for _ in range(STEPS)]


def green_context(torch, options):
    """A function that works in a stream of a green context, which uses a part of the device's multiprocessors."""
    driver, index = ctypes.CDLL("libcuda.so.1"), torch.cuda.current_device()
    torch.zeros(1, device="cuda")
    whole, part, rest = (ctypes.create_string_buffer(256) for _ in range(3))
    groups, described, context, stream = ctypes.c_uint(1), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    steps_of_it = [driver.cuDeviceGetDevResource(index, whole, 1),
                   driver.cuDevSmResourceSplitByCount(part, ctypes.byref(groups), whole, rest, 0, 16),
                   driver.cuDevResourceGenerateDesc(ctypes.byref(described), part, 1),
                   driver.cuGreenCtxCreate(ctypes.byref(context), described, index, 1),
                   driver.cuGreenCtxStreamCreate(ctypes.byref(stream), context, 1, 0)]
    assert steps_of_it == [0] * 5, steps_of_it
    os.environ["GREEN"], weight = str(stream.value), torch.randn(64, 64, device="cuda")

    def forward(x):
        side = torch.cuda.ExternalStream(int(os.environ["GREEN"]))
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            y = torch.relu(x * weight)
        torch.cuda.current_stream().wait_stream(side)
        return y + x

    return wrapped(forward, options, {"compile": False}), [(torch.randn(64, 64, device="cuda"),) for _ in range(STEPS)]


def asks_for_its_capture(torch, options, is_captured=None):
    """A function that asks whether it is being captured. In a capture, the second result and a buffer differ."""
    total = torch.zeros(64, device="cuda")

    def step(x):
        captured = torch._C._cuda_isCurrentStreamCapturing() if is_captured is None else torch.cuda.is_current_stream_capturing()
        factor = 3 if captured else 2
        total.add_(x.sum(0))
        return x + 1, x * factor, total

    return wrapped(step, options, {"compile": False}), [(torch.randn(8, 64, device="cuda"),) for _ in range(STEPS)]


def asks_pytorch_for_its_capture(torch, options):
    """The same function, but it asks PyTorch. In a capture, this question can get the same answer as in the eager run."""
    return asks_for_its_capture(torch, options, is_captured=True)


def in_default_stream(torch, options):
    """A function that dequantises in the default stream: the answer includes this work, and a capture does not."""
    whole, scale = torch.randint(-127, 127, (64, 64), device="cuda", dtype=torch.int8), torch.rand(64, 1, device="cuda")

    def forward(x):
        with torch.cuda.stream(torch.cuda.default_stream()):
            weight = whole.float() * scale
        return x @ weight

    return wrapped(forward, options, {"compile": False}), [(torch.randn(8, 64, device="cuda"),) for _ in range(STEPS)]


def triton_in_default_stream(torch, options):
    """A function that launches a Triton kernel in the default stream. No PyTorch operator launches this kernel."""
    global tl
    import triton
    import triton.language as tl

    @triton.jit
    def twice(x, y, n: tl.constexpr):
        at = tl.arange(0, n)
        tl.store(y + at, tl.load(x + at) * 2)

    def forward(x):
        y = torch.empty_like(x)
        with torch.cuda.stream(torch.cuda.default_stream()):
            twice[(1,)](x, y, 512)
        return y + 1

    return wrapped(forward, options, {"compile": False}), [(torch.randn(512, device="cuda"),) for _ in range(STEPS)]


def synchronises(torch, options):
    """A function that synchronises. In a capture this fails and has no other effect: the next case is recorded."""
    def forward(x):
        return x * 2 if bool((x < 1e9).all()) else x

    return wrapped(forward, options, {"compile": False}), [(torch.randn(512, device="cuda"),) for _ in range(STEPS)]


def forked_stream(torch, options):
    """A function that uses a second stream: it is forked from the current stream and joined again, and is recorded with it."""
    weight = torch.randn(64, 64, device="cuda")

    def forward(x):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            y = x @ weight
        z = x * 2
        torch.cuda.current_stream().wait_stream(side)
        return y + z

    return wrapped(forward, options, {"compile": False}), [(torch.randn(8, 64, device="cuda"),) for _ in range(STEPS)]


def in_the_callers_graph(torch, options):
    """The caller first calls a function to warm it up, and then captures it in a graph of their own. In a later process the warm-up calls
    are replays, so that libraries make their handles in the caller's capture."""
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.Flatten(), torch.nn.Linear(288, 64)).cuda().half().eval()

    class Caller:
        def __init__(self):
            self.step = wrapped(lambda x: torch.fft.fft(net(x).float()).abs(), options, {"compile": False})
            self.calls = 0

        def __call__(self, x):
            self.calls += 1
            if self.calls < STEPS:
                return self.step(x)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                y = self.step(x)
            graph.replay()
            return y

    return Caller(), [(torch.randn(4, 3, 8, 8, device="cuda", dtype=torch.half),) for _ in range(STEPS)]


def holds_a_compiled_method(torch, options):
    """A function with a variable that holds a method which the caller compiled. Dynamo has put a wrapper around this method."""
    net = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 64)).cuda().eval()
    compiled = torch.compile(net.forward)
    return wrapped(lambda x: compiled(x) + 1, options, {"compile": False}), [(torch.randn(8, 64, device="cuda"),) for _ in range(STEPS)]


def layer_drop(torch, options):
    """A module that draws a number on the host for each layer, and reads it only in training. The caller's next number must follow."""
    class Encoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.ModuleList(torch.nn.Linear(64, 64) for _ in range(4))

        def forward(self, x):
            for layer in self.layers:
                drop_probability = torch.rand([])
                if not (self.training and drop_probability < 0.1):
                    x = layer(x)
            return x

    encode = wrapped(Encoder().cuda().eval(), options, {"compile": False})

    def call(x):
        torch.default_generator.manual_seed(7)
        return encode(x), torch.rand(2)

    call.encode = encode
    return call, [(torch.randn(8, 64, device="cuda"),) for _ in range(STEPS)]


class Window:
    """A static window of rows, as in transformers: a number of the host decides whether the window is full."""

    def __init__(self, torch):
        self.length, self.rows, self.at = 0, torch.zeros(4, 64, device="cuda"), torch.zeros(1, dtype=torch.long, device="cuda")

    def update(self, torch, x):
        length = self.length
        self.length += 1
        if length >= self.rows.shape[0]:
            self.rows.copy_(torch.cat((self.rows[1:], x)))
        else:
            self.rows.index_copy_(0, self.at, x)
            self.at.add_(1)


def sliding_window(torch, options):
    """A function that advances a number in an argument. A replay advances it too, and the next entry follows when the window is full."""
    def forward(x, window):
        window.update(torch, x)
        return window.rows.softmax(0)

    window, cached = Window(torch), wrapped(forward, options, {"compile": False})

    def call(x):
        return cached(x, window), torch.tensor(float(window.length)), window.rows.clone()

    call.cached = cached
    return call, [(torch.randn(1, 64, device="cuda"),) for _ in range(9)]


def number_for_a_kernel(torch, options):
    """A function that gives such a number to a kernel as a host tensor, which no operator's attributes show."""
    def forward(x, window):
        window.length += 1
        return x * torch.tensor(float(window.length))

    window, cached = Window(torch), wrapped(forward, options, {"compile": False})

    def call(x):
        return cached(x, window)

    call.cached = cached
    return call, [(torch.randn(1, 64, device="cuda"),) for _ in range(STEPS)]


def autocast_that_converted_before(torch, options):
    """A module under autocast, which has the converted weights in its cache already, and uses them after the call."""
    net = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 64)).cuda().eval()
    cached = wrapped(net, options, {"compile": False})

    def call(x):
        with torch.autocast("cuda", torch.float16):
            return net(x), cached(x), net(x)

    call.cached = cached
    return call, [(torch.randn(8, 64, device="cuda"),) for _ in range(STEPS)]


class OptimizerStep:
    """Updates by two optimizers, from new gradients in each step, with a learning rate that changes in its tensor."""

    def __init__(self, torch, options):
        rate = torch.tensor(1e-2, device="cuda")
        parameters = [torch.nn.Parameter(torch.randn(n, 64, device="cuda")) for n in (64, 32, 1)]
        others = [torch.nn.Parameter(torch.randn(48, 32, device="cuda")) for _ in range(2)]
        lists = torch.optim.AdamW(parameters, lr=rate, foreach=True, capturable=True)
        fused = torch.optim.Adam([{"params": others[:1]}, {"params": others[1:], "lr": 1e-3}], fused=True, capturable=True)
        self.optimizers = [lists, fused]
        self.set_gradients(torch.ones((), device="cuda"))
        for one in self.optimizers:
            one.step()  # makes its state

        def update():
            lists.step()

        self.rate, self.update = rate, wrapped(update, options, {"compile": False})
        self.update_fused = wrapped(fused.step, options, {"compile": False})

    def parameters(self):
        return [one for optimizer in self.optimizers for group in optimizer.param_groups for one in group["params"]]

    def set_gradients(self, x):
        for one in self.parameters():
            one.grad = one.detach() * x

    def __call__(self, x):
        for one in self.optimizers:
            one.zero_grad(set_to_none=True)
        self.set_gradients(x)
        self.rate.mul_(0.5)
        self.update()
        self.update_fused()
        return [*self.parameters(), *(state for one in self.optimizers for states in one.state.values() for state in states.values())]


def optimizer_step(torch, options):
    return OptimizerStep(torch, options), [(torch.randn((), device="cuda"),) for _ in range(STEPS)]


def eigenvalues(torch, options):
    """A function that computes eigenvalues. Capturing this would break cuSOLVER, so it is refused before it is captured; later calls run
    the function itself."""
    return (wrapped(lambda x: torch.linalg.eigvalsh(x @ x.T), options, {"compile": False}),
            [(torch.randn(16, 16, device="cuda"),) for _ in range(STEPS)])


def pair_own_checkpoint(torch, options):
    """A function with a checkpoint of the user's own, whose backward itself adds gradients to weights."""
    class Checkpoint(torch.autograd.Function):
        @staticmethod
        def forward(ctx, function, x):
            ctx.function = function
            with torch.no_grad():
                y = function(x)
            ctx.save_for_backward(x)
            return y

        @staticmethod
        def backward(ctx, gradient):
            x = ctx.saved_tensors[0].detach().requires_grad_()
            with torch.enable_grad():
                y = ctx.function(x)
            torch.autograd.backward(y, gradient)
            return None, x.grad

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = torch.nn.Linear(64, 64), torch.nn.Linear(64, 64)

        def forward(self, x):
            return self.second(Checkpoint.apply(self.first, torch.relu(x)))

    return Pair(torch, options, Net()), [(torch.randn(32, 64, device="cuda"),) for _ in range(STEPS)]


REFUSED = {"asks_for_its_capture": "behaves differently under capture: result1", "in_default_stream": "in the default stream of cuda:0",
           "triton_in_default_stream": "in the legacy default stream, which is not captured with it", "synchronises": "",
           "reads_what_a_kernel_wrote": "", "in_own_thread": "", "registered_after_capture": "lies in no declared region",
           "eigenvalues": "which cannot be captured and may leave its library unusable",
           "green_context": "it runs in another context than the device's primary one",
           "pair_for_long_reentrant": "", "number_for_a_kernel": "each call changes window.length", "pair_own_checkpoint": "its backward puts a gradient into self.first.weight by itself"}
AS = ""  # the role of this process: "first", "cold", "warm" or "plain"
IN_PAIRS = ("engine_pair", "engine_pair_that_stays")  # cases that also have a first process, which leaves captures for the cold one
CASES = {one.__name__: one for one in (
    mlp, mlp_compiled, function_with_global, torchair, torchair_eager, llama, llama_compiled, module, module_compiled,
    module_of_torch_compile, module_compiled_in_place, module_with_compiled_layer, borrowed, convolutions, dropout, fourier, running_state,
    several_shapes, engine_table, engine_pair, engine_pair_that_stays, pair_mlp, pair_dropout, pair_conv_batchnorm, pair_training,
    pair_for_long, pair_for_long_checkpointed, pair_for_long_reentrant, pair_for_long_accumulated, pair_for_long_scaled, pair_for_long_adam,
    pair_second_forward, pair_accumulation, pair_language_model, pair_autocast, doge, umt5, qwen2, mistral, gemma, reads_a_constant,
    reads_what_a_kernel_wrote, in_own_thread, registered_after_capture, green_context, asks_for_its_capture, asks_pytorch_for_its_capture,
    in_default_stream, triton_in_default_stream, synchronises, forked_stream, in_the_callers_graph, holds_a_compiled_method, layer_drop,
    sliding_window, number_for_a_kernel, autocast_that_converted_before, optimizer_step, eigenvalues, pair_own_checkpoint)}
RECORDED = {"several_shapes": 3, "sliding_window": 2, "engine_table": 3, "torchair": 2, "torchair_eager": 2, "optimizer_step": 2,
            **{name: 2 for name in CASES if name.startswith("pair_")}}  # for these cases: the number of entries, which is 1 for all others


# --- Code of one process


def flat(torch, value):
    """The tensors in a result, copied to the host."""
    if isinstance(value, torch.Tensor):
        return [value.detach().float().cpu() if not value.is_complex() else torch.view_as_real(value).cpu()]
    if isinstance(value, dict):
        return [one for key in value for one in flat(torch, value[key])]
    if isinstance(value, (list, tuple)):
        return [one for item in value for one in flat(torch, item)]
    return []


def steps(torch, call, arguments):
    results, times = [], []
    with torch.no_grad():
        for one in arguments:
            torch.cuda.synchronize()
            started = time.perf_counter()
            result = call(*one)
            torch.cuda.synchronize()
            times.append((time.perf_counter() - started) * 1e3)
            results.append(flat(torch, result))
    return results, times


def pairs_of(stats):
    """The numbers of captures that were written for other processes, that proved an entry, and that proved none."""
    return {name: sum(getattr(one, name) for one in stats) for name in ("captures_written", "captures_paired", "captures_ignored")}


def outcome_of(call):
    import warmgraph

    if isinstance(call, Engine):
        return {"recorded": call.outcomes.count("recorded"), "hits": call.outcomes.count("replayed"), "refused": call.refused, "phases": [],
                "captured": call.outcomes.count("captured"), **pairs_of(warmgraph.stats())}
    wrappers = [call] if isinstance(call, warmgraph.CachedFunction) else [one for one in vars(call).values()
                                                                          if isinstance(one, warmgraph.CachedFunction)]
    entries = warmgraph.stats(wrappers[0])[0].kinds["entries"]
    refusals = [one._shared.last_refusal for one in wrappers if one._shared.last_refusal]
    report = wrappers[0].report()
    return {"recorded": entries.made, "hits": entries.hits, "refused": refusals,
            "phases": [(name, round(ms, 1)) for name, ms in report.phases] if report else []}


def run(arguments):
    import warmgraph  # one of the two orders of imports; both must work

    # Pairs log more, so that the log of a failed pair shows where it failed.
    logging.basicConfig(level=logging.DEBUG if arguments.run.startswith("pair_") else logging.WARNING)
    faulthandler.dump_traceback_later(LIMIT_S - 20, exit=True)  # if the process hangs, this prints where
    import torch

    global AS
    AS = arguments.how
    case, folder = CASES[arguments.run], pathlib.Path(arguments.folder)
    if arguments.how == "plain":
        call, given = case(torch, "plain")
        print(json.dumps({"times": [round(ms, 2) for ms in steps(torch, call, given)[1]]}), flush=True)
        return
    options = {"cache_dir": str(folder / "cache"), "config": warmgraph.Config(model=arguments.run)}
    torch.manual_seed(7)
    call, given = case(torch, options)
    before = {name for name in sys.modules if name.startswith(COMPILERS)}
    reserved = torch.cuda.memory_reserved()
    results, times = steps(torch, call, given)
    added = {name for name in sys.modules if name.startswith(COMPILERS)} - before
    found = {"times": [round(ms, 2) for ms in times], **outcome_of(call), "reserved": torch.cuda.memory_reserved() - reserved,
             "compilers": len(added)}
    torch.save(results, folder / f"{arguments.how}.pt")
    if arguments.how == "cold":
        torch.manual_seed(7)
        plain, given = case(torch, None)
        torch.save(steps(torch, plain, given)[0], folder / "reference.pt")
    print(json.dumps(found), flush=True)


# --- Code of the process that starts the others


def process(name, folder, how):
    """Runs a case in a new process. Returns (output, the end of standard error)."""
    environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"), "TRITON_CACHE_DIR": str(folder / "triton")}
    environment.setdefault("WARMGRAPH_LOG", "info")
    if how == "warm":
        environment["WARMGRAPH_POLICY"] = "require_hit"
    try:
        done = subprocess.run([sys.executable, __file__, "--run", name, "--folder", str(folder), "--as", how], env=environment,
                              capture_output=True, text=True, errors="replace", timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired as late:
        return None, f"took longer than {LIMIT_S} s\n{late.stderr or ''}"
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    return (json.loads(lines[-1]) if done.returncode == 0 and lines else None), f"status {done.returncode}\n{done.stderr}"


def compared(folder, one, other):
    """Compares two results. Returns the largest difference, or the reason why the results cannot be compared."""
    import torch

    a, b = torch.load(folder / f"{one}.pt"), torch.load(folder / f"{other}.pt")
    worst = 0.0
    for i, (left, right) in enumerate(zip(a, b)):
        if [x.shape for x in left] != [x.shape for x in right]:
            return f"step {i}: {[tuple(x.shape) for x in left]} and {[tuple(x.shape) for x in right]}"
        for x, y in zip(left, right):
            if x.numel():
                worst = max(worst, float((x - y).abs().max()))
            if not torch.allclose(x, y, rtol=1e-3, atol=1e-3):
                return f"step {i} differs by {worst:.3g}"
    return worst


@dataclasses.dataclass
class Chain:
    """A case in its cold and its warm process. `wrong` lists its errors."""

    name: str
    cold: dict | None = None
    warm: dict | None = None
    plain: dict | None = None
    wrong: list = dataclasses.field(default_factory=list)
    text: str = ""


def chain(name, folder):
    result = Chain(name)
    folder.mkdir(parents=True, exist_ok=True)
    if name in IN_PAIRS:
        first, error = process(name, folder, "first")
        result.text = error
        if first is None or (first["captured"], first["captures_written"]) != (1, 1):
            result.wrong.append(f"the first process gave {first}")
            return result
    result.cold, error = process(name, folder, "cold")
    result.text = error
    if result.cold is None:
        result.wrong.append("the cold process failed")
        return result
    if name in REFUSED:
        if result.cold["recorded"] or not any(REFUSED[name] in why for why in result.cold["refused"]):
            result.wrong.append(f"recorded {result.cold['recorded']}, refused {result.cold['refused']}, expected a refusal: ... {REFUSED[name]} ...")
    elif result.cold["refused"] or result.cold["recorded"] != RECORDED.get(name, 1):
        result.wrong.append(f"recorded {result.cold['recorded']}, refused {result.cold['refused']}")
    if name in IN_PAIRS and result.cold["captures_paired"] + result.cold["captures_ignored"] != 1:
        result.wrong.append("the first process's capture was not looked at")
    if name == "engine_pair" and result.cold["captures_paired"] != 1:
        result.wrong.append("the first process's capture proved nothing")
    same = compared(folder, "cold", "reference")
    if name in IN_PAIRS and isinstance(compared(folder, "first", "reference"), str):
        result.wrong.append("the first process gave something else")
    if isinstance(same, str):
        result.wrong.append(f"cold against PyTorch: {same}")
    if result.cold["refused"]:
        return result
    result.warm, error = process(name, folder, "warm")
    result.text += f"\n--- warm\n{error}"
    if result.warm is None:
        result.wrong.append("the warm process failed")
        return result
    same = compared(folder, "warm", "cold")
    if isinstance(same, str):
        result.wrong.append(f"warm against cold: {same}")
    result.plain, _ = process(name, folder, "plain")
    if result.warm["compilers"]:
        result.wrong.append(f"{result.warm['compilers']} modules of compilers were loaded by a hit")
    return result


def _time(process, step):
    return f"{process['times'][step]:.2f}" if process else "-"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="*")
    parser.add_argument("--workers", type=int, default=6)
    parser.add_argument("--run")
    parser.add_argument("--folder")
    parser.add_argument("--as", dest="how")
    arguments = parser.parse_args()
    if arguments.run:
        run(arguments)
        return 0
    names = [name for name in CASES if any(fnmatch.fnmatch(name, pattern) for pattern in arguments.only.split(","))]
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(arguments.workers) as pool:
        chains = list(pool.map(lambda name: chain(name, pathlib.Path(folder) / name), names))
    for one in [one for one in chains if one.wrong]:
        kept = [line for line in one.text.splitlines() if "Warning" not in line]
        print(f"=== {one.name}\n" + "\n".join(kept)[-MOST_LETTERS:])
    print(f"=== phases of {chains[0].name}: cold {(chains[0].cold or {}).get('phases')}, warm {(chains[0].warm or {}).get('phases')}")
    print(f"{'':<22} {'':<6} {'plain':>9} {'cold':>9} {'warm':>9}   {'later, plain':>12} {'warm':>9}")
    for one in chains:
        first = [_time(process, 0) for process in (one.plain, one.cold, one.warm)]
        later = [_time(process, STEPS - 1) for process in (one.plain, one.warm)]
        print(f"{one.name:<22} {'WRONG' if one.wrong else 'ok':<6} {first[0]:>9} {first[1]:>9} {first[2]:>9}   {later[0]:>12} {later[1]:>9}"
              f"  {'; '.join(map(str, one.wrong))[:500]}"
              + (f"  {one.cold['captures_paired']} of 1 paired" if one.cold and one.name in IN_PAIRS else ""))
    return 1 if any(one.wrong for one in chains) else 0


if __name__ == "__main__":
    sys.exit(main())
