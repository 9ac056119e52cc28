"""Files that cuwarden opens in the program's process: opening never waits, opens nothing but files, and
never takes the number of a standard stream."""

import os
import pty
import socket
import subprocess
import sys

import pytest

from reports import Report
from shimmed import COMMAND, PATIENCE_S, program, start

ALLOCATE = [program("allocate"), "3", "5000"]


# --- closed standard streams


@pytest.mark.parametrize("when", ["when_begun", "when_ended"])
@pytest.mark.parametrize("numbers", ["12", "0", "012"])
def test_output_to_closed_streams_reaches_no_file(workspace, numbers, when):
    for _ in range(20 if numbers == "12" else 5):
        run = workspace.run([program("streams"), numbers, when, "return"])
        assert run.returncode == 0
        assert list(workspace.work.iterdir()) == []
        run.report.check_leaks(run.last_line["leaked"])
        assert run.ledgers == []
        run.report.path.unlink()


def test_output_to_closed_streams_does_not_reach_the_ledger(workspace, cuwarden):
    for _ in range(20):
        run = workspace.run([program("streams"), "12", "when_begun", "kill"])
        (ledger,) = run.ledgers
        done = cuwarden("recover", ledger)
        assert (done.returncode, done.stderr) == (0, "")
        (path,) = workspace.reports.iterdir()
        Report.read(path).check_leaks(run.last_line["leaked"])
        path.unlink()


def test_a_program_that_was_started_without_standard_streams_gets_its_report(workspace):
    shell = 'exec "$@" <&- >&- 2>&-'
    run = workspace.run(["/bin/sh", "-c", shell, "sh", *ALLOCATE])
    assert run.returncode == 0
    assert run.report["leaks"]["count"] == 3


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_the_command_runs_a_program_with_the_streams_that_it_was_given(workspace, cuwarden, closed):
    streams = "import os; print(os.listdir('/proc/self/fd'), file=open('streams', 'w'))"
    shell = f'exec "$@" {closed}'

    def streams_of(*command):
        workspace.run(["/bin/sh", "-c", shell, "sh", *command], shim=False)
        path = workspace.work / "streams"
        text = path.read_text()
        path.unlink()
        return text

    child = [sys.executable, "-c", streams]
    assert streams_of(COMMAND, "run", "--", *child) == streams_of(*child)


# --- files that are written


@pytest.fixture
def fifo(tmp_path):
    path = tmp_path / "fifo"
    os.mkfifo(path)
    return path


def test_a_log_that_is_a_fifo_without_reader_holds_nothing_up_and_gives_one_line(run_both, fifo):
    run = run_both(ALLOCATE, {"CUWARDEN_LOG": f"debug:{fifo}", "CUWARDEN_STACK_DEPTH": "deep"})
    line = run.said_about("CUWARDEN_LOG", str(fifo))
    assert "no plain file" in line and "/dev/stderr" in line and "Messages go to stderr" in line
    run.said_about("CUWARDEN_STACK_DEPTH")
    assert run.report["leaks"]["count"] == 3


def test_a_fifo_with_a_reader_is_no_log_either(run_both, fifo):
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    try:
        run = run_both(ALLOCATE, {"CUWARDEN_LOG": f"warn:{fifo}", "CUWARDEN_STACK_DEPTH": "deep"})
        assert os.read(reader, 100) == b""
    finally:
        os.close(reader)
    run.said_about("CUWARDEN_LOG", str(fifo))
    run.said_about("CUWARDEN_STACK_DEPTH")


def test_a_log_that_becomes_a_fifo_while_the_program_runs_holds_nothing_up(workspace):
    log = workspace.folder / "cuwarden.log"
    process = start(workspace, [program("ending"), "log_becomes_fifo", log],
                    {"CUWARDEN_LOG": f"debug:{log}"}, stderr=-1)  # fmt: skip
    _, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0
    lines = [line for line in stderr.splitlines() if "CUWARDEN_LOG" in line]
    assert len(lines) == 1 and str(log) in lines[0], stderr
    assert "report written to" in stderr
    assert log.is_fifo()


