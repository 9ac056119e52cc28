"""PyTorch as torchrun starts it: ranks that share GPU 0 and talk by gloo, each with leaks of its
own sizes.

A rank's output goes into FOLDER/rank-N.txt, because all ranks have one standard output.

usage: torch_ranks.py FOLDER [--end _exit]
"""

import os
import sys
from pathlib import Path

import figures
import torch
import torch.distributed as dist

rank = int(os.environ["RANK"])
sys.stdout = (Path(sys.argv[1]) / f"rank-{rank}.txt").open("w")
dist.init_process_group("gloo")
torch.cuda.set_device(0)
values = torch.arange(1 << 20, dtype=torch.int64, device="cuda") * (rank + 1)
total = values.cpu()
dist.all_reduce(total)
print("sum", total.sum().item())
torch.cuda.synchronize()
figures.plant_leaks(extra_bytes=rank * 1_000_003)
figures_of_torch = {
    "pid": os.getpid(),
    "reserved_bytes": torch.cuda.memory_reserved(),
    "segments": torch.cuda.memory_stats()["segment.all.current"],
}
dist.barrier()
if "_exit" not in sys.argv:
    dist.destroy_process_group()
figures.end(figures_of_torch)
