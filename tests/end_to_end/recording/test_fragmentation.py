"""The report's figures of slabs and rounding agree with the bytes that the device gives back or keeps."""

import json
import signal

import pytest
from fragmentation_checks import check_checkerboard, check_idle_pools, check_kept_although_counted, check_worst_moment

import shimmed
from reports import Report
from shimmed import program

KIB, MIB = 1 << 10, 1 << 20
BUDGET = 256 * MIB


def names_in(report):
    return lambda group: [name for name, _ in report.functions(group)]


def checkerboard(run_shimmed, piece_bytes, pattern, *more):
    run = run_shimmed([program("checkerboard"), str(piece_bytes), pattern, str(BUDGET), *more])
    assert run.returncode == 0, run.stderr
    row = check_checkerboard(run.report, run.last_line, piece_bytes)
    return run.report, row, run.last_line


# Sizes of the driver's own table of size classes, and odd sizes.
@pytest.mark.parametrize("pattern", ["half", "most", "none"])
@pytest.mark.parametrize(
    "piece_bytes",
    [4 * KIB, 64 * KIB, 256 * KIB, MIB, 3 * MIB // 2, 2 * MIB, 3 * MIB, 64 * MIB,
     5000, 33 * KIB + 1, 700 * KIB, MIB + 1],
)  # fmt: skip
def test_locked_bytes_are_those_freed_and_not_given_back(run_shimmed, piece_bytes, pattern):
    checkerboard(run_shimmed, piece_bytes, pattern)


def test_threads_share_slabs(run_shimmed):
    checkerboard(run_shimmed, 48 * KIB, "most", "4")


@pytest.mark.parametrize("piece_bytes", [4 * KIB, 64 * KIB, MIB, 33 * KIB + 1])
@pytest.mark.parametrize("threads", ["1", "4"])
def test_the_worst_moment_is_reported_when_all_is_freed_at_the_end(
    run_shimmed, cuwarden, piece_bytes, threads
):
    command = [program("checkerboard"), str(piece_bytes), "half", str(BUDGET), threads, "gone"]
    run = run_shimmed(command, {"CUWARDEN_SIM_MEMORY": "2GiB"})
    assert run.returncode == 0, run.stderr
    check_worst_moment(run.report, run.last_line, piece_bytes, names_in(run.report), int(threads))
    text = cuwarden("report", run.report.path).stdout
    _, _, worst = text.partition("FRAGMENTATION AT ITS WORST (GPU 0)")
    assert "was locked by" in worst and "fill" in worst


def test_the_worst_moment_survives_a_kill(workspace):
    command = [program("checkerboard"), str(64 * KIB), "half", str(BUDGET), "1", "killed"]
    run = workspace.run(command)
    assert run.returncode == -signal.SIGKILL
    assert shimmed.cuwarden(workspace, "recover", workspace.ledger).returncode == 0
    report = shimmed.only_report(workspace)
    check_worst_moment(report, run.last_line, 64 * KIB, names_in(report))


def test_a_worst_moment_at_the_end_is_said_once(run_shimmed, cuwarden):
    report, row, _ = checkerboard(run_shimmed, 64 * KIB, "half")
    (worst,) = report["worst_fragmentation"]
    assert worst["slab_locked_bytes"] == row["slab_locked_bytes"]
    assert worst["slab_count"] == row["slab_count"]
    assert len(report["worst_slab_map"]) == len(report["slab_map"])
    text = cuwarden("report", report.path).stdout
    assert "FRAGMENTATION" in text and "AT ITS WORST" not in text


def test_classes_and_the_map_add_up(run_shimmed):
    report, row, facts = checkerboard(run_shimmed, 64 * KIB, "most")
    (size_class,) = report["slab_classes"]
    assert size_class["class_bytes"] == 64 * KIB
    assert size_class["slab_count"] == row["slab_count"] == len(report["slab_map"])
    assert size_class["live_count"] == facts["live_count"]
    assert size_class["live_bytes"] == facts["live_bytes"]
    assert sum(slab["live"] for slab in report["slab_map"]) == facts["live_count"]
    assert {slab["slots"] for slab in report["slab_map"]} == {32}
    assert len({slab["address"] for slab in report["slab_map"]}) == row["slab_count"]
    assert row["step_bytes"] == 512 and row["largest_piece_bytes"] == 64 * KIB


@pytest.mark.parametrize("piece_bytes", [5000, 700 * KIB])
def test_no_slab_has_more_pieces_than_slots(run_shimmed, piece_bytes):
    report, _, _ = checkerboard(run_shimmed, piece_bytes, "none")
    assert all(0 < slab["live"] <= slab["slots"] for slab in report["slab_map"])


def test_the_stack_that_keeps_slabs_is_named(run_shimmed, cuwarden):
    report, row, facts = checkerboard(run_shimmed, 64 * KIB, "most")
    (holder,) = report["slab_holders"]
    assert "fill" in report.functions(holder)[0][0]
    assert holder["count"] == facts["live_count"] and holder["bytes"] == facts["live_bytes"]
    assert holder["locked_bytes"] <= row["slab_locked_bytes"]
    assert holder["locked_bytes"] > 0.99 * row["slab_locked_bytes"]
    text = cuwarden("report", report.path).stdout
    assert "slabs of 2.0 MiB. Only small requests" in text
    assert "fill" in text[text.index("Only small requests") :]


