"""CUWARDEN_POOL=on and auto: small and badly rounded requests are served by the pool. The program notices
no difference beside the memory that is left."""

import signal

import pytest
import shimmed
from shimmed import DRIVEN, program, sample
from test_spill import MIB, account_adds_up, but_the_last

POINTER = program("device_pointer")
TRACES = shimmed.SOURCE / "tests" / "traces"


def pooled(mode="on", **changes):
    return {"CUWARDEN_SIM_MEMORY": "3GiB", "CUWARDEN_POOL": mode, **changes}


# Sizes of pieces within a page, of pieces that cross pages, and of requests that the driver serves.
SIZES = [1536, 700_001, 2 * MIB - 512, 3 * MIB, 5 * MIB + 12345, 13 * MIB, 4 * MIB, 40 * MIB + 1]


@pytest.fixture(scope="module")
def plain_runs():
    """Returns the runs without the shim that tests share, by the size of the program's allocations."""
    return {}


@pytest.mark.parametrize("mode", ["rescue", "auto", "on"])
@pytest.mark.parametrize("size", SIZES)
def test_a_pointer_of_the_pool_is_as_good_as_one_of_the_driver(workspace, plain_runs, mode, size):
    arguments = [POINTER, f"bytes={size}", "count=3", "rounds=2"]
    if size not in plain_runs:
        plain_runs[size] = workspace.run(arguments, pooled(), shim=False)
    plain = plain_runs[size]
    assert plain.returncode == 0
    run = workspace.run(arguments, pooled(mode))
    assert but_the_last(run) == but_the_last(plain)
    assert run.last_line["free_after"] == run.last_line["free_before"]
    served = size < 2 * MIB or size in (3 * MIB, 5 * MIB + 12345, 13 * MIB)
    pool = run.report["pool"]
    assert pool["served_count"] == (6 if mode == "on" and served else 0)
    assert pool["served_bytes"] == pool["served_count"] * size
    assert (run.last_line["ipc"] != 0) == (pool["served_count"] > 0) == pool["ipc_refused"]
    assert ("no other process" in run.stderr) == pool["ipc_refused"]
    totals = run.report.totals()["device"]
    assert (totals["allocations"], totals["frees"], totals["live_bytes"]) == (6, 6, 0)
    account_adds_up(run.report)


@pytest.mark.parametrize("make", ["pitch", "3d"])
@pytest.mark.parametrize("size", [700_000, 3 * MIB, 6_100_000])
def test_rows_of_cudaMallocPitch_come_from_the_pool(workspace, make, size):
    arguments = [POINTER, f"make={make}", f"bytes={size}", "rounds=2"]
    plain = workspace.run(arguments, pooled(), shim=False)
    run = workspace.run(arguments, pooled())
    assert but_the_last(run) == but_the_last(plain)
    assert run.last_line["free_after"] == run.last_line["free_before"]
    pool = run.report["pool"]
    assert pool["served_count"] == (2 if size <= 3 * MIB else 0)
    assert pool["served_bytes"] == pool["served_count"] * run.last_line["bytes"]
    account_adds_up(run.report)


@pytest.mark.parametrize("how", ["async", "thread", "capture"])
def test_the_pools_memory_is_freed_in_each_way_the_drivers_is(workspace, how):
    run = workspace.run([POINTER, f"bytes={3 * MIB}", f"free={how}"], pooled())
    assert run.last_line["free_after"] == run.last_line["free_before"], run.stdout
    assert "free: 0" in run.stdout and "twice: 1" in run.stdout
    assert run.report["pool"]["served_count"] == 1
    if how == "capture":
        assert "capture ended: 0" in run.stdout


@pytest.mark.parametrize("peer", ["before", "after", "taken"])
def test_peers_may_use_the_pools_memory_as_they_may_the_drivers(workspace, peer):
    env = pooled(CUWARDEN_SIM_DEVICES="2")
    arguments = [POINTER, f"bytes={3 * MIB}", "count=2", f"peer={peer}"]
    plain = workspace.run(arguments, env, shim=False)
    run = workspace.run(arguments, env)
    assert but_the_last(run) == but_the_last(plain)
    assert run.last_line["peer_access"] == 3
    assert run.report["pool"]["served_count"] == 3, "the copy on the peer, too"


def test_a_reset_takes_it_along(workspace):
    run = workspace.run([POINTER, f"bytes={3 * MIB}", "count=4", "end=reset"], pooled())
    assert "reset: 0" in run.stdout
    assert run.report.totals()["device"]["live_bytes"] == 0
    assert run.report["leaks"]["released_by_context_bytes"] == 4 * 3 * MIB
    assert run.report["pool"]["held_bytes"] == 0


