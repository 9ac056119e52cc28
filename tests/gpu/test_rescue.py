"""Requests that the real driver refuses and that are served after all."""

import json
import subprocess
import time

import pytest

import preloaded
from test_incidents import run_shortage

pytestmark = pytest.mark.alone

RESCUE = {"CUWARDEN_POOL": "rescue"}


def busy_for(milliseconds):
    """Returns the setting that makes the simulated GPU's kernels take so long."""
    return {"CUWARDEN_SIM_KERNEL_TIME": f"{milliseconds}ms"} if preloaded.SIMULATED else {}


def rescued(run, rung):
    assert (run.last_line["served"], run.last_line["failures"]) == (1, 0)
    (incident,) = run.report["incidents"]
    assert (incident["outcome"], incident["rescued_by"]) == ("rescued", rung), incident
    assert run.report["pool"]["rescued_bytes"] == run.last_line["requested_bytes"]
    assert all(total["failures"] == 0 for total in run.report["totals"])
    preloaded.check_covered(run.report)
    return incident, {row["rung"]: row for row in run.report["rungs"]}


@pytest.mark.parametrize(
    "options",
    [["streams=1"], ["streams=4"], ["streams=17", "more=64"], ["streams=3", "busy=500"],
     ["streams=2", "thread=1", "api=driver"], ["streams=2", "own=1"],
     # Another thread cannot name that stream.
     ["streams=2", "own=1", "freer=1"], ["streams=2", "freer=1"],
     ["streams=3", "elsewhere=1"]],
    ids="-".join,
)
def test_a_request_that_needs_pending_frees_is_served_after_they_are_synchronised(workspace, options):
    program = preloaded.BUILD / "tests/end_to_end/programs/shortages"
    env = busy_for(500) if "busy=500" in options else {}
    bare = workspace.run([program, "pending", *options], env, shim=False)
    assert (bare.last_line["served"], bare.last_line["failures"]) == (0, 1)
    run = run_shortage(workspace, ["pending", *options], {**RESCUE, **env})
    incident, rungs = rescued(run, "synchronise")
    assert incident["verdict"] == "pending_frees"
    # A plain retry did not help.
    assert rungs["retry"]["outcome"] == "no_memory"
    if "busy=500" in options:  # a slow machine may make the request some time after the kernel began
        assert rungs["synchronise"]["duration_ns"] > 50_000_000
    (live,) = [row for row in run.report["totals"] if row["kind"] == "device"]
    assert live["live_bytes"] == run.last_line["requested_bytes"]


def test_a_stream_that_works_longer_than_is_allowed_is_left_alone(workspace):
    # By this clock, time passes for the shim alone, and only while it waits: it gives up long before the
    # kernel ends.
    clock = preloaded.BUILD / "tests/end_to_end/programs/libdriven_clock.so"
    preload = f"{workspace.environment()['LD_PRELOAD']}:{clock}"
    env = {**RESCUE, "CUWARDEN_SYNC_TIMEOUT": "100ms", **busy_for(1500), "LD_PRELOAD": preload}
    run = run_shortage(workspace, ["pending", "streams=1", "busy=1500"], env)
    assert (run.last_line["served"], run.last_line["failures"]) == (0, 1)
    (waited,) = [row for row in run.report["rungs"] if row["rung"] == "synchronise"]
    assert waited["outcome"] == "timed_out"
    assert waited["duration_ns"] >= 100_000_000


def wait_until_it_waits(process):
    """Returns once a live process is on the rung that waits for other processes."""
    command = [preloaded.BUILD / "cuwarden", "snapshot", "--output", "-", str(process.pid)]
    deadline = time.monotonic() + 120
    while True:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        rungs = json.loads(done.stdout)["rungs"] if done.returncode == 0 else []
        if rungs and rungs[-1]["rung"] == "wait":
            return
        assert process.poll() is None and time.monotonic() < deadline, done.stderr
        time.sleep(0.01)


def test_a_neighbour_that_leaves_is_waited_for(workspace, tmp_path):
    sample = preloaded.BUILD / "samples" / "neighbour"
    env = {"CUWARDEN_SIM_SHARED": tmp_path / "shared_device"} if preloaded.SIMULATED else {}
    other = workspace.start([sample, "hold", "60"], env, shim=False, stdin=subprocess.PIPE)
    assert int(other.stdout.readline()) > 1 << 30
    program = preloaded.BUILD / "tests/end_to_end/programs/shortages"
    env = {**env, **RESCUE, "CUWARDEN_WAIT": "100s"}
    process = workspace.start([program, "own", "room=200000", "more=900"], env)
    try:
        wait_until_it_waits(process)
        other.stdin.close()
        run = workspace.finish(process, "waiting")
    finally:  # the device is full as long as one of them is left
        for each in (process, other):
            each.kill()
            each.wait(preloaded.PATIENCE_S)
    assert run.returncode == 0, run.stderr
    rescued(run, "wait")


REFUSED = "CUDA_ERROR_OUT_OF_MEMORY"
CALLS = [
    "stream", "context", "primary_context", "module", "module_of_library", "function_of_kernel",
    "variable_of_library", "first_launch", "deep_launch", "stack_limit", "graph", "graph_launch",
    "graph_upload",
]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("room, mode, rung", [("pending", "rescue", "synchronise"), ("scattered", "on", "mesh")])
def test_a_call_that_needs_memory_for_itself_is_served(workspace, call, room, mode, rung):
    # Local memory for all threads of the device takes 4 GiB.
    window = (8 if call in ("deep_launch", "stack_limit") else 2) << 30
    command = [preloaded.BUILD / "tests/end_to_end/programs/needing_memory", call, room, window]
    bare = workspace.run(command, shim=False)
    assert (bare.returncode, bare.last_line["result"]) == (0, REFUSED)
    run = workspace.run(command, {"CUWARDEN_POOL": mode})
    assert (run.returncode, run.last_line["result"]) == (0, "CUDA_SUCCESS")
    rescued = [row for row in run.report["incidents"] if row["outcome"] == "rescued"]
    served = {(row["asked_for"], row["rescued_by"]) for row in rescued}
    # A pool that has filled the device yields the memory that it has kept.
    assert {by for _, by in served - {("memory", "pool")}} == {rung}


@pytest.mark.parametrize("call", ["stream", "event", "small_graph_launch"])
def test_a_device_that_the_pool_has_filled_serves_the_calls_that_the_bare_driver_serves(workspace, call):
    """Blocks of 50 to 500 KiB fill the room. The driver's own structures fit into gaps in its slabs."""
    command = [preloaded.BUILD / "tests/end_to_end/programs/needing_memory", call, "filled", 2 << 30]
    bare = workspace.run(command, shim=False)
    run = workspace.run(command, {"CUWARDEN_POOL": "on"})
    print(bare.last_line, run.last_line, run.report["pool"], run.report["rungs"])
    assert (bare.returncode, run.returncode) == (0, 0), bare.stderr + run.stderr
    assert run.report["pool"]["served_count"] > 5000
    assert min(run.last_line["served"], 1) >= min(bare.last_line["served"], 1)
