"""A ledger is a foreign file: `cuwarden recover` comes to an end with any damage in it."""

import fcntl
import json
import os
import random
import resource
import struct
import subprocess

import pytest

import shimmed
from report_schema import validate
from reports import Report
from shimmed import dead, only_report


def test_a_damaged_ledger_is_a_line_and_the_others_are_recovered(cuwarden, workspace):
    damaged, _ = dead(workspace)
    with open(damaged, "r+b") as file:
        file.seek(100)
        file.write(b"\xff" * 64)
    (workspace.ledger / "cuwarden-ledger-x-1-1").write_text("not a ledger at all, and short")
    _, facts = dead(workspace)
    done = cuwarden("recover", workspace.ledger)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 2
    assert str(damaged) in done.stderr
    only_report(workspace).check_leaks(facts)
    assert damaged.exists()


def kept_and_report(workspace, folder):
    """Returns the damaged ledger under its new name, and the report, beside it or at the wanted path."""
    (kept,) = workspace.ledger.glob("cuwarden-damaged-*")
    assert not list(workspace.ledger.glob("cuwarden-ledger-*"))
    (path,) = folder.glob("*.json")
    report = json.loads(path.read_text())
    validate(report)
    assert (report["tool"]["complete"], report["records"]["complete"]) == (False, False)
    (reason,) = (reason for reason in report["tool"]["reasons"] if "damaged" in reason)
    assert reason in report["records"]["reasons"]
    return kept, path, reason


def test_a_ledger_that_is_cut_short_gives_what_is_left_and_says_so(cuwarden, workspace):
    ledger, _ = dead(workspace)
    os.truncate(ledger, 64 * 1024)  # the texts are gone too, and with them the report's path
    done = cuwarden("recover", workspace.ledger)
    assert done.returncode == 0, done.stderr
    kept, path, reason = kept_and_report(workspace, workspace.ledger)
    assert Report.read(path)["leaks"]["count"] == 0
    assert "cut short" in reason
    assert str(kept) in done.stdout


def overwrite_at_random(path, chance):
    """Changes some bytes in the filled parts of a sparse file, and in the texts before the rows."""
    with open(path, "r+b") as file:
        extents, end = [], 0
        while True:
            try:
                start = os.lseek(file.fileno(), end, os.SEEK_DATA)
            except OSError:
                break
            end = os.lseek(file.fileno(), start, os.SEEK_HOLE)
            extents.append((start, end))
        extreme = [b"\xff" * 8, b"\0" * 8, b"\xff\xff\xff\x7f", b"\1", b"\xff\xff"]
        for _ in range(chance.choice([1, 5, 50, 500])):
            start, end = chance.choice(extents)
            # Most of the header stays as it is, since a wrong checksum would end the reading at once.
            file.seek(chance.randrange(max(start, 300), end - 8) & ~1)
            file.write(chance.choice([*extreme, chance.randbytes(8)]))


def test_recover_comes_to_an_end_with_any_bytes_in_the_ledger(cuwarden, workspace):
    chance = random.Random(11)
    original = workspace.folder / "original"
    ledger, _ = dead(workspace)
    subprocess.run(["cp", "--sparse=always", ledger, original], check=True)
    recovered = noticed = 0
    for _ in range(1000 if os.environ.get("LARGE_COUNTS") else 40):
        subprocess.run(["cp", "--sparse=always", original, ledger], check=True)
        overwrite_at_random(ledger, chance)
        done = cuwarden("recover", ledger)
        assert done.returncode in (0, 2), (done.returncode, done.stderr)
        assert len(done.stdout.splitlines()) + len(done.stderr.splitlines()) == 1
        # No file that may still be useful is removed.
        kept = list(workspace.ledger.glob("cuwarden-damaged-*"))
        assert bool(kept) == ("is damaged and stays" in done.stdout)
        noticed += len(kept)
        for folder in (workspace.reports, workspace.ledger):
            for path in folder.glob("*.json"):
                report = json.loads(path.read_text())
                validate(report)
                recovered += 1
                assert any("is damaged" in why for why in report["tool"]["reasons"]) == bool(kept)
                shown = cuwarden("report", path)
                assert shown.returncode in (0, 2), shown.stderr
                path.unlink()
        for path in kept:
            path.unlink()
    assert recovered > 10 and noticed > 5


def test_an_unfinished_ledger_may_still_be_in_the_making(cuwarden, workspace):
    empty = workspace.ledger / "cuwarden-ledger-host-1-1"
    empty.touch(mode=0o600)
    done = cuwarden("recover", workspace.ledger)
    assert (done.returncode, done.stderr) == (0, "")
    assert "it is being made" in done.stdout
    assert empty.exists()


