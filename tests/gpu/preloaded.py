"""Runs programs on the GPU, bare and under the preloaded shim, and keeps their output and reports.

The environment says where things are. CUWARDEN_BUILD is the build folder, or any folder that has
libcuwarden.so, cuwarden and tests/gpu/ as the build folder does. CUWARDEN_GPU_KEEP is the folder
for logs and reports. With CUWARDEN_GPU_SIMULATED=1 the programs run on the simulated GPU of the
build folder, to try the tests themselves: kernels do nothing there, so no result is right.
"""

import glob
import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

from report_tables import Report

SOURCE = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("CUWARDEN_BUILD", SOURCE / "build")).resolve()
SIMULATED = os.environ.get("CUWARDEN_GPU_SIMULATED") == "1"
SHIM = BUILD / "libcuwarden.so"
# A program that runs longer is taken to hang and is ended, unless its test allows it another time.
PATIENCE_S = 180
PROGRAMS = BUILD / "tests" / "gpu"
FRAMEWORKS = Path(__file__).resolve().parent / "frameworks" / "programs"
PLANTED_LEAK = PROGRAMS / "libplanted_leak.so"

POOL = os.environ.get("GPU_TEST_POOL")  # CUWARDEN_POOL of all shimmed runs (tests/gpu/run --pool).

FIGURES = "memory: "  # Begins a line that may differ between two runs.


def program(name):
    path = PROGRAMS / name
    if not path.exists():
        pytest.skip(f"{path} was not built (ninja gpu_programs)")
    # The genuine runtime refuses the simulated driver, and a static runtime is always genuine.
    if SIMULATED and path.name != "driver_memory" and b"libcudart.so" not in path.read_bytes():
        pytest.skip(f"{path} has a static cudart, which the simulated GPU cannot serve")
    return str(path)


def library_folders():
    """Returns the folders of libraries that the programs link, unless the loader finds them by itself."""
    candidates = [
        os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "lib64"),
        "/usr/local/cuda/lib64",
        *glob.glob(os.path.join(sys.prefix, "lib/python3*/site-packages/nvidia/*/lib")),
    ]
    wanted = ("libcudart.so.*", "libcublas.so.*", "libcufft.so.*", "libcusparse.so.*",
              "libnccl.so.*")
    return [
        folder
        for folder in dict.fromkeys(candidates)
        if any(glob.glob(os.path.join(folder, name)) for name in wanted)
    ]


class Run:
    """The results of one run: its output, its status, and the reports that appeared."""

    def __init__(self, pid, stdout, stderr, returncode, reports):
        self.pid = pid
        self.stdout = stdout
        self.stderr = stderr
        self.returncode = returncode
        self.reports = reports

    @property
    def report(self):
        """Returns the report of the program's own process; a framework may start others, such as compilers."""
        own = [report for report in self.reports if report["process"]["pid"] == self.pid]
        assert len(own) == 1, (
            f"{len(own)} reports of process {self.pid}, {len(self.reports)} in all; stderr:\n"
            + self.stderr[-3000:]
        )
        return own[0]

    @property
    def output(self):
        """Returns all lines that the program printed, without its figures of memory."""
        return [line for line in self.stdout.splitlines() if not line.startswith(FIGURES)]

    @property
    def last_line(self):
        try:
            return json.loads(self.output[-1])
        except (IndexError, json.JSONDecodeError):
            said = f"{self.stdout[-1500:]}{self.stderr[-1500:]}"
            raise AssertionError(f"no last line, status {self.returncode}: {said}") from None

    @property
    def figures(self):
        """Returns the last figures of memory that the program printed."""
        lines = [line for line in self.stdout.splitlines() if line.startswith(FIGURES)]
        assert lines, f"no figures, status {self.returncode}: {self.stderr[-3000:]}"
        return json.loads(lines[-1].removeprefix(FIGURES))

    @property
    def kind_figures(self):
        """Returns the figures that the program printed for each kind of memory, as a dict by the kind's name."""
        rows = [
            json.loads(line.removeprefix(FIGURES))
            for line in self.stdout.splitlines()
            if line.startswith(FIGURES)
        ]
        return {row["kind"]: row for row in rows if "kind" in row}

    @property
    def said(self):
        return [line for line in self.stderr.splitlines() if line.startswith("cuwarden")]

    @property
    def fact_lines(self):
        """Returns the JSON objects in the program's lines "planted: ...": facts that the report must contain."""
        prefix = "planted: "
        return [
            json.loads(line.removeprefix(prefix))
            for line in self.stdout.splitlines()
            if line.startswith(prefix)
        ]


