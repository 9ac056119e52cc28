"""States that are easily misread: what was recorded is still what the program did."""

import pytest

from shimmed import program


def check_account(run):
    account = run.last_line
    totals = {kind: row for kind, row in run.report.totals().items() if row["allocations"] > 0}
    assert sorted(totals) == sorted(account["totals"])
    for kind, known in account["totals"].items():
        assert {name: totals[kind][name] for name in known} == known, kind


@pytest.mark.parametrize("state", ["failing_ends_of_captures", "capture_goes_on"])
def test_what_is_captured_is_no_allocation_and_what_is_not_is_one(run_both, state):
    run = run_both([program("states"), state])
    assert run.returncode == 0, run.stderr
    check_account(run)


def test_after_a_capture_that_nobody_ended_the_device_is_read_again(run_both):
    run = run_both([program("states"), "abandoned_capture"])
    assert run.returncode == 0, run.stderr
    (device,) = run.report["devices"]
    assert device["at"] == "last_call"
    assert device["used_bytes"] == run.last_line["used"]
