"""Queries of a report, by its tables and their ids only.

Needs only the standard library, so that it works beside any framework; the schema is checked if
jsonschema is installed.
"""

import json
import os
import re
from pathlib import Path

try:
    import jsonschema
except ImportError:
    jsonschema = None

SCHEMA = Path(__file__).resolve().parents[2] / "reporters" / "report.schema.json"
ON_DEVICE = ("device", "managed", "stream_ordered", "vmm", "array", "graph")

# CUDA's own libraries, which a stack shows between the program and the driver.
CUDA_LIBRARY = re.compile(r"lib(cuda|cudart|cuwarden)(-[0-9a-f]+)?\.so|libnvidia-")
# Symbols of a statically linked runtime belong to the program's file, and are C functions.
RUNTIME_SYMBOL = re.compile(r"^(cuda[A-Z]\w*|libcudart_static_\w+|__cudart\w+)$")


def bare_name(function):
    """Returns the function's name as the source has it: `linear` for
    `memory::linear(expected::Account&)`."""
    if function is None:
        return None
    name = re.sub(r"\[clone [^]]*\]", "", function.replace("(anonymous namespace)", "anonymous"))
    return name.split("(")[0].split("<")[0].strip().split("::")[-1].split(" ")[-1].split(".")[0]


def plain_api(name):
    """Returns the function's name without its version and without the suffix for a default stream
    per thread."""
    return re.sub(r"(_v\d+)?(_pts[zd]|_ptds)?$", "", name)


# Kinds of memory that the driver takes by itself. Totals do not have them.
IMPLICIT_KINDS = {"stream", "module", "graph_exec", "context", "local_memory", "heap"}


