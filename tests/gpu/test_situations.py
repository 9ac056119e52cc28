"""The samples that run out of memory, on the device. The situation comes about there, too, bare and
under the shim, and the report holds the facts that the sample itself knows."""

import pytest

import preloaded

PAGE = 2 << 20

# For each sample: the kind of memory that it holds at the end, the kind of the failed request, and
# the verdicts that fit. pinned_limit is missing, because it needs a cgroup of its own: on a machine
# without a limit it asks for more than the RAM.
SITUATIONS = {
    "churn": ("device", "device", ["slab_fragmentation"]),
    "adaptive_mesh": ("device", "device", ["slab_fragmentation"]),
    "odd_sizes": ("device", "device", ["slab_fragmentation"]),
    "streams": ("stream_ordered", "device", ["pending_frees"]),
    "two_libraries": ("device", "device", ["held_by_framework"]),
    "too_large": ("device", "device", ["larger_than_device"]),
    "batch_of_one": ("device", "device", ["device_full_own"]),
    "oversubscribe": ("device", "device", ["device_full_own"]),
    "local_memory": ("device", None, ["implicit_memory"]),
    # In a container NVML may list no process.
    "neighbour": ("device", "device", ["held_by_other_processes", "held_by_unlisted_owner"]),
    "pinned_fragments": ("pinned", "pinned", ["address_space_gap"]),
}

# Arguments of samples that need not fill the whole of a large device.
ARGUMENTS = {"oversubscribe": ["140", str(4 << 30)]}

pytestmark = pytest.mark.alone


def built(name):
    sample = preloaded.BUILD / "samples" / name
    if not sample.exists():
        pytest.skip(f"{sample} was not built")
    return sample


@pytest.mark.parametrize("name", SITUATIONS)
def test_a_sample_runs_out_of_memory_and_the_report_has_its_own_counts(workspace, tmp_path, name):
    command = [built(name), *ARGUMENTS.get(name, [])]
    env = {"CUWARDEN_POOL": "off"}
    if preloaded.SIMULATED:
        env["CUWARDEN_SIM_SHARED"] = tmp_path / "shared_device"
    kind, failed, verdicts = SITUATIONS[name]
    for shim in (False, True):
        run = workspace.run(command, env, shim=shim)
        if "too high to run into" in run.stderr:
            pytest.skip(run.stderr.strip())
        assert run.returncode == 0, (shim, run.stdout, run.stderr)
        facts = run.last_line
        assert facts["request"]["error"] == "cudaErrorMemoryAllocation"
        if facts["free_bytes"] is not None:
            # The driver does not hand out the last pages, up to four on an H100.
            assert -(-facts["request"]["bytes"] // PAGE) * PAGE > facts["free_bytes"] - 4 * PAGE
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
    is_unlisted = incident["verdict"] == "held_by_unlisted_owner"
    preloaded.check_explained(
        run.report,
        is_shared=name == "neighbour",
        unlisted_bytes=facts["other_bytes"] if is_unlisted else 0,
    )


@pytest.mark.parametrize("count", [2, 3, 4, 6, 7, 8])
def test_the_ranks_of_a_step_find_their_device_taken_and_their_reports_name_the_same_one(
    workspace, tmp_path, count
):
    changes = {"CUWARDEN_REPORT": workspace.reports / "%j-%r.json", "CUWARDEN_POOL": "off"}
    if preloaded.SIMULATED:
        changes["CUWARDEN_SIM_SHARED"] = tmp_path / "shared_device"
        changes["CUWARDEN_SIM_DEVICES"] = "2"
    for shim in (False, True):
        run = workspace.run([built("slurm_step"), str(count)], changes, shim=shim)
        assert run.returncode == 0, (shim, run.stdout, run.stderr)
        # Each rank is refused a request, and a line says so.
        assert len(run.said) == (count if shim else 0), run.stderr
        assert run.stderr.splitlines() == run.said
        assert all(" failed: " in line for line in run.said), run.stderr
    facts = run.last_line
    paths = sorted(path for path in workspace.reports.iterdir() if path.suffix == ".json")
    ranks = range(count)
    assert len(facts["ranks"]) == count
    assert [path.name for path in paths] == [f"{facts['job_id']}-{rank}.json" for rank in ranks]
    reports = [preloaded.Report.read(path) for path in paths]
    # In a container NVML may list no process.
    by_others = ["held_by_other_processes", "held_by_unlisted_owner"]
    for own, report in zip(facts["ranks"], reports):
        assert report["process"]["pid"] == facts["pids"][own["rank"]]
        assert report["job"]["rank"] == own["rank"]
        assert report["job"]["job_id"] == facts["job_id"]
        assert report["job"]["visible_devices"] == facts["visible_devices"]
        assert [device["uuid"] for device in report["devices"]] == [own["device_uuid"]]
        live = sum(row["live_bytes"] for row in report["totals"] if row["kind"] == "device")
        assert live == own["live_bytes"]
        preloaded.check_covered(report)
        (incident,) = report["incidents"]
        assert incident["bytes"] == own["request"]["bytes"]
        # Rank 0 has four times as much as any other; all have contexts alike.
        held = sum(other["live_bytes"] for other in facts["ranks"])
        context = (own["total_bytes"] - own["free_bytes"] - held) / count
        others = held - own["live_bytes"] + (count - 1) * context
        expected = ["device_full_own"] if own["live_bytes"] > others else by_others
        assert incident["verdict"] in expected, incident
        others = {row["pid"]: row["used_bytes"] for row in report["device_processes"]}
        for other in facts["ranks"]:
            used = others.get(facts["pids"][other["rank"]])
            if other is not own and used is not None:
                assert used >= other["live_bytes"]
        listed = [others.get(pid) for pid in facts["pids"] if pid != report["process"]["pid"]]
        if None not in listed:
            preloaded.check_explained(report, is_shared=True)
    assert len({own["device_uuid"] for own in facts["ranks"]}) == 1


def test_pinned_buffers_of_steps_are_no_leak_and_counted_at_their_source_line(workspace):
    for shim in (False, True):
        run = workspace.run([built("pinned_churn"), "100"], shim=shim)
        assert run.returncode == 0, (shim, run.stdout, run.stderr)
        assert run.stderr == ""
    facts = run.last_line
    assert 0 < facts["pinning_ns"] < facts["steps_ns"]
    (total,) = [row for row in run.report["totals"] if row["kind"] == "pinned"]
    assert (total["allocations"], total["frees"]) == (facts["steps"], facts["freed_count"])
    assert (total["live_count"], total["peak_bytes"]) == (0, facts["bytes_a_step"])
    (holder,) = [row for row in run.report["peak_holders"] if row["kind"] == "pinned"]
    assert run.report.innermost_of_program(holder) == facts["function"]
    assert holder["allocations"] == facts["steps"]
    preloaded.check_covered(run.report)
    preloaded.check_explained(run.report)
    assert run.report["incidents"] == []
