"""PyTorch's profiler, which is CUPTI's subscriber, over some steps: the calls that it saw are
printed."""

import collections

import figures
import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Linear(512, 512), torch.nn.GELU(), torch.nn.Linear(512, 10)
).cuda()
inputs = torch.randn(64, 512, device="cuda")
model(inputs).sum().backward()  # Libraries start up before the profile.
kept = []
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
    for step in range(5):
        kept.append(torch.empty((32 << 20) + step, dtype=torch.uint8, device="cuda"))
        model(inputs).sum().backward()
    torch.cuda.synchronize()

seen = collections.Counter()
for event in profiler.events():
    if event.device_type == DeviceType.CUDA or event.name in ("cudaMalloc", "cudaLaunchKernel"):
        seen[event.name] += 1
for name, count in sorted(seen.items()):
    print(name, count)
print("kernels:", "some" if any(e.device_type == DeviceType.CUDA for e in profiler.events()) else "no")
figures.plant_leaks()
figures.plant_through_ctypes()
figures.end({"reserved_bytes": torch.cuda.memory_reserved()})
