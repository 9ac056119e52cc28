#!/usr/bin/env python3
"""Measures the time that recording adds to one allocation and its free, over a driver that does
nothing. Also measures the time that heaptrack adds to a malloc and its free from the same depth.

    tests/bench/bench_pairs.py [BUILD-FOLDER] [--depths 10,30,60] [--threads 1,2,4,8] [--runs 5]

Runs alternate, and medians are compared. Prints the commands, every median in nanoseconds a pair,
and the ratios. Without heaptrack on the PATH, prints cuwarden's figures only.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path


def measure(command, env):
    done = subprocess.run(
        [str(part) for part in command], env=env, capture_output=True, text=True, check=True
    )
    lines = [line for line in done.stdout.splitlines() if line.replace(".", "", 1).isdigit()]
    return float(lines[-1])


class Bench:
    def __init__(self, build, scratch, runs, milliseconds):
        self.loop = build / "tests" / "bench" / "pair_loop"
        self.runs = runs
        self.milliseconds = milliseconds
        self.scratch = scratch
        bare = {k: v for k, v in os.environ.items() if not k.startswith(("CUWARDEN_", "LD_"))}
        driver = {"LD_LIBRARY_PATH": str(build / "tests" / "bench" / "null_driver")}
        self.bare = {**bare, **driver}
        self.shim = {
            **self.bare,
            "LD_PRELOAD": str(build / "libcuwarden.so"),
            "CUWARDEN_REPORT": f"{scratch}/%p.json",
            "CUWARDEN_LEDGER_DIR": "/dev/shm",
        }
        self.off = {**self.shim, "CUWARDEN_ENABLED": "0"}

    def medians(self, ways):
        """Runs all ways in turn, several times, so that a slow moment of the machine affects all of them.

        Returns the median of each way.
        """
        figures = {name: [] for name in ways}
        for _ in range(self.runs):
            for name, (command, env) in ways.items():
                figures[name].append(measure(command, env))
        return {name: statistics.median(each) for name, each in figures.items()}

    def pair(self, what, depth, threads=1):
        return [self.loop, what, depth, threads, self.milliseconds]

    def depth(self, depth):
        ways = {
            "bare": (self.pair("device", depth), self.bare),
            "shimmed": (self.pair("device", depth), self.shim),
            "malloc": (self.pair("host", depth), self.bare),
        }
        if shutil.which("heaptrack"):
            raw = ["heaptrack", "--raw", "-o", self.scratch / "heaptrack"]
            ways["heaptrack"] = (raw + self.pair("host", depth), self.bare)
        found = self.medians(ways)
        added = found["shimmed"] - found["bare"]
        line = f"{depth:3} frames: {added:7.1f} ns added ({found['bare']:.1f} -> {found['shimmed']:.1f})"
        if "heaptrack" in found:
            theirs = found["heaptrack"] - found["malloc"]
            line += (
                f"; heaptrack {theirs:.1f} ns ({found['malloc']:.1f} -> {found['heaptrack']:.1f});"
                f" ratio {added / theirs:.3f}"
            )
        print(line, flush=True)

    def threads(self, counts):
        """Measures with 2 MiB of memory for each thread, and with one slab for all threads.

        The driver hands out the slab's pieces to any thread that asks; the real driver has a lock
        of its own around that.
        """
        ways = {"own memory": self.shim, "one slab": {**self.shim, "NULL_DRIVER_ONE_SLAB": "1"}}
        alone = {}
        for count in counts:
            pair = self.pair("device", 30, count)
            found = self.medians({name: (pair, env) for name, env in ways.items()})
            rates = {name: count * 1e3 / ns for name, ns in found.items()}
            alone = alone or rates
            line = "; ".join(
                f"{name} {rate:6.2f} million pairs a second, {rate / alone[name]:.2f} times"
                for name, rate in rates.items()
            )
            print(f"{count:3} threads: {line}", flush=True)

    def disabled(self):
        found = self.medians(
            {"bare": (self.pair("device", 1), self.bare), "off": (self.pair("device", 1), self.off)}
        )
        print(f"CUWARDEN_ENABLED=0: {(found['off'] - found['bare']) / 2:.2f} ns a call")

    def cold(self, depth):
        """Prints the time that the shim adds to an allocation and its free, `depth` calls below main. The
        program reads other memory before each call, so that the core's own caches hold nothing of the
        shim. The driver takes 1000 ticks of the time-stamp counter for each call."""
        pair = self.pair("cold", depth)
        ways = {"bare": self.bare, "shimmed": self.shim}
        work = {"NULL_DRIVER_TICKS": "1000"}
        found = self.medians({name: (pair, {**env, **work}) for name, env in ways.items()})
        print(
            f"{depth:3} frames, cold: {found['shimmed'] - found['bare']:.0f} ns added"
            f" ({found['bare']:.0f} -> {found['shimmed']:.0f})",
            flush=True,
        )

    def launches(self):
        """Measures launches of kernels that were launched before; two launches are a pair."""
        pair = self.pair("launches", 1)
        found = self.medians(
            {"bare": (pair, self.bare), "shimmed": (pair, self.shim), "off": (pair, self.off)}
        )
        added = {name: (ns - found["bare"]) / 2 for name, ns in found.items()}
        print(f"a launch: {added['shimmed']:.2f} ns added; CUWARDEN_ENABLED=0: {added['off']:.2f} ns")


def numbers(text):
    return [int(part) for part in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("build", nargs="?", type=Path, default=Path("build"))
    parser.add_argument("--depths", type=numbers, default=[10, 30, 60])
    parser.add_argument("--threads", type=numbers, default=[1, 2, 4, 8])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--milliseconds", type=int, default=300)
    options = parser.parse_args()
    print("$ " + " ".join(sys.argv), flush=True)
    print(f"{os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as scratch:
        bench = Bench(options.build.resolve(), Path(scratch), options.runs, options.milliseconds)
        for depth in options.depths:
            bench.depth(depth)
        for depth in options.depths:
            bench.cold(depth)
        bench.threads(options.threads)
        bench.disabled()
        bench.launches()


if __name__ == "__main__":
    main()
