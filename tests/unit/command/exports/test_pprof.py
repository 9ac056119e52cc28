"""`cuwarden export --format pprof`, read by the pprof of Go's tools."""

import gzip
import json
import os
import pty
import subprocess

import pytest

from conftest import one_line
from consumers import Profile, pprof
from exported import HOSTILE, PRINTABLE, live_groups, rich, sums, write

TYPES = ["inuse_objects/count", "inuse_space/bytes[dflt]", "alloc_objects/count", "alloc_space/bytes",
         "peak_objects/count", "peak_space/bytes"]  # fmt: skip


@pytest.fixture
def report(sample_report):
    return rich(json.loads(sample_report.read_text()))


@pytest.fixture
def profile_of(cuwarden, tmp_path):
    """Returns the profile of the reports, as pprof reads it."""

    def profile(*reports):
        paths = [write(tmp_path / f"{number}.json", report) for number, report in enumerate(reports)]
        done = cuwarden("export", "--format", "pprof", "-o", tmp_path / "heap.pb.gz", *paths)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        return Profile(tmp_path / "heap.pb.gz")

    return profile


def by_kind_and_device(rows, value):
    return {(kind, "host" if device is None else str(device)): count
            for (kind, device), count in sums(rows, value, "kind", "device").items()}  # fmt: skip


def test_the_sums_of_pprof_are_those_of_the_report(profile_of, report):
    profile = profile_of(report)
    assert profile.types == TYPES
    live, peak = live_groups(report), report["peak_holders"]
    assert profile.sums("inuse_space/bytes", "kind", "device") == by_kind_and_device(live, "bytes")
    assert profile.sums("inuse_objects/count", "kind", "device") == by_kind_and_device(live, "count")
    assert profile.sums("peak_space/bytes", "kind", "device") == by_kind_and_device(peak, "bytes")
    assert profile.sums("peak_objects/count", "kind", "device") == by_kind_and_device(peak, "count")


def test_all_allocations_of_the_run_count_once(profile_of, report):
    device, other = report["totals"][0], report["totals"][0] | {"kind": "array"}
    device["allocations"], device["allocated_bytes"] = 12, 5000
    other["allocations"], other["allocated_bytes"] = 3, 70
    report["totals"] = [device, other]
    kind = {"kind": device["kind"], "device": device["device"]}
    report["allocation_sites"] = [
        kind | {"api": "cudaMalloc", "stack": 95, "allocations": 7, "allocated_bytes": 3000},
        kind | {"api": "cuMemAlloc_v2", "stack": 2, "allocations": 1, "allocated_bytes": 1500},
    ]
    profile = profile_of(report)
    rows = [device, other]
    assert profile.sums("alloc_space/bytes", "kind", "device") == by_kind_and_device(rows, "allocated_bytes")
    assert profile.sums("alloc_objects/count", "kind", "device") == by_kind_and_device(rows, "allocations")
    found = {
        (sample["stack"][0]["lines"][0][0], sample["labels"]["kind"], sample["labels"].get("api")): (
            sample["values"]["alloc_objects/count"], sample["values"]["alloc_space/bytes"])
        for sample in profile.samples if sample["values"]["alloc_objects/count"]
    }  # fmt: skip
    unlisted = "[call stacks that the report does not list]"
    assert found.pop(("inlined()", "device", "cudaMalloc")) == (7, 3000)
    assert found.pop((unlisted, "device", None)) == (4, 500)
    assert found.pop((unlisted, "array", None)) == (3, 70)
    assert list(found.values()) == [(1, 1500)]


def test_allocations_that_are_in_two_tables_of_an_older_report_count_once(profile_of, report):
    report["allocation_sites"] = []
    profile = profile_of(report)
    assert profile.sums("alloc_space/bytes") == {}
    # Live allocations of a group and those that a context has released are two rows with the same number.
    groups = {}
    for row in report["leak_groups"]:
        key = row["stack"], row["kind"], row["device"], row["api"]
        if row["allocations"] > groups.get(key, {"allocations": -1})["allocations"]:
            groups[key] = row
    wanted = {}
    for rows in (report["peak_holders"], groups.values()):
        found = sums(rows, "allocations", "stack", "kind", "device")
        wanted = {key: max(found.get(key, 0), wanted.get(key, 0)) for key in found | wanted}
    assert sum(profile.sums("alloc_objects/count").values()) == sum(wanted.values())


def test_labels_say_what_the_memory_is(profile_of, report):
    profile = profile_of(report)
    (pinned,) = [sample for sample in profile.samples if sample["values"]["inuse_space/bytes"] == 2048]
    assert pinned["labels"] == {
        "process": "sample_program.so, rank 3, pid 41233 on node-7", "rank": "3", "kind": "pinned",
        "device": "host", "api": "cudaMallocHost", "reachability": "lost", "growth": "steady",
    }  # fmt: skip
    (managed,) = [sample for sample in profile.samples if sample["values"]["inuse_space/bytes"] == 5]
    assert managed["labels"].keys() == {"process", "rank", "kind", "device", "suppressed"}
    assert [line[0] for location in managed["stack"] for line in location["lines"]] == ["[no call stack]"]


