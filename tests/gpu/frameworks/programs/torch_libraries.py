"""PyTorch: uses one of NVIDIA's libraries, or a compiled model, and prints a sum of the results.

    torch_libraries.py cudnn|cusolver|cusparse|cublas|cufft|compiled
"""

import sys

import figures
import torch

torch.manual_seed(0)


def cudnn():
    torch.backends.cudnn.benchmark = True
    net = torch.nn.Sequential(
        torch.nn.Conv2d(16, 64, 3), torch.nn.Conv2d(64, 64, 5), torch.nn.Conv2d(64, 8, 1)
    ).cuda()
    out = net(torch.randn(32, 16, 64, 64, device="cuda"))
    out.square().mean().backward()
    return out.shape


def cusolver():
    matrix = torch.randn(512, 512, device="cuda", dtype=torch.float64)
    torch.linalg.svd(matrix)
    torch.linalg.eigh(matrix + matrix.T)
    return torch.linalg.solve(matrix, matrix).shape


def cusparse():
    dense = torch.randn(2048, 2048, device="cuda") * (torch.rand(2048, 2048, device="cuda") < 0.01)
    return (dense.to_sparse_csr() @ torch.randn(2048, 256, device="cuda")).shape


def cublas():
    for kind in (torch.float16, torch.float32, torch.float64, torch.bfloat16):
        a = torch.randn(1024, 1024, device="cuda", dtype=kind)
        a @ a
    return a.shape


def cufft():
    signal = torch.randn(64, 1 << 14, device="cuda")
    return torch.fft.irfft2(torch.fft.rfft2(signal)).shape


def compiled():
    model = torch.compile(
        torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.Linear(512, 16))
    ).cuda()
    for batch in (8, 8, 16):
        loss = model(torch.randn(batch, 256, device="cuda")).square().mean()
        loss.backward()
    return loss.shape


print({work.__name__: work for work in (cudnn, cusolver, cusparse, cublas, cufft, compiled)}[
    sys.argv[1]
]())
torch.cuda.synchronize()
figures.end({"reserved_bytes": torch.cuda.memory_reserved()})
