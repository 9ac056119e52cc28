"""Meshing: pages of the pool come to share memory, behind addresses that do not change."""

import re

import pytest

from shimmed import DRIVEN, DRIVER, RUNTIME, program, sample
from test_pool import pooled
from test_rungs_left_out import left_out
from test_spill import MIB, account_adds_up

# The simulated device copies a page in a millisecond, a real one in a microsecond.
SLOW_COPIES = {"CUWARDEN_MESH_PAUSE": "1m"}


def rungs_of(report):
    return [(row["rung"], row["outcome"]) for row in report["rungs"]]


def test_pages_freed_by_meshing_serve_one_large_block(workspace, cuwarden):
    """Nine of ten blocks are freed at random, so nearly all pages keep a block."""
    plain = workspace.run([sample("adaptive_mesh")], pooled(), shim=False)
    assert plain.last_line["request"]["error"] == "cudaErrorMemoryAllocation"
    run = workspace.run([sample("adaptive_mesh")], pooled(**SLOW_COPIES))
    assert run.last_line["request"]["error"] == "cudaSuccess"
    (incident,) = run.report["incidents"]
    assert (incident["outcome"], incident["rescued_by"]) == ("rescued", "mesh")
    assert rungs_of(run.report)[-2:] == [("pool", "no_memory"), ("mesh", "served")]
    pool = run.report["pool"]
    assert pool["mesh_recovered_bytes"] > run.last_line["request"]["bytes"] * 0.9
    assert pool["meshed_pages"] > pool["mesh_recovered_bytes"] // (2 * MIB) // 3
    assert pool["mesh_pause_ns"] > 0 and pool["mesh_pauses"] > 0
    assert pool["mesh_plan_ns"] > 0 and pool["mesh_prepare_ns"] > 0 and pool["mesh_release_ns"] > 0
    account_adds_up(run.report)
    text = cuwarden("report", run.report.path).stdout
    assert re.search(rf"held by the pool in all +\S+ [MG]iB +{pool['served_count']:,} allocations served", text), text
    told = rf"meshing +gave back \S+ [MG]iB, {pool['meshed_pages']:,} pages came to share memory, the program was paused for \d"
    assert re.search(told, text), text


@pytest.mark.parametrize("how", [{"CUWARDEN_MESH": "off"}, {"CUWARDEN_MESH_PAUSE": "0"}])
def test_a_request_fails_if_memory_must_not_be_moved(workspace, how):
    run = workspace.run([sample("adaptive_mesh")], pooled(**how))
    assert run.last_line["request"]["error"] == "cudaErrorMemoryAllocation"
    (incident,) = run.report["incidents"]
    assert (incident["outcome"], incident["verdict"]) == ("failed", "slab_fragmentation")
    assert run.report["pool"]["meshed_pages"] == 0
    assert "mesh" not in dict(rungs_of(run.report))
    (setting,) = how
    assert left_out(run.report)["mesh"] == ("turned_off", setting)
    assert f"or have {setting}" in incident["advice"]


def test_meshing_of_pages_that_all_overlap_is_reported_as_no_help(workspace, cuwarden):
    """Half of all blocks are left in each page, so hardly any two pages can share memory."""
    run = workspace.run([program("recovery"), 32 << 10, 32 << 10, 50, 256 * MIB, 32 * MIB], pooled())
    assert run.last_line["had_again_bytes"] == 0
    incident = run.report["incidents"][-1]
    assert (incident["outcome"], incident["verdict"]) == ("failed", "slab_fragmentation")
    assert rungs_of(run.report)[-1] == ("mesh", "nothing_gained")
    assert "CUWARDEN_MESH" not in incident["advice"]
    assert re.search(r"mesh \S+ \S+ \(nothing gained\)", cuwarden("report", run.report.path).stdout)


def test_memory_is_moved_while_threads_are_at_work_on_it(workspace):
    run = workspace.run([program("meshed"), "rounds=4"], pooled(CUWARDEN_MESH_PAUSE="5s"))
    assert run.returncode == 0, run.stdout
    assert (run.last_line["wrong"], run.last_line["served"]) == (0, 4)
    assert run.last_line["worked"] >= 120
    assert run.report["pool"]["meshed_pages"] > 100
    totals = run.report.totals()["device"]
    assert totals["live_bytes"] == 0
    account_adds_up(run.report)


def test_memory_is_moved_while_streams_modules_and_captured_graphs_come_and_go(workspace):
    """Nothing is moved beside a capture, so that a request may fail."""
    run = workspace.run([program("meshed"), "rounds=6", "makes=1"], pooled(CUWARDEN_MESH_PAUSE="5s"))
    assert run.returncode == 0, run.stdout
    assert run.last_line["wrong"] == 0
    assert run.last_line["made"] >= 6
    assert run.report["pool"]["meshed_pages"] > 50
    account_adds_up(run.report)


