"""Programs of NVIDIA's libraries, which allocate by a cudart of their own.

Each leaks an object of its library, by a function whose name begins with planted_, and a buffer of
known size.
"""

import pytest

from preloaded import SIMULATED, check_covered, check_results, program
from report_tables import ON_DEVICE

pytestmark = pytest.mark.skipif(SIMULATED, reason="the libraries need the genuine driver")

PROGRAMS = {
    "cublas_gemm": "planted_handle",
    "cufft_plan": "planted_plan",
    "nccl_all_reduce": "planted_communicators",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_leaks_of_the_program_and_of_the_library_are_reported_with_their_stacks(workspace, name):
    run = workspace.run_both([program(name)])
    check_results(run)
    report = run.report
    for fact in run.last_line["leaked"]:
        report.check_leak(fact)
    # The totals hold the program's own allocations, leaked ones included.
    known = run.last_line["totals"]["device"]
    assert report.totals()["device"]["allocations"] >= known["allocations"]
    by_library = report.groups_of(PROGRAMS[name])
    if name == "nccl_all_reduce":  # NCCL allocates in threads of its own, one for each device.
        by_library = report.groups(where=lambda group: "libnccl" in report.first_module(group))
    assert sum(group["bytes"] for group in by_library) > 0, report.describe()
    for group in by_library:
        assert name.split("_")[0] in report.first_module(group), report.names(group)
    if name == "cufft_plan":
        work_area = run.figures["work_area_bytes"]
        assert sum(g["bytes"] for g in by_library if g["kind"] == "device") >= work_area
    check_covered(report)


@pytest.mark.alone
@pytest.mark.parametrize("name", PROGRAMS)
def test_live_bytes_are_no_more_than_the_device_lost(workspace, name):
    run = workspace.run([program(name)])
    live = run.report.live([kind for kind in ON_DEVICE if kind != "managed"])[1]
    print(f"{name}: live {live}, taken {run.figures['taken_bytes']}")
    assert 0 < live <= run.figures["taken_bytes"], run.report.describe()
