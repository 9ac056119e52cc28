"""Triton: a kernel that is compiled while the program runs, by child processes, too."""

from framework_checks import made_in, needs, run_to_figures, run_to_natural_end

pytestmark = needs("torch", "triton")


def test_a_program_with_compiled_kernels_is_unchanged_and_its_memory_is_reported(place):
    cache = place.work / "triton"
    run = run_to_figures(place, "triton_kernel.py", env={"TRITON_CACHE_DIR": cache})
    assert any(line.endswith("equal True") for line in run.output)
    live = run.report.live(["device"], made_in(run.report, r"libc10_cuda\.so"))
    assert live == (run.figures["segments"], run.figures["reserved_bytes"])


def test_compiling_under_the_shim_leaves_one_whole_report(place):
    run = run_to_natural_end(
        place, "triton_kernel.py", env={"TRITON_CACHE_DIR": place.work / "triton"}
    )
    assert len(list(place.reports.iterdir())) == 1, sorted(place.reports.iterdir())
    assert any(line.endswith("equal True") for line in run.output)
