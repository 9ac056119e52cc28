"""The command's output: nothing in it acts on the terminal, and a failed write changes the exit status."""

import fcntl
import json
import os
import subprocess
import threading
import time
import unicodedata

import pytest

from conftest import built, one_line

# Text that sets a window's title, begins a line, reverses the order of letters and hides text (also by
# a control of one letter), and that is not UTF-8.
HOSTILE = b"\033]0;owned\007\ncuwarden: forged \xe2\x80\xae \xc2\x9b8m \033[8m \xff\r\x7f"


def acts_on_a_terminal(output):
    """Returns the letters of the output that are neither printable nor a line feed."""
    return [
        letter
        for letter in output.decode(errors="surrogateescape")
        if letter != "\n" and unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Zl", "Zp")
    ]


def hostile_path(folder):
    return os.fsencode(folder) + b"/" + HOSTILE


@pytest.fixture
def raw(installed, tmp_path):
    """Runs the command with arguments that are bytes; its output is bytes, too."""

    def call(*arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=None, **how):
        return subprocess.run(
            [os.fsencode(installed / "cuwarden"), *map(os.fsencode, arguments)],
            env={**os.environb, b"TMPDIR": os.fsencode(tmp_path), **(env or {})},
            cwd=tmp_path, stdout=stdout, stderr=stderr, stdin=subprocess.DEVNULL, timeout=60, **how,
        )  # fmt: skip

    return call


# --- text from outside


@pytest.mark.parametrize(
    "arguments",
    [
        [HOSTILE],
        [b"-" + HOSTILE],
        [b"help", HOSTILE],
        [b"report", HOSTILE],
        [b"report", b"--by", HOSTILE, b"x"],
        [b"report", b"--" + HOSTILE, b"x"],
        [b"run", b"--", HOSTILE],
        [b"run", b"--", b"/" + HOSTILE],
        [b"run", b"--simulate", HOSTILE, b"--", b"true"],
        [b"run", b"--" + HOSTILE, b"--", b"true"],
        [b"run", b"--report", b"%" + HOSTILE, b"--", b"true"],
        [b"doctor", HOSTILE],
        [b"doctor", b"--", HOSTILE],
        [b"recover", HOSTILE],
        [b"snapshot", HOSTILE],
        [b"top", HOSTILE],
    ],
    ids=lambda words: b"-".join(words).split(b"\033")[0].decode(),
)
def test_an_argument_does_not_reach_the_terminal_raw(raw, arguments):
    done = raw(*arguments)
    assert done.returncode in (2, 127)
    assert done.stderr.startswith(b"cuwarden: ") and done.stderr.count(b"\n") == 1, done.stderr
    assert acts_on_a_terminal(done.stdout + done.stderr) == [], done.stderr


@pytest.mark.parametrize("schema", ["\033]0;owned\007", "cuwarden.report/\033]0;owned\007\n"])
def test_the_schema_of_a_file_does_not_reach_the_terminal_raw(raw, tmp_path, schema):
    (tmp_path / "other.json").write_text(json.dumps({"schema": schema}))
    done = raw("report", "other.json")
    assert done.returncode == 2 and done.stderr.count(b"\n") == 1
    assert acts_on_a_terminal(done.stderr) == [], done.stderr


def test_a_report_path_does_not_reach_the_terminal_raw(raw, sample_report, tmp_path):
    path = hostile_path(tmp_path)
    os.rename(sample_report, path)
    done = raw("run", "--", "true", env={b"FAKE_REPORT": path})
    assert done.returncode == 0
    assert b"LEAKS: 8.0 MiB" in done.stderr
    assert done.stderr.splitlines()[-1].startswith(b"report: ")
    assert acts_on_a_terminal(done.stderr) == [], done.stderr


def test_a_report_path_with_a_line_feed_is_found(raw, sample_report, tmp_path):
    path = os.fsencode(tmp_path) + b"/two\nlines.json"
    os.rename(sample_report, path)
    done = raw("run", "--", "true", env={b"FAKE_REPORT": path})
    assert b"LEAKS: 8.0 MiB" in done.stderr and b"no CUDA call" not in done.stderr


def texts_of(node):
    if isinstance(node, dict):
        for child in node.values():
            yield from texts_of(child)
    elif isinstance(node, list):
        for child in node:
            yield from texts_of(child)
    elif isinstance(node, str):
        yield node


@pytest.mark.parametrize("by", ["stack", "module", "api", "kind"])
def test_no_text_of_a_report_reaches_the_terminal_raw(raw, sample_report, tmp_path, by):
    hostile = HOSTILE.decode(errors="replace")

    def spoilt(node):
        if isinstance(node, dict):
            return {name: spoilt(child) for name, child in node.items()}
        if isinstance(node, list):
            return [spoilt(child) for child in node]
        return node + hostile if isinstance(node, str) else node

    report = json.loads(sample_report.read_text())
    spoiled = {**spoilt(report), "schema": report["schema"]}
    assert sum(hostile in text for text in texts_of(spoiled)) > 50
    (tmp_path / "spoilt.json").write_text(json.dumps(spoiled))
    done = raw("report", "--by", by, "spoilt.json")
    assert b"LEAKS" in done.stdout, done.stderr
    assert acts_on_a_terminal(done.stdout + done.stderr) == []
    assert not any(line.startswith(b"cuwarden: forged") for line in done.stdout.splitlines())


