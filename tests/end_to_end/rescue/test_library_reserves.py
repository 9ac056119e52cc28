"""Memory that libraries keep for themselves: who keeps it, and the call that gives it back."""

import json
import re
import sys

import pytest

from reports import Report
from shimmed import PROGRAMS
from test_incidents import environment

MIB, GIB = 1 << 20, 1 << 30
NCCL, CUFFT = PROGRAMS / "libnccl.so.2", PROGRAMS / "libcufft.so.12"
PYTORCH, PYTORCH_ON_HOST = PROGRAMS / "libc10_cuda.so", PROGRAMS / "libtorch_cuda.so"

# A program of which libraries keep memory. Each argument is LIBRARY:FUNCTION:BYTES; a library that is
# named "program" stands for the program itself. The last argument may be "wait".
SCRIPT = """
import ctypes, json, signal, sys
cudart = ctypes.CDLL("libcudart.so.13")
def ask(library, function, size):
    if library == "program":
        pointer = ctypes.c_void_p()
        return getattr(cudart, function)(ctypes.byref(pointer), ctypes.c_size_t(size)) == 0
    keep = getattr(ctypes.CDLL(library), function)
    keep.restype, keep.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    return keep(size) is not None
requests = [argument.split(":") for argument in sys.argv[1:] if argument != "wait"]
served = [ask(library, function, int(size)) for library, function, size in requests]
print(json.dumps(served), flush=True)
if sys.argv[-1] == "wait":
    signal.pause()
"""


def keeping(*requests):
    """Returns a command whose requests are made in their order: (library, function, bytes)."""
    return [sys.executable, "-c", SCRIPT, *(":".join(map(str, request)) for request in requests)]


def refused(run):
    """Checks that only the last request of the program failed. Returns its incident."""
    served = run.last_line
    assert all(served[:-1]) and not served[-1], (served, run.stderr)
    (incident,) = run.report["incidents"]
    return incident


def test_a_refused_request_tells_which_library_keeps_how_much_and_how_to_get_it_back(workspace, cuwarden):
    requests = [(NCCL, "keep", 958 * MIB), (NCCL, "keep", 2 * MIB), ("program", "cudaMalloc", 2560 * MIB)]
    run = workspace.run(keeping(*requests, ("program", "cudaMalloc", GIB)), environment())
    incident = refused(run)
    assert incident["verdict"] == "device_full_own"
    assert "; NCCL has 960.0 MiB (buffers of communicators): " in incident["advice"]
    assert "call ncclCommSuspend(comm, NCCL_SUSPEND_MEM)" in incident["advice"]
    (row,) = run.report["library_reserves"]
    assert (row["library"], row["device"], row["count"], row["bytes"]) == ("NCCL", 0, 2, 960 * MIB)
    assert run.report.modules[row["module"]]["path"] == str(NCCL)
    shown = cuwarden("report", run.report.path).stdout
    assert "960.0 MiB in 2 allocations (GPU 0) · buffers of communicators" in shown
    assert shown.count("ncclCommDestroy") == 2, "in the advice and in the section of its own"


def test_the_largest_two_reserves_are_named(workspace):
    requests = [(PYTORCH, "keep", GIB), (NCCL, "keep", 900 * MIB), (CUFFT, "keep", 800 * MIB)]
    run = workspace.run(keeping(*requests, ("program", "cudaMalloc", 2 * GIB)), environment())
    advice = refused(run)["advice"]
    assert "PyTorch has 1.0 GiB" in advice and "torch.cuda.empty_cache()" in advice
    assert "NCCL has 900.0 MiB" in advice and "cuFFT" not in advice
    kept = [(row["library"], row["bytes"]) for row in run.report["library_reserves"]]
    assert kept == [("PyTorch", GIB), ("NCCL", 900 * MIB), ("cuFFT", 800 * MIB)]


@pytest.mark.parametrize(("asks", "named"), [(PYTORCH, False), (NCCL, True)])
def test_an_allocator_that_has_just_emptied_its_cache_is_not_told_to_empty_it(workspace, asks, named):
    requests = [(PYTORCH, "keep", 3 * GIB), (asks, "keep", 2 * GIB)]
    advice = refused(workspace.run(keeping(*requests), environment()))["advice"]
    assert ("torch.cuda.empty_cache()" in advice) == named, advice


def test_a_program_without_such_libraries_has_no_reserves(workspace, cuwarden):
    requests = [("program", "cudaMalloc", 3 * GIB), ("program", "cudaMalloc", 2 * GIB)]
    run = workspace.run(keeping(*requests), environment())
    assert "to get memory back" not in refused(run)["advice"]
    assert run.report["library_reserves"] == []
    assert "LIBRARIES" not in cuwarden("report", run.report.path).stdout