def test_a_pause_that_may_come_to_its_end_first_leaves_all_bytes_right(workspace):
    """Five milliseconds are enough or not, depending on what else the machine does."""
    run = workspace.run([program("meshed"), "rounds=4"], pooled(CUWARDEN_MESH_PAUSE="5ms"))
    assert run.returncode == 0, run.stdout
    assert run.last_line["wrong"] == 0
    rung = dict(rungs_of(run.report))["mesh"]
    # The rungs are those of the refused round, if there is one.
    assert (rung == "served") == ("cudaErrorMemoryAllocation" not in run.stdout)
    assert rung in ("served", "no_memory", "timed_out", "nothing_gained")
    account_adds_up(run.report)


@pytest.mark.parametrize("reading_us, least_ms, most_ms", [(200, 0, 50), (20_000, 85, 400)])
def test_memory_is_moved_in_as_many_pauses_as_are_needed(workspace, reading_us, least_ms, most_ms):
    """A pause lasts 50 ms at most. By the clock that is preloaded, each reading takes some time."""
    command = [program("meshed"), "threads=0", "rounds=1", "blocks=2000", f"reading_us={reading_us}"]
    run = workspace.run(command, pooled(CUWARDEN_MESH_PAUSE="10s"), preload=DRIVEN)
    assert run.returncode == 0, run.stdout
    assert (run.last_line["wrong"], run.last_line["served"]) == (0, 1)
    assert run.report["pool"]["meshed_pages"] > 50
    assert least_ms * 1e6 < run.report["pool"]["mesh_pause_ns"] < most_ms * 1e6
    assert (run.report["pool"]["mesh_pauses"] > 1) == (least_ms > 50)
    account_adds_up(run.report)


def test_the_pauses_for_a_request_last_no_longer_than_the_setting_in_all(workspace):
    command = [program("meshed"), "threads=0", "rounds=1", "blocks=2000", "reading_us=14000"]
    run = workspace.run(command, pooled(CUWARDEN_MESH_PAUSE="60ms"), preload=DRIVEN)
    assert run.last_line["wrong"] == 0
    # A pause ends a reading late.
    assert 0 < run.report["pool"]["mesh_pause_ns"] < 90_000_000
    account_adds_up(run.report)


def test_a_device_that_is_full_to_its_last_page_has_no_need_of_room_to_move_in(workspace):
    run = workspace.run([program("meshed"), "full=1", "spare=0", "least=6", "sizes=1", "rounds=2"], pooled())
    assert run.returncode == 0, run.stdout
    assert (run.last_line["wrong"], run.last_line["served"]) == (0, 2)
    assert run.report["pool"]["mesh_recovered_bytes"] > 0
    account_adds_up(run.report)


def test_a_stream_capture_survives_when_memory_is_moved(workspace):
    # Streams take device memory of their own.
    options = ["rounds=10", "captures=1", "threads=1", "blocks=512", "spare=128"]
    run = workspace.run([program("meshed"), *options], pooled())
    assert run.returncode == 0, run.stdout
    assert (run.last_line["wrong"], run.last_line["lost"]) == (0, 0)
    assert run.last_line["captures"] >= 30


def test_a_page_that_another_device_may_reach_is_not_moved(workspace):
    """A library may let a network card write to memory by a call that no hook sees."""
    preload = (DRIVER, RUNTIME, program("libmpi.so"))
    # Small blocks, of which some stay in each page. Pages without blocks would be given back.
    command = [program("meshed"), "threads=0", "rounds=1", "least=3", "sizes=3"]
    run = workspace.run(command, pooled(), preload=preload)
    assert run.last_line["served"] == 0
    assert run.report["pool"]["meshed_pages"] == 0
    assert rungs_of(run.report)[-1] == ("mesh", "unsafe")
    assert run.said_about("CUWARDEN_MESH", "on GPU 0", "libmpi.so") and len(run.said) == 1


def test_memory_that_has_a_handle_is_not_moved(workspace):
    run = workspace.run([program("meshed"), "threads=0", "rounds=1", "handle=1"], pooled())
    assert (run.last_line["served"], run.last_line["wrong"]) == (0, 0)
    assert run.report["pool"]["meshed_pages"] == 0
    assert run.said_about("CUWARDEN_MESH", "on GPU 0", "handles") and len(run.said) == 1


UNKNOWN = "pages are not moved together: this cuwarden does not know functions of the driver that the program uses: "


@pytest.mark.parametrize("how", ["nothing", "known", "looked_up"])
def test_a_look_up_of_an_unknown_function_does_not_stop_meshing(workspace, how):
    run = workspace.run([program("unknown_function"), how], pooled(**SLOW_COPIES), preload=(DRIVER,))
    assert run.last_line == {"right": True, "result": 0}
    assert rungs_of(run.report)[-1] == ("mesh", "served")
    assert UNKNOWN not in run.stderr


