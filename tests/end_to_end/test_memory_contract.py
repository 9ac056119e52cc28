"""What the driver promises of memory, held against the driver itself and against each mode of
CUWARDEN_POOL: the program's assertions are the driver's own, so that they hold for it, too."""

import re

import pytest

from shimmed import program

MODES = ["bare", "off", "rescue", "auto", "on"]
SHARING = "Sharing.*"


def contract(place, mode, tests):
    arguments = [program("memory_contract"), f"--gtest_filter={tests}"]
    if mode == "auto":
        arguments.insert(1, "--lock-slabs")
    env = {"CUWARDEN_SIM_MEMORY": "3GiB", "CUWARDEN_SIM_DEVICES": "2", "CUWARDEN_POOL": mode}
    run = place.run(arguments, env, shim=mode != "bare")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "SKIPPED" not in run.stdout
    return run


@pytest.mark.parametrize("mode", MODES)
def test_memory_is_what_the_driver_promises(place, mode):
    run = contract(place, mode, f"-{SHARING}")
    assert int(re.search(r"PASSED  \] (\d+) tests", run.stdout)[1]) > 60
    assert run.said == []
    if mode == "bare":
        return
    pool, totals = run.report["pool"], run.report.totals()
    if mode in ("off", "rescue"):
        assert pool["served_count"] == 0
    else:
        # Nothing passes because the driver served it all: of twelve sizes ten are the pool's.
        assert pool["served_count"] > 600
    if mode == "on":
        made = totals["device"]["allocations"] + totals["pinned"]["allocations"]
        assert pool["served_count"] > 0.8 * made


@pytest.mark.parametrize("mode", MODES)
def test_memory_of_the_pool_is_shared_by_nobody(place, mode):
    run = contract(place, mode, SHARING)
    if mode != "bare":
        served = mode in ("auto", "on")
        assert run.report["pool"]["ipc_refused"] == served
        assert ("no other process" in run.stderr) == served
