"""With full disks, tight limits, and read-only, hidden or remote file systems, a program runs as without
the shim. The report says what is missing, or a line says why there is no report.

With LARGE_COUNTS=1 every value is tried; without it, some values are.
"""

import os
import resource
import sys

import pytest

from shimmed import DRIVER, PROGRAMS, RUNTIME, can_mount, program

LARGE = "LARGE_COUNTS" in os.environ
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

ALLOCATE = [program("allocate"), "5000", "256", "20"]


needs_mounts = pytest.mark.skipif(not can_mount(), reason="needs the right to mount")


def among_mounts(*commands, program=ALLOCATE):
    """Returns a command that runs the program in its own mount namespace, after the given commands."""
    return ["unshare", "-m", "/bin/sh", "-ec", "; ".join([*commands, "exec " + " ".join(program)])]


class Expected:
    """The output of the bare program, with which that of later runs is compared."""

    def __init__(self, workspace, command=ALLOCATE, **how):
        self.run = workspace.run(command, shim=False, **how)
        assert self.run.returncode == 0, self.run.stderr

    def check(self, run):
        assert run.stdout == self.run.stdout
        assert run.own_stderr == self.run.own_stderr
        assert run.returncode == 0, run.stderr

    def check_report(self, run):
        self.check(run)
        run.report.check_leaks(run.last_line["leaked"])
        return run.report


def reasons(report):
    tool = report["tool"]
    assert tool["complete"] == (not tool["reasons"])
    return "; ".join(tool["reasons"])


def ledger_reasons(report):
    """Returns the reasons of an incomplete ledger, without the missing time for source lines, which a busy
    machine may add.
    """
    return "; ".join(
        reason for reason in report["tool"]["reasons"] if "debug information" not in reason
    )


def take_away(run):
    """Removes the run's report, so that the next run in these folders has the only one."""
    for path in [*run.report_files, *run.ledgers]:
        path.unlink()


# --- full disks


@needs_mounts
def test_the_ledger_leaves_room_for_the_programs_own_files(workspace):
    disk = workspace.folder / "disk"
    disk.mkdir()
    work = [str(program("checkpoint")), str(disk / "checkpoint"), "60000"]
    command = among_mounts(f"mount -t tmpfs -o size=4m none {disk}", program=work)
    run = workspace.run(command, {"CUWARDEN_LEDGER_DIR": disk})
    assert (run.returncode, run.stdout) == (0, "written\n")
    assert run.report["leaks"]["count"] == 60000


@needs_mounts
def test_a_disk_that_fills_up_at_any_step_of_the_ledger_costs_no_record(workspace):
    expected = Expected(workspace)
    full = workspace.folder / "full"
    full.mkdir()
    whole = partly = memory = 0
    sizes = range(4, 1200, 4) if LARGE else [*range(4, 260, 24), 320, 400, 520, 700, 1100, 8000, 16000]
    for size in sizes:
        command = among_mounts(f"mount -t tmpfs -o size={size}k none {full}")
        run = workspace.run(command, {"CUWARDEN_LEDGER_DIR": full})
        why = ledger_reasons(expected.check_report(run))
        whole += not why
        partly += "disk filled up" in why
        memory += "no folder" in why
        assert not why or "set CUWARDEN_LEDGER_DIR" in why
        assert len(run.said) <= 1  # the line says that there is no ledger in this folder
        take_away(run)
    assert whole and partly, (whole, partly, memory)


@needs_mounts
def test_if_the_report_does_not_fit_on_the_disk_a_line_says_what_to_do(workspace):
    expected = Expected(workspace)
    full = workspace.folder / "full"
    full.mkdir()
    # The files are listed before the mount namespace ends, and the file system with it.
    keep = workspace.folder / "kept"
    keep.mkdir()
    script = f"{' '.join(ALLOCATE)}; find {full} -name '*.json' -exec cp {{}} {keep} ';'"
    written = lost = 0
    for size in range(4, 1200, 8) if LARGE else [4, 20, 68, 200, 400, 700, 1100]:
        run = workspace.run(
            [
                "unshare", "-m", "/bin/sh", "-ec",
                f"mount -t tmpfs -o size={size}k none {full}; {script}",
            ],
            {"CUWARDEN_LEDGER_DIR": full, "CUWARDEN_REPORT": full / "report.json"},
        )  # fmt: skip
        expected.check(run)
        reports = list(keep.iterdir())
        if reports:
            written += 1
            reports[0].unlink()
        else:
            lost += 1
            assert "set CUWARDEN_REPORT" in run.said_about("no space left", str(full))
    assert written and lost


