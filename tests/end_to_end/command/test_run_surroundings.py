"""`run` in surroundings that take something away: the environment, room for files, stack, /proc."""

import fcntl
import json
import os
import pty
import resource
import signal
import subprocess
import sys

import pytest

from reports import Report
from shimmed import COMMAND, PATIENCE_S, program, until


def simulated(workspace, *command):
    report = workspace.reports / "report.json"
    return ("run", "--simulate", "16GiB", "--report", report, "--", *command)


def test_a_program_that_clears_its_environment_keeps_the_settings_of_its_start(cuwarden, workspace):
    # Bare, the loader finds no simulated device's settings either, and takes the default.
    report = workspace.reports / "own.json"
    command = ["run", "--simulate", "2GiB", "--report", report, "--", program("clearing")]
    done = cuwarden(*command)
    assert done.returncode == 0, done.stderr
    assert "LEAKS: 4.9 KiB" in done.stderr
    assert Report.read(report)["leaks"]["bytes"] == 5000


def test_a_run_below_another_one_shows_the_report_once(cuwarden, workspace):
    inner = [COMMAND, "run", "--report", workspace.reports / "r.json", "--", program("allocate")]
    done = cuwarden("run", "--simulate", "2GiB", "--", *inner)
    assert done.returncode == 0, done.stderr
    assert "no report" not in done.stderr
    assert done.stderr.count("report: ") == 1


def test_run_says_that_files_may_not_grow(cuwarden, workspace):
    def no_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    done = cuwarden("run", "--", "true", preexec_fn=no_files)
    assert done.returncode == 0
    assert "ulimit -f" in done.stderr


def test_a_program_that_wants_no_report_and_may_write_no_file_goes_on(cuwarden, workspace):
    def no_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    options = ("run", "--simulate", "16GiB", "--report", "/dev/null", "--")
    done = cuwarden(*options, program("allocate"), preexec_fn=no_files)
    assert done.returncode == 0, done.stderr
    assert "CUDA call" not in done.stderr


@pytest.mark.parametrize("number", [signal.SIGALRM, signal.SIGXCPU, signal.SIGPWR, signal.SIGRTMIN])
def test_a_signal_for_run_reaches_the_program(workspace, tmp_path, number):
    environment = {**workspace.environment(shim=False), "TMPDIR": str(tmp_path)}
    command = [COMMAND, "run", "--", "sh", "-c", "echo begun; exec sleep 240"]
    run = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    assert run.stdout.readline() == "begun\n"
    run.send_signal(number)
    assert run.wait(PATIENCE_S) == 128 + number
    run.stdout.close()
    assert list(tmp_path.glob("cuwarden-run-*")) == []


def run_beside(workspace, script):
    """Starts a shell script under `run`, and waits for its first line, which is its pid."""
    command = [COMMAND, "run", "--", "sh", "-c", f"echo $$; {script}"]
    # In a process group without a parent in its session, SIGTSTP stops nothing.
    run = subprocess.Popen(
        command, env=workspace.environment(shim=False), stdout=subprocess.PIPE, text=True,
        process_group=0,
    )  # fmt: skip
    return run, int(run.stdout.readline())


def state_of(pid):
    return next(line for line in open(f"/proc/{pid}/status") if line.startswith("State:"))


def test_on_a_terminal_run_stops_and_goes_on_with_the_program(workspace):
    command = [COMMAND, "run", "--", "sh", "-c", "kill -STOP $$; exit 7"]
    run, terminal = pty.fork()
    if run == 0:
        os.execve(command[0], [str(word) for word in command], workspace.environment(shim=False))
    _, status = os.waitpid(run, os.WUNTRACED)
    assert os.WIFSTOPPED(status) and os.WSTOPSIG(status) == signal.SIGSTOP
    os.kill(run, signal.SIGCONT)
    _, status = os.waitpid(run, 0)
    assert os.waitstatus_to_exitcode(status) == 7
    os.close(terminal)


