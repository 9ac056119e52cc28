"""A request that fails is told in one line on standard error, when it fails."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from shimmed import BUILD, DRIVEN, program
from test_incidents import environment, refused

OWN = [program("shortages"), "own"]

# A program that fills its allocator's cache of the library at sys.argv[1], and asks for more.
CACHES = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
allocate, release = library.tensor_cache_allocate, library.tensor_cache_release
allocate.argtypes, allocate.restype = [ctypes.c_size_t], ctypes.c_void_p
release.argtypes, release.restype = [ctypes.c_void_p], None
first, second = int(sys.argv[2]) << 20, int(sys.argv[3]) << 20
release(allocate(first))
print(allocate(second) is not None)
"""


# A program whose allocator, of the name of PyTorch's, gives up after one refusal.
GIVES_UP = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
library.take_once.argtypes = [ctypes.c_size_t]
for size in sys.argv[2:]: print(library.take_once(int(size) << 20))
"""


def lines_about_failures(run):
    return run.said_of_failures


def test_the_line_names_the_call_its_cause_and_a_report_that_is_there(workspace):
    run = workspace.run(OWN, refused())
    (line,) = lines_about_failures(run)
    (incident,) = run.report["incidents"]
    cause, _ = incident["advice"].split(": ", 1)
    found = re.fullmatch(r"cuwarden: (\w+) of (\S+ \S+) \(GPU 0\) failed: (.*) \((\w+)\); report: (.*)", line)
    assert found and found[1] == incident["api"] and found[3] == cause and found[4] == incident["verdict"], line
    assert found[5] == str(run.report.path)


def test_the_report_is_on_disk_when_the_line_is_written(workspace):
    lines = workspace.folder / "lines"
    run = workspace.run(OWN, refused(CUWARDEN_LOG=f"warn:{lines}"))
    (line,) = [line for line in lines.read_text().splitlines() if " failed: " in line]
    path = Path(line.split("; report: ")[1])
    assert path == run.report.path and json.loads(path.read_text())["incidents"]


def test_each_cause_is_told_once(workspace):
    run = workspace.run([program("shortages"), "repeats", "times=5"], refused())
    assert sum(incident["failed_count"] for incident in run.report["incidents"]) >= 5
    assert len(lines_about_failures(run)) == len({incident["verdict"] for incident in run.report["incidents"]})


@pytest.mark.parametrize("level", ["error", "off"])
def test_a_higher_level_of_the_log_silences_the_line(workspace, level):
    run = workspace.run(OWN, refused(CUWARDEN_LOG=level))
    assert run.report["incidents"][0]["outcome"] == "failed"
    assert run.stderr == ""


def test_without_a_report_the_line_names_none(workspace):
    run = workspace.run(OWN, refused(CUWARDEN_REPORT="/dev/null"))
    (line,) = lines_about_failures(run)
    assert "report" not in line


def test_a_request_that_is_rescued_is_not_told(workspace):
    run = workspace.run([program("shortages"), "pending"], environment())
    assert run.report["incidents"][0]["outcome"] == "rescued"
    assert lines_about_failures(run) == []


@pytest.mark.parametrize("pool", ["off", "rescue"])
@pytest.mark.parametrize(("second", "succeeds"), [(2400, True), (4000, False)])
def test_a_caching_allocator_that_asks_again_is_told_of_only_if_that_fails_too(
    workspace, tmp_path, pool, second, succeeds
):
    library = tmp_path / "libc10_cuda.so"
    shutil.copy(BUILD / "samples" / "libtensor_cache.so", library)
    env = environment(CUWARDEN_SIM_MEMORY="4GiB", CUWARDEN_POOL=pool)
    run = workspace.run([sys.executable, "-c", CACHES, library, "1700", str(second)], env, preload=DRIVEN)
    assert run.stdout == f"{succeeds}\n", run.stderr
    assert run.report["incidents"], "the allocator's first request is refused"
    assert len(lines_about_failures(run)) == (0 if succeeds else 1), run.stderr


def taking_library(tmp_path):
    """Makes an allocator of the name of PyTorch's, which asks the driver once."""
    source = tmp_path / "once.c"
    source.write_text("int cudaMalloc(void**, unsigned long);\nint take_once(unsigned long n) { void* p; return cudaMalloc(&p, n); }\n")
    library = tmp_path / "libc10_cuda.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", library, source], check=True)
    return library


def test_an_allocator_that_does_not_ask_again_is_told_of_at_the_end(workspace, tmp_path):
    run = workspace.run([sys.executable, "-c", GIVES_UP, taking_library(tmp_path), "8000"], refused(), preload=DRIVEN)
    assert run.stdout == "2\n", run.stderr
    (line,) = lines_about_failures(run)
    assert "cudaMalloc of 7.8 GiB" in line


def test_the_line_has_the_size_of_the_request_that_failed(workspace, tmp_path):
    sizes = ["8000", "7000", "7000"]
    run = workspace.run([sys.executable, "-c", GIVES_UP, taking_library(tmp_path), *sizes], refused(), preload=DRIVEN)
    (line,) = lines_about_failures(run)
    assert "cudaMalloc of 6.8 GiB" in line


def test_a_failure_behind_many_refusals_that_were_recovered_is_told(workspace):
    run = workspace.run([program("shortages"), "recovers", "rounds=100", "gives_up=99"], refused())
    assert len(lines_about_failures(run)) == 1, run.stderr


def test_a_report_that_a_condition_removes_is_not_named(workspace):
    run = workspace.run(OWN, refused(CUWARDEN_REPORT_IF="abnormal"))
    assert run.reports == []
    (line,) = lines_about_failures(run)
    assert "report:" not in line
