"""The time of a PyTorch training step: six transformer layers, AdamW, bfloat16 autocast, default
allocator. Prints the median of the timed steps in ns."""

import argparse
import json
import statistics
import time

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--warm-up", type=int, default=20)
parser.add_argument("--steps", type=int, default=50)
options = parser.parse_args()

torch.manual_seed(0)
layer = torch.nn.TransformerEncoderLayer(d_model=1024, nhead=16, dim_feedforward=4096, batch_first=True)
model = torch.nn.TransformerEncoder(layer, num_layers=6, enable_nested_tensor=False).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
inputs = torch.randn(8, 512, 1024, device="cuda")
targets = torch.randn(8, 512, 1024, device="cuda")


def step():
    optimizer.zero_grad()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = torch.nn.functional.mse_loss(model(inputs).float(), targets)
    loss.backward()
    optimizer.step()


for _ in range(options.warm_up):
    step()
times = []
for _ in range(options.steps):
    torch.cuda.synchronize()
    start = time.perf_counter_ns()
    step()
    torch.cuda.synchronize()
    times.append(time.perf_counter_ns() - start)
print(json.dumps({"steps": options.steps, "median_ns": statistics.median(times)}))
