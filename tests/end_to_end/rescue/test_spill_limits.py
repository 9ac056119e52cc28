"""Limits of spilling: the allowed amount, waits, the host's limits, and errors of the driver."""

import pytest

from memory_cgroup import Cgroup
from shimmed import DRIVEN, program
from test_incidents import MIB, environment
from test_rungs_left_out import left_out
from test_spill import GIB, KEPT, PAGES, POINTER, TRIED, spilling


def test_several_requests_share_the_allowed_host_memory_and_the_next_fails(workspace):
    run = workspace.run([POINTER, "leave=66", "count=5", TRIED], spilling("300MiB"))
    # The device holds 2 MiB of one request and has no room for the three others.
    assert run.last_line["served"] == 2
    assert run.stdout.count("cudaMalloc: 2\n") == 3
    assert run.said_about("CUWARDEN_SPILL", "than CUWARDEN_SPILL allows")
    assert run.report["pool"]["spilled_peak_bytes"] == 2 * PAGES - 2 * MIB
    assert run.report["pool"]["spilled_count"] == 2


def test_spilled_memory_that_was_freed_may_be_used_again(workspace):
    run = workspace.run([POINTER, "leave=66", "rounds=4", TRIED], spilling("101MiB"))
    assert run.stdout.count("again: 0\n") == 3
    assert run.report["pool"]["spilled_count"] == 4


def test_small_requests_are_left_to_the_driver(workspace):
    run = workspace.run([POINTER, "leave=2", "bytes=1000000", "count=4"], spilling())
    assert run.report["pool"]["spilled_count"] == 0
    assert run.last_line["served"] < 4 and run.said == []
    assert left_out(run.report)["spill"] == ("small", None)


def rungs_of(report):
    """Returns the rungs of each incident, in order."""
    incidents = sorted(report["incidents"], key=lambda incident: incident["time_ns"])
    rows = sorted(report["rungs"], key=lambda row: row["order"])
    return [
        [(row["rung"], row["outcome"]) for row in rows if row["incident"] == incident["id"]]
        for incident in incidents
    ]


def test_after_a_vain_wait_a_request_spills_at_once_or_waits_if_there_is_no_room(workspace):
    """Spilled memory takes no room of other processes on the device."""
    env = spilling("1400MiB", CUWARDEN_WAIT="700ms", CUWARDEN_SIM_OTHER_PROCESS="900MiB")
    run = workspace.run([POINTER, "bytes=1300000000", "more=900000000", TRIED], env, preload=DRIVEN)
    assert run.last_line["served"] == 1 and "more: 2" in run.stdout
    first, second = rungs_of(run.report)
    assert first[-2:] == [("wait", "timed_out"), ("spill", "served")]
    assert second[-2:] == [("spill", "no_memory"), ("wait", "timed_out")]
    assert run.said_about("CUWARDEN_WAIT", "when the time was up")


def test_a_wait_is_paid_for_once(workspace):
    env = spilling("4GiB", CUWARDEN_WAIT="2s", CUWARDEN_SIM_OTHER_PROCESS="900MiB")
    options = ["bytes=700000000", "count=2", "more=650000000", TRIED]
    run = workspace.run([POINTER, *options], env, preload=DRIVEN)
    assert run.last_line["served"] == 2 and run.report["pool"]["spilled_count"] == 3
    first, second = rungs_of(run.report)
    assert first[-2:] == [("wait", "timed_out"), ("spill", "served")]
    assert second[-1] == ("spill", "served") and "wait" not in dict(second)
    last = max(run.report["incidents"], key=lambda incident: incident["time_ns"])
    assert left_out(run.report, last)["wait"] == ("in_vain_before", None)
    assert run.said_about("CUWARDEN_WAIT", "there is no room for")  # not the line about a vain wait


def test_a_cgroup_full_of_files_has_room(workspace, tmp_path):
    """Files in the page cache, which the kernel can read again, leave room for spilled memory."""
    (tmp_path / "data").write_bytes(b"x" * (500 * MIB))
    cgroup = Cgroup(limit=700 * MIB)
    try:
        read = f"cat {tmp_path}/data > /dev/null; exec {POINTER} leave=66"
        run = workspace.run(cgroup.entered_by("sh", "-c", read), spilling())
    finally:
        cgroup.remove()
    assert run.returncode == 0 and run.last_line["served"] == 1, run.stderr


