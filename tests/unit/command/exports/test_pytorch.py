"""`cuwarden export --format pytorch`: read by Python's pickle, for the fields that PyTorch's memory_viz reads."""

import json
import pickle
import pickletools

import pytest

from exported import HOSTILE, PRINTABLE, live_groups, rich, sums, write

# The instructions that the reader in memory_viz's page knows, of those of version 2.
KNOWN = {
    "PROTO", "STOP", "NONE", "NEWTRUE", "NEWFALSE", "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE",
    "EMPTY_LIST", "APPEND", "APPENDS", "LIST", "EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "EMPTY_DICT", "DICT",
    "SETITEM", "SETITEMS", "MARK", "BINPUT", "LONG_BINPUT", "BINGET", "LONG_BINGET",
}  # fmt: skip
# From here on, whole numbers lose digits in the page's reader, whose numbers have 53 bits.
EXACT = 1 << 53


class Plain(pickle.Unpickler):
    def find_class(self, module, name):
        raise AssertionError("a snapshot has plain objects only")


@pytest.fixture
def report(sample_report):
    report = rich(json.loads(sample_report.read_text()))
    report["incident_facts"] = [
        {"incident": 1, "fact": "free_bytes", "value": 1 << 40},
        {"incident": 1, "fact": "total_bytes", "value": 1 << 41},
    ]
    return report


@pytest.fixture
def snapshot_of(cuwarden, tmp_path):
    def snapshot(*reports):
        paths = [write(tmp_path / f"{number}.json", report) for number, report in enumerate(reports)]
        path = tmp_path / "snapshot.pickle"
        done = cuwarden("export", "--format", "pytorch", "-o", path, *paths)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert {code.name for code, _, _ in pickletools.genops(path.read_bytes())} <= KNOWN
        with path.open("rb") as file:
            return Plain(file).load()

    return snapshot


def check_as_memory_viz(snapshot):
    """Reads the snapshot as memory_viz does, and returns the active bytes of each device."""
    active, seen = {}, {}
    for segment in snapshot["segments"]:
        assert segment["device"] < len(snapshot["device_traces"])
        assert segment["stream"] == 0 and segment["segment_type"] in ("small", "large")
        assert segment["segment_pool_id"] == (0, 0) and segment["is_expandable"] is False
        assert segment["total_size"] == sum(block["size"] for block in segment["blocks"])
        end = segment["address"]
        for block in segment["blocks"]:
            assert block["address"] == end and block["size"] == block["requested_size"] > 0
            end += block["size"]
            assert block["state"] == "active_allocated"
            active[segment["device"]] = active.get(segment["device"], 0) + block["size"]
            assert all(isinstance(frame[key], kind) for frame in block["frames"]
                       for key, kind in (("name", str), ("filename", str), ("line", int)))  # fmt: skip
        for size in ("allocated_size", "active_size", "requested_size"):
            assert segment[size] == segment["total_size"]
        seen.setdefault(segment["device"], []).append((segment["address"], end))
    for ranges in seen.values():
        ranges.sort()
        assert all(end <= begin for (_, end), (begin, _) in zip(ranges, ranges[1:])), "segments do not overlap"
        assert ranges[-1][1] < EXACT
    for device, events in enumerate(snapshot["device_traces"]):
        times = [event["time_us"] for event in events]
        assert times == sorted(times)
        made = {event["addr"]: event for event in events if event["action"] == "segment_alloc"}
        allocated = {event["addr"]: event["size"] for event in events if event["action"] == "alloc"}
        blocks = {block["address"]: block["size"] for segment in snapshot["segments"] for block in segment["blocks"]
                  if segment["device"] == device}  # fmt: skip
        assert allocated == blocks == {address: event["size"] for address, event in made.items()}
        for before, event in zip([None, *events], events):
            assert event["action"] in ("segment_alloc", "alloc", "oom")
            # A segment is made at the time of its block, by the same call stack.
            if event["action"] == "alloc":
                assert before == event | {"action": "segment_alloc"}
            assert event["action"] != "oom" or event["device_free"] >= 0
            assert event["size"] > 0 and event["frames"] and event["stream"] == 0
    return active


def test_the_active_bytes_of_each_device_are_the_live_bytes(snapshot_of, report):
    live = sums(live_groups(report), "bytes", "device")
    assert check_as_memory_viz(snapshot_of(report)) == {0: live[0,], 1: live[1,], 2: live[None,]}


