"""A training loop that keeps its losses alive, and with each of them the activations of its step.

    cuwarden run --tensors on -- python3 samples/python/kept_losses.py [STEPS]

`losses.append(loss)` keeps a tensor that still belongs to the graph of its step, so that no
activation of the step is freed: memory grows by the same amount in each step. The report names the
line of forward() whose activations stay. The remedy: `losses.append(loss.item())`.
"""

import sys

import torch

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 40


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.wide = torch.nn.Linear(1024, 8192)
        self.narrow = torch.nn.Linear(8192, 16)

    def forward(self, rows):
        hidden = torch.relu(self.wide(rows))  # the leak: its results are kept by each loss
        return self.narrow(hidden)


def train():
    network = Network().cuda()
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-3)
    losses = []
    for _ in range(STEPS):
        rows = torch.randn(512, 1024, device="cuda")
        optimizer.zero_grad()
        loss = network(rows).square().mean()
        loss.backward(retain_graph=True)
        optimizer.step()
        losses.append(loss)
    return losses


if __name__ == "__main__":
    losses = train()
    print(f"{len(losses)} losses, {torch.cuda.memory_allocated() >> 20} MiB live")
