"""A program that uses the driver API only: by dlsym, by cuGetProcAddress, and with a default stream
per thread."""

import pytest

from preloaded import check_own_account, program
from report_tables import ON_DEVICE

WAYS = ["dlsym", "lookup", "lookup_per_thread"]


@pytest.mark.parametrize("way", WAYS)
def test_counts_and_bytes_of_each_kind_are_the_programs_own(workspace, way):
    run = workspace.run_both([program("driver_memory"), way])
    check_own_account(run)


@pytest.mark.alone
def test_live_bytes_are_what_the_device_lost(workspace):
    run = workspace.run([program("driver_memory"), "lookup"])
    live = run.report.live([kind for kind in ON_DEVICE if kind != "managed"])[1]
    # Managed memory may take 126 MiB of the device at its first use (measured on an H200).
    taken = run.figures["taken_bytes"] - run.kind_figures["managed"]["taken_bytes"]
    assert live <= taken <= live + (64 << 20), (live, run.stdout)