@pytest.mark.parametrize("size", ["3GiB", "40GiB"])
def test_odd_sizes_all_fit_into_the_pool(workspace, size):
    env = pooled(CUWARDEN_SIM_MEMORY=size)
    plain = workspace.run([sample("odd_sizes")], env, shim=False)
    run = workspace.run([sample("odd_sizes")], env)
    facts, before = run.last_line, plain.last_line
    assert facts["cached_tiles"] == facts["planned_tiles"] > 1.3 * before["cached_tiles"]
    assert run.report["incidents"] == []
    assert run.report["pool"]["served_count"] == facts["cached_tiles"]
    rows = account_adds_up(run.report)
    assert rows["pool"] < 16 * MIB


def test_requests_of_a_churning_program_are_served(workspace):
    # The simulated device copies a page in a millisecond, a real one in a microsecond.
    env = pooled(CUWARDEN_SIM_MEMORY="20GiB", CUWARDEN_MESH_PAUSE="1m")
    plain = workspace.run([sample("churn")], env, shim=False)
    assert plain.last_line["request"]["error"] == "cudaErrorMemoryAllocation"
    run = workspace.run([sample("churn")], env)
    assert run.last_line["request"]["error"] == "cudaSuccess"
    assert all(row["outcome"] == "rescued" for row in run.report["incidents"])
    account_adds_up(run.report)


@pytest.mark.parametrize("trace", ["adaptive_mesh", "cupy_ensemble", "cusparse_multigrid", "renderer", "torch_sequences"])
def test_a_recorded_program_needs_no_more_memory_than_without_the_pool(workspace, trace):
    command = [program("replay"), TRACES / f"{trace}.txt"]
    plain = workspace.run(command, pooled(), shim=False).last_line
    run = workspace.run(command, pooled()).last_line
    assert run["mean_used_bytes"] <= plain["mean_used_bytes"] * 1.02
    assert run["least_room_bytes"] <= plain["least_room_bytes"] * 1.02


# --- memory that goes back


def test_free_pages_of_the_pool_serve_a_request_of_the_driver(workspace):
    """The program frees everything and then asks for all of the device at once."""
    run = workspace.run([program("pooled"), "all"], pooled())
    facts = run.last_line
    assert facts["largest_after"] == facts["largest_before"]
    assert run.report["pool"]["returned_bytes"] > 0
    (incident,) = run.report["incidents"]
    assert (incident["outcome"], incident["rescued_by"]) == ("rescued", "pool")


def test_pages_unused_for_a_second_go_back_to_the_driver(workspace):
    run = workspace.run([program("pooled"), "idle"], pooled(), preload=DRIVEN)
    assert run.report["pool"]["returned_bytes"] > 0
    assert run.report["incidents"] == []


def test_after_a_kill_the_pools_figures_lack_few_requests(workspace):
    count = 1000
    command = [program("checkerboard"), 100_000, "none", count * 100_000, 1, "killed"]
    assert workspace.run(command, pooled()).returncode == -signal.SIGKILL
    assert shimmed.cuwarden(workspace, "recover", workspace.ledger).returncode == 0
    served = shimmed.only_report(workspace)["pool"]["served_count"]
    assert count - 16 <= served <= count


def test_the_programs_memory_stays_good_when_recording_has_ended(workspace):
    """Static destructors free the pool's memory after the report was written."""
    run = workspace.run([program("pooled"), "end"], pooled())
    plain = workspace.run([program("pooled"), "end"], pooled(), shim=False)
    assert run.stdout == plain.stdout and "freed at the end" in run.stdout


# --- page-locked memory


@pytest.mark.parametrize("flags", [0, 1, 2, 4, 7, 8])
@pytest.mark.parametrize("size", [0, 1, 4096, 700_001, 3 * MIB, 65 * MIB])
def test_page_locked_memory_of_the_pool_is_as_good_as_the_drivers(workspace, size, flags):
    arguments = [program("pinned_pointer"), str(size), str(flags)]
    plain = workspace.run(arguments, pooled(), shim=False)
    assert plain.returncode == 0
    run = workspace.run(arguments, pooled())
    assert run.stdout == plain.stdout
    made = 4 if size > 0 and flags != 8 else 0
    served = made if size <= 64 * MIB else 0
    totals = run.report.totals()
    if made > 0:
        assert (totals["pinned"]["allocations"], totals["pinned"]["frees"]) == (made, made)
    device = made if size < 2 * MIB or size == 3 * MIB else 0
    assert run.report["pool"]["served_count"] == served + device


