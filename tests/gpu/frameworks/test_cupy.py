"""CuPy, with its pool and with stream-ordered memory: the report's live bytes equal CuPy's own
figures."""

from framework_checks import made_in, needs, run_to_figures, run_to_natural_end

pytestmark = needs("cupy")

POOL = r"cupy/cuda/memory"


def test_the_pools_chunks_are_the_reports_live_allocations(workspace):
    run = run_to_figures(workspace, "cupy_arrays.py")
    count, size = run.report.live(["device"], made_in(run.report, POOL, anywhere=True))
    assert count > 0
    assert size == run.figures["total_bytes"]


def test_the_async_pools_allocations_are_stream_ordered(workspace):
    run = run_to_figures(workspace, "cupy_arrays.py", "async")
    count, size = run.report.live(["stream_ordered"])
    used = run.figures["used_by_pool_bytes"]
    assert count > 0
    assert size <= used <= size + 4096 * count, (size, used)  # The driver's pool rounds sizes up.


def test_a_program_that_ends_by_itself_has_a_whole_report(workspace):
    run_to_natural_end(workspace, "cupy_arrays.py")
