"""PyTorch: leaks an object each iteration, of a kind that takes device memory without an
allocation call, or through a library of NVIDIA's. Prints how many bytes the device lost. A pause
follows each object, so that their number grows over the whole time of the leak.

    torch_leaked_objects.py KIND COUNT
"""

import ctypes
import glob
import json
import os
import sys
import time

import torch

from figures import used_bytes

MODULE = b"""
.version 7.0
.target sm_50
.address_size 64
.visible .global .align 8 .b8 table[4194304];
.visible .entry use() { ret; }
"""


def library(pattern):
    """Loads a library of NVIDIA's that PyTorch came with, or that it has loaded already."""
    with open("/proc/self/maps") as maps:
        paths = {line.split(maxsplit=5)[-1].strip() for line in maps if "/" in line}
    loaded = [path for path in paths if os.path.basename(path).startswith(pattern)]
    found = loaded or [
        path for folder in sys.path for path in glob.glob(f"{folder}/nvidia/*/lib/{pattern}*")
    ]
    assert found, pattern
    return ctypes.CDLL(found[0])


def check(result):
    assert result == 0, result


class Graphs:
    def __init__(self):
        self.tensor = torch.zeros(1024, device="cuda")
        self.tensor.add_(1)

    def make(self):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(200):
                self.tensor.add_(1)
        graph.replay()
        torch.cuda.synchronize()
        return graph

    def end(self, graph):
        graph.reset()


class Streams:
    def __init__(self):
        self.driver = ctypes.CDLL("libcuda.so.1")
        self.tensor = torch.zeros(1024, device="cuda")

    def make(self):
        stream = ctypes.c_void_p()
        check(self.driver.cuStreamCreate(ctypes.byref(stream), ctypes.c_uint(1)))
        with torch.cuda.stream(torch.cuda.ExternalStream(stream.value)):
            self.tensor.add_(1)
        torch.cuda.synchronize()
        return stream

    def end(self, stream):
        check(self.driver.cuStreamDestroy_v2(stream))


class Modules:
    def __init__(self):
        self.driver = ctypes.CDLL("libcuda.so.1")

    def make(self):
        module, entry, address = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
        check(self.driver.cuModuleLoadData(ctypes.byref(module), MODULE))
        check(self.driver.cuModuleGetFunction(ctypes.byref(entry), module, b"use"))
        check(
            self.driver.cuModuleGetGlobal_v2(ctypes.byref(address), None, module, b"table")
        )
        return module

    def end(self, module):
        check(self.driver.cuModuleUnload(module))


class Plans:
    def __init__(self):
        self.cufft = library("libcufft.so")

    def make(self):
        plan = ctypes.c_int()
        # C2C of 2^22 + 1 points: no power of two, so that the plan has tables and a work area.
        check(self.cufft.cufftPlan1d(ctypes.byref(plan), (1 << 22) + 1, 0x29, 1))
        return plan

    def end(self, plan):
        check(self.cufft.cufftDestroy(plan))


class Handles:
    def __init__(self):
        self.cublas = library("libcublas.so")

    def make(self):
        handle = ctypes.c_void_p()
        check(self.cublas.cublasCreate_v2(ctypes.byref(handle)))
        return handle

    def end(self, handle):
        check(self.cublas.cublasDestroy_v2(handle))


class Communicators:
    class Id(ctypes.Structure):
        _fields_ = [("bytes", ctypes.c_char * 128)]

    def __init__(self):
        self.nccl = library("libnccl.so")

    def make(self):
        identity, communicator = self.Id(), ctypes.c_void_p()
        check(self.nccl.ncclGetUniqueId(ctypes.byref(identity)))
        check(self.nccl.ncclCommInitRank(ctypes.byref(communicator), 1, identity, 0))
        return communicator

    def end(self, communicator):
        check(self.nccl.ncclCommDestroy(communicator))


KINDS = {
    "graphs": Graphs,
    "streams": Streams,
    "modules": Modules,
    "plans": Plans,
    "handles": Handles,
    "communicators": Communicators,
}

LEAK_S = 2  # All pauses together, so that the process's end takes little time beside them.


def leak(objects, count):
    kept = []
    for _ in range(count):
        kept.append(objects.make())
        time.sleep(LEAK_S / count)
    return kept


objects = KINDS[sys.argv[1]]()
count = int(sys.argv[2])
torch.cuda.synchronize()
# Code is loaded, and pools of the driver begin, with the first object.
objects.end(objects.make())
before = used_bytes()
kept = leak(objects, count)
torch.cuda.synchronize()
print(json.dumps({"count": count, "taken": used_bytes() - before}), flush=True)
# The objects are leaked: no destructor runs.
os._exit(0)
