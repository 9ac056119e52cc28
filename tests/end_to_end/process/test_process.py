"""In each way to live and to end, a process leaves its report and behaves as without the shim."""

import os
import resource
import signal
import subprocess
import sys

import pytest

from shimmed import COMMAND, DRIVEN, DRIVER, PATIENCE_S, killed_by, program

ENDINGS = [
    # word for the program, status as the parent sees it, end_reason, exit_status, signal
    ("return", 0, "exit", 0, None),
    ("return_7", 7, "exit", 7, None),
    ("exit", 0, "exit", 0, None),
    ("exit_9", 9, "exit", 9, None),
    ("exit_from_thread", 5, "exit", 5, None),
    ("quick_exit", 6, "quick_exit", 6, None),
    ("_exit", 8, "_exit", 8, None),
    ("_Exit", 11, "_exit", 11, None),
    ("abort", -signal.SIGABRT, "abort", None, signal.SIGABRT),
    ("throw", -signal.SIGABRT, "abort", None, signal.SIGABRT),
]


@pytest.mark.parametrize("how, status, reason, exit_status, number", ENDINGS)
def test_the_report_is_written_and_says_how_the_process_ended(
    run_both, how, status, reason, exit_status, number
):
    run = run_both([program("ending"), how])
    assert run.returncode == status
    process = run.report["process"]
    assert (process["end_reason"], process["exit_status"], process["signal"]) == (
        reason,
        exit_status,
        number,
    )
    run.report.check_leaks(run.last_line["leaked"])
    assert run.said == []
    assert run.ledgers == []


def test_the_report_says_which_process_it_is_about(run_shimmed):
    run = run_shimmed([program("ending"), "return"])
    process = run.report["process"]
    assert process["program"] == os.path.realpath(program("ending"))
    assert process["command_line"] == [program("ending"), "return"]
    assert process["parent"] == os.getpid()
    assert process["host"] == os.uname().nodename
    assert process["end_ns"] > 0
    assert run.report.path.name == f"ending-{process['pid']}.json"


def test_a_signal_handler_that_interrupted_malloc_may_end_the_process(run_shimmed):
    for _ in range(4):
        run = run_shimmed([program("ending"), "_exit_inside_malloc"])
        assert run.returncode == 8
        assert run.report["process"]["end_reason"] == "_exit"
        run.report.check_leaks(run.last_line["leaked"])


def test_memory_freed_by_a_static_destructor_is_no_leak(run_both):
    run = run_both([program("ending"), "static_destructor"])
    run.report.check_leaks(run.last_line["leaked"])
    assert run.report.totals()["device"]["frees"] == 1


@pytest.mark.parametrize("how, number", [("kill", signal.SIGKILL), ("segfault", signal.SIGSEGV)])
def test_after_a_fatal_signal_the_ledger_stays(run_both, how, number):
    run = run_both([program("ending"), how])
    assert killed_by(run, number)
    assert run.reports == []
    assert len(run.ledgers) == 1
    assert run.ledgers[0].stat().st_size > 0


def test_closing_every_descriptor_loses_nothing_and_harms_no_file_of_the_program(run_both):
    run = run_both([program("ending"), "close_descriptors"])
    assert run.returncode == 0
    assert sum(group["count"] for group in run.report.groups_of("allocate_three")) == 6
    assert run.report["leaks"]["count"] == 6


def test_a_program_that_closes_its_standard_streams_too_gets_its_report(run_both):
    run = run_both([program("ending"), "close_all_then_exit"])
    assert run.returncode == 0
    run.report.check_leaks(run.last_line["leaked"])