def test_messages_go_to_nothing_but_a_file(run_both, tmp_path):
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(tmp_path / "socket"))
    for path in (tmp_path, tmp_path / "socket", "/dev/full", "/dev/fd/77", tmp_path / "no/folder"):
        run = run_both(ALLOCATE, {"CUWARDEN_LOG": f"warn:{path}", "CUWARDEN_STACK_DEPTH": "deep"})
        run.said_about("CUWARDEN_LOG", str(path))
        run.said_about("CUWARDEN_STACK_DEPTH")
    listening.close()
    with open(os.devnull) as for_reading:
        path = f"/dev/fd/{for_reading.fileno()}"
        words = {"CUWARDEN_LOG": f"warn:{path}", "CUWARDEN_STACK_DEPTH": "deep"}
        run = run_both(ALLOCATE, words, pass_fds=[for_reading.fileno()])
        run.said_about("CUWARDEN_LOG", path, "opened for reading")
        run.said_about("CUWARDEN_STACK_DEPTH")


def test_an_unusable_log_gives_a_line_even_if_there_is_no_other_message(run_both, fifo):
    run = run_both(ALLOCATE, {"CUWARDEN_LOG": f"warn:{fifo}"})
    assert run.said == [run.said_about("CUWARDEN_LOG", str(fifo))]


def test_the_log_can_go_to_a_stream_by_its_name(workspace):
    wrong = {"CUWARDEN_STACK_DEPTH": "deep"}
    for name in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"):
        run = workspace.run(ALLOCATE, {"CUWARDEN_LOG": f"warn:{name}", **wrong})
        assert "cuwarden: CUWARDEN_STACK_DEPTH" in run.stdout and run.said == []
    run = workspace.run(ALLOCATE, {"CUWARDEN_LOG": "warn:/dev/stderr", **wrong})
    run.said_about("CUWARDEN_STACK_DEPTH")
    run = workspace.run(ALLOCATE, {"CUWARDEN_LOG": "warn:/dev/null", **wrong})
    assert run.said == []


def test_the_log_can_go_to_a_descriptor_that_the_program_was_given(workspace):
    reading, writing = os.pipe()
    wrong = {"CUWARDEN_STACK_DEPTH": "deep"}
    run = workspace.run(
        ALLOCATE, {"CUWARDEN_LOG": f"warn:/dev/fd/{writing}", **wrong}, pass_fds=[writing]
    )
    os.close(writing)
    with os.fdopen(reading) as pipe:
        assert "cuwarden: CUWARDEN_STACK_DEPTH" in pipe.read()
    assert run.said == []


def test_a_log_at_the_file_size_limit_ends_no_program(workspace):
    # stderr is a file at its size limit: a write to it raises SIGXFSZ, which would end the program.
    line = 'ulimit -f 0; exec "$@" 2>"$0"'
    run = workspace.run(["sh", "-c", line, workspace.folder / "errors", *ALLOCATE],
                    {"CUWARDEN_STACK_DEPTH": "deep"})  # fmt: skip
    assert run.returncode == 0
    assert (workspace.folder / "errors").read_text() == ""


def test_the_command_tells_the_status_where_sigchld_is_ignored(workspace):
    words = ["env", "--ignore-signal=CHLD", COMMAND, "run", "--", "sh", "-c", "exit 7"]
    done = subprocess.run(words, cwd=workspace.folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 7, done.stderr


def test_the_log_can_go_to_a_terminal(workspace):
    ours, theirs = pty.openpty()
    wrong = {"CUWARDEN_STACK_DEPTH": "deep"}
    run = workspace.run(ALLOCATE, {"CUWARDEN_LOG": f"warn:{os.ttyname(theirs)}", **wrong})
    assert run.said == []
    assert "cuwarden: CUWARDEN_STACK_DEPTH" in os.read(ours, 4096).decode()
    os.close(ours)
    os.close(theirs)


def test_the_list_of_reports_is_no_fifo(run_both, fifo):
    run = run_both(ALLOCATE, {"CUWARDEN_REPORT_LIST": str(fifo)})
    assert run.report["leaks"]["count"] == 3


# --- files that are read


@pytest.mark.parametrize(
    "arguments",
    [["report"], ["recover"], ["doctor", "--"], ["run", "--simulate", "2GiB", "--"]],
    ids=lambda words: words[0],
)
def test_the_command_does_not_wait_for_the_writer_of_a_fifo(cuwarden, fifo, arguments):
    done = cuwarden(*arguments, fifo)
    assert done.returncode != 0
    assert done.stderr != "" or done.stdout != ""
