#!/usr/bin/env python3
"""Allocations and frees, bare and under CUWARDEN_POOL=on, in alternating processes.

    bench_pool.py [--pairs N] [--pool MODE] [--way WAY]...
"""

import argparse
import sys

import alternating
import preloaded

# Steps for each way. The fill_* ways hold all their memory at a time: each step allocates once, and
# frees once.
WAYS = {
    "small": 20000,
    "tile": 5000,
    "page": 5000,
    "pinned": 1000,
    "pinned_mib": 1000,
    "fill_quarter": 16000,
    "fill_mib": 4000,
    "fill_tile": 2000,
    "fill_pinned": 1000,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--pool", default="on")
    parser.add_argument("--way", action="append", choices=WAYS, help="only these")
    options = parser.parse_args()
    alternating.need_gpu()
    program = preloaded.PROGRAMS / "pool_pairs"
    if not program.exists():
        alternating.skip(f"{program} was not built")
    ratios, failed = {}, False
    for way in options.way or WAYS:
        steps = WAYS[way]
        command = [program, way, steps]
        env = {"CUWARDEN_POOL": options.pool}
        bare, shimmed, problems = alternating.pairs_of(command, options.pairs, env)
        for problem in problems:
            print(f"problem: {problem}")
        failed = failed or bool(problems)
        if bare and shimmed:
            ratios[way] = alternating.show(way, command, bare, shimmed)
    print("pool: " + ", ".join(f"{way} {ratio:.3f}" for way, ratio in ratios.items()))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
