"""Runs the programs that read the formats of `cuwarden export`, and returns what they say.

`install` puts the programs into the folder that the variable EXPORT_CONSUMERS names.
"""

import json
import os
import pathlib
import re
import subprocess

import pytest


def consumer(name):
    """Returns the path of the program `name`. If it is missing, skips the test, or fails it under tools/test."""
    folder = pathlib.Path(os.environ.get("EXPORT_CONSUMERS", "/nonexistent"))
    if not (folder / name).exists():
        reason = f"{name} is not there: tests/export_consumers/install {folder}"
        (pytest.fail if os.environ.get("NEEDS_EXPORT_CONSUMERS") else pytest.skip)(reason)
    return folder / name


def run(*command, **options):
    done = subprocess.run(list(map(str, command)), capture_output=True, timeout=60, **options)
    assert done.returncode == 0, done.stderr
    return done


# --- pprof


def pprof(path, *options):
    """Returns the output of pprof about the profile at the path."""
    return run(consumer("pprof"), *options, path, text=True).stdout


class Profile:
    """A profile as `pprof -raw` shows it.

    types: names of the values, such as "inuse_space/bytes"; the default one ends in "[dflt]".
    samples: dicts of `values` by type, `labels`, and `stack`, a list of locations, innermost first; a
    location is a dict of `address`, `mapping` and `lines`, tuples of function, file and line.
    mappings: dicts of `path` and `build_id`. head: the lines before the samples.
    """

    def __init__(self, path):
        head, rest = pprof(path, "-raw").split("\nSamples:\n")
        samples, rest = rest.split("Locations\n")
        locations, mappings = rest.split("Mappings\n")
        self.head = head
        types, *lines = samples.splitlines()
        self.types = types.split()
        self.mappings = {}
        for line in mappings.splitlines():
            number, path, build_id = re.fullmatch(r"(\d+): \S+ (.*?) (\S*) ?(?:\[\w\w\])*", line).groups()
            self.mappings[int(number)] = {"path": path, "build_id": build_id}
        self.locations = self._locations(locations)
        self.samples = []
        for line in lines:
            values = re.fullmatch(r"([ \d]+): ([\d ]+)", line)
            if values:
                numbers = map(int, values[1].split())
                names = (name.removesuffix("[dflt]") for name in self.types)
                stack = [self.locations[int(number)] for number in values[2].split()]
                self.samples.append({"values": dict(zip(names, numbers, strict=True)), "stack": stack, "labels": {}})
            else:
                self.samples[-1]["labels"] = dict(re.findall(r"(\w+):\[(.*?)\](?= \w+:\[| ?$)", line.strip()))

    def _locations(self, text):
        locations = {}
        for line in text.splitlines():
            start = re.match(r" *(\d+): 0x(\w+) (?:M=(\d+) )?", line)
            if start:
                last = locations[int(start[1])] = {
                    "address": int(start[2], 16), "lines": [],
                    "mapping": self.mappings[int(start[3])] if start[3] else None,
                }  # fmt: skip
                line = line[start.end() :]
            name, file, number, system = re.fullmatch(r" *(.*?) (\S*):(\d+) s=0(?:\((.*)\))?", line).groups()
            last["lines"].append((system or name, file, int(number)))
        return locations

    def sums(self, value, *labels):
        """Returns the sums of the field `value` by the row's values of the labels; sums of 0 are left out."""
        sums = {}
        for sample in self.samples:
            key = tuple(sample["labels"].get(label) for label in labels)
            sums[key] = sums.get(key, 0) + sample["values"][value]
        return {key: count for key, count in sums.items() if count}


# --- Prometheus


