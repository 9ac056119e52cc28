"""PyTorch: a training step is captured as a CUDA graph and replayed, with deterministic algorithms."""

import captured
import figures
import torch

torch.manual_seed(0)
torch.use_deterministic_algorithms(True)
model = torch.nn.Sequential(
    torch.nn.Linear(1024, 4096), torch.nn.GELU(), torch.nn.Linear(4096, 1024)
).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
inputs = torch.randn(256, 1024, device="cuda")


def step():
    optimizer.zero_grad(set_to_none=False)
    loss = model(inputs).square().mean()
    loss.backward()
    optimizer.step()
    return loss


graph, loss = captured.graph_of(step)
for step in range(20):
    graph.replay()
    print(f"step {step}: loss {loss.item().hex()}")
figures.plant_leaks()
figures.end({"reserved_bytes": torch.cuda.memory_reserved()})
