"""Triton: a matrix product that is autotuned for each of several shapes, so that many kernels are
compiled and loaded, and most of them are used for measurements only."""

import figures
import torch
import triton
import triton.language as tl

CONFIGS = [
    triton.Config({"M": m, "N": n, "K": 32}, num_warps=warps, num_stages=stages)
    for m, n in ((64, 64), (64, 128), (128, 64))
    for warps in (4, 8)
    for stages in (2, 3)
]


@triton.autotune(configs=CONFIGS, key=["rows", "columns", "depth"])
@triton.jit
def product(a_pointer, b_pointer, out_pointer, rows, columns, depth,
            M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    row = tl.program_id(0) * M + tl.arange(0, M)
    column = tl.program_id(1) * N + tl.arange(0, N)
    inner = tl.arange(0, K)
    sums = tl.zeros((M, N), dtype=tl.float32)
    for first in range(0, depth, K):
        a = tl.load(a_pointer + row[:, None] * depth + (first + inner)[None, :])
        b = tl.load(b_pointer + (first + inner)[:, None] * columns + column[None, :])
        sums += tl.dot(a, b)
    tl.store(out_pointer + row[:, None] * columns + column[None, :], sums)


torch.manual_seed(0)
for rows, columns, depth in ((512, 512, 256), (1024, 512, 128), (1024, 1024, 512)):
    a = torch.randn(rows, depth, device="cuda", dtype=torch.float16)
    b = torch.randn(depth, columns, device="cuda", dtype=torch.float16)
    out = torch.empty(rows, columns, device="cuda", dtype=torch.float32)
    grid = lambda chosen: (rows // chosen["M"], columns // chosen["N"])
    product[grid](a, b, out, rows, columns, depth)
    print("close", torch.allclose(out, (a.float() @ b.float()), atol=0.1, rtol=0.05))
torch.cuda.synchronize()
figures.end({"reserved_bytes": torch.cuda.memory_reserved()})
