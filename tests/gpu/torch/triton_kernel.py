"""Compiles one Triton kernel twice, with two block sizes, and writes the device code: two modules with equal kernel names.

usage: triton_kernel.py FOLDER SM

SM is the device's compute capability (90); no GPU is needed. Writes into FOLDER the cubins and kernels.txt, with a line for each: file,
kernel, bytes of shared memory, warps, rows and columns of a block, names of the parameters in their order. After these parameters, the
kernel takes pointers that Triton adds, which are null here. Exit status 77 when Triton is missing.
"""
import os
import pathlib
import sys

folder = pathlib.Path(sys.argv[1])
os.environ["TRITON_CACHE_DIR"] = str(folder / "triton")  # an empty cache, so that the kernel is compiled now

try:
    import triton
    import triton.language as tl
    from triton.backends.compiler import GPUTarget
except ImportError as missing:
    print(missing)
    sys.exit(77)


@triton.jit
def product(x, w, y, rows, columns, inner, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """Computes y = silu(x w) row by row, in bf16. The sizes are multiples of the blocks."""
    across = columns // BLOCK_N
    m = tl.program_id(0) // across * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(0) % across * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for begin in range(0, inner, BLOCK_K):
        a = tl.load(x + m[:, None] * inner + (begin + k)[None, :])
        b = tl.load(w + (begin + k)[:, None] * columns + n[None, :])
        total = tl.dot(a, b, total)
    y_at = y + m[:, None] * columns + n[None, :]
    tl.store(y_at, (total * tl.sigmoid(total)).to(tl.bfloat16), mask=m[:, None] < rows)


POINTERS, SIZES = ("x", "w", "y"), ("rows", "columns", "inner")
BLOCKS = (
    {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64},
    {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32},
)


def compiled(blocks, target):
    signature = {name: "*bf16" for name in POINTERS} | {name: "i32" for name in SIZES}
    # Triton's launcher finds this property of the arguments. Without it, loads are not wide enough to go directly to shared memory.
    divisible = {(i,): [["tt.divisibility", 16]] for i in range(len(signature))}
    source = triton.compiler.ASTSource(product, signature | {name: "constexpr" for name in blocks}, blocks, divisible)
    return triton.compile(source, target=target, options={"num_warps": 8, "num_stages": 3})


target = GPUTarget("cuda", int(sys.argv[2]), 32)
lines = []
for number, blocks in enumerate(BLOCKS):
    kernel = compiled(blocks, target)
    metadata = kernel.metadata
    assert metadata.global_scratch_size == 0 and metadata.num_ctas == 1, metadata
    (folder / f"{number}.cubin").write_bytes(kernel.asm["cubin"])
    lines.append(f"{number}.cubin {metadata.name} {metadata.shared} {metadata.num_warps} "
                 f"{blocks['BLOCK_M']} {blocks['BLOCK_N']} {' '.join(POINTERS + SIZES)}\n")
(folder / "kernels.txt").write_text("".join(lines))
