"""Requests that the real driver refuses: the verdict fits, and its figure equals the program's own
count."""

import subprocess

import pytest

import preloaded

MIB = 1 << 20

VERDICTS = {
    "slabs": ("slab_fragmentation", "slab_locked_bytes"),
    "rounding": ("slab_fragmentation", "rounding_bytes"),
    "pending": ("pending_frees", "pending_free_bytes"),
    "own": ("device_full_own", "own_bytes"),
    "library": ("held_by_framework", "held_bytes"),
    "larger": ("larger_than_device", None),
    "absurd": ("size_overflow", None),
}

VARIATIONS = [
    ["slabs", "bytes=65536", "keep=2", "only=16384"],
    ["slabs", "bytes=262144", "keep=8", "only=16384", "api=driver"],
    ["slabs", "bytes=1048576", "keep=2", "only=16384", "thread=1"],
    ["slabs", "bytes=100000", "keep=7", "only=10000", "seed=5"],
    ["slabs", "bytes=700000", "keep=3", "only=20000", "thread=1", "api=driver"],
    ["rounding", f"bytes={3 * MIB}"],
    ["rounding", f"bytes={5 * MIB // 2}", "api=driver"],
    ["rounding", f"bytes={2 * MIB + 1}", "only=20000"],
    ["rounding", f"bytes={6 * MIB + 4096}", "thread=1"],
    ["rounding", f"bytes={9 * MIB}", "api=driver"],
    ["pending"],
    ["pending", "streams=1"],
    ["pending", "streams=17", "more=64"],
    ["pending", "streams=3", "more=4000"],
    ["pending", "streams=2", "thread=1", "api=driver"],
    ["own"],
    ["own", f"bytes={200 * MIB}", "more=8"],
    ["own", "bytes=1048576", "room=32", "only=4096", "api=driver"],
    ["own", f"bytes={510 * MIB}", "room=600", "thread=1"],
    ["own", f"bytes={40 * MIB}", "room=1000", "more=600"],
    ["library"],
    ["library", f"bytes={600 * MIB}", "room=700", "thread=1"],
    ["library", "api=driver", "room=900", "more=1000"],
    ["library", "idle=0"],
    ["library", f"bytes={320 * MIB}", "more=16"],
    *(["larger", f"more={more}"] for more in (1, 2, 100, 5000, 500000)),
    *(["absurd", f"bytes={size}"] for size in ("0", "0x8000000000000000", "0xfffffffffffff000",
                                               "0xffffffff00000000", "0x800000000000")),
]

pytestmark = pytest.mark.alone


def run_shortage(workspace, command, env=None):
    program = preloaded.BUILD / "tests" / "end_to_end" / "programs" / "shortages"
    if not program.exists():
        pytest.skip(f"{program} was not built")
    run = workspace.run([program, *command], {"CUWARDEN_POOL": "off", **(env or {})})
    assert run.returncode == 0, run.stderr
    return run


@pytest.mark.parametrize("command", VARIATIONS, ids="-".join)
def test_the_verdict_fits_the_shortage(workspace, command):
    run = run_shortage(workspace, command)
    known = run.last_line
    report = run.report
    (incident,) = report["incidents"]
    verdict, figure = VERDICTS[command[0]]
    assert incident["verdict"] == verdict, incident
    assert incident["outcome"] == "failed" and incident["repeats"] == 0
    if known["requested_bytes"] <= 2**53:
        assert incident["bytes"] == known["requested_bytes"]
    if figure is not None:
        assert incident["proof"]["free_bytes"] == pytest.approx(known["free_bytes"], abs=4 * MIB)
        counted = known["figure"] + known["held_beside"] * (command[0] == "own")
        assert incident["proof"][figure] == pytest.approx(counted, rel=0.01)
    facts = {row["fact"]: row["value"] for row in report["incident_facts"]}
    rows = [row["bytes"] for row in report["accounts"] if row["incident"] == incident["id"]]
    assert sum(rows) == facts["total_bytes"] - facts["free_bytes"]
    preloaded.check_covered(report)


LAUNCHES = [
    ["launch", "local=65536"],
    ["launch", "local=32768", "room=500"],
    ["launch", "local=20000", "room=1000", "thread=1"],
    ["launch", "local=131072", "room=5000"],
    ["launch", "local=16384", "room=2000", "api=driver"],
]


@pytest.mark.parametrize("command", LAUNCHES, ids="-".join)
def test_a_launch_that_lacks_local_memory_is_implicit(workspace, command):
    run = run_shortage(workspace, command)
    assert (run.last_line["figure"], run.last_line["failures"]) == (2, 1)
    (incident,) = run.report["incidents"]
    assert (incident["verdict"], incident["asked_for"]) == ("implicit_memory", "launch"), incident
    assert incident["bytes"] == pytest.approx(run.last_line["requested_bytes"], rel=0.01)
    assert incident["device"] == 0
    preloaded.check_covered(run.report)


CONTEXTS = [
    ["context", "room=100"],
    ["context", "room=200", "thread=1"],
    ["context", "room=10"],
    ["context", "room=50", "api=driver"],
    ["context", "room=300", "api=driver", "thread=1"],
]


@pytest.mark.parametrize("command", CONTEXTS, ids="-".join)
def test_a_context_that_does_not_fit_beside_the_programs_own_memory(workspace, command):
    run = run_shortage(workspace, command)
    assert (run.last_line["figure"], run.last_line["failures"]) == (2, 1)
    (incident,) = run.report["incidents"]
    assert (incident["verdict"], incident["asked_for"]) == ("device_full_own", "context"), incident
    assert incident["proof"]["own_bytes"] == run.last_line["held_beside"]
    preloaded.check_covered(run.report)


