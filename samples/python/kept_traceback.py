"""Exceptions that are kept for a summary, and with them the tensors of the functions they left.

    cuwarden run --tensors on -- python3 samples/python/kept_traceback.py [ATTEMPTS]

An exception refers to its traceback, the traceback to the frames, the frames to their variables:
`failures.append(error)` keeps every tensor that was in use. The remedy:
`failures.append(repr(error))`, or `error.with_traceback(None)`.
"""

import sys

import torch

ATTEMPTS = int(sys.argv[1]) if len(sys.argv) > 1 else 24


def attempt(number):
    rows = torch.randn(1024, 4096, device="cuda")  # the leak: a failed attempt's rows stay
    if number % 3:
        raise ValueError(f"attempt {number} does not converge")
    return rows.mean().item()


def main():
    failures, results = [], []
    for number in range(ATTEMPTS):
        try:
            results.append(attempt(number))
        except ValueError as error:
            failures.append(error)
    print(f"{len(results)} results, {len(failures)} failures")
    return failures


if __name__ == "__main__":
    kept = main()
    print(f"{torch.cuda.memory_allocated() >> 20} MiB live")
