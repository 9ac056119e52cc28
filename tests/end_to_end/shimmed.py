"""Runs programs as users do: bare or under the preloaded shim, on the simulated GPU.

A run has folders of its own, so every file in them was written by the run.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from reports import Report

BUILD = Path(os.environ["END_TO_END_BUILD"]).absolute()
SOURCE = Path(os.environ.get("END_TO_END_SOURCE", Path(__file__).resolve().parents[2]))
SHIM = BUILD / "libcuwarden.so"
COMMAND = BUILD / "cuwarden"
DRIVER = BUILD / "tools" / "simulated_gpu" / "libcuda.so.1"
RUNTIME = BUILD / "tools" / "simulated_gpu" / "libcudart.so.13"
PROGRAMS = BUILD / "tests" / "end_to_end" / "programs"
SAMPLES = BUILD / "samples"

# A program that runs longer is taken to hang and is ended. On an idle machine no program takes a tenth of
# this time.
PATIENCE_S = 240

# A line about a request that failed: "cuwarden: cudaMalloc of 2.0 GiB (GPU 0) failed: cause (verdict)".
FAILURE_LINE = re.compile(r"cuwarden: \w+( (of|needing) [\d.]+ \w+)?( \(GPU \d+\))? failed: (.* \(\w+\)|\w+)(; report: .*)?")

# Text of a Python program that takes device memory by ctypes.
TAKE = """
import ctypes
cudart = ctypes.CDLL("libcudart.so.13")
cudart.cudaMalloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]

def take(size):
    out = ctypes.c_void_p()
    assert cudart.cudaMalloc(ctypes.byref(out), size) == 0
    return out
"""


def until(is_so, process=None):
    """Calls is_so() again and again until its result is true, and returns the result.

    Fails the test after PATIENCE_S seconds, or if `process` ends before.
    """
    deadline = time.monotonic() + PATIENCE_S
    while not (found := is_so()):
        assert process is None or process.poll() is None, "the process has ended"
        assert time.monotonic() < deadline, "it never came about"
        time.sleep(0.001)
    return found


# Preloaded, this library makes the shim's time pass only while the shim sleeps, or while the program
# calls let_time_pass(), at no cost of real time.
DRIVEN_CLOCK = PROGRAMS / "libdriven_clock.so"
DRIVEN = (DRIVER, RUNTIME, DRIVEN_CLOCK)
# Kernels of the simulated GPU last for driven time, too.
DRIVEN_WITH_DEVICE = (*DRIVEN, PROGRAMS / "libdriven_device.so")
# Calls of nanosleep(), as std::this_thread::sleep_for() makes them, take time of the driven clock alone.
DRIVEN_WITH_SLEEPS = (*DRIVEN, PROGRAMS / "libdriven_sleeps.so")


def program(name):
    return str(PROGRAMS / name)


def sample(name):
    return str(SAMPLES / name)


@dataclass
class Run:
    """The result of one run of a program: its output, its status, and every file that appeared."""

    stdout: str
    stderr: str
    returncode: int
    folder: Path  # the program's working directory
    reports: list = field(default_factory=list)
    ledgers: list = field(default_factory=list)
    report_files: list = field(default_factory=list)

    @property
    def report(self):
        assert len(self.reports) == 1, f"{len(self.reports)} reports; stderr:\n{self.stderr}"
        return self.reports[0]

    @property
    def last_line(self):
        """Returns the last line of stdout, parsed as JSON: facts that the program prints about itself."""
        return json.loads(self.stdout.strip().splitlines()[-1])

    @property
    def said(self):
        """Returns the lines of stderr that cuwarden wrote, without those about failed requests."""
        said = self.other_stderr.splitlines()
        return [line for line in said if line.startswith("cuwarden: ")]

    @property
    def said_of_failures(self):
        """Returns the lines of stderr that cuwarden wrote about failed requests."""
        return [line for line in self.stderr.splitlines() if FAILURE_LINE.fullmatch(line)]

    @property
    def other_stderr(self):
        """Returns stderr without cuwarden's lines about failed requests."""
        lines = self.stderr.splitlines(keepends=True)
        return "".join(line for line in lines if not FAILURE_LINE.fullmatch(line.rstrip("\n")))

    @property
    def own_stderr(self):
        """Returns the lines of stderr that cuwarden did not write."""
        return "".join(
            line
            for line in self.stderr.splitlines(keepends=True)
            if not line.startswith("cuwarden: ")
        )

    def said_about(self, *parts):
        """Returns the only line of cuwarden's on stderr that contains all of these texts; fails if there is
        not one.
        """
        lines = [line for line in self.said if all(part in line for part in parts)]
        assert len(lines) == 1, f"{len(lines)} lines with {parts}; stderr:\n{self.stderr}"
        return lines[0]


