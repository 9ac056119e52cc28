"""PyTorch and CuPy in one process: two allocators, and maybe two libcudarts."""

import cupy
import figures
import torch

tensor = torch.arange(1 << 22, dtype=torch.int64, device="cuda")
array = cupy.arange(1 << 22, dtype=cupy.int64) * 3
shared = torch.from_dlpack(array)  # The memory is CuPy's, and PyTorch uses it.
total = (tensor + shared).sum().item()
back = cupy.from_dlpack(tensor)
print("sums", total, int((back * array % 1000003).sum()))
kept = [torch.ones(30 << 20, dtype=torch.uint8, device="cuda"), cupy.ones(5 << 20, dtype=cupy.uint8)]
torch.cuda.synchronize()
figures.plant_leaks()
figures.plant_through_ctypes()
torch.cuda.synchronize()
figures.end(
    {
        "reserved_bytes": torch.cuda.memory_reserved(),
        "segments": torch.cuda.memory_stats()["segment.all.current"],
        "total_bytes": cupy.get_default_memory_pool().total_bytes(),
    }
)