def test_a_block_has_its_call_stack_and_says_what_it_is(snapshot_of, report):
    (block,) = [block for segment in snapshot_of(report)["segments"] for block in segment["blocks"]
                if block["size"] == 2048]  # fmt: skip
    assert block["frames"] == [
        {"name": "2 x pinned by cudaMallocHost, on the host", "filename": "sample_program.so, rank 3, pid 41233 on node-7", "line": 0},
        {"name": "inlined()", "filename": "/src/in.cpp", "line": 7},
        {"name": "outer(int)", "filename": "/src/out.cpp", "line": 8},
        {"name": PRINTABLE, "filename": "lib one.so", "line": 0},
        {"name": "step", "filename": "/home/u/train.py", "line": 41},
    ]  # fmt: skip


def test_a_refused_request_is_an_event_between_the_allocations(snapshot_of, report):
    events = snapshot_of(report)["device_traces"][0]
    (oom,) = [event for event in events if event["action"] == "oom"]
    assert (oom["size"], oom["device_free"], oom["time_us"]) == (1 << 30, 1 << 40, 1795161631_123456)
    repeats = report["incidents"][0].get("repeats") or 0
    times = f"{repeats + 1} x " if repeats else ""
    assert oom["frames"][0]["name"] == times + "refused: device_full_own, cudaMalloc, failed, on GPU 0"
    assert oom["frames"][-1] == {"name": "step", "filename": "/home/u/train.py", "line": 41}


@pytest.mark.parametrize("repeats, words", [(0, "refused: "), (4, "5 x refused: ")])
def test_a_refused_request_says_how_often_it_was_repeated_and_if_its_size_is_unknown(snapshot_of, report, repeats, words):
    incident = report["incidents"][0] | {"repeats": repeats, "bytes": None}
    events = snapshot_of(report | {"incidents": [incident]})["device_traces"][0]
    (oom,) = [event for event in events if event["action"] == "oom"]
    name = words + "device_full_own, cudaMalloc, failed, size not recorded, on GPU 0"
    assert (oom["size"], oom["frames"][0]["name"]) == (0, name)


def test_bytes_keep_all_digits(snapshot_of, report):
    sizes = [1, 255, 256, 65535, 65536, 2**31 - 1, 2**31, 2**32, 2**47 + 1]
    groups = [live_groups(report)[0] | {"bytes": size} for size in sizes]
    snapshot = snapshot_of(report | {"leak_groups": groups})
    check_as_memory_viz(snapshot)
    assert [segment["total_size"] for segment in snapshot["segments"]] == sizes


def test_frames_are_stored_once(snapshot_of, report):
    groups = [live_groups(report)[0] | {"stack": 95, "bytes": size} for size in (1, 2, 3)]
    snapshot = snapshot_of(report | {"leak_groups": groups})
    stacks = [segment["blocks"][0]["frames"] for segment in snapshot["segments"]]
    assert len({id(stack[1]) for stack in stacks}) == 1 and len({id(stack) for stack in stacks}) == 3


def test_several_reports_have_devices_of_their_own(snapshot_of, report):
    other = report | {"process": report["process"] | {"host": HOSTILE}}
    one, both = check_as_memory_viz(snapshot_of(report)), snapshot_of(report, other)
    assert check_as_memory_viz(both) == one | {device + 3: size for device, size in one.items()}
    names = {segment["blocks"][0]["frames"][0]["filename"] for segment in both["segments"] if segment["device"] > 2}
    assert names == {f"sample_program.so, rank 3, pid 41233 on {PRINTABLE}"}


@pytest.mark.parametrize("lists_devices", [True, False])
def test_a_report_without_live_memory_has_an_event_that_says_so(snapshot_of, clean_report, lists_devices):
    report = json.loads(clean_report.read_text())
    snapshot = snapshot_of(report if lists_devices else report | {"devices": []})
    first, *others = snapshot["device_traces"]
    (event,) = first
    assert (event["action"], event["size"], event["frames"][0]["name"]) == ("snapshot", 0, "no live memory")
    assert others == [[]] * (len(report["devices"]) - 1 if lists_devices else 0)
    assert (snapshot["segments"], snapshot["allocator_settings"]) == ([], {})


def test_requests_that_cannot_be_shown_are_counted(snapshot_of, report):
    nothing = report | {"leak_groups": [], "incident_facts": []}
    (event,) = snapshot_of(nothing)["device_traces"][0]
    count = len(report["incidents"])
    requests = "refused request" if count == 1 else "refused requests"
    assert event["frames"][0]["name"] == f"no live memory, {count} {requests} that this view cannot show"


def test_devices_with_numbers_of_a_damaged_report_are_left_out_and_named(snapshot_of, clean_report):
    report = json.loads(clean_report.read_text())
    report["devices"] = [report["devices"][0] | {"device": 5000}]
    (event,) = snapshot_of(report)["device_traces"][0]
    assert event["frames"][0]["name"] == "no live memory, devices with numbers from 1024 on are left out"
