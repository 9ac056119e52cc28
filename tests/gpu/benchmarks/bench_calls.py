#!/usr/bin/env python3
"""A kernel launch, the launch of a CUDA graph, and a copy, bare and under the shim, in couples of
processes that live side by side and work in turn.

    bench_calls.py [--couples N] [--rounds N] [--batches N]

The exit status is 1 if a call takes longer by more than is wanted: 20 ns, 50 ns and 20 ns.
"""

import argparse
import shlex
import statistics
import sys

import alternating
import preloaded

MOST_NS = {"launch": 20, "graph": 50, "copy": 20}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--couples", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--batches", type=int, default=20, help="of 200 calls, in a turn")
    options = parser.parse_args()
    alternating.need_gpu()
    program = preloaded.PROGRAMS / "call_costs"
    if not program.exists():
        alternating.skip(f"{program} was not built")
    failed, found = False, []
    for what, most_ns in MOST_NS.items():
        command = [program, what]
        turns = alternating.InTurns(command, options.couples, options.batches)
        rounds = [turns.answers() for _ in range(options.rounds)]
        problems = turns.end()
        for problem in problems:
            print(f"problem: {problem}")
        print(f"{what}: $ {shlex.join(map(str, command))}")
        more = []
        for couple in range(options.couples):
            bare, shimmed = (statistics.median(side) for side in zip(*(r[couple] for r in rounds)))
            more.append(shimmed - bare)
            print(f"  couple {couple + 1}: bare {bare:.0f} ns, shimmed {shimmed:.0f} ns")
        # A process keeps its luck with cores and memory, so that couples differ more than turns.
        more_ns = statistics.median(more)
        low, high = alternating.interval_of_median(more)
        found.append(
            f"{what} {more_ns:+.1f} ns ({low:+.0f} to {high:+.0f}; at most {most_ns} wanted)"
        )
        failed = failed or bool(problems) or more_ns > most_ns
    print("calls: " + ", ".join(found), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
