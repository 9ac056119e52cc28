"""Rescues on the GPU in a process that has captured a stream, and beside a thread that captures one
for ever."""

import pytest

import preloaded

pytestmark = pytest.mark.alone

MIB = 1 << 20
SAMPLES = preloaded.BUILD / "samples"
PROGRAMS = preloaded.BUILD / "tests/end_to_end/programs"
BESIDE = PROGRAMS / "libcapture_beside.so"
# The simulated device copies a page in a millisecond.
SIMULATED = {"CUWARDEN_SIM_MEMORY": "4GiB", "CUWARDEN_MESH_PAUSE": "1m"} if preloaded.SIMULATED else {}


def run_beside(workspace, how, command, env):
    """Runs the program after a capture (`how` is "ended"), or beside one that does not end ("endless")."""
    preload = f"{workspace.environment()['LD_PRELOAD']}:{BESIDE}"
    run = workspace.run(command, {**SIMULATED, **env, "CAPTURE_BESIDE": how, "LD_PRELOAD": preload})
    states = [line for line in run.stderr.splitlines() if line.startswith("capture beside: ")]
    assert states == (["capture beside: active at the end"] if how == "endless" else []), run.stderr
    return run


def outcomes(report):
    return {row["rung"]: row["outcome"] for row in report["rungs"]}


@pytest.mark.parametrize("how", ["ended", "endless"])
def test_pending_frees_are_synchronised_after_and_beside_a_capture(workspace, how):
    run = run_beside(workspace, how, [SAMPLES / "streams"], {"CUWARDEN_POOL": "rescue"})
    assert run.last_line["request"]["error"] == "cudaSuccess", run.report["rungs"]
    assert outcomes(run.report)["synchronise"] == "served"


def test_reclaimers_are_called_after_a_capture(workspace):
    command = [SAMPLES / "two_libraries", "register"]
    run = run_beside(workspace, "ended", command, {"CUWARDEN_POOL": "rescue"})
    assert run.last_line["request"]["error"] == "cudaSuccess", run.report["rungs"]
    assert outcomes(run.report)["reclaim"] == "served"


def test_memory_is_moved_after_a_capture(workspace):
    run = run_beside(workspace, "ended", [SAMPLES / "adaptive_mesh"], {"CUWARDEN_POOL": "on"})
    print(run.report["pool"])
    assert run.last_line["request"]["error"] == "cudaSuccess", run.report["rungs"]
    assert outcomes(run.report)["mesh"] == "served"
    assert run.report["pool"]["mesh_recovered_bytes"] > 0.9 * run.last_line["request"]["bytes"]


@pytest.mark.parametrize(("name", "words", "rung"), [("two_libraries", ["register"], "reclaim"), ("adaptive_mesh", [], "mesh")])
def test_a_rung_that_might_end_a_capture_is_left_out_beside_it(workspace, name, words, rung):
    """The request fails, and the rung's outcome is the reason. The capture goes on."""
    run = run_beside(workspace, "endless", [SAMPLES / name, *words], {"CUWARDEN_POOL": "on"})
    assert run.last_line["request"]["error"] == "cudaErrorMemoryAllocation"
    assert run.returncode == 0, run.stderr
    assert outcomes(run.report)[rung] == "unsafe"
    assert [row["outcome"] for row in run.report["incidents"]] == ["failed"]
    assert run.report["pool"]["meshed_pages"] == 0


def test_the_pool_serves_and_frees_memory_beside_a_capture(workspace):
    command = [PROGRAMS / "recovery", 65536, 65536, 0, 512 * MIB, 32 * MIB]
    run = run_beside(workspace, "endless", command, {"CUWARDEN_POOL": "on"})
    facts = run.last_line
    # The driver may have room for a few blocks in its slabs, once the pool has none.
    assert run.report["pool"]["served_count"] > 0.98 * facts["blocks"] > 7000
    # Every block was freed, so nearly all of the memory can be had again at once.
    assert facts["had_again_bytes"] > 0.85 * facts["window_bytes"]
    assert ("pool", "served") in {(row["rung"], row["outcome"]) for row in run.report["rungs"]}
