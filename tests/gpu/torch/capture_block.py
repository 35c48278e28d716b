"""Captures a compiled transformer block twice by torch.cuda.CUDAGraph, with weights, inputs and memory pool at other addresses.

adopt_torch_graph.py uses this file, which does not use warmgraph.
"""
import dataclasses
import os

import torch
import torch.nn.functional as F

DIM, HEADS, HIDDEN = 512, 8, 1536
ROWS = int(os.environ.get("WG_TORCH_ROWS", "64"))
LAYERS = int(os.environ.get("WG_TORCH_LAYERS", "1"))


class Block(torch.nn.Module):
    """A transformer block: RMSNorm, attention, RMSNorm, SwiGLU. It uses Triton for the pointwise parts, products of cuBLASLt, and a fused
    attention."""

    def __init__(self):
        super().__init__()
        self.norm1 = torch.nn.Parameter(torch.rand(DIM) + 0.5)
        self.norm2 = torch.nn.Parameter(torch.rand(DIM) + 0.5)
        self.qkv = torch.nn.Linear(DIM, 3 * DIM, bias=False)
        self.out = torch.nn.Linear(DIM, DIM, bias=False)
        self.gate = torch.nn.Linear(DIM, HIDDEN, bias=False)
        self.up = torch.nn.Linear(DIM, HIDDEN, bias=False)
        self.down = torch.nn.Linear(HIDDEN, DIM, bias=False)

    def forward(self, x):
        h = F.rms_norm(x, (DIM,), self.norm1)
        q, k, v = self.qkv(h).view(1, ROWS, 3, HEADS, DIM // HEADS).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(a.transpose(1, 2).reshape(ROWS, DIM))
        h = F.rms_norm(x, (DIM,), self.norm2)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


@dataclasses.dataclass
class Range:
    name: str
    pointer: int
    size: int


@dataclasses.dataclass
class Captured:
    graph: torch.cuda.CUDAGraph  # keeps the native graph alive
    native: int  # the graph's CUgraph
    regions: list  # regions of inputs, outputs and weights
    scratch: list  # the segments of the pool
    keep: list  # tensors that must stay alive


def pool_segments(pool):
    segments = [s for s in torch.cuda.memory_snapshot() if tuple(s["segment_pool_id"]) == tuple(pool)]
    # Sorted by size: the same work allocates the same sizes in the same order, and addresses do not show this order.
    segments.sort(key=lambda s: (-s["total_size"], s["address"]))
    return [Range(f"pool{i}", s["address"], s["total_size"]) for i, s in enumerate(segments)]


def tensor_range(name, tensor):
    return Range(name, tensor.data_ptr(), tensor.numel() * tensor.element_size())


def capture_work(work, regions, keep):
    """Captures work() into a new pool. `regions`: the memory outside of the pool that the work reads and writes. `keep`: the objects that
    own this memory."""
    graph = torch.cuda.CUDAGraph(keep_graph=True)
    pool = torch.cuda.graph_pool_handle()
    torch.cuda.synchronize()
    # cuBLAS keeps its first workspace. It is cleared here, so that the pool of each capture gets a new one.
    torch._C._cuda_clearCublasWorkspaces()
    with torch.no_grad(), torch.cuda.graph(graph, pool=pool):
        work()
    scratch = pool_segments(pool)
    torch._C._cuda_clearCublasWorkspaces()
    return Captured(graph, graph.raw_cuda_graph(), regions, scratch, keep)


def capture(block, compiled, x, out):
    """Captures out.copy_(block(x))."""
    regions = [tensor_range("x", x), tensor_range("out", out)]
    regions += [tensor_range(name.replace(".", "_"), p.data) for name, p in block.named_parameters()]
    return capture_work(lambda: out.copy_(compiled(x)), regions, [x, out, *(p.data for p in block.parameters())])


def move_weights(block, spacer):
    """Gives every weight new storage and keeps the old storage in `spacer`. The tensor objects stay, so torch.compile does not recompile."""
    # Allocates in another order and with gaps, so that no two tensors move by the same distance.
    for parameter in reversed(list(block.parameters())):
        spacer.append(parameter.data)
        spacer.append(torch.empty(1 << 20, dtype=torch.uint8, device="cuda"))
        parameter.data = parameter.data.clone()


def capture_twice():
    """Returns (block, compiled, first, second, spacer). In the second capture everything has other addresses."""
    torch.manual_seed(7)
    torch.backends.cuda.matmul.allow_tf32 = False
    block = torch.nn.Sequential(*(Block() for _ in range(LAYERS))).to("cuda", torch.bfloat16).eval()
    compiled = torch.compile(block, mode="default", fullgraph=True, dynamic=False)
    x = torch.randn(ROWS, DIM, device="cuda", dtype=torch.bfloat16)
    out = torch.empty_like(x)
    with torch.no_grad():
        for _ in range(3):
            out.copy_(compiled(x))
    first = capture(block, compiled, x, out)
    spacer = []
    move_weights(block, spacer)
    spacer.append(torch.empty(3 << 20, dtype=torch.uint8, device="cuda"))
    x2 = x.clone()
    spacer.append(torch.empty(3000, dtype=torch.uint8, device="cuda"))
    out2 = torch.empty_like(x)
    with torch.no_grad():
        out2.copy_(compiled(x2))
    second = capture(block, compiled, x2, out2)
    return block, compiled, first, second, spacer
