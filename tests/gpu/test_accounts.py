"""The account of a device: for a process that has the device to itself, all but a hundredth of its
bytes are explained."""

import pytest

from framework_checks import TIMEOUT_S, command, needs
from preloaded import SIMULATED, program

pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(SIMULATED, reason="the libraries need the genuine driver"),
]

DETERMINISTIC = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}


def check_explained(run):
    assert run.returncode == 0, run.stderr[-3000:]
    devices = run.report["devices"]
    assert devices
    for device in devices:
        rows = run.report.account(device)
        share = rows["unexplained"] / device["used_bytes"]
        print(f"GPU {device['device']}: unexplained {100 * share:.2f} % of {device['used_bytes']}")
        print("  ", rows)
        assert device["at"] == "exit"
        assert abs(share) <= 0.01, rows


@pytest.mark.parametrize("name", ["cublas_gemm", "cufft_plan", "nccl_all_reduce"])
def test_memory_of_nvidias_libraries_is_explained(workspace, name):
    check_explained(workspace.run([program(name)]))


@needs("torch")
@pytest.mark.parametrize(
    "configuration", ["", "expandable_segments:True", "backend:cudaMallocAsync"]
)
@pytest.mark.parametrize("script", ["torch_training.py", "torch_graphs.py"])
def test_memory_of_pytorch_is_explained(workspace, script, configuration):
    env = {**DETERMINISTIC, "PYTORCH_CUDA_ALLOC_CONF": configuration} if configuration else DETERMINISTIC
    check_explained(workspace.run(command(script), env, timeout_s=TIMEOUT_S))


@needs("torch")
@pytest.mark.parametrize("library", ["cudnn", "cusolver", "cusparse", "cublas", "cufft", "compiled"])
def test_memory_of_libraries_beneath_pytorch_is_explained(workspace, library):
    run = workspace.run(command("torch_libraries.py", library), timeout_s=TIMEOUT_S)
    check_explained(run)


@needs("cupy")
@pytest.mark.parametrize("pool", [[], ["async"]])
def test_memory_of_cupy_is_explained(workspace, pool):
    check_explained(workspace.run(command("cupy_arrays.py", *pool), timeout_s=TIMEOUT_S))


@needs("jax")
def test_memory_of_jax_is_explained(workspace):
    env = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "XLA_FLAGS": "--xla_gpu_autotune_level=0"}
    check_explained(workspace.run(command("jax_step.py"), env, timeout_s=TIMEOUT_S))


@needs("torch", "triton")
@pytest.mark.parametrize("script", ["triton_kernel.py", "triton_autotuned.py"])
def test_memory_of_triton_is_explained(workspace, script):
    env = {"TRITON_CACHE_DIR": workspace.work / "triton"}
    run = workspace.run(command(script), env, timeout_s=TIMEOUT_S)
    check_explained(run)
    assert not [line for line in run.output if line.endswith("False")], run.stdout


@needs("torch")
def test_memory_of_pytorch_with_forked_and_spawned_workers_is_explained(workspace):
    run = workspace.run(command("torch_workers.py"), timeout_s=TIMEOUT_S)
    check_explained(run)