class Workspace:
    """Folders that belong to one test."""

    def __init__(self, folder: Path, keep: Path | None = None):
        self.folder = keep if keep is not None else folder
        self.work = folder / "work"
        self.reports = self.folder / "reports"
        self.ledger = folder / "ledger"
        for part in (self.work, self.reports, self.ledger):
            part.mkdir(parents=True, exist_ok=True)
        self.runs = 0

    def environment(self, changes=None, *, shim=True):
        env = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("CUWARDEN_", "LD_PRELOAD", "PYTORCH_", "XLA_", "SLURM_", "PMI"))
            and name not in ("RANK", "LOCAL_RANK", "WORLD_SIZE")
        }
        env["NCCL_NVLS_ENABLE"] = "0"
        env["PLANTED_LEAK"] = str(PLANTED_LEAK)
        preload = [SHIM] if shim else []
        if SIMULATED:
            simulated = BUILD / "tools" / "simulated_gpu"
            preload += [simulated / "libcuda.so.1", simulated / "libcudart.so.13"]
            # libnvidia-ml.so.1 is found in this folder when it is loaded.
            folders = [str(simulated), env.get("LD_LIBRARY_PATH", "")]
            env["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, folders))
        if preload:
            env["LD_PRELOAD"] = ":".join(map(str, preload))
        if shim:
            env["CUWARDEN_REPORT"] = str(self.reports / "%e-%p.json")
            env["CUWARDEN_LEDGER_DIR"] = str(self.ledger)
            # The time that a report may look for lines is tested elsewhere.
            env["CUWARDEN_SYMBOL_TIME"] = "20s"
            if POOL:
                env["CUWARDEN_POOL"] = POOL
        for name, value in (changes or {}).items():
            if value is None:
                env.pop(name, None)
            else:
                env[name] = str(value)
        return env

    def start(self, command, env=None, *, shim=True, stdin=subprocess.DEVNULL):
        environment = self.environment(env, shim=shim)
        if str(command[0]) != sys.executable:  # Frameworks bring libraries of their own.
            folders = environment.get("LD_LIBRARY_PATH", "").split(os.pathsep) + library_folders()
            environment["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, folders))
        return subprocess.Popen(
            [str(part) for part in command],
            env=environment,
            cwd=self.work,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def finish(self, process, label, timeout_s=PATIENCE_S, started=None, *, interrupted=False):
        try:
            stdout, stderr = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            stdout, stderr = process.communicate(timeout=PATIENCE_S)
            self._keep(process, label, stdout, stderr, started)
            raise AssertionError(
                f"{label} ran past {timeout_s} s: {shlex.join(map(str, process.args))}\n"
                + stderr[-2000:]
            ) from None
        self._keep(process, label, stdout, stderr, started)
        names = (f"*-{process.pid}.json", f"*-{process.pid}.[0-9]*.json")
        paths = sorted(path for name in names for path in self.reports.glob(name))
        reports = [Report.read(path, interrupted=interrupted) for path in paths]
        return Run(process.pid, stdout, stderr, process.returncode, reports)

    def _keep(self, process, label, stdout, stderr, started):
        self.runs += 1
        took = "" if started is None else f"{time.monotonic() - started:.2f} s, "
        (self.folder / f"{self.runs:02}-{label}.log").write_text(
            f"$ {shlex.join(map(str, process.args))}\n{took}status {process.returncode}, "
            f"pid {process.pid}\n--- stdout\n{stdout}\n--- stderr\n{stderr}"
        )

    def run(self, command, env=None, *, shim=True, timeout_s=PATIENCE_S, interrupted=False):
        started = time.monotonic()
        process = self.start(command, env, shim=shim)
        label = "shim" if shim else "bare"
        return self.finish(process, label, timeout_s, started, interrupted=interrupted)

    def run_both(self, command, env=None, **how):
        """Runs the program bare and under the shim, and checks that its output and status are equal.

        Returns the run under the shim.
        """
        bare = self.run(command, env, shim=False, **how)
        assert bare.returncode == 0, f"bare: status {bare.returncode}\n{bare.stderr[-3000:]}"
        shimmed = self.run(command, env, shim=True, **how)
        check_unnoticed(bare, shimmed)
        return shimmed


def check_unnoticed(bare, shimmed):
    assert shimmed.returncode == bare.returncode, shimmed.stderr[-3000:]
    assert shimmed.output == bare.output
    assert shimmed.said == []


def check_results(run):
    """Checks that the program found all its results equal to the host's."""
    if not SIMULATED:
        assert not [line for line in run.output if line.endswith(": no")], run.stdout


def check_covered(report):
    """Checks that no call in the process bypassed the shim."""
    assert report["unhooked_lookups"] == [], report["unhooked_lookups"]
    assert report["coverage"]["complete"] is True, report["coverage"]
    assert report["tool"]["complete"] is True, report["tool"]


# Bytes of a device that may stay unexplained, if they are more than a hundredth of the bytes in use.
# NVML counts up to 15 MiB of a device that several processes use to none of them (measured on an H200).
MOST_UNEXPLAINED, MOST_UNEXPLAINED_IF_SHARED = 4 << 20, 16 << 20
MOST_OF_A_CONTEXT = 768 << 20


def check_explained(report, *, is_shared=False, unlisted_bytes=0):
    """Checks that each device's account at exit, and at each incident, explains the bytes in use.

    `is_shared`: True if another process uses the device. `unlisted_bytes`: bytes of the other process at
    the incidents, if NVML does not list it. Then the size of both contexts is unknown, too.
    """
    accounts = [(report.account(device), device["used_bytes"], 0) for device in report["devices"]]
    for incident in report["incidents"]:
        known = report.account_of(incident)
        if known is not None:
            accounts.append((*known, unlisted_bytes))
    for rows, used, unlisted in accounts:
        print(f"unexplained: {rows['unexplained']} of {used}", rows)
        most = max(used / 100, MOST_UNEXPLAINED_IF_SHARED if is_shared else MOST_UNEXPLAINED)
        contexts = 2 * MOST_OF_A_CONTEXT if unlisted_bytes else 0
        assert -most <= rows["unexplained"] - unlisted <= most + contexts, rows


def check_own_account(run):
    """Checks that the report has what the program counted itself: its totals, its leaks, and right results."""
    check_results(run)
    run.report.check_totals(run.last_line["totals"])
    for fact in run.last_line["leaked"]:
        run.report.check_leak(fact)
    check_covered(run.report)