class Workspace:
    """The folders in which a test's programs run, and the functions that run them there."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.work = folder / "work"
        self.reports = folder / "reports"
        self.ledger = folder / "ledger"
        self.started = []  # processes of start(); those that still run are ended with the test
        for part in (self.work, self.reports, self.ledger):
            part.mkdir()

    def environment(self, changes=None, *, shim=True, preload=(DRIVER, RUNTIME)):
        env = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(
                ("CUWARDEN_", "END_TO_END_", "LD_", "PMI", "OMPI_", "MV2_", "SLURM_", "LSB_", "PBS_")
            )
            and name not in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "CUDA_VISIBLE_DEVICES")
            and name not in ("ASAN_OPTIONS", "MALLOC_PERTURB_")
        }
        preloaded = ([SHIM] if shim else []) + list(preload)
        if DRIVER in preloaded:  # the folder also has libnvidia-ml.so.1, which is loaded when needed
            env["LD_LIBRARY_PATH"] = str(DRIVER.parent)
        if preloaded:
            env["LD_PRELOAD"] = ":".join(map(str, preloaded))
        if shim:
            env["CUWARDEN_REPORT"] = str(self.reports / "%e-%p.json")
            env["CUWARDEN_LEDGER_DIR"] = str(self.ledger)
            # Enough for a machine that is slow, or stands still for a while.
            env["CUWARDEN_SYMBOL_TIME"] = "1m"
            env["CUWARDEN_SYNC_TIMEOUT"] = "1m"
        for name, value in (changes or {}).items():
            if not shim and name.startswith("CUWARDEN_") and not name.startswith("CUWARDEN_SIM_"):
                continue
            if value is None:
                env.pop(name, None)
            else:
                env[name] = str(value)
        return env

    def run(self, command, env=None, *, shim=True, preload=(DRIVER, RUNTIME), **popen):
        """Runs `command`. A variable that is None in `env` is removed from the environment."""
        before = set(self.reports.rglob("*")) | set(self.work.rglob("*.json"))
        ledgers_before = set(self.ledger.rglob("*"))
        popen.setdefault("cwd", self.work)
        done = subprocess.run(
            [str(part) for part in command],
            env=self.environment(env, shim=shim, preload=preload),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            **popen,
        )
        files = sorted(
            path
            for path in (set(self.reports.rglob("*")) | set(self.work.rglob("*.json"))) - before
            if path.is_file() and path.name.endswith(".json")
        )
        return Run(
            stdout=done.stdout,
            stderr=done.stderr,
            returncode=done.returncode,
            folder=Path(popen["cwd"]),
            reports=[Report.read(path) for path in files],
            ledgers=sorted(set(self.ledger.rglob("*")) - ledgers_before),
            report_files=files,
        )

    def run_both(self, command, env=None, **how):
        """Runs the command bare and under the shim, and checks that output and status are equal.

        Returns the run under the shim.
        """
        bare = self.run(command, env, shim=False, **how)
        shimmed = self.run(command, env, shim=True, **how)
        assert bare.said == []
        assert shimmed.stdout == bare.stdout
        assert shimmed.own_stderr == bare.own_stderr
        assert shimmed.returncode == bare.returncode, shimmed.stderr
        return shimmed


def cuwarden(workspace, *arguments, env=None, **popen):
    """Runs the `cuwarden` command as a user does, in the work folder of `workspace`, and without the shim.

    `env`: changes to the environment; None removes a variable. Variables of cuwarden are ignored, except
    CUWARDEN_SIM_*. `popen`: further arguments of subprocess.run(). Returns the subprocess.CompletedProcess, whatever
    its status, with stdout and stderr as text.
    """
    popen.setdefault("cwd", workspace.work)
    return subprocess.run(
        [str(COMMAND), *map(str, arguments)],
        env=workspace.environment(env, shim=False, preload=()),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=PATIENCE_S,
        **popen,
    )


def start(workspace, command, env=None, **popen):
    """Starts a program under the shim, does not wait for it, and returns its process.

    The process is killed at the end of the test.
    """
    popen.setdefault("cwd", workspace.work)
    popen.setdefault("stdin", subprocess.DEVNULL)
    process = subprocess.Popen(
        [str(part) for part in command],
        env=workspace.environment(env),
        stdout=subprocess.PIPE,
        text=True,
        **popen,
    )
    workspace.started.append(process)
    return process


def dead(workspace, how="kill"):
    """Runs a program that dies under the shim in the way `how`, such as "kill".

    Returns (path of the ledger that it left, the leaks that it printed).
    """
    run = workspace.run([program("dying"), how])
    assert run.returncode < 0
    assert run.reports == []
    (ledger,) = run.ledgers
    return ledger, run.last_line["leaked"]


def can_mount():
    return (
        os.geteuid() == 0
        and shutil.which("unshare") is not None
        and subprocess.run(
            ["unshare", "-m", "mount", "-t", "tmpfs", "-o", "size=64k", "none", "/mnt"],
            capture_output=True,
        ).returncode
        == 0
    )


def only_report(workspace):
    (path,) = workspace.reports.iterdir()
    return Report.read(path)


def killed_by(run, expected: signal.Signals):
    return run.returncode == -expected
