"""`cuwarden export --format perfetto`, read by Perfetto's trace processor."""

import json

import pytest

from consumers import Trace
from exported import HOSTILE, PRINTABLE, live_groups, rich, write

START = 1795161601_123456789
END = START + 100_000_000_000


@pytest.fixture
def report(sample_report):
    return rich(json.loads(sample_report.read_text()))


@pytest.fixture
def trace_of(cuwarden, tmp_path):
    def trace(*reports):
        paths = [write(tmp_path / f"{number}.json", report) for number, report in enumerate(reports)]
        done = cuwarden("export", "--format", "perfetto", "-o", tmp_path / "trace", *paths)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        return Trace(tmp_path / "trace")

    return trace


NAMES = {"device": "device memory", "pinned": "pinned host memory", "vmm": "virtual memory"}


def memory_words(row):
    return NAMES[row["kind"]] + ("" if row["device"] is None else f" (GPU {row['device']})")


def test_the_timeline_is_a_counter_for_each_kind_and_device(trace_of, report):
    trace, wanted = trace_of(report), {}
    for span in report["timeline"]:
        name = "resident memory of the process" if span["kind"] == "host_rss" else memory_words(span)
        rows = wanted.setdefault(name, [])
        rows.append((START + span["time_ns"], span["max_bytes"]))
        last = (START + span["time_ns"] + span["width_ns"], span["last_bytes"])
        wanted[name, "last"] = last
    found = {}
    for row in trace.counters:
        assert row["unit"] == "bytes"
        found.setdefault(row["name"], []).append((row["ts"], int(row["value"])))
    names = [name for name in wanted if isinstance(name, str)]
    assert found == {name: [*wanted[name], wanted[name, "last"]] for name in names} and len(names) == 4
    for total in report["totals"]:
        assert found[memory_words(total)][-1] == (END, total["live_bytes"])


def test_times_are_those_of_the_real_time_clock(trace_of, report):
    assert trace_of(report).clocks == [{"clock_name": "REALTIME", "ts": START, "clock_value": START}]


def test_each_incident_is_a_slice_with_its_rungs_in_it(trace_of, report):
    slices = [row for row in trace_of(report).slices if row["track"] == "refused requests"]
    outer = {row["args"]["verdict"]: row for row in slices if row["depth"] == 0}
    rungs = [row for row in slices if row["depth"] == 1]
    failed, rescued = outer["device_full_own"], outer["pending_frees"]
    assert failed["name"] == "cudaMalloc of 1.0 GiB: device_full_own"
    assert (failed["ts"], failed["dur"]) == (START + 30_000_000_000, 10_000_000_000)
    assert failed["args"].items() >= {
        "outcome": "failed", "advice": "free memory", "bytes": str(1 << 30), "device": "GPU 0", "kind": "device",
        "refusals": "3", "result": "CUDA_ERROR_OUT_OF_MEMORY",
    }.items()  # fmt: skip
    assert failed["args"]["stack"].split("\n")[1:] == ["outer(int) (out.cpp:8)", PRINTABLE, "step (train.py:41)"]
    # The incident has one refusal only, so that its rungs make the length of the slice.
    assert (rescued["ts"], rescued["dur"]) == (START + 35_000_000_000, 2_000_001_507)
    assert [(row["name"], row["ts"] - START, row["dur"], row["args"]["outcome"]) for row in rungs] == [
        ("rung retry", 30_000_000_000, 2_000, "no_memory"),
        ("rung retry", 35_000_000_000, 1_500, "no_memory"),
        ("rung trim", 35_000_001_500, 2_000_000_007, "served"),
    ]


def test_an_incident_without_a_length_is_an_instant(trace_of, report):
    report = report | {"incidents": [report["incidents"][1]], "rungs": []}
    instants = [row for row in trace_of(report).slices if row["track"] == "refused requests"]
    assert [(row["ts"], row["dur"], row["args"]["verdict"]) for row in instants] == [
        (START + 35_000_000_000, 0, "pending_frees"),
    ]


def test_memory_that_is_held_at_the_end_is_a_slice_from_its_first_allocation_on(trace_of, report):
    slices = [row for row in trace_of(report).slices if row["track"].startswith("held at the end")]
    groups = [group for group in live_groups(report) if group["first_ns"] is not None]
    assert {(row["ts"], row["dur"], int(row["args"]["bytes"])) for row in slices} == {
        (START + group["first_ns"], END - START - group["first_ns"], group["bytes"]) for group in groups
    }  # fmt: skip
    assert len(slices) == len(groups) > 2
    (pinned,) = [row for row in slices if row["args"]["kind"] == "pinned" and row["args"]["bytes"] == "2048"]
    assert pinned["name"] == "2.0 KiB /src/in.cpp:7 in inlined()"
    assert pinned["track"] == "held at the end: host"
    assert pinned["args"].items() >= {"api": "cudaMallocHost", "reachability": "lost", "allocations": "2",
                                      "newest_allocation": "21.0 s after the start"}.items()  # fmt: skip


def test_only_the_largest_groups_are_slices(trace_of, report):
    group = live_groups(report)[0]
    groups = [group | {"bytes": 1000 + number, "device": 0} for number in range(150)]
    trace = trace_of(report | {"leak_groups": groups, "incidents": [], "rungs": []})
    slices = [row for row in trace.slices if row["track"] == "held at the end: GPU 0"]
    assert sorted(int(row["args"]["bytes"]) for row in slices) == list(range(1050, 1150))


def test_peaks_are_instants(trace_of, report):
    peaks = [row for row in trace_of(report).slices if row["track"] == "peaks"]
    assert [(row["ts"], int(row["args"]["bytes"])) for row in peaks] == [
        (START + row["peak_time_ns"], row["peak_bytes"]) for row in report["totals"]
    ]


def test_processes_keep_apart_even_if_they_have_one_pid(trace_of, report):
    process = report["process"] | {"host": HOSTILE, "start": "2026-11-20T08:00:00.000000000Z"}
    trace = trace_of(report, report | {"process": process}, report | {"process": process | {"pid": None}})
    processes = dict(trace.processes)
    assert len(processes) == 3 and processes.pop(41233) == {
        "pid": 41233, "name": "sample_program.so, rank 3, pid 41233 on node-7", "start_ts": START,
    }  # fmt: skip
    assert [row["name"] for row in processes.values()] == [
        f"sample_program.so, rank 3, pid 41233 on {PRINTABLE}", f"sample_program.so, rank 3 on {PRINTABLE}",
    ]  # fmt: skip
    assert all(pid >= 1 << 30 for pid in processes)
    starts = {row["ts"] for row in trace.counters if row["process"]["pid"] != 41233}
    assert min(starts) == START - 1_123_456_789


def test_a_report_without_memory_and_times_is_a_process(trace_of, clean_report):
    report = json.loads(clean_report.read_text()) | {"timeline": [], "totals": []}
    trace = trace_of(report)
    assert (trace.counters, trace.slices, list(trace.processes)) == ([], [], [41233])
