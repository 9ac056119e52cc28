"""One allocation and its free, recorded with their stacks: by cuwarden over a driver that does
nothing, and by heaptrack over malloc. The same stacks, one after the other on this machine.
heaptrack (Debian: heaptrack) writes its raw records to /dev/null.

usage: beside_heaptrack.py STACKS_BENCH
"""

import glob
import json
import os
import subprocess
import sys

LIBRARIES = ("/usr/lib/heaptrack/libheaptrack_preload.so", "/usr/lib/*/heaptrack/libheaptrack_preload.so")


def measured(program, walk, **more):
    said = subprocess.run(
        [program, f"--benchmark_filter=/{walk}/", "--benchmark_format=json",
         "--benchmark_repetitions=3", "--benchmark_min_time=0.2"],
        env={**os.environ, **more}, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    medians = [run for run in json.loads(said)["benchmarks"] if run.get("aggregate_name") == "median"]
    return {run["run_name"].replace(f"/{walk}", ""): run["cpu_time"] for run in medians}


def main():
    found = [path for pattern in LIBRARIES for path in glob.glob(pattern)]
    if not found:
        print("no heaptrack here")
        return 77
    program = sys.argv[1]
    ours = measured(program, "record_pair")
    theirs = measured(
        program, "malloc_pair", LD_PRELOAD=found[0], DUMP_HEAPTRACK_OUTPUT="/dev/null"
    )
    print(f"{'ns for a pair, frames':28} {'cuwarden':>9} {'heaptrack':>9}")
    for name in ours:
        print(f"{name:28} {ours[name]:9.0f} {theirs[name]:9.0f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
