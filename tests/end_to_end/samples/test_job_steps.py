"""Ranks of one job on one machine. Each report names its rank, job and device, so that the reports alone
show which ranks share a device.
"""

import json
import re
import sys

import jsonschema
import pytest

import shimmed
from shimmed import sample
from test_situations import OUT_OF_MEMORY, PAGE, call_at, run_alike


def started(run_bare, list_of_devices, devices):
    """Returns the number of devices that a process sees, and the last digit of each device's UUID."""
    code = (
        "import ctypes\n"
        "cuda = ctypes.CDLL('libcuda.so.1')\n"
        "cuda.cuInit(0)\n"
        "count = ctypes.c_int(0)\n"
        "cuda.cuDeviceGetCount(ctypes.byref(count))\n"
        "uuid = ctypes.create_string_buffer(16)\n"
        "seen = [uuid.raw[15:].decode() for device in range(count.value)\n"
        "        if cuda.cuDeviceGetUuid(uuid, device) == 0]\n"
        "print(count.value, *seen)\n"
    )
    env = {"CUWARDEN_SIM_DEVICES": devices, "CUDA_VISIBLE_DEVICES": list_of_devices}
    return run_bare([sys.executable, "-c", code], env).stdout.split()


@pytest.mark.parametrize(
    "visible, seen",
    [(None, "012"), ("1", "1"), ("2,0", "20"), ("1,7,0", "1"), ("", ""), ("-1", "")],
)
def test_a_process_counts_the_devices_that_it_may_see(run_bare, visible, seen):
    assert started(run_bare, visible, 3) == [str(len(seen)), *seen]


def test_a_list_of_the_machines_devices_does_not_restrict_the_simulated_device(run_bare):
    assert started(run_bare, "5", None) == ["1", "0"]


def step_environment(workspace, tmp_path, size, **changes):
    return {
        "CUWARDEN_SIM_MEMORY": size,
        "CUWARDEN_SIM_DEVICES": "2",
        "CUWARDEN_SIM_SHARED": tmp_path / "shared_devices",
        "CUDA_VISIBLE_DEVICES": "1",
        "CUWARDEN_REPORT": workspace.reports / "%j-%r.json",
        **changes,
    }


def run_step(workspace, tmp_path, ranks, size, **changes):
    """Runs the step bare and shimmed; returns its facts, and the reports by rank."""
    env = step_environment(workspace, tmp_path, size, **changes)
    run = run_alike(workspace, [sample("slurm_step"), str(ranks)], env, {"pids"})
    assert run.returncode == 0, run.stderr
    assert run.other_stderr == ""
    facts = run.last_line
    assert len(facts["ranks"]) == len(facts["pids"]) == ranks
    names = {f"{facts['job_id']}-{rank}.json" for rank in range(ranks)}
    assert {report.path.name for report in run.reports} == names
    return facts, {report["job"]["rank"]: report for report in run.reports}


