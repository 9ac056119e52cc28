"""Programs that install a seccomp filter on themselves, which might kill them for a system call of
cuwarden's. Such a program ends as without the shim, and its report is made from its ledger."""

import ctypes
import errno
import struct

import pytest

from reports import Report
from shimmed import program


def confined(way, action, calls, when="after", where="main", end="return"):
    return [program("confined"), way, action, calls, when, where, end]


KILLING = [
    confined("prctl", "kill", "openat"),
    confined("syscall", "kill", "openat"),
    confined("syscall", "kill", "getpid,gettid,fcntl,mprotect,madvise,rt_sigprocmask"),
    confined("raw", "kill", "openat"),
    confined("raw", "kill", "renameat2,getcwd"),
    confined("tsync", "kill", "openat", where="thread"),
    confined("prctl", "kill", "few"),
    confined("syscall", "kill", "few", end="_exit"),
    confined("prctl", "kill", "openat", end="fork"),
    confined("prctl", "kill", "few", where="thread", end="exit"),
    confined("syscall", "1", "openat,ftruncate,madvise"),
]


def name(command):
    return "-".join(command[1:])


def only_path(folder):
    (path,) = folder.iterdir()
    return path


def recovered(workspace, cuwarden, ledger):
    done = cuwarden("recover", ledger)
    assert (done.returncode, done.stderr) == (0, "")
    assert not ledger.exists()
    return Report.read(only_path(workspace.reports))


def reasons(report):
    return " ".join(report["records"]["reasons"] + report["tool"]["reasons"])


def is_said(run):
    return run.said_about("seccomp", "cuwarden recover")


@pytest.mark.parametrize("command", KILLING, ids=name)
def test_a_confined_program_ends_as_ever_and_leaves_its_ledger_to_recover(
    workspace, cuwarden, command
):
    run = workspace.run_both(command)
    assert run.returncode == 0
    assert run.reports == []
    if "raw" not in command:
        assert str(run.ledgers[0]) in is_said(run)
    report = recovered(workspace, cuwarden, *run.ledgers)
    report.check_leaks(run.last_line["leaked"])
    assert report["process"]["end_reason"] == ("_exit" if "_exit" in command else "exit")
    assert report["process"]["exit_status"] == 0
    assert report["records"]["complete"] and report["tool"]["complete"]
    assert report.totals()["device"]["allocations"] == 4


@pytest.mark.parametrize("command", KILLING, ids=name)
def test_run_makes_the_report_of_a_confined_program(workspace, cuwarden, command):
    folders = ["--report", workspace.reports / "%e-%p.json", "--ledger-dir", workspace.ledger]
    done = cuwarden("run", "--simulate", "2GiB", *folders, "--", *command)
    assert done.returncode == 0, done.stderr
    report = Report.read(only_path(workspace.reports))
    assert report["leaks"]["count"] == 3
    assert report["process"]["exit_status"] == 0
    assert str(report.path) in done.stderr
    assert list(workspace.ledger.iterdir()) == []


def test_in_strict_mode_a_program_ends_as_ever_and_leaves_its_ledger(workspace, cuwarden):
    run = workspace.run_both(confined("strict", "kill", "all", end="raw"))
    assert run.returncode == 0
    is_said(run)
    recovered(workspace, cuwarden, *run.ledgers).check_leaks(run.last_line["leaked"])


def test_a_confined_thread_does_not_cost_the_process_its_report(run_both):
    run = run_both(confined("prctl", "kill", "openat", where="thread"))
    run.report.check_leaks(run.last_line["leaked"])
    assert run.ledgers == []
    is_said(run)


@pytest.mark.parametrize("way", ["prctl", "syscall", "raw"])
def test_a_filter_from_before_the_first_call_changes_nothing(run_both, way):
    run = run_both(confined(way, "1", "execve", when="before"))
    assert run.said == []
    run.report.check_leaks(run.last_line["leaked"])
    assert run.ledgers == []


EARLY = ["renameat2,getcwd", "ftruncate,fallocate", "flock", "getpid,gettid", "prctl,fcntl"]


@pytest.mark.parametrize("calls", EARLY)
@pytest.mark.parametrize("way", ["prctl", "syscall", "tsync"])
def test_a_filter_from_before_the_first_call_kills_no_program(workspace, cuwarden, way, calls):
    run = workspace.run_both(confined(way, "kill", calls, when="before"))
    assert run.returncode == 0
    assert run.reports == []
    assert str(run.ledgers[0]) in is_said(run)
    report = recovered(workspace, cuwarden, *run.ledgers)
    report.check_leaks(run.last_line["leaked"])


