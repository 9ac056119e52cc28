"""Rescues in a process that has captured a stream, and beside a thread that captures one for ever."""

import pytest
from shimmed import DRIVER, RUNTIME, program, sample

BESIDE = program("libcapture_beside.so")
SIZE = {"CUWARDEN_SIM_MEMORY": "4GiB"}


def run_beside(workspace, how, command, env):
    changes = {**SIZE, **env, "CAPTURE_BESIDE": how}
    run = workspace.run(command, changes, preload=(DRIVER, RUNTIME, BESIDE))
    states = [line for line in run.stderr.splitlines() if line.startswith("capture beside: ")]
    assert states == (["capture beside: active at the end"] if how == "endless" else []), run.stderr
    return run


def outcomes(report):
    return {row["rung"]: row["outcome"] for row in report["rungs"]}


@pytest.mark.parametrize("how", ["ended", "endless"])
def test_pending_frees_are_synchronised_after_and_beside_a_capture(workspace, how):
    run = run_beside(workspace, how, [sample("streams")], {"CUWARDEN_POOL": "rescue"})
    assert run.last_line["request"]["error"] == "cudaSuccess"
    assert outcomes(run.report)["synchronise"] == "served"


def test_reclaimers_are_called_after_a_capture(workspace):
    run = run_beside(workspace, "ended", [sample("two_libraries"), "register"], {"CUWARDEN_POOL": "rescue"})
    assert run.last_line["request"]["error"] == "cudaSuccess"
    assert outcomes(run.report)["reclaim"] == "served"


def test_memory_is_moved_after_a_capture(workspace):
    run = run_beside(workspace, "ended", [sample("adaptive_mesh")], {"CUWARDEN_POOL": "on", "CUWARDEN_MESH_PAUSE": "1m"})
    assert run.last_line["request"]["error"] == "cudaSuccess"
    assert outcomes(run.report)["mesh"] == "served"


@pytest.mark.parametrize("name, words", [("two_libraries", ["register"]), ("adaptive_mesh", [])])
def test_a_rung_that_might_end_a_capture_is_left_out_beside_it(workspace, cuwarden, name, words):
    run = run_beside(workspace, "endless", [sample(name), *words], {"CUWARDEN_POOL": "on"})
    assert run.last_line["request"]["error"] == "cudaErrorMemoryAllocation"
    rung = "mesh" if name == "adaptive_mesh" else "reclaim"
    assert outcomes(run.report)[rung] == "unsafe"
    shown = cuwarden("report", run.report.path).stdout
    assert (rung == "mesh") == ("unsafe: a stream is being captured" in shown)


def test_the_pool_serves_and_frees_memory_beside_a_capture(workspace):
    command = [program("recovery"), 65536, 65536, 0, 256 << 20, 32 << 20]
    run = run_beside(workspace, "endless", command, {"CUWARDEN_POOL": "on"})
    facts = run.last_line
    assert run.report["pool"]["served_count"] >= facts["blocks"] > 4000
    # Every block was freed, so nearly all of the memory can be had again at once.
    assert facts["had_again_bytes"] > 0.85 * facts["window_bytes"]
    assert ("pool", "served") in {(row["rung"], row["outcome"]) for row in run.report["rungs"]}
