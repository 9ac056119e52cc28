"""Runs a benchmark's program in turn bare and under the shim, so that a slow drift of the machine
falls on both alike; each run is a process of its own and prints its median as JSON."""

import json
import shlex
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

import preloaded


def pairs_of(command, count, env=None, timeout_s=120):
    """Medians in ns of each run, and what is wrong: (bare, shimmed, problems)."""
    medians = {False: [], True: []}
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        place = preloaded.Place(Path(folder))
        for pair in range(count):
            # The first of a pair alternates too.
            for shim in (False, True) if pair % 2 == 0 else (True, False):
                run = place.run(command, env, shim=shim, timeout_s=timeout_s)
                if run.returncode != 0:
                    problems.append(f"status {run.returncode}: {run.stderr[-500:]}")
                    return medians[False], medians[True], problems
                medians[shim].append(json.loads(run.stdout.splitlines()[-1])["median_ns"])
                if run.said:
                    problems.append(run.said[0])
                if shim and run.report["coverage"]["complete"] is not True:
                    problems.append(str(run.report["coverage"]))
    return medians[False], medians[True], problems


def show(name, command, bare, shimmed):
    """Prints both medians of medians and all runs; returns the ratio."""
    ratio = statistics.median(shimmed) / statistics.median(bare)
    in_us = lambda values: " ".join(f"{value / 1e3:.2f}" for value in values)  # noqa: E731
    print(f"{name}: $ {shlex.join(map(str, command))}")
    print(f"  bare    median {statistics.median(bare) / 1e3:.2f} us, of: {in_us(bare)}")
    print(f"  shimmed median {statistics.median(shimmed) / 1e3:.2f} us, of: {in_us(shimmed)}")
    print(f"  ratio {ratio:.4f}", flush=True)
    return ratio


def sanitized(command, count, timeout_s=120):
    """Medians in ns under compute-sanitizer's leak check; none without it."""
    sanitizer = shutil.which("compute-sanitizer") or shutil.which(
        "compute-sanitizer", path="/usr/local/cuda/bin"
    )
    medians = []
    with tempfile.TemporaryDirectory() as folder:
        place = preloaded.Place(Path(folder))
        for _ in range(count if sanitizer else 0):
            whole = [sanitizer, "--tool", "memcheck", "--leak-check", "full", *command]
            run = place.run(whole, shim=False, timeout_s=timeout_s)
            lines = [line for line in run.stdout.splitlines() if line.startswith("{")]
            if run.returncode == 0 and lines:
                medians.append(json.loads(lines[-1])["median_ns"])
    return medians


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


def need_gpu():
    from conftest import GPUS

    if GPUS == 0:
        skip("no GPU")
    if not preloaded.SHIM.exists():
        skip(f"no {preloaded.SHIM}")
