#!/usr/bin/env python3
"""A kernel launch, the launch of a CUDA graph, and a copy, bare and under the shim, in alternating
processes.

    bench_calls.py [--pairs N] [--batches N]

The exit status is 1 if a call takes longer by more than is wanted: 20 ns, 50 ns and 20 ns.
"""

import argparse
import statistics
import sys

import alternating
import preloaded

MOST_NS = {"launch": 20, "graph": 50, "copy": 20}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--batches", type=int, default=1000, help="of 200 calls")
    options = parser.parse_args()
    alternating.need_gpu()
    program = preloaded.PROGRAMS / "call_costs"
    if not program.exists():
        alternating.skip(f"{program} was not built")
    failed, found = False, []
    for what, most_ns in MOST_NS.items():
        command = [program, what, options.batches]
        bare, shimmed, problems = alternating.pairs_of(command, options.pairs)
        for problem in problems:
            print(f"problem: {problem}")
        if not bare or not shimmed:
            failed = True
            continue
        alternating.show(what, command, bare, shimmed)
        # The order of a pair alternates, so a drift of the machine cancels out.
        more_ns = statistics.median(s - b for b, s in zip(bare, shimmed))
        found.append(f"{what} {more_ns:+.1f} ns (at most {most_ns} wanted)")
        failed = failed or bool(problems) or more_ns > most_ns
    print("calls: " + ", ".join(found))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