@pytest.mark.parametrize("how", ["capture", "reset"])
def test_page_locked_memory_ends_as_the_drivers_does(workspace, how):
    arguments = [program("pinned_pointer"), "700001", "0", how]
    plain = workspace.run(arguments, pooled(), shim=False)
    run = workspace.run(arguments, pooled())
    assert run.stdout == plain.stdout
    assert run.report.totals()["pinned"]["live_bytes"] == 0


def test_a_pinned_buffer_for_each_step_comes_from_the_pool(workspace):
    run = workspace.run([sample("pinned_churn"), "300"], pooled())
    assert run.returncode == 0, run.stderr
    totals = run.report.totals()["pinned"]
    assert totals["allocations"] >= 300
    assert run.report["pool"]["served_count"] >= 300
    assert run.report["leaks"]["bytes"] == 0


def test_free_page_locked_memory_is_given_to_a_larger_request(workspace):
    """The pool has no device memory here, so the rung has only page-locked memory to give back."""
    env = pooled(CUWARDEN_SIM_PINNED_LIMIT="100MiB")
    plain = workspace.run([program("pooled"), "locked_host"], env, shim=False)
    run = workspace.run([program("pooled"), "locked_host"], env)
    assert run.stdout == plain.stdout and "larger: 0" in run.stdout
    assert [row["rescued_by"] for row in run.report["incidents"]] == ["pool"]


def test_memory_that_a_capture_withheld_is_available_afterwards(workspace):
    run = workspace.run([program("pooled"), "captured"], pooled())
    assert "after the capture: 0" in run.stdout, run.stdout


def test_much_page_locked_memory_that_is_freed_goes_back_at_once(workspace):
    run = workspace.run([program("pooled"), "staging"], pooled())
    assert run.last_line["rss_kept_bytes"] < 100 * MIB


# --- auto: serves only if the driver's slabs lock much and no memory is shared


def test_auto_serves_once_slabs_lock_a_fiftieth_of_the_device(workspace):
    run = workspace.run([program("pooled"), "locked"], pooled("auto"), preload=DRIVEN)
    facts = run.last_line
    assert facts["early_taken"] == 4 * MIB, "the driver rounds it"
    assert run.report["pool"]["served_count"] == facts["later"]
    account_adds_up(run.report)


@pytest.mark.parametrize("how", ["ipc", "mpi"])
def test_auto_stays_with_the_driver_where_memory_is_shared(workspace, how):
    run = workspace.run([program("pooled"), "locked", how], pooled("auto"), preload=DRIVEN)
    assert run.report["pool"]["served_count"] == 0
    assert run.said == []


def test_a_driver_without_mapped_memory_serves_all_requests_itself(workspace):
    run = workspace.run([POINTER, f"bytes={3 * MIB}"], pooled(CUWARDEN_SIM_VMM="none"))
    assert run.last_line["served"] == 1
    assert run.report["pool"]["served_count"] == 0
    assert run.said_about("CUWARDEN_POOL=on", "cannot map memory") and len(run.said) == 1


@pytest.mark.parametrize("mode", ["off", "rescue", "auto", "on"])
@pytest.mark.parametrize("size", [1000, 700_001, 2 * MIB, 3 * MIB, 20 * MIB])
def test_another_process_opens_what_the_driver_served(workspace, mode, size):
    arguments = [program("shared_pointer"), size]
    plain = workspace.run(arguments, pooled(), shim=False)
    assert plain.returncode == 0, plain.stderr
    run = workspace.run(arguments, pooled(mode))
    assert run.returncode == 0
    (own,) = [r for r in run.reports if r["totals"][0]["kind"] != "imported"]
    if mode == "on" and size % (2 * MIB) != 0:
        refusal = plain.last_line["refusal"]
        said = [f"handle: {refusal}, left behind: {refusal}"] * 2
        assert run.stdout.splitlines() == [*said, *plain.stdout.splitlines()[-2:]]
        run.said_about("CUWARDEN_POOL", "no other process can open it", "CUWARDEN_POOL=rescue")
        assert len(run.said) == 1 and own["pool"]["served_count"] == 1
    else:
        assert run.stdout == plain.stdout
        assert run.said == [] and len(run.reports) == 2
    assert own["pool"]["ipc_refused"] == (run.said != [])
    # The process whose sharing was refused still has a whole report.
    assert own["tool"]["complete"] is True and own["coverage"]["complete"] is True
