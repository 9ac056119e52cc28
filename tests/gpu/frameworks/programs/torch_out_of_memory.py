"""Brings PyTorch's OutOfMemoryError about in one of several ways, and prints its message.

usage: torch_out_of_memory.py too_large|growing|cache_of_cupy|other_process|holes
"""

import subprocess
import sys

import torch

GIB = 1 << 30
HOLDER = """
import sys, torch
held = torch.empty(int(sys.argv[1]), dtype=torch.uint8, device="cuda")
torch.cuda.synchronize()
print("holds", flush=True)
sys.stdin.read()
"""


def take(size):
    return torch.empty(size, dtype=torch.uint8, device="cuda")


def total():
    return torch.cuda.get_device_properties(0).total_memory


def too_large():
    take(2 * total())


def growing():
    history = []
    while True:
        history.append(take(total() // 100))  # planted


def cache_of_cupy():
    import cupy

    held = [cupy.empty(total() // 20, dtype=cupy.uint8) for _ in range(16)]
    del held
    take(total() // 2)


def other_process():
    size = int(total() * 0.8)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(size)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        holder.stdout.readline()
        take(total() // 2)
    finally:
        holder.kill()
        holder.wait(60)


def holes():
    kept = []
    grown = total() // 1064
    for number in range(40):
        buffer = take(total() // 60 + number * grown)
        size = buffer.numel()
        del buffer
        kept.append(take(size // 2 + grown))


try:
    globals()[sys.argv[1]]()
except torch.OutOfMemoryError as error:
    print(error)
else:
    sys.exit("the request was served")
