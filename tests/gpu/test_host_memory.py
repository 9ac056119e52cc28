"""Pinned memory of the real driver under a memory cgroup's limit: the kernel kills the program, and
the recovered report tells the reason."""

import signal
import subprocess
import sys

import pytest

import preloaded

sys.path.append(str(preloaded.SOURCE / "tests" / "end_to_end"))

from memory_cgroup import Cgroup  # noqa: E402

MIB = 1 << 20

# Pairs of the limit and the buffers' size, in MiB. A context alone takes some hundred MiB.
LIMITS = [(2048, 4), (2048, 100), (3072, 32), (4096, 512), (2560, 1)]

pytestmark = pytest.mark.alone


@pytest.mark.parametrize(("limit", "buffer"), LIMITS)
def test_a_program_that_pins_beyond_the_cgroups_limit_is_killed_and_its_report_says_so(
    workspace, limit, buffer
):
    sample = preloaded.BUILD / "samples" / "pinned_limit"
    if not sample.exists():
        pytest.skip(f"{sample} was not built")
    cgroup = Cgroup(limit * MIB)
    try:
        command = cgroup.entered_by(sample, str(buffer * MIB))
        assert workspace.run(command, shim=False).returncode == -signal.SIGKILL
        run = workspace.run(command)
        assert run.returncode == -signal.SIGKILL
        facts = run.last_line
        assert facts["limit_bytes"] == limit * MIB
        assert facts["request"]["error"] is None  # The call never returned.
        (ledger,) = workspace.ledger.glob("cuwarden-ledger-*")
        done = subprocess.run(
            [preloaded.BUILD / "cuwarden", "recover", ledger], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
    finally:
        cgroup.remove()
    (path,) = workspace.reports.glob(f"*-{run.pid}.json")
    report = preloaded.Report.read(path)
    evidence = report["memory_cgroup"]
    assert evidence["path"] == str(cgroup.folder)
    assert evidence["limit_bytes"] == limit * MIB
    assert evidence["oom_kills"] == 1  # Only kills since this process began count.
    (pinned,) = [row for row in report["totals"] if row["kind"] == "pinned"]
    assert pinned["live_bytes"] - facts["live_bytes"] in (0, facts["request"]["bytes"])
    assert pinned["failures"] == 0
    (holder,) = [row for row in report["leak_groups"] if row["kind"] == "pinned"]
    assert report.innermost_of_program(holder) == "stage"