@pytest.mark.parametrize("path", ["relative.json", "folder/relative.json", None])
def test_the_reports_path_is_fixed_at_the_first_cuda_call(workspace, tmp_path, path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    run = workspace.run_both(
        [program("ending"), "change_directory", elsewhere], {"CUWARDEN_REPORT": path}
    )
    assert run.returncode == 0
    assert run.report.path.is_relative_to(workspace.work)
    assert list(elsewhere.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can drop privileges")
def test_a_report_that_may_no_longer_be_written_is_a_line_and_the_ledger_stays(workspace):
    workspace.reports.chmod(0o755)  # the folders above it are closed to other users
    run = workspace.run_both([program("ending"), "drop_privileges"])
    assert run.returncode == 0
    assert run.reports == []
    assert len(run.said) == 1 and str(workspace.reports) in run.said[0]
    assert len(run.ledgers) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can drop privileges")
def test_a_process_that_dropped_privileges_reports_where_it_still_may_write(shared):
    run = shared.run_both([program("ending"), "drop_privileges"])
    assert run.returncode == 0
    assert run.said == []
    run.report.check_leaks(run.last_line["leaked"])


def test_after_an_abort_that_its_handler_undid_recording_goes_on(run_both):
    run = run_both([program("ending"), "abort_and_go_on"])
    assert run.returncode == 5
    assert run.report["process"]["end_reason"] == "exit"
    assert run.report["leaks"]["count"] == 4
    assert run.ledgers == []


def test_allocations_after_an_undone_abort_survive_a_kill(run_both):
    run = run_both([program("ending"), "abort_go_on_and_kill"])
    assert killed_by(run, signal.SIGKILL)
    assert run.report["leaks"]["count"] == 3  # this is the report that the abort wrote
    assert len(run.ledgers) == 1


def test_a_handler_of_sigabrt_runs_once_and_leaves_no_ledger(run_both):
    run = run_both([program("ending"), "abort_in_handler"])
    assert killed_by(run, signal.SIGABRT)
    assert run.stdout == "handler 1\n"
    assert run.report["process"]["end_reason"] == "abort"
    assert run.ledgers == []


def test_run_makes_no_second_report_of_an_abort_that_has_one(workspace):
    env = {"CUWARDEN_LEDGER_DIR": workspace.ledger, "CUWARDEN_REPORT": workspace.reports / "r.json"}
    environment = workspace.environment(shim=False, preload=()) | {k: str(v) for k, v in env.items()}
    command = [COMMAND, "run", "--simulate", "1GiB", "--"]
    subprocess.run(
        [*command, program("ending"), "abort_killed_in_handler"],
        env=environment,
        cwd=workspace.work,
        capture_output=True,
        timeout=PATIENCE_S,
    )
    assert [path.name for path in workspace.reports.iterdir()] == ["r.json"]
    assert list(workspace.ledger.iterdir()) == []


def test_after_an_internal_failure_calls_go_through_and_it_is_said_once(run_both):
    run = run_both([program("jumping_handler")])
    assert run.stdout == "answered 2000\n"
    assert len(run.said) == 1 and "recording has stopped" in run.said[0]
    tool = run.report["tool"]
    assert tool["complete"] is False
    assert [reason for reason in tool["reasons"] if "recording stopped" in reason]
    assert run.report.totals()["device"]["allocations"] >= 3


def test_a_full_ledger_is_reported_once_and_keeps_its_records(run_both):
    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 20, 64 << 20))

    run = run_both([program("allocate"), "600000", "16"], preexec_fn=limited)
    assert len(run.said) == 1 and "the ledger is full" in run.said[0]
    assert run.report["tool"]["complete"] is False
    assert run.report["coverage"]["complete"] is True
    assert 100_000 < run.report["leaks"]["count"] < 600_000


def test_a_message_never_kills_a_program_whose_standard_error_has_no_reader(workspace):
    for fill in (False, True):
        reader, writer = os.pipe()
        if fill:  # the pipe has no reader and no room
            os.set_blocking(writer, False)
            while True:
                try:
                    os.write(writer, b"x" * 4096)
                except BlockingIOError:
                    break
            os.set_blocking(writer, True)
        else:
            os.close(reader)
        done = subprocess.run(
            [program("allocate"), "2"],
            env=workspace.environment({"CUWARDEN_STACK_DEPTH": "deep"}),
            cwd=workspace.work,
            stdout=subprocess.PIPE,
            stderr=writer,
            timeout=PATIENCE_S,
            restore_signals=True,
        )
        os.close(writer)
        if fill:
            os.close(reader)
        assert done.returncode == 0
        assert b"leaked" in done.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change its root")
