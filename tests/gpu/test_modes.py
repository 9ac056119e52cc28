"""Real programs give the same results in all modes: bare, and with CUWARDEN_POOL off, rescue, auto
and on.

The runs of a test go side by side, because none of them looks at the whole device.
"""

import pytest

import preloaded
from framework_checks import TIMEOUT_S, command, needs
from report_tables import Report

MIB = 1 << 20
MODES = ["off", "rescue", "auto", "on"]
DETERMINISTIC = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}

genuine = pytest.mark.skipif(preloaded.SIMULATED, reason="the libraries need the genuine driver")


def in_all_modes(workspace, program, env=None):
    """Runs the program in all modes. Returns the bare run, and the others by mode."""
    processes = {
        mode: workspace.start(
            program,
            # Each mode compiles for itself.
            {**(env or {}), "CUWARDEN_POOL": mode, "TRITON_CACHE_DIR": workspace.work / mode},
            shim=mode != "bare",
        )
        for mode in ["bare", *MODES]
    }
    try:
        runs = {mode: workspace.finish(process, mode, TIMEOUT_S) for mode, process in processes.items()}
    finally:
        for process in processes.values():
            if process.poll() is None:
                process.kill()
                process.communicate(timeout=preloaded.PATIENCE_S)
    bare = runs.pop("bare")
    assert bare.returncode == 0, f"bare: status {bare.returncode}\n{bare.stderr[-3000:]}"
    return bare, runs


def alike_in_all_modes(workspace, program, env=None):
    """Runs the program in all modes, and expects the output of the bare run in each. Returns the
    runs under the shim, by mode."""
    bare, runs = in_all_modes(workspace, program, env)
    preloaded.check_results(bare)
    for mode, run in runs.items():
        assert run.output == bare.output, mode
        assert (run.returncode, run.said) == (0, []), mode
        assert run.report["pool"]["mode"] == mode
        preloaded.check_covered(run.report)
        print(mode, run.report["pool"])
        if mode in ("off", "rescue"):
            assert run.report["pool"]["served_count"] == 0
    return runs


# With caching, PyTorch asks for multiples of 2 MiB. Without it, and with the async backend, each
# tensor is a call of its own.
@needs("torch")
@pytest.mark.parametrize(
    "allocator",
    [
        {},
        {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"},
        {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"},
    ],
    ids=["caching", "async", "uncached"],
)
def test_a_training_has_the_same_loss_at_every_step(workspace, allocator):
    runs = alike_in_all_modes(workspace, command("torch_training.py"), {**DETERMINISTIC, **allocator})
    losses = [line for line in runs["on"].output if line.startswith("step ")]
    assert len(set(losses)) == 12 and "nan" not in "".join(losses), losses
    if "PYTORCH_NO_CUDA_MEMORY_CACHING" in allocator:
        assert runs["on"].report["pool"]["served_count"] > 200


FRAMEWORKS = {
    "torch_graphs": (["torch"], ["torch_graphs.py"]),
    "torch_and_cupy": (["torch", "cupy"], ["torch_and_cupy.py"]),
    "cupy": (["cupy"], ["cupy_arrays.py"]),
    "cupy_async": (["cupy"], ["cupy_arrays.py", "async"]),
    "jax": (["jax"], ["jax_step.py"]),
    "triton": (["torch", "triton"], ["triton_kernel.py"]),
}
OF_JAX = {
    "XLA_FLAGS": "--xla_gpu_deterministic_ops=true --xla_gpu_autotune_level=0",
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=needs(*modules)) for name, (modules, _) in FRAMEWORKS.items()]
)
def test_a_frameworks_program_has_the_same_results(workspace, name):
    runs = alike_in_all_modes(workspace, command(*FRAMEWORKS[name][1]), {**DETERMINISTIC, **OF_JAX})
    assert runs["on"].report["pool"]["served_count"] > 0


@genuine
@pytest.mark.parametrize(
    "name", ["cublas_gemm", "cufft_plan", pytest.param("nccl_all_reduce", marks=pytest.mark.gpus(2))]
)
def test_a_librarys_program_has_the_same_results(workspace, name):
    runs = alike_in_all_modes(workspace, [preloaded.program(name)])
    assert runs["on"].report["pool"]["served_count"] > 0


@needs("torch")
def test_two_processes_share_pytorchs_tensors(workspace):
    runs = alike_in_all_modes(workspace, command("torch_shared.py"))
    assert [line for line in runs["on"].output if line.endswith("them: True")] == runs["on"].output[2:]
    assert not any(run.report["pool"]["ipc_refused"] for run in runs.values())
    reports = [Report.read(path) for path in workspace.reports.iterdir()]
    others = [report for report in reports if "imported" in report.totals()]
    assert len(reports) == 2 * len(MODES) and len(others) == len(MODES)
    for report in others:
        preloaded.check_covered(report)


@pytest.mark.parametrize("size", [1000, 700_001, 3 * MIB, 20 * MIB])
def test_another_process_opens_what_the_driver_served(workspace, size):
    program = preloaded.BUILD / "tests/end_to_end/programs/shared_pointer"
    bare, runs = in_all_modes(workspace, [program, size])
    assert "the other process: 0" in bare.output and "its answer is here: 1" in bare.output
    for mode, run in runs.items():
        served = mode == "on" and size % (2 * MIB) != 0
        pool = run.report["pool"]
        assert (pool["served_count"], pool["ipc_refused"]) == (int(served), served)
        assert run.returncode == 0
        preloaded.check_covered(run.report)
        if served:
            # The driver's own answer for memory of that kind, and a message that tells the reason.
            refusal = bare.last_line["refusal"]
            assert run.output[:2] == [f"handle: {refusal}, left behind: {refusal}"] * 2
            assert run.output[2:] == bare.output[-2:]
            (line,) = run.said
            assert "no other process can open it" in line
        else:
            assert (run.output, run.said) == (bare.output, [])