def check_rank(facts, own, report):
    """Checks the report against the rank's own facts. Returns the report's only incident."""
    request = own["request"]
    assert request["error"] == OUT_OF_MEMORY
    assert call_at("slurm_step", "cudaMalloc", request["line"])
    assert own["devices"] == 1 and own["free_bytes"] < -(-request["bytes"] // PAGE) * PAGE
    assert report["process"]["pid"] == facts["pids"][own["rank"]]
    assert report["job"] == {
        "scheduler": "slurm",
        "job_id": facts["job_id"],
        "job_step": "0",
        "array_task": None,
        "rank": own["rank"],
        "visible_devices": facts["visible_devices"],
    }
    (device,) = report["devices"]
    assert (device["device"], device["uuid"]) == (0, own["device_uuid"])
    assert report["coverage"] == {"complete": True, "reasons": []}
    assert report["tool"]["complete"] is True, report["tool"]
    total = report.totals()["device"]
    assert (total["live_bytes"], total["live_count"]) == (own["live_bytes"], own["live_count"])
    assert total["failures"] == 1
    (incident,) = report["incidents"]
    assert incident["outcome"] == "failed" and incident["repeats"] == 0
    assert (incident["bytes"], incident["device"]) == (request["bytes"], 0)
    names = [(name, frame["line"]) for name, frame in report.functions(incident)]
    assert (request["function"], request["line"]) in names, names
    assert incident["proof"]["free_bytes"] == own["free_bytes"]
    return incident


# Rank 0 takes four times as much as any other rank. With few other ranks, that is most of the device.
@pytest.mark.parametrize(
    "size, ranks, first_verdict",
    [
        ("3GiB", 3, "held_by_other_processes"),
        ("16GiB", 3, "device_full_own"),
        ("40GiB", 6, "held_by_other_processes"),
    ],
)
def test_each_rank_of_a_step_on_one_device_is_told_the_processes_that_hold_it(
    workspace, tmp_path, size, ranks, first_verdict
):
    facts, reports = run_step(workspace, tmp_path, ranks, size)
    assert sorted(reports) == list(range(ranks))
    uuids = {own["device_uuid"] for own in facts["ranks"]}
    assert uuids == {device["uuid"] for report in reports.values() for device in report["devices"]}
    assert len(uuids) == 1 and uuids.pop().endswith("3031")  # device 1, which each rank calls 0
    held = [own["live_bytes"] for own in facts["ranks"]]
    for own in facts["ranks"]:
        report = reports[own["rank"]]
        incident = check_rank(facts, own, report)
        # All ranks have contexts of one size, and each is refused when the device is full.
        context = (own["total_bytes"] - own["free_bytes"] - sum(held)) / ranks
        others = sum(held) - own["live_bytes"] + (ranks - 1) * context
        verdict = first_verdict if own["rank"] == 0 else "held_by_other_processes"
        assert (own["live_bytes"] > others) == (verdict == "device_full_own")
        assert incident["verdict"] == verdict, incident
        assert incident["proof"]["own_bytes"] == own["live_bytes"]
        if verdict == "held_by_other_processes":
            listed = incident["proof"]["other_processes_bytes"]
            assert listed == pytest.approx(others, rel=0.01)
        used = {row["pid"]: row["used_bytes"] for row in report["device_processes"]}
        assert used == {
            facts["pids"][other["rank"]]: pytest.approx(other["live_bytes"] + context, rel=0.01)
            for other in facts["ranks"]
            if other is not own
        }


def test_the_text_names_the_ranks_job_and_the_device_behind_its_number(workspace, tmp_path, cuwarden):
    facts, reports = run_step(workspace, tmp_path, 3, "16GiB")
    for rank, report in reports.items():
        text = cuwarden("report", report.path).stdout
        assert "  slurm job 4711, rank " + str(rank) + ", CUDA_VISIBLE_DEVICES=1\n" in text
        hint = (
            f"  this is rank {rank} of slurm job 4711 with CUDA_VISIBLE_DEVICES=1, where GPU 0 is "
            f"{facts['ranks'][rank]['device_uuid']}: if other ranks' reports name the same device, "
            "give each rank a device of its own\n"
        )
        # If the rank itself holds most, another device would not help.
        assert (hint in text) == (rank != 0), text


def test_the_view_of_a_folder_says_which_rank_was_refused_first(workspace, tmp_path, cuwarden):
    facts, reports = run_step(workspace, tmp_path, 3, "16GiB")
    refused = {rank: report["incidents"][0]["time_ns"] for rank, report in reports.items()}
    starts = {report["process"]["start"] for report in reports.values()}
    lines = cuwarden("report", workspace.reports).stdout.splitlines()
    first = re.fullmatch(
        r"FIRST OUT OF MEMORY: rank (\d) at [\d:]{8}, cudaMalloc of .* failed: (\w+), slurm_step.cpp:\d+ in take_block",
        lines[0],
    )
    rank = int(first[1])
    assert first[2] == reports[rank]["incidents"][0]["verdict"]
    assert len(starts) > 1 or refused[rank] == min(refused.values())
    followers = sorted(other for other in reports if other != rank)
    assert lines[1].startswith(f"  ranks {followers[0]}, {followers[1]} followed within ")
    others = [f"rank {other} " for other in reports if other != rank]
    assert all(name in lines[2] for name in others) and f"by: rank {rank} itself " in lines[2]
    assert "LIVE MEMORY IN SEVERAL PROCESSES" in lines


def test_unlisted_ranks_are_unlisted_owners(workspace, tmp_path):
    facts, reports = run_step(workspace, tmp_path, 3, "16GiB", CUWARDEN_SIM_NVML="hide_others")
    verdicts = [
        check_rank(facts, own, reports[own["rank"]])["verdict"] for own in facts["ranks"]
    ]
    assert verdicts == ["device_full_own", "held_by_unlisted_owner", "held_by_unlisted_owner"]
    assert all(report["device_processes"] == [] for report in reports.values())


def test_a_rank_with_a_device_of_its_own_blames_no_other_rank(workspace, tmp_path):
    facts, reports = run_step(workspace, tmp_path, 2, "3GiB", CUWARDEN_SIM_SHARED=None)
    for own in facts["ranks"]:
        assert check_rank(facts, own, reports[own["rank"]])["verdict"] == "device_full_own"
        assert reports[own["rank"]]["device_processes"] == []


def test_the_merged_report_of_a_step_says_who_held_the_device_and_shows_as_the_folder(workspace, tmp_path, cuwarden):
    facts, reports = run_step(workspace, tmp_path, 3, "16GiB")
    path = tmp_path / "step.json"
    assert cuwarden("merge", workspace.reports, "-o", path).returncode == 0
    merged = json.loads(path.read_text())
    jsonschema.validate(merged, json.loads((shimmed.SOURCE / "reporters" / "merged.schema.json").read_text()))
    rank_of = {row["id"]: row["rank"] for row in merged["processes"]}
    assert sorted(rank_of.values()) == sorted(reports)
    for row in merged["processes"]:
        own = next(own for own in facts["ranks"] if own["rank"] == row["rank"])
        assert (row["pid"], row["devices"]) == (facts["pids"][row["rank"]], [own["device_uuid"]])
        assert row["report"] == f"{facts['job_id']}-{row['rank']}.json"
        assert row["verdicts"] == [reports[row["rank"]]["incidents"][0]["verdict"]]
    times = {rank_of[row["process"]]: row["time"] for row in merged["refusals"]}
    assert sorted(times) == sorted(reports)
    first = merged["first_refusal"]
    assert first["time"] == min(times.values()) == times[rank_of[first["process"]]]
    assert [times[rank_of[process]] for process in first["followed_by"]] == sorted(times.values())[1:]
    (device,) = merged["devices"]
    assert (device["processes"], device["refused"], device["full_process"]) == (3, 3, first["process"])
    holders = merged["device_holders"]
    assert holders[0]["process"] == first["process"]
    assert {row["process"] for row in holders} == set(rank_of)
    assert {row["pid"] for row in holders} == set(facts["pids"])
    for leak in merged["leaks"]:
        values = [row["bytes"] for row in merged["leaks_of_processes"] if row["leak"] == leak["id"]]
        assert (sum(values), len(values)) == (leak["bytes"], leak["processes"])
    assert cuwarden("report", path).stdout == cuwarden("report", workspace.reports).stdout