@pytest.mark.parametrize(
    "name, how, told",
    [("unknown_function", "called", "cuFutureFill"), ("linked_with_unknown", "nothing", "cuFutureFill"),
     ("linked_with_unknown_fixed", "nothing", "cuFutureFill"),
     ("unknown_function", "global", "a function that was looked up in the global scope")],
)
def test_memory_is_not_moved_once_an_unknown_function_may_have_been_called(workspace, name, how, told):
    """The function gets all of its arguments, in registers and on the stack."""
    run = workspace.run([program(name), how], pooled(**SLOW_COPIES), preload=(DRIVER,))
    assert run.last_line == {"right": True, "result": 2}
    assert rungs_of(run.report)[-1] == ("mesh", "unsafe")
    assert f"{UNKNOWN}{told}\n" in run.stderr


def test_nothing_is_moved_on_a_device_whose_second_addresses_show_other_memory(workspace):
    """Two addresses of one page are compared before the first block is moved."""
    env = pooled(CUWARDEN_SIM_VMM="apart", **SLOW_COPIES)
    run = workspace.run([program("recovery"), 65536, 65536, 10, 256 * MIB, 32 * MIB], env)
    assert (run.last_line["damaged"], run.last_line["had_again_bytes"]) == (0, 0)
    assert rungs_of(run.report)[-1] == ("mesh", "nothing_gained")
    assert run.report["pool"]["meshed_pages"] == 0
    assert run.stderr.count("CUWARDEN_MESH: two addresses of the same memory") == 1


def test_each_copy_can_be_verified(workspace):
    env = pooled(CUWARDEN_MESH="verify", **SLOW_COPIES)
    run = workspace.run([program("recovery"), 65536, 65536, 10, 256 * MIB, 32 * MIB], env)
    assert run.last_line["damaged"] == 0
    assert run.last_line["had_again_bytes"] > 0.8 * run.last_line["freed_bytes"]
    assert "CUWARDEN_MESH: two addresses" not in run.stderr


@pytest.mark.parametrize(("mode", "moves"), [("on", False), ("on:kernel", True)])
def test_a_kernel_makes_the_copies_if_the_user_wants_that(workspace, mode, moves):
    """The driver's own copies fail."""
    env = pooled(CUWARDEN_MESH=mode, CUWARDEN_SIM_FAIL="cuMemcpyDtoDAsync_v2:*", **SLOW_COPIES)
    run = workspace.run([program("recovery"), 65536, 65536, 10, 512 * MIB, 32 * MIB], env)
    assert run.last_line["damaged"] == 0
    assert (run.report["pool"]["meshed_pages"] > 0) == moves
    assert (run.last_line["had_again_bytes"] > 0.8 * run.last_line["freed_bytes"]) == moves


def test_meshable_memory_counts_as_free_only_if_the_user_wants_that(workspace):
    shown = {}
    for mode in ("on", "on:visible"):
        env = pooled(CUWARDEN_MESH=mode, **SLOW_COPIES)
        run = workspace.run([program("recovery"), 65536, 65536, 10, 256 * MIB, 32 * MIB], env)
        shown[mode] = run.last_line["shown_free_bytes"]
    freed, had = run.last_line["freed_bytes"], run.last_line["had_again_bytes"]
    assert shown["on"] < 0.1 * freed
    # The program can have all that is shown.
    assert 0.7 * freed < shown["on:visible"] <= had + 32 * MIB


def test_unused_pages_of_pieces_go_back_without_a_refusal_once_the_device_is_short_of_memory(workspace):
    run = workspace.run([program("unused_pages"), 0], pooled(), preload=DRIVEN)
    assert run.returncode == 0, run.stderr
    assert run.last_line["lost"] == 0
    assert run.report["incidents"] == []
    pool = run.report["pool"]
    assert pool["mesh_recovered_bytes"] > run.last_line["blocks"] * MIB // 2
    assert pool["mesh_pauses"] == 1
    account_adds_up(run.report)


@pytest.mark.parametrize(("keep_mib", "env"), [(2000, {}), (0, {"CUWARDEN_MESH": "off"})], ids=["much_is_free", "off"])
def test_nothing_is_moved_without_a_refusal(workspace, keep_mib, env):
    """Either the device has more free memory than lies unused in pieces, or no memory is mapped in pieces."""
    run = workspace.run([program("unused_pages"), keep_mib], pooled(**env), preload=DRIVEN)
    assert run.returncode == 0, run.stderr
    assert run.last_line["lost"] == 0
    assert run.report["pool"]["mesh_pauses"] == 0


def test_a_confined_thread_moves_nothing_when_it_frees_memory(workspace):
    """The kernel ends the process at the first system call that a pause of the program begins with."""
    run = workspace.run([program("unused_pages"), 0, "confined"], pooled(), preload=DRIVEN)
    assert run.returncode == 0, run.stderr
    assert run.last_line["lost"] == 0
