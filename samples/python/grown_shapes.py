"""Inputs that grow a little in each step, and results that are kept: PyTorch's memory is cut up.

    cuwarden run --tensors on -- python3 samples/python/grown_shapes.py
    PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True cuwarden run -- python3 samples/python/grown_shapes.py

Each step's buffer is a little larger than the last one, so that no free block serves it, and PyTorch
takes a new segment from CUDA. The step's result, half as large, then lies in the segment that the
buffer has left, which PyTorch therefore cannot give back. Nearly half of the device ends up in holes,
and a request fails: status 1. With segments that grow (the second command) all steps fit.
"""

import sys

import torch

STEPS = 40


def step(number, total):
    grown = total // 1064
    size = total // 60 + number * grown
    buffer = torch.empty(size, dtype=torch.uint8, device="cuda")
    del buffer
    return torch.empty(size // 2 + grown, dtype=torch.uint8, device="cuda")


def main():
    total = torch.cuda.get_device_properties(0).total_memory
    kept = []
    try:
        for number in range(STEPS):
            kept.append(step(number, total))
    except torch.OutOfMemoryError as error:
        print(str(error).split(". ")[0])
        return 1
    print(f"{len(kept)} steps")
    return 0


if __name__ == "__main__":
    sys.exit(main())
