"""A tensor of each step goes into a global list."""

import torch
from training import Trainer

HISTORY = []


def remember(step, rows):
    HISTORY.append(torch.tanh(rows @ rows.T).repeat(8, 8))  # planted


Trainer(remember).fit(60)