def test_without_a_terminal_run_waits_while_the_program_is_stopped(workspace):
    run, pid = run_beside(workspace, "sleep 240")
    run.send_signal(signal.SIGTSTP)
    until(lambda: "T (stopped)" in state_of(pid), run)
    run.send_signal(signal.SIGCONT)
    until(lambda: "T (stopped)" not in state_of(pid), run)
    os.kill(pid, signal.SIGSTOP)
    until(lambda: "T (stopped)" in state_of(pid), run)
    os.kill(pid, signal.SIGCONT)
    run.terminate()
    assert run.wait(PATIENCE_S) == 128 + signal.SIGTERM
    run.stdout.close()


def test_the_program_is_killed_together_with_run(workspace):
    run, pid = run_beside(workspace, "exec sleep 240")
    run.kill()
    run.wait(PATIENCE_S)
    until(lambda: not os.path.exists(f"/proc/{pid}") or "Z (zombie)" in open(f"/proc/{pid}/status").read())
    run.stdout.close()


def test_a_signal_after_the_report_was_written_is_in_it(workspace):
    report = workspace.reports / "report.json"
    command = [COMMAND, *simulated(workspace, program("allocate"))]
    environment = {**workspace.environment(shim=False), "CUWARDEN_SIM_END_TIME": "200s"}
    run = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until(lambda: report.exists() and '"at": "exit"' in report.read_text().replace('":"', '": "'), run)
    run.terminate()
    _, errors = run.communicate(timeout=PATIENCE_S)
    assert run.returncode == 128 + signal.SIGTERM
    process = Report.read(report)["process"]
    assert (process["end_reason"], process["signal"], process["exit_status"]) == ("signal", signal.SIGTERM, None)
    assert "killed by signal 15" in errors


def test_a_script_without_an_interpreter_is_given_to_the_shell(cuwarden, workspace):
    script = workspace.work / "script"
    script.write_text('echo "$1 $#"; exit 5\n')
    script.chmod(0o755)
    done = cuwarden("run", "--", script, "one", "two")
    assert (done.returncode, done.stdout) == (5, "one 2\n"), done.stderr


def test_a_list_that_became_a_pipe_does_not_stop_run(workspace, tmp_path):
    environment = {**workspace.environment(shim=False), "TMPDIR": str(tmp_path)}
    script = 'rm "$CUWARDEN_REPORT_LIST" && mkfifo "$CUWARDEN_REPORT_LIST"'
    command = [COMMAND, "run", "--", "sh", "-c", script]
    assert subprocess.run(command, env=environment, timeout=PATIENCE_S).returncode == 0


def test_the_programs_environment_keeps_its_order_and_its_odd_entries(workspace):
    given = [b"B=2", b"A=1", b"no_value", b"B=3", b"=nameless"]
    twice = [b"LD_PRELOAD=", b"LD_PRELOAD="]
    script = (
        "import ctypes, sys\n"
        "array = lambda words: (ctypes.c_char_p * (len(words) + 1))(*words, None)\n"
        f"words = [{str(COMMAND)!r}.encode(), b'run', b'--', b'env']\n"
        f"ctypes.CDLL(None).execve(words[0], array(words), array({given + twice!r}))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if line in given] == given
    # The loader takes the last entry.
    (preload,) = [line for line in done.stdout.splitlines() if line.startswith(b"LD_PRELOAD=")]
    assert b"libcuwarden.so" in preload


def test_a_process_that_still_runs_is_said_to_do_so(cuwarden, workspace):
    os.mkfifo(workspace.work / "begun")
    script = '"$0" wait > begun 2>&1 & head -1 begun > /dev/null; echo $!'
    done = cuwarden(*simulated(workspace, "sh", "-c", script, program("dying")), cwd=workspace.work)
    os.kill(int(done.stdout), signal.SIGKILL)
    assert done.returncode == 0
    assert f"process {int(done.stdout)} is still running" in done.stderr
    assert "no report was found" not in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="run searches folders for reports if it is root")
