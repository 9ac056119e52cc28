"""A process that is killed at any moment leaves a true ledger: it has all memory that calls had returned,
and none that was freed. The processes keep their own accounts to compare with."""

import contextlib
import json
import os
import random
import signal
import struct
import subprocess
import time

import pytest

import shimmed
from reports import Report, bare_name
from shimmed import COMMAND, PATIENCE_S, program, start, until

ROUNDS = 1000 if os.environ.get("LARGE_COUNTS") else 30
UNDER_WAY = 2**64 - 1
LEVELS = 8
KINDS = ("device", "pinned", "stream_ordered", "managed")


class Account:
    """The account that the program under_load keeps; its source describes the file."""

    def __init__(self, path):
        self.path = path

    def operations(self):
        try:
            return struct.unpack("<Q", self.path.read_bytes()[:8])[0]
        except (FileNotFoundError, struct.error):
            return 0

    def slots(self):
        content = self.path.read_bytes()
        return struct.unpack(f"<{len(content) // 8 - 1}Q", content[8:])

    def wait_for_operations(self, process, count=1):
        until(lambda: self.operations() >= count, process)


def slot_of(report, group):
    """Returns the slot of a group: the function names between main or load and the call are its bits."""
    names = [bare_name(frame["function"]) for frame in report.stack_frames(group)]
    bits = [name == "one" for name in names if name in ("one", "zero")]
    # The names are innermost first. The outermost one is the entry; each other one is a bit of the slot.
    assert len(bits) == LEVELS + 1, names
    return sum(bit << position for position, bit in enumerate(reversed(bits[:-1])))


def check_slots(report, account):
    live = {}
    for group in report.leaks():
        slot = slot_of(report, group)
        assert slot not in live, "one stack is one group"
        assert group["kind"] == KINDS[slot % 4]
        live[slot] = (group["count"], group["bytes"])
    checked = 0
    for slot, said in enumerate(account.slots()):
        if said == UNDER_WAY:
            continue
        expected = None if said == 0 else (1, said)
        assert live.get(slot) == expected, f"slot {slot} of {len(account.slots())}"
        checked += 1
    return checked


def recover(workspace):
    done = shimmed.cuwarden(workspace, "recover", workspace.ledger)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert list(workspace.ledger.iterdir()) == []
    (path,) = workspace.reports.iterdir()
    report = Report.read(path)
    path.unlink()
    return report


def kill(process):
    process.send_signal(signal.SIGKILL)
    process.wait(PATIENCE_S)
    process.stdout.close()


def test_killed_at_any_moment_nothing_is_lost_and_nothing_is_kept_too_long(workspace):
    chance = random.Random(20240607)
    account = Account(workspace.folder / "account")
    checked = operations = 0
    for round_number in range(ROUNDS):
        process = start(workspace, [program("under_load"), "load", account.path, round_number])
        # Half of all slots on average, so that the load is large enough however short the time is.
        account.wait_for_operations(process, chance.randrange(1, 256))
        # Every moment must pass, so it is left to chance. A slow machine only changes what is met.
        time.sleep(chance.random() * 0.05)
        kill(process)
        report = recover(workspace)
        checked += check_slots(report, account)
        operations += account.operations()
        assert report["process"]["pid"] == process.pid
        assert report["tool"]["complete"], report["tool"]
        account.path.unlink()
    slots = ROUNDS * 256
    assert checked >= slots - 2 * ROUNDS, "two threads have at most one call each under way"
    assert operations > slots / 4, "the load was too small to prove anything"


