"""A signal such as that of Ctrl-C leaves no unfinished file and no line of progress behind."""

import os
import pty
import signal
import subprocess
import time

import pytest

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


def start(installed, tmp_path, *words, **how):
    return subprocess.Popen(
        [installed / "cuwarden", *map(str, words)], cwd=tmp_path, env={**os.environ, "TERM": "xterm"}, **how
    )


def wait_until(condition):
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


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
    process = start(installed, tmp_path, *words, pass_fds=[slow_input])
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
    process = start(installed, tmp_path, *words, pass_fds=[first, slow_input], stderr=of_command)
    os.close(of_command)
    os.close(first)
    time.sleep(1.1)  # a shorter work shows no progress
    with os.fdopen(writer, "wb") as pipe:
        pipe.write(sample_report.read_bytes())
    shown = b""
    while b"looking at reports: 1 of 2" not in shown:
        shown += os.read(terminal, 1024)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == -signal.SIGINT
    while not shown.endswith(b"left\r\x1b[K"):
        shown += os.read(terminal, 1024)
    os.close(terminal)