def test_a_snapshot_of_the_program_is_no_report_of_its_end(cuwarden, workspace):
    os.mkfifo(workspace.work / "begun")
    script = (
        '"$0" wait > begun 2>&1 & pid=$!; head -1 begun > /dev/null; '
        f'{COMMAND} snapshot -o "$1" $pid > /dev/null; kill -9 $pid; wait $pid'
    )
    done = cuwarden(
        *simulated(workspace, "sh", "-c", script, program("dying"), workspace.reports / "now.json"),
        cwd=workspace.work,
    )
    assert (workspace.reports / "now.json").exists()
    reports = [line for line in done.stderr.splitlines() if line.startswith("report: ")]
    assert len(reports) == 1 and "now.json" not in reports[0], done.stderr
    assert "now.json: an earlier report of the process of " in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="run searches folders for reports if it is root")
def test_the_later_of_two_snapshots_counts_if_there_is_no_report_of_the_end(cuwarden, workspace):
    os.mkfifo(workspace.work / "begun")
    script = (
        '"$0" wait > begun 2>&1 & pid=$!; head -1 begun > /dev/null; '
        f'{COMMAND} snapshot -o "$1" $pid > /dev/null; {COMMAND} snapshot -o "$2" $pid > /dev/null; '
        'ledger=$(grep -o "/.*/cuwarden-ledger-.*" /proc/$pid/maps | head -1); '
        'kill -9 $pid; wait $pid; rm "$ledger"'
    )
    earlier, later = workspace.reports / "a.json", workspace.reports / "b.json"
    done = cuwarden(
        *simulated(workspace, "sh", "-c", script, program("dying"), earlier, later),
        cwd=workspace.work,
    )
    reports = [line for line in done.stderr.splitlines() if line.startswith("report: ")]
    assert len(reports) == 1 and "b.json" in reports[0], done.stderr
    assert "a.json: an earlier report of the process of " in done.stderr


def test_ctrl_c_ends_run_once_the_program_has_ended(workspace):
    """`run` waits for room in a pipe that no process reads."""
    read, write = os.pipe()
    os.write(write, b"x" * fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, 4096))
    options = simulated(workspace, "sh", "-c", f"{program('allocate')}; echo over")
    run = subprocess.Popen(
        [COMMAND, *map(str, options)], stdout=subprocess.PIPE, stderr=write,
        env=workspace.environment(shim=False, preload=()),
    )  # fmt: skip
    with run.stdout:
        assert b"over\n" in iter(run.stdout.readline, b"")
        until(lambda: open(f"/proc/{run.pid}/task/{run.pid}/children").read() == "")
        assert run.poll() is None
        # A signal may come before `run` has noted the program's end.
        until(lambda: run.send_signal(signal.SIGINT) or run.poll() is not None)
        assert run.returncode == -signal.SIGINT
    os.close(read)
    os.close(write)


def test_run_names_the_calls_that_it_cannot_know_of(cuwarden, workspace):
    done = cuwarden("run", "--simulate", "2GiB", "--", "env", "-i", program("allocate"))
    assert "as far as is known" in done.stderr and "env -i" in done.stderr


@pytest.mark.parametrize("kibibytes", [32, 64])
def test_the_command_works_with_a_small_stack_and_leaves_its_limit_to_the_program(
    cuwarden, workspace, kibibytes
):
    def little_stack():
        resource.setrlimit(resource.RLIMIT_STACK, (kibibytes << 10, kibibytes << 10))

    command = simulated(workspace, "sh", "-c", f"ulimit -s; {program('allocate')}")
    done = cuwarden(*command, preexec_fn=little_stack)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{kibibytes}\n") and "LEAKS" in done.stderr
    report = workspace.reports / "report.json"
    shown = cuwarden("report", report, preexec_fn=little_stack)
    assert (shown.returncode, shown.stderr) == (0, "") and "LEAKS" in shown.stdout


@pytest.fixture
def large_report(workspace):
    run = workspace.run([program("allocate")])
    report = dict(run.report.data)
    report["frames"] = report["frames"] + report["frames"][:1] * 300_000
    large = workspace.work / "large.json"
    large.write_text(json.dumps(report))
    return large


def set_limit_of_memory(mebibytes):
    resource.setrlimit(resource.RLIMIT_AS, (mebibytes << 20, mebibytes << 20))


