"""Signals, jumps, cancellations and children that meet cuwarden in the middle of its own work: the
program behaves as without the shim."""

import os
import pty
import select
import shutil
import signal
import subprocess
import termios

import pytest

from shimmed import DRIVEN, program

LONGEST_S = 60


@pytest.mark.parametrize("how", ["_exit", "abort", "refused"])
def test_a_handler_on_a_signal_stack_is_not_overwritten_by_the_next_signal(workspace, how):
    run = workspace.run_both([program("on_signal_stack"), how])
    assert run.returncode == (-signal.SIGABRT if how == "abort" else 7)
    assert run.report["leaks"]["count"] == 50


def test_a_stack_goes_on_below_a_signal_handler_at_the_call_of_a_null_pointer(workspace):
    run = workspace.run_both([program("null_call")])
    (group,) = run.report["leak_groups"]
    names = [name for name, _ in run.report.functions(group)]
    wanted = ["allocate_in_handler", "call_missing", "main"]
    assert [name for name in names if name in wanted] == wanted, names


def test_a_signal_stack_inside_the_threads_own_stack_is_not_overrun(workspace):
    run = workspace.run_both([program("local_signal_stack")])
    assert run.stdout == "kept\n"
    assert len(run.report["incidents"]) == 1


@pytest.mark.parametrize(
    ("where", "what"),
    [
        ("main", "first"),
        ("main", "refused"),
        ("thread", "first"),
        ("thread", "refused"),
        ("thread", "exit"),
    ],
)
def test_a_coroutines_stack_inside_the_threads_own_stack_is_not_overrun(workspace, where, what):
    run = workspace.run_both([program("coroutine_in_stack"), where, what])
    assert run.stdout == "kept\n"
    assert len(run.report["incidents"]) == (what == "refused")


@pytest.mark.parametrize("milliseconds", [1, 5, 20])
@pytest.mark.parametrize("what", ["exit", "abort", "request"])
def test_a_process_that_left_a_report_by_a_jump_goes_on_being_recorded(
    workspace, what, milliseconds
):
    # A thread of the driver's handles a signal that is blocked in the program's threads. The jump would
    # then go to another thread's stack.
    env = {"CUWARDEN_SIM_THREADS": "1"}
    # A thread that waited in vain for another one's report would wait for ever: no driven time passes.
    run = workspace.run([program("end_left"), what, milliseconds], env, preload=DRIVEN)
    assert (run.returncode, run.said) == (5, [])
    # On a slow machine the jump may leave exit() after a whole report was written. That one stays.
    *earlier, last = sorted(run.reports, key=lambda report: report["leaks"]["count"])
    assert [report["leaks"]["count"] for report in earlier] in ([], [30_000])
    assert last["leaks"]["count"] == 31_000
    assert last["process"]["exit_status"] == 5


# The recording starts within these times after the call begins.
@pytest.mark.parametrize("microseconds", [50, 100, 200, 400, 800, 1200])
@pytest.mark.parametrize("how", ["exit", "jump"])
def test_a_signal_handler_may_end_or_leave_the_first_call(workspace, how, microseconds):
    run = workspace.run([program("first_call"), how, microseconds])
    assert run.said == []
    # A slow machine may only reach the call after the signal.
    assert run.returncode == (6 if how == "exit" else 0)
    assert run.stdout == ("" if how == "exit" else "joined\n")


def test_a_collector_may_look_at_the_stack_of_a_thread_that_it_stops(workspace):
    for _ in range(3):
        run = workspace.run_both([program("collected")])
        assert run.stdout == "refused: cudaErrorMemoryAllocation\n"


def test_a_thread_that_left_calls_by_jumps_is_cancelled_at_its_own_cancellation_point(workspace):
    for _ in range(5):
        run = workspace.run([program("left_and_cancelled")])
        assert (run.returncode, run.stdout) == (0, "cancelled\n"), run.stderr


def test_a_vforked_child_that_confines_itself_does_not_confine_its_parent(workspace):
    run = workspace.run_both([program("children_in_memory"), "confined"])
    assert run.said == []
    assert run.report["leaks"]["count"] == 40
    assert run.report["process"]["end_reason"] == "exit"
    assert run.ledgers == []


