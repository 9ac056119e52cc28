"""The disk space, memory and time that the ledger and the report of a large process take.

With LARGE_COUNTS=1 the sizes are those for which the bounds are promised; without it they are smaller.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass

import pytest

from reports import bare_name
from shimmed import DRIVEN, PATIENCE_S, PROGRAMS, Workspace, program

# The tests compare CPU times of two processes, from the end of the program to the end of the process. Both
# times grow alike on a slow or busy machine. The work itself has no counter that is visible from outside.
LARGE = "LARGE_COUNTS" in os.environ
STACKS = 100_000 if LARGE else 20_000


@dataclass
class Ending:
    """The costs of a process from the moment on at which its program was done."""

    facts: dict  # printed by the program
    ledger_bytes: int  # size on disk, just before the end
    cpu_s: float
    wall_s: float
    extra_rss_bytes: int
    report: dict


def end_of(workspace, command, env=None):
    """Runs a program that prints its own costs and then waits for the end of its input."""
    child = subprocess.Popen(
        command,
        env=workspace.environment(env),
        cwd=workspace.work,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    facts = json.loads(child.stdout.readline())
    (ledger,) = workspace.ledger.iterdir()
    ledger_bytes = ledger.stat().st_blocks * 512
    start = time.monotonic()
    child.stdin.close()
    _, status, used = os.wait4(child.pid, 0)
    wall_s = time.monotonic() - start
    child.returncode = status
    child.stdout.close()
    assert status == 0
    (report,) = workspace.reports.iterdir()
    return Ending(
        facts=facts,
        ledger_bytes=ledger_bytes,
        cpu_s=used.ru_utime + used.ru_stime - facts["cpu_ns"] / 1e9,
        wall_s=wall_s,
        extra_rss_bytes=(used.ru_maxrss - facts["rss_kb"]) * 1024,
        report=json.loads(report.read_text()),
    )


def end_of_stacks(folder, stacks):
    ending = end_of(Workspace(folder), [program("many_stacks"), str(stacks)])
    print(
        f"{stacks} stacks: ledger {ending.ledger_bytes >> 20} MiB, report {ending.cpu_s:.2f} s of "
        f"CPU time, {ending.wall_s:.2f} s, {ending.extra_rss_bytes >> 20} MiB more memory"
    )
    return ending


@pytest.fixture(scope="module")
def many_stacks(tmp_path_factory):
    return end_of_stacks(tmp_path_factory.mktemp("many_stacks"), STACKS)


def test_every_one_of_many_stacks_is_in_the_report(many_stacks):
    report = many_stacks.report
    assert report["tool"]["complete"], report["tool"]["reasons"]
    assert report["leaks"]["count"] == STACKS == len(report["leak_groups"])
    assert len({group["stack"] for group in report["leak_groups"]}) == STACKS
    ids = {group["stack"] for group in report["leak_groups"]}
    frames = {s["id"]: tuple(s["frames"]) for s in report["stacks"] if s["id"] in ids}
    assert len(set(frames.values())) == len(frames) == STACKS
    assert min(map(len, frames.values())) >= 28


def test_many_stacks_take_little_disk(many_stacks):
    assert many_stacks.ledger_bytes <= STACKS * (256 << 20) / 100_000 + (1 << 20)


def test_the_time_for_a_report_of_many_stacks_grows_with_their_number_alone(many_stacks, tmp_path):
    # Quadratic work would take 64 times as long for 8 times as many stacks.
    few_stacks = end_of_stacks(tmp_path, STACKS // 8)
    assert many_stacks.cpu_s < 20 * few_stacks.cpu_s


def test_the_report_of_many_stacks_takes_little_memory(many_stacks):
    assert many_stacks.extra_rss_bytes <= STACKS * (200 << 20) / 100_000 + (16 << 20)


# --- host memory and disk space while a process runs


def taken(workspace, stacks, each, shim):
    """Returns (resident memory of the process, size of its ledger on disk), in bytes."""
    child = subprocess.Popen(
        [program("many_stacks"), str(stacks), str(each)],
        env=workspace.environment(shim=shim),
        cwd=workspace.work,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    facts = json.loads(child.stdout.readline())
    disk_bytes = sum(path.stat().st_blocks * 512 for path in workspace.ledger.iterdir())
    child.communicate(timeout=PATIENCE_S)
    assert child.returncode == 0
    return facts["rss_kb"] * 1024, disk_bytes


def test_recording_takes_little_memory_and_disk(workspace):
    """Prints the figures of docs/benchmarks.md. The bounds are about twice as large."""

    def added(stacks, each):
        bare_bytes, _ = taken(workspace, stacks, each, shim=False)
        rss_bytes, disk_bytes = taken(workspace, stacks, each, shim=True)
        return rss_bytes - bare_bytes, disk_bytes

    small = added(1, 1)
    allocations = 200_000
    of_allocation = [(many - few) / allocations for many, few in zip(added(1, allocations), small, strict=True)]
    of_stack = [(many - few) / STACKS for many, few in zip(added(STACKS, 1), small, strict=True)]
    print(
        f"small program: {small[0] / (1 << 20):.1f} MiB of host memory, {small[1] >> 10} KiB on disk; "
        f"a live allocation: {of_allocation[0]:.0f} B, {of_allocation[1]:.0f} B; "
        f"a call stack with one: {of_stack[0]:.0f} B, {of_stack[1]:.0f} B"
    )
    assert small[0] < 8 << 20 and small[1] < 512 << 10
    assert of_allocation[0] < 170 and of_allocation[1] < 130
    assert of_stack[0] < 1500 and of_stack[1] < 1150


# --- debug information


def swollen(source, target, copies, compressed=False):
    """Makes a copy of a program or library whose debug information takes long to read, since it has each
    unit `copies` times. The build id and the code stay the same.
    """
    units = target.with_suffix(".units")
    subprocess.run(
        ["objcopy", "--dump-section", f".debug_info={units}", source, "/dev/null"], check=True
    )
    units.write_bytes(units.read_bytes() * copies)
    subprocess.run(
        ["objcopy", "--update-section", f".debug_info={units}", source, target], check=True
    )
    units.unlink()
    if compressed:
        subprocess.run(["objcopy", "--compress-debug-sections=zlib", target], check=True)
    return target


def set_build_id(path, number):
    """Gives a copy of a library another build id; otherwise a report takes copies for one library."""
    note = path.with_suffix(".note")
    section = ".note.gnu.build-id"
    subprocess.run(["objcopy", "--dump-section", f"{section}={note}", path, "/dev/null"], check=True)
    note.write_bytes(note.read_bytes()[:-1] + bytes([number]))
    subprocess.run(["objcopy", "--update-section", f"{section}={note}", path], check=True)
    note.unlink()


def cpu_seconds(workspace, command, **how):
    """Runs the command. Returns the run and the CPU seconds that it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = workspace.run(command, **how)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return run, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def lines(report, function):
    return {frame["line"] for frame in report["frames"] if bare_name(frame["function"]) == function}


