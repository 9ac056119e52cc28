"""Measures a PyTorch training step: six transformer layers, AdamW, bfloat16 autocast, default
allocator.

Prints the median of the timed steps in ns. With --turns, reads a number from each line and prints
the time of that many steps.
"""

import argparse
import itertools
import json
import random
import statistics
import sys
import time

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--warm-up", type=int, default=20)
parser.add_argument("--steps", type=int, default=50)
parser.add_argument("--batch", type=int, default=8, help="larger ones keep the device busy")
parser.add_argument("--turns", action="store_true")
parser.add_argument("--changing-shapes", action="store_true",
                    help="batches of 8 to 32, sequences of 64 to 256: sixteen shapes in turn")
options = parser.parse_args()

torch.manual_seed(0)
layer = torch.nn.TransformerEncoderLayer(d_model=1024, nhead=16, dim_feedforward=4096, batch_first=True)
model = torch.nn.TransformerEncoder(layer, num_layers=6, enable_nested_tensor=False).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
draw = random.Random(0)
# The shapes are so few that cuBLAS chooses its kernels for each of them during the warm-up.
shapes = (
    [(draw.randint(8, 32), draw.randint(64, 256)) for _ in range(16)]
    if options.changing_shapes
    else [(options.batch, 512)]
)
longest = [max(shape[i] for shape in shapes) for i in range(2)]
inputs = torch.randn(*longest, 1024, device="cuda")
targets = torch.randn(*longest, 1024, device="cuda")
in_turn = itertools.cycle(shapes)


def step():
    batch, length = next(in_turn)
    optimizer.zero_grad()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        output = model(inputs[:batch, :length]).float()
        loss = torch.nn.functional.mse_loss(output, targets[:batch, :length])
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
