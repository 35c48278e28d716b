"""Makes a cubin with the texts that Triton puts into global memory: the text of libdevice, and the texts of two assertions.

python3 triton_texts.py FILE.cubin (Triton 3.6; needs no GPU)
"""
import pathlib
import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.language.extra import libdevice


@triton.jit
def texts(x, y, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.device_assert(count > 0, "there is something")
    value = tl.load(x + at, mask=at < count)
    tl.device_assert(value >= 0, "not negative")
    tl.store(y + at, libdevice.rsqrt(value), mask=at < count)


source = triton.compiler.ASTSource(texts, {"x": "*fp32", "y": "*fp32", "count": "i32", "BLOCK": "constexpr"}, {(3,): 128})
compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"debug": True})
pathlib.Path(sys.argv[1]).write_bytes(compiled.asm["cubin"])
