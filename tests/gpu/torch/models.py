"""PyTorch captures one model of each kind. The model is adopted, replayed at other addresses, and compared with PyTorch's own replay.

usage: models.py LIBWARMGRAPH [--only PATTERN] [--tries 1] [--json FILE] [--strict] [--cleared]

Small models in eager mode, with random weights: a language model of transformers with a static cache, a convolutional network of
torchvision in both memory formats, training steps (forward, backward, foreach optimizer), a sampler, an FFT, dropout. Each runs in its own
process. It is captured twice, with everything at other addresses, and adopted. Then it is replayed with inputs, states and outputs at
addresses that no capture had. A refusal may be chance: uninitialised bytes may look like the address of live memory. --tries 3 tries up to
three processes. Prints a table. Exit status 1: a model was replayed wrong, or was not captured; 3: a model was refused.
"""
import argparse
import ctypes as c
import fnmatch
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import apart
import generators
import operators
import warmgraph_c as wg

LIMIT_S = 300
MOST_CAPTURES = 4
DEVICE = "cuda"


class Work:
    """A function of tensors that can be moved. It has inputs, tensors that live across its calls, and a step."""

    def __init__(self, torch, inputs, states, step, more_generators=()):
        """`states`: (name, tensor, whether the tensor is written). `step()` uses these tensors and returns its results."""
        self.torch, self.step, self.turn = torch, step, 0
        self.generators = [generators.default(torch), *more_generators]
        self.abandoned = []  # (pointer, bytes) of the first storage of each tensor, which no capture uses
        self.draws = bool(more_generators)  # whether every result has random numbers in it
        self.has_twins = False  # whether tensors have equal sizes; in holes of this size, both tensors of a pair move by the same distance
        self.holders = [(f"in{i}", x, False) for i, x in enumerate(inputs)] + list(states)
        self.input_count = len(inputs)

    def moved(self, spacer):
        """Gives every tensor new storage, and keeps which tensors share storage. The old storage stays allocated."""
        torch, storages, leaves = self.torch, {}, []
        self.turn += 1
        if self.has_twins:
            spacer.append(apart.fill_holes(torch, DEVICE))
        for _, holder, _ in reversed(self.holders):
            storage = holder.untyped_storage()
            if storage.data_ptr() not in storages:
                spacer.append(apart.spacer(torch, storage.nbytes(), self.turn, DEVICE))
                # Also keeps the old storage, so that its address is not used again.
                storages[storage.data_ptr()] = (storage, storage.clone())
                if self.turn == 1:
                    self.abandoned.append((storage.data_ptr(), storage.nbytes()))
            leaf = torch.empty(0, dtype=holder.dtype, device=DEVICE)
            leaf.set_(storages[storage.data_ptr()][1], holder.storage_offset(), holder.size(), holder.stride())
            leaves.append(leaf)
        leaves.reverse()
        spacer.append(storages)
        with torch.no_grad():
            for (_, holder, _), leaf in zip(self.holders, leaves):
                holder.data = leaf
        return leaves

    def declared(self):
        """Returns (name, whether the storage is written) for each storage, in the order of the regions in operators.py."""
        seen, result = set(), []
        for name, holder, is_written in self.holders:
            at = holder.untyped_storage().data_ptr()
            if holder.numel() == 0 or at in seen:
                continue
            seen.add(at)
            result.append((re.sub(r"[^A-Za-z0-9_]", "_", name), is_written))
        return result

    def run(self, leaves):
        """operators.py calls this to warm up and to capture. `leaves`: the tensors on their present memory."""
        del leaves
        return [x for x in self.step() if x.numel() != 0]


class Captured(operators.Captured):
    """A capture with named states. The words of the generators are states, too, which the caller fills."""

    def __init__(self, work, leaves, spacer):
        self.work = work
        super().__init__(work, leaves, spacer)
        self.free_blocks += work.abandoned
        self.declared = work.declared() + [(f"generator_word{i}", False) for i in range(len(self.words))]

    def states(self):
        """Returns (name, flat tensor, whether it is written) for each state."""
        count = self.work.input_count
        return [(name, x, is_written) for (name, is_written), x in zip(self.declared[count:], self.inputs[count:])]

    @property
    def regions(self):
        named = [(name, x) for (name, _), x in zip(self.declared, self.inputs)]
        named += [(f"out{i}", x) for i, x in enumerate(self.outputs)]
        return [operators.Range(name, x.data_ptr(), x.numel() * x.element_size()) for name, x in named]


