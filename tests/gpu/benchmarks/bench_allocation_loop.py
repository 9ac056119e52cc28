#!/usr/bin/env python3
"""Steps that allocate, launch a kernel and free, with and without the shim, in alternating
processes.

    bench_allocation_loop.py [--pairs N] [--steps N] [--sanitizer]

With --sanitizer the steps also run under compute-sanitizer's leak check, a tenth as many.
"""

import argparse
import statistics
import sys

import alternating
import preloaded

WAYS = ["kernel_only", "malloc", "slab", "async"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--steps", type=int, default=5000)
    parser.add_argument("--sanitizer", action="store_true")
    options = parser.parse_args()
    alternating.need_gpu()
    program = preloaded.PROGRAMS / "allocation_loop"
    if not program.exists():
        alternating.skip(f"{program} was not built")
    ratios = {}
    failed = False
    for way in WAYS:
        command = [program, way, options.steps]
        bare, shimmed, problems = alternating.pairs_of(command, options.pairs)
        for problem in problems:
            print(f"problem: {problem}")
        failed = failed or bool(problems)
        if bare and shimmed:
            ratios[way] = alternating.show(way, command, bare, shimmed)
        if options.sanitizer:
            found = alternating.sanitized([program, way, options.steps // 10], options.pairs)
            if found:
                median = statistics.median(found)
                ratio = median / statistics.median(bare)
                print(f"  compute-sanitizer median {median / 1e3:.2f} us, ratio {ratio:.1f}")
    print("allocation loop: " + ", ".join(f"{way} {ratio:.3f}" for way, ratio in ratios.items()))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
