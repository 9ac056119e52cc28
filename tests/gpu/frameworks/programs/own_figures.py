"""Makes a framework take memory and free parts of it; prints what the framework says of it.

usage: own_figures.py torch|cupy|jax [--end _exit]
"""

import random
import sys

import figures

MIB = 1 << 20


def torch_figures():
    import torch

    draw = random.Random(1)
    tensors = [
        torch.empty(draw.randint(1, 30 * MIB), dtype=torch.uint8, device="cuda") for _ in range(200)
    ]
    draw.shuffle(tensors)
    del tensors[:120]
    held = sys.modules["__main__"].__dict__.setdefault("held", [])
    held.extend(tensors)
    sums = {
        "framework": "PyTorch",
        "reserved_bytes": torch.cuda.memory_reserved(),
        "allocated_bytes": torch.cuda.memory_allocated(),
        "peak_allocated_bytes": torch.cuda.max_memory_allocated(),
    }
    if torch.cuda.get_allocator_backend() == "cudaMallocAsync":
        return sums
    free = []
    holes = hole_bytes = 0
    for segment in torch.cuda.memory_snapshot():
        inactive = [b["size"] for b in segment["blocks"] if b["state"] == "inactive"]
        free += inactive
        if len(inactive) != len(segment["blocks"]):
            holes += len(inactive)
            hole_bytes += sum(inactive)
    return {
        **sums,
        "hole_count": holes,
        "hole_bytes": hole_bytes,
        "largest_free_bytes": max(free),
    }


def cupy_figures():
    import cupy

    arrays = [cupy.zeros((1 + i) * MIB, dtype=cupy.uint8) for i in range(30)]
    del arrays[::2]
    held = sys.modules["__main__"].__dict__.setdefault("held", [])
    held.extend(arrays)
    pool = cupy.get_default_memory_pool()
    return {
        "framework": "CuPy",
        "reserved_bytes": pool.total_bytes(),
        "allocated_bytes": pool.used_bytes(),
    }


def jax_figures():
    import jax
    import jax.numpy as jnp

    arrays = [jnp.ones((1 + i, MIB // 4)) for i in range(20)]
    del arrays[::2]
    held = sys.modules["__main__"].__dict__.setdefault("held", [])
    held.extend(arrays)
    jax.block_until_ready(arrays)
    stats = jax.local_devices()[0].memory_stats()
    return {
        "framework": "JAX",
        "reserved_bytes": stats["pool_bytes"],
        "allocated_bytes": stats["bytes_in_use"],
        "peak_allocated_bytes": stats["peak_bytes_in_use"],
        "largest_free_bytes": stats["largest_free_block_bytes"],
        "array_bytes": sum(array.nbytes for array in arrays),
    }


figures.end({"torch": torch_figures, "cupy": cupy_figures, "jax": jax_figures}[sys.argv[1]]())