class Adopter(operators.Adopter):
    """An Adopter that also passes states."""

    def adopt(self, name, first, second, strict):
        count = first.work.input_count
        inputs, outputs = operators.declarations(first.inputs[:count], "in"), operators.declarations(first.outputs, "out")
        states = wg.array(wg.StateDecl, [
            wg.StateDecl(state.encode(), wg.Memory.at(x.data_ptr(), x.numel() * x.element_size()),
                         wg.READ_WRITE if is_written else wg.READ_ONLY) for state, x, is_written in first.states()])
        spec = wg.FunctionSpec()
        spec.size, spec.name, spec.version = c.sizeof(spec), name.encode(), b"1"
        spec.inputs, spec.input_count = inputs, len(inputs)
        spec.outputs, spec.output_count = outputs, len(outputs)
        spec.states, spec.state_count = states, len(states)
        spec.strict = int(strict)
        spec.undeclared_constants = 1
        layouts = wg.array(wg.Layout, [
            wg.Layout(state.encode(), wg.DTYPES[str(x.dtype).removeprefix("torch.")], 0, None, None)
            for state, x, _ in first.states()])
        spec.layouts, spec.layout_count = layouts, len(layouts)
        natives = [wg.native_capture(first), wg.native_capture(second)]
        adoption = wg.Adoption(c.sizeof(wg.Adoption), c.pointer(natives[0]), c.pointer(natives[1]), 0, None, 0)
        return self.library.made("wg_cache_adopt", self.cache, self.device, c.byref(spec), c.byref(adoption))


# --- The models: each function makes a Work


def module_states(module, is_written=False):
    return [(name, x, is_written) for name, x in [*module.named_parameters(), *module.named_buffers()]]


def inference(torch, module, *inputs):
    """Makes a Work of the module's results, without gradients."""
    def step():
        with torch.no_grad():
            result = module(*inputs)
        return [result] if isinstance(result, torch.Tensor) else list(result)

    return Work(torch, inputs, module_states(module), step)


def cache_tensors(torch, cache):
    """The tensors of a transformers static cache. In old versions the cache has lists of tensors, in new versions layers with members."""
    if getattr(cache, "layers", None):
        return [(f"layer{i}_{name}", x) for i, layer in enumerate(cache.layers) for name, x in vars(layer).items()
                if isinstance(x, torch.Tensor)]
    return [(f"{name}{i}", x) for name in ("key_cache", "value_cache") for i, x in enumerate(getattr(cache, name))]


def static_cache(torch, config, batch, length):
    """Makes a StaticCache, whose arguments differ between versions of transformers."""
    import inspect

    from transformers import StaticCache

    known = inspect.signature(StaticCache.__init__).parameters
    wanted = {"config": config, "max_cache_len": length, "max_batch_size": batch, "batch_size": batch, "device": DEVICE,
              "dtype": torch.float32}
    if "max_batch_size" in known:
        del wanted["batch_size"]
    return StaticCache(**{name: value for name, value in wanted.items() if name in known})


def language_model(torch):
    """Makes a decode step of LlamaForCausalLM, after a prompt in its static cache."""
    import inspect

    from transformers import LlamaConfig, LlamaForCausalLM

    batch, prompt, length = 2, 5, 64
    config = LlamaConfig(vocab_size=512, hidden_size=256, intermediate_size=512, num_hidden_layers=2, num_attention_heads=4,
                         num_key_value_heads=2, max_position_embeddings=length, attn_implementation="sdpa")
    model = LlamaForCausalLM(config).to(DEVICE).eval()
    cache = static_cache(torch, config, batch, length)
    takes_position = "cache_position" in inspect.signature(type(model.model).forward).parameters

    def forward(tokens, position):
        more = {"cache_position": position} if takes_position else {}
        return model(input_ids=tokens, position_ids=position.unsqueeze(0), past_key_values=cache, use_cache=True, **more).logits

    with torch.no_grad():
        forward(torch.randint(0, 512, (batch, prompt), device=DEVICE), torch.arange(prompt, device=DEVICE))
    token, position = torch.randint(0, 512, (batch, 1), device=DEVICE), torch.tensor([prompt], device=DEVICE)

    def step():
        with torch.no_grad():
            return [forward(token, position)]

    states = module_states(model) + [(name, x, True) for name, x in cache_tensors(torch, cache)]
    return Work(torch, [token, position], states, step)


def convolutions(torch, memory_format):
    import torchvision

    model = torchvision.models.resnet18(weights=None).to(DEVICE).eval().to(memory_format=memory_format)
    images = torch.randn(2, 3, 96, 96, device=DEVICE).to(memory_format=memory_format)
    return inference(torch, model, images)