def test_a_program_in_another_root_writes_nothing_there_and_keeps_its_ledger(workspace):
    jail = workspace.folder / "jail"
    jail.mkdir()
    run = workspace.run_both([program("ending"), "change_root", jail])
    assert run.returncode == 0
    assert list(jail.iterdir()) == [] and run.reports == []
    assert len(run.ledgers) == 1
    assert str(run.ledgers[0]) in run.said_about("chroot")


# --- memory


def kilobytes(run, name):
    (line,) = [line for line in run.stdout.splitlines() if line.startswith(name)]
    return int(line.split()[1])


@pytest.mark.parametrize("ledger", ["file", "memory"])
@pytest.mark.parametrize("how, most_rss", [("lock_before", 100_000), ("lock_after", 200_000)])
def test_a_program_that_locks_its_memory_does_not_lock_the_whole_ledger(
    run_bare, run_shimmed, how, most_rss, ledger
):
    # If the whole file were locked in memory, it would be a gigabyte at most. In the smallest case there
    # is no room for a file, and the ledger is in memory.
    largest = (1 << 30) if ledger == "file" else (32 << 20)

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))

    env = {"CUWARDEN_SIM_MEMORY": "1GiB"}  # the simulated GPU's memory is locked as well
    bare = run_bare([program("ending"), how], env, preexec_fn=limit)
    if bare.returncode == 4:
        pytest.skip("no right to lock memory")
    run = run_shimmed([program("ending"), how], env, preexec_fn=limit)
    assert run.returncode == bare.returncode == 0
    assert kilobytes(run, "VmRSS:") - kilobytes(bare, "VmRSS:") < most_rss
    if how == "lock_before":
        assert kilobytes(run, "VmLck:") - kilobytes(bare, "VmLck:") < most_rss
    assert run.report["leaks"]["count"] > 0


# --- threads


@pytest.mark.parametrize("how, count", [("cancelled_in_first_call", 3), ("cancelled", 6)])
def test_a_thread_that_is_to_be_cancelled_ends_where_the_program_says(run_both, how, count):
    run = run_both([program("ending"), how], preload=DRIVEN)
    assert run.stdout.startswith("still here\ncancelled: 1\n")
    assert run.report["leaks"]["count"] == count


# --- children


@pytest.mark.parametrize("how", ["fork_idle", "fork_idle_underscore_exit"])
def test_a_forked_child_without_cuda_makes_no_report(run_both, how):
    run = run_both([program("ending"), how])
    run.report.check_leaks(run.last_line["leaked"])
    assert run.ledgers == []


def test_a_forked_child_reports_its_own_allocations_and_not_its_parents(run_both):
    run = run_both([program("ending"), "fork_then_cuda"])
    assert run.returncode == 0
    assert len(run.reports) == 2
    child, parent = sorted(run.reports, key=lambda report: report["process"]["parent"] == os.getpid())
    parent.check_leaks(run.last_line["leaked"])
    assert child["process"]["parent"] == parent["process"]["pid"]
    assert child["leaks"]["count"] == 4
    assert child["leaks"]["bytes"] == 3 * (1 << 20) + 4096
    # The child's end is like its parent's: memory is searched for pointers, and the device is read.
    for report in (child, parent):
        assert report["pointer_search"]["is_complete"] is True
        assert [device["at"] for device in report["devices"]] == ["exit"]


