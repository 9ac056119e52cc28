"""Calls that need device memory for themselves (contexts, streams, code, graphs, limits), on a device
that is full: refused without the shim, served by the ladder with it."""

import pytest
from shimmed import DRIVER, program

GIB = 1 << 30
ASKED = {
    "stream": "stream",
    "context": "context",
    "primary_context": "context",
    "module": "module",
    "module_of_library": "module",
    "function_of_kernel": "module",
    "variable_of_library": "module",
    "first_launch": "launch",
    "deep_launch": "launch",
    "stack_limit": "limit",
    "graph": "graph",
    "graph_launch": "graph",
    "graph_upload": "graph",
}
SETTINGS = {
    "pending": {"CUWARDEN_POOL": "rescue"},
    "scattered": {"CUWARDEN_POOL": "on", "CUWARDEN_MESH_PAUSE": "1m"},
    "none": {"CUWARDEN_POOL": "on"},
}
REFUSED = "CUDA_ERROR_OUT_OF_MEMORY"


def run_both(workspace, call, room):
    """Runs the program without and with the shim; both times all else that it does succeeds."""
    # Local memory of 2 KiB for all threads of the device takes 264 MiB.
    command = [program("needing_memory"), call, room, GIB, 2048]
    size = {"CUWARDEN_SIM_MEMORY": "12GiB"}
    bare = workspace.run(command, size, preload=(DRIVER,), shim=False)
    run = workspace.run(command, {**size, **SETTINGS[room]}, preload=(DRIVER,))
    assert (bare.returncode, run.returncode) == (0, 0), (bare.stderr, run.stderr)
    return bare.last_line, run


@pytest.mark.parametrize("call", ASKED)
@pytest.mark.parametrize("room, rung", [("pending", "synchronise"), ("scattered", "mesh")])
def test_a_call_is_served_once_a_rung_has_made_room(workspace, call, room, rung):
    bare, run = run_both(workspace, call, room)
    assert bare["result"] == REFUSED
    assert run.last_line["result"] == "CUDA_SUCCESS"
    rescued = [row for row in run.report["incidents"] if row["outcome"] == "rescued"]
    served = {(row["asked_for"], row["rescued_by"]) for row in rescued}
    # A pool that has filled the device yields the memory that it has kept.
    assert served - {("memory", "pool")} == {(ASKED[call], rung)}


@pytest.mark.parametrize("call", ASKED)
def test_a_call_gets_the_drivers_error_if_there_is_no_memory(workspace, call):
    bare, run = run_both(workspace, call, "none")
    assert run.last_line == bare
    assert bare["result"] == REFUSED
    (refused,) = [row for row in run.report["incidents"] if row["asked_for"] == ASKED[call]]
    assert refused["outcome"] == "failed"