def test_a_refused_request_for_pinned_memory_tells_of_the_cache_of_pinned_memory(workspace):
    requests = [(PYTORCH_ON_HOST, "keep_on_host", 48 * MIB), (NCCL, "keep", GIB)]
    env = environment(CUWARDEN_SIM_PINNED_LIMIT="64MiB")
    run = workspace.run(keeping(*requests, ("program", "cudaMallocHost", 32 * MIB)), env)
    advice = refused(run)["advice"]
    assert "PyTorch has 48.0 MiB (pinned tensors" in advice
    assert "torch.accelerator.memory.empty_host_cache()" in advice
    assert "NCCL" not in advice, "memory of the device does not help"
    kept = {(row["library"], row["device"]): row["bytes"] for row in run.report["library_reserves"]}
    assert kept == {("NCCL", 0): GIB, ("PyTorch", None): 48 * MIB}


def test_a_redacted_report_names_the_library_without_its_folder(workspace, cuwarden):
    run = workspace.run(keeping((NCCL, "keep", 64 * MIB)), environment())
    (row,) = run.report["library_reserves"]
    redacted = Report(json.loads(cuwarden("report", "--redact", "--output", "-", run.report.path).stdout))
    assert redacted["library_reserves"] == [row]
    assert redacted.modules[row["module"]]["path"] == "libnccl.so.2"


def test_a_snapshot_has_the_reserves_of_that_moment(workspace, cuwarden, live):
    process = live(*keeping((NCCL, "keep", 64 * MIB)), "wait", env=environment())
    assert process.stdout.readline() == "[true]\n"
    done = cuwarden("snapshot", process.pid, "-o", workspace.reports / "now.json")
    assert done.returncode == 0, done.stderr
    (row,) = Report.read(workspace.reports / "now.json")["library_reserves"]
    assert (row["library"], row["bytes"]) == ("NCCL", 64 * MIB)


def test_streams_and_code_that_a_librarys_calls_took_are_an_item_of_the_account(workspace, cuwarden):
    run = workspace.run(keeping((NCCL, "keep_streams", 64), (CUFFT, "keep_streams", 16)))
    rows = {row["item"]: row["bytes"] for row in run.report["accounts"]}
    groups = [row for row in run.report["implicit_groups"] if row["item"] == "streams"]
    assert sorted(row["count"] for row in groups) == [16, 64]
    assert rows["libraries"] == sum(row["bytes"] for row in groups) > 0
    assert "streams" not in rows
    assert "code of libraries" in cuwarden("report", run.report.path).stdout


def test_top_has_what_a_librarys_calls_took_among_the_parts_of_the_device(workspace, cuwarden, live, screen):
    process = live(*keeping((NCCL, "keep_streams", 64), ("program", "cudaMalloc", 64 * MIB)), "wait")
    assert process.stdout.readline() == "[true, true]\n"
    text = screen("top", process.pid).wait_for(lambda text: "code of libraries" in text)
    used, shown = re.search(r"^GPU 0: .* ([\d.]+) MiB of .* in use \[.*\]\n(.*?)\nKIND ", text, re.M | re.S).groups()
    sizes = re.findall(r"([a-z][^·]*?) ([\d.]+) ([KM])iB", " ".join(shown.split()))
    parts = {name: float(size) / {"K": 1024, "M": 1}[unit] for name, size, unit in sizes}
    assert len(parts) == shown.count("·") + 1, shown
    # Each size is rounded to a tenth of a MiB.
    assert sum(parts.values()) == pytest.approx(float(used), abs=0.05 * (len(parts) + 1))
    done = cuwarden("snapshot", process.pid, "-o", workspace.reports / "now.json")
    assert done.returncode == 0, done.stderr
    accounts = Report.read(workspace.reports / "now.json")["accounts"]
    rows = {row["item"]: row["bytes"] / MIB for row in accounts if row["bytes"] > 0}
    assert parts["code of libraries"] > 0
    assert parts["code of libraries"] == pytest.approx(rows["libraries"], abs=0.05)
    assert sorted(parts.values()) == pytest.approx(sorted(rows.values()), abs=0.05)
    assert "streams" not in parts


def test_streams_of_libraries_are_an_item_of_an_incidents_account(workspace):
    requests = [(NCCL, "keep_streams", 64), ("program", "cudaMalloc", 3 * GIB)]
    run = workspace.run(keeping(*requests, ("program", "cudaMalloc", 2 * GIB)), environment())
    incident = refused(run)
    rows = {row["item"]: row["bytes"] for row in run.report["accounts"] if row["incident"] == incident["id"]}
    (group,) = [row for row in run.report["implicit_groups"] if row["item"] == "streams"]
    assert rows["libraries"] == group["bytes"] > 0
    assert "streams" not in rows
    facts = {row["fact"]: row["value"] for row in run.report["incident_facts"]}
    assert facts["library_stream_bytes"] == facts["stream_bytes"] == group["bytes"]
    assert sum(rows.values()) == facts["total_bytes"] - facts["free_bytes"]
