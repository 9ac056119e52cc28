"""Fragmentation in the driver's slabs: bytes that a report calls locked are bytes that the device
does not give back."""

import sys
from pathlib import Path

import pytest

import preloaded

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "end_to_end"))
from fragmentation_checks import (  # noqa: E402
    check_checkerboard,
    check_idle_pools,
    check_kept_although_counted,
    check_worst_moment,
)

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
PROGRAMS = preloaded.BUILD / "tests" / "end_to_end" / "programs"
CHECKERBOARD, IDLE_POOLS = PROGRAMS / "checkerboard", PROGRAMS / "idle_pools"

pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(not CHECKERBOARD.exists(), reason=f"{CHECKERBOARD} was not built"),
]


@pytest.mark.parametrize("pattern", ["half", "most"])
@pytest.mark.parametrize(
    "piece_bytes, budget",
    [
        (4 * KIB, GIB),
        (64 * KIB, 8 * GIB),
        (256 * KIB, 16 * GIB),
        (MIB, 16 * GIB),
        (3 * MIB // 2, 16 * GIB),
        (2 * MIB, 16 * GIB),
        (3 * MIB, 16 * GIB),
        (64 * MIB, 16 * GIB),
        (5000, GIB),
        (700 * KIB, 8 * GIB),
    ],
)
def test_locked_bytes_are_those_freed_and_not_given_back(workspace, piece_bytes, budget, pattern):
    if preloaded.SIMULATED:
        budget //= 64
    run = workspace.run([CHECKERBOARD, piece_bytes, pattern, budget], {"CUWARDEN_POOL": "off"})
    assert run.returncode == 0, run.stderr
    check_checkerboard(run.report, run.last_line, piece_bytes)


@pytest.mark.parametrize(
    "piece_bytes, budget", [(64 * KIB, 4 * GIB), (256 * KIB, 8 * GIB), (MIB, 8 * GIB)]
)
@pytest.mark.parametrize("threads", [1, 4])
def test_the_report_has_the_worst_moment_although_all_is_freed(workspace, piece_bytes, budget, threads):
    if preloaded.SIMULATED:
        budget = 256 * MIB
    command = [CHECKERBOARD, piece_bytes, "half", budget, threads, "gone"]
    run = workspace.run(command, {"CUWARDEN_POOL": "off"})
    assert run.returncode == 0, run.stderr
    check_worst_moment(run.report, run.last_line, piece_bytes, run.report.names, threads)


def test_memory_that_pools_keep_is_in_the_account(workspace):
    run = workspace.run([IDLE_POOLS, (1 << 64) - 1, 512])
    assert run.returncode == 0, run.stderr
    assert run.last_line["reserved_bytes"] - run.last_line["used_bytes"] >= 512 * MIB
    check_idle_pools(run.report, run.last_line)


def test_memory_that_pools_keep_is_in_the_account_although_the_driver_counts_it_as_used(workspace):
    run = workspace.run([IDLE_POOLS, (1 << 64) - 1, 512, "cudaFree"])
    assert run.returncode == 0, run.stderr
    check_kept_although_counted(run.report, run.last_line)
