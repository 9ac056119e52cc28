"""Triton: row sums by an autotuned kernel, with results in a cache. Rows that were seen before keep
their workspace."""

import torch
import triton
import triton.language as tl

torch.cuda.init()
from raw_memory import give_back, take  # noqa: E402

SUMS = {}


@triton.autotune(configs=[triton.Config({"N": n}) for n in (256, 512, 1024)], key=["columns"])
@triton.jit
def row_sums(data, out, columns, N: tl.constexpr):
    row = tl.program_id(0)
    sums = tl.zeros((N,), dtype=tl.float32)
    for first in range(0, columns, N):
        at = first + tl.arange(0, N)
        sums += tl.load(data + row * columns + at, mask=at < columns, other=0.0)
    tl.store(out + row, tl.sum(sums, axis=0))


def sums_of(columns):
    workspace = take(1 << 18)  # planted
    if columns in SUMS:
        return SUMS[columns]
    data = torch.ones(256, columns, device="cuda")
    out = torch.empty(256, device="cuda")
    row_sums[(256,)](data, out, columns)
    SUMS[columns] = (data, out)
    give_back(workspace)
    return SUMS[columns]


for number in range(60):
    sums_of(1000 + 100 * (number % 20))
torch.cuda.synchronize()
print(len(SUMS), float(SUMS[1000][1][0]))
