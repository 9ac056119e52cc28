#!/usr/bin/env python3
"""Requests that fail, and four ways to serve them: the bare driver, one more attempt, one more
attempt after synchronising, and cuwarden.

    bench_rescues.py [--only PART]... [--room GIB] [--spill GIB] [--beside NAME=LIBRARY]...

oversubscribed_tiles asks for 1.4 times the room that it has on the device: --room, in GiB, or the
whole device. --spill, in GiB, is the most that may lie on the host. --beside preloads another
library in cuwarden's stead, for the tiles only; its settings that begin with CUDA_VMM_ are taken
from the environment.

The exit status is 1 if a situation did not come about, if cuwarden did not help, or if a value was
wrong. It is also 1 if a report leaves more than a hundredth of the device unexplained.
"""

import argparse
import importlib.util
import json
import os
import shlex
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import alternating
import preloaded

MIB, GIB = 1 << 20, 1 << 30
PAGE = 2 * MIB
CONTEXT = 768 * MIB  # The most that a context takes.
SAMPLES = preloaded.BUILD / "samples"
ASKING_AGAIN = preloaded.PROGRAMS / "libasking_again.so"
PYTHON = {"PYTHONPATH": preloaded.SOURCE / "tools" / "python"}


class Situation(NamedTuple):
    name: str
    command: list
    settings: dict  # Settings for cuwarden.
    # True if it asks by a cudaMalloc that a preloaded library can stand in for.
    asks_again: bool = True
    is_shared: bool = False  # True if it shares the device with a process that was there before.
    shimmed: list | None = None  # The command under cuwarden, if it is another one.


class Outcome(NamedTuple):
    served: bool
    text: str


def of_sample(facts):
    if "planned_tiles" in facts:
        return Outcome(
            facts["cached_tiles"] == facts["planned_tiles"],
            f"{facts['cached_tiles']} of {facts['planned_tiles']} tiles",
        )
    served = facts["request"]["error"] == "cudaSuccess"
    return Outcome(served, "served" if served else "refused")


def of_tiles(facts):
    text = f"{facts['tiles']} of {facts['planned_tiles']} tiles"
    if facts["tiles"] == facts["planned_tiles"]:
        text += (
            f", {facts['wrong']} values wrong, made in {facts['allocate_s']:.1f} s, "
            f"written at {facts['write_gb_s']:.0f} GB/s, read at {facts['read_gb_s']:.0f} GB/s"
        )
    return Outcome(facts["tiles"] == facts["planned_tiles"], text)


def outcome_of(run):
    lines = run.output
    if not lines:
        raise RuntimeError(f"status {run.returncode}: {run.stderr[-1000:]}")
    if not lines[-1].startswith("{"):  # The output of frameworks is plain text.
        return Outcome(lines[-1].startswith("served"), lines[-1].split()[0])
    facts = run.last_line
    return of_tiles(facts) if "wrong" in facts else of_sample(facts)


def has_wrong_values(run):
    return run.output[-1].startswith("{") and run.last_line.get("wrong", 0) != 0


def milliseconds(nanoseconds):
    return f"{nanoseconds / 1e6:.2f} ms"


def how_cuwarden_helped(run):
    report = run.report
    helped = [
        f"{row['rung']} {row['reclaimer'] or ''}".strip()
        for row in report["rungs"]
        if row["outcome"] == "served"
    ]
    if helped:
        incident = report["incidents"][0]
        climbed = sum(r["duration_ns"] for r in report["rungs"] if r["incident"] == incident["id"])
        count = sum(row["rescued_count"] for row in report["incidents"])
        times = f", the first of {count}" if count > 1 else ""
        return f"by {' and '.join(dict.fromkeys(helped))}, {milliseconds(climbed)}{times}"
    if report["pool"]["served_count"]:
        return f"by the pool, {report['pool']['served_count']} requests"
    return "by nothing of cuwarden's"


def account_problems(run, is_shared):
    """Returns messages about device memory that the report does not explain.

    Two moments are checked: the end of the process, and each request that failed.
    """
    report = run.report
    problems = []
    # If other processes are on the device first, nothing tells how much of it this context took.
    context = CONTEXT if is_shared else 0

    def check(when, unexplained, used, known=0):
        if not -used / 100 <= unexplained - known <= used / 100 + context:
            problems.append(f"{when} {unexplained} of {used} bytes are unexplained")

    for device in report["devices"]:
        check("at the end", report.account(device)["unexplained"], device["used_bytes"])
    for incident in report["incidents"]:
        rows, used = report.parts_at(incident)
        if used is None:  # There was no context to ask.
            continue
        if sum(rows.values()) != used:
            problems.append(f"when it failed {used} bytes were in use, and not {rows}")
        # A process that is not listed is known by its own output only, without its context.
        unlisted = incident["verdict"] == "held_by_unlisted_owner"
        known = run.last_line["other_bytes"] + CONTEXT // 2 if unlisted else 0
        check("when it failed", rows["unexplained"], used, known)
    return problems


