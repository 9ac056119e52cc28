"""Each way to allocate device memory and to free it, with a part of the memory spilled to the host."""

import pytest

from test_rungs_left_out import left_out
from test_spill import KEPT, MIB, POINTER, account_adds_up, but_the_last, spilling

# A memory pool that the program made, neither shared nor limited, counts like the device's default pool.
MADE = {
    "pitch": ("cudaMallocPitch", "device"),
    "3d": ("cudaMalloc3D", "device"),
    "async": ("cudaMallocAsync", "stream_ordered"),
    "current": ("cudaMallocAsync", "stream_ordered"),
    "own": ("cudaMallocFromPoolAsync", "stream_ordered"),
}


@pytest.mark.parametrize("make", MADE)
@pytest.mark.parametrize("free", ["", "async", "thread", "capture", "beside", "elsewhere"])
def test_each_way_to_ask_for_device_memory_spills(workspace, make, free):
    options = [f"make={make}", f"free={free}", f"bytes={70 * MIB + 12345}"]
    plain = workspace.run([POINTER, *options], spilling(), shim=False)
    run = workspace.run([POINTER, *options, "leave=68"], spilling())
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
    if kind != "device":  # this kind stays allocated
        assert run.report.totals()[kind]["live_bytes"] == 0
        assert run.report.totals()[kind]["peak_bytes"] == facts["bytes"]
    account_adds_up(run.report)


@pytest.mark.parametrize("make", ["shared", "limited"])
def test_memory_that_others_can_open_or_that_is_limited_is_the_drivers(workspace, make):
    run = workspace.run([POINTER, f"make={make}", "leave=90"], spilling())
    assert run.last_line["served"] == 0 and run.report["pool"]["spilled_count"] == 0
    assert left_out(run.report)["spill"] == ("memory_pool", None)
