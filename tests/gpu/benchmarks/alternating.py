"""Runs a benchmark's program in turn bare and under the shim, so that a slow drift of the machine
affects both alike.

Either whole processes run in turn, each of which prints its median as JSON, or processes live side
by side and work in turn.
"""

import argparse
import importlib.util
import json
import random
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import preloaded  # noqa: E402


def pairs_of(command, count, env=None, timeout_s=120):
    """Runs a program `count` times bare and `count` times under the shim, in turn.

    Each run prints its median in ns. Returns (bare, shimmed, problems): two lists of these medians, and
    messages.
    """
    medians = {False: [], True: []}
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        workspace = preloaded.Workspace(Path(folder))
        for pair in range(count):
            # The order within a pair alternates, too.
            for shim in (False, True) if pair % 2 == 0 else (True, False):
                run = workspace.run(command, env, shim=shim, timeout_s=timeout_s)
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
    """Prints the median of the bare and of the shimmed medians, and all of them; returns shimmed/bare."""
    ratio = statistics.median(shimmed) / statistics.median(bare)
    in_us = lambda values: " ".join(f"{value / 1e3:.2f}" for value in values)  # noqa: E731
    print(f"{name}: $ {shlex.join(map(str, command))}")
    print(f"  bare    median {statistics.median(bare) / 1e3:.2f} us, of: {in_us(bare)}")
    print(f"  shimmed median {statistics.median(shimmed) / 1e3:.2f} us, of: {in_us(shimmed)}")
    print(f"  ratio {ratio:.4f}", flush=True)
    return ratio


def parser_of_turns(documentation, rounds, limit):
    """Returns a parser of the arguments that all benchmarks of processes in turns have.

    `documentation`: the benchmark's own, of which the first paragraph is shown. `rounds` and `limit`: their
    defaults.
    """
    parser = argparse.ArgumentParser(description=documentation.split("\n\n")[0])
    parser.add_argument("--couples", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--limit", type=float, default=limit)
    return parser


def need_torch():
    """Ends the benchmark as skipped if there is no GPU or no PyTorch."""
    need_gpu()
    if importlib.util.find_spec("torch") is None:
        skip("no PyTorch")


class InTurns:
    """Couples of live processes, one bare and one under the shim, of which only one works at a time.

    A turn is so short that the state of the machine is the same for both of a couple. Some processes are
    slower from their start, by the memory and cores that they got: this shows as the spread between
    couples.
    """

    def __init__(self, command, couples, steps, env=None):
        self.steps = steps
        self.pools = []  # The pool tables of the shimmed processes' reports; filled by end().
        self._folder = tempfile.TemporaryDirectory()
        self._workspace = preloaded.Workspace(Path(self._folder.name))
        start = lambda shim: self._workspace.start(command, env, shim=shim, stdin=subprocess.PIPE)  # noqa: E731
        self.couples = [(start(False), start(True)) for _ in range(couples)]
        for process in self._processes():
            self._line_of(process)

    def _processes(self):
        return [process for couple in self.couples for process in couple]

    def _line_of(self, process):
        line = process.stdout.readline()
        if not line:
            raise RuntimeError(f"status {process.wait(preloaded.PATIENCE_S)}: {process.stderr.read()[-500:]}")
        return line

    def answers(self):
        """Gives every process a turn, in random order. Returns [(bare, shimmed)] for the couples.

        Each value is the JSON that the process has printed after its turn.
        """
        answer = {}
        for process in random.sample(self._processes(), 2 * len(self.couples)):
            process.stdin.write(f"{self.steps}\n")
            process.stdin.flush()
            answer[process.pid] = json.loads(self._line_of(process))
        return [(answer[bare.pid], answer[shimmed.pid]) for bare, shimmed in self.couples]

    def round(self):
        """Gives every process a turn, in random order. Returns [(bare, shimmed)]: the ns of a step, for
        each couple.
        """
        return [(bare / self.steps, shim / self.steps) for bare, shim in self.answers()]

    def end(self):
        """Ends all processes. Returns messages about problems."""
        problems = []
        for shim, process in [(shim, couple[shim]) for couple in self.couples for shim in (0, 1)]:
            run = self._workspace.finish(process, "shim" if shim else "bare", timeout_s=60)
            if run.returncode != 0 or run.said:
                problems.append(f"status {run.returncode}: {run.stderr[-500:]}")
            elif shim:
                self.pools.append(run.report["pool"])
                if run.report["coverage"]["complete"] is not True:
                    problems.append(str(run.report["coverage"]))
        self._folder.cleanup()
        return problems


def interval_of_median(values):
    """Returns (low, high): the interval with 95 % of the medians of random samples from these values.

    A sample has as many values, which may repeat.
    """
    draw = random.Random(0)
    medians = sorted(statistics.median(draw.choices(values, k=len(values))) for _ in range(1000))
    return medians[25], medians[974]


def sanitized(command, count, timeout_s=120):
    """Returns the medians in ns of `count` runs under compute-sanitizer's leak check.

    Returns an empty list if that tool is missing.
    """
    sanitizer = shutil.which("compute-sanitizer") or shutil.which(
        "compute-sanitizer", path="/usr/local/cuda/bin"
    )
    medians = []
    with tempfile.TemporaryDirectory() as folder:
        workspace = preloaded.Workspace(Path(folder))
        for _ in range(count if sanitizer else 0):
            whole = [sanitizer, "--tool", "memcheck", "--leak-check", "full", *command]
            run = workspace.run(whole, shim=False, timeout_s=timeout_s)
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
