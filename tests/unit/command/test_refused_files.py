"""A file that cannot be written or read gets one error line: which one, why, and what to do."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from conftest import built

NOBODY = 65534
FORMATS = ["collapsed", "github", "html", "jsonl", "junit", "perfetto", "pprof", "prometheus", "pytorch"]
REMEDY = "; give a path that can be written ({}), or make room\n"


@pytest.fixture
def folder():
    """A folder that every user may read, outside the folders of the tests, which only their owner may enter."""
    with tempfile.TemporaryDirectory() as path:
        os.chmod(path, 0o755)
        yield Path(path)


@pytest.fixture
def unprivileged(folder):
    """Runs the command without root's rights."""
    shutil.copy(built("CUWARDEN_COMMAND"), folder / "cuwarden")
    rights = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}

    def call(*arguments):
        command = [folder / "cuwarden", *map(str, arguments)]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, **rights)

    return call


@pytest.fixture
def readable_report(folder, sample_report):
    path = folder / "readable.json"
    shutil.copyfile(sample_report, path)
    path.chmod(0o644)
    return path


def refused(done, line):
    assert done.returncode == 2 and done.stderr == f"cuwarden: {line}", done.stderr


@pytest.mark.parametrize("name", FORMATS)
def test_an_export_that_cannot_be_written_tells_the_option(cuwarden, sample_report, tmp_path, name):
    path = tmp_path / "none" / "out"
    done = cuwarden("export", "--format", name, "-o", path, sample_report)
    if "was built without the page" in done.stderr:
        pytest.skip(f"this build has no format {name}")
    refused(done, f"cannot write {path}: no such file or folder" + REMEDY.format("--output"))


def test_a_merged_report_that_cannot_be_written_tells_the_option(cuwarden, sample_report, tmp_path):
    path = tmp_path / "none" / "out.json"
    done = cuwarden("merge", "-o", path, sample_report)
    refused(done, f"cannot write {path}: no such file or folder" + REMEDY.format("--output"))


def test_a_redacted_copy_that_cannot_be_written_tells_the_option(cuwarden, sample_report, tmp_path):
    path = tmp_path / "none" / "out.json"
    done = cuwarden("report", "--redact", sample_report, "-o", path)
    refused(done, f"cannot write {path}: no such file or folder" + REMEDY.format("--output"))


def test_a_baseline_that_cannot_be_written_tells_the_option(cuwarden, sample_report, tmp_path):
    path = tmp_path / "none" / "known.txt"
    done = cuwarden("report", "--write-baseline", path, sample_report)
    line = f"cannot write the baseline {path}: no such file or folder" + REMEDY.format("--write-baseline")
    refused(done, line)


def test_a_folder_without_the_right_to_write_is_told_as_such(unprivileged, folder, readable_report):
    closed = folder / "closed"
    closed.mkdir(mode=0o555)
    done = unprivileged("export", "--format", "pprof", "-o", closed / "x.pprof", readable_report)
    refused(done, f"cannot write {closed}/x.pprof: permission denied" + REMEDY.format("--output"))


@pytest.mark.parametrize("verb", [["report"], ["merge"], ["export", "--format", "jsonl"]], ids=" ".join)
def test_a_folder_without_the_right_to_read_tells_what_to_give(unprivileged, folder, readable_report, verb):
    closed = folder / "closed"
    closed.mkdir(mode=0o100 if os.geteuid() != 0 else 0o711)
    done = unprivileged(*verb, closed)
    assert done.returncode == 2, done.stderr
    line = f"cuwarden: {closed}: permission denied; give the path of a file or folder that you may read\n"
    assert done.stderr.startswith(line), done.stderr


def test_a_json_file_of_another_program_tells_what_to_give(cuwarden, tmp_path):
    path = tmp_path / "package.json"
    path.write_text('{"name": "x"}')
    reason = 'not a cuwarden report (it has no "schema": "cuwarden.report/1")'
    refused(cuwarden("report", path), f"{path}: {reason}; give the path of a report that cuwarden wrote\n")


READING_VERBS = [
    ["report"],
    ["report", "--redact"],
    ["merge"],
    ["diff", "given.json"],
    ["export", "--format", "jsonl"],
    ["export", "--format", "junit"],
]


@pytest.mark.parametrize("verb", READING_VERBS, ids=" ".join)
@pytest.mark.parametrize(
    "path, name, why",
    [
        ("missing.json", "missing.json", "no such file or folder"),
        ("", "''", "no such file or folder"),
        ("/proc/self/mem", "/proc/self/mem", "input/output error"),
    ],
)
def test_a_report_that_cannot_be_read_tells_what_to_give(cuwarden, sample_report, tmp_path, verb, path, name, why):
    if verb[0] == "diff":
        if path == "":
            pytest.skip("diff takes an empty path for none")
        shutil.copyfile(sample_report, tmp_path / verb[1])
    refused(cuwarden(*verb, path), f"{name}: {why}; give the path of a report that cuwarden wrote\n")


@pytest.mark.parametrize("verb", [["report"], ["report", "--redact"]], ids=" ".join)
def test_a_report_without_the_right_to_read_tells_what_to_give(unprivileged, folder, readable_report, verb):
    readable_report.chmod(0o000)
    line = f"{readable_report}: permission denied; give the path of a report that cuwarden wrote\n"
    refused(unprivileged(*verb, readable_report), line)


def test_a_folder_to_redact_tells_what_to_give(cuwarden, tmp_path):
    line = f"{tmp_path}: it is a folder; give the path of a report that cuwarden wrote\n"
    refused(cuwarden("report", "--redact", tmp_path), line)


@pytest.mark.parametrize("path", ["/proc/nope/x.json", "/dev/x.json"])
def test_the_path_of_a_report_in_a_folder_of_the_system_is_told_why(cuwarden, path):
    done = cuwarden("run", "--report", path, "--", "true")
    assert done.returncode != 0 and "a file or folder outside /proc and /dev or in /dev/shm" in done.stderr
    assert f"not '{path}'" in done.stderr