# --- limits


def limited(which, value):
    return lambda: resource.setrlimit(which, (value, value))


def test_no_limit_on_file_sizes_harms_the_program(workspace):
    expected = Expected(workspace)
    count = sum(fact["count"] for fact in expected.run.last_line["leaked"])
    values = [0, 1, 4095, 64 * KIB, MIB, 16 * MIB, 33 * MIB, 64 * MIB, 100 * MIB, 300 * MIB, 8 * GIB]
    if LARGE:
        values += [1 << n for n in range(34)] + [(1 << n) + 4097 for n in range(13, 34)]
    for value in values:
        run = workspace.run(ALLOCATE, preexec_fn=limited(resource.RLIMIT_FSIZE, value))
        expected.check(run)
        if not run.reports or lacks_names(run.report):
            check_written_without_names(run, count)
            assert value < 64 * KIB
        else:
            why = ledger_reasons(expected.check_report(run))
            assert not why or "no folder" in why
        take_away(run)


def lacks_names(report):
    return "functions and lines are missing" in reasons(report)


def check_written_without_names(run, count):
    """Checks a run whose report was too large, with function names or even without; a line says so."""
    assert "ulimit -f" in run.said_about("cannot write the report")
    for report in run.reports:
        assert "ulimit -f" in reasons(report)
        assert report["leaks"]["count"] == count
        assert {frame["function"] for frame in report["frames"]} == {None}


def test_a_limit_between_the_reports_sizes_without_and_with_names_leaves_the_report_without(workspace):
    # Names of C++ templates: more bytes than the sentence that says why they are missing.
    command = [program("memory_contract"), "--gtest_filter=Frees.in_the_thread_that_made_it"]
    without = whole = 0
    # Both sizes vary with the program's running time, by about as much as the names take. The size of this
    # run is the best guess at that of the next one.
    for attempt in range(100):
        unlimited = workspace.run(command)
        count = unlimited.report["leaks"]["count"]
        size = unlimited.report_files[0].stat().st_size
        take_away(unlimited)
        limit = 2 * size if whole == 0 else size - attempt % 8 * 150
        run = workspace.run(command, preexec_fn=limited(resource.RLIMIT_FSIZE, limit))
        assert run.returncode == 0, run.stderr
        if run.reports and not lacks_names(run.report):
            assert run.report["leaks"]["count"] == count
            whole += 1
        else:
            check_written_without_names(run, count)
            without += len(run.reports)
        take_away(run)
        if without and whole:
            break
    assert without and whole, (without, whole)


def smallest_address_space(workspace, env):
    """Returns the smallest limit of the address space with which the bare program runs."""
    low, high = MIB, 8 * GIB
    while high - low > MIB:
        middle = (low + high) // 2
        run = workspace.run(
            ALLOCATE, env, shim=False, preexec_fn=limited(resource.RLIMIT_AS, middle)
        )
        low, high = (low, middle) if run.returncode == 0 else (middle, high)
    return high


def test_no_limit_on_the_address_space_harms_the_program(workspace):
    env = {"CUWARDEN_SIM_MEMORY": "1GiB"}
    expected = Expected(workspace, env=env)
    smallest = smallest_address_space(workspace, env)
    # The shim itself needs some address space, including 16 MiB for the ledger.
    spare = [28 * MIB + n * MIB for n in (range(64) if LARGE else (0, 1, 2, 4, 8, 16, 32))]
    for limit in [smallest + n for n in [*spare, 128 * MIB, 512 * MIB, 2 * GIB, 16 * GIB]]:
        run = workspace.run(ALLOCATE, env, preexec_fn=limited(resource.RLIMIT_AS, limit))
        expected.check(run)
        leaks, why = run.report["leaks"], reasons(run.report)
        (fact,) = run.last_line["leaked"]
        assert (leaks["count"], leaks["bytes"]) == (fact["count"], fact["bytes"])
        # Looking up function names takes memory, too.
        if not why:
            run.report.check_leaks([fact])
        else:
            assert "functions" in why and "memory" in why, limit - smallest
        take_away(run)


