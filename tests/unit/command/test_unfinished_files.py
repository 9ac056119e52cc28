"""A signal such as that of Ctrl-C leaves no unfinished file and no line of progress behind."""

import json
import os
import pty
import select
import signal
import subprocess
import time

import pytest

from conftest import built, in_long_seconds

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


def start(installed, tmp_path, *words, variables=None, **how):
    environment = {**os.environ, "TERM": "xterm", **(variables or {})}
    return subprocess.Popen([installed / "cuwarden", *map(str, words)], cwd=tmp_path, env=environment, **how)


def wait_until(condition):
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def read_until(terminal, is_enough):
    """Reads from the terminal until is_enough() holds of what was read, and returns that."""
    read = b""
    end = time.monotonic() + 30
    while not is_enough(read):
        assert select.select([terminal], [], [], max(end - time.monotonic(), 0))[0], read
        read += os.read(terminal, 1024)
    return read


def unfinished(folder):
    return [path.name for path in folder.iterdir() if ".new-" in path.name]


@pytest.fixture
def slow_input():
    """A pipe whose reading end is a report that is never whole."""
    reader, writer = os.pipe()
    yield reader
    os.close(reader)
    os.close(writer)


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_a_signal_removes_the_unfinished_file_and_ends_the_command(installed, tmp_path, slow_input, number):
    out = tmp_path / "out.jsonl"
    out.write_text("as before")
    words = ("export", "--format", "jsonl", "-o", out, f"/dev/fd/{slow_input}")
    process = start(
        installed, tmp_path, *words, pass_fds=[slow_input],
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # nohup has SIGHUP ignored
    )  # fmt: skip
    wait_until(lambda: unfinished(tmp_path))
    process.send_signal(number)
    assert process.wait(30) == -number
    assert unfinished(tmp_path) == [] and out.read_text() == "as before"


def test_an_ignored_signal_stays_ignored(installed, tmp_path, sample_report):
    reader, writer = os.pipe()
    out = tmp_path / "out.jsonl"
    process = start(
        installed, tmp_path, "export", "--format", "jsonl", "-o", out, f"/dev/fd/{reader}",
        pass_fds=[reader], preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )  # fmt: skip
    os.close(reader)
    wait_until(lambda: unfinished(tmp_path))
    process.send_signal(signal.SIGHUP)
    with os.fdopen(writer, "wb") as pipe:
        pipe.write(sample_report.read_bytes())
    assert process.wait(30) == 0 and out.stat().st_size > 0


def test_a_signal_takes_the_line_of_progress_away(installed, tmp_path, sample_report, slow_input):
    first, writer = os.pipe()
    terminal, of_command = pty.openpty()
    words = ("merge", "-o", tmp_path / "out.json", f"/dev/fd/{first}", f"/dev/fd/{slow_input}")
    how = {"pass_fds": [first, slow_input], "variables": in_long_seconds()}
    process = start(installed, tmp_path, *words, stderr=of_command, **how)
    os.close(of_command)
    os.close(first)
    with os.fdopen(writer, "wb") as pipe:
        pipe.write(sample_report.read_bytes())
    shown = read_until(terminal, lambda shown: b"looking at reports: 1 of 2" in shown)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == -signal.SIGINT
    read_until(terminal, lambda more: (shown + more).endswith(b"left\r\x1b[K"))
    os.close(terminal)


def interrupted_in(call, **variables):
    """Variables with which SIGTERM comes within this call of the command."""
    return {"LD_PRELOAD": str(built("CUWARDEN_INTERRUPTING_CALLS")), "INTERRUPTED_CALL": call, **variables}


def leaving_ledger(leave_ledger, folder, how):
    """A process that makes a ledger in the new folder, and then ends or sleeps."""
    folder.mkdir()
    listed = folder.with_name("list")
    listed.touch()
    variables = {**os.environ, "CUWARDEN_REPORT_LIST": str(listed)}
    return subprocess.Popen([leave_ledger, folder, folder / "report.json", how], env=variables)


def test_a_signal_removes_the_unfinished_report_of_a_ledger(cuwarden, leave_ledger, tmp_path):
    folder = tmp_path / "folder"
    leaving_ledger(leave_ledger, folder, "kill").wait(30)
    (ledger,) = folder.iterdir()
    result = cuwarden("recover", ledger, **interrupted_in("renameat2"))
    assert result.returncode == -signal.SIGTERM
    assert list(folder.iterdir()) == [ledger]
    assert cuwarden("recover", ledger).returncode == 0 and (folder / "report.json").exists()


def test_a_signal_removes_the_unfinished_snapshot(cuwarden, leave_ledger, tmp_path):
    folder, out = tmp_path / "folder", tmp_path / "out"
    out.mkdir()
    with leaving_ledger(leave_ledger, folder, "sleep") as process:
        try:
            wait_until(lambda: list(folder.iterdir()))
            (ledger,) = folder.iterdir()
            words = ("snapshot", ledger, "--output", out / "snapshot.json")
            wait_until(lambda: cuwarden(*words).returncode == 0)
            (out / "snapshot.json").unlink()
            result = cuwarden(*words, **interrupted_in("renameat2"))
        finally:
            process.kill()
    assert result.returncode == -signal.SIGTERM and list(out.iterdir()) == []


def test_a_signal_removes_the_unfinished_redacted_copy(cuwarden, sample_report, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    words = ("report", "--redact", "-o", out / "copy.json", sample_report)
    assert cuwarden(*words, **interrupted_in("linkat")).returncode == -signal.SIGTERM
    assert list(out.iterdir()) == []
    # Without links, the name is taken first. The signal waits until the file is whole.
    assert cuwarden(*words, **interrupted_in("renameat", REFUSE_LINKS="1")).returncode == -signal.SIGTERM
    assert [path.name for path in out.iterdir()] == ["copy.json"]
    assert json.loads((out / "copy.json").read_text())["redacted"] is True


def test_a_signal_leaves_a_file_that_another_process_made(installed, tmp_path, sample_report):
    out = tmp_path / "out.json"
    process = start(
        installed, tmp_path, "merge", "-o", out, sample_report,
        preexec_fn=lambda: (tmp_path / f"out.json.new-{os.getpid()}").write_text("of another process"),
        stderr=subprocess.PIPE, variables=interrupted_in("openat"),
    )  # fmt: skip
    assert process.communicate(timeout=30)[1] == b"" and process.returncode == -signal.SIGTERM
    (path,) = (tmp_path / name for name in unfinished(tmp_path))
    assert path.read_text() == "of another process"
