"""Compiles a decode step of a Llama-style model, and captures it twice, with weights, caches, inputs and memory pool at other addresses.

llama_step.py and bench/torch_peers.py use this file, which does not use warmgraph.
"""
import dataclasses

import torch
import torch.nn.functional as F

import apart
import capture_block

DEVICE, DTYPE = "cuda", torch.bfloat16
SEED = 7


@dataclasses.dataclass
class Shape:
    layers: int = 16
    dim: int = 2048
    heads: int = 16
    hidden: int = 5632
    vocabulary: int = 32000
    batch: int = 8
    context: int = 1024

    @property
    def head_dim(self):
        return self.dim // self.heads


def weight(rows, columns):
    """A random weight on the device. It is scaled so that a variance of 1 stays 1 from input to output."""
    values = torch.empty(rows, columns, device=DEVICE, dtype=DTYPE).normal_(0, columns**-0.5)
    return torch.nn.Parameter(values, requires_grad=False)


def gains(size):
    return torch.nn.Parameter(torch.ones(size, device=DEVICE, dtype=DTYPE), requires_grad=False)


def rotated(x, cos, sin):
    """Applies the rotary embedding to [batch, heads, 1, head_dim]. Each half of the last dimension has one part of the pairs."""
    first, second = x.float().chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1).to(x.dtype)


class Layer(torch.nn.Module):
    """A layer: RMSNorm, attention over a static cache that is updated in place, RMSNorm, SwiGLU."""

    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        self.norm1, self.norm2 = gains(shape.dim), gains(shape.dim)
        self.qkv = weight(3 * shape.dim, shape.dim)
        self.out = weight(shape.dim, shape.dim)
        self.gate_up = weight(2 * shape.hidden, shape.dim)
        self.down = weight(shape.dim, shape.hidden)
        for name in ("keys", "values"):
            cache = torch.empty(shape.batch, shape.heads, shape.context, shape.head_dim, device=DEVICE, dtype=DTYPE)
            self.register_buffer(name, cache.normal_())

    def attention(self, x, cos, sin, position, mask):
        s, batch = self.shape, x.shape[0]
        keys, values = (self.keys, self.values) if batch == s.batch else (self.keys[:batch], self.values[:batch])
        q, k, v = F.linear(x, self.qkv).view(batch, 3, s.heads, 1, s.head_dim).unbind(1)
        keys.index_copy_(2, position, rotated(k, cos, sin))
        values.index_copy_(2, position, v)
        a = F.scaled_dot_product_attention(rotated(q, cos, sin), keys, values, attn_mask=mask)
        return F.linear(a.transpose(1, 2).reshape(batch, s.dim), self.out)

    def forward(self, x, cos, sin, position, mask):
        x = x + self.attention(F.rms_norm(x, (self.shape.dim,), self.norm1), cos, sin, position, mask)
        gate, up = F.linear(F.rms_norm(x, (self.shape.dim,), self.norm2), self.gate_up).chunk(2, dim=-1)
        return x + F.linear(F.silu(gate) * up, self.down)


class Llama(torch.nn.Module):
    """Maps (token [batch], position [1]) to (logits [batch, vocabulary], the greedy next token [batch]). A smaller batch uses the first sequences of
    the caches."""

    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        self.embedding = weight(shape.vocabulary, shape.dim)
        self.layers = torch.nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.norm = gains(shape.dim)
        self.head = weight(shape.vocabulary, shape.dim)
        steps = torch.arange(shape.context, device=DEVICE, dtype=torch.float32)
        speeds = 10000.0 ** (-torch.arange(shape.head_dim // 2, device=DEVICE, dtype=torch.float32) * 2 / shape.head_dim)
        self.register_buffer("cos", torch.outer(steps, speeds).cos())
        self.register_buffer("sin", torch.outer(steps, speeds).sin())

    def forward(self, token, position):
        x = F.embedding(token, self.embedding)
        cos, sin = self.cos[position], self.sin[position]
        mask = (torch.arange(self.shape.context, device=token.device) <= position).view(1, 1, 1, self.shape.context)
        for layer in self.layers:
            x = layer(x, cos, sin, position, mask)
        logits = F.linear(F.rms_norm(x, (self.shape.dim,), self.norm), self.head)
        return logits, logits.argmax(-1)


def choose_attention(kind):
    """Sets the attention kernels: 'efficient' (plain products where it is not supported), 'math', or 'any' for PyTorch's own choice."""
    if kind == "any":
        return
    torch.backends.cuda.enable_cudnn_sdp(False)
    torch.backends.cuda.enable_flash_sdp(False)
    torch.backends.cuda.enable_mem_efficient_sdp(kind == "efficient")
    torch.backends.cuda.enable_math_sdp(True)


def made(shape):
    """Returns (model, token, position) on the device. They are the same in every process."""
    torch.manual_seed(SEED)
    with torch.no_grad():
        model = Llama(shape).eval()
        token = torch.randint(0, shape.vocabulary, (shape.batch,), device=DEVICE)
        position = torch.tensor([shape.context // 2], device=DEVICE)
        for layer in model.layers:  # these buffers were not written yet
            layer.keys[:, :, shape.context // 2].zero_()
            layer.values[:, :, shape.context // 2].zero_()
    return model, token, position


def compiled(model):
    return torch.compile(model, fullgraph=True, dynamic=False, mode="default")


def states(model):
    """Returns (name, tensor, whether the step writes it) for all tensors that live across steps."""
    found = [(name, p.data, False) for name, p in model.named_parameters()]
    found += [(name, b, name.endswith((".keys", ".values"))) for name, b in model.named_buffers()]
    return [(name.replace(".", "_"), tensor, is_written) for name, tensor, is_written in found]


def move_states(model, spacer):
    """Gives weights and caches new storage and keeps the old storage in `spacer`. The tensor objects stay, so torch.compile does not recompile."""
    # Allocates in another order and with gaps, so that no two tensors move by the same distance.
    for tensor in reversed([*model.parameters(), *model.buffers()]):
        spacer.append(tensor.data)
        spacer.append(apart.spacer(torch, tensor.nbytes, 1, DEVICE))
        tensor.data = tensor.data.clone()


@dataclasses.dataclass
class Step:
    """One capture, with the tensors that it reads and writes, by name."""
    captured: capture_block.Captured
    inputs: dict
    outputs: dict
    states: list  # (name, tensor, whether the step writes it), with the tensors' memory during the capture


def outputs_like(shape):
    return {"logits": torch.zeros(shape.batch, shape.vocabulary, device=DEVICE, dtype=DTYPE),
            "next": torch.zeros(shape.batch, device=DEVICE, dtype=torch.int64)}


def run_into(step, inputs, outputs):
    with torch.no_grad():
        logits, following = step(inputs["token"], inputs["position"])
        outputs["logits"].copy_(logits)
        outputs["next"].copy_(following)


def capture_step(model, step, inputs, outputs):
    """Captures the step on the model's present memory."""
    # `.data` of a buffer is a separate tensor object, which keeps its memory when the buffer is moved.
    held = [(name, tensor.data, is_written) for name, tensor, is_written in states(model)]
    named = [*inputs.items(), *outputs.items(), *((name, tensor) for name, tensor, _ in held)]
    regions = [capture_block.tensor_range(name, tensor) for name, tensor in named]
    keep = [tensor for _, tensor in named]
    captured = capture_block.capture_work(lambda: run_into(step, inputs, outputs), regions, keep)
    return Step(captured, inputs, outputs, held)


def count_compiled():
    """The number of graphs that Dynamo compiled so far in this process."""
    return torch._dynamo.utils.counters["stats"]["unique_graphs"]
