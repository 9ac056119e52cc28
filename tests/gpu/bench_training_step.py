#!/usr/bin/env python3
"""PyTorch's training step with and without the shim, in alternating processes.

    bench_training_step.py [--pairs N] [--steps N] [--limit RATIO] [--async]

With --async PyTorch allocates by cudaMallocAsync, a call for each tensor.

Exit status 1 where the ratio of the medians passes the limit.
"""

import argparse
import importlib.util
import sys

import alternating
import preloaded


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--limit", type=float, default=1.02)
    parser.add_argument("--async", dest="stream_ordered", action="store_true")
    options = parser.parse_args()
    alternating.need_gpu()
    if importlib.util.find_spec("torch") is None:
        alternating.skip("no PyTorch")
    command = [sys.executable, preloaded.FRAMEWORKS / "training_step.py", "--steps", options.steps]
    env = {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"} if options.stream_ordered else None
    bare, shimmed, problems = alternating.pairs_of(command, options.pairs, env)
    for problem in problems:
        print(f"problem: {problem}")
    if len(bare) != options.pairs or len(shimmed) != options.pairs:
        return 1
    ratio = alternating.show("training step", command, bare, shimmed)
    print(f"training step: {ratio:.4f} of the time without the shim, at most {options.limit} wanted")
    return 1 if problems or ratio > options.limit else 0


if __name__ == "__main__":
    sys.exit(main())
