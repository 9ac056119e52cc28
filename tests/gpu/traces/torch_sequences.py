"""PyTorch without its cache: trains a small transformer on sequences of any length, then serves
requests whose keys and values are kept until a request ends."""

import os

os.environ["PYTORCH_NO_CUDA_MEMORY_CACHING"] = "1"

import random

import torch

random.seed(1)
torch.manual_seed(1)
width, heads = 64, 4
layers = torch.nn.ModuleList(
    torch.nn.TransformerEncoderLayer(width, heads, 2 * width, batch_first=True) for _ in range(2)
).cuda()
words = torch.nn.Embedding(1000, width).cuda()
optimizer = torch.optim.AdamW([*layers.parameters(), *words.parameters()], lr=1e-3)

for step in range(25):
    tokens = torch.randint(1000, (random.choice([4, 8, 16]), random.randint(20, 300)), device="cuda")
    x = words(tokens)
    for layer in layers:
        x = layer(x)
    loss = torch.nn.functional.cross_entropy((x @ words.weight.T).flatten(0, 1), tokens.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", float(loss))

# Each running request has keys and values, one tensor a layer and 16 tokens (a page).
running = []
with torch.no_grad():
    for step in range(600):
        while len(running) < 24:
            running.append({"left": int(random.expovariate(1 / 60)) + 1, "pages": [], "length": 0})
        for request in running:
            if request["length"] % 16 == 0:
                request["pages"].append(
                    [torch.empty(2, 16, heads * 256, device="cuda") for _ in range(len(layers))]
                )
            request["length"] += 1
            request["left"] -= 1
        if step % 20 == 0:
            x = words(torch.randint(1000, (len(running), 1), device="cuda"))
            for layer in layers:
                x = layer(x)
        running = [request for request in running if request["left"] > 0]
print("running", len(running))
