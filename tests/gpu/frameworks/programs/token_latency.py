"""An inference loop: a decoder of GPT-2's size with random weights makes one token at a time. A CUDA
graph is captured once, and launched for each token.

Reads a number from each line, makes that many tokens, and prints the time of each in ns, as a JSON
list.
"""

import json
import sys
import time

import captured
import torch
from torch.nn import functional

LAYERS, HEADS, WIDTH, LONGEST, WORDS = 12, 12, 768, 512, 50257


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.before_attention = torch.nn.LayerNorm(WIDTH)
        self.query_key_value = torch.nn.Linear(WIDTH, 3 * WIDTH)
        self.out = torch.nn.Linear(WIDTH, WIDTH)
        self.before_feed_forward = torch.nn.LayerNorm(WIDTH)
        self.feed_forward = torch.nn.Sequential(
            torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.GELU(), torch.nn.Linear(4 * WIDTH, WIDTH)
        )
        shape = (1, HEADS, LONGEST, WIDTH // HEADS)
        self.register_buffer("keys", torch.zeros(shape))
        self.register_buffer("values", torch.zeros(shape))

    def forward(self, x, position, mask):
        mixed = self.query_key_value(self.before_attention(x)).view(1, 1, 3, HEADS, -1)
        query, key, value = mixed.permute(2, 0, 3, 1, 4)
        self.keys.index_copy_(2, position, key)
        self.values.index_copy_(2, position, value)
        found = functional.scaled_dot_product_attention(query, self.keys, self.values, mask)
        x = x + self.out(found.transpose(1, 2).reshape(1, 1, WIDTH))
        return x + self.feed_forward(self.before_feed_forward(x))


torch.manual_seed(0)
embedding = torch.nn.Embedding(WORDS, WIDTH).half().cuda()
layers = torch.nn.ModuleList(Layer() for _ in range(LAYERS)).half().cuda().eval()
token = torch.zeros(1, 1, dtype=torch.long, device="cuda")
position = torch.zeros(1, dtype=torch.long, device="cuda")
positions = torch.arange(LONGEST, device="cuda").view(1, 1, 1, LONGEST)


@torch.inference_mode()
def step():
    x = embedding(token)
    mask = positions <= position
    for layer in layers:
        x = layer(x, position, mask)
    token.copy_(functional.linear(x, embedding.weight).argmax(-1))
    position.add_(1).remainder_(LONGEST)


graph, _ = captured.graph_of(step)


def times_of(count):
    times = []
    for _ in range(count):
        begun = time.perf_counter_ns()
        graph.replay()
        token.item()  # The program waits for each token.
        times.append(time.perf_counter_ns() - begun)
    return times


times_of(200)
print("ready", flush=True)
for line in sys.stdin:
    times_of(20)  # A few tokens warm up again after the wait, and are not counted.
    print(json.dumps(times_of(int(line))), flush=True)
