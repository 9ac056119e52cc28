#!/usr/bin/env python3
"""PyTorch's training step with and without the shim, in processes that work in turns.

    bench_training_step.py [--couples N] [--rounds N] [--steps N] [--batch N] [--limit RATIO]
                           [--async] [--changing-shapes] [--pool MODE] [--tensors]

A couple is one process bare and one shimmed, which work in turns for a few steps; a round is one
turn of each process. With a batch of 8 the step waits for the processor, with one of 32 for the
device. With --async PyTorch allocates by cudaMallocAsync, with a call for each tensor. --pool is
CUWARDEN_POOL of the shimmed processes. With --tensors they record PyTorch's blocks.

The exit status is 1 if the median ratio of the turns passes the limit.
"""

import shlex
import statistics
import sys

import alternating
import preloaded


def main():
    parser = alternating.parser_of_turns(__doc__, rounds=100, limit=1.02)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--async", dest="stream_ordered", action="store_true")
    parser.add_argument("--changing-shapes", action="store_true",
                        help="sixteen shapes in turn, instead of --batch")
    parser.add_argument("--pool", default=preloaded.POOL or "off",
                        choices=["off", "rescue", "auto", "on"])
    parser.add_argument("--tensors", action="store_true", help="CUWARDEN_TENSORS=on")
    options = parser.parse_args()
    alternating.need_torch()
    command = [sys.executable, preloaded.FRAMEWORKS / "training_step.py", "--turns"]
    command += ["--changing-shapes"] if options.changing_shapes else ["--batch", options.batch]
    env = {"CUWARDEN_POOL": options.pool}  # Bare processes ignore it.
    if options.tensors:
        env["CUWARDEN_TENSORS"] = "on"
    if options.stream_ordered:
        env["PYTORCH_CUDA_ALLOC_CONF"] = "backend:cudaMallocAsync"
    turns = alternating.InTurns(command, options.couples, options.steps, env)
    rounds = [turns.round() for _ in range(options.rounds)]
    problems = turns.end()
    problems += [f"the mode was {p['mode']}" for p in turns.pools if p["mode"] != options.pool]
    for problem in problems:
        print(f"problem: {problem}")

    settings = " ".join(f"{name}={value}" for name, value in env.items())
    print(f"$ {settings} {shlex.join(map(str, command))}")
    for couple in range(options.couples):
        bare, shimmed = zip(*(times[couple] for times in rounds))
        print(
            f"  couple {couple + 1}: bare {statistics.median(bare) / 1e6:.3f} ms a step, shimmed "
            f"{statistics.median(shimmed) / 1e6:.3f} ms, "
            f"ratio {statistics.median(b / a for a, b in zip(bare, shimmed)):.4f}"
        )
    served = " and ".join(str(pool["served_count"]) for pool in turns.pools)
    print(f"  CUWARDEN_POOL={options.pool}: the pool served {served} requests")
    ratios = [shimmed / bare for times in rounds for bare, shimmed in times]
    ratio = statistics.median(ratios)
    low, high = alternating.interval_of_median(ratios)
    print(
        f"training step, CUWARDEN_POOL={options.pool}: {ratio:.4f} of the time without the shim "
        f"({low:.4f} to {high:.4f}, 95 %, {len(ratios)} turns of {options.steps} steps), "
        f"at most {options.limit} wanted",
        flush=True,
    )
    return 1 if problems or ratio > options.limit else 0


if __name__ == "__main__":
    sys.exit(main())
