"""CUWARDEN_POOL=on: small and badly rounded requests, and page-locked memory, come from the pool."""

import pytest

import preloaded

pytestmark = pytest.mark.alone

MIB = 1 << 20
PROGRAMS = preloaded.BUILD / "tests/end_to_end/programs"


def pooled(mode="on", **changes):
    return {"CUWARDEN_POOL": mode, **changes}


def account_adds_up(report):
    device = report["devices"][0]
    rows = {row["item"]: row["bytes"] for row in report["accounts"] if row["incident"] is None}
    assert sum(rows.values()) == device["used_bytes"]
    assert abs(rows["unexplained"]) <= device["used_bytes"] / 100, rows
    return rows


@pytest.mark.parametrize("mode", ["rescue", "auto", "on"])
@pytest.mark.parametrize("size", [1536, 700_001, 2 * MIB - 512, 3 * MIB, 13 * MIB + 7, 4 * MIB])
def test_a_pointer_of_the_pool_is_as_good_as_one_of_the_driver(workspace, mode, size):
    arguments = [PROGRAMS / "device_pointer", f"bytes={size}", "count=3", "rounds=2"]
    plain = workspace.run(arguments, shim=False)
    run = workspace.run(arguments, pooled(mode))
    assert run.output[:-1] == plain.output[:-1]
    assert run.last_line["free_after"] == run.last_line["free_before"]
    assert run.report["pool"]["served_count"] == (6 if mode == "on" and size != 4 * MIB else 0)
    preloaded.check_covered(run.report)


@pytest.mark.parametrize("how", ["free=async", "free=thread", "free=capture", "end=reset"])
def test_memory_of_the_pool_ends_as_the_drivers_does(workspace, how):
    arguments = [PROGRAMS / "device_pointer", f"bytes={3 * MIB}", how]
    plain = workspace.run(arguments, shim=False)
    run = workspace.run(arguments, pooled())
    assert run.output[:-1] == plain.output[:-1]
    assert run.report["pool"]["served_count"] == 1


# Copies from either device work with and without peer access.
@pytest.mark.gpus(2)
@pytest.mark.parametrize("spilled", [False, True])
@pytest.mark.parametrize("peer", ["before", "after", "taken"])
def test_another_device_copies_memory_of_the_pool_as_the_drivers(workspace, peer, spilled):
    size = f"bytes={(300 if spilled else 3) * MIB}"
    arguments = [PROGRAMS / "device_pointer", size, "count=2", f"peer={peer}"]
    plain = workspace.run(arguments, shim=False)
    env = {"CUWARDEN_SPILL": "4GiB"} if spilled else pooled()
    run = workspace.run(arguments + (["leave=100"] if spilled else []), env)
    assert run.output[:-1] == plain.output[:-1]
    pool = run.report["pool"]
    assert (pool["spilled_count"] if spilled else pool["served_count"]) >= 2


@pytest.mark.parametrize("flags", [0, 1, 4, 7, 8])
@pytest.mark.parametrize("size", [1, 700_001, 3 * MIB])
def test_page_locked_memory_of_the_pool_is_as_good_as_the_drivers(workspace, size, flags):
    arguments = [PROGRAMS / "pinned_pointer", str(size), str(flags)]
    plain = workspace.run(arguments, shim=False)
    run = workspace.run(arguments, pooled())
    assert run.output == plain.output
    assert (run.report["pool"]["served_count"] > 0) == (flags != 8)
    preloaded.check_covered(run.report)


def test_odd_sizes_all_fit_into_the_pool(workspace):
    sample = preloaded.BUILD / "samples" / "odd_sizes"
    plain = workspace.run([sample], shim=False)
    run = workspace.run([sample], pooled())
    facts = run.last_line
    print(f"bare {plain.last_line['cached_tiles']} of {facts['planned_tiles']} tiles")
    assert facts["cached_tiles"] == facts["planned_tiles"] > 1.3 * plain.last_line["cached_tiles"]
    assert run.report["incidents"] == []
    rows = account_adds_up(run.report)
    print(rows)
    preloaded.check_covered(run.report)


def test_the_large_request_of_churn_is_served(workspace):
    sample = preloaded.BUILD / "samples" / "churn"
    plain = workspace.run([sample], shim=False)
    run = workspace.run([sample], pooled())
    assert plain.last_line["request"]["error"] == "cudaErrorMemoryAllocation"
    assert run.last_line["request"]["error"] == "cudaSuccess", run.stderr
    print(run.last_line, account_adds_up(run.report), run.report["pool"])
    preloaded.check_covered(run.report)


def test_memory_freed_by_adaptive_mesh_serves_one_large_block(workspace):
    sample = preloaded.BUILD / "samples" / "adaptive_mesh"
    plain = workspace.run([sample], shim=False)
    run = workspace.run([sample], pooled())
    print(run.last_line, account_adds_up(run.report), run.report["pool"], run.report["rungs"])
    assert plain.last_line["request"]["error"] == "cudaErrorMemoryAllocation"
    assert run.last_line["request"]["error"] == "cudaSuccess", run.stderr
    assert [row["rescued_by"] for row in run.report["incidents"]] == ["mesh"]
    assert run.report["pool"]["mesh_recovered_bytes"] > 8 << 30
    preloaded.check_covered(run.report)


