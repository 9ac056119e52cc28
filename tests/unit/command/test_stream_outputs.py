"""Output to a named pipe or a device is written directly, as to standard output."""

import json
import os
import pathlib
import socket
import stat
import subprocess
import threading

import pytest

from conftest import in_long_seconds, one_line, terminal

COMMANDS = {
    "jsonl": ("export", "--format", "jsonl"),
    "junit": ("export", "--format", "junit"),
    "pprof": ("export", "--format", "pprof"),
    "merge": ("merge",),
    "redact": ("report", "--redact"),
}


def through(pipe, call):
    """Returns what is written to the pipe during the call, and the result of the call."""
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    result = call()
    reader.join(30)
    return got[0], result


@pytest.mark.parametrize("name", COMMANDS)
def test_a_named_pipe_gets_the_bytes_of_the_file(cuwarden, sample_report, tmp_path, name):
    words = COMMANDS[name]
    assert cuwarden(*words, "-o", tmp_path / "file", sample_report).returncode == 0
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    before = set(os.listdir(tmp_path))
    got, result = through(pipe, lambda: cuwarden(*words, "-o", pipe, sample_report))
    assert result.returncode == 0, result.stderr
    assert got == (tmp_path / "file").read_bytes() != b""
    assert set(os.listdir(tmp_path)) == before and pipe.is_fifo()


def test_a_baseline_goes_into_a_pipe_of_the_shell(installed, sample_report, tmp_path):
    script = '"$0" report --write-baseline >(cat >copy.txt) "$1" >/dev/null; wait $!'
    subprocess.run(["bash", "-c", script, installed / "cuwarden", sample_report], cwd=tmp_path, check=True)
    subprocess.run([installed / "cuwarden", "report", "--write-baseline", "file.txt", sample_report],
                   cwd=tmp_path, check=True, capture_output=True)  # fmt: skip
    assert (tmp_path / "copy.txt").read_text() == (tmp_path / "file.txt").read_text() != ""


def test_a_reader_that_goes_away_is_no_failure(installed, sample_report, tmp_path):
    content = json.loads(sample_report.read_text())
    for row in content["modules"]:
        row["path"] += "x" * (1 << 20)  # more than a pipe holds
    sample_report.write_text(json.dumps(content))
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    words = [installed / "cuwarden", "export", "--format", "jsonl", "-o", pipe, sample_report]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    with open(pipe, "rb") as reader:
        assert reader.read(1) != b""
    assert process.communicate(timeout=30)[1] == "" and process.returncode == 0


def test_a_device_without_room_gives_one_line(cuwarden, sample_report):
    result = cuwarden("merge", "-o", "/dev/full", sample_report)
    assert result.returncode == 2 and one_line(result.stderr) and "/dev/full" in result.stderr
    assert cuwarden("merge", "-o", "/dev/null", sample_report).returncode == 0


def one_line_of_each(cuwarden, report, path):
    """All commands that write files refuse the path with one line."""
    for words in (*COMMANDS.values(), ("report", "--write-baseline", path)):
        options = () if "--write-baseline" in words else ("-o", path)
        result = cuwarden(*words, *options, report)
        assert result.returncode == 2 and one_line(result.stderr), (words, result.stderr)
        assert f"{path}: it is no plain file" in result.stderr


def test_a_socket_gives_one_line(cuwarden, sample_report, tmp_path):
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        one_line_of_each(cuwarden, sample_report, tmp_path / "socket")


def test_a_block_device_is_not_written(cuwarden, sample_report):
    # Only a loop device without a file is tried, which has no content that could be lost.
    devices = [path for path in pathlib.Path("/dev").glob("loop[0-9]*") if stat.S_ISBLK(path.stat().st_mode)]
    empty = [path for path in devices if pathlib.Path("/sys/block", path.name, "size").read_text() == "0\n"]
    if not empty:
        pytest.skip("there is no loop device without a file")
    one_line_of_each(cuwarden, sample_report, empty[0])


def test_no_line_of_progress_is_mixed_into_output_to_a_terminal(installed, sample_report):
    pipes = [os.pipe(), os.pipe()]
    readers = [reader for reader, _ in pipes]
    with terminal() as (of_command, shown):
        words = ["export", "--format", "jsonl", "-o", os.ttyname(of_command), *(f"/dev/fd/{reader}" for reader in readers)]
        process = subprocess.Popen(
            [installed / "cuwarden", *words], env={**os.environ, **in_long_seconds()}, pass_fds=readers, stderr=of_command
        )
        for reader, writer in pipes:
            os.close(reader)
            with os.fdopen(writer, "wb") as pipe:
                pipe.write(sample_report.read_bytes())
        assert process.wait(30) == 0
    text = b"".join(shown)
    assert text.startswith(b"{") and b"\x1b" not in text, "a line of progress begins with a control sequence"


@pytest.mark.parametrize("name", COMMANDS)
def test_no_line_of_progress_is_shown_if_the_output_file_is_a_terminal(installed, sample_report, tmp_path, name):
    with terminal() as (of_command, shown):
        words = [installed / "cuwarden", *COMMANDS[name], "-o", os.ttyname(of_command), sample_report]
        # A line about the output follows it.
        done = subprocess.run(words, env={**os.environ, **in_long_seconds()}, stderr=of_command, timeout=60)
    assert done.returncode == 0 and b"".join(shown) != b"" and b"\x1b[K" not in b"".join(shown)
