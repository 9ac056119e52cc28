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


CUT_OFF = "it is cut off after {:,} bytes; copy the report again, or use `cuwarden recover`"
VERBS = [["report"], ["report", "--redact"], ["diff", "sample.json"], ["merge"], ["export", "--format", "collapsed"]]


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_a_report_that_is_cut_off_is_told_as_such(cuwarden, sample_report, tmp_path, verb):
    content, path = sample_report.read_bytes(), tmp_path / "cut.json"
    row = content.index(b'"stacks": [')
    # The cuts lie behind the schema's line, in a number, a key, a list and a text, and before the last brace.
    in_a_number = content.index(b'"pid":') + len(b'"pid":1')
    for length in (content.index(b"\n", 2), in_a_number, row + 4, row + 11, len(content) // 2, len(content) - 2):
        path.write_bytes(content[:length])
        done = cuwarden(*verb, path)
        assert done.returncode == 2 and one_line(done.stderr), done.stderr
        assert f"{path}: " + CUT_OFF.format(length) in done.stderr, done.stderr
    assert sorted(file.name for file in tmp_path.glob("*.json")) == ["cut.json", "sample.json"]


def test_a_cut_between_the_bytes_of_a_letter_is_a_cut(cuwarden, tmp_path):
    text = '{"schema": "cuwarden.report/1", "truth": true, "letters": "\\u00e4ä'.encode()
    for length in range(text.index(b"/1") + 3, len(text)):
        (tmp_path / "cut.json").write_bytes(text[:length])
        done = cuwarden("report", tmp_path / "cut.json")
        assert f"it is cut off after {length} bytes" in done.stderr, done.stderr


def test_a_cut_before_the_schema_tells_where_the_file_ends(cuwarden, sample_report, tmp_path):
    for length, size in ((1, "1 byte"), (9, "9 bytes")):
        (tmp_path / "cut.json").write_bytes(sample_report.read_bytes()[:length])
        done = cuwarden("report", tmp_path / "cut.json")
        assert done.returncode == 2 and one_line(done.stderr), done.stderr
        assert f"not JSON (it breaks off after {size}); give the path of a report" in done.stderr


def test_a_merged_report_that_is_cut_off_is_told_as_such(cuwarden, sample_report, tmp_path):
    merged = tmp_path / "merged.json"
    assert cuwarden("merge", sample_report, "-o", merged).returncode == 0
    length = merged.stat().st_size // 2
    os.truncate(merged, length)
    done = cuwarden("report", merged)
    assert done.returncode == 2 and one_line(done.stderr), done.stderr
    assert f"it is cut off after {length:,} bytes; merge the reports again, or use a copy" in done.stderr


def test_damage_in_the_middle_of_a_report_is_no_cut(cuwarden, sample_report, tmp_path):
    content = sample_report.read_bytes()
    for damaged in (content.replace(b'"pid":', b'"pid";', 1), content.rstrip()[:-1] + b"]"):
        (tmp_path / "damaged.json").write_bytes(damaged)
        done = cuwarden("report", tmp_path / "damaged.json")
        assert done.returncode == 2 and "damaged.json: not JSON; give" in done.stderr, done.stderr
