"""Caches that are emptied where somebody else's request would fail."""

import sys

import pytest

import preloaded
from framework_checks import needs

pytestmark = pytest.mark.alone

RESCUE = {"CUWARDEN_POOL": "rescue"}


def rescued_by(report):
    (incident,) = report["incidents"]
    assert (incident["outcome"], incident["rescued_by"]) == ("rescued", "reclaim"), incident
    (row,) = [row for row in report["rungs"] if row["outcome"] == "served"]
    print(f"{row['reclaimer']}: {row['duration_ns'] / 1e6:.1f} ms")
    return row["reclaimer"]


@pytest.mark.parametrize("options", [[], ["thread=1"]], ids="-".join)
def test_a_cache_of_the_programs_own(place, options):
    program = preloaded.BUILD / "tests/end_to_end/programs/reclaiming"
    bare = place.run([program, "empties", *options], RESCUE, shim=False)
    assert (bare.last_line["served"], bare.last_line["failures"]) == (0, 1)
    run = place.run([program, "empties", *options], RESCUE)
    assert (run.last_line["served"], run.last_line["calls"]) == (1, 1), run.stderr
    assert run.last_line["given_back"] == run.last_line["held"]
    assert rescued_by(run.report) == "own cache"


@pytest.mark.parametrize("how", ["nothing", "throws", "exits", "hangs"])
def test_one_that_is_no_help_is_a_line_and_the_drivers_own_error(place, how):
    program = preloaded.BUILD / "tests/end_to_end/programs/reclaiming"
    run = place.run([program, how], {**RESCUE, "CUWARDEN_SYNC_TIMEOUT": "300ms"})
    assert (run.returncode, run.last_line["failures"]) == (0, 1), run.stderr
    assert len(run.said) == 1 and run.last_line["seconds"] < 5


def test_two_libraries(place):
    sample = preloaded.BUILD / "samples" / "two_libraries"
    plain = place.run([sample], RESCUE)
    assert plain.last_line["request"]["error"] == "cudaErrorMemoryAllocation"
    run = place.run([sample, "register"], RESCUE)
    assert run.last_line["request"]["error"] == "cudaSuccess", run.stdout
    assert rescued_by(run.report) == "tensor cache"


# One framework's cache holds two thirds of the device, idle; then somebody asks for half of it.
HOLD = {
    "torch": """
import torch
block = torch.empty(int(torch.cuda.mem_get_info()[0] * 0.66), dtype=torch.uint8, device="cuda")
size = block.numel() // 4 * 3
del block
""",
    "cupy": """
import cupy
block = cupy.empty(int(cupy.cuda.runtime.memGetInfo()[0] * 0.66), dtype=cupy.uint8)
size = block.size // 4 * 3
del block
""",
}
ASK = {
    "torch": """
import torch
try:
    data = torch.full((size,), 7, dtype=torch.uint8, device="cuda")
    print("served", int(data[-1]) + int(data[size // 2]))
except torch.cuda.OutOfMemoryError:
    print("refused")
""",
    "cupy": """
import cupy
try:
    data = cupy.full(size, 7, dtype=cupy.uint8)
    print("served", int(data[-1]) + int(data[size // 2]))
except cupy.cuda.memory.OutOfMemoryError:
    print("refused")
""",
    "raw": """
import ctypes
pointer = ctypes.c_void_p()
driver = ctypes.CDLL("libcuda.so.1")
result = driver.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(size))
print("served 14" if result == 0 else "refused")
""",
}


@needs("torch", "cupy")
@pytest.mark.parametrize("asks", ["cupy", "torch", "raw"])
@pytest.mark.parametrize("holds", ["torch", "cupy"])
def test_a_frameworks_cache_is_emptied_for_another(place, holds, asks):
    if holds == asks:
        pytest.skip("it empties its own")
    script = place.work / "script.py"
    script.write_text("import torch, cupy\ntorch.zeros(1, device='cuda'); cupy.zeros(1)\n" + HOLD[holds] + ASK[asks])
    bare = place.run([sys.executable, script], shim=False)
    assert bare.stdout == "refused\n", bare.stderr
    env = {**RESCUE, "PYTHONPATH": str(preloaded.SOURCE / "tools" / "python")}
    run = place.run([sys.executable, "-m", "cuwarden", script], env)
    assert run.stdout == "served 14\n", run.stderr
    served = [row["reclaimer"] for row in run.report["rungs"] if row["outcome"] == "served"]
    assert served == [{"torch": "PyTorch", "cupy": "CuPy"}[holds]], run.report["rungs"]