@pytest.mark.parametrize(
    ("amount", "visible"), [("1GiB", False), ("1GiB:visible", True), ("0:visible", False)]
)
def test_cudaMemGetInfo_shows_the_room_for_spilling_if_visible_is_set(workspace, amount, visible):
    text = [program("shortages"), "enough"]
    plain = workspace.run(text, environment())
    run = workspace.run(text, {**environment(), "CUWARDEN_SPILL": amount})
    more = run.last_line["free_bytes"] - plain.last_line["free_bytes"]
    # The memory that the driver keeps for itself is subtracted.
    assert more == (GIB - KEPT if visible else 0)
    # The report has the device's real figures, without the room for spilling.
    assert [row["total_bytes"] for row in run.report["devices"]] == [
        row["total_bytes"] for row in plain.report["devices"]
    ]


def test_the_limit_of_spilling_may_be_a_share_of_the_hosts_memory(workspace):
    run = workspace.run([POINTER, "leave=90", TRIED], spilling("50%"))
    assert run.last_line["served"] == 1
    assert run.report.setting("CUWARDEN_SPILL")["value"] == "50%"


@pytest.mark.parametrize("vmm", ["device", "none"])
def test_a_device_that_cannot_map_the_hosts_memory_is_a_line_and_the_drivers_error(workspace, vmm):
    run = workspace.run([POINTER, "leave=90", "count=2"], spilling(CUWARDEN_SIM_VMM=vmm))
    assert run.last_line["served"] == 0 and run.stdout.count("cudaMalloc: 2\n") == 2
    assert run.said_about("CUWARDEN_SPILL", "cannot map") and len(run.said) == 1
    assert [row["outcome"] for row in run.report["rungs"] if row["rung"] == "spill"] == ["failed"]
    assert run.last_line["free_after"] == run.last_line["free_before"]


def test_spilling_more_than_the_host_has_gives_a_line_and_the_drivers_error(workspace):
    # The amount is larger than any machine's memory.
    run = workspace.run([POINTER, "leave=90", f"bytes={1 << 46}"], spilling("100000GiB"))
    assert run.last_line["served"] == 0
    assert run.said_about("CUWARDEN_SPILL", "RAM, or the cgroup's limit") and len(run.said) == 1


def test_spilling_stays_below_the_cgroups_limit(workspace):
    """Page-locked memory above the limit would end the process."""
    cgroup = Cgroup(limit=300 * MIB)
    try:
        run = workspace.run(cgroup.entered_by(POINTER, "leave=66"), spilling())
    finally:
        cgroup.remove()
    assert run.returncode == 0 and run.last_line["served"] == 0
    assert run.said_about("CUWARDEN_SPILL", "cgroup's limit")


VMM_CALLS = ["cuMemAddressReserve", "cuMemCreate", "cuMemMap", "cuMemSetAccess"]


@pytest.mark.parametrize("function", VMM_CALLS)
@pytest.mark.parametrize("nth", [1, 2, 3])
@pytest.mark.parametrize("code", [2, 1, 999])
def test_a_driver_error_during_spilling_loses_nothing(workspace, function, nth, code):
    env = spilling(CUWARDEN_SIM_FAIL=f"{function}:{nth}:{code}")
    run = workspace.run([POINTER, "leave=70", "bytes=20000000"], env)
    facts = run.last_line
    assert facts["free_after"] == facts["free_before"]
    assert run.report["pool"]["spilled_bytes"] == 0
    if facts["served"] == 0:
        assert "cudaMalloc: 2\n" in run.stdout, "the driver's own error"
        assert facts["taken"] == 0 and run.said_about("CUWARDEN_SPILL", "refused")


def test_without_rescues_nothing_is_spilled(workspace):
    run = workspace.run([POINTER, "leave=90"], spilling(CUWARDEN_POOL="off"))
    assert run.last_line["served"] == 0
    assert run.said_about("CUWARDEN_SPILL", "CUWARDEN_POOL=off") and len(run.said) == 1


@pytest.mark.parametrize("value", ["8", "8gb", "101%", "-1GiB", "GiB", "1.5%", "99999999999999999999GiB", "8GiB:shown"])
def test_a_bad_amount_gives_one_line_and_no_spilling(workspace, value):
    run = workspace.run([POINTER, "leave=90"], spilling(value))
    assert run.last_line["served"] == 0
    assert run.said_about(f"CUWARDEN_SPILL={value}", "not accepted", "8GiB") and len(run.said) == 1


@pytest.mark.parametrize("value, shown", [("2GB", "1953125KiB"), ("1.5GiB", "1572864KiB"), ("900000001B", "900000001B")])
def test_amounts_are_written_as_people_write_them(workspace, value, shown):
    run = workspace.run([POINTER, "leave=90", TRIED], spilling(value))
    assert run.last_line["served"] == 1 and not [line for line in run.said if "accepted" in line]
    assert run.report.setting("CUWARDEN_SPILL")["value"] == shown
