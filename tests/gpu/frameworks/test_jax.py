"""JAX: XLA's allocator takes memory through the driver's symbols."""

import pytest

from framework_checks import needs, run_to_figures, run_to_natural_end

pytestmark = needs("jax")

DETERMINISTIC = {"XLA_FLAGS": "--xla_gpu_deterministic_ops=true --xla_gpu_autotune_level=0"}
ON_DEMAND = {**DETERMINISTIC, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
# A share of the device is taken at once, as by default, where it is three quarters.
AT_ONCE = {**DETERMINISTIC, "XLA_PYTHON_CLIENT_MEM_FRACTION": "0.1"}


@pytest.mark.parametrize("env", [ON_DEMAND, AT_ONCE], ids=["on_demand", "at_once"])
def test_the_allocators_regions_are_among_the_reports_live_allocations(workspace, env):
    run = run_to_figures(workspace, "jax_step.py", env=env)
    assert "platform gpu" in run.output
    # Beside the pool's memory, XLA's libraries (cuBLAS, cuDNN) take workspaces of their own.
    live = run.report.live(
        ["device", "vmm", "stream_ordered"],
        lambda group: run.report.calls_through(group, "tsl::BFCAllocator::Extend"),
    )[1]
    assert live == run.figures["pool_bytes"], run.report.describe()
    assert run.figures["bytes_in_use"] <= live


def test_a_program_that_ends_by_itself_has_a_whole_report(workspace):
    run_to_natural_end(workspace, "jax_step.py", env=ON_DEMAND)
