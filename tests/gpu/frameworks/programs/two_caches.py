"""The cache of one framework holds two thirds of the device, idle. Then another framework, or the
program itself (raw), asks for half of the device.

usage: two_caches.py torch|cupy torch|cupy|raw
"""

import ctypes
import sys

import cupy
import torch


def hold_by_torch():
    free, _ = torch.cuda.mem_get_info()
    return torch.empty(int(free * 0.66), dtype=torch.uint8, device="cuda").numel()


def hold_by_cupy():
    free, _ = cupy.cuda.runtime.memGetInfo()
    return cupy.empty(int(free * 0.66), dtype=cupy.uint8).size


def ask_by_torch(size):
    try:
        data = torch.full((size,), 7, dtype=torch.uint8, device="cuda")
    except torch.cuda.OutOfMemoryError:
        return None
    return int(data[-1]) + int(data[size // 2])


def ask_by_cupy(size):
    try:
        data = cupy.full(size, 7, dtype=cupy.uint8)
    except cupy.cuda.memory.OutOfMemoryError:
        return None
    return int(data[-1]) + int(data[size // 2])


def ask_the_driver(size):
    pointer = ctypes.c_void_p()
    driver = ctypes.CDLL("libcuda.so.1")
    result = driver.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(size))
    return 14 if result == 0 else None


torch.zeros(1, device="cuda")
cupy.zeros(1)
held = {"torch": hold_by_torch, "cupy": hold_by_cupy}[sys.argv[1]]()
ask = {"torch": ask_by_torch, "cupy": ask_by_cupy, "raw": ask_the_driver}[sys.argv[2]]
found = ask(held // 4 * 3)
print("refused" if found is None else f"served {found}")
