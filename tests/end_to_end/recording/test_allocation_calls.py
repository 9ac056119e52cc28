"""Allocation calls of every kind: the report's totals and leaks equal the program's own account."""

import sys

import pytest

from shimmed import program

CALLS = [
    "linear",
    "pinned",
    "registered",
    "managed",
    "arrays",
    "stream_ordered",
    "pools",
    "virtual_memory",
    "imported_handle",
    "imported_external_memory",
    "graph_never_launched",
    "graph_launched",
    "graph_freed",
    "graph_address_reused",
    "graph_freed_by_the_next_launch",
    "captured",
    "contexts",
]


def check_account(run, calls):
    account = run.last_line
    totals = run.report.totals()
    for kind, known in account["totals"].items():
        assert kind in totals, f"nothing of kind {kind}; there is {sorted(totals)}"
        assert {name: totals[kind][name] for name in known} == known, kind
        assert totals[kind]["failures"] == 0
    for kind in totals.keys() - account["totals"].keys():
        assert totals[kind]["live_count"] == 0, kind
        assert totals[kind]["allocations"] == 0, kind
    for fact in account["leaked"]:
        groups = run.report.groups_of(
            fact["function"], fact["line"], api=fact["api"], kind=fact["kind"]
        )
        assert sum(group["count"] for group in groups) == fact["count"], (
            f"{fact}; there are:\n{run.report.describe_leaks()}"
        )
        assert sum(group["bytes"] for group in groups) == fact["bytes"], fact
    live = sum(total["live_count"] for total in account["totals"].values())
    assert run.report["leaks"]["count"] == live, run.report.describe_leaks()


@pytest.mark.parametrize("calls", CALLS)
def test_the_totals_and_leaks_of_allocation_calls_equal_the_programs_account(run_both, calls):
    run = run_both([program("allocation_calls"), calls])
    assert run.returncode == 0, run.stderr
    assert run.said == []
    check_account(run, calls)
    assert run.report["coverage"]["complete"] is True, run.report["coverage"]


def test_a_captured_allocation_lies_on_its_streams_device_before_it_is_launched(run_shimmed):
    run = run_shimmed([program("allocation_calls"), "captured"], {"CUWARDEN_SIM_DEVICES": "3"})
    assert {row["device"] for row in run.report["totals"] if row["kind"] == "graph"} == {0}


def test_memory_opened_from_another_process_is_imported_there_and_device_memory_here(run_shimmed):
    run = run_shimmed([program("allocation_calls"), "imported_ipc"])
    assert run.returncode == 0, run.stderr
    assert len(run.reports) == 2
    opener, owner = sorted(run.reports, key=lambda report: "device" in report.totals())
    account = run.last_line["totals"]["device"]
    assert {name: owner.totals()["device"][name] for name in account} == account
    assert owner["leaks"]["count"] == 0
    imported = opener.totals()["imported"]
    assert (imported["allocations"], imported["frees"], imported["live_count"]) == (3, 2, 1)
    assert opener["coverage"]["complete"] is True, opener["coverage"]
    (group,) = opener.groups_of("opened_ipc", kind="imported")
    assert group["api"] == "cudaIpcOpenMemHandle"
    assert group["bytes"] == 2 << 20


def test_the_peak_of_the_sum_is_held_by_the_stacks_that_made_it(run_shimmed):
    run = run_shimmed([program("allocation_calls"), "linear"])
    holders = [row for row in run.report["peak_holders"] if row["kind"] == "device"]
    peak = run.report.totals()["device"]["peak_bytes"]
    assert 0.99 * peak <= sum(row["bytes"] for row in holders) <= peak


def test_a_failed_request_counts_as_a_failure_and_nothing_else(run_both):
    run = run_both([program("answers"), "exhaust"], {"CUWARDEN_SIM_MEMORY": "2GiB"})
    totals = run.report.totals()["device"]
    account = run.last_line["totals"]["device"]
    assert totals["failures"] == 2
    assert {name: totals[name] for name in account} == account


def test_every_device_has_totals_of_its_own(run_shimmed):
    code = (
        "import ctypes\n"
        "rt = ctypes.CDLL('libcudart.so.13')\n"
        "p = ctypes.c_void_p()\n"
        "for device in (0, 1, 1, 2):\n"
        "    assert rt.cudaSetDevice(device) == 0\n"
        "    assert rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(1000 * (device + 1))) == 0\n"
    )
    run = run_shimmed([sys.executable, "-c", code], {"CUWARDEN_SIM_DEVICES": "3"})
    assert run.returncode == 0, run.stderr
    live = {
        row["device"]: (row["live_count"], row["live_bytes"])
        for row in run.report["totals"]
        if row["kind"] == "device"
    }
    assert live == {0: (1, 1000), 1: (2, 4000), 2: (1, 3000)}