def test_inlined_functions_share_the_location_of_the_function_around_them(profile_of, report):
    profile = profile_of(report)
    (stack,) = [each["stack"] for each in profile.samples if each["values"]["inuse_space/bytes"] == 2048]
    inlined, hostile, python = stack
    assert inlined["lines"] == [("inlined()", "/src/in.cpp", 7), ("outer(int)", "/src/out.cpp", 8)]
    assert inlined["address"] == 0x1F20
    assert inlined["mapping"] == hostile["mapping"] == {"path": "/opt/lib one.so", "build_id": "00ff17"}
    assert hostile["lines"] == [(PRINTABLE, "", 0)]
    assert (python["address"], python["mapping"], python["lines"]) == (0, None, [("step", "/home/u/train.py", 41)])


def test_a_cut_stack_says_so(profile_of, report):
    cut = {stack["id"] for stack in report["stacks"] if stack["truncated"]}
    assert any(group["stack"] in cut for group in live_groups(report))
    names = [sample["stack"][-1]["lines"][0][0] for sample in profile_of(report).samples]
    assert "[outer frames not recorded]" in names


def test_pprof_shows_names_tags_and_times(cuwarden, report, tmp_path):
    path = tmp_path / "heap.pb.gz"
    assert cuwarden("export", "--format", "pprof", "-o", path, write(tmp_path / "r.json", report)).returncode == 0
    top = pprof(path, "-top", "-unit=B", "-sample_index=peak_space", "-nodefraction=0")
    assert "Type: peak_space" in top and f"of {sum(row['bytes'] for row in report['peak_holders'])}B total" in top
    assert "inlined" in top and "train.py" not in top
    assert "train.py:41" in pprof(path, "-top", "-lines", "-nodefraction=0")
    assert "Time: Nov 20, 2026 at 8:00am (UTC)" in top and "Duration: 100s" in top
    focused = pprof(path, "-top", "-unit=B", "-nodefraction=0", "-tagfocus=kind=pinned", "-tagfocus=device=host")
    assert "of 8396805B total" not in focused and "2048B" in focused
    assert "sample_program.so, rank 3, pid 41233 on node-7, started 2026-11-20" in pprof(path, "-comments")


def test_names_in_angle_brackets_are_shown_whole(cuwarden, report, tmp_path):
    (python,) = [frame for frame in report["frames"] if frame["language"] == "python"]
    python["function"] = "<module>"
    path = tmp_path / "heap.pb.gz"
    assert cuwarden("export", "--format", "pprof", "-o", path, write(tmp_path / "r.json", report)).returncode == 0
    assert " <module>\n" in pprof(path, "-top", "-nodefraction=0")


def test_the_program_is_the_profiles_first_file(cuwarden, profile_of, report):
    report["modules"] = report["modules"][::-1]
    report["leak_groups"] = report["leak_groups"][::-1]
    profile = profile_of(report)
    assert profile.mappings[1]["path"] == report["process"]["program"] and len(profile.mappings) > 1


def test_several_reports_are_one_profile_told_apart_by_labels(profile_of, report):
    later = report["process"] | {"pid": 99, "host": HOSTILE, "start": "2026-11-20T08:01:01.000000000Z"}
    other = report | {"process": later, "job": report["job"] | {"rank": None}}
    one, both = profile_of(report), profile_of(report, other)
    live = sum(group["bytes"] for group in live_groups(report))
    assert both.sums("inuse_space/bytes", "process", "rank") == {
        ("sample_program.so, rank 3, pid 41233 on node-7", "3"): live,
        (f"sample_program.so, pid 99 on {PRINTABLE}", None): live,
    }
    assert both.locations == one.locations and both.mappings == one.mappings
    assert "Time: 2026-11-20 08:00:01.123456789" in both.head and "Duration: 2m39" in both.head


def test_a_report_without_allocations_is_an_empty_profile(profile_of, clean_report):
    report = json.loads(clean_report.read_text()) | {"peak_holders": [], "allocation_sites": [], "totals": []}
    profile = profile_of(report)
    assert profile.types == TYPES and profile.samples == []


def test_the_profile_goes_through_a_pipe(cuwarden, installed, report, tmp_path):
    path = write(tmp_path / "r.json", report)
    piped = subprocess.run([installed / "cuwarden", "export", "--format", "pprof", path], capture_output=True)
    assert (piped.returncode, piped.stderr) == (0, b"")
    assert cuwarden("export", "--format", "pprof", "-o", tmp_path / "heap.pb.gz", path).returncode == 0
    assert piped.stdout == (tmp_path / "heap.pb.gz").read_bytes() and gzip.decompress(piped.stdout)


@pytest.mark.parametrize("name", ["pprof", "perfetto", "pytorch"])
def test_a_binary_format_is_not_written_to_a_terminal(installed, sample_report, name):
    terminal, other = pty.openpty()
    done = subprocess.run(
        [installed / "cuwarden", "export", "--format", name, sample_report],
        stdout=other, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    os.close(other)
    assert done.returncode == 2 and one_line(done.stderr) and name in done.stderr and "-o FILE" in done.stderr
    with pytest.raises(OSError):  # nothing was written
        os.read(terminal, 1)
    os.close(terminal)
