"""Reports for tests of `cuwarden export`, with rows that the sample lacks, and sums of their rows."""

import copy
import json

# A name that means something in each of the formats, and acts on a terminal.
HOSTILE = 'f<a;b, "c\'d">\\ (g) {h} é中 # % 12\n\x1b[31m\u202e'
# HOSTILE where control characters are replaced: a question mark stands for each of their bytes.
PRINTABLE = HOSTILE.replace("\n", "?").replace("\x1b", "?").replace("\u202e", "???")


def rich(sample):
    """Returns a copy of the sample report with further rows: inlined functions, Python's functions, names
    that contain control characters, and refused requests.
    """
    report = copy.deepcopy(sample)
    frame, group = report["frames"][0], report["leak_groups"][0]
    report["modules"].append({"id": 90, "path": "/opt/lib one.so", "build_id": "00ff17"})
    native = {"module": 90, "offset": 0x1F20, "address": None, "library": None}
    report["frames"] += [
        frame | native | {"id": 91, "function": "inlined()", "file": "/src/in.cpp", "line": 7, "inlined": True},
        frame | native | {"id": 92, "function": "outer(int)", "file": "/src/out.cpp", "line": 8},
        frame | {"id": 93, "function": "step", "file": "/home/u/train.py", "line": 41, "language": "python",
                 "module": None, "offset": None, "address": None},
        frame | native | {"id": 94, "function": HOSTILE, "offset": 0x2F20},
    ]  # fmt: skip
    report["stacks"].append({"id": 95, "frames": [91, 92, 94, 93], "truncated": False})
    report["leak_groups"] += [
        group | {"stack": 95, "kind": "pinned", "device": None, "api": "cudaMallocHost", "count": 2, "bytes": 2048,
                 "allocations": 50, "first_ns": 20_000_000_000, "last_ns": 21_000_000_000, "reachability": "lost",
                 "where": "/home/u/train.py:41 in step", "growth": "steady"},
        group | {"stack": None, "kind": "managed", "device": 1, "api": None, "count": 1, "bytes": 5, "allocations": 1,
                 "where": None, "growth": None, "suppressed": True, "first_ns": None, "last_ns": None},
        group | {"stack": 95, "released_by": "context", "count": 3, "bytes": 999, "allocations": 3, "growth": None},
    ]  # fmt: skip
    report["peak_holders"] += [
        {"device": None, "kind": "pinned", "stack": 95, "count": 20, "bytes": 1 << 33, "allocations": 50,
         "first_ns": 5, "last_ns": 21_000_000_000},
        {"device": 0, "kind": "device", "stack": 2, "count": 4, "bytes": 77, "allocations": 40, "first_ns": 5, "last_ns": 9},
    ]  # fmt: skip
    incident = {
        "id": 1, "time_ns": 30_000_000_000, "api": "cudaMalloc", "kind": "device", "asked_for": "memory",
        "bytes": 1 << 30, "device": 0, "thread": 5, "stack": 95, "result": "CUDA_ERROR_OUT_OF_MEMORY",
        "outcome": "failed", "rescued_by": None, "verdict": "device_full_own", "repeats": 2, "recovered_count": 0,
        "rescued_count": 0, "failed_count": 3, "last_ns": 40_000_000_000, "last_bytes": 1 << 30,
        "proof": {"free_bytes": 17}, "advice": "free memory",
    }  # fmt: skip
    report["incidents"] = [
        incident,
        incident | {"id": 2, "time_ns": 35_000_000_000, "last_ns": 35_000_000_000, "outcome": "rescued", "repeats": 0,
                    "rescued_by": "trim", "rescued_count": 1, "failed_count": 0, "verdict": "pending_frees"},
    ]  # fmt: skip
    rung = {"incident": 2, "order": 1, "rung": "retry", "outcome": "no_memory", "duration_ns": 1_500, "reclaimer": None}
    report["rungs"] = [
        rung,
        rung | {"order": 2, "rung": "trim", "outcome": "served", "duration_ns": 2_000_000_007},
        rung | {"incident": 1, "rung": "retry", "duration_ns": 2_000},
    ]
    report["pool"] |= {"rescued_count": 1, "rescued_bytes": 1 << 30, "mesh_pause_ns": 1_000_000_001}
    return report


def live_groups(report):
    return [group for group in report["leak_groups"] if not group["released_by"]]


def write(path, report):
    path.write_text(json.dumps(report))
    return path


def sums(rows, value, *keys):
    """Returns the sums of the field `value` of the rows, as a dict; sums of 0 are left out.

    The key is a tuple: the row's values of the fields `keys`.
    """
    found = {}
    for row in rows:
        key = tuple(row[name] for name in keys)
        found[key] = found.get(key, 0) + row[value]
    return {key: count for key, count in found.items() if count}
