#!/usr/bin/env python3
"""A kernel launch, the launch of a CUDA graph, and a copy, bare and under the shim, in couples of
processes that live side by side and work in turn.

    bench_calls.py [--couples N] [--rounds N] [--batches N]

A process is fast or slow from its start, by up to a fifth, bare as well: by where its memory lies.
So the fastest quarter of the processes of each kind is compared.

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
    parser.add_argument("--couples", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=15)
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
        sides = []
        for side, name in enumerate(("bare", "shimmed")):
            times = sorted(
                statistics.median(answers[couple][side] for answers in rounds)
                for couple in range(options.couples)
            )
            sides.append(statistics.mean(times[: max(1, options.couples // 4)]))
            print(f"  {name:8} {' '.join(f'{time:.0f}' for time in times)} ns")
        more_ns = sides[1] - sides[0]
        found.append(f"{what} {more_ns:+.1f} ns (at most {most_ns} wanted)")
        failed = failed or bool(problems) or more_ns > most_ns
    print("calls: " + ", ".join(found), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
