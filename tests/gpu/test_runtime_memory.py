"""Programs of the runtime API, built by nvcc with the static and with the shared libcudart."""

import pytest

from preloaded import check_own_account, program
from report_tables import ON_DEVICE

MIB = 1 << 20
BUILDS = ["runtime_memory_static", "runtime_memory_shared", "runtime_memory_per_thread"]


@pytest.mark.parametrize("build", BUILDS)
def test_counts_and_bytes_of_each_kind_are_the_programs_own(workspace, build):
    run = workspace.run_both([program(build)])
    check_own_account(run)


@pytest.mark.alone
@pytest.mark.parametrize("build", BUILDS[:2])
def test_live_bytes_are_what_the_device_lost(workspace, build):
    run = workspace.run([program(build)])
    live = run.report.live([kind for kind in ON_DEVICE if kind != "managed"])[1]
    taken = run.figures["taken_bytes"] - run.kind_figures["managed"]["taken_bytes"]
    # Managed memory may cost the device 128 MiB when it is first touched: with its context or only
    # then. Pools reserve 32 MiB at a time, and small requests a slab of 2 MiB.
    assert live <= taken <= live + 96 * MIB, (live, taken)
    (device,) = run.report["devices"]
    # The reading at the end of the process equals the program's last one, because nothing was freed
    # since.
    assert abs(device["used_bytes"] - run.figures["used_bytes"]) <= 16 * MIB
