"""A process that a memory cgroup's OOM killer ended: the report says so, with the limit and the peak.
"""

import re
import signal

import pytest

from memory_cgroup import LIMIT, Cgroup
from shimmed import only_report, program, sample


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


STRUCK = r"KILLED BY THE OOM KILLER at .* into the run: the cgroup's limit is 64\.0 MiB, its peak was 6"


def test_a_kill_for_lack_of_memory_in_a_cgroup_is_in_the_report_that_run_makes(
    workspace, cuwarden, cgroup
):
    done = cuwarden(
        "run", "--simulate", "16GiB", "--report", workspace.reports, "--",
        *cgroup.entered_by(*GROWING),
    )  # fmt: skip
    assert done.returncode == 128 + signal.SIGKILL, done.stderr
    report = only_report(workspace)
    assert report["process"]["signal"] == signal.SIGKILL
    check_evidence(report, cgroup)
    assert re.search(STRUCK, done.stderr)


def killed_in(workspace, cgroup, command=GROWING):
    run = workspace.run(cgroup.entered_by(*command))
    assert run.returncode == -signal.SIGKILL, run.stderr
    (ledger,) = run.ledgers
    return ledger


def test_a_kill_for_lack_of_memory_in_a_cgroup_is_in_the_report_that_recover_makes(
    workspace, cuwarden, cgroup
):
    done = cuwarden("recover", killed_in(workspace, cgroup))
    assert done.returncode == 0, done.stderr
    report = only_report(workspace)
    assert report["process"]["end_reason"] is None
    check_evidence(report, cgroup)
    assert re.match(STRUCK, cuwarden("report", report.path).stdout)


def test_a_cgroup_that_is_gone_is_unknown(workspace, cuwarden, cgroup):
    ledger = killed_in(workspace, cgroup)
    cgroup.remove()
    assert cuwarden("recover", ledger).returncode == 0
    report = only_report(workspace)
    assert report["memory_cgroup"] is None
    assert "OOM killer" not in cuwarden("report", report.path).stdout


def test_a_later_cgroup_of_the_same_name_is_not_taken_for_it(workspace, cuwarden, cgroup):
    ledger = killed_in(workspace, cgroup)
    cgroup.remove()
    cgroup.folder.mkdir()
    assert cuwarden("recover", ledger).returncode == 0
    assert only_report(workspace)["memory_cgroup"] is None


def test_another_process_sigkill_is_not_put_down_to_an_earlier_lack_of_memory(
    workspace, cuwarden, cgroup
):
    killed_in(workspace, cgroup).unlink()
    assert cuwarden("recover", killed_in(workspace, cgroup, [program("dying"), "kill"])).returncode == 0
    report = only_report(workspace)
    assert report["memory_cgroup"]["oom_kills"] == 0
    assert report["memory_cgroup"]["limit_bytes"] == LIMIT
    assert "OOM killer" not in cuwarden("report", report.path).stdout


def test_a_process_that_ends_by_itself_has_its_limit_and_peak_in_the_report(workspace, cgroup):
    report = workspace.run(cgroup.entered_by(program("allocate"), "3")).report
    assert report["memory_cgroup"]["limit_bytes"] == LIMIT
    assert 0 < report["memory_cgroup"]["peak_bytes"] < LIMIT
    assert report["memory_cgroup"]["oom_kills"] == 0
