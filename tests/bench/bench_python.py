#!/usr/bin/env python3
"""Measures the time that Python frames add to the recording of one allocation and its free, over a
driver that does nothing. The stack is the same each time.

    tests/bench/bench_python.py [BUILD-FOLDER] [--python PYTHON]... [--runs 15] [--milliseconds 60]

Runs with CUWARDEN_PYTHON=off and auto alternate, and the fastest of each are compared: other work on the
machine only adds. Prints nanoseconds a pair.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

SCRIPT = """
import ctypes, sys
pairs = ctypes.CDLL(sys.argv[1]).nanoseconds_of_a_pair
pairs.restype = ctypes.c_double
def deep(depth):
    return pairs(int(sys.argv[3])) if depth == 1 else deep(depth - 1)
print(deep(int(sys.argv[2])))
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("build", nargs="?", type=Path, default=Path("build"))
    parser.add_argument("--python", action="append", help=f"default: {sys.executable}")
    parser.add_argument("--depths", default="1,12,30")
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--milliseconds", type=int, default=60)
    options = parser.parse_args()
    build = options.build.resolve()
    with tempfile.TemporaryDirectory() as scratch:
        env = {k: v for k, v in os.environ.items() if not k.startswith(("CUWARDEN_", "LD_"))}
        env.update(
            LD_LIBRARY_PATH=str(build / "tests" / "bench" / "null_driver"),
            LD_PRELOAD=str(build / "libcuwarden.so"),
            CUWARDEN_REPORT=f"{scratch}/%p.json",
            CUWARDEN_LEDGER_DIR="/dev/shm",
        )
        for python in options.python or [sys.executable]:
            for depth in map(int, options.depths.split(",")):
                command = [python, "-I", "-c", SCRIPT, build / "tests" / "bench" / "libpython_pairs.so", depth,
                           options.milliseconds]  # fmt: skip
                figures = {"off": [], "auto": []}
                for _ in range(options.runs):
                    for mode, each in figures.items():
                        done = subprocess.run(
                            list(map(str, command)), env={**env, "CUWARDEN_PYTHON": mode},
                            capture_output=True, text=True, check=True,
                        )  # fmt: skip
                        each.append(float(done.stdout))
                off, auto = (min(figures[mode]) for mode in ("off", "auto"))
                print(
                    f"{python}, {depth:3} Python frames: {off:.1f} -> {auto:.1f} ns a pair (+{auto - off:.1f})",
                    flush=True,
                )


if __name__ == "__main__":
    main()
