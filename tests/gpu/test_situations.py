"""The samples that run out of memory, on the device: the situation comes about there too, bare and
under the shim, and the report holds what the sample itself knows."""

import pytest

import preloaded

PAGE = 2 << 20

# The kind of what the sample holds at the end, and of the request that failed, and why. pinned_limit is for a
# cgroup of its own: on a machine without a limit it asks for more than there is of RAM.
SITUATIONS = {
    "churn": ("device", "device", ["slab_fragmentation"]),
    "adaptive_mesh": ("device", "device", ["slab_fragmentation"]),
    "odd_sizes": ("device", "device", ["slab_fragmentation"]),
    "streams": ("stream_ordered", "device", ["pending_frees"]),
    "two_libraries": ("device", "device", ["held_by_framework"]),
    "too_large": ("device", "device", ["larger_than_device"]),
    "batch_of_one": ("device", "device", ["device_full_own"]),
    "local_memory": ("device", None, ["implicit_memory"]),
    # In a container NVML may name nobody.
    "neighbour": ("device", "device", ["held_by_other_processes", "held_by_unlisted_owner"]),
    "pinned_fragments": ("pinned", "pinned", ["address_space_gap"]),
}

pytestmark = pytest.mark.alone


@pytest.mark.parametrize("name", SITUATIONS)
def test_a_sample_runs_out_of_memory_and_the_report_counts_what_it_counts(place, tmp_path, name):
    sample = preloaded.BUILD / "samples" / name
    if not sample.exists():
        pytest.skip(f"{sample} was not built")
    env = {"CUWARDEN_SIM_SHARED": tmp_path / "shared_device"} if preloaded.SIMULATED else {}
    kind, failed, verdicts = SITUATIONS[name]
    for shim in (False, True):
        run = place.run([sample], env, shim=shim)
        if "too high to run into" in run.stderr:
            pytest.skip(run.stderr.strip())
        assert run.returncode == 0, (shim, run.stdout, run.stderr)
        facts = run.last_line
        assert facts["request"]["error"] == "cudaErrorMemoryAllocation"
        if facts["free_bytes"] is not None:
            # The driver does not hand out the last pages.
            assert -(-facts["request"]["bytes"] // PAGE) * PAGE > facts["free_bytes"] - 2 * PAGE
    totals = [row for row in run.report["totals"] if row["allocations"] + row["failures"] > 0]
    failures = {row["kind"]: row["failures"] for row in totals if row["failures"] > 0}
    assert failures == ({failed: 1} if failed else {})
    rows = [row for row in totals if row["kind"] == kind]
    assert sum(row["live_bytes"] for row in rows) == facts["live_bytes"]
    assert sum(row["live_count"] for row in rows) == facts["live_count"]
    assert sum(row["frees"] for row in rows) == facts["freed_count"]
    preloaded.check_covered(run.report)
    (incident,) = run.report["incidents"]
    assert incident["verdict"] in verdicts, incident
