"""Requests that are refused for lack of memory: each gets the right verdict, with figures that the
program's own count confirms. The variations were written after the rules of the verdicts."""

import sys

import pytest

from reports import Report
from shimmed import PATIENCE_S, program, until

MIB = 1 << 20
PAGE = 2 * MIB
SIZE = "4GiB"

# Kinds of memory that the driver takes by itself.
IMPLICIT_KINDS = {"stream", "module", "graph_exec", "context", "local_memory", "heap"}

VERDICTS = {
    "slabs": ("slab_fragmentation", "slab_locked_bytes"),
    "rounding": ("slab_fragmentation", "rounding_bytes"),
    "pending": ("pending_frees", "pending_free_bytes"),
    "own": ("device_full_own", "own_bytes"),
    "library": ("held_by_framework", "held_bytes"),
}

VARIATIONS = [
    ["slabs", "bytes=16384", "keep=50"],
    ["slabs", "bytes=65536", "keep=2", "api=driver"],
    ["slabs", "bytes=262144", "keep=8", "thread=1"],
    ["slabs", "bytes=1048576", "keep=2", "device=1"],
    ["slabs", "bytes=100000", "keep=7", "seed=5"],
    ["slabs", "bytes=700000", "keep=3", "device=1", "thread=1", "api=driver"],
    ["rounding", f"bytes={3 * MIB}"],
    ["rounding", f"bytes={5 * MIB // 2}", "api=driver"],
    ["rounding", f"bytes={MIB + 1}", "device=1"],
    ["rounding", f"bytes={6 * MIB + 4096}", "thread=1"],
    ["rounding", f"bytes={9 * MIB}", "device=1", "api=driver"],
    ["pending"],
    ["pending", "streams=1"],
    ["pending", "streams=17", "more=64"],
    ["pending", "streams=3", "device=1"],
    ["pending", "streams=2", "thread=1", "api=driver"],
    ["own"],
    ["own", f"bytes={2 * MIB}", "more=8"],
    ["own", "bytes=1048576", "room=32", "api=driver"],
    ["own", f"bytes={510 * MIB}", "room=600", "device=1", "thread=1"],
    ["own", f"bytes={4 * MIB}", "room=1000", "more=600"],
    ["library"],
    ["library", f"bytes={6 * MIB}", "thread=1"],
    ["library", "api=driver", "room=900", "more=1000"],
    ["library", "idle=0"],
    ["library", "device=1", f"bytes={32 * MIB}", "more=16"],
]


def environment(**changes):
    return {"CUWARDEN_SIM_MEMORY": SIZE, "CUWARDEN_SIM_DEVICES": "2", **changes}


def refused(**changes):
    """Returns an environment without rescues, so that the program gets each refusal of the driver."""
    return environment(CUWARDEN_POOL="off", **changes)


def only_incident(report):
    assert report["tool"]["complete"] is True, report["tool"]
    assert len(report["incidents"]) == 1, report["incidents"]
    return report["incidents"][0]


def option(command, name, otherwise):
    values = [word.split("=")[1] for word in command if word.startswith(f"{name}=")]
    return values[0] if values else otherwise


def check_account(report, incident):
    """Checks that the incident's account adds up to the bytes that were in use at that moment."""
    facts = {
        row["fact"]: row["value"]
        for row in report["incident_facts"]
        if row["incident"] == incident["id"]
    }
    rows = [row for row in report["accounts"] if row["incident"] == incident["id"]]
    assert {row["device"] for row in rows} == {incident["device"]}
    assert sum(row["bytes"] for row in rows) == facts["total_bytes"] - facts["free_bytes"]
    return facts


def check_fragmentation(report, incident, facts):
    """Checks the incident's slabs by size class, and the groups that lock them."""
    (row,) = report["incident_fragmentation"]
    for name in ("slab_count", "slab_locked_bytes", "rounding_bytes"):
        assert row[name] == facts[name]
    assert row["largest_request_bytes"] < incident["bytes"]
    assert row["largest_request_bytes"] <= facts["free_bytes"] + facts.get("pool_idle_bytes", 0)
    classes = report["incident_slab_classes"]
    assert sum(each["slab_count"] for each in classes) == facts["slab_count"]
    slabs = report["incident_slab_map"]
    assert len(slabs) == row["slabs_listed"] == row["slab_count"]
    assert {slab["incident"] for slab in slabs} <= {incident["id"]}
    assert len({slab["address"] for slab in slabs}) == len(slabs)
    for name, of_slab in (("live_count", "live"), ("live_bytes", "live_bytes")):
        assert sum(each[name] for each in classes) == sum(slab[of_slab] for slab in slabs)
    held = sum(PAGE - slab["live_bytes"] for slab in slabs)
    assert facts["slab_locked_bytes"] <= held <= facts["slab_locked_bytes"] + facts["rounding_bytes"]
    lockers = [each["slab_locked_bytes"] or 0 for each in report["incident_holders"]]
    assert sum(lockers) <= facts["slab_locked_bytes"]
    if incident["verdict"] == "slab_fragmentation" and facts["slab_locked_bytes"]:
        assert max(lockers) >= 0.9 * facts["slab_locked_bytes"]


