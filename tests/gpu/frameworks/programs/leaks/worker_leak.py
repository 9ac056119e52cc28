"""A DataLoader whose worker decodes on the GPU and keeps what it decoded."""

import os

import torch
from torch.utils.data import DataLoader, Dataset

KEPT = []


class Decoded(Dataset):
    def __len__(self):
        return 40

    def __getitem__(self, index):
        image = torch.rand(1024, 1024, device="cuda") + index  # planted
        KEPT.append(image)
        return torch.tensor([float(image.mean()), os.getpid()], dtype=torch.float64)


if __name__ == "__main__":
    total = torch.zeros(1, device="cuda")
    for rows in DataLoader(Decoded(), num_workers=1, multiprocessing_context="spawn"):
        total += rows[0, 0].item()
        worker = int(rows[0, 1].item())
    print(f"{total.item():.0f}")
    print(f"memory: {{\"worker\": {worker}}}")
