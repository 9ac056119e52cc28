"""A DataLoader whose page-locked batches are kept on the host.

    cuwarden run -- python3 samples/python/pinned_loader.py [BATCHES]

With pin_memory=True each batch is in page-locked memory, which the host cannot swap. The program
keeps the batches for a later look at the worst ones, and so locks the whole data set in memory.
The remedy: keep a copy (`batch.clone()`), which is not page-locked.
"""

import sys

import torch
from torch.utils.data import DataLoader, Dataset

BATCHES = int(sys.argv[1]) if len(sys.argv) > 1 else 24


class Rows(Dataset):
    def __len__(self):
        return 8 * BATCHES

    def __getitem__(self, index):
        return torch.full((65536,), float(index))


def evaluate():
    worst = []
    total = torch.zeros((), device="cuda")
    for batch in DataLoader(Rows(), batch_size=8, pin_memory=True):  # the leak: batches are kept
        loss = batch.cuda(non_blocking=True).mean()
        total += loss
        worst.append((loss.item(), batch))
    return total.item(), worst


if __name__ == "__main__":
    total, worst = evaluate()
    print(f"sum {total:.0f}, {sum(batch.nbytes for _, batch in worst) >> 20} MiB of batches kept")