@pytest.mark.parametrize("command", VARIATIONS, ids="-".join)
def test_each_refusal_gets_the_verdict_that_fits(run_both, command):
    run = run_both([program("shortages"), *command], refused())
    known = run.last_line
    incident = only_incident(run.report)
    verdict, figure = VERDICTS[command[0]]
    assert incident["verdict"] == verdict, incident
    assert incident["outcome"] == "failed" and incident["asked_for"] == "memory"
    assert incident["api"] == ("cuMemAlloc_v2" if "api=driver" in command else "cudaMalloc")
    assert incident["device"] == int(option(command, "device", 0))
    assert incident["bytes"] == incident["proof"]["requested_bytes"] == known["requested_bytes"]
    assert incident["repeats"] == known["failures"] - 1 == 0
    assert incident["proof"]["free_bytes"] == known["free_bytes"]
    assert incident["proof"][figure] == pytest.approx(known["figure"], rel=0.01)
    assert incident["advice"]
    facts = check_account(run.report, incident)
    assert facts["free_bytes"] == known["free_bytes"]
    names = [name for name, _ in run.report.functions(incident)]
    assert "rounding" in names[1] if command[0] == "rounding" else "request" in names[1]
    holders = [row for row in run.report["incident_holders"] if row["incident"] == incident["id"]]
    of_allocations = [row for row in holders if row["kind"] not in IMPLICIT_KINDS]
    assert bool(of_allocations) == (command[0] != "pending")
    check_fragmentation(run.report, incident, facts)
    if command[0] == "library":
        assert incident["proof"]["holder"].endswith("/libtensor_cache.so")


@pytest.mark.parametrize("more", ["1", "2", "100", "5000", "70000"])
@pytest.mark.parametrize("device", ["0", "1"])
def test_a_request_larger_than_the_device_is_called_so(run_both, more, device):
    run = run_both([program("shortages"), "larger", f"more={more}", f"device={device}"], refused())
    incident = only_incident(run.report)
    assert incident["verdict"] == "larger_than_device"
    assert incident["proof"] == {
        "total_bytes": 4 << 30,
        "requested_bytes": run.last_line["requested_bytes"],
    }


@pytest.mark.parametrize(
    "size", ["0", "0x8000000000000000", "0xfffffffffffff000", "0xffffffff00000000", "0x800000000000"]
)
def test_a_negative_or_absurd_size_is_an_overflow(run_both, size):
    run = run_both([program("shortages"), "absurd", f"bytes={size}"], refused())
    incident = only_incident(run.report)
    assert incident["verdict"] == "size_overflow"
    asked = int(size, 0) or 2**64 - 1
    assert incident["proof"]["requested"] == str(asked)
    assert incident["bytes"] == (asked if asked <= 2**53 else None)


@pytest.mark.parametrize(
    "options", [[], ["count=4"], ["count=9", "device=1"], ["thread=1"], ["api=driver", "count=2"]]
)
def test_a_request_waits_for_another_threads_free_as_the_driver_lets_it(run_both, options):
    """A free waits for the device, and a request during the free waits for the free. So memory that is
    being freed at that moment is not missing to the request."""
    run = run_both(
        [program("shortages"), "freeing", *options], refused(CUWARDEN_SIM_KERNEL_TIME="400ms")
    )
    assert (run.last_line["served"], run.last_line["failures"]) == (1, 0)
    assert run.report["incidents"] == []


OTHERS = ["2GiB", "3GiB", "3400MiB", "2500MiB", "3300MiB"]


def beside_another(run_both, other, **changes):
    run = run_both(
        [program("shortages"), "own", "room=10000", "more=900"],
        refused(CUWARDEN_SIM_OTHER_PROCESS=other, **changes),
    )
    held = int(other[:-3]) << (30 if other.endswith("GiB") else 20)
    return run.report, only_incident(run.report), held