def test_killed_while_the_ledger_grows_all_returned_calls_are_there(workspace):
    chance = random.Random(7)
    account = Account(workspace.folder / "account")
    most = 0
    for _ in range(max(6, ROUNDS // 20)):
        process = start(workspace, [program("under_load"), "grow", account.path, 0])
        account.wait_for_operations(process)
        (ledger,) = workspace.ledger.iterdir()
        # Waits for one of the first growths of the region of records, whose steps are 16 KiB and more.
        grown = ledger.stat().st_blocks * 512 + chance.randrange(0, 600_000)
        until(lambda: ledger.stat().st_blocks * 512 > grown, process)
        kill(process)
        report = recover(workspace)
        returned = account.slots()[0]
        assert report["leaks"]["count"] in (returned, returned + 1)
        assert report["leaks"]["bytes"] == 512 * report["leaks"]["count"]
        (group,) = report.leaks()
        assert group["count"] == report["leaks"]["count"]
        most = max(most, group["count"])
        account.path.unlink()
    assert most > 1000, "it was never killed after its ledger had grown"


def unfinished(workspace):
    return [path for path in workspace.reports.iterdir() if path.name.startswith(".cuwarden-")]


@pytest.mark.parametrize("after_the_first", [False, True], ids=["first", "with_symbols"])
def test_a_process_killed_while_its_report_is_written_gets_one_whole_report(workspace, after_the_first):
    """The process writes its report twice: first quickly, then with function names."""
    stacks = 1500
    hits = 0
    for _ in range(max(5, ROUNDS // 20)):
        account = workspace.folder / "account"
        process = start(workspace, [program("under_load"), "stacks", account, stacks])
        while process.poll() is None:
            there = {path.name for path in workspace.reports.iterdir()}
            whole = any(name.endswith(".json") for name in there)
            if whole == after_the_first and any(name.startswith(".cuwarden-") for name in there):
                break
        kill(process)
        ledgers = list(workspace.ledger.iterdir())
        if not ledgers:  # the process had already ended
            for path in workspace.reports.iterdir():
                path.unlink()
            continue
        hits += 1
        report = recover(workspace)
        assert report["leaks"]["count"] == stacks
        assert report["process"]["end_reason"] == "exit"
        assert any(frame["function"] == "main" for frame in report["frames"])
        assert list(workspace.reports.iterdir()) == []
    assert hits > 0


# --- cuwarden run recovers by itself


def run(workspace, *command, **popen):
    return shimmed.cuwarden(
        workspace, "run", "--simulate", "16GiB", "--report", workspace.reports / "report.json",
        "--ledger-dir", workspace.ledger, "--", *command, **popen,
    )  # fmt: skip


FATAL = {
    "kill": signal.SIGKILL,
    "segfault": signal.SIGSEGV,
    "bus": signal.SIGBUS,
    "overflow": signal.SIGSEGV,
    "terminate": signal.SIGTERM,
}


@pytest.mark.parametrize("how", FATAL)
def test_run_has_the_report_of_a_program_that_a_signal_killed(workspace, how):
    done = run(workspace, program("dying"), how)
    assert done.returncode == 128 + FATAL[how], done.stderr
    (path,) = workspace.reports.iterdir()
    report = Report.read(path)
    report.check_leaks(json.loads(done.stdout.splitlines()[-1])["leaked"])
    told = report["process"]
    assert (told["end_reason"], told["signal"]) == ("signal", FATAL[how])
    assert "STILL ALLOCATED: 6.0 MiB in 2 allocations when the process ended" in done.stderr
    assert list(workspace.ledger.iterdir()) == []


def begin_run(workspace, *command):
    return subprocess.Popen(
        [COMMAND, "run", "--simulate", "16GiB", "--report", workspace.reports / "report.json",
         "--ledger-dir", workspace.ledger, "--", *map(str, command)],
        env=workspace.environment(shim=False, preload=()), cwd=workspace.work,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def child_of(process):
    children = f"/proc/{process.pid}/task/{process.pid}/children"
    return int(until(lambda: open(children).read().split(), process)[0])


# 3 and 1.25 MiB are rounded up to whole pages; a last slab of blocks of 300 KiB is not full.
@pytest.mark.parametrize(
    ("count", "size"), [(20, 64 << 20), (60, 3 << 20), (60, 5 << 18), (100, 300 << 10)]
)
def test_the_account_counts_what_was_allocated_after_the_devices_last_reading(workspace, count, size):
    # The program allocates for a shorter time than there is between two readings.
    run = workspace.run([shimmed.sample("killed"), str(count), str(size)])
    assert run.returncode == -signal.SIGKILL
    report = recover(workspace)
    (device,) = report["devices"]
    assert device["at"] == "last_call"
    rows = {row["item"]: row["bytes"] for row in report["accounts"] if row["incident"] is None}
    assert rows["live_device"] == count * size
    assert sum(rows.values()) == device["used_bytes"]
    assert device["free_bytes"] == device["total_bytes"] - device["used_bytes"]
    assert abs(rows["unexplained"]) <= device["used_bytes"] / 100


def test_run_recovers_a_program_killed_under_load(workspace):
    account = Account(workspace.folder / "account")
    command = begin_run(workspace, program("under_load"), "load", account.path, 3)
    account.wait_for_operations(command, 2000)
    os.kill(child_of(command), signal.SIGKILL)
    _, said = command.communicate(timeout=PATIENCE_S)
    assert command.returncode == 128 + signal.SIGKILL
    (path,) = workspace.reports.iterdir()
    assert check_slots(Report.read(path), account) >= 254
    assert str(path) in said


def test_run_recovers_a_program_killed_while_its_ledger_grows(workspace):
    account = Account(workspace.folder / "account")
    command = begin_run(workspace, program("under_load"), "grow", account.path, 0)
    account.wait_for_operations(command, 5000)
    os.kill(child_of(command), signal.SIGKILL)
    command.communicate(timeout=PATIENCE_S)
    (path,) = workspace.reports.iterdir()
    returned = account.slots()[0]
    assert Report.read(path)["leaks"]["count"] in (returned, returned + 1)


def test_run_recovers_a_program_killed_while_its_report_is_written(workspace):
    for _ in range(5):
        command = begin_run(workspace, program("under_load"), "stacks", workspace.folder / "account", 1500)
        while command.poll() is None and not unfinished(workspace):
            pass
        for ledger in workspace.ledger.iterdir():  # the ledger's name ends with the pid
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(ledger.name.rsplit("-", 1)[1]), signal.SIGKILL)
        command.communicate(timeout=PATIENCE_S)
        (path,) = workspace.reports.iterdir()
        report = Report.read(path)
        assert report["leaks"]["count"] == 1500
        assert list(workspace.ledger.iterdir()) == []
        path.unlink()
        if command.returncode == 128 + signal.SIGKILL:
            return
    raise AssertionError("the program was always quicker")
