"""A scheduler ends a step by killing `cuwarden run` and all processes below it at one moment. The ledgers
have all records, and `recover` makes the reports.
"""

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from reports import Report
from shimmed import COMMAND, PATIENCE_S, program

RANKS = 4
# Each rank prints one line about its allocations, and waits to be killed.
STEP = 'i=0; while [ $i -lt "$1" ]; do RANK=$i "$2" wait & i=$((i+1)); done; wait'


def cgroup_folders():
    """Returns folders in which a cgroup can be made: of version 2, or of version 1's freezer."""
    own = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        own[controllers] = path.lstrip("/")
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, folder, kind, options, *_ = line.split()
        if kind == "cgroup2" and "" in own:
            yield Path(folder) / own[""]
        if kind == "cgroup" and "freezer" in options.split(",") and "freezer" in own:
            yield Path(folder) / own["freezer"]


class Cgroup:
    def __init__(self):
        self.folder = None
        reasons = []
        for parent in cgroup_folders():
            folder = parent / f"cuwarden-step-{os.getpid()}-{time.monotonic_ns()}"
            try:
                folder.mkdir()
                (folder / "cgroup.procs").read_text()
            except OSError as error:
                reasons.append(str(error))
                with contextlib.suppress(OSError):
                    folder.rmdir()
                continue
            self.folder = folder
            return
        pytest.skip(f"no cgroup can be made: {'; '.join(reasons) or 'none is mounted'}")

    def enter(self):
        (self.folder / "cgroup.procs").write_text("0")

    def pids(self):
        return [int(line) for line in (self.folder / "cgroup.procs").read_text().split()]

    def kill(self):
        with contextlib.suppress(OSError):  # cgroup.kill needs Linux 5.14 and version 2
            (self.folder / "cgroup.kill").write_text("1")
            return
        # As schedulers do, freezes the cgroup first, so that no member runs while others are killed.
        state = self.folder / "freezer.state"
        if state.exists():
            state.write_text("FROZEN")
        for pid in self.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if state.exists():
            state.write_text("THAWED")

    def remove(self):
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:  # a dead process stays a member until the kernel removes it
            try:
                return self.folder.rmdir()
            except OSError:
                time.sleep(0.02)


class ProcessGroup:
    """Used if no cgroup can be made: kills the process group, as a shell kills a job."""

    def __init__(self):
        self.leader = None

    def enter(self):
        os.setpgid(0, 0)

    def kill(self):
        os.killpg(self.leader, signal.SIGKILL)

    def remove(self):
        pass


@pytest.fixture(params=[Cgroup, ProcessGroup])
def step(request):
    made = request.param()
    yield made
    made.remove()


def start_step(workspace, step, temporary):
    process = subprocess.Popen(
        [
            COMMAND, "run", "--simulate", "16GiB", "--report", workspace.reports / "%r.json",
            "--ledger-dir", workspace.ledger, "--", "/bin/sh", "-c", STEP, "step", str(RANKS),
            program("dying"),
        ],
        env={**workspace.environment(shim=False, preload=()), "TMPDIR": str(temporary)},
        cwd=workspace.work, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
        preexec_fn=step.enter,
    )  # fmt: skip
    step.leader = process.pid
    for _ in range(RANKS):
        assert process.stdout.readline().startswith("{")
    return process


def test_a_step_that_is_killed_as_a_whole_has_its_reports_made_by_recover(
    workspace, cuwarden, step, tmp_path
):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    process = start_step(workspace, step, temporary)
    step.kill()
    assert process.wait(PATIENCE_S) == -signal.SIGKILL
    # The pipe ends when all ranks have ended.
    process.stdout.read()
    process.stdout.close()
    assert list(workspace.reports.iterdir()) == []
    assert len(list(workspace.ledger.iterdir())) == RANKS

    done = cuwarden("recover", workspace.ledger)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == RANKS
    assert list(workspace.ledger.iterdir()) == []
    assert sorted(path.name for path in workspace.reports.iterdir()) == [
        f"{rank}.json" for rank in range(RANKS)
    ]
    for rank in range(RANKS):
        report = Report.read(workspace.reports / f"{rank}.json")
        assert report["job"]["rank"] == rank and report["process"]["end_reason"] is None
        assert (report["leaks"]["count"], report["leaks"]["bytes"]) == (2, 6 << 20)

    done = cuwarden("report", "--fail-on-leak", workspace.reports)
    assert done.returncode == 1 and done.stdout.count("rank ") == RANKS
