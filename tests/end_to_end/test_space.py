"""What the record and the report of a large process take: disk, memory, time.

LARGE_COUNTS=1 asks for the sizes that the figures are promised for; daily runs take a share.
"""

import json
import os
import subprocess
import time
from dataclasses import dataclass

import pytest

from shimmed import program

LARGE = "LARGE_COUNTS" in os.environ
STACKS = 100_000 if LARGE else 20_000


@dataclass
class Ending:
    """What a process took from the moment on at which its program was done."""

    facts: dict  # the program's own
    ledger_bytes: int  # on disk, just before
    cpu_s: float
    wall_s: float
    extra_rss_bytes: int
    report: dict


def end_of(place, command, env=None):
    """Runs a program that prints what it used and then waits for the end of its input."""
    child = subprocess.Popen(
        command,
        env=place.environment(env),
        cwd=place.work,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    facts = json.loads(child.stdout.readline())
    (ledger,) = place.ledger.iterdir()
    ledger_bytes = ledger.stat().st_blocks * 512
    start = time.monotonic()
    child.stdin.close()
    _, status, used = os.wait4(child.pid, 0)
    wall_s = time.monotonic() - start
    child.returncode = status
    child.stdout.close()
    assert status == 0
    (report,) = place.reports.iterdir()
    return Ending(
        facts=facts,
        ledger_bytes=ledger_bytes,
        cpu_s=used.ru_utime + used.ru_stime - facts["cpu_ns"] / 1e9,
        wall_s=wall_s,
        extra_rss_bytes=(used.ru_maxrss - facts["rss_kb"]) * 1024,
        report=json.loads(report.read_text()),
    )


@pytest.fixture(scope="module")
def many_stacks(tmp_path_factory):
    from shimmed import Place

    place = Place(tmp_path_factory.mktemp("many_stacks"))
    ending = end_of(place, [program("many_stacks"), str(STACKS)])
    print(
        f"{STACKS} stacks: ledger {ending.ledger_bytes >> 20} MiB, report {ending.cpu_s:.2f} s of "
        f"CPU time, {ending.wall_s:.2f} s, {ending.extra_rss_bytes >> 20} MiB more memory"
    )
    return ending


def test_every_one_of_many_stacks_is_in_the_report(many_stacks):
    report = many_stacks.report
    assert report["tool"]["complete"], report["tool"]["reasons"]
    assert report["leaks"]["count"] == STACKS == len(report["leak_groups"])
    assert len({group["stack"] for group in report["leak_groups"]}) == STACKS
    frames = {stack["id"]: tuple(stack["frames"]) for stack in report["stacks"]}
    assert len(set(frames.values())) == len(frames) == STACKS
    assert min(map(len, frames.values())) >= 28


def test_many_stacks_take_little_disk(many_stacks):
    assert many_stacks.ledger_bytes <= STACKS * (256 << 20) / 100_000 + (1 << 20)


def test_the_report_of_many_stacks_takes_little_time(many_stacks):
    # CPU time: what else runs on the machine does not count.
    assert many_stacks.cpu_s <= 3 * STACKS / 100_000 + 0.2


def test_the_report_of_many_stacks_takes_little_memory(many_stacks):
    assert many_stacks.extra_rss_bytes <= STACKS * (200 << 20) / 100_000 + (16 << 20)
