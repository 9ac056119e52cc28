"""Memory of graphs, and memory that is live when its context ends."""

import pytest

from preloaded import SIMULATED, check_covered, check_own_account, check_results, program

CONTEXT_END = "context_end_shared" if SIMULATED else "context_end"


@pytest.mark.parametrize("build", ["graph_memory", "graph_memory_shared"])
def test_graph_memory_is_live_from_its_launch_to_its_free(workspace, build):
    run = workspace.run_both([program(build)])
    check_own_account(run)


@pytest.mark.alone
@pytest.mark.parametrize("kind", ["device", "async", "pool", "vmm", "managed", "pinned", "array"])
@pytest.mark.parametrize("end", ["reset", "destroy"])
def test_the_report_agrees_with_the_device_on_memory_of_an_ended_context(workspace, end, kind):
    """Memory counts as released, freed afterwards or live, as cuMemGetInfo shows after the
    context's end."""
    run = workspace.run_both([program(CONTEXT_END), end, kind])
    check_results(run)
    fact = run.last_line
    size = fact["bytes"]
    print(f"{end} {kind}: {run.figures}, freed afterwards: {fact['freed_afterwards']}")
    released = run.report["leaks"]["released_by_context_bytes"]
    live = run.report.live()[1]
    if fact["freed_afterwards"] == "cudaSuccess":  # The driver still knew the memory.
        assert (released, live) == (0, 0), run.report.describe()
    # cuMemGetInfo does not count such memory: the refused free decides.
    elif kind in ("managed", "pinned"):
        assert (released, live) == (size, 0), run.report.describe()
    elif run.figures["left_bytes"] > size // 2:
        run.report.check_leak(fact)
        assert (released, live) == (0, size), run.report.describe()
    else:
        run.report.check_leak(fact, released_by="context")
        assert (released, live) == (size, 0), run.report.describe()
    check_covered(run.report)
