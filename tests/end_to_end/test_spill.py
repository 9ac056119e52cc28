"""Requests that the device has no room for, served with the host's memory behind the same pointer."""

import re
import time

import pytest

from memory_cgroup import Cgroup
from shimmed import program, sample
from test_incidents import MIB, environment

GIB = 1 << 30
POINTER = program("device_pointer")
BYTES = 100 * MIB + 12345
PAGES = -(-BYTES // (2 * MIB)) * 2 * MIB
KEPT = 64 * MIB  # of the device, for launches and libraries


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


# leave: what the device has left, MiB; 66: 2 MiB of it are for the request.
@pytest.mark.parametrize("leave", [66, 90, 100, 40])
def test_a_pointer_of_both_memories_is_as_good_as_one_of_the_device(place, leave):
    plain = place.run([POINTER], spilling(), shim=False)
    assert plain.returncode == 0
    run = place.run([POINTER, f"leave={leave}"], spilling())
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
    assert run.said_about("CUWARDEN_SPILL", "lie in the host's memory", "slower")
    account_adds_up(run.report)


# A pool of the program's own that is neither shared nor limited is as good as the device's.
MADE = {
    "pitch": ("cudaMallocPitch", "device"),
    "3d": ("cudaMalloc3D", "device"),
    "async": ("cudaMallocAsync", "stream_ordered"),
    "current": ("cudaMallocAsync", "stream_ordered"),
    "own": ("cudaMallocFromPoolAsync", "stream_ordered"),
}


@pytest.mark.parametrize("make", MADE)
@pytest.mark.parametrize("free", ["", "async", "thread", "capture", "beside", "elsewhere"])
def test_whichever_way_it_was_asked_for(place, make, free):
    options = [f"make={make}", f"free={free}"]
    plain = place.run([POINTER, *options], spilling(), shim=False)
    run = place.run([POINTER, *options, "leave=90"], spilling())
    assert but_the_last(run) == but_the_last(plain)
    facts = run.last_line
    assert facts["served"] == 1 and facts["free_after"] == facts["free_before"]
    pages = -(-facts["bytes"] // (2 * MIB)) * 2 * MIB
    on_device = (facts["free_before"] - KEPT) // (2 * MIB) * 2 * MIB
    assert facts["taken"] == on_device
    assert run.report["pool"]["spilled_peak_bytes"] == pages - on_device
    assert run.report["pool"]["spilled_bytes"] == 0
    (incident,) = run.report["incidents"]
    assert (incident["outcome"], incident["rescued_by"]) == ("rescued", "spill")
    api, kind = MADE[make]
    assert (incident["api"], incident["kind"]) == (api, kind)
    assert all(total["failures"] == 0 for total in run.report["totals"])
    if kind != "device":  # which is left filled
        assert run.report.totals()[kind]["live_bytes"] == 0
        assert run.report.totals()[kind]["peak_bytes"] == facts["bytes"]
    account_adds_up(run.report)


@pytest.mark.parametrize("make", ["shared", "limited"])
def test_what_others_can_open_or_is_not_to_be_more_is_the_drivers(place, make):
    run = place.run([POINTER, f"make={make}", "leave=90"], spilling())
    assert run.last_line["served"] == 0 and run.report["pool"]["spilled_count"] == 0
    assert "spill" not in {row["rung"] for row in run.report["rungs"]}


@pytest.mark.parametrize("how", ["async", "thread", "capture"])
def test_it_is_freed_as_the_devices_is(place, how):
    run = place.run([POINTER, "leave=90", f"free={how}"], spilling())
    assert run.last_line["free_after"] == run.last_line["free_before"], run.stdout
    assert "free: 0" in run.stdout and "twice: 1" in run.stdout
    if how == "capture":
        assert "capture ended: 0" in run.stdout
    totals = run.report.totals()["device"]
    assert totals["frees"] >= 1 and run.report["pool"]["spilled_bytes"] == 0


# Copies may need it in any case.
@pytest.mark.parametrize("peer", ["before", "after", "taken"])
def test_peers_may_use_it_as_they_may_the_devices(place, peer):
    env = spilling(CUWARDEN_SIM_DEVICES="2")
    plain = place.run([POINTER, f"peer={peer}"], env, shim=False)
    run = place.run([POINTER, "leave=90", f"peer={peer}"], env)
    assert but_the_last(run) == but_the_last(plain)
    assert run.last_line["peer_access"] == 3


@pytest.mark.parametrize("make", ["malloc", "pitch", "async"])
def test_a_reset_takes_it_along(place, make):
    run = place.run([POINTER, "leave=90", "end=reset", f"make={make}"], spilling())
    assert "reset: 0" in run.stdout
    assert run.last_line["free_after"] > run.last_line["free_before"] + GIB
    assert run.report["pool"]["spilled_bytes"] == 0
    assert all(total["live_bytes"] == 0 for total in run.report["totals"])


def test_what_stays_is_in_the_account(place):
    """The device's used bytes and what the program has of it differ by what lies elsewhere."""
    run = place.run(
        [program("shortages"), "own", "room=10000", "more=300"],
        {**spilling(), "CUWARDEN_SIM_MEMORY": "4GiB", "CUWARDEN_SIM_DEVICES": "2"},
    )
    assert run.last_line["served"] == 1
    pool = run.report["pool"]
    assert 200 * MIB < pool["spilled_bytes"] == pool["spilled_peak_bytes"]
    rows = account_adds_up(run.report)
    live = run.report.totals()["device"]["live_bytes"]
    assert rows["live_device"] == live - pool["spilled_bytes"]


def test_what_stays_in_stream_order_is_in_the_account(place):
    run = place.run([POINTER, "make=async", "leave=90", "end=keep"], spilling())
    spilled = run.report["pool"]["spilled_bytes"]
    assert PAGES - 30 * MIB < spilled < PAGES
    live = run.report.totals()
    rows = account_adds_up(run.report)
    assert live["stream_ordered"]["live_bytes"] == BYTES
    assert rows["live_stream_ordered"] == BYTES - spilled
    assert rows["live_device"] == live["device"]["live_bytes"]


def test_several_share_what_is_allowed_and_the_next_fails(place):
    run = place.run([POINTER, "leave=66", "count=5"], spilling("300MiB"))
    # Of the first, 2 MiB are on the device; three more have no room there.
    assert run.last_line["served"] == 2
    assert run.stdout.count("cudaMalloc: 2\n") == 3
    assert run.said_about("CUWARDEN_SPILL", "for what is allowed")
    assert run.report["pool"]["spilled_peak_bytes"] == 2 * PAGES - 2 * MIB
    assert run.report["pool"]["spilled_count"] == 2


def test_what_was_given_back_may_be_taken_again(place):
    run = place.run([POINTER, "leave=66", "rounds=4"], spilling("101MiB"))
    assert run.stdout.count("again: 0\n") == 3
    assert run.report["pool"]["spilled_count"] == 4


def test_small_requests_are_left_to_the_driver(place):
    run = place.run([POINTER, "leave=2", "bytes=1000000", "count=4"], spilling())
    assert run.report["pool"]["spilled_count"] == 0
    assert run.last_line["served"] < 4 and run.said == []


def rungs_of(report):
    """Of each incident in its order, what was tried."""
    incidents = sorted(report["incidents"], key=lambda incident: incident["time_ns"])
    rows = sorted(report["rungs"], key=lambda row: row["order"])
    return [
        [(row["rung"], row["outcome"]) for row in rows if row["incident"] == incident["id"]]
        for incident in incidents
    ]


def test_who_has_waited_in_vain_spills_at_once_and_waits_where_there_is_no_room(place):
    """What lies elsewhere is not in the way of others on the device."""
    env = spilling("1400MiB", CUWARDEN_WAIT="700ms", CUWARDEN_SIM_OTHER_PROCESS="900MiB")
    run = place.run([POINTER, "bytes=1300000000", "more=1300000000"], env)
    assert run.last_line["served"] == 1 and "more: 2" in run.stdout
    first, second = rungs_of(run.report)
    assert first[-2:] == [("wait", "timed_out"), ("spill", "served")]
    assert second[-2:] == [("spill", "no_memory"), ("wait", "timed_out")]
    assert run.said_about("CUWARDEN_WAIT", "did not come in time")


def test_a_wait_is_paid_for_once(place):
    env = spilling("4GiB", CUWARDEN_WAIT="2s", CUWARDEN_SIM_OTHER_PROCESS="900MiB")
    run = place.run([POINTER, "bytes=700000000", "count=2", "more=650000000"], env)
    assert run.last_line["served"] == 2 and run.report["pool"]["spilled_count"] == 3
    first, second = rungs_of(run.report)
    assert first[-2:] == [("wait", "timed_out"), ("spill", "served")]
    assert second[-1] == ("spill", "served") and "wait" not in dict(second)
    assert run.said_about("CUWARDEN_WAIT", "there is no room for")  # and not that it was in vain


def test_a_cgroup_full_of_files_has_room(place, tmp_path):
    """What the kernel can read again is not in the way."""
    (tmp_path / "data").write_bytes(b"x" * (500 * MIB))
    cgroup = Cgroup(limit=700 * MIB)
    try:
        read = f"cat {tmp_path}/data > /dev/null; exec {POINTER} leave=66"
        run = place.run(cgroup.entered_by("sh", "-c", read), spilling())
    finally:
        cgroup.remove()
    assert run.returncode == 0 and run.last_line["served"] == 1, run.stderr


@pytest.mark.parametrize(
    ("amount", "visible"), [("1GiB", False), ("1GiB:visible", True), ("0:visible", False)]
)
def test_room_is_shown_to_who_plans_by_it_if_that_is_wanted(place, amount, visible):
    text = [program("shortages"), "enough"]
    plain = place.run(text, environment())
    run = place.run(text, {**environment(), "CUWARDEN_SPILL": amount})
    more = run.last_line["free_bytes"] - plain.last_line["free_bytes"]
    # Less what the device keeps to itself.
    assert more == (GIB - KEPT if visible else 0)
    # The report has the device's own figures.
    assert [row["total_bytes"] for row in run.report["devices"]] == [
        row["total_bytes"] for row in plain.report["devices"]
    ]


def test_a_share_of_the_hosts_memory(place):
    run = place.run([POINTER, "leave=90"], spilling("50%"))
    assert run.last_line["served"] == 1
    assert run.report.setting("CUWARDEN_SPILL")["value"] == "50%"


@pytest.mark.parametrize("vmm", ["device", "none"])
def test_a_device_that_cannot_map_the_hosts_memory_is_a_line_and_the_drivers_error(place, vmm):
    run = place.run([POINTER, "leave=90", "count=2"], spilling(CUWARDEN_SIM_VMM=vmm))
    assert run.last_line["served"] == 0 and run.stdout.count("cudaMalloc: 2\n") == 2
    assert run.said_about("CUWARDEN_SPILL", "cannot map") and len(run.said) == 1
    assert [row["outcome"] for row in run.report["rungs"] if row["rung"] == "spill"] == ["failed"]
    assert run.last_line["free_after"] == run.last_line["free_before"]


def test_more_than_the_host_has_is_a_line_and_the_drivers_error(place):
    # More than any machine has.
    run = place.run([POINTER, "leave=90", f"bytes={1 << 46}"], spilling("100000GiB"))
    assert run.last_line["served"] == 0
    assert run.said_about("CUWARDEN_SPILL", "RAM, or the cgroup's limit") and len(run.said) == 1


def test_a_cgroups_limit_is_kept(place):
    """Page-locked memory above it would end the process."""
    cgroup = Cgroup(limit=300 * MIB)
    try:
        run = place.run(cgroup.entered_by(POINTER, "leave=66"), spilling())
    finally:
        cgroup.remove()
    assert run.returncode == 0 and run.last_line["served"] == 0
    assert run.said_about("CUWARDEN_SPILL", "cgroup's limit")


VMM_CALLS = ["cuMemAddressReserve", "cuMemCreate", "cuMemMap", "cuMemSetAccess"]


@pytest.mark.parametrize("function", VMM_CALLS)
@pytest.mark.parametrize("nth", [1, 2, 3])
@pytest.mark.parametrize("code", [2, 1, 999])
def test_whatever_the_driver_refuses_nothing_is_lost(place, function, nth, code):
    env = spilling(CUWARDEN_SIM_FAIL=f"{function}:{nth}:{code}")
    run = place.run([POINTER, "leave=70", "bytes=20000000"], env)
    facts = run.last_line
    assert facts["free_after"] == facts["free_before"]
    assert run.report["pool"]["spilled_bytes"] == 0
    if facts["served"] == 0:
        assert "cudaMalloc: 2\n" in run.stdout, "the driver's own error"
        assert facts["taken"] == 0 and run.said_about("CUWARDEN_SPILL", "refused")


def test_without_rescues_nothing_is_spilled(place):
    run = place.run([POINTER, "leave=90"], spilling(CUWARDEN_POOL="off"))
    assert run.last_line["served"] == 0
    assert run.said_about("CUWARDEN_SPILL", "CUWARDEN_POOL=off") and len(run.said) == 1


def test_oversubscribe_runs(place, cuwarden):
    plain = place.run([sample("oversubscribe")], {"CUWARDEN_SIM_MEMORY": "2GiB"}, shim=False)
    assert plain.last_line["tiles"] < plain.last_line["planned_tiles"]
    run = place.run([sample("oversubscribe")], spilling("2GiB"))
    facts = run.last_line
    assert facts["tiles"] == facts["planned_tiles"], run.stdout
    planned = facts["planned_tiles"] * facts["bytes_a_tile"]
    assert run.report["pool"]["spilled_peak_bytes"] >= planned - 2 * GIB
    shown = cuwarden("report", run.report.path).stdout
    assert "RESCUED" in shown and "spill" in shown
    count = run.report["pool"]["spilled_count"]
    assert re.search(rf"of that in host memory +\d\S* [MG]iB +\d\S* [MG]iB, behind {count} allocations", shown), shown


@pytest.mark.parametrize("value", ["8", "8gb", "101%", "-1GiB", "GiB", "1.5%", "99999999999999999999GiB", "8GiB:shown"])
def test_a_bad_amount_is_one_line_and_none(place, value):
    run = place.run([POINTER, "leave=90"], spilling(value))
    assert run.last_line["served"] == 0
    assert run.said_about(f"CUWARDEN_SPILL={value}", "not accepted", "8GiB") and len(run.said) == 1


@pytest.mark.parametrize("value, shown", [("2GB", "1953125KiB"), ("1.5GiB", "1572864KiB"), ("900000001B", "900000001B")])
def test_amounts_are_written_as_people_write_them(place, value, shown):
    run = place.run([POINTER, "leave=90"], spilling(value))
    assert run.last_line["served"] == 1 and not [line for line in run.said if "accepted" in line]
    assert run.report.setting("CUWARDEN_SPILL")["value"] == shown
