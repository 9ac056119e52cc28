"""Processes that end while the driver does not answer any more: a thread is inside the driver with its
lock held, has left it by a jump, or the device is lost. The program ends as without the shim, and its
report is whole."""

import signal
import subprocess
import time

import pytest

from reports import Report
from shimmed import DRIVEN, DRIVER, PATIENCE_S, PROGRAMS, RUNTIME, SHIM, cuwarden, program

STATUS = 7
LONGEST_S = 20  # a program that runs longer hangs


def fail(rule):
    return {"CUWARDEN_SIM_FAIL": rule}


def check(run, at="last_call", blocks=1):
    assert run.returncode == STATUS and run.said == []
    assert run.report["process"]["end_reason"] in ("exit", "quick_exit")
    assert run.report["process"]["exit_status"] == STATUS
    assert run.report["leaks"]["count"] == blocks
    assert {frame["function"] for frame in run.report["frames"]} >= {"main"}
    assert [device["at"] for device in run.report["devices"]] == [at]
    assert run.ledgers == []


@pytest.fixture
def end(workspace):
    def run(rule, *arguments):
        return workspace.run_both([program("stuck"), *arguments], fail(rule))

    return run


def test_a_driver_that_answers_is_read_at_exit(workspace):
    check(workspace.run_both([program("stuck"), "return"]), at="exit")


# The call that the program makes, the driver's function below it, and the number of that call.
CALLS = [
    ("free", "cuMemFree:1", 0),
    ("malloc", "cuMemAlloc:2", 1),
    ("copy", "cuMemcpyHtoD:1", 1),
    ("synchronize", "cuCtxSynchronize:1", 1),
    ("first launch", "cuLaunchKernel:1", 1),
    ("launch", "cuLaunchKernel:2", 1),
    ("priorities", "cuCtxGetStreamPriorityRange:1", 1),
]


@pytest.mark.parametrize("call, rule, blocks", CALLS, ids=[call[0] for call in CALLS])
@pytest.mark.parametrize("how", ["exit_in_handler", "quick_exit_in_handler"])
def test_a_signal_handler_that_interrupted_the_driver_may_end_the_process(
    end, call, rule, blocks, how
):
    check(end(rule + ":signal", how, call.split()[-1]), blocks=blocks)


@pytest.mark.parametrize("call, rule, blocks", CALLS[:-1], ids=[call[0] for call in CALLS[:-1]])
@pytest.mark.parametrize("how", ["jump", "jump_and_exit"])
def test_a_process_that_jumped_out_of_the_driver_ends(end, call, rule, blocks, how):
    check(end(rule + ":signal", how, call.split()[-1]), blocks=blocks)


@pytest.mark.parametrize("call, rule, blocks", CALLS[:-1], ids=[call[0] for call in CALLS[:-1]])
@pytest.mark.parametrize("how", ["other_thread", "other_thread_ends"])
def test_a_process_ends_whose_other_thread_stays_inside_the_driver(end, call, rule, blocks, how):
    check(end(rule + ":signal", how, call.split()[-1]), blocks=blocks)


@pytest.mark.parametrize("error", [46, 214, 700, 719, 999])
def test_a_lost_device_is_not_asked_again(end, error):
    run = end(f"cuCtxSynchronize:lost:1:{error}:hang", "lost")
    assert run.stdout == f"allocated\nerror {error}\n"
    check(run)


def test_a_slow_driver_is_asked_nothing_more_at_exit(workspace):
    """A call of 700 ms uses up the 500 ms for all readings. The call makes the device's context current."""
    command = [program("stuck"), "slow_at_exit"]
    check(workspace.run_both(command, fail("cuCtxPushCurrent:2:signal"), preload=DRIVEN))


def test_a_reading_at_exit_that_hangs_leaves_a_whole_report(workspace):
    """cuCtxPushCurrent is first called when the context is made, and a second time at exit."""
    process = subprocess.Popen(
        [program("stuck"), "return"],
        env=workspace.environment(fail("cuCtxPushCurrent:2:hang")),
        cwd=workspace.work,
        stdout=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + LONGEST_S
    while not list(workspace.reports.glob("*.json")):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.01)
    (path,) = workspace.reports.glob("*.json")
    report = Report.read(path)
    assert report["process"]["exit_status"] == STATUS
    assert [device["at"] for device in report["devices"]] == ["last_call"]
    assert report["leaks"]["count"] == 1
    process.send_signal(signal.SIGKILL)
    process.wait(PATIENCE_S)
    # `recover` knows how the process ended, and replaces the report.
    assert len(list(workspace.ledger.iterdir())) == 1
    assert cuwarden(workspace, "recover", workspace.ledger).returncode == 0
    assert list(workspace.reports.iterdir()) == [path] and list(workspace.ledger.iterdir()) == []
    assert Report.read(path)["process"]["end_reason"] != "exit"


# --- locks of the shim's own


def test_a_signal_handler_that_interrupted_the_pool_may_end_the_process(workspace):
    """The pool calls the driver with the pool's lock held, and its figures are needed for the report."""
    env = fail("cuMemCreate:2:signal") | {"CUWARDEN_POOL": "on"}
    run = workspace.run([program("stuck"), "exit_in_handler", "odd"], env)
    check(run)
    assert run.report["pool"]["mode"] == "on"


def test_a_signal_handler_that_interrupted_the_first_report_has_the_last_one_written(workspace):
    """The handler calls exit() inside exit(), while its thread writes the report without last readings."""
    env = {
        "INTERRUPT_AT": "1",
        "LD_PRELOAD": f"{SHIM}:{PROGRAMS}/traps/libdying_libc.so:{DRIVER}:{RUNTIME}",
    }
    run = workspace.run([program("stuck"), "interrupted_in_report"], env)
    check(run)
    assert list(workspace.reports.iterdir()) == [run.report.path]
