"""An ordinary PyTorch training loop, in which other programs of this folder plant their leaks."""

import torch


class Trainer:
    """Trains a small network; `in_each_step`, if given, is called with each step's number and rows."""

    def __init__(self, in_each_step=None):
        self.network = torch.nn.Sequential(
            torch.nn.Linear(1024, 4096), torch.nn.GELU(), torch.nn.Linear(4096, 1024)
        ).cuda()
        self.optimizer = torch.optim.AdamW(self.network.parameters(), lr=1e-4)
        self.in_each_step = in_each_step

    def fit(self, steps):
        for step in range(steps):
            rows = torch.randn(256, 1024, device="cuda")
            self.optimizer.zero_grad()
            loss = (self.network(rows) - rows).square().mean()
            loss.backward()
            self.optimizer.step()
            if self.in_each_step is not None:
                self.in_each_step(step, rows)
        torch.cuda.synchronize()
