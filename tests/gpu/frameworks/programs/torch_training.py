"""PyTorch: trains a small convolutional and a linear model with deterministic algorithms.
PYTORCH_CUDA_ALLOC_CONF chooses the allocator."""

import figures
import torch


def train():
    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 32, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.Conv2d(32, 16, 3, stride=2, padding=1),
        torch.nn.Flatten(),
        torch.nn.Linear(16 * 32 * 32, 512),
        torch.nn.GELU(),
        torch.nn.Linear(512, 10),
    ).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    inputs = torch.randn(64, 3, 64, 64).pin_memory()
    targets = torch.randint(0, 10, (64,)).cuda()
    for step in range(12):
        optimizer.zero_grad()
        outputs = model(inputs.cuda(non_blocking=True))
        loss = torch.nn.functional.cross_entropy(outputs, targets)
        loss.backward()
        optimizer.step()
        print(f"step {step}: loss {loss.item().hex()}")
    return model, inputs


def host_figures():
    try:
        return dict(torch.cuda.host_memory_stats())
    except (AttributeError, RuntimeError):
        return {}


kept = train()
scratch = [torch.empty(size, dtype=torch.uint8, device="cuda") for size in (3 << 20, 70 << 20, 999)]
del scratch[1]
figures.plant_leaks()
figures.plant_through_ctypes()
torch.cuda.synchronize()
statistics = torch.cuda.memory_stats()
figures.end(
    {
        "backend": torch.cuda.memory.get_allocator_backend(),
        "reserved_bytes": statistics.get("reserved_bytes.all.current", torch.cuda.memory_reserved()),
        "allocated_bytes": torch.cuda.memory_allocated(),
        "segments": statistics.get("segment.all.current"),
        "host": host_figures(),
    }
)
