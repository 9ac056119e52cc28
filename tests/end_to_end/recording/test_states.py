"""States of CUDA that are easily misread: the records still agree with the program's own account."""

import json

import pytest

from shimmed import DRIVEN, program


def check_account(run):
    account = json.loads(next(line for line in run.stdout.splitlines() if line[0] == "{"))
    totals = {kind: row for kind, row in run.report.totals().items() if row["allocations"] > 0}
    assert sorted(totals) == sorted(account["totals"])
    for kind, known in account["totals"].items():
        assert {name: totals[kind][name] for name in known} == known, kind


@pytest.mark.parametrize("state", ["failing_ends_of_captures", "capture_goes_on"])
def test_a_captured_call_is_no_allocation_and_an_uncaptured_one_is(run_both, state):
    run = run_both([program("states"), state], preload=DRIVEN)
    assert run.returncode == 0, run.stderr
    check_account(run)


def test_the_device_is_read_again_after_a_capture_that_was_never_ended(run_both):
    run = run_both([program("states"), "abandoned_capture"], preload=DRIVEN)
    assert run.returncode == 0, run.stderr
    (device,) = run.report["devices"]
    assert device["at"] == "last_call"
    assert device["used_bytes"] == run.last_line["used"]


def test_a_device_without_a_current_context_is_in_the_report_and_read_where_it_can_be(run_both):
    run = run_both([program("states"), "devices_without_context"], {"CUWARDEN_SIM_DEVICES": "4"})
    assert run.returncode == 0, run.stderr
    check_account(run)
    devices = {device["device"]: device for device in run.report["devices"]}
    assert sorted(devices) == [0, 1, 2]
    assert all(device["uuid"] for device in devices.values())
    assert devices[2]["at"] == "exit" and devices[2]["used_bytes"] > 0
    assert devices[1]["at"] is None  # the device has no context, and none is made in order to read it


@pytest.mark.parametrize("state", ["context_in_destructor", "reset_in_destructor"])
def test_memory_released_with_its_context_in_a_static_destructor_is_no_leak(run_both, state):
    run = run_both([program("states"), state])
    assert run.stdout.splitlines()[-1].endswith(": 4")  # CUDA_ERROR_DEINITIALIZED
    check_account(run)
    assert run.report["leaks"]["count"] == 0
    assert run.report["leaks"]["released_by_context_bytes"] == 1 << 20
