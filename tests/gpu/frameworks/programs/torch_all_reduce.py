"""PyTorch with NCCL: one rank of an all-reduce, in a process for each GPU. RANK and WORLD_SIZE give
the rank. Multicast stays off."""

import os
import sys

os.environ["NCCL_NVLS_ENABLE"] = "0"
os.environ["TORCH_SYMM_MEM_DISABLE_MULTICAST"] = "1"

import figures
import torch
import torch.distributed as dist

rank = int(os.environ["RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
values = torch.arange(1 << 22, dtype=torch.int64, device="cuda") * (rank + 1)
dist.all_reduce(values)
print("sum", values.sum().item())
torch.cuda.synchronize()
if rank == 0:  # The library plants on device 0.
    figures.plant_leaks()
figures_of_torch = {
    "reserved_bytes": torch.cuda.memory_reserved(),
    "segments": torch.cuda.memory_stats()["segment.all.current"],
}
dist.barrier()
if "_exit" not in sys.argv:
    dist.destroy_process_group()
figures.end(figures_of_torch)
