"""The driver's promises about memory, tested on the driver and in each mode of CUWARDEN_POOL: by
the driver's functions, by kernels and by cuBLAS. The pool serves requests if the mode says so."""

import re

import pytest

import preloaded

pytestmark = pytest.mark.alone

MODES = ["bare", "off", "rescue", "auto", "on"]
CONTRACT = preloaded.BUILD / "tests/end_to_end/programs/memory_contract"
SHARING = "Sharing.*"


def run_in(workspace, mode, command, lock):
    """Runs the program. `lock` is the argument with which the program makes the mode auto serve."""
    command = [command[0], lock, *command[1:]] if mode == "auto" else command
    run = workspace.run(command, {"CUWARDEN_POOL": mode}, shim=mode != "bare")
    assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-3000:]
    return run


def served(run):
    return run.report["pool"]["served_count"]


@pytest.mark.parametrize("mode", MODES)
def test_memory_keeps_the_drivers_promises(workspace, mode):
    run = run_in(workspace, mode, [CONTRACT, f"--gtest_filter=-{SHARING}"], "--lock-slabs")
    assert int(re.search(r"PASSED  \] (\d+) tests", run.stdout)[1]) > 55, run.stdout[-2000:]
    if mode != "bare":
        assert (served(run) > 500) == (mode in ("auto", "on"))
        assert served(run) == 0 or mode in ("auto", "on")
        preloaded.check_covered(run.report)


@pytest.mark.gpus(2)
@pytest.mark.parametrize("mode", MODES)
def test_memory_of_two_devices_keeps_the_drivers_promises(workspace, mode):
    run = run_in(workspace, mode, [CONTRACT, "--gtest_filter=Peers.*"], "--lock-slabs")
    if mode != "bare":
        assert (served(run) > 0) == (mode in ("auto", "on"))


@pytest.mark.parametrize("mode", MODES)
def test_memory_of_the_pool_cannot_be_shared_with_processes(workspace, mode):
    run = run_in(workspace, mode, [CONTRACT, f"--gtest_filter={SHARING}"], "--lock-slabs")
    if mode != "bare":
        assert run.report["pool"]["ipc_refused"] == (mode in ("auto", "on"))


@pytest.mark.skipif(preloaded.SIMULATED, reason="kernels do nothing, and cuBLAS needs the driver")
@pytest.mark.parametrize("mode", MODES)
def test_kernels_and_cublas_read_back_their_own_values(workspace, mode):
    run = run_in(workspace, mode, [preloaded.program("side_by_side")], "lock")
    checks = [line for line in run.output if "as the host computes it" in line]
    assert len(checks) == 10, run.stdout
    preloaded.check_results(run)
    assert run.output[-1] == "freed: 0"
    if mode != "bare":
        # There are 12 pieces and 15 matrices on the device, and 16 page-locked pieces in modes that
        # serve these.
        assert served(run) >= {"auto": 25, "on": 40}.get(mode, 0)
        assert served(run) == 0 or mode in ("auto", "on")