def test_the_end_of_a_namespaces_first_process_is_not_the_end_of_another_one(workspace):
    unshare = [shutil.which("unshare"), "--user", "--map-root-user", "--pid", "--fork"]
    if unshare[0] is None or subprocess.run([*unshare, "true"], capture_output=True).returncode != 0:
        pytest.skip("no pid namespace can be made here")
    run = workspace.run_both([*unshare, program("children_in_memory"), "first_pid"])
    assert run.stdout == "the child's status is 127\n"
    assert run.report["leaks"]["count"] == 40
    assert run.report["process"]["end_reason"] == "exit"


def ends_in_background(workspace, env):
    """Runs a program as a background job of a terminal that stops jobs which write to it. Returns its
    status, or the signal that stopped it."""
    leader, terminal = pty.fork()
    if leader == 0:  # The session's leader, which has the terminal.
        attributes = termios.tcgetattr(0)
        attributes[3] |= termios.TOSTOP
        termios.tcsetattr(0, termios.TCSANOW, attributes)
        job = os.fork()
        if job == 0:
            os.setpgid(0, 0)
            nothing = os.open("/dev/null", os.O_RDWR)
            os.dup2(nothing, 0)
            os.dup2(nothing, 1)
            os.execve(program("allocate"), ["allocate", "4", "6000"], workspace.environment(env))
        status = os.waitpid(job, os.WUNTRACED)[1]
        if os.WIFSTOPPED(status):
            os.killpg(job, signal.SIGKILL)
        os._exit(128 if os.WIFSTOPPED(status) else os.waitstatus_to_exitcode(status))
    shown = b""
    while select.select([terminal], [], [], LONGEST_S)[0]:
        try:
            shown += os.read(terminal, 4096)
        except OSError:  # the leader has ended
            break
    return os.waitstatus_to_exitcode(os.waitpid(leader, 0)[1]), shown.decode()


def test_a_message_does_not_stop_a_background_job(workspace):
    status, shown = ends_in_background(workspace, {"CUWARDEN_POLL": "x"})
    assert status == 0
    assert "CUWARDEN_POLL" in shown


def test_a_long_message_does_not_wait_for_a_pipes_reader(workspace):
    process = subprocess.Popen(
        [program("allocate"), "4", "6000"],
        env=workspace.environment({"CUWARDEN_POOL": "x" * 100_000}),
        cwd=workspace.work,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.wait(LONGEST_S) == 0
    finally:
        process.kill()
    with process.stderr:
        assert process.stderr.read().startswith("cuwarden: ")


@pytest.mark.parametrize("who", ["thread", "handler"])
def test_names_are_looked_up_before_the_destructors_and_no_file_is_opened_after_them(workspace, who):
    # So the process ends soon after its destructors. Each file that is opened is a use of an object that
    # the destructors destroy.
    run = workspace.run([program("late_users"), who])
    assert run.returncode == 0, run.stderr
    assert "main" in {frame["function"] for frame in run.report["frames"]}
    assert run.report["leaks"]["count"] == 100


def test_abort_in_a_handler_of_abort_ends_as_without_the_shim(workspace):
    # The end of the stack ends the recursion.
    run = workspace.run([program("aborting"), "nested"])
    assert run.returncode == -signal.SIGSEGV
    assert run.report["leaks"]["count"] == 1


def test_aborts_that_a_handler_leaves_cost_one_second_at_most(workspace):
    run = workspace.run_both([program("aborting"), "jump"])
    assert run.report["process"]["end_reason"] == "exit"
    assert run.report["leaks"]["count"] == 201
    assert run.ledgers == []


def test_the_report_is_not_written_to_a_file_that_took_its_descriptor(workspace):
    # The program's descriptor may still be closed: cuwarden reads other files at the end, too, and cannot
    # know that their numbers belong to the program by now (docs/limits.md).
    for _ in range(6):
        mine = workspace.work / "mine"
        mine.unlink(missing_ok=True)
        workspace.run([program("closing_all"), mine])
        assert not mine.exists() or set(mine.read_text().split()) <= {"mine"}


def test_a_small_thread_takes_what_it_can_of_a_deep_stack(workspace):
    run = workspace.run_both([program("small_thread")], {"CUWARDEN_STACK_DEPTH": "1024"})
    assert run.report["leaks"]["count"] == 1
