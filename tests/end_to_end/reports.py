"""Reads reports as their users do: only by their tables and the ids in them."""

import json
import re
from pathlib import Path

from report_schema import validate


def bare_name(function):
    """Returns a function's name as the source has it: `allocate` for
    `amr::Patch::allocate(unsigned long)` and `(anonymous namespace)::allocate(int)`."""
    if function is None:
        return None
    name = function.replace("(anonymous namespace)", "anonymous")
    name = re.sub(r"\[clone [^]]*\]", "", name).split("(")[0].strip()
    return name.split("::")[-1].split(".")[0]


class Report:
    """A report that was checked when it was read: it is valid by its schema and consistent in itself."""

    def __init__(self, data, path=None):
        self.data = data
        self.path = path
        validate(data)
        self.stacks = self._by_id("stacks")
        self.frames = self._by_id("frames")
        self.modules = self._by_id("modules")
        self._check_joins()
        self._check_sums()

    @classmethod
    def read(cls, path):
        assert not path.is_symlink(), path
        assert path.stat().st_mode & 0o777 == 0o600, oct(path.stat().st_mode)
        return cls(json.loads(path.read_text()), path)

    def __getitem__(self, table):
        return self.data[table]

    def _by_id(self, table):
        rows = {row["id"]: row for row in self.data[table]}
        assert len(rows) == len(self.data[table]), f"an id occurs twice in {table}"
        return rows

    def _check_joins(self):
        for stack in self.stacks.values():
            assert all(frame in self.frames for frame in stack["frames"])
        if self.data["records"]["complete"]:  # the report of a damaged ledger may have a row twice
            different = {(tuple(s["frames"]), s["truncated"]) for s in self.stacks.values()}
            assert len(different) == len(self.stacks), "equal stacks are listed twice"
        for frame in self.frames.values():
            assert frame["module"] is None or frame["module"] in self.modules
        for table in ("leak_groups", "implicit_groups", "peak_holders", "slab_holders", "forecasts", "framework_sites"):
            for row in self.data[table]:
                assert row["stack"] is None or row["stack"] in self.stacks
        for table in ("slab_map", "incident_slab_map"):
            for row in self.data[table]:
                assert all(stack in self.stacks for stack in row["stacks"]), row
                assert not self.data["records"]["complete"] or len(row["stacks"]) <= row["live"], row
        for table in ("leak_groups", "library_reserves"):
            for row in self.data[table]:
                assert row["module"] is None or row["module"] in self.modules

    def _check_sums(self):
        leaks = [
            group
            for group in self.data["leak_groups"]
            if not group["suppressed"] and group["released_by"] is None
        ]
        released = [g for g in self.data["leak_groups"] if g["released_by"] == "context"]
        assert self.data["leaks"]["count"] == sum(group["count"] for group in leaks)
        assert self.data["leaks"]["bytes"] == sum(group["bytes"] for group in leaks)
        assert self.data["leaks"]["released_by_context_bytes"] == sum(g["bytes"] for g in released)
        for total in self.data["totals"]:
            assert total["peak_bytes"] >= total["live_bytes"], total
            assert total["allocations"] >= total["frees"] + total["live_count"], total
        for device in self.data["devices"]:
            rows = [
                row
                for row in self.data["accounts"]
                if row["device"] == device["device"] and row["incident"] is None
            ]
            if rows and device["used_bytes"] is not None:
                assert sum(row["bytes"] for row in rows) == device["used_bytes"], device

    # --- leaks

    def leaks(self):
        """Returns the groups of leaks, without those whose memory a context released when it ended."""
        return [group for group in self.data["leak_groups"] if group["released_by"] is None]

    def functions(self, group):
        """Returns (bare name, row) for each frame of the group's stack outside CUDA's libraries, innermost
        first.
        """
        return [
            (bare_name(frame["function"]), frame)
            for frame in self.stack_frames(group)
            if not self.is_cuda(frame)
        ]

    def stack_frames(self, group):
        if group["stack"] is None:
            return []
        return [self.frames[frame] for frame in self.stacks[group["stack"]]["frames"]]

    def is_cuda(self, frame):
        if frame["module"] is None:
            return False
        name = Path(self.modules[frame["module"]]["path"]).name
        return re.match(r"lib(cuda|cudart|cuwarden)\.so", name) is not None

    def module_name(self, module):
        return None if module is None else Path(self.modules[module]["path"]).name

    def groups_of(self, function, line=None, *, api=None, kind=None):
        """Returns the groups of leaks whose innermost frame outside CUDA's libraries is in this function.

        With `line`, `api` or `kind`, only groups that agree with it are returned.
        """
        found = []
        for group in self.data["leak_groups"]:
            functions = self.functions(group)
            if not functions or functions[0][0] != function:
                continue
            if line is not None and functions[0][1]["line"] != line:
                continue
            if (api or group["api"]) == group["api"] and (kind or group["kind"]) == group["kind"]:
                found.append(group)
        return found

    def check_leak(self, fact):
        """Checks that the report has the leak of which the program has printed the facts; returns its
        groups.

        `fact` is a dict with function, line, api, kind, count, bytes and maybe released_by.
        """
        groups = self.groups_of(fact["function"], fact["line"], api=fact["api"], kind=fact["kind"])
        assert groups, f"no group for {fact}; there are:\n{self.describe_leaks()}"
        assert sum(group["count"] for group in groups) == fact["count"], fact
        assert sum(group["bytes"] for group in groups) == fact["bytes"], fact
        for group in groups:
            assert group["released_by"] == fact.get("released_by"), fact
            results = [group[f"{result}_count"] for result in ("lost", "interior", "reachable", "unknown")]
            assert results == [None] * 4 or sum(results) <= group["count"], group
            on_host = fact["kind"] in ("pinned", "registered")
            assert group["device"] == (None if on_host else 0), group
        return groups

    def check_leaks(self, facts):
        """Checks that the report has the leaks of which the program has printed these facts, and no others."""
        for fact in facts:
            self.check_leak(fact)
        real = [fact for fact in facts if fact.get("released_by") is None]
        assert self.data["leaks"]["count"] == sum(f["count"] for f in real), self.describe_leaks()
        assert self.data["leaks"]["bytes"] == sum(f["bytes"] for f in real), self.describe_leaks()

    def describe_leaks(self):
        return "\n".join(
            f"{g['count']} x {g['api']} ({g['kind']}), {g['bytes']} bytes, "
            f"released by {g['released_by']}: "
            + " < ".join(f"{name}:{frame['line']}" for name, frame in self.functions(g))
            for g in self.data["leak_groups"]
        )

    # --- totals

    def totals(self):
        """Returns a dict by kind of memory: the figures of the table `totals`, summed over all devices."""
        sums = {}
        for row in self.data["totals"]:
            kind = sums.setdefault(row["kind"], {})
            for name, value in row.items():
                if name not in ("kind", "device", "peak_time_ns"):
                    kind[name] = kind.get(name, 0) + value
        return sums

    def calls(self, name):
        return sum(row["calls"] for row in self.data["hooks"] if row["name"] == name)

    def setting(self, name):
        rows = [row for row in self.data["settings"] if row["name"] == name]
        assert len(rows) <= 1, rows
        return rows[0] if rows else None