def said_to_lack_lines(report):
    reasons = [reason for reason in report["tool"]["reasons"] if "took too long" in reason]
    assert len(reasons) <= 1 and report["tool"]["complete"] == (not reasons)
    return reasons[0] if reasons else ""


DEFAULT_TIME = {"CUWARDEN_SYMBOL_TIME": None}
ENOUGH_TIME = {"CUWARDEN_SYMBOL_TIME": "1m"}
# By this clock the default time is over after 16,000 readings, which the shim makes while it reads huge
# debug information. Real time may be over at any moment, if the machine stands still.
BY_READINGS = {**DEFAULT_TIME, "DRIVEN_CLOCK_READING_NS": 100_000}


def run_with_little_time(workspace, command):
    """Runs the command once with time enough for all debug information, and once with the default time by
    readings. Checks that the second run takes less than half of the CPU time, and returns it.
    """
    whole, whole_s = cpu_seconds(workspace, command, env=ENOUGH_TIME)
    assert (whole.returncode, said_to_lack_lines(whole.report)) == (0, ""), whole.stderr
    run, used_s = cpu_seconds(workspace, command, env=BY_READINGS, preload=DRIVEN)
    print(f"{used_s:.2f} s of CPU time; {whole_s:.2f} s to read all")
    assert used_s < whole_s / 2  # a tenth, or much less if the information is compressed
    return run