def five_minutes_later(cuwarden, workspace):
    return cuwarden("recover", workspace.ledger, env={"LD_PRELOAD": shimmed.PROGRAMS / "liblater.so"})


def test_an_unfinished_ledger_of_long_ago_is_removed(cuwarden, workspace):
    empty = workspace.ledger / "cuwarden-ledger-host-1-1"
    empty.touch(mode=0o600)
    done = five_minutes_later(cuwarden, workspace)
    assert (done.returncode, done.stderr) == (0, "")
    assert "removed" in done.stdout
    assert not empty.exists()


def test_an_unfinished_ledger_of_long_ago_stays_while_its_process_has_the_lock(cuwarden, workspace):
    empty = workspace.ledger / "cuwarden-ledger-host-1-1"
    empty.touch(mode=0o600)
    with open(empty) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        done = five_minutes_later(cuwarden, workspace)
        assert (done.returncode, done.stderr) == (0, "")
        assert "it is being made" in done.stdout
        assert empty.exists()


# --- hostile ledgers: they claim rows, whose number the header's checksum does not cover

RECORDS, GROUPS, STACKS, FRAMES, SERIES, HOOKS, GROUP_SHARDS = 0, 1, 2, 3, 7, 9, 13
REGIONS, REGION = 26, "<QQIIQQ"  # offset, capacity, row bytes, reserved, used rows, bytes in the file


class Claims:
    """Writes false rows into the tables of a ledger."""

    def __init__(self, path):
        self.file = open(path, "r+b")
        header_bytes = struct.unpack("<I", self.file.read(16)[12:])[0]
        self.regions = header_bytes - REGIONS * struct.calcsize(REGION)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()

    def claim(self, table, rows, row=None):
        """Claims that the table has `rows` rows, and writes them: row(1), row(2), …"""
        at = self.regions + table * struct.calcsize(REGION)
        self.file.seek(at)
        offset, capacity, size, *_ = struct.unpack(REGION, self.file.read(struct.calcsize(REGION)))
        assert (rows + 1) * size <= capacity
        self.file.seek(at + 24)
        self.file.write(struct.pack("<QQ", rows + 1, (rows + 1) * size))
        if row is not None:
            self.file.seek(offset + size)
            self.file.write(b"".join(row(i).ljust(size, b"\0") for i in range(1, rows + 1)))

    def overwrite(self, table, row, at, data):
        self.file.seek(self.regions + table * struct.calcsize(REGION))
        offset, _, size, *_ = struct.unpack(REGION, self.file.read(struct.calcsize(REGION)))
        self.file.seek(offset + row * size + at)
        self.file.write(data)


def group_row(stack, allocations=0, first_shard=0):
    key = struct.pack("<IIHBBiII", 1, stack, 0, 0, 0, 0, 0, first_shard)
    return key.ljust(64, b"\0") + struct.pack("<5Q", allocations, allocations, 0, 0, 0)


def quickly():
    resource.setrlimit(resource.RLIMIT_CPU, (6, 6))


def test_more_rows_than_the_file_holds_are_not_gone_through(cuwarden, workspace):
    ledger, _ = dead(workspace)
    with Claims(ledger) as claims:
        claims.claim(GROUPS, 1_000_000)
    done = cuwarden("recover", ledger, preexec_fn=quickly)
    assert done.returncode == 2
    assert "claims more entries than the file holds" in done.stderr
    assert ledger.exists()


def test_many_series_of_many_groups_are_added_up_in_one_go(cuwarden, workspace):
    ledger, _ = dead(workspace)
    with Claims(ledger) as claims:
        claims.claim(GROUPS, 200_000, lambda _: group_row(0))
        claims.claim(SERIES, 2000, lambda _: struct.pack("<IiB", 1, 0, 0))
    done = cuwarden("recover", ledger, preexec_fn=quickly)
    assert done.returncode == 0, done.stderr
    assert len(only_report(workspace)["totals"]) == 2000


def test_stacks_that_share_their_frames_are_named_as_far_as_there_are_frames(cuwarden, workspace):
    ledger, _ = dead(workspace)
    stacks, depth = 20_000, 1024
    with Claims(ledger) as claims:
        claims.claim(FRAMES, 2 * depth, lambda i: struct.pack("<Q", 0x7F0000000000 + 4096 * i))
        claims.claim(
            STACKS, stacks, lambda i: struct.pack("<IIQQQII", 1, depth, 1, i, 1000 + i, 0, 0)
        )
        claims.claim(GROUPS, stacks, lambda i: group_row(i, allocations=1))
    done = cuwarden("recover", ledger, preexec_fn=quickly)
    assert done.returncode == 0, done.stderr
    # A whole ledger never has two stacks of the same frames, so this report is not valid.
    (report,) = workspace.reports.iterdir()
    assert len(json.loads(report.read_text())["stacks"]) == 2


