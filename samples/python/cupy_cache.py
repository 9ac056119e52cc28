"""A cache of results on the device that is keyed by each distinct input, and so never hit.

    cuwarden run -- python3 samples/python/cupy_cache.py [CALLS]

functools.lru_cache(maxsize=None) is the shape of many caches in CuPy and JAX programs. Each call
has a key of its own (a float that differs in its last digit), so that each result stays.
The remedy: a bound for the cache, or a rounded key.
"""

import functools
import sys

import cupy

CALLS = int(sys.argv[1]) if len(sys.argv) > 1 else 48


@functools.lru_cache(maxsize=None)
def kernel_of_width(width):
    grid = cupy.arange(1 << 20, dtype=cupy.float32)
    return cupy.exp(-grid * grid / width)  # the leak: one array for each width


def smooth(rows, width):
    return rows * kernel_of_width(width)


def main():
    rows = cupy.ones(1 << 20, dtype=cupy.float32)
    total = 0.0
    for call in range(CALLS):
        total += float(smooth(rows, 1e12 + call * 1e-3)[:1000].sum())
    print(f"sum {total:.0f}, {kernel_of_width.cache_info().currsize} results kept")


if __name__ == "__main__":
    main()