def test_huge_debug_information_does_not_hold_the_process_up(workspace):
    source = program("allocate")
    assert None not in lines(workspace.run([source, "4"]).report, "allocate")

    # With libbacktrace's own sort the report would take 50 s; with the better sort and no bound, 3 s.
    target = swollen(source, workspace.folder / "huge", 60_000)
    run = workspace.run([target, "4"], DEFAULT_TIME)
    lacks = lines(run.report, "allocate") == {None}
    assert not lacks or str(target) in said_to_lack_lines(run.report)
    assert run.said == []

    run = run_with_little_time(workspace, [target, "4"])
    assert lines(run.report, "allocate") == {None}
    assert str(target) in said_to_lack_lines(run.report)
    assert run.said == []


def test_lines_of_huge_debug_information_are_read_if_the_user_allows_the_time(workspace):
    target = swollen(program("allocate"), workspace.folder / "huge", 60_000)
    run = workspace.run([target, "4"], ENOUGH_TIME)
    assert None not in lines(run.report, "allocate")
    assert run.report["tool"]["complete"] is True


def test_without_time_for_names_the_report_says_how_to_give_some(workspace):
    run = workspace.run([program("allocate"), "4"], {"CUWARDEN_SYMBOL_TIME": "0"})
    assert {frame["function"] for frame in run.report["frames"]} == {None}
    assert run.report["tool"]["complete"] is False
    assert "CUWARDEN_SYMBOL_TIME" in "".join(run.report["tool"]["reasons"])
    assert run.report["leaks"]["count"] > 0


def test_compressed_debug_information_that_would_take_too_long_costs_lines_and_not_names(workspace):
    target = swollen(program("allocate"), workspace.folder / "huge", 60_000, compressed=True)
    for run in (workspace.run([target, "4"], DEFAULT_TIME), run_with_little_time(workspace, [target, "4"])):
        assert lines(run.report, "allocate") == {None}
        assert str(target) in said_to_lack_lines(run.report)
        assert run.said == []


MANY_LIBRARIES = """
import ctypes, sys
for path in sys.argv[1:]:
    assert ctypes.CDLL(path).allocate_in_library(ctypes.c_size_t(1000)) == 0
"""


def test_among_many_libraries_with_much_debug_information_small_ones_keep_their_lines(workspace):
    source = PROGRAMS / "traps" / "liballocating_library.so"
    small = workspace.folder / "libsmall.so"
    shutil.copy(source, small)
    # The program loads the large libraries first; the report lists the small one first.
    huge = [swollen(source, workspace.folder / f"libhuge{i}.so", 40_000) for i in range(5)]
    for number, path in enumerate(huge):
        set_build_id(path, number)
    command = [sys.executable, "-c", MANY_LIBRARIES, *huge, small]
    run = workspace.run(command, DEFAULT_TIME)
    assert run.returncode == 0, run.stderr

    run = run_with_little_time(workspace, command)
    assert run.returncode == 0, run.stderr
    by_module = {}
    for frame in run.report["frames"]:
        if bare_name(frame["function"]) == "allocate_in_library":
            by_module[run.report.module_name(frame["module"])] = frame["line"]
    assert by_module.keys() == {small.name, *(path.name for path in huge)}
    assert by_module[small.name] is not None
    assert {by_module[path.name] for path in huge} == {None}
    assert str(small) not in said_to_lack_lines(run.report)
    if any(by_module[path.name] is None for path in huge):
        assert "libhuge" in said_to_lack_lines(run.report)