@pytest.mark.parametrize("other", OTHERS)
def test_another_process_is_named_with_what_it_holds(run_both, other):
    report, incident, held = beside_another(run_both, other)
    assert incident["verdict"] == "held_by_other_processes", incident
    assert incident["proof"]["other_processes_bytes"] == held
    (row,) = report["device_processes"]
    assert (row["incident"], row["used_bytes"], row["pid"]) == (incident["id"], held, 1)
    check_account(report, incident)


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("nvml", ["refuse", "hide_others"])
def test_memory_that_no_listed_process_holds_has_an_unlisted_owner(run_both, other, nvml):
    report, incident, held = beside_another(run_both, other, CUWARDEN_SIM_NVML=nvml)
    assert incident["verdict"] == "held_by_unlisted_owner", incident
    # A process of another test may have a file of the device's name open, but no memory.
    assert [row for row in report["device_processes"] if row["used_bytes"] is not None] == []
    # The size of contexts is not known to the byte.
    assert incident["proof"]["unlisted_bytes"] == pytest.approx(held, abs=1 << 30)
    assert incident["proof"]["own_bytes"] == 0


def test_a_request_that_failed_although_enough_was_free_is_unknown(run_both):
    run = run_both(
        [program("shortages"), "enough"], refused(CUWARDEN_SIM_FAIL="cuMemAlloc_v2:1:2")
    )
    incident = only_incident(run.report)
    assert incident["verdict"] == "unknown"
    assert incident["proof"]["free_bytes"] > incident["proof"]["requested_bytes"]
    check_account(run.report, incident)


@pytest.mark.parametrize("api", ["runtime", "driver"])
@pytest.mark.parametrize("rounds", [1, 7])
def test_refusals_that_the_program_always_recovers_from_raise_no_alarm(run_both, cuwarden, api, rounds):
    command = ["recovers", f"rounds={rounds}", f"api={api}"]
    run = run_both([program("shortages"), *command], refused())
    assert run.last_line["failures"] == rounds and run.last_line["served"] == rounds
    incident = only_incident(run.report)
    assert incident["outcome"] == "recovered_by_caller"
    assert incident["recovered_count"] == incident["repeats"] + 1 == rounds
    shown = cuwarden("report", run.report.path).stdout
    assert "OUT OF MEMORY" not in shown
    assert f"no alarm: {rounds} request" in shown


def test_one_refusal_without_recovery_is_an_incident(run_both, cuwarden):
    run = run_both([program("shortages"), "recovers", "rounds=4", "gives_up=1"], refused())
    assert run.last_line["served"] == 3
    incident = only_incident(run.report)
    assert incident["outcome"] == "failed"
    assert (incident["repeats"], incident["recovered_count"]) == (3, 3)
    shown = cuwarden("report", run.report.path).stdout
    assert ": cudaMalloc of 400.0 MiB (GPU 0) failed 4 times from then on " in shown
    assert "asked again and was served 3 times" in shown


def test_repeats_are_counted_and_not_listed(run_both):
    run = run_both([program("shortages"), "repeats", "times=1000"], refused())
    incident = only_incident(run.report)
    assert incident["repeats"] == 999
    assert incident["bytes"] == 1024 * MIB
    assert incident["last_bytes"] == 1024 * MIB + 999 * PAGE
    assert incident["last_ns"] >= incident["time_ns"]
    assert run.report.totals()["device"]["failures"] == 1000


def test_the_report_is_on_disk_when_the_process_dies_later(workspace, live, cuwarden):
    """From the first incident on there is a whole report, which recover replaces."""
    process = live(program("shortages"), "repeats", "times=100000000", env=refused())
    path = workspace.reports / f"shortages-{process.pid}.json"
    until(path.exists, process)
    report = Report.read(path)
    assert report["process"]["end_reason"] == "running"
    assert report["incidents"][0]["verdict"] == "device_full_own"
    process.kill()
    process.wait(PATIENCE_S)
    done = cuwarden("recover", workspace.ledger)
    assert done.returncode == 0, done.stderr
    assert list(workspace.reports.iterdir()) == [path]
    recovered = Report.read(path)
    assert recovered["incidents"][0]["repeats"] > report["incidents"][0]["repeats"]
    assert recovered["process"]["end_reason"] != "running"


OTHERS_STREAM = """
import ctypes
rt = ctypes.CDLL("libcudart.so.13")
memory, stream = ctypes.c_void_p(), ctypes.c_void_p()
rt.cudaSetDevice(1)
rt.cudaStreamCreate(ctypes.byref(stream))
rt.cudaMalloc(ctypes.byref(memory), ctypes.c_size_t(3 << 30))
rt.cudaSetDevice(0)
for size in (1 << 20, 2 << 30):
    print(rt.cudaMallocAsync(ctypes.byref(memory), ctypes.c_size_t(size), stream))
"""


