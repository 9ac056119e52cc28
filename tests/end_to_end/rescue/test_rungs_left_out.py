"""Rungs that were not tried for a refused request: the report says why."""

import re
import shutil
import sys

import pytest

from shimmed import BUILD, DRIVEN, program
from test_incidents import environment
from test_rescue import ASKS

RUNGS = ["retry", "synchronise", "trim", "reclaim", "pool", "mesh", "wait", "spill"]
OWN = [program("shortages"), "own"]


def left_out(report, incident=None):
    """Returns reason and setting of each rung that was left out, for one incident or for the only one."""
    if incident is None:
        (incident,) = report["incidents"]
    rows = [row for row in report["rungs_left_out"] if row["incident"] == incident["id"]]
    reasons = {row["rung"]: (row["reason"], row["setting"]) for row in rows}
    tried = {row["rung"] for row in report["rungs"] if row["incident"] == incident["id"]}
    assert len(reasons) == len(rows) and not tried & reasons.keys(), rows
    return reasons


def test_each_rung_that_was_not_tried_has_its_reason(workspace, cuwarden):
    run = workspace.run(OWN, environment())
    assert left_out(run.report) == {
        "pool": ("nothing_there", None),
        "mesh": ("nothing_there", None),
        "reclaim": ("nothing_there", None),
        "wait": ("turned_off", "CUWARDEN_WAIT"),
        "spill": ("turned_off", "CUWARDEN_SPILL"),
    }
    text = cuwarden("report", run.report.path).stdout
    line = r"  not tried: (.*)\n"
    assert re.search(line, text)[1].split(" · ") == [
        "reclaim (no reclaimer is registered)",
        "pool, mesh (cuwarden's pool has held no memory)",
        "wait (CUWARDEN_WAIT=0ms)",
        "spill (CUWARDEN_SPILL=0)",
    ]


def test_nothing_is_tried_with_the_pool_off(workspace, cuwarden):
    run = workspace.run(OWN, environment(CUWARDEN_POOL="off", CUWARDEN_WAIT="1s"))
    assert left_out(run.report) == dict.fromkeys(RUNGS, ("turned_off", "CUWARDEN_POOL"))
    assert "  nothing was tried: CUWARDEN_POOL=off\n" in cuwarden("report", run.report.path).stdout


def test_rungs_behind_the_one_that_served_the_request_are_not_listed(workspace):
    run = workspace.run([program("shortages"), "pending"], environment())
    assert run.report["incidents"][0]["rescued_by"] == "synchronise"
    assert left_out(run.report) == {}


@pytest.mark.parametrize(
    ("more", "reason"), [(700, "larger_than_device"), (-256, "own_memory")]
)
def test_a_request_that_other_processes_cannot_make_room_for_does_not_wait(workspace, more, reason):
    env = environment(CUWARDEN_SIM_OTHER_PROCESS="1GiB", CUWARDEN_WAIT="5s")
    run = workspace.run([program("shortages"), "larger", f"more={more}"], env, preload=DRIVEN)
    assert left_out(run.report)["wait"] == (reason, None)


@pytest.mark.parametrize("name", ["libc10_cuda.so", "libother.so"])
def test_an_allocator_that_asks_again_is_told_from_a_request_in_vain_before(workspace, tmp_path, name):
    library = tmp_path / name
    shutil.copy(BUILD / "samples" / "libtensor_cache.so", library)
    env = environment(CUWARDEN_SIM_OTHER_PROCESS="3GiB", CUWARDEN_WAIT="500ms")
    run = workspace.run([sys.executable, "-c", ASKS, library], env, preload=DRIVEN)
    first, second = sorted(run.report["incidents"], key=lambda incident: incident["time_ns"])
    if name == "libc10_cuda.so":
        assert left_out(run.report, first)["wait"] == ("allocator_asks_again", None)
        assert "wait" not in left_out(run.report, second)
    else:
        assert "wait" not in left_out(run.report, first)
        assert left_out(run.report, second) == dict.fromkeys(RUNGS, ("in_vain_before", None))


def test_rungs_of_the_device_do_nothing_for_host_memory(workspace):
    run = workspace.run([program("shortages"), "pinned"], environment())
    reasons = left_out(run.report)
    for rung in ("synchronise", "trim", "mesh", "spill"):
        assert reasons[rung] == ("host_memory", None)