@pytest.mark.parametrize("way", ["prctl", "syscall", "tsync"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_filter_that_allows_all_that_is_needed_changes_nothing(run_both, way, when):
    run = run_both(confined(way, "kill", "execve", when=when))
    assert run.said == []
    run.report.check_leaks(run.last_line["leaked"])
    assert run.ledgers == []


def test_questions_for_the_kernels_abilities_are_no_filters(run_both):
    run = run_both(confined("asking", "kill", "openat", when="before"))
    assert run.said == []
    assert run.ledgers == []


def sandboxed(workspace, cuwarden, situation, **env):
    run = workspace.run_both([program("sandboxed"), situation], {"CUWARDEN_SIM_MEMORY": "1GiB", **env})
    report = recovered(workspace, cuwarden, *run.ledgers) if run.ledgers else run.report
    report.check_leaks(run.last_line["leaked"])
    return run, report


@pytest.mark.parametrize(
    "env",
    [{}, {"CUWARDEN_POOL": "off"}, {"CUWARDEN_POOL": "on"}, {"CUWARDEN_WAIT": "1s"},
     {"CUWARDEN_SPILL": "512MiB"}, {"CUWARDEN_LOG": "debug"}],
    ids=str,
)
def test_requests_that_are_refused_in_a_confined_thread_ask_nothing_of_the_kernel(
    workspace, cuwarden, env
):
    run, report = sandboxed(workspace, cuwarden, "refused", **env)
    assert (run.returncode, run.stdout.splitlines()[0]) == (0, "errors: 9")
    assert sum(total["failures"] for total in report["totals"]) == 9
    reason = "turned_off" if env.get("CUWARDEN_POOL") == "off" else "confined_thread"
    assert reason in {row["reason"] for row in report["rungs_left_out"]}


def test_a_confined_thread_is_not_served_by_the_pool(workspace, cuwarden):
    run, report = sandboxed(workspace, cuwarden, "pieces", CUWARDEN_POOL="on")
    assert run.returncode == 0
    assert report.totals()["device"]["allocations"] == 43


def test_a_thread_that_is_made_behind_a_filter_is_recorded_without_a_system_call(workspace, cuwarden):
    run, report = sandboxed(workspace, cuwarden, "new_thread")
    assert run.returncode == 0
    assert report.totals()["device"]["allocations"] == 4


def test_a_thread_beside_a_confined_one_is_as_free_as_ever(workspace, cuwarden):
    run, report = sandboxed(workspace, cuwarden, "free_thread")
    assert (run.returncode, run.ledgers) == (0, [])
    assert report.totals()["device"]["allocations"] == 5


def test_the_end_of_a_vforked_child_is_not_that_of_the_confined_process(workspace, cuwarden):
    run, report = sandboxed(workspace, cuwarden, "vfork")
    assert run.returncode == -9
    assert report["process"]["end_reason"] is None
    assert report["process"]["exit_status"] is None


def test_a_forked_child_of_a_confined_thread_makes_its_calls_unrecorded(workspace, cuwarden):
    run, report = sandboxed(workspace, cuwarden, "fork")
    assert run.returncode == 0
    assert report.totals()["device"]["allocations"] == 3


def install_filter(calls, error):
    """Installs a filter that refuses system calls, given by their numbers, as containers come with some."""

    def instruction(code, jump_if, jump_else, value):
        return struct.pack("HBBI", code, jump_if, jump_else, value)

    errno_answer, allow = 0x00050000, 0x7FFF0000
    filter_ = instruction(0x20, 0, 0, 0)  # loads the number of the system call
    for number in calls:
        filter_ += instruction(0x15, 0, 1, number) + instruction(0x06, 0, 0, errno_answer | error)
    filter_ += instruction(0x06, 0, 0, allow)
    buffer = ctypes.create_string_buffer(filter_)
    program_ = ctypes.create_string_buffer(
        struct.pack("HxxxxxxP", len(filter_) // 8, ctypes.addressof(buffer))
    )
    libc = ctypes.CDLL(None)
    libc.prctl(38, 1, 0, 0, 0)
    if libc.prctl(22, 2, program_) != 0:
        raise OSError("no filter")


def behind_filter(workspace, calls, error):
    return workspace.run_both(
        [program("allocate"), "3"],
        preexec_fn=lambda: install_filter([NUMBERS[call] for call in calls], error),
    )


NUMBERS = {
    "fcntl": 72, "fallocate": 285, "fchmod": 91, "flock": 73, "ftruncate": 77, "futex": 202,
    "getcwd": 79, "getdents64": 217, "getpid": 39, "getrandom": 318, "gettid": 186,
    "execveat": 322, "kill": 62, "linkat": 265, "lseek": 8, "madvise": 28, "membarrier": 324,
    "mremap": 25, "nanosleep": 35, "prctl": 157, "prlimit64": 302,
    "renameat2": 316, "rt_sigaction": 13, "rt_sigprocmask": 14, "statfs": 137, "statx": 332,
    "sysinfo": 99, "tgkill": 234, "uname": 63, "unlinkat": 263, "writev": 20,
}  # fmt: skip


# Calls that are not offered: by an old filter (EPERM), an old kernel (ENOSYS) or a file system.
@pytest.mark.parametrize(
    "calls, error",
    [
        ([call], errno.EPERM)
        for call in NUMBERS
        if call not in ("futex", "ftruncate", "madvise", "statfs")
    ]
    + [
        (calls, error)
        for calls in (["renameat2"], ["renameat2", "linkat"], ["flock"], ["fallocate"], ["fchmod"])
        for error in (errno.ENOSYS, errno.EOPNOTSUPP)
    ],
    ids=str,
)
def test_a_call_that_is_refused_from_the_start_costs_no_report(workspace, calls, error):
    run = behind_filter(workspace, calls, error)
    run.report.check_leaks(run.last_line["leaked"])
    assert (run.said, run.ledgers) == ([], [])


@pytest.mark.parametrize("error", [errno.EPERM, errno.ENOSYS], ids=str)
@pytest.mark.parametrize("call", ["ftruncate", "statfs"])
def test_without_a_call_for_the_ledgers_file_the_report_is_made_from_memory(workspace, call, error):
    run = behind_filter(workspace, [call], error)
    run.report.check_leaks(run.last_line["leaked"])
    assert "lost if the process is killed" in run.said_about("CUWARDEN_LEDGER_DIR")
    assert len(run.said) == 1


@pytest.mark.parametrize("error", [errno.EPERM, errno.EINVAL], ids=str)
def test_if_memory_cannot_be_marked_one_line_says_that_nothing_is_recorded(workspace, error):
    run = behind_filter(workspace, ["madvise"], error)
    assert "a seccomp filter" in run.said_about("nothing is recorded", "MADV_WIPEONFORK")
    assert (len(run.said), run.reports, run.ledgers) == (1, [], [])


def test_in_a_container_with_a_filter_all_is_as_ever(workspace):
    run = workspace.run_both([program("allocate"), "3"], preexec_fn=lambda: install_filter([NUMBERS["execveat"]], 1))
    assert run.said == []
    run.report.check_leaks(run.last_line["leaked"])
    assert run.ledgers == []


def test_a_filter_that_the_kernel_refuses_changes_nothing(run_both):
    run = run_both(confined("failing", "kill", "openat"))
    run.report.check_leaks(run.last_line["leaked"])
    assert run.ledgers == []


def test_growth_that_a_filter_refuses_is_said_with_the_operation_and_its_error(workspace, cuwarden):
    run = workspace.run(confined("raw_on_top", "1", "mprotect", when="after_many"))
    assert run.returncode == 0
    line = run.said_about("the ledger cannot grow")
    assert "allow access to memory (operation not permitted)" in line
    assert not any("full" in said for said in run.said)
    assert "allow access to memory (operation not permitted)" in reasons(run.report)


def test_where_a_filter_refuses_both_ways_of_growth_the_report_names_them(workspace):
    run = workspace.run(confined("raw_on_top", "1", "madvise,fallocate", when="after_many"))
    assert run.returncode == 0
    assert "allocate room in its file (operation not permitted)" in reasons(run.report)
    assert run.report["leaks"]["count"] == 20_003


def test_an_old_kernels_way_of_growth_stands_in_for_a_refused_madvise(workspace):
    run = workspace.run(confined("raw_on_top", "1", "madvise", when="after_many"))
    assert run.report["leaks"]["count"] == 20_003
    assert reasons(run.report) == ""