class Bench:
    def __init__(self, workspace):
        self.workspace = workspace
        self.problems = []

    def environment(self, changes):
        """Returns the environment of all runs, bare ones included: settings that the simulated GPU
        needs."""
        shared = {"CUWARDEN_SIM_SHARED": self.workspace.folder / "shared_device"}
        return {**(shared if preloaded.SIMULATED else {}), **changes}

    def run(self, command, changes, *, shim):
        print(
            "$ "
            + "".join(f"{name}={shlex.quote(str(value))} " for name, value in changes.items())
            + ("LD_PRELOAD=libcuwarden.so " if shim else "")
            + shlex.join(map(str, command)),
            flush=True,
        )
        begun = time.monotonic()
        run = self.workspace.run(command, self.environment(changes), shim=shim)
        print(f"  {outcome_of(run).text}; {time.monotonic() - begun:.1f} s in all", flush=True)
        return run

    def preloading(self, library, command, changes):
        own = self.workspace.environment(self.environment({}), shim=False).get("LD_PRELOAD")
        preload = ":".join(filter(None, [str(library), own]))
        return self.run(command, {**changes, "LD_PRELOAD": preload}, shim=False)

    def asking_again(self, situation, changes):
        if not situation.asks_again:
            return "as bare"
        run = self.preloading(ASKING_AGAIN, situation.command, changes)
        prefix = "asked again: "
        lines = [line for line in run.stderr.splitlines() if line.startswith(prefix)]
        if not lines:
            self.problems.append(f"{situation.name}: no request was repeated")
            return outcome_of(run).text
        asked = json.loads(lines[-1].removeprefix(prefix))
        return f"{outcome_of(run).text}, {milliseconds(asked['ns'] / asked['asked'])}"

    def row(self, situation):
        """Runs a situation in four ways: with the bare driver, with one more attempt, with one more attempt
        after synchronising, and with cuwarden.
        """
        bare = self.run(situation.command, {}, shim=False)
        if outcome_of(bare).served:
            self.problems.append(f"{situation.name}: the driver serves it")
        columns = [
            outcome_of(bare).text,
            self.asking_again(situation, {}),
            self.asking_again(situation, {"ASK_AGAIN": "synchronise"}),
        ]
        run = self.run(situation.shimmed or situation.command, situation.settings, shim=True)
        outcome = outcome_of(run)
        wrong = [] if outcome.served else ["cuwarden did not help: " + run.stderr[-500:]]
        if outcome.served and has_wrong_values(run):
            wrong.append("values are wrong")
        wrong += account_problems(run, situation.is_shared)
        if run.report["coverage"]["complete"] is not True:
            wrong.append(str(run.report["coverage"]))
        self.problems += [f"{situation.name}: {problem}" for problem in wrong]
        return [*columns, f"{outcome.text} {how_cuwarden_helped(run)}"]


def oversubscribed(bench, room_bytes, spill_bytes):
    program = preloaded.PROGRAMS / "oversubscribed_tiles"
    free = bench.workspace.run([program], bench.environment({}), shim=False).last_line["free_bytes"]
    room = min(free, room_bytes or free)
    tile = room // 50 // PAGE * PAGE
    held = (free - room) // PAGE * PAGE
    return Situation(
        "oversubscribed_tiles",
        [program, held, 70, tile],
        {"CUWARDEN_SPILL": f"{spill_bytes // MIB}MiB"},
    )


def frameworks():
    if preloaded.SIMULATED or any(not importlib.util.find_spec(m) for m in ("torch", "cupy")):
        return
    for holds, asks in (("torch", "cupy"), ("cupy", "torch")):
        script = [preloaded.FRAMEWORKS / "two_caches.py", holds, asks]
        yield Situation(
            f"two caches: {holds} holds, {asks} asks",
            [sys.executable, *script],
            {"CUWARDEN_POOL": "rescue", **PYTHON},
            asks_again=False,  # Both empty their own caches and ask again by themselves.
            shimmed=[sys.executable, "-m", "cuwarden", *script],
        )


def situations(bench, options):
    rescue, on = {"CUWARDEN_POOL": "rescue"}, {"CUWARDEN_POOL": "on"}
    yield Situation("streams", [SAMPLES / "streams"], rescue)
    yield Situation("two_libraries", [SAMPLES / "two_libraries", "register"], rescue)
    yield from frameworks()
    yield Situation(
        "neighbour", [SAMPLES / "neighbour", "2"], {"CUWARDEN_WAIT": "20s"}, is_shared=True
    )
    yield Situation("odd_sizes", [SAMPLES / "odd_sizes"], on)
    yield Situation("churn", [SAMPLES / "churn"], on)
    yield oversubscribed(bench, int(options.room * GIB), int(options.spill * GIB))


def beside(bench, situation, named):
    name, _, library = named.partition("=")
    settings = {k: v for k, v in os.environ.items() if k.startswith("CUDA_VMM_")}
    run = bench.preloading(Path(library).resolve(), situation.command, settings)
    return f"{situation.name}, {name}: {outcome_of(run).text}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--only", action="append", metavar="PART", help="of a situation's name")
    parser.add_argument("--room", type=float, default=0, metavar="GIB")
    parser.add_argument("--spill", type=float, default=64, metavar="GIB")
    parser.add_argument("--beside", action="append", default=[], metavar="NAME=LIBRARY")
    options = parser.parse_args()
    alternating.need_gpu()
    if not ASKING_AGAIN.exists() or not (preloaded.PROGRAMS / "oversubscribed_tiles").exists():
        alternating.skip("the programs were not built")
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(preloaded.Workspace(Path(folder)))
        rows, others = [], []
        for situation in situations(bench, options):
            if options.only and not any(part in situation.name for part in options.only):
                continue
            try:  # A failure of one situation leaves the others.
                rows.append([situation.name, *bench.row(situation)])
                if situation.name == "oversubscribed_tiles":
                    others = [beside(bench, situation, named) for named in options.beside]
            except (AssertionError, RuntimeError, LookupError, ValueError) as problem:
                bench.problems.append(f"{situation.name}: {type(problem).__name__}: {problem}")
    print()
    for row in [["", "bare", "asked again", "synchronised, asked again", "cuwarden"], *rows]:
        print("| " + " | ".join(row) + " |")
    print(*others, *(f"problem: {problem}" for problem in bench.problems), sep="\n")
    return 1 if bench.problems or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
