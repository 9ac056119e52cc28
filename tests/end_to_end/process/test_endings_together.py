"""Several threads end the process at the same moment, for example eight whose cudaMalloc failed. One of
them writes the report, and the others do not end the process meanwhile."""

import signal

import pytest

from shimmed import DRIVEN, program

ROUNDS = 20

# The ways to end, the number of threads, and the statuses with which the bare program may end.
TOGETHER = [
    ("exit", 2, {1}),
    ("exit", 8, {1}),
    ("exit", 40, {1}),
    ("return+exit", 8, {1}),
    ("handler", 8, {1}),
    ("quick_exit", 8, {1}),
    ("_exit", 8, {1}),
    ("exit+quick_exit", 8, {1}),
    ("exit+_exit", 8, {1}),
    ("exit+abort", 8, {1, -signal.SIGABRT}),
    ("pthread_exit+exit", 8, {1}),
]


@pytest.mark.parametrize("ways, threads, statuses", TOGETHER)
def test_threads_that_end_the_process_at_once_leave_one_whole_report_with_names(
    workspace, ways, threads, statuses
):
    for _ in range(ROUNDS):
        run = workspace.run([program("ending_together"), ways, str(threads)])
        assert run.returncode in statuses
        assert run.said == []
        assert run.report["leaks"]["count"] == 21
        named = {frame["function"] for frame in run.report["frames"]}
        assert "main" in named, "the report that was to have names is not there"
        assert run.ledgers == []
        assert [path.name for path in workspace.reports.iterdir()] == [run.report.path.name]
        run.report.path.unlink()


def test_threads_that_run_through_quick_exit_in_step_leave_one_whole_report(workspace):
    run = workspace.run_both([program("ending_in_step"), "16"])
    assert run.returncode == 1
    assert run.said == []
    assert run.report["leaks"]["count"] == 1
    assert run.report["process"]["end_reason"] == "quick_exit"
    assert run.report["process"]["exit_status"] == 1


def test_a_thread_ends_the_process_although_the_end_that_has_begun_waits_for_it(workspace):
    run = workspace.run_both([program("joined_at_end")], preload=DRIVEN)
    assert run.returncode == 3
    assert run.said == []
    assert run.report["leaks"]["count"] == 1
    assert run.report["process"]["exit_status"] == 3


# The driver's exit handler takes time. Memory that libc frees is overwritten (MALLOC_PERTURB_), so a
# thread that goes on with freed exit handlers fails.
LIKE_A_DEVICE = {"CUWARDEN_SIM_END_TIME": "20ms", "MALLOC_PERTURB_": "165"}


@pytest.mark.parametrize(
    "ways", ["exit", "return+exit", "handler", "pthread_exit+exit", "exit+quick_exit"]
)
def test_threads_end_the_process_while_one_is_in_the_drivers_exit_handler(workspace, ways):
    for _ in range(ROUNDS):
        # At the very same moment glibc alone ends such a process by SIGSEGV, in a run of a hundred.
        run = workspace.run([program("ending_together"), ways, "8", "100"], LIKE_A_DEVICE)
        assert run.returncode == 1
        assert run.said == []
        assert run.report["leaks"]["count"] == 21