def test_a_child_that_tries_cuda_after_its_parent_did_never_reports_the_parents_records(run_both):
    run = run_both([program("ending"), "fork_cuda_too_late"])
    parent = [r for r in run.reports if r["process"]["parent"] == os.getpid()]
    assert len(parent) == 1
    parent[0].check_leaks(run.last_line["leaked"])
    for report in run.reports:
        if report is not parent[0]:
            assert report["leak_groups"] == []
            assert all(total["allocations"] == 0 for total in report["totals"])


def test_a_program_started_by_fork_and_exec_makes_a_report_of_its_own(run_both):
    run = run_both([program("ending"), "fork_exec"])
    assert len(run.reports) == 2
    for report in run.reports:
        report.check_leaks(run.last_line["leaked"])


def test_a_vforked_child_whose_exec_fails_leaves_its_parents_recording_alone(run_both):
    run = run_both([program("ending"), "vfork_failed_exec"])
    assert run.stdout.startswith("child: 127\n")
    run.report.check_leaks(run.last_line["leaked"])
    assert run.report["process"]["end_reason"] == "exit"
    assert run.report.totals()["device"]["frees"] == 1


def test_a_vforked_childs_end_writes_no_report_and_leaves_the_ledger_to_its_parent(run_both):
    run = run_both([program("ending"), "vfork_failed_exec_and_kill"])
    assert killed_by(run, signal.SIGKILL)
    assert run.reports == []
    assert len(run.ledgers) == 1


def test_a_process_may_fork_while_another_thread_makes_its_first_cuda_call(run_both):
    for _ in range(3):
        run = run_both([program("ending"), "fork_during_first_call"])
        assert run.stdout == "0 children did not end well\n"


def test_a_vforked_childs_end_is_not_its_parents_where_a_driver_is_out_of_sight(run_both):
    run = run_both([program("ending"), "vfork_beside_dlmopen", DRIVER])
    assert run.stdout == f"loaded: 1, child: {5 << 8}\n"
    assert run.ledgers == []
    assert run.report["process"]["exit_status"] == 0


PYTHON = """
import ctypes, os, subprocess
rt = ctypes.CDLL("libcudart.so.13")
p = ctypes.c_void_p()
def allocate(size):
    assert rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(size)) == 0
allocate(1000)
try:
    subprocess.run(["/nonexistent/program"])
except FileNotFoundError:
    print("not found")
print(subprocess.run(["/bin/sh", "-c", "exit 3"]).returncode)
print(subprocess.run(["/bin/echo", "child"], capture_output=True, text=True).stdout.strip())
allocate(2000)
if os.fork() == 0:
    os._exit(0)
os.wait()
allocate(3000)
"""


def test_python_may_start_programs_and_fail_to(run_both):
    run = run_both([sys.executable, "-c", PYTHON])
    assert run.stdout.split() == ["not", "found", "3", "child"]
    assert run.report["leaks"] == {
        "bytes": 6000,
        "count": 3,
        "suppressed_bytes": 0,
        "released_by_context_bytes": 0,
    }
    assert run.report["process"]["exit_status"] == 0


def test_pythons_multiprocessing_children_report_for_themselves(run_both):
    code = (
        "import ctypes, multiprocessing as m\n"
        "def work(n):\n"
        "    rt, p = ctypes.CDLL('libcudart.so.13'), ctypes.c_void_p()\n"
        "    assert rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(n)) == 0\n"
        "children = [m.get_context('fork').Process(target=work, args=(n,)) for n in (100, 200)]\n"
        "[c.start() for c in children]\n"
        "[c.join() for c in children]\n"
        "print([c.exitcode for c in children])\n"
    )
    run = run_both([sys.executable, "-c", code])
    assert run.stdout == "[0, 0]\n"
    assert sorted(report["leaks"]["bytes"] for report in run.reports) == [100, 200]


def test_a_shell_that_only_starts_a_cuda_program_makes_no_report(run_both):
    run = run_both(["/bin/sh", "-c", f"/bin/true; {program('allocate')} 2 100; /bin/echo after"])
    assert run.stdout.endswith("after\n")
    assert run.report["process"]["program"].endswith("/allocate")