def metrics(text):
    """Returns the values of each metric by their labels, after promtool has found no fault in the text.

    A key is a frozenset of names and values of labels. Numbers are texts, so that they keep all digits.
    """
    done = run(consumer("promtool"), "check", "metrics", input=text.encode())
    assert (done.stdout, done.stderr) == (b"", b"")
    values, described = {}, []
    for line in text.splitlines():
        if line.startswith("# HELP "):
            described.append(line.split()[2])
        if line.startswith("#"):
            continue
        name, labels, value = re.fullmatch(r"(\w+)\{(.*)\} (\S+)", line).groups()
        assert name == described[-1], "the lines of a metric stand together"
        pairs = re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"(?:,|$)', labels)
        unescaped = {key: re.sub(r"\\(.)", lambda sign: {"n": "\n"}.get(sign[1], sign[1]), it) for key, it in pairs}
        row = values.setdefault(name, {})
        assert frozenset(unescaped.items()) not in row, "no two values have the same labels"
        row[frozenset(unescaped.items())] = value
    assert len(described) == len(set(described)) == len(values)
    return values


def by_label(rows, *labels):
    """Returns values of a metric by the values of some labels, which tell all of them apart."""
    found = {tuple(dict(key).get(label) for label in labels): value for key, value in rows.items()}
    assert len(found) == len(rows)
    return found


# --- Perfetto

QUERIES = {
    "processes": "select upid, pid, name, start_ts from process where pid != 0",
    "counters": "select ts, cast(value as int) as value, name, unit, upid from counter join process_counter_track as "
    "track on track_id = track.id order by counter.id",
    "slices": "select slice.name, ts, dur, depth, arg_set_id, track.name as track, upid from slice join process_track "
    "as track on track_id = track.id order by slice.id",
    "args": "select arg_set_id, key, display_value as value from args",
    "clocks": "select distinct clock_name, ts, clock_value from clock_snapshot",
    "faults": "select name, value from stats where severity in ('error', 'data_loss') and value != 0",
    "all_events": "select (select count(*) from slice) as slices, (select count(*) from counter) as counters",
}


class Trace:
    """A trace, as Perfetto's trace processor reads it.

    processes: dicts of `pid`, `name` and `start_ts`, by pid. counters: dicts of `ts`, `value`,
    `name`, `unit` and `process`. slices: dicts of `name`, `ts`, `dur`, `depth`, `args` (a dict), `track` (its
    name) and `process`. clocks: dicts of `clock_name`, `ts` and `clock_value`.
    """

    _answers = {}  # output of the trace processor by the content of the trace

    def __init__(self, path):
        # Loading takes seconds, and many tests look at the same trace.
        content = path.read_bytes()
        if content not in self._answers:
            folder = consumer("trace_processor.wasm").parent
            script = pathlib.Path(__file__).with_name("query_trace.mjs")
            queries = json.dumps(list(QUERIES.values())).encode()
            self._answers[content] = run("node", script, folder, path, input=queries).stdout.decode()
        lines = self._answers[content].splitlines()
        found = {name: list(map(typed, json.loads(line))) for name, line in zip(QUERIES, lines, strict=True)}
        assert found["faults"] == []
        processes = {row.pop("upid"): row for row in found["processes"]}
        self.processes = {row["pid"]: row for row in processes.values()}
        assert len(self.processes) == len(processes)
        self.counters, self.slices, self.clocks = found["counters"], found["slices"], found["clocks"]
        # Each event is on a track of a process, and each slice ends.
        assert found["all_events"] == [{"slices": len(self.slices), "counters": len(self.counters)}]
        assert all(row["dur"] >= 0 for row in self.slices)
        args = {}
        for row in found["args"]:
            args.setdefault(row["arg_set_id"], {})[row["key"].removeprefix("debug.")] = row["value"]
        for row in self.counters + self.slices:
            row["process"] = processes[row.pop("upid")]
        for row in self.slices:
            row["args"] = args.get(row.pop("arg_set_id"), {})


def typed(row):
    """Returns a row of a table with int in place of text that is a whole number; the trace's own texts stay."""
    texts = ("value", "name", "key", "track")
    return {
        name: int(value) if name not in texts and re.fullmatch(r"-?\d+", str(value)) else value
        for name, value in row.items()
    }