DESCRIPTORS = """
import ctypes, os, resource, sys
rt, p = ctypes.CDLL("libcudart.so.13"), ctypes.c_void_p()
def allocate():
    assert rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(1000)) == 0
when, how = sys.argv[1:]
if when == "after": allocate()
if how == "all_used":
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    try:
        while True: os.dup(0)
    except OSError: pass
else:
    resource.setrlimit(resource.RLIMIT_NOFILE, (int(how), int(how)))
for _ in range(3): allocate()
print("done", flush=True)
"""


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("how", ["0", "1", "2", "3", "4", "5", "all_used"])
def test_without_descriptors_the_program_runs_and_a_line_says_what_to_do(workspace, when, how):
    run = workspace.run_both([sys.executable, "-c", DESCRIPTORS, when, how])
    assert run.stdout == "done\n"
    if run.reports:
        count = 4 if when == "after" else 3
        assert run.report["leaks"] | {"count": count, "bytes": count * 1000} == run.report["leaks"]
    else:
        assert "ulimit -n" in run.said_about("cannot", "the report")
        # A ledger in a file can still become a report; making one takes one descriptor.
        assert len(run.ledgers) == (1 if when == "after" or how in "45" else 0)


def test_a_program_without_descriptors_gets_true_lines_that_agree(workspace, cuwarden):
    script = [sys.executable, "-c", DESCRIPTORS, "before", "0"]
    folders = ["--report", workspace.reports / "x.json", "--ledger-dir", workspace.ledger]
    done = cuwarden("run", "--simulate", "1GiB", *folders, "--", *script)
    assert (done.returncode, done.stdout) == (0, "done\n")
    ledger, report, end = [line for line in done.stderr.splitlines() if line.startswith("cuwarden: ")]
    assert "CUWARDEN_LEDGER_DIR" in ledger and "too many open files" in ledger
    assert "unwritable" not in ledger and "network" not in ledger
    assert "cannot open the folder of the report" in report and "ulimit -n" in report
    assert "no report was found" in end and "limits (open files" in end
    assert "made no CUDA call" not in end


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change its root")
def test_a_ledger_folder_that_another_root_lacks_is_said_to_be_missing(workspace):
    arguments = "when, how = sys.argv[1:]\n"
    changes_root = "os.makedirs('jail'); os.chroot('jail'); os.chdir('/')\n"
    script = DESCRIPTORS.replace(arguments, arguments + changes_root)
    run = workspace.run([sys.executable, "-c", script, "before", "64"])
    assert run.stdout == "done\n"
    line = run.said_about("CUWARDEN_LEDGER_DIR", "no such file or folder")
    assert "unwritable" not in line
    assert len(run.said) == 1


# --- file systems


@needs_mounts
def test_a_shared_memory_folder_of_64_mib_is_enough(workspace):
    expected = Expected(workspace)
    command = among_mounts("mount -t tmpfs -o size=64m none /dev/shm")
    run = workspace.run(command, {"CUWARDEN_LEDGER_DIR": "/dev/shm"})
    assert ledger_reasons(expected.check_report(run)) == ""
    assert run.said == []


@needs_mounts
def test_where_the_reports_folder_is_read_only_a_line_says_so_and_the_ledger_stays(workspace):
    expected = Expected(workspace)
    closed = workspace.folder / "read_only"
    closed.mkdir()
    command = among_mounts(f"mount -t tmpfs -o ro none {closed}")
    run = workspace.run(
        command,
        {
            "CUWARDEN_REPORT": closed / "report.json",
            "CUWARDEN_LEDGER_DIR": None,
            "TMPDIR": workspace.ledger,
        },
    )
    expected.check(run)
    assert "set CUWARDEN_REPORT" in run.said_about("read-only", str(closed))
    assert len(run.said) == 1 and len(run.ledgers) == 1


