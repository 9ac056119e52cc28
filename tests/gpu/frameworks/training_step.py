"""Measures a PyTorch training step: six transformer layers, AdamW, bfloat16 autocast, default
allocator.

Prints the median of the timed steps in ns. With --turns, reads a number from each line and prints
the time of that many steps.
"""

import argparse
import json
import statistics
import sys
import time

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--warm-up", type=int, default=20)
parser.add_argument("--steps", type=int, default=50)
parser.add_argument("--batch", type=int, default=8, help="larger ones keep the device busy")
parser.add_argument("--turns", action="store_true")
options = parser.parse_args()

torch.manual_seed(0)
layer = torch.nn.TransformerEncoderLayer(d_model=1024, nhead=16, dim_feedforward=4096, batch_first=True)
model = torch.nn.TransformerEncoder(layer, num_layers=6, enable_nested_tensor=False).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
inputs = torch.randn(options.batch, 512, 1024, device="cuda")
targets = torch.randn(options.batch, 512, 1024, device="cuda")


def step():
    optimizer.zero_grad()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = torch.nn.functional.mse_loss(model(inputs).float(), targets)
    loss.backward()
    optimizer.step()


def time_of(steps):
    torch.cuda.synchronize()
    start = time.perf_counter_ns()
    for _ in range(steps):
        step()
    torch.cuda.synchronize()
    return time.perf_counter_ns() - start


time_of(options.warm_up)
if options.turns:
    print("ready", flush=True)
    for line in sys.stdin:
        time_of(1)  # One step warms up again after the wait, and is not counted.
        print(time_of(int(line)), flush=True)
else:
    times = [time_of(1) for _ in range(options.steps)]
    print(json.dumps({"steps": options.steps, "median_ns": statistics.median(times)}))