def training(torch, optimizer_of):
    """Makes a training step: forward, backward and the optimizer's step. Parameters and the optimizer's own tensors change."""
    nn = torch.nn
    model = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.LayerNorm(256), nn.Linear(256, 10)).to(DEVICE)
    optimizer = optimizer_of(model.parameters())
    x, label = torch.randn(32, 64, device=DEVICE), torch.randint(0, 10, (32,), device=DEVICE)

    def step():
        optimizer.zero_grad(set_to_none=True)  # the gradients come from the pool of the capture
        loss = torch.nn.functional.cross_entropy(model(x), label)
        loss.backward()
        optimizer.step()
        return [loss.detach()]

    step()  # this makes the tensors of the optimizer
    states = module_states(model, is_written=True)
    for i, parameter in enumerate(model.parameters()):
        states += [(f"optimizer{i}_{name}", value, True) for name, value in optimizer.state[parameter].items()
                   if isinstance(value, torch.Tensor) and value.device.type == DEVICE]
    return Work(torch, [x, label], states, step)


def sampler(torch):
    """Makes a sampler: top-k, then nucleus sampling, then the token that a given uniform number selects."""
    logits, chance = torch.randn(8, 4096, device=DEVICE) * 3, torch.rand(8, 1, device=DEVICE)

    def step():
        best, tokens = torch.topk(logits / 0.8, 64)
        shares, order = torch.sort(torch.softmax(best, -1), descending=True)
        before = shares.cumsum(-1) - shares
        kept = torch.where(before < 0.9, shares, torch.zeros_like(shares))
        reached = (kept.cumsum(-1) < chance * kept.sum(-1, keepdim=True)).sum(-1, keepdim=True).clamp(max=63)
        return [torch.gather(tokens, 1, torch.gather(order, 1, reached)), kept]

    return Work(torch, [logits, chance], [], step)


def fourier(torch):
    x, weights = torch.randn(4, 1000, device=DEVICE), torch.rand(501, device=DEVICE)
    return Work(torch, [x], [("weights", weights, False)], lambda: [torch.fft.irfft(torch.fft.rfft(x) * weights, n=1000)])


def dropout(torch):
    """Makes a dropout by F.dropout, with PyTorch's own generator, and a mask from a generator that is registered with the graph."""
    x, generator = torch.randn(64, 1000, device=DEVICE), torch.Generator(DEVICE)
    generator.manual_seed(11)

    def step():
        mask = torch.rand(x.size(), device=DEVICE, generator=generator) < 0.5
        return [torch.nn.functional.dropout(x, 0.25, training=True), x * mask]

    return Work(torch, [x], [], step, [generator])


def models():
    """The functions that make a Work, by the model's name."""
    def sgd(torch):
        return training(torch, lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, foreach=True))

    def adam(torch):
        work = training(torch, lambda p: torch.optim.Adam(p, lr=1e-3, foreach=True, capturable=True))
        work.has_twins = True  # the two averages of each parameter have equal sizes
        return work

    return {
        "llama-static-cache": language_model,
        "resnet18-contiguous": lambda torch: convolutions(torch, torch.contiguous_format),
        "resnet18-channels-last": lambda torch: convolutions(torch, torch.channels_last),
        "training-sgd-momentum": sgd,
        "training-adam-capturable": adam,
        "sampler": sampler,
        "fft": fourier,
        "dropout": dropout,
    }


# --- The process of one model


def captured_elsewhere(torch, work, spacer):
    spacer.append(torch.empty(3 << 20, dtype=torch.uint8, device=DEVICE))
    captured = Captured(work, work.moved(spacer), spacer)
    torch.cuda.synchronize()
    return captured


def captured_twice(torch, make):
    """Returns (first capture, second capture, spacer)."""
    work, spacer = make(torch), []
    first = Captured(work, work.moved(spacer), spacer)
    return first, captured_elsewhere(torch, work, spacer), spacer


def first_line(error):
    return (f"{type(error).__name__}: {error}".splitlines() or ["?"])[0][:300]


def differing(torch, adopter, function, first):
    """Returns (names, outcome): the names of tensors that the adopted graph left different from PyTorch's own replay, and the call's outcome."""
    names = [name for name, _ in first.declared] + [f"out{i}" for i in range(len(first.outputs))]
    inputs, outputs = [x.clone() for x in first.inputs], [torch.full_like(x, 1) for x in first.outputs]
    third = inputs + outputs
    operators.replay_natively(torch, first, inputs)
    outcome = adopter.replay(function, list(zip(names, third)))
    torch.cuda.synchronize()
    wrong = [name for name, a, b in zip(names, third, first.inputs + first.outputs) if not operators.is_equal(torch, a, b)]
    return wrong, outcome