@pytest.mark.parametrize("mebibytes", [100, 150, 200])
def test_run_ends_with_the_programs_status_if_memory_runs_out_before_the_reports_are_shown(
    cuwarden, workspace, large_report, mebibytes
):
    temporary = workspace.work / "temporary"
    temporary.mkdir()
    script = f"printf '{large_report}\\0' >> $CUWARDEN_REPORT_LIST; exit 7"
    env = {"TMPDIR": temporary}
    done = cuwarden("run", "--", "sh", "-c", script, env=env,
                    preexec_fn=lambda: set_limit_of_memory(mebibytes))  # fmt: skip
    assert done.returncode == 7, done.stderr
    assert "not enough memory" in done.stderr and len(done.stderr.splitlines()) == 1
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("mebibytes", [50, 100, 150, 200])
def test_a_report_that_needs_more_memory_than_is_allowed_gives_one_line(
    cuwarden, large_report, mebibytes
):
    done = cuwarden("report", large_report, preexec_fn=lambda: set_limit_of_memory(mebibytes))
    assert (done.returncode, done.stdout) == (2, "")
    assert "not enough memory" in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.mark.skipif(
    subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0,
    reason="no mount namespace can be made here",
)
def test_run_finds_the_shim_where_proc_is_not_mounted(workspace):
    script = 'umount -l /proc && exec "$0" "$@"'
    command = simulated(workspace, program("allocate"))
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, COMMAND, *map(str, command)],
        env=workspace.environment(shim=False, preload=()), capture_output=True, text=True,
        timeout=PATIENCE_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "LEAKS: 1.0 MiB" in done.stderr


def test_runs_options_are_the_shims_settings(cuwarden, workspace):
    options = {
        "--stack-depth": ("CUWARDEN_STACK_DEPTH", "17"),
        "--python": ("CUWARDEN_PYTHON", "off"),
        "--tensors": ("CUWARDEN_TENSORS", "on"),
        "--step-range": ("CUWARDEN_STEP_RANGE", "step *"),
        "--frameworks": ("CUWARDEN_FRAMEWORKS", "off"),
        "--libraries": ("CUWARDEN_LIBRARIES", "/mylib/,libmylib*"),
        "--reachability": ("CUWARDEN_REACHABILITY", "on"),
        "--suppressions": ("CUWARDEN_SUPPRESSIONS", f"{workspace.work}/known.supp"),
        "--pool": ("CUWARDEN_POOL", "on"),
        "--wait": ("CUWARDEN_WAIT", "1s"),
        "--sync-timeout": ("CUWARDEN_SYNC_TIMEOUT", "3s"),
        "--spill": ("CUWARDEN_SPILL", "25%:visible"),
        "--mesh": ("CUWARDEN_MESH", "off"),
        "--mesh-pause": ("CUWARDEN_MESH_PAUSE", "4ms"),
        "--symbol-time": ("CUWARDEN_SYMBOL_TIME", "5s"),
        "--log": ("CUWARDEN_LOG", f"debug:{workspace.work}/x.log"),
        "--ledger-dir": ("CUWARDEN_LEDGER_DIR", f"{workspace.work}/x"),
        "--report": ("CUWARDEN_REPORT", f"{workspace.work}/x-%p.json"),
        "--report-if": ("CUWARDEN_REPORT_IF", "leak,abnormal"),
        "--report-keep": ("CUWARDEN_REPORT_KEEP", "7"),
    }
    (workspace.work / "known.supp").write_text("leak:cache\n")
    words = [word for option, (_, value) in options.items() for word in (option, value)]
    shown = cuwarden("run", *words, "--", "/usr/bin/env").stdout.splitlines()
    assert {f"{name}={value}" for name, value in options.values()} <= set(shown), shown
    listed = {word.rstrip(",") for word in cuwarden("run", "--help").stdout.split() if word.startswith("--")}
    checks = {
        "--fail-on-leak", "--fail-on-new", "--fail-on-growth", "--baseline", "--write-baseline", "--error-exitcode",
        "--color",
    }  # fmt: skip
    assert listed - {"--", "-h,--help", "--help"} == {*options, "--simulate", "--html", *checks}