@pytest.mark.parametrize("mode", ["off", "rescue"])
def test_a_request_in_another_devices_stream_counts_for_that_device(workspace, mode):
    run = workspace.run([sys.executable, "-c", OTHERS_STREAM], environment(CUWARDEN_POOL=mode))
    assert run.stdout == "0\n2\n", run.stderr
    (incident,) = run.report["incidents"]
    assert (incident["device"], incident["kind"]) == (1, "stream_ordered")
    # The other device's context is not entered, since another thread may be ending it.
    assert incident["verdict"] == "unknown"
    rows = {row["device"]: row for row in run.report["totals"] if row["kind"] == "stream_ordered"}
    assert rows[1]["live_bytes"] == 1 << 20 and rows[1]["failures"] == 1 and 0 not in rows


OTHERS_POOL = """
import ctypes, sys
rt = ctypes.CDLL("libcudart.so.13")
cu = ctypes.CDLL("libcuda.so.1")
memory, stream, pool, handle = (ctypes.c_void_p() for _ in range(4))
own, streams_device, call = sys.argv[1:]
rt.cudaSetDevice(1)
if streams_device == "1":
    rt.cudaStreamCreate(ctypes.byref(stream))
rt.cudaMalloc(ctypes.byref(memory), ctypes.c_size_t(3 << 30))
rt.cudaSetDevice(0)
rt.cudaFree(None)
if streams_device == "0":
    rt.cudaStreamCreate(ctypes.byref(stream))
# Pinned memory, without handles, on device 1; then the same for cuMemCreate.
properties = (ctypes.c_int * 32)(1, 0, 1, 1)
if own == "own":
    assert rt.cudaMemPoolCreate(ctypes.byref(pool), properties) == 0
else:
    assert rt.cudaDeviceGetDefaultMemPool(ctypes.byref(pool), 1) == 0
for size in (2 << 20, 2 << 30):
    size = ctypes.c_size_t(size)
    if call == "create":
        print(cu.cuMemCreate(ctypes.byref(handle), size, properties, ctypes.c_ulonglong(0)))
    elif call == "driver":
        print(cu.cuMemAllocFromPoolAsync(ctypes.byref(memory), size, pool, stream))
    else:
        print(rt.cudaMallocFromPoolAsync(ctypes.byref(memory), size, pool, stream))
"""


@pytest.mark.parametrize("mode", ["off", "rescue"])
@pytest.mark.parametrize("stream", ["0", "1", "none"])
@pytest.mark.parametrize(
    "pool, call",
    [("own", "runtime"), ("default", "runtime"), ("own", "driver"), ("own", "create")],
)
def test_a_request_of_another_devices_memory_counts_for_that_device(workspace, mode, stream, pool, call):
    command = [sys.executable, "-c", OTHERS_POOL, pool, stream, call]
    run = workspace.run(command, environment(CUWARDEN_POOL=mode))
    assert run.stdout == "0\n2\n", run.stderr
    (incident,) = run.report["incidents"]
    kind = "vmm" if call == "create" else "stream_ordered"
    assert (incident["device"], incident["kind"]) == (1, kind)
    rows = {row["device"]: row for row in run.report["totals"] if row["kind"] == kind}
    assert rows[1]["live_bytes"] == 2 << 20 and rows[1]["failures"] == 1 and 0 not in rows


OTHERS_GRAPH = """
import ctypes
rt = ctypes.CDLL("libcudart.so.13")
memory, stream, graph, launched = (ctypes.c_void_p() for _ in range(4))
rt.cudaSetDevice(1)
rt.cudaStreamCreate(ctypes.byref(stream))
relaxed = 2
assert rt.cudaStreamBeginCapture(stream, relaxed) == 0
assert rt.cudaMallocAsync(ctypes.byref(memory), ctypes.c_size_t(2 << 30), stream) == 0
assert rt.cudaStreamEndCapture(stream, ctypes.byref(graph)) == 0
assert rt.cudaGraphInstantiate(ctypes.byref(launched), graph, ctypes.c_ulonglong(0)) == 0
assert rt.cudaMalloc(ctypes.byref(memory), ctypes.c_size_t(3 << 30)) == 0
rt.cudaSetDevice(0)
print(rt.cudaGraphLaunch(launched, stream))
"""


def test_a_launch_of_a_graph_that_another_device_has_no_room_for_counts_for_that_device(workspace):
    run = workspace.run([sys.executable, "-c", OTHERS_GRAPH], environment())
    assert run.stdout == "2\n", run.stderr
    (incident,) = run.report["incidents"]
    assert (incident["device"], incident["kind"]) == (1, "graph")