@pytest.mark.parametrize("pause", ["500ms", "5ms"])
@pytest.mark.parametrize("name", ["meshed", "meshed_work"])
def test_memory_is_moved_while_threads_are_at_work_on_it(workspace, name, pause):
    """The work is done by copies and fills, or by kernels, some of them in a graph."""
    if name == "meshed_work" and preloaded.SIMULATED:
        pytest.skip("needs kernels")
    folder = PROGRAMS if name == "meshed" else preloaded.BUILD / "tests" / "gpu"
    # Kernels' code and streams need some room, too.
    sizes = ["blocks=256"] if preloaded.SIMULATED else ["blocks=4096", "spare=512"]
    run = workspace.run([folder / name, "rounds=4", *sizes], pooled(CUWARDEN_MESH_PAUSE=pause))
    print(run.last_line, run.report["pool"])
    assert run.returncode == 0, run.output
    assert run.last_line["wrong"] == 0
    assert run.last_line["worked"] > 100
    if pause == "500ms":
        assert run.last_line["served"] == 4
    assert run.report["pool"]["meshed_pages"] > 100
    preloaded.check_covered(run.report)


def test_memory_is_moved_while_streams_modules_and_captured_graphs_come_and_go(workspace):
    """Nothing is moved beside a capture, so that a request may fail."""
    if preloaded.SIMULATED:
        pytest.skip("needs kernels")
    sizes = ["blocks=3072", "spare=1024", "threads=2", "rounds=10"]
    run = workspace.run([preloaded.BUILD / "tests" / "gpu" / "meshed_work", "makes=1", *sizes], pooled())
    print(run.last_line, run.report["pool"])
    assert run.returncode == 0, run.output
    assert run.last_line["wrong"] == 0
    assert run.last_line["made"] >= 10
    assert run.report["pool"]["meshed_pages"] > 500
    preloaded.check_covered(run.report)


def test_meshing_works_on_a_device_that_is_full_to_its_last_page(workspace):
    sizes = ["blocks=256"] if preloaded.SIMULATED else ["blocks=2048"]
    run = workspace.run([PROGRAMS / "meshed", "full=1", "spare=0", "least=6", "sizes=1", "rounds=2", *sizes], pooled())
    print(run.last_line, run.report["pool"])
    assert run.returncode == 0, run.output
    assert (run.last_line["wrong"], run.last_line["served"]) == (0, 2)
    preloaded.check_covered(run.report)


def test_a_pinned_buffer_for_each_step_costs_next_to_nothing(workspace):
    sample = preloaded.BUILD / "samples" / "pinned_churn"
    # So many steps make the pinning of the pool's first piece negligible, too.
    plain = workspace.run([sample, "400"], shim=False)
    run = workspace.run([sample, "400"], pooled())
    before, now = plain.last_line["pinning_ns"], run.last_line["pinning_ns"]
    print(f"pinning: bare {before / 1e6:.1f} ms, from the pool {now / 1e6:.1f} ms")
    assert now < before / 10


@pytest.mark.parametrize("situation", ["all", "idle", "locked"])
def test_the_pool_serves_and_gives_back_over_time(workspace, situation):
    mode = "auto" if situation == "locked" else "on"
    run = workspace.run([PROGRAMS / "pooled", situation], pooled(mode))
    pool = run.report["pool"]
    if situation == "all":
        assert run.last_line["largest_after"] == run.last_line["largest_before"]
        assert pool["returned_bytes"] > 0
    elif situation == "idle":
        assert pool["returned_bytes"] > 0
    else:
        # On a large device, the slabs lock less than a fiftieth of it, so that the pool need not
        # serve.
        assert pool["served_count"] in (0, run.last_line["later"])
    account_adds_up(run.report)


def test_half_full_pages_are_meshed_on_a_full_device(workspace):
    """Few pages fit together, and there is no memory to begin with but that of blocks that are evicted."""
    half_of_64_kib = [PROGRAMS / "recovery", 64 << 10, 64 << 10, 50, 4 << 30, 32 * MIB]
    plain = workspace.run(half_of_64_kib, shim=False)
    run = workspace.run(half_of_64_kib, pooled())
    assert plain.last_line["had_again_bytes"] == 0
    assert run.last_line["damaged"] == 0
    assert run.last_line["had_again_bytes"] > 0
    account_adds_up(run.report)


def test_unused_pages_of_pieces_go_back_without_a_refusal_once_the_device_is_short_of_memory(workspace):
    run = workspace.run([PROGRAMS / "unused_pages", 0], pooled())
    assert run.last_line["lost"] == 0
    assert run.report["incidents"] == []
    assert run.report["pool"]["mesh_recovered_bytes"] > 0
    account_adds_up(run.report)
