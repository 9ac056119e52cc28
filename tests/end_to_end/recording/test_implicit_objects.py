"""Streams, modules and executable graphs: the device memory that the driver takes for them, by the
call stack that made them. The program itself reads the device before and after it makes them."""

import re

import pytest

from shimmed import DRIVEN, program

APIS = {
    "graphs": "cuGraphInstantiateWithFlags",
    "streams": "cuStreamCreate",
    "modules": "cuModuleLoadData",
}
COUNTS = {"graphs": 400, "streams": 1000, "modules": 50}


def account(report):
    rows = {row["item"]: row["bytes"] for row in report["accounts"] if row["incident"] is None}
    (device,) = report["devices"]
    assert sum(rows.values()) == device["used_bytes"]
    return rows, device["used_bytes"]


def made(run_both, kind, end):
    """Runs the program; in time that it drives if the times at which it makes objects matter."""
    is_timed = end in ("slowly", "early")
    command = [program("implicit_objects"), kind, 40 if is_timed else COUNTS[kind], end]
    run = run_both(command, **({"preload": DRIVEN} if is_timed else {}))
    assert run.returncode == 0, run.stderr
    groups = [
        row
        for row in run.report["implicit_groups"]
        if row["item"] == kind and "make" in [name for name, _ in run.report.functions(row)]
    ]
    return run, groups, run.last_line


@pytest.mark.parametrize("kind", APIS)
def test_objects_that_are_kept_have_their_number_and_bytes_at_the_stack_that_made_them(
    run_both, kind
):
    run, groups, found = made(run_both, kind, "kept")
    assert sum(row["bytes"] for row in groups) == pytest.approx(found["taken"], rel=0.05)
    (group,) = [row for row in groups if row["api"] == APIS[kind]]
    assert group["count"] == COUNTS[kind]
    assert group["released_count"] == 0
    rows, used = account(run.report)
    assert abs(rows["unexplained"]) <= used / 100


@pytest.mark.parametrize("kind", APIS)
def test_objects_that_are_destroyed_hold_no_bytes_but_those_that_the_driver_keeps(
    run_both, cuwarden, kind
):
    run, groups, found = made(run_both, kind, "destroyed")
    (group,) = [row for row in groups if row["api"] == APIS[kind]]
    assert (group["count"], group["bytes"]) == (0, 0)
    assert group["released_count"] == COUNTS[kind]
    # The driver keeps the memory of streams and graphs for later ones.
    kept = sum(row["bytes"] + row["kept_bytes"] for row in groups)
    assert kept == pytest.approx(found["left"], rel=0.05, abs=found["taken"] / 20)
    assert (found["left"] > found["taken"] / 2) == (kind != "modules")
    text = cuwarden("report", run.report.path).stdout
    assert ("for later ones" in text) == (kind != "modules")
    rows, used = account(run.report)
    assert abs(rows["unexplained"]) <= used / 100


@pytest.mark.parametrize("kind", APIS)
def test_the_objects_that_are_left_when_every_other_one_is_destroyed_keep_their_bytes(run_both, kind):
    run, groups, found = made(run_both, kind, "half")
    (group,) = [row for row in groups if row["api"] == APIS[kind]]
    assert group["count"] == group["released_count"] == COUNTS[kind] / 2
    kept = sum(row["bytes"] + row["kept_bytes"] for row in groups)
    assert kept == pytest.approx(found["left"], rel=0.05)
    rows, used = account(run.report)
    assert abs(rows["unexplained"]) <= used / 100


@pytest.mark.parametrize("kind", APIS)
def test_a_number_of_objects_that_grows_is_a_leak(run_both, cuwarden, kind):
    run, groups, found = made(run_both, kind, "slowly")
    (leak,) = [row for row in run.report["leak_groups"] if row["api"] == APIS[kind]]
    assert leak["growth"] == "growing"
    assert leak["count"] == 40
    text = cuwarden("report", run.report.path).stdout
    name = {"graphs": "executable graphs", "streams": "streams", "modules": "modules"}[kind]
    assert f"in 40 {name}" in text
    assert "growing" in text
    failing = cuwarden("report", "--fail-on-leak", run.report.path)
    assert failing.returncode == 1


@pytest.mark.parametrize("kind", APIS)
def test_objects_that_were_made_at_once_are_no_leak(run_both, cuwarden, kind):
    run, groups, _ = made(run_both, kind, "early")
    (group,) = [row for row in groups if row["api"] == APIS[kind]]
    assert (group["count"], group["growth"]) == (40, "burst")
    assert run.report["leak_groups"] == []
    assert cuwarden("report", "--fail-on-leak", run.report.path).returncode == 0


@pytest.mark.parametrize(("end", "reports"), [("early", 0), ("slowly", 1)])
def test_a_report_for_leaks_alone_is_written_for_objects_only_if_their_number_grows(
    workspace, end, reports
):
    command = [program("implicit_objects"), "streams", 40, end]
    run = workspace.run(command, {"CUWARDEN_REPORT_IF": "leak"}, preload=DRIVEN)
    assert len(run.reports) == reports


def test_objects_whose_calls_overlap_share_their_bytes_and_name_each_others_calls(run_both, cuwarden):
    run = run_both([program("overlapping_makers"), 30, "pipe"])
    assert run.returncode == 0, run.stderr
    stack_of = {}
    groups = [row for row in run.report["implicit_groups"] if row["item"] in ("modules", "streams")]
    for row in groups:
        functions = {name for name, _ in run.report.functions(row)} & {"load_code", "open_stream"}
        for name in functions:
            stack_of[name] = row["stack"]
    sharing = [row for row in groups if row["shared_with"]]
    assert {row["stack"] for row in sharing} == set(stack_of.values())
    for row in sharing:
        assert row["shared"] and row["uncertain"]
        assert set(row["shared_with"]) == set(stack_of.values()) - {row["stack"]}
    taken = sum(row["bytes"] for row in groups)
    assert taken == pytest.approx(run.last_line["taken"], rel=0.05)
    rows, used = account(run.report)
    assert abs(rows["unexplained"]) <= used / 100
    text = cuwarden("report", run.report.path).stdout
    assert re.search(r"shared with a call at \S+ in open_stream\n", text)
    assert re.search(r"shared with a call at \S+ in load_code\n", text)
