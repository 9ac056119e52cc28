"""Devices that do not answer, vanish, or hold other processes' memory: the program notices no difference,
the report is whole, and values that cannot be known are null."""

import sys

import pytest

from shimmed import program

MIB, GIB = 1 << 20, 1 << 30
PAGE = 2 * MIB

HEAD = """
import ctypes, json, sys
rt, cu = ctypes.CDLL("libcudart.so.13"), ctypes.CDLL("libcuda.so.1")
def malloc(bytes):
    p = ctypes.c_void_p()
    return rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(bytes)), p
def show(**facts):
    print(json.dumps(facts))
"""


def python(body):
    return [sys.executable, "-c", HEAD + body]


def environment(**changes):
    return {"CUWARDEN_SIM_MEMORY": "4GiB", "CUWARDEN_SIM_DEVICES": "2", **changes}


def whole(run):
    assert run.report["tool"]["complete"] is True, run.report["tool"]
    assert run.report["process"]["end_reason"] == "exit"
    return run.report


# --- cuMemGetInfo fails

FILL = """
count, result = 0, 0
while result == 0 and count < 100:
    result, _ = malloc(256 << 20)
    count += result == 0
show(count=count, result=result)
"""
FAILS = [
    "cuMemGetInfo:*:999",
    "cuMemGetInfo:from:2:999",
    "cuMemGetInfo:from:3:2",
    "cuMemGetInfo:*:700,cuDeviceTotalMem:*:999",
    "cuMemGetInfo:from:2:46,cuDeviceTotalMem:*:999,cuMemPoolGetAttribute:*:999",
]


@pytest.mark.parametrize("fail", FAILS)
def test_a_device_that_cannot_be_read_at_an_incident_proves_nothing(run_both, cuwarden, fail):
    run = run_both(python(FILL), environment(CUWARDEN_SIM_FAIL=fail))
    assert run.last_line == {"count": 13, "result": 2}
    report = whole(run)
    (incident,) = report["incidents"]
    assert incident["verdict"] == "unknown", incident
    total = None if "TotalMem" in fail else 4 * GIB
    assert incident["proof"].get("total_bytes") == total
    assert "free_bytes" not in incident["proof"] and incident["advice"]
    assert [row for row in report["accounts"] if row["incident"] is not None] == []
    facts = {row["fact"] for row in report["incident_facts"]}
    assert not {"free_bytes", "pool_idle_bytes", "other_processes_bytes"} & facts
    # The process still knows its own allocations.
    assert sum(row["bytes"] for row in report["incident_holders"]) == 13 * 256 * MIB
    (device,) = report["devices"]
    if "*:999" in fail or "*:700" in fail:
        if "cuMemGetInfo:*" in fail:
            assert device["used_bytes"] is None and device["at"] is None
            assert report["accounts"] == []
    shown = cuwarden("report", report.path)
    assert shown.returncode == 0 and "unknown" in shown.stdout


@pytest.mark.parametrize("fail", FAILS[:3])
def test_a_cause_that_needs_no_reading_is_proven_without_one(run_both, fail):
    body = "show(results=[malloc(b)[0] for b in (5 << 30, 1 << 63)])"
    run = run_both(python(body), environment(CUWARDEN_SIM_FAIL=fail))
    assert run.last_line == {"results": [2, 2]}
    report = whole(run)
    # Both requests have one call site, so the second is a repeat of the first.
    (incident,) = report["incidents"]
    assert incident["verdict"] == "larger_than_device" and incident["repeats"] == 1
    assert incident["proof"] == {"total_bytes": 4 * GIB, "requested_bytes": 5 * GIB}


