"""A process that a memory cgroup's OOM killer ended: the report says so, with the limit and the peak.

Needs a memory cgroup of its own below the one that the tests run in, or below the nearest above it
that passes the memory controller on: what is limited there stays limited.
"""

import os
import signal
import time
from pathlib import Path

import pytest

from shimmed import only_report, program, sample

LIMIT = 64 << 20
MOUNT = Path("/sys/fs/cgroup")


def own_paths():
    """What /proc/self/cgroup says, by controllers; "" is version 2."""
    lines = Path("/proc/self/cgroup").read_text().splitlines()
    return {controllers: path for _, controllers, path in (line.split(":", 2) for line in lines)}


def parent_folder():
    """Where a cgroup can be made whose memory can be limited, or a reason why not."""
    if os.geteuid() != 0:
        return None, "only root makes cgroups"
    for controllers, path in own_paths().items():
        if "memory" in controllers.split(","):
            return MOUNT / "memory" / path.lstrip("/"), ""
    folder = MOUNT / own_paths().get("", "/").lstrip("/")
    while folder != MOUNT.parent:
        control = folder / "cgroup.subtree_control"
        if control.exists() and "memory" in control.read_text().split():
            return folder, ""
        folder = folder.parent
    return None, "no cgroup above this one passes the memory controller on"


class Cgroup:
    def __init__(self):
        parent, why_not = parent_folder()
        if parent is None:
            pytest.skip(why_not)
        self.folder = parent / f"cuwarden-test-{os.getpid()}-{time.monotonic_ns()}"
        try:
            self.folder.mkdir()
        except OSError as error:
            pytest.skip(f"no cgroup can be made: {error}")
        try:
            if (self.folder / "memory.max").exists():
                self._limit({"memory.max": LIMIT, "memory.swap.max": 0})
            else:
                self._limit({"memory.limit_in_bytes": LIMIT, "memory.memsw.limit_in_bytes": LIMIT})
        except OSError as error:
            self.remove()
            pytest.skip(f"no limit can be set: {error}")

    def _limit(self, files):
        for name, value in files.items():
            if (self.folder / name).exists():  # there may be no swap to limit
                (self.folder / name).write_text(str(value))

    def entered_by(self, *command):
        """The command, as a member."""
        script = f'echo 0 > {self.folder}/cgroup.procs && exec "$@"'
        return ["/bin/sh", "-c", script, "sh", *map(str, command)]

    def remove(self):
        for _ in range(100):  # a dead process is a member until the kernel is done with it
            try:
                self.folder.rmdir()
                return
            except FileNotFoundError:
                return
            except OSError:
                time.sleep(0.05)


@pytest.fixture
def cgroup():
    made = Cgroup()
    yield made
    made.remove()


GROWING = [sample("pinned_leak"), "100000"]  # 1 MiB of pinned memory a step, and as much beside it


def check_evidence(report, cgroup):
    evidence = report["memory_cgroup"]
    assert evidence["path"] == str(cgroup.folder)
    assert evidence["limit_bytes"] == LIMIT
    assert 0.9 * LIMIT <= evidence["peak_bytes"] <= LIMIT
    assert evidence["oom_kills"] == 1
    pinned = [g for g in report["leak_groups"] if g["kind"] == "pinned"]
    assert LIMIT / 4 <= sum(g["bytes"] for g in pinned) <= LIMIT
    assert all("stage_step" in report.functions(g)[0][0] for g in pinned)


STRUCK = "the kernel's OOM killer struck in its cgroup (limit 64.0 MiB, peak 6"


def test_a_kill_for_lack_of_memory_in_a_cgroup_is_in_the_report_that_run_makes(
    place, cuwarden, cgroup
):
    done = cuwarden(
        "run", "--simulate", "16GiB", "--report", place.reports, "--",
        *cgroup.entered_by(*GROWING),
    )  # fmt: skip
    assert done.returncode == 128 + signal.SIGKILL, done.stderr
    report = only_report(place)
    assert report["process"]["signal"] == signal.SIGKILL
    check_evidence(report, cgroup)
    assert STRUCK in done.stderr


def killed_in(place, cgroup, command=GROWING):
    run = place.run(cgroup.entered_by(*command))
    assert run.returncode == -signal.SIGKILL, run.stderr
    (ledger,) = run.ledgers
    return ledger


def test_a_kill_for_lack_of_memory_in_a_cgroup_is_in_the_report_that_recover_makes(
    place, cuwarden, cgroup
):
    done = cuwarden("recover", killed_in(place, cgroup))
    assert done.returncode == 0, done.stderr
    report = only_report(place)
    assert report["process"]["end_reason"] is None
    check_evidence(report, cgroup)
    assert STRUCK in cuwarden("report", report.path).stdout


def test_a_cgroup_that_is_gone_is_unknown(place, cuwarden, cgroup):
    ledger = killed_in(place, cgroup)
    cgroup.remove()
    assert cuwarden("recover", ledger).returncode == 0
    report = only_report(place)
    assert report["memory_cgroup"] is None
    assert "OOM killer" not in cuwarden("report", report.path).stdout


def test_a_later_cgroup_of_the_same_name_is_not_taken_for_it(place, cuwarden, cgroup):
    ledger = killed_in(place, cgroup)
    cgroup.remove()
    cgroup.folder.mkdir()
    assert cuwarden("recover", ledger).returncode == 0
    assert only_report(place)["memory_cgroup"] is None


def test_somebody_elses_sigkill_is_not_put_down_to_an_earlier_lack_of_memory(
    place, cuwarden, cgroup
):
    killed_in(place, cgroup).unlink()
    assert cuwarden("recover", killed_in(place, cgroup, [program("dying"), "kill"])).returncode == 0
    report = only_report(place)
    assert report["memory_cgroup"]["oom_kills"] == 0
    assert report["memory_cgroup"]["limit_bytes"] == LIMIT
    assert "OOM killer" not in cuwarden("report", report.path).stdout


def test_a_process_that_ends_by_itself_has_its_limit_and_peak_in_the_report(place, cgroup):
    report = place.run(cgroup.entered_by(program("allocate"), "3")).report
    assert report["memory_cgroup"]["limit_bytes"] == LIMIT
    assert 0 < report["memory_cgroup"]["peak_bytes"] < LIMIT
    assert report["memory_cgroup"]["oom_kills"] == 0