def test_doctor_shows_nothing_raw(raw, tmp_path):
    script = tmp_path / "script"
    script.write_bytes(b"#!/bin/sh \033]0;owned\007\n")
    script.chmod(0o755)
    os.makedirs(hostile_path(tmp_path))
    program = hostile_path(tmp_path) + b"/program"
    with open("/bin/true", "rb") as source, open(program, "wb") as copy:
        copy.write(source.read())
    os.chmod(program, 0o755)
    for command in (script, program):
        assert acts_on_a_terminal(raw("doctor", "--", command).stdout) == []


# --- writes that fail

VERBS = [
    ("--version",),
    ("version",),
    ("--help",),
    ("help",),
    ("help", "report"),
    ("run", "--help"),
    ("report", "SAMPLE"),
    ("doctor",),
    ("recover",),
    ("top", "--once"),
]


@pytest.mark.parametrize("arguments", VERBS, ids=lambda words: " ".join(words))
@pytest.mark.parametrize("how", ["full", "closed"])
def test_output_that_cannot_be_written_gives_an_error_line_and_status_2(raw, sample_report, arguments, how):
    words = [str(sample_report) if word == "SAMPLE" else word for word in arguments]
    with open("/dev/full", "wb") as full:
        closing = (lambda: os.close(1)) if how == "closed" else None
        done = raw(*words, stdout=full, preexec_fn=closing)
    assert done.returncode == 2
    assert one_line(done.stderr.decode()) and b"standard output" in done.stderr


def gone():
    """Returns the write end of a pipe without a reader."""
    reader, writer = os.pipe()
    os.close(reader)
    return os.fdopen(writer, "wb")


@pytest.mark.parametrize("options, status", [((), 0), (("--fail-on-leak",), 1)])
def test_a_reader_that_goes_away_ends_a_report_quietly(raw, sample_report, options, status):
    with gone() as pipe:
        done = raw("report", *options, sample_report, stdout=pipe)
    assert (done.returncode, done.stderr) == (status, b"")


def test_output_to_a_full_pipe_waits_for_its_reader(raw, sample_report):
    """Another program may have made a terminal or pipe non-blocking."""
    whole = raw("report", *[sample_report] * 60).stdout
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    os.set_blocking(writer, False)
    read = []

    def take():
        with os.fdopen(reader, "rb", buffering=0) as pipe:
            while piece := pipe.read(1000):
                read.append(piece)

    thread = threading.Thread(target=take)
    thread.start()
    with os.fdopen(writer, "wb") as pipe:
        done = raw("report", *[sample_report] * 60, stdout=pipe)
    thread.join()
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"".join(read) == whole and len(whole) > 1 << 16


@pytest.mark.parametrize("how", ["gone", "closed", "full"])
def test_the_status_is_the_programs_even_if_standard_error_fails(
    raw, sample_report, tmp_path, how
):
    (tmp_path / "work").mkdir()
    env = {b"FAKE_REPORT": os.fsencode(sample_report), b"TMPDIR": os.fsencode(tmp_path / "work")}
    with gone() if how == "gone" else open("/dev/full", "wb") as pipe:
        closing = (lambda: os.close(2)) if how == "closed" else None
        done = raw("run", "--", "sh", "-c", "exit 3", stderr=pipe, env=env, preexec_fn=closing)
    assert (done.returncode, done.stdout) == (3, b"")
    assert list((tmp_path / "work").iterdir()) == []


def test_the_program_gets_its_standard_streams_and_signals_as_they_were(raw):
    # In some glibcs, posix_spawn() ignores the two signals that glibc keeps for itself.
    look = "grep -o '[0-9a-f]\\{7\\}$' /proc/self/status | head -n 4; ls /proc/self/fd"
    closing = {"preexec_fn": lambda: os.close(0)}
    bare = subprocess.run(["sh", "-c", look], stdout=subprocess.PIPE, **closing)
    assert raw("run", "--", "sh", "-c", look, **closing).stdout == bare.stdout


def test_files_that_a_killed_run_left_are_removed_by_the_next_run(raw, tmp_path):
    left, used, other = (tmp_path / f"cuwarden-run-{name}" for name in ("left00", "used00", "new000"))
    for path in (left, used, other):
        path.write_text("")
    an_hour_ago = time.time() - 3600
    os.utime(left, (an_hour_ago, an_hour_ago))
    os.utime(used, (an_hour_ago, an_hour_ago))
    with open(used) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert raw("run", "--", "true").returncode == 0
    assert not left.exists() and used.exists() and other.exists()


@pytest.mark.parametrize("verb", [("export", "--format", "jsonl"), ("export", "--format", "junit"), ("merge",)])
def test_the_name_of_standard_output_stands_for_it_also_if_it_is_a_pipe(cuwarden, sample_report, verb):
    shown = cuwarden(*verb, sample_report, "-o", "-")
    named = cuwarden(*verb, sample_report, "-o", "/dev/stdout")
    assert (shown.returncode, named.returncode) == (0, 0), named.stderr
    assert named.stdout and named.stdout == shown.stdout
