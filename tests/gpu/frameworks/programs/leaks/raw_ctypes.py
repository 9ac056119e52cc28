"""60 calls of cudaMalloc through ctypes, in a PyTorch training loop."""

import ctypes
import glob
import os

import torch
from training import Trainer


def runtime():
    """Returns the CUDA runtime that PyTorch loaded."""
    with open("/proc/self/maps") as maps:
        for line in maps:
            if "libcudart" in line:
                return ctypes.CDLL(line.split()[-1])
    folder = os.path.dirname(torch.__file__)
    return ctypes.CDLL(glob.glob(folder + "/lib/libcudart*")[0])


class Scratch:
    def __init__(self):
        self.cudart = runtime()

    def take(self, step, rows):
        pointer = ctypes.c_void_p()
        self.cudart.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(3 << 20))  # planted


Trainer(Scratch().take).fit(60)
