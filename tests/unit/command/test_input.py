"""A file that is no report gets one error line, in bounded time and memory."""

import os
import resource
import socket
import subprocess
import threading

import pytest

from conftest import one_line

MOST_MEMORY = 3 << 30
MOST_SECONDS = 120


@pytest.fixture
def bounded(installed, tmp_path):
    """Runs `report FILE` with limits on time and memory that any useful report stays far below."""

    def call(path, **how):
        return subprocess.run(
            [installed / "cuwarden", "report", path],
            cwd=tmp_path, capture_output=True, text=True, timeout=MOST_SECONDS,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY)),
            **how,
        )  # fmt: skip

    return call


def sparse(path, size, start=b""):
    with open(path, "wb") as file:
        file.write(start)
        file.truncate(size)
    return path


def listening(path):
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.close()
    return path


def fifo(path):
    os.mkfifo(path)
    return path


def written(path, text):
    path.write_text(text)
    return path


MIB = 1 << 20
NOT_REPORTS = {
    "an_endless_device": (lambda path: "/dev/zero", "it is a device"),
    "a_pipe_without_a_writer": (fifo, "it is a pipe"),
    "a_socket": (listening, "No such device"),
    "a_folder": (lambda path: path.mkdir() or path, "it is a folder"),
    "an_empty_file": (lambda path: written(path, ""), "the file is empty"),
    "a_file_of_holes": (lambda path: sparse(path, 1 << 40), "it is larger than 1.0 GiB"),
    "zeros": (lambda path: sparse(path, 900 * MIB), "it is no JSON object"),
    "holes_after_a_brace": (lambda path: sparse(path, 300 * MIB, b"{"), "not JSON"),
    "empty_lists": (lambda path: written(path, "[" + "[]," * 20 * MIB + "[]]"), "no JSON object"),
    "empty_lists_in_a_table": (
        lambda path: written(path, '{"stacks":[' + "[]," * 20 * MIB + "[]]}"),
        "made of lists in lists",
    ),
    "lists_in_lists": (lambda path: written(path, '{"a":' + "[" * 50 * MIB), "nested too deep"),
    "objects_in_objects": (lambda path: written(path, '{"a":' * 10 * MIB), "nested too deep"),
    "an_endless_text": (lambda path: written(path, '{"a":"' + "b" * 60 * MIB), "not JSON"),
    "an_object_of_a_million_properties": (
        lambda path: written(path, "{" + ",".join(f'"a{i}":1' for i in range(MIB)) + "}"),
        "too many properties",
    ),
    "rows_without_fields": (
        lambda path: written(path, '{"schema":"cuwarden.report/1","stacks":[' + "{}," * 20 * MIB + "{}]}"),
        "",
    ),
}


@pytest.mark.parametrize("kind", NOT_REPORTS)
def test_a_file_that_is_no_report_gives_one_error_line(bounded, tmp_path, kind):
    make, reason = NOT_REPORTS[kind]
    path = make(tmp_path / "given")
    done = bounded(path)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert one_line(done.stderr) and str(path) in done.stderr
    assert reason in done.stderr or kind == "a_socket"


def test_a_report_is_read_from_standard_input(bounded, sample_report):
    for path in ("-", "/dev/stdin", "/dev/fd/0"):
        with open(sample_report) as file:
            done = bounded(path, stdin=file)
        assert done.returncode == 0 and "LEAKS: 8.0 MiB" in done.stdout, done.stderr


@pytest.mark.parametrize("path", ["-", "/dev/stdin"])
def test_a_report_is_read_from_a_pipe_at_its_writers_pace(bounded, sample_report, path):
    reader, writer = os.pipe()
    text = sample_report.read_bytes()

    def hand_out():
        with os.fdopen(writer, "wb", buffering=0) as pipe:
            for at in range(0, len(text), 4096):
                pipe.write(text[at : at + 4096])

    thread = threading.Thread(target=hand_out)
    process_input = os.fdopen(reader)
    thread.start()
    done = bounded(path, stdin=process_input)
    thread.join()
    process_input.close()
    assert done.returncode == 0 and "LEAKS: 8.0 MiB" in done.stdout, done.stderr


def test_standard_input_that_is_no_report_gives_one_error_line(bounded):
    with open("/dev/zero") as file:
        done = bounded("-", stdin=file)
    assert done.returncode == 2 and one_line(done.stderr)
    assert "standard input: not a cuwarden report" in done.stderr
    done = bounded("-", stdin=subprocess.DEVNULL)
    assert done.returncode == 2 and "standard input: the file is empty" in done.stderr