@needs_mounts
def test_where_the_ledgers_folder_is_read_only_it_is_kept_elsewhere_and_said(workspace):
    expected = Expected(workspace)
    closed = workspace.folder / "read_only"
    closed.mkdir()
    command = among_mounts(f"mount -t tmpfs -o ro none {closed}")
    run = workspace.run(command, {"CUWARDEN_LEDGER_DIR": closed})
    assert ledger_reasons(expected.check_report(run)) == ""
    run.said_about("CUWARDEN_LEDGER_DIR", str(closed), str(workspace.reports))


@needs_mounts
def test_if_everything_is_read_only_the_program_runs_and_one_line_says_why_there_is_no_report(workspace):
    expected = Expected(workspace)
    command = among_mounts(
        # Each mount is changed by itself, in this namespace only.
        "cut -d' ' -f2 /proc/self/mounts | while read m; do "
        "mount -o remount,bind,ro $m 2>/dev/null || true; done",
        f"if touch {workspace.ledger}/writable 2>/dev/null; then exit 77; fi",
    )
    run = workspace.run(command, {"CUWARDEN_LEDGER_DIR": None})
    if run.returncode == 77:
        pytest.skip("the file systems here cannot be made read-only")
    expected.check(run)
    assert run.reports == [] and run.ledgers == []
    assert len(run.said) == 1
    run.said_about("read-only", "set CUWARDEN_REPORT")


@needs_mounts
@pytest.mark.parametrize("hidden", ["absent", "unreadable"])
def test_a_container_without_shared_memory_is_no_harm(workspace, hidden):
    expected = Expected(workspace)
    hide = {
        "absent": "mount -t tmpfs -o ro none /dev",
        "unreadable": "mount -t tmpfs -o ro,mode=000 none /dev/shm",
    }[hidden]
    command = among_mounts(hide)
    run = workspace.run(command, {"CUWARDEN_LEDGER_DIR": "/dev/shm"})
    assert ledger_reasons(expected.check_report(run)) == ""
    run.said_about("CUWARDEN_LEDGER_DIR=/dev/shm", str(workspace.reports))
    take_away(run)
    # Without the setting, the shim needs no shared-memory folder.
    run = workspace.run(command, {"CUWARDEN_LEDGER_DIR": None})
    assert ledger_reasons(expected.check_report(run)) == ""
    assert run.said == []


@pytest.mark.parametrize("kind", ["no_mapping", "nfs"])
def test_on_a_network_file_system_the_ledger_is_in_memory_and_it_is_said(workspace, kind):
    preload = (DRIVER, RUNTIME, PROGRAMS / "libnetwork_files.so")
    run = workspace.run_both(ALLOCATE, {"NETWORK_FILES": kind}, preload=preload)
    run.report.check_leaks(run.last_line["leaked"])
    why = reasons(run.report)
    assert "no folder" in why and "set CUWARDEN_LEDGER_DIR" in why
    assert "in memory" in run.said_about("CUWARDEN_LEDGER_DIR", "network file system")
    assert run.ledgers == []


def test_a_cancelled_thread_leaves_a_shared_simulated_device_whole(workspace, tmp_path):
    run = workspace.run_both([program("cancelled")], {"CUWARDEN_SIM_SHARED": tmp_path / "shared"})
    assert (run.returncode, run.said) == (0, [])
    assert run.report["leaks"]["count"] == 0


def test_a_shared_simulated_device_that_may_not_grow_is_a_line(workspace, tmp_path):
    def no_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    env = {"CUWARDEN_SIM_SHARED": tmp_path / "shared"}
    run = workspace.run([program("allocate")], env, shim=False, preexec_fn=no_files)
    assert run.returncode == 0
    assert "the devices are this process's alone" in run.stderr