class Report:
    def __init__(self, data, path=None, *, interrupted=False):
        """`interrupted`: True if the process ended while a call was being recorded. Then some tables have
        the call, and others do not.
        """
        self.data = data
        self.path = path
        if jsonschema is not None and SCHEMA.exists():
            schema = json.loads(SCHEMA.read_text())
            jsonschema.validators.validator_for(schema)(schema).validate(data)
        assert data["schema"] == "cuwarden.report/1"
        self.stacks = {row["id"]: row for row in data["stacks"]}
        self.frames = {row["id"]: row for row in data["frames"]}
        self.modules = {row["id"]: row for row in data["modules"]}
        for stack in self.stacks.values():
            assert all(frame in self.frames for frame in stack["frames"]), stack
        for group in data["leak_groups"]:
            assert group["stack"] is None or group["stack"] in self.stacks, group
        if not interrupted:
            self._check_sums()

    @classmethod
    def read(cls, path, *, interrupted=False):
        assert os.stat(path).st_mode & 0o777 == 0o600, oct(os.stat(path).st_mode)
        return cls(json.loads(Path(path).read_text()), path, interrupted=interrupted)

    def __getitem__(self, table):
        return self.data[table]

    def _check_sums(self):
        """Checks that each live allocation is in a total and in a group."""
        live = {}
        for row in self.data["totals"]:
            key = (row["kind"], row["device"])
            live[key] = (row["live_count"], row["live_bytes"])
            assert row["allocations"] >= row["frees"] + row["live_count"], row
            assert row["peak_bytes"] >= row["live_bytes"], row
        groups = {}
        for group in self.data["leak_groups"]:
            if group["released_by"] is None and group["kind"] not in IMPLICIT_KINDS:
                key = (group["kind"], group["device"])
                count, size = groups.get(key, (0, 0))
                groups[key] = (count + group["count"], size + group["bytes"])
        for key in live.keys() | groups.keys():
            assert live.get(key, (0, 0)) == groups.get(key, (0, 0)), key

    # --- stacks

    def stack_frames(self, group):
        if group["stack"] is None:
            return []
        return [self.frames[frame] for frame in self.stacks[group["stack"]]["frames"]]

    def python_frames(self, group):
        """Returns the file's name and the function of each Python frame, innermost first."""
        return [
            (Path(frame["file"] or "").name, (frame["function"] or "").split(".")[-1])
            for frame in self.stack_frames(group)
            if frame["language"] == "python"
        ]

    def module_of(self, frame):
        return "" if frame["module"] is None else self.modules[frame["module"]]["path"]

    def names(self, group):
        return [bare_name(frame["function"]) for frame in self.stack_frames(group)]

    def first_module(self, group):
        """Returns the path of the innermost frame's file outside CUDA's own libraries; "" if there
        is none."""
        for frame in self.stack_frames(group):
            name = Path(self.module_of(frame)).name
            if name and not CUDA_LIBRARY.match(name):
                return self.module_of(frame)
        return ""

    def passes_through(self, group, pattern):
        return any(re.search(pattern, self.module_of(f)) for f in self.stack_frames(group))

    def calls_through(self, group, function):
        """True if the name of some function in the group's stack begins with `function`."""
        return any((f["function"] or "").startswith(function) for f in self.stack_frames(group))

    # --- leaks

    def groups(self, kinds=None, where=None):
        """Returns the groups that have live memory at the end: of these kinds, and for which where(group)
        is true.
        """
        return [
            group
            for group in self.data["leak_groups"]
            if group["released_by"] is None
            and (kinds is None or group["kind"] in kinds)
            and (where is None or where(group))
        ]

    def live(self, kinds=None, where=None):
        """Returns (count, bytes) of the memory that is live at the end: of these kinds, in groups for which
        where(group) is true.
        """
        groups = self.groups(kinds, where)
        return sum(g["count"] for g in groups), sum(g["bytes"] for g in groups)

    def groups_of(self, function, line=None, released_by=None):
        """Returns the groups whose stack has this function, at this line of its source if one is
        given."""
        return [
            group
            for group in self.data["leak_groups"]
            if group["released_by"] == released_by
            and any(
                bare_name(frame["function"]) == function and line in (None, frame["line"])
                for frame in self.stack_frames(group)
            )
        ]

    def innermost_of_program(self, group):
        for frame in self.stack_frames(group):
            name = Path(self.module_of(frame)).name
            function = frame["function"] or ""
            if name and not CUDA_LIBRARY.match(name) and not RUNTIME_SYMBOL.match(function):
                return bare_name(function)
        return None

    def check_leak(self, fact, released_by=None):
        """Checks that the report has this leak, of this size, with the function and line that made
        it."""
        found = [
            group
            for group in self.groups_of(fact["function"], fact["line"] or None, released_by)
            if group["kind"] == fact["kind"] and plain_api(group["api"]) == plain_api(fact["api"])
        ]
        counted = sum(g["count"] for g in found), sum(g["bytes"] for g in found)
        wanted = fact["count"], fact["bytes"]
        assert counted == wanted, f"{fact}: {counted}; there are:\n{self.describe()}"
        for group in found:
            assert self.innermost_of_program(group) == fact["function"], self.names(group)
        return found

    def describe(self):
        rows = []
        for group in sorted(self.data["leak_groups"], key=lambda g: -g["bytes"])[:40]:
            frames = [
                f"{frame['function'] or hex(frame['offset'] or 0)}"
                f"@{Path(self.module_of(frame)).name}:{frame['line']}"
                for frame in self.stack_frames(group)[:6]
            ]
            rows.append(
                f"  {group['count']} x {group['api']} ({group['kind']}, device {group['device']}), "
                f"{group['bytes']} bytes, released by {group['released_by']}: "
                + " < ".join(frames)
            )
        return "\n".join(rows)

    # --- totals

    def account(self, device):
        """Returns the device's account as bytes by item; checks that they add up to the bytes in
        use."""
        rows = {
            row["item"]: row["bytes"]
            for row in self["accounts"]
            if row["device"] == device["device"] and row["incident"] is None
        }
        assert sum(rows.values()) == device["used_bytes"], rows
        return rows

    def parts_at(self, incident):
        """Returns the parts of the device's memory at an incident, as bytes by item, and the bytes in use;
        None in their stead if the process had no context to ask.
        """
        facts = {
            row["fact"]: row["value"]
            for row in self["incident_facts"]
            if row["incident"] == incident["id"]
        }
        rows = {
            row["item"]: row["bytes"]
            for row in self["accounts"]
            if row["incident"] == incident["id"]
        }
        known = facts.get("free_bytes") is not None
        return rows, facts["total_bytes"] - facts["free_bytes"] if known else None

    def account_of(self, incident):
        """Returns parts_at(); checks that the parts add up to the bytes in use. Returns None if the
        incident has no account: the request was for memory of the host, or the process had no context.
        """
        rows, used = self.parts_at(incident)
        if not rows:
            assert incident["device"] is None or used is None, incident
            return None
        assert sum(rows.values()) == used, rows
        return rows, used

    def totals(self):
        """Returns the figures of the table `totals` by kind, summed over all devices.

        Peaks are left out: the devices may have reached them at different times.
        """
        sums = {}
        for row in self.data["totals"]:
            kind = sums.setdefault(row["kind"], {})
            for name in ("allocations", "frees", "failures", "live_count", "live_bytes"):
                kind[name] = kind.get(name, 0) + row[name]
        return sums

    def check_totals(self, account):
        """Checks that counts and bytes of each kind equal the program's own, and that there is no
        other kind."""
        totals = self.totals()
        for kind, known in account.items():
            assert kind in totals, f"nothing of kind {kind}; there is {sorted(totals)}"
            wanted = {n: known[n] for n in ("allocations", "frees", "live_count", "live_bytes")}
            got = {name: totals[kind][name] for name in wanted}
            assert got == wanted, f"{kind}: {got}, the program says {wanted}\n{self.describe()}"
            assert totals[kind]["failures"] == 0, kind
        for kind in totals.keys() - account.keys():
            assert totals[kind]["allocations"] == 0, f"{kind}: {totals[kind]}\n{self.describe()}"
