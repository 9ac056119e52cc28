"""Checks the driver's promises about memory, with the driver alone and in the modes of CUWARDEN_POOL.

All assertions hold for the driver alone, too. The mode `off` is checked only if LARGE_COUNTS is set,
since in the mode `rescue`, too, the driver serves all requests that it can.
"""

import os
import re

import pytest

from shimmed import program

MODES = ["bare", *(["off"] if "LARGE_COUNTS" in os.environ else []), "rescue", "auto", "on"]
SHARING = "Sharing.*"


def contract(workspace, mode, tests):
    arguments = [program("memory_contract"), f"--gtest_filter={tests}"]
    if mode == "auto":
        arguments.insert(1, "--lock-slabs")
    env = {"CUWARDEN_SIM_MEMORY": "3GiB", "CUWARDEN_SIM_DEVICES": "2", "CUWARDEN_POOL": mode}
    run = workspace.run(arguments, env, shim=mode != "bare")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "SKIPPED" not in run.stdout
    return run


@pytest.mark.parametrize("mode", MODES)
def test_memory_keeps_each_promise_of_the_driver(workspace, mode):
    run = contract(workspace, mode, f"-{SHARING}")
    assert int(re.search(r"PASSED  \] (\d+) tests", run.stdout)[1]) > 60
    assert run.said == []
    if mode == "bare":
        return
    pool, totals = run.report["pool"], run.report.totals()
    if mode in ("off", "rescue"):
        assert pool["served_count"] == 0
    else:
        # The pool has served ten of the twelve sizes, so the test did not only test the driver.
        assert pool["served_count"] > 600
    if mode == "on":
        made = totals["device"]["allocations"] + totals["pinned"]["allocations"]
        assert pool["served_count"] > 0.8 * made


@pytest.mark.parametrize("mode", MODES)
def test_no_two_allocations_of_the_pool_overlap(workspace, mode):
    run = contract(workspace, mode, SHARING)
    if mode != "bare":
        served = mode in ("auto", "on")
        assert run.report["pool"]["ipc_refused"] == served
        assert ("no other process" in run.stderr) == served
