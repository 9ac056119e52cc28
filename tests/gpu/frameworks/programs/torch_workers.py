"""PyTorch's DataLoader with forked workers, whose batches the parent pins, and with spawned workers
that use the GPU themselves.

usage: torch_workers.py [--end _exit]
"""

import os

import figures
import torch
from torch.utils.data import DataLoader, Dataset, get_worker_info

MIB = 1 << 20
kept = []


class Rows(Dataset):
    """Rows made in host memory; the workers for it make no CUDA call."""

    def __len__(self):
        return 16

    def __getitem__(self, index):
        return torch.full((250_000,), index, dtype=torch.int64)


class OnTheGpu(Dataset):
    """Rows for which each worker keeps device memory of a size of its own, and returns the figures.
    """

    def __len__(self):
        return 2

    def __getitem__(self, index):
        kept.append(torch.zeros((index + 1) * 30 * MIB, dtype=torch.uint8, device="cuda"))
        torch.cuda.synchronize()
        segments = torch.cuda.memory_stats()["segment.all.current"]
        worker = get_worker_info().id
        return torch.tensor([worker, os.getpid(), segments, torch.cuda.memory_reserved()])


if __name__ == "__main__":
    total = 0
    for batch in DataLoader(Rows(), batch_size=4, num_workers=2, pin_memory=True):
        assert batch.is_pinned()
        total += batch.cuda(non_blocking=True).sum().item()
    print("sum", total)
    workers = [
        said[0].tolist()
        for said in DataLoader(OnTheGpu(), num_workers=2, multiprocessing_context="spawn")
    ]
    print("workers", [worker[0] for worker in workers])
    del batch
    figures.plant_leaks()
    figures.end({
        "workers": [worker[1:] for worker in workers],
        "reserved_bytes": torch.cuda.memory_reserved(),
        "segments": torch.cuda.memory_stats()["segment.all.current"],
    })
