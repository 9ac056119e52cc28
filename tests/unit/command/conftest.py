"""Fixtures: a folder that looks like an installation, with the command and a fake shim beside it."""

import contextlib
import json
import os
import pathlib
import pty
import shutil
import subprocess
import sys
import threading

import jsonschema
import pytest


sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "export_consumers"))


def built(name):
    return pathlib.Path(os.environ[name])


def one_line(text):
    return text.startswith("cuwarden: ") and text.count("\n") == 1


def in_long_seconds():
    """Variables with which each piece of the command's work takes a second by its clock: it shows progress."""
    return {"LD_PRELOAD": str(built("CUWARDEN_HASTY_CLOCK")), "TERM": "xterm"}


@pytest.fixture
def installed(tmp_path):
    folder = tmp_path / "installed"
    folder.mkdir()
    shutil.copy(built("CUWARDEN_COMMAND"), folder / "cuwarden")
    shutil.copy(built("CUWARDEN_FAKE_SHIM"), folder / "libcuwarden.so")
    return folder


@pytest.fixture
def cuwarden(installed, tmp_path):
    """Returns a function that runs the command with arguments and variables; it returns the finished process."""

    def call(*arguments, **variables):
        environment = {**os.environ, "TMPDIR": str(tmp_path), **variables}
        return subprocess.run(
            [installed / "cuwarden", *map(str, arguments)],
            env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=60,
        )

    return call


@pytest.fixture
def sample_report(tmp_path):
    path = tmp_path / "sample.json"
    subprocess.run([built("CUWARDEN_SAMPLE_REPORT"), path, "2"], check=True, capture_output=True)
    return path


@pytest.fixture
def clean_report(sample_report, tmp_path):
    report = json.loads(sample_report.read_text())
    report["leak_groups"] = []
    report["leaks"] = {"bytes": 0, "count": 0, "suppressed_bytes": 0, "released_by_context_bytes": 0}
    path = tmp_path / "clean.json"
    path.write_text(json.dumps(report))
    return path


@pytest.fixture
def leave_ledger():
    return built("CUWARDEN_LEAVE_LEDGER")


@pytest.fixture
def schema():
    schema = json.loads(built("CUWARDEN_SCHEMA").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def put_ranks(report, folder, count, **fields):
    """Writes `count` copies of a report into a folder, as reports of the ranks of a job; returns the
    folder.

    The copies differ in rank, pid and host; four ranks share a host. `fields` replace tables of the report.
    """
    folder.mkdir(exist_ok=True)
    content = json.loads(report.read_text()) | fields
    for rank in range(count):
        content["process"] |= {"pid": 1000 + rank, "host": f"node{rank // 4}"}
        content["job"]["rank"] = rank
        (folder / f"rank{rank:04}.json").write_text(json.dumps(content))
    return folder


@pytest.fixture
def ranks(sample_report, tmp_path):
    return put_ranks(sample_report, tmp_path / "ranks", 6)


@contextlib.contextmanager
def terminal():
    """Yields the end of a new terminal that a command writes to, and a list of what is written, in pieces. The list
    is complete after the block, in which the command must end.
    """
    own_end, of_command = pty.openpty()
    pieces = []

    def read():
        try:
            while piece := os.read(own_end, 4096):
                pieces.append(piece)
        except OSError:  # the terminal is closed
            pass

    reading = threading.Thread(target=read)
    reading.start()
    try:
        yield of_command, pieces
    finally:
        os.close(of_command)
        reading.join(60)
        os.close(own_end)
