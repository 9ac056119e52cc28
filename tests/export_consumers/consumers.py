"""Runs the programs that read the formats of `cuwarden export`, and returns what they say.

`install` puts the programs into the folder that the variable EXPORT_CONSUMERS names.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest


def consumer(name):
    """Returns the path of the program. Without it the test is skipped, or fails under tools/test."""
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
        """Returns the sums of a value by the values of the labels, without sums of 0."""
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


class Trace:
    """A trace of Perfetto, taken apart as its trace processor does it.

    tracks: dicts of `name`, `process` (a dict) and `unit`, by id. counters, slices, instants: dicts of
    `track` (such a dict), `ts` and `value`; or `ts`, `dur`, `name`, `args` and `depth`.
    """

    def __init__(self, path):
        python = "/usr/bin/python3"  # the interpreter for which Debian has the library
        has_library = subprocess.run([python, "-c", "import google.protobuf"], capture_output=True).returncode == 0
        if not has_library or shutil.which("protoc") is None:
            reason = "Debian's packages python3-protobuf and protobuf-compiler are not installed"
            (pytest.fail if os.environ.get("NEEDS_EXPORT_CONSUMERS") else pytest.skip)(reason)
        script = pathlib.Path(__file__).with_name("decode_perfetto.py")
        packets = json.loads(run(python, script, path).stdout).get("packet", [])
        self.tracks, self.counters, self.slices, self.instants, self.snapshots = {}, [], [], [], []
        self._open = {}
        for number, packet in enumerate(packets):
            assert packet["trusted_packet_sequence_id"] != 0
            # A sequence begins with a packet that says so.
            assert (packet.get("sequence_flags", 0) & 1 == 1) == (number == 0)
            if "clock_snapshot" in packet:
                self.snapshots.append(packet["clock_snapshot"])
            elif "track_descriptor" in packet:
                self._describe(packet["track_descriptor"])
            else:
                # The clock of the events is the one that the trace has declared to be its own.
                assert packet["timestamp_clock_id"] == self.snapshots[0]["primary_trace_clock"] == 1
                self._take(int(packet["timestamp"]), packet["track_event"])
        assert not any(self._open.values()), "each slice ends"

    def _describe(self, descriptor):
        parent = self.tracks[descriptor["parent_uuid"]] if "parent_uuid" in descriptor else None
        assert descriptor["uuid"] not in self.tracks and int(descriptor["uuid"]) != 0
        self.tracks[descriptor["uuid"]] = {
            "name": descriptor.get("name"), "unit": descriptor.get("counter", {}).get("unit"),
            "process": descriptor.get("process") or parent["process"],
        }  # fmt: skip

    def _take(self, ts, event):
        track = self.tracks[event["track_uuid"]]
        open_slices = self._open.setdefault(event["track_uuid"], [])
        # Events of a track are in the order of their times.
        assert ts >= track.get("last", 0)
        track["last"] = ts
        assert (track["unit"] is not None) == (event["type"] == "TYPE_COUNTER")
        args = {each["name"]: each.get("string_value", each.get("uint_value")) for each in
                event.get("debug_annotations", [])}  # fmt: skip
        made = {"track": track, "ts": ts, "name": event.get("name"), "args": args, "depth": len(open_slices)}
        if event["type"] == "TYPE_COUNTER":
            self.counters.append({"track": track, "ts": ts, "value": int(event["counter_value"])})
        elif event["type"] == "TYPE_INSTANT":
            self.instants.append(made)
        elif event["type"] == "TYPE_SLICE_BEGIN":
            self.slices.append(made)
            open_slices.append(made)
        else:
            last = open_slices.pop()
            last["dur"] = ts - last["ts"]