ADDRESSES = [
    ["pinned", "by=limit", f"bytes={1024 * MIB}"],
    ["pinned", "by=limit", f"bytes={2048 * MIB}", "alloc=1"],
    ["pinned", "by=limit", f"bytes={3072 * MIB}", "api=driver"],
    ["pinned", "by=limit", f"bytes={5120 * MIB}", "thread=1"],
    ["pinned", "by=gap", f"bytes={4096 * MIB}"],
]


@pytest.mark.parametrize("command", ADDRESSES, ids="-".join)
def test_a_request_fails_for_lack_of_addresses_while_memory_is_free(workspace, command):
    run = run_shortage(workspace, command)
    assert (run.last_line["failures"], run.last_line["served"]) == (1, 0)
    (incident,) = run.report["incidents"]
    assert incident["verdict"] == "address_space_gap", incident
    assert incident["bytes"] == run.last_line["requested_bytes"]
    preloaded.check_covered(run.report)


# Calls that take memory although they are not allocation calls: limits, code, streams.
IMPLICIT = [
    ["heap", f"bytes={4096 * MIB}", "room=1000"],
    ["heap", f"bytes={8192 * MIB}", "room=2000", "api=driver"],
    ["heap", f"bytes={1024 * MIB}", "room=300", "thread=1"],
    ["stack", "bytes=65536", "room=1000"],
    ["stack", "bytes=16384", "room=200", "thread=1", "api=driver"],
    ["module", f"bytes={2048 * MIB - 4096}", "room=1000"],
    ["module", f"bytes={256 * MIB}", "room=50", "thread=1"],
    ["module", f"bytes={64 * MIB}", "room=10"],
    ["streams", "room=4"],
    ["streams", "room=30", "api=driver"],
    ["streams", "room=12", "thread=1"],
]
ASKED_FOR = {"heap": "launch", "stack": "limit", "streams": "stream"}
OUT_OF_MEMORY, OUT_OF_RESOURCES = 2, 701  # The driver's answers if the heap does not fit.


@pytest.mark.parametrize("command", IMPLICIT, ids="-".join)
def test_a_call_that_allocates_implicitly_fails_for_lack_of_memory(workspace, command):
    run = run_shortage(workspace, command)
    known = run.last_line
    of_heap = command[0] == "heap"
    assert (known["figure"], known["failures"]) == (OUT_OF_RESOURCES if of_heap else OUT_OF_MEMORY, 1)
    (incident,) = run.report["incidents"]
    assert incident["verdict"] == "implicit_memory", incident
    assert incident["asked_for"] == ASKED_FOR.get(command[0], command[0])
    assert incident["bytes"] == (known["requested_bytes"] if of_heap else None)
    assert incident["device"] == 0
    # If local memory is lacking, the driver gives back what the context had.
    more_free = incident["proof"]["free_bytes"] - known["free_bytes"]
    assert (more_free > 64 * MIB) if command[0] == "stack" else (abs(more_free) <= 4 * MIB)
    preloaded.check_covered(run.report)
    rows = {row["item"]: row["bytes"] for row in run.report["accounts"] if row["incident"] is not None}
    facts = {row["fact"]: row["value"] for row in run.report["incident_facts"]}
    used = facts["total_bytes"] - facts["free_bytes"]
    assert sum(rows.values()) == used
    assert abs(rows["unexplained"]) <= used / 100


# Numbers of other processes on the device, each of which holds six tenths of the memory that it
# finds free, and the program's options.
BESIDE = [
    (1, ["own", "room=200000", "more=900"]),
    (2, ["own", "room=200000", "more=64", "api=driver"]),
    (3, ["own", "room=200000", "more=5000", "thread=1"]),
    (1, ["own", "room=40000", f"bytes={512 * MIB}"]),
    (2, ["own", "room=15000", f"bytes={100 * MIB}", "thread=1", "api=driver"]),
]


@pytest.mark.parametrize(("count", "command"), BESIDE)
def test_memory_of_other_processes_is_reported_as_theirs(workspace, tmp_path, count, command):
    sample = preloaded.BUILD / "samples" / "neighbour"
    if not sample.exists():
        pytest.skip(f"{sample} was not built")
    env = {"CUWARDEN_SIM_SHARED": tmp_path / "shared_device"} if preloaded.SIMULATED else {}
    others, held = [], 0
    try:
        for _ in range(count):
            other = workspace.start([sample, "hold", "100"], env, shim=False, stdin=subprocess.PIPE)
            others.append(other)
            held += int(other.stdout.readline())
        run = run_shortage(workspace, command, env)
    finally:
        for other in others:
            other.communicate(timeout=preloaded.PATIENCE_S)
    (incident,) = run.report["incidents"]
    # In a container NVML may list no process.
    figures = {
        "held_by_other_processes": "other_processes_bytes",
        "held_by_unlisted_owner": "unlisted_bytes",
    }
    assert incident["verdict"] in figures, incident
    context = 768 * MIB  # The most that the context of each takes.
    found = incident["proof"][figures[incident["verdict"]]]
    assert held * 0.99 <= found <= held * 1.01 + count * context
    assert incident["proof"]["own_bytes"] == run.last_line["figure"]
    preloaded.check_covered(run.report)