def test_a_groups_counters_that_lie_in_a_ring_are_added_up_once_and_no_more(cuwarden, workspace):
    ledger, _ = dead(workspace)
    groups = 200_000
    with Claims(ledger) as claims:
        claims.claim(GROUPS, groups, lambda i: group_row(0, first_shard=i))
        # Each row of the chain is its own successor.
        claims.claim(GROUP_SHARDS, groups, lambda i: struct.pack("<IIII5Q", i, 7, i, 0, 1, 1, 0, 0, 0))
    done = cuwarden("recover", ledger, preexec_fn=quickly)
    assert done.returncode == 0, done.stderr
    only_report(workspace)


# --- damage that can be seen: ids without a row, and sums that do not agree

NOWHERE = struct.pack("<I", 4000)


@pytest.mark.parametrize(
    "damage, words",
    [
        (lambda rows: rows.overwrite(RECORDS, 1, 4, NOWHERE), "1 live allocation has no call stack"),
        (lambda rows: rows.overwrite(GROUPS, 1, 4, NOWHERE), "1 stack cannot be read"),
        (lambda rows: rows.overwrite(STACKS, 1, 8, struct.pack("<Q", 1 << 40)), "cannot be read"),
        (lambda rows: rows.overwrite(GROUPS, 1, 8, b"\xff\xff"), "name cannot be read"),
        (
            lambda rows: [rows.overwrite(HOOKS, row, 8, b"\xff" * 8) for row in range(100)],
            "100 names cannot be read",
        ),
        (lambda rows: rows.overwrite(RECORDS, 1, 16, b"\xff" * 7), "1 figure is impossible"),
        (  # two allocations and the context
            lambda rows: [rows.overwrite(RECORDS, row, 0, bytes(64)) for row in range(1, 129)],
            "3 more live allocations were counted than are listed",
        ),
    ],
)
@pytest.mark.parametrize("verb", ["recover", "report"])
def test_damage_that_can_be_seen_is_said_and_keeps_the_ledger(cuwarden, workspace, verb, damage, words):
    ledger, _ = dead(workspace)
    with Claims(ledger) as rows:
        damage(rows)
    before = ledger.stat().st_ino
    done = cuwarden(verb, ledger)
    assert done.returncode == 0, done.stderr
    kept, path, reason = kept_and_report(workspace, workspace.reports)
    assert words in reason
    assert kept.stat().st_ino == before
    (line,) = (line for line in (done.stdout + done.stderr).splitlines() if str(kept) in line)
    assert "damaged" in line and str(path) in line
    # The damaged ledger can be read again, which makes another report and no third name.
    assert cuwarden("report", kept).returncode == 0
    assert kept.stat().st_ino == before and len(list(workspace.reports.iterdir())) == 2


def test_a_ledger_that_claims_a_report_is_believed_when_the_report_is_there(cuwarden, workspace):
    ledger, facts = dead(workspace)
    with Claims(ledger) as rows:
        rows.file.seek(rows.regions - 7 * 8)  # Header::report_written, before stacks_cut
        assert rows.file.read(8) == bytes(8)
        rows.file.seek(rows.regions - 7 * 8)
        rows.file.write(b"\1")
    assert cuwarden("recover", ledger).returncode == 0
    only_report(workspace).check_leaks(facts)


def test_run_keeps_a_damaged_ledger_too(cuwarden, workspace):
    done = cuwarden(
        "run", "--simulate", "16GiB", "--report", workspace.reports / "r.json",
        "--ledger-dir", workspace.ledger, "--", shimmed.program("dying"), "spoil_ledger",
    )  # fmt: skip
    kept, _, _ = kept_and_report(workspace, workspace.ledger)
    (line,) = (line for line in done.stderr.splitlines() if str(kept) in line)
    assert "damaged" in line


@pytest.mark.parametrize("how", ["kill", "terminate", "segfault", "overflow"])
def test_an_undamaged_ledger_is_not_called_damaged(cuwarden, workspace, how):
    dead(workspace, how)
    assert cuwarden("recover", workspace.ledger).returncode == 0
    report = only_report(workspace)
    assert report["records"] == {"complete": True, "reasons": []}
    assert not any("damaged" in reason for reason in report["tool"]["reasons"])
    assert not list(workspace.ledger.iterdir())
