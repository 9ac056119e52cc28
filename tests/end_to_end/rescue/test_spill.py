"""Spilling: requests that the device has no room for get host memory behind a device pointer."""

import re

import pytest

from shimmed import program, sample
from test_incidents import MIB

GIB = 1 << 30
POINTER = program("device_pointer")
BYTES = 100 * MIB + 12345
PAGES = -(-BYTES // (2 * MIB)) * 2 * MIB
KEPT = 64 * MIB  # device memory that spilling leaves free for launches and libraries

# Tests that do not look at the contents of the memory have the program try a part of them, which lies on the host.
TRIED = "tried=9000000"


def spilling(amount="1GiB", **changes):
    return {"CUWARDEN_SIM_MEMORY": "2GiB", "CUWARDEN_SPILL": amount, **changes}


def but_the_last(run):
    lines = run.stdout.splitlines()
    return [line for line in lines[:-1] if not line.startswith("capture ended")]


def account_adds_up(report):
    for device in report["devices"]:
        rows = {row["item"]: row["bytes"] for row in report["accounts"] if row["incident"] is None}
        assert sum(rows.values()) == device["used_bytes"]
        assert abs(rows["unexplained"]) <= device["used_bytes"] / 100, rows
        return rows


# leave: MiB that the device has free. With 66, 2 MiB of them may be used for the request.
@pytest.mark.parametrize("leave", [66, 90, 100, 40])
def test_a_pointer_of_both_memories_is_as_good_as_one_of_the_device(workspace, leave):
    plain = workspace.run([POINTER], spilling(), shim=False)
    assert plain.returncode == 0
    run = workspace.run([POINTER, f"leave={leave}"], spilling())
    assert but_the_last(run) == but_the_last(plain)
    facts = run.last_line
    on_device = max(0, (facts["free_before"] - KEPT) // (2 * MIB) * 2 * MIB)
    assert facts["taken"] == min(on_device, PAGES)
    assert facts["free_after"] == facts["free_before"]
    pool = run.report["pool"]
    assert pool["spilled_bytes"] == 0
    assert pool["spilled_peak_bytes"] == PAGES - min(on_device, PAGES) > 0
    (incident,) = run.report["incidents"]
    assert (incident["outcome"], incident["rescued_by"]) == ("rescued", "spill")
    assert run.report.totals()["device"]["failures"] == 0
    assert run.said_about("CUWARDEN_SPILL", "are in host memory", "slower")
    account_adds_up(run.report)


@pytest.mark.parametrize("how", ["async", "thread", "capture"])
def test_spilled_memory_is_freed_in_each_way_the_devices_is(workspace, how):
    run = workspace.run([POINTER, "leave=90", TRIED, f"free={how}"], spilling())
    assert run.last_line["free_after"] == run.last_line["free_before"], run.stdout
    assert "free: 0" in run.stdout and "twice: 1" in run.stdout
    if how == "capture":
        assert "capture ended: 0" in run.stdout
    totals = run.report.totals()["device"]
    assert totals["frees"] >= 1 and run.report["pool"]["spilled_bytes"] == 0


# Copies between devices may need peer access in each case.
@pytest.mark.parametrize("peer", ["before", "after", "taken"])
def test_peers_may_use_spilled_memory_as_they_may_the_devices(workspace, peer):
    env = spilling(CUWARDEN_SIM_DEVICES="2")
    plain = workspace.run([POINTER, f"peer={peer}"], env, shim=False)
    run = workspace.run([POINTER, "leave=90", f"peer={peer}"], env)
    assert but_the_last(run) == but_the_last(plain)
    assert run.last_line["peer_access"] == 3


@pytest.mark.parametrize("make", ["malloc", "pitch", "async"])
def test_a_reset_takes_it_along(workspace, make):
    run = workspace.run([POINTER, "leave=90", TRIED, "end=reset", f"make={make}"], spilling())
    assert "reset: 0" in run.stdout
    assert run.last_line["free_after"] > run.last_line["free_before"] + GIB
    assert run.report["pool"]["spilled_bytes"] == 0
    assert all(total["live_bytes"] == 0 for total in run.report["totals"])


def test_spilled_memory_is_in_the_account(workspace):
    """The program's live bytes exceed the device's used bytes by the spilled bytes."""
    run = workspace.run(
        [program("shortages"), "own", "room=10000", "more=300"],
        {**spilling(), "CUWARDEN_SIM_MEMORY": "4GiB", "CUWARDEN_SIM_DEVICES": "2"},
    )
    assert run.last_line["served"] == 1
    pool = run.report["pool"]
    assert 200 * MIB < pool["spilled_bytes"] == pool["spilled_peak_bytes"]
    rows = account_adds_up(run.report)
    live = run.report.totals()["device"]["live_bytes"]
    assert rows["live_device"] == live - pool["spilled_bytes"]


def test_spilled_stream_ordered_memory_is_in_the_account(workspace):
    run = workspace.run([POINTER, "make=async", "leave=90", TRIED, "end=keep"], spilling())
    spilled = run.report["pool"]["spilled_bytes"]
    assert PAGES - 30 * MIB < spilled < PAGES
    live = run.report.totals()
    rows = account_adds_up(run.report)
    assert live["stream_ordered"]["live_bytes"] == BYTES
    assert rows["live_stream_ordered"] == BYTES - spilled
    assert rows["live_device"] == live["device"]["live_bytes"]


def test_the_oversubscribe_sample_runs_with_spilling(workspace, cuwarden):
    plain = workspace.run([sample("oversubscribe")], {"CUWARDEN_SIM_MEMORY": "2GiB"}, shim=False)
    assert plain.last_line["tiles"] < plain.last_line["planned_tiles"]
    run = workspace.run([sample("oversubscribe")], spilling("2GiB"))
    facts = run.last_line
    assert facts["tiles"] == facts["planned_tiles"], run.stdout
    planned = facts["planned_tiles"] * facts["bytes_a_tile"]
    assert run.report["pool"]["spilled_peak_bytes"] >= planned - 2 * GIB
    shown = cuwarden("report", run.report.path).stdout
    assert "RESCUED" in shown and "spill" in shown
    count = run.report["pool"]["spilled_count"]
    assert re.search(rf"of that in host memory +\d\S* [MG]iB +\d\S* [MG]iB, behind {count} allocations", shown), shown
