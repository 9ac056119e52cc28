#!/usr/bin/env python3
"""Measures the cost of being watched: a loop of recorded allocations and frees runs while `cuwarden
top` draws it once a second, and while `cuwarden snapshot` runs again and again.

    tests/bench/bench_watched.py [BUILD-FOLDER] [--runs 5] [--milliseconds 3000] [--at-most RATIO]

Runs alternate, over a driver that does nothing. The medians are of the loop's own CPU time, because
the watching command needs a processor, too. They are compared with the medians while the same
command watches another process, because it takes caches and memory as well.

With --at-most, the best run of the watched loop is compared with the best run of the other loop.
The exit status is 1 if the ratio of their CPU times is above RATIO, or if the command has not seen
the loop. Before that, all is measured up to three times. Wall time is only printed, because it
depends on what else the machine does.
"""

import argparse
import os
import pty
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path


class Nobody:
    """A watcher that does nothing until it is told to stop. Subclasses watch a process."""

    def __init__(self, command, pid):
        self.command, self.pid = command, pid
        self.looks = 0
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.look)
        self.thread.start()

    def look(self):
        pass

    def stop(self):
        self.stopped.set()
        self.thread.join()
        return self.looks


class Snapshots(Nobody):
    def look(self):
        while not self.stopped.is_set():
            done = subprocess.run(
                [self.command, "snapshot", str(self.pid), "--output", "-"], capture_output=True
            )
            # The process may have ended before the last snapshot.
            self.looks += done.returncode == 0 and b'"cuwarden.report/1"' in done.stdout


class Top(Nobody):
    def look(self):
        master, slave = pty.openpty()
        top = subprocess.Popen(
            [self.command, "top", str(self.pid)],
            env={**os.environ, "TERM": "xterm"},
            stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
        )  # fmt: skip
        os.close(slave)
        os.set_blocking(master, False)
        while not self.stopped.wait(0.05):
            try:
                self.looks += os.read(master, 1 << 20).count(b"pair_loop")
            except BlockingIOError:
                pass
        top.kill()
        top.wait(PATIENCE_S)
        os.close(master)


MOST_ATTEMPTS = 3  # with --at-most
PATIENCE_S = 60  # a process that has not ended by then, after its output, is taken to hang
WATCHERS = {"nobody": Nobody, "top": Top, "snapshot": Snapshots}


def start_loop(build, scratch, milliseconds):
    """Starts the measured loop; returns its process once it has a ledger that can be watched."""
    bench = build / "tests" / "bench"
    env = {k: v for k, v in os.environ.items() if not k.startswith(("CUWARDEN_", "LD_"))}
    loop = subprocess.Popen(
        [str(bench / "pair_loop"), "device", "10", "1", str(milliseconds)],
        env={
            **env,
            "LD_LIBRARY_PATH": str(bench / "null_driver"),
            "LD_PRELOAD": str(build / "libcuwarden.so"),
            "CUWARDEN_REPORT": f"{scratch}/%p.json",
            "CUWARDEN_LEDGER_DIR": scratch,
        },
        stdout=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 10
    while not any(Path(scratch).glob(f"cuwarden-ledger-*-{loop.pid}")):  # There is no ledger yet.
        if loop.poll() is not None or time.monotonic() > deadline:
            sys.exit(f"the loop made no ledger in {scratch}: status {loop.poll()}")
        time.sleep(0.01)
    return loop


def run_once(watcher, at_other, build, scratch, milliseconds):
    """Runs the loop once. Returns CPU nanoseconds a pair, wall nanoseconds a pair, and how often
    the watcher has seen the process."""
    other = start_loop(build, scratch, 1 << 30) if at_other else None
    if other is not None:
        other.send_signal(signal.SIGSTOP)
    loop = start_loop(build, scratch, milliseconds)
    watching = watcher(build / "cuwarden", (other or loop).pid)
    output = loop.stdout.read()
    looks = watching.stop()
    if other is not None:
        other.kill()
        other.wait(PATIENCE_S)
        other.stdout.close()
        for ledger in Path(scratch).glob(f"cuwarden-ledger-*-{other.pid}"):
            ledger.unlink()
    if loop.wait(PATIENCE_S) != 0:
        sys.exit(f"the loop ended with status {loop.returncode}")
    cpu_ns, wall_ns = map(float, output.split())
    return cpu_ns, wall_ns, looks


def measure(options):
    """Measures all ways and prints a line for each. Returns True if the watching command has seen the loop,
    and no ratio of CPU times is above --at-most.
    """
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
    ways = [(name, at_other) for name in WATCHERS for at_other in (True, False)]
    found = {way: [] for way in ways[1:]}  # Without a watcher, both ways are the same.
    with tempfile.TemporaryDirectory(dir="/dev/shm") as scratch:
        for _ in range(options.runs):
            for name, at_other in found:
                found[name, at_other].append(
                    run_once(
                        WATCHERS[name],
                        at_other,
                        options.build.resolve(),
                        scratch,
                        options.milliseconds,
                    )
                )
    well = True
    for (name, at_other), runs in found.items():
        cpu_ns, wall_ns, looks = map(statistics.median, zip(*runs))
        line = f"{name + (' at another' if at_other else ''):20} {cpu_ns:7.1f} ns of CPU time a pair"
        line += f", {wall_ns:7.1f} ns in all"
        if name != "nobody":
            line += f", {looks:g} looks a run"
            well = well and (looks > 0 or options.at_most is None)
        if not at_other and name != "nobody":
            ratio = cpu_ns / statistics.median(run[0] for run in found[name, True])
            best_ratio = min(run[0] for run in runs) / min(run[0] for run in found[name, True])
            line += f", ratio {ratio:.3f} (best runs: {best_ratio:.3f})"
            well = well and (options.at_most is None or best_ratio <= options.at_most)
        print(line, flush=True)
    return well


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("build", nargs="?", type=Path, default=Path("build"))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--milliseconds", type=int, default=3000)
    parser.add_argument("--at-most", type=float, default=None)
    options = parser.parse_args()
    print("$ " + " ".join(sys.argv), flush=True)
    # Other programs may take caches, too. A cost that the watcher causes comes each time.
    attempts = 1 if options.at_most is None else MOST_ATTEMPTS
    return 0 if any(measure(options) for _ in range(attempts)) else 1


if __name__ == "__main__":
    sys.exit(main())
