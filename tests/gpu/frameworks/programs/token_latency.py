"""An inference loop: a GPT-2 of random weights makes one token at a time, with a batch of one, by a
CUDA graph that is captured once and launched for each token.

Reads a number from each line, makes that many tokens, and prints the time of each in ns, as a JSON
list.
"""

import json
import sys
import time

import torch
from transformers import GPT2Config, GPT2LMHeadModel, StaticCache

LONGEST = 512

torch.manual_seed(0)
model = GPT2LMHeadModel(GPT2Config(attn_implementation="eager")).half().cuda().eval()
cache = StaticCache(config=model.config, max_cache_len=LONGEST)
token = torch.zeros(1, 1, dtype=torch.long, device="cuda")
position = torch.zeros(1, dtype=torch.long, device="cuda")


@torch.inference_mode()
def step():
    logits = model(
        input_ids=token, past_key_values=cache, cache_position=position, use_cache=True
    ).logits
    token.copy_(logits[:, -1:].argmax(-1))
    position.add_(1).remainder_(LONGEST)


side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        step()
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    step()


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