def adopted(torch, adopter, name, captures, strict):
    """Adopts. Returns (function, number of captures, the first of the two captures that were used). Another capture helps against chance:
    neighbours that moved by the same distance, and uninitialised bytes that look like the address of live memory."""
    first, second, spacer = captures
    for count in range(2, MOST_CAPTURES + 1):
        try:
            return adopter.adopt(name, first, second, strict), count, first
        except wg.Failure as failure:
            by_chance = [text for text in ("moved by different distances", "follows no region") if text in str(failure)]
            if not by_chance or count == MOST_CAPTURES:
                raise
        if by_chance[0] == "follows no region":
            first = second
        second = captured_elsewhere(torch, first.work, spacer)
    raise AssertionError("unreachable")


def try_model(torch, adopter, name, strict):
    result, started = {"model": name, "captured": False}, time.perf_counter()
    try:
        first, second, spacer = captured_twice(torch, models()[name])
    except Exception as error:
        return {**result, "reason": first_line(error)}
    result |= {"captured": True, "capture_s": time.perf_counter() - started, "adopted": False, "states": len(first.states())}
    started = time.perf_counter()
    try:
        function, result["captures"], first = adopted(torch, adopter, name, (first, second, spacer), strict)
    except wg.Failure as failure:
        return {**result, "reason": str(failure)}
    result |= {"adopted": True, "adopt_ms": (time.perf_counter() - started) * 1000, "equal": False}
    try:
        wrong, outcome = differing(torch, adopter, function, first)
        before = [x.clone() for x in first.outputs]
        again, _ = differing(torch, adopter, function, first)
    except Exception as error:
        return {**result, "reason": first_line(error)}
    result |= {"outcome": wg.OUTCOMES.get(outcome, str(outcome)), "equal": not wrong and not again}
    if wrong or again:
        result["reason"] = f"differs from PyTorch's own replay: {', '.join(dict.fromkeys(wrong + again))}"
    elif first.work.draws and any(torch.equal(a, b) for a, b in zip(before, first.outputs)):
        result |= {"equal": False, "reason": "the second replay drew the same numbers as the first"}
    adopter.library.call("wg_function_destroy", function)
    del spacer
    return result


def work(arguments):
    """Runs one model. The last line of the output is its result."""
    library = wg.Library(arguments.library)
    operators.clear_stack = library.raw.wg_clear_stack if arguments.cleared else None
    with tempfile.TemporaryDirectory() as folder:
        adopter = Adopter(library, pathlib.Path(folder) / "cache")
        import torch  # must be imported after warmgraph

        torch.manual_seed(7)
        print(json.dumps(try_model(torch, adopter, arguments.work, arguments.strict)), flush=True)


# --- The process that starts the others


def asked(arguments, name):
    """Runs the process of one model and returns its result, even when the process failed."""
    command = [sys.executable, __file__, arguments.library, "--work", name] + (["--strict"] if arguments.strict else []) + (["--cleared"] if arguments.cleared else [])
    try:
        done = subprocess.run(command, check=False, timeout=LIMIT_S, capture_output=True, text=True, errors="replace")
    except subprocess.TimeoutExpired:
        return {"model": name, "captured": False, "reason": f"took longer than {LIMIT_S} s"}
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if lines:
        return json.loads(lines[-1])
    last = (done.stderr.strip().splitlines() or ["nothing on stderr"])[-1]
    return {"model": name, "captured": False, "reason": f"the process ended with status {done.returncode}: {last[:300]}"}


def asked_often(arguments, name):
    for tried in range(1, arguments.tries + 1):
        result = asked(arguments, name) | {"tries": tried}
        if result.get("adopted") or not result["captured"]:
            break
    return result


def row(result):
    def said(key):
        return {True: "yes", False: "no", None: "-"}[result.get(key)]

    return f"{result['model']:<26} {said('captured'):>8} {said('adopted'):>8} {said('equal'):>6}  {result.get('reason', '')}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--only", default="*")
    parser.add_argument("--tries", type=int, default=1)
    parser.add_argument("--json")
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--cleared", action="store_true", help="clear the stack before each operator that is captured")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        work(arguments)
        return 0
    print(f"{'model':<26} {'captured':>8} {'adopted':>8} {'equal':>6}", flush=True)
    results = []
    for name in models():
        if fnmatch.fnmatch(name, arguments.only):
            results.append(asked_often(arguments, name))
            print(row(results[-1]), flush=True)
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(results, indent=1))
    wrong = [r["model"] for r in results if r.get("adopted") and not r.get("equal")]
    adopted = sum(bool(r.get("adopted")) for r in results)
    captured = sum(r["captured"] for r in results)
    print(f"{len(results)} models, {captured} captured, {adopted} adopted, {adopted - len(wrong)} equal", flush=True)
    if wrong or captured < len(results):
        return 1
    return 3 if adopted < captured else 0


if __name__ == "__main__":
    sys.exit(main())
