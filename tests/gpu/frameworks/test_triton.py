"""Triton: a kernel that is compiled while the program runs, by child processes, too."""

from framework_checks import made_in, needs, run_to_figures, run_to_natural_end

pytestmark = needs("torch", "triton")


def test_a_program_with_compiled_kernels_is_unchanged_and_its_memory_is_reported(workspace):
    cache = workspace.work / "triton"
    run = run_to_figures(workspace, "triton_kernel.py", env={"TRITON_CACHE_DIR": cache})
    assert any(line.endswith("equal True") for line in run.output)
    live = run.report.live(["device"], made_in(run.report, r"libc10_cuda\.so"))
    assert live == (run.figures["segments"], run.figures["reserved_bytes"])


def test_compiling_under_the_shim_leaves_one_whole_report(workspace):
    run = run_to_natural_end(
        workspace, "triton_kernel.py", env={"TRITON_CACHE_DIR": workspace.work / "triton"}
    )
    assert len(list(workspace.reports.iterdir())) == 1, sorted(workspace.reports.iterdir())
    assert any(line.endswith("equal True") for line in run.output)
