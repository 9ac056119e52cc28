"""Triton: a kernel that is compiled while the program runs, on PyTorch's tensors."""

import figures
import torch
import triton
import triton.language as tl


@triton.jit
def affine(x_pointer, y_pointer, out_pointer, count, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < count
    x = tl.load(x_pointer + offsets, mask=mask)
    y = tl.load(y_pointer + offsets, mask=mask)
    tl.store(out_pointer + offsets, x * 7 + y, mask=mask)


count = (1 << 22) + 123
x = torch.arange(count, dtype=torch.int32, device="cuda") % 1009
y = torch.arange(count, dtype=torch.int32, device="cuda") % 31
out = torch.zeros_like(x)
affine[(triton.cdiv(count, 1024),)](x, y, out, count, BLOCK=1024)
print("sum", out.sum(dtype=torch.int64).item(), "equal", torch.equal(out, x * 7 + y))
torch.cuda.synchronize()
figures.plant_leaks()
figures.plant_through_ctypes()
torch.cuda.synchronize()
figures.end(
    {
        "reserved_bytes": torch.cuda.memory_reserved(),
        "allocated_bytes": torch.cuda.memory_allocated(),
        "segments": torch.cuda.memory_stats()["segment.all.current"],
    }
)