@pytest.mark.parametrize("fail", FAILS)
@pytest.mark.parametrize(
    ("command", "verdict"),
    [
        (["absurd", "bytes=0x800000000000"], "size_overflow"),
        (["stack", "bytes=65536"], "implicit_memory"),
        (["pinned"], "host_ram_exhausted"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_verdicts_that_need_no_device_are_the_same(workspace, fail, command, verdict):
    run = workspace.run([program("shortages"), *command], environment(CUWARDEN_SIM_FAIL=fail))
    (incident,) = whole(run)["incidents"]
    assert incident["verdict"] == verdict, incident
    assert "free_bytes" not in incident["proof"]


# --- NVML is missing


def test_without_nvml_what_others_hold_has_an_unlisted_owner(run_both):
    env = environment(CUWARDEN_SIM_OTHER_PROCESS="3GiB", LD_LIBRARY_PATH=None)
    run = run_both([program("shortages"), "own", "room=10000", "more=900"], env)
    (incident,) = whole(run)["incidents"]
    assert incident["verdict"] == "held_by_unlisted_owner", incident
    assert run.report["device_processes"] == [] and run.said == []


@pytest.mark.parametrize("api", ["runtime", "driver"])
def test_without_nvml_nothing_is_known_of_a_device_without_a_context(run_both, api):
    env = environment(CUWARDEN_SIM_OTHER_PROCESS="4GiB", LD_LIBRARY_PATH=None)
    run = run_both([program("shortages"), "first_context", f"api={api}"], env)
    (incident,) = whole(run)["incidents"]
    assert incident["verdict"] == "unknown" and "free_bytes" not in incident["proof"], incident
    assert incident["advice"] == "the device's free memory could not be read at that moment"
    assert run.report["accounts"] == []


def test_without_nvml_a_slice_that_is_too_small_is_said_to_be_a_slice(run_both):
    env = environment(CUWARDEN_SIM_MIG="80GiB", LD_LIBRARY_PATH=None)
    run = run_both([program("shortages"), "larger"], env)
    (incident,) = whole(run)["incidents"]
    assert incident["verdict"] == "larger_than_device", incident
    assert "slice" in incident["proof"] and "whole_device_bytes" not in incident["proof"]


# --- the device vanishes

WORK = """
results = []
def ok(result):
    results.append(result)
held = []
for i in range(6):
    result, p = malloc(64 << 20)
    ok(result)
    held.append(p)
stream = ctypes.c_void_p()
ok(rt.cudaStreamCreate(ctypes.byref(stream)))
ok(rt.cudaDeviceSynchronize())
host = ctypes.c_void_p()
ok(rt.cudaMallocHost(ctypes.byref(host), ctypes.c_size_t(1 << 20)))
ok(rt.cudaMemset(held[0], 0, ctypes.c_size_t(1024)))
free, total = ctypes.c_size_t(), ctypes.c_size_t()
ok(rt.cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total)))
for p in held[:3]:
    ok(rt.cudaFree(p))
ok(rt.cudaSetDevice(1))
ok(rt.cudaFree(None))
context = ctypes.c_void_p()
ok(cu.cuCtxCreate_v2(ctypes.byref(context), 0, 0))
ok(rt.cudaDeviceReset())
ok(malloc(1 << 20)[0])
show(results=results)
"""


@pytest.mark.parametrize("code", [46, 999, 100, 719])
@pytest.mark.parametrize("at", ["cuMemAlloc:4", "cuMemFree:2", "cuStreamCreate:1", "cuMemHostAlloc:1"])
def test_a_device_that_vanishes_is_no_lack_of_memory(run_both, cuwarden, at, code):
    function, call = at.split(":")
    fail = f"{function}:lost:{call}:{code}"
    run = run_both(python(WORK), environment(CUWARDEN_SIM_FAIL=fail))
    results = run.last_line["results"]
    lost_at = results.index(code)
    # All later calls fail.
    assert set(results[:lost_at]) <= {0} and 0 not in results[lost_at:], results
    report = whole(run)
    assert report["incidents"] == [] and report["incident_holders"] == []
    assert all(total["failures"] == 0 for total in report["totals"])
    device = report["devices"][0]
    assert device["device"] == 0 and device["at"] == "last_call"
    assert device["total_bytes"] == 4 * GIB
    # Memory that the driver refused to free counts as live.
    served = 3 if function == "cuMemAlloc" else 6
    freed = 1 if function == "cuMemFree" else 0
    total = report.totals()["device"]
    assert (total["allocations"], total["frees"]) == (served, freed)
    assert total["live_bytes"] == (served - freed) * 64 * MIB
    assert report["leaks"]["count"] >= served - freed
    assert "OUT OF MEMORY" not in cuwarden("report", report.path).stdout


@pytest.mark.parametrize("code", [46, 999])
@pytest.mark.parametrize("mode", ["default", "prohibited"])
def test_a_device_that_vanishes_before_there_is_a_context_is_none_that_is_forbidden(
    run_both, code, mode
):
    fail = f"cuDevicePrimaryCtxRetain:lost:1:{code}"
    run = run_both(
        python("show(results=[malloc(1 << 20)[0] for _ in range(3)])"),
        environment(CUWARDEN_SIM_FAIL=fail, CUWARDEN_SIM_COMPUTE_MODE=mode),
    )
    assert set(run.last_line["results"]) == {code}
    report = whole(run)
    assert report["incidents"] == [] and report["accounts"] == []
    assert all(device["used_bytes"] is None for device in report["devices"])


def test_a_device_that_vanishes_after_an_incident_leaves_it_as_it_was(run_both):
    body = FILL + "show(result=malloc(1 << 20)[0], again=malloc(256 << 20)[0])"
    run = run_both(python(body), environment(CUWARDEN_SIM_FAIL="cuMemAlloc_v2:lost:15:999"))
    assert run.last_line == {"result": 999, "again": 999}
    (incident,) = whole(run)["incidents"]
    assert incident["verdict"] == "device_full_own" and incident["repeats"] == 0
    assert incident["proof"]["own_bytes"] == 13 * 256 * MIB


# --- two contexts on one device

TWO = """
cu.cuInit(0)
def context(device=0):
    c = ctypes.c_void_p()
    return cu.cuCtxCreate_v2(ctypes.byref(c), 0, device), c
def take(bytes):
    p = ctypes.c_uint64()
    return cu.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(bytes))
def used():
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    cu.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
    return total.value - free.value
"""


@pytest.mark.parametrize("sizes", [(1 << 30, 1 << 30), (1 << 20, 2 << 30), (2 << 30, 3 << 20)])
@pytest.mark.parametrize("device", [0, 1])
def test_two_contexts_of_a_device_are_both_in_the_account_and_once(run_both, sizes, device):
    body = TWO + f"""
results = [context({device})[0]]
first = used()
results += [take({sizes[0]}), context({device})[0]]
second = used() - {-(-sizes[0] // PAGE) * PAGE} - first
results += [take({sizes[1]})]
before = used()
results += [take((4 << 30) - before + (256 << 20))]
show(results=results, first=first, second=second, used=before)
"""
    run = run_both(python(body), environment())
    known = run.last_line
    assert known["results"] == [0, 0, 0, 0, 2]
    report = whole(run)
    (incident,) = report["incidents"]
    assert incident["device"] == device
    assert incident["verdict"] == "device_full_own", incident
    assert incident["proof"]["own_bytes"] == sum(sizes)
    rows = [row for row in report["accounts"] if row["incident"] == incident["id"]]
    assert {row["device"] for row in rows} == {device}
    items = {row["item"]: row["bytes"] for row in rows}
    assert len(items) == len(rows)
    assert items["live_device"] == sum(sizes)
    assert items["context"] == known["first"] + known["second"]
    slab = items.get("slab_waste", 0) + items.get("rounding_waste", 0)
    assert items["unexplained"] == known["used"] - sum(sizes) - items["context"] - slab
    assert abs(items["unexplained"]) <= 4 * MIB
    (row,) = report["devices"]
    assert row["device"] == device and row["used_bytes"] == known["used"]


# --- a device on which the process uses only memory of another process

OPENED = """
import os, subprocess
handle = (ctypes.c_char * 64)()
if len(sys.argv) > 1:
    handle.raw = bytes.fromhex(sys.argv[1])
    p = ctypes.c_void_p()
    rt.cudaSetDevice(1)
    class Handle(ctypes.Structure):
        _fields_ = [("reserved", ctypes.c_char * 64)]
    given = Handle.from_buffer_copy(bytes.fromhex(sys.argv[1]))
    rt.cudaIpcOpenMemHandle.argtypes = [ctypes.c_void_p, Handle, ctypes.c_uint]
    opened = rt.cudaIpcOpenMemHandle(ctypes.byref(p), given, 1)
    refused = malloc(5 << 29)[0]
    show(opened=opened, refused=refused)
else:
    rt.cudaSetDevice(1)
    result, p = malloc(1 << 30)
    rt.cudaIpcGetMemHandle(ctypes.byref(handle), p)
    child = subprocess.run([sys.executable, "-c", os.environ["BODY"], handle.raw.hex()],
                           capture_output=True, text=True)
    print(child.stdout, end="")
"""


def test_a_device_of_which_only_opened_memory_is_used_has_its_row_and_no_waste(workspace, tmp_path):
    env = environment(CUWARDEN_SIM_SHARED=tmp_path / "shared", BODY=HEAD + OPENED)
    run = workspace.run(python(OPENED), env)
    assert run.returncode == 0 and run.last_line == {"opened": 0, "refused": 2}, run.stderr
    (report,) = [r for r in run.reports if "imported" in r.totals()]
    (device,) = report["devices"]
    assert device["device"] == 1 and device["at"] == "exit"
    total = report.totals()
    assert total["imported"]["live_bytes"] == GIB and total["device"]["live_bytes"] == 0
    for row in report["fragmentation"]:
        figures = [value for name, value in row.items() if name.endswith("_bytes")]
        assert all(value in (0, None) for value in figures), row
    assert report["slab_map"] == report["slab_classes"] == []
    (incident,) = report["incidents"]
    # The opened memory belongs to the other process, and counts once.
    rows = {r["item"]: r["bytes"] for r in report["accounts"] if r["incident"] == incident["id"]}
    assert rows["live_imported"] == GIB
    (other,) = report["device_processes"]
    assert rows["other_processes"] == other["used_bytes"] - GIB
    assert set(rows) == {"live_imported", "other_processes", "context", "unexplained"}
    # NVML tells how much of the memory in use after the first context is this process's own.
    assert 500 * MIB < rows["context"] < 550 * MIB
    assert abs(rows["unexplained"]) < 4 * MIB
    assert incident["verdict"] == "held_by_other_processes", incident
    assert incident["proof"]["opened_bytes"] == GIB
    at_exit = {r["item"]: r["bytes"] for r in report["accounts"] if r["incident"] is None}
    assert at_exit["live_imported"] == GIB and at_exit["unexplained"] < GIB