@pytest.mark.parametrize("threads", ["1", "4"])
def test_each_slab_lists_the_stacks_of_its_pieces(run_shimmed, threads):
    report, _, _ = checkerboard(run_shimmed, 64 * KIB, "most", threads)
    holders = {holder["stack"] for holder in report["slab_holders"]}
    assert holders
    for slab in report["slab_map"]:
        assert slab["stacks"] and set(slab["stacks"]) <= holders
        for stack in slab["stacks"]:
            assert report.functions({"stack": stack})[0][0] == "fill"
    assert {stack for slab in report["slab_map"] for stack in slab["stacks"]} == holders


def test_rounding_is_told_apart_from_slabs(run_shimmed, cuwarden):
    report, row, facts = checkerboard(run_shimmed, 3 * MIB, "none")
    assert row["rounding_bytes"] == facts["live_count"] * MIB
    assert "lost to rounding" in cuwarden("report", report.path).stdout


def test_a_program_without_waste_gets_no_line_about_waste(run_shimmed, cuwarden):
    report, row, _ = checkerboard(run_shimmed, 2 * MIB, "half")
    assert row["slab_locked_bytes"] == row["rounding_bytes"] == 0
    assert "FRAGMENTATION" not in cuwarden("report", report.path).stdout
    assert report["slab_map"] == report["slab_classes"] == report["slab_holders"] == []


# --- pools

ALL = str((1 << 64) - 1)


@pytest.mark.parametrize("mib", ["8", "64", "200"])
def test_memory_that_memory_pools_keep_is_in_the_account(run_both, cuwarden, mib):
    run = run_both([program("idle_pools"), ALL, mib])
    facts = run.last_line
    assert facts["reserved_bytes"] - facts["used_bytes"] >= int(mib) * MIB
    check_idle_pools(run.report, facts)
    assert "idle in pools" in cuwarden("report", run.report.path).stdout


def test_memory_that_a_pool_keeps_is_in_the_account_although_the_driver_counts_it_as_used(run_both):
    run = run_both([program("idle_pools"), ALL, "64", "cudaFree"])
    facts = run.last_line
    check_kept_although_counted(run.report, facts)


def test_memory_that_a_graph_keeps_for_its_next_launch_is_in_the_account(run_both):
    run = run_both([program("idle_pools"), ALL, "64", "graph"])
    facts = run.last_line
    assert facts["reserved_bytes"] - facts["used_bytes"] >= 64 * MIB
    accounts = {row["item"]: row["bytes"] for row in run.report["accounts"]}
    assert accounts["mempool_idle"] == facts["reserved_bytes"] - facts["used_bytes"]


def test_memory_pools_that_keep_nothing_are_not_in_the_account(run_both):
    run = run_both([program("idle_pools"), "0", "64"])
    assert run.last_line["reserved_bytes"] >= run.last_line["used_bytes"]
    accounts = {row["item"]: row["bytes"] for row in run.report["accounts"]}
    idle = run.last_line["reserved_bytes"] - run.last_line["used_bytes"]
    assert accounts.get("mempool_idle", 0) == idle


def test_memory_pools_idle_bytes_are_unknown_if_the_driver_does_not_tell_them(run_shimmed):
    env = {"CUWARDEN_SIM_FAIL": "cuDeviceGetGraphMemAttribute:*:801"}
    run = run_shimmed([program("idle_pools"), ALL, "64"], env)
    assert run.returncode == 0, run.stderr
    assert "mempool_idle" not in {row["item"] for row in run.report["accounts"]}
    assert run.report["fragmentation"] == []
    (device,) = run.report["devices"]
    assert sum(row["bytes"] for row in run.report["accounts"]) == device["used_bytes"]


# --- reports that the process did not write itself


def test_a_killed_processs_row_says_when_the_device_was_read(workspace, cuwarden):
    run = workspace.run([program("dying"), "kill"])
    (ledger,) = run.ledgers
    assert cuwarden("recover", ledger).returncode == 0
    (path,) = workspace.reports.iterdir()
    report = Report.read(path)
    ats = {row["device"]: row["at"] for row in report["devices"]}
    assert report["fragmentation"], "it held linear memory"
    for row in report["fragmentation"]:
        assert row["at"] == ats[row["device"]] != "exit"


def test_a_report_of_an_earlier_version_is_shown(run_shimmed, cuwarden, tmp_path):
    report, row, _ = checkerboard(run_shimmed, 64 * KIB, "most")
    older = json.loads(report.path.read_text())
    for name in ("page_bytes", "step_bytes", "largest_piece_bytes", "excess_bytes"):
        for fragmentation in older["fragmentation"]:
            del fragmentation[name]
    del older["slab_holders"]
    path = tmp_path / "older.json"
    path.write_text(json.dumps(older))
    shown = cuwarden("report", path)
    assert shown.returncode == 0, shown.stderr
    assert "Only small requests" in shown.stdout
