#!/usr/bin/env python3
"""The time that hooks add to a kernel launch, to the launch of a CUDA graph and to a copy.

    bench_calls.py [--processes N] [--turns N]

The hook and the driver's own function work in turn in one process, since two processes differ by more
than a hook takes. A process without cuwarden, where both are the driver's function, shows the error
of the measurement. Processes differ by up to 60 ns, since code and data lie elsewhere in each, so that
many short ones tell more than a few long ones.

The exit status is 1 if the median of a call's processes is above the limit: 20 ns, 50 ns and 20 ns.
"""

import argparse
import shlex
import statistics
import sys
import tempfile
from pathlib import Path

import alternating
import preloaded

MOST_NS = {"launch": 20, "graph": 50, "copy": 20}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--processes", type=int, default=15, help="with cuwarden; a third as many without")
    parser.add_argument("--turns", type=int, default=300, help="of 200 calls, of each function")
    options = parser.parse_args()
    alternating.need_gpu()
    program = preloaded.PROGRAMS / "call_costs"
    if not program.exists():
        alternating.skip(f"{program} was not built")
    failed, found = False, []
    with tempfile.TemporaryDirectory() as folder:
        workspace = preloaded.Workspace(Path(folder))
        for what, most_ns in MOST_NS.items():
            command = [program, what, str(options.turns)]
            print(f"{what}: $ {shlex.join(map(str, command))}")
            medians = {}
            for shim in (False, True):
                processes = options.processes if shim else max(options.processes // 3, 1)
                runs = [workspace.run(command, shim=shim) for _ in range(processes)]
                for run in runs:
                    if run.returncode != 0:
                        print(f"status {run.returncode}: {run.stderr[-300:]}")
                        return 1
                driver_ns = statistics.median(run.last_line["driver_ns"] for run in runs)
                added = [run.last_line["added_ns"] for run in runs]
                medians[shim] = statistics.median(added)
                print(
                    f"  {'shimmed' if shim else 'bare':8} the driver's function {driver_ns:.0f} ns, the "
                    f"one that was found {' '.join(f'{more:+.1f}' for more in sorted(added))} ns"
                )
            found.append(f"{what} {medians[True]:+.1f} ns (at most {most_ns} wanted)")
            failed = failed or medians[True] > most_ns
    print("calls: " + ", ".join(found), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
