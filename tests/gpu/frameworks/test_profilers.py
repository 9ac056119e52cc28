"""Profilers and compute-sanitizer beside the shim: CUPTI has room for one subscriber, which the
shim leaves to them."""

import shutil

import pytest

from framework_checks import check_planted, command, made_in, needs, run_to_figures
from preloaded import SIMULATED, check_covered, program

pytestmark = pytest.mark.skipif(SIMULATED, reason="CUPTI needs the genuine driver")


@needs()
def test_the_one_cupti_subscriber_is_the_programs(workspace):
    run = workspace.run_both(command("cupti_subscriber.py", "--end", "_exit"))
    if run.output == ["no CUPTI"]:
        pytest.skip("no libcupti")
    assert "subscribe 0" in run.output and "enable 0" in run.output
    assert "cuMemFree_v2 10" in run.output
    check_planted(run)
    check_covered(run.report)


@needs("torch")
def test_pytorchs_profiler_sees_the_same_calls_as_without_the_shim(workspace):
    run = run_to_figures(workspace, "torch_profiled.py")
    assert "kernels: some" in run.output
    assert [line for line in run.output if line.startswith("cudaMalloc ")], run.output
    live = run.report.live(["device"], made_in(run.report, r"libc10_cuda\.so"))
    assert live[1] == run.figures["reserved_bytes"]


def test_compute_sanitizer_works_as_without_the_shim(workspace):
    sanitizer = shutil.which("compute-sanitizer") or shutil.which(
        "compute-sanitizer", path="/usr/local/cuda/bin"
    )
    if sanitizer is None:
        pytest.skip("no compute-sanitizer")
    whole = [sanitizer, "--tool", "memcheck", program("runtime_memory_static")]
    bare = workspace.run(whole, shim=False)
    if bare.returncode != 0:
        pytest.skip(f"compute-sanitizer does not work here: {bare.stdout[-300:]}")
    run = workspace.run(whole)
    assert (run.returncode, run.output) == (bare.returncode, bare.output), run.stderr[-3000:]
    # The report is of the program, which compute-sanitizer started.
    assert len(list(workspace.reports.glob("runtime_memory_static-*.json"))) == 1
