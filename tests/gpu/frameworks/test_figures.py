"""Figures of frameworks in the report equal those that the frameworks print themselves."""

import sys

import pytest

from framework_checks import TIMEOUT_S, command, needs
from preloaded import BUILD, SIMULATED, SOURCE
from report_tables import Report

pytestmark = [
    pytest.mark.skipif(SIMULATED, reason="the frameworks need the genuine driver"),
    needs("torch"),
]

GROWING = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
ON_DEMAND = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
GROWN_SHAPES = SOURCE / "samples" / "python" / "grown_shapes.py"


def check_figures(run):
    told = run.figures
    rows = [
        row
        for row in run.report["frameworks"]
        if row["framework"] == told["framework"] and row["incident"] is None and row["pool"] is None
        and row["device"] == 0
    ]  # fmt: skip
    print(told, rows)
    (row,) = rows
    assert row["source"] == "framework"
    different = {
        name: (row[name], value) for name, value in told.items() if name in row and row[name] != value
    }
    assert different == {}


@pytest.mark.parametrize("env", [{}, GROWING], ids=["segments", "growing_segments"])
@pytest.mark.parametrize("tensors", ["on", "off"])
def test_pytorch(workspace, env, tensors):
    env = {**env, "CUWARDEN_TENSORS": tensors}
    run = workspace.run(command("own_figures.py", "torch", "--end", "_exit"), env, timeout_s=TIMEOUT_S)
    assert run.returncode == 0, run.stderr[-3000:]
    if tensors == "off":
        for name in ("hole_count", "hole_bytes", "largest_free_bytes"):
            run.figures.pop(name)
        (row,) = [r for r in run.report["frameworks"] if r["pool"] is None]
        assert row["allocated_bytes"] == run.figures["allocated_bytes"]
        assert row["reserved_bytes"] == run.figures["reserved_bytes"]
        return
    check_figures(run)
    sites = run.report["framework_sites"]
    assert sum(row["bytes"] for row in sites) == run.figures["allocated_bytes"]
    assert {row["where"].split("/")[-1].split(":")[0] for row in sites} == {"own_figures.py"}


ASYNC = {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"}


@pytest.mark.parametrize(
    ("framework", "env"), [("cupy", {}), ("jax", ON_DEMAND), ("torch", ASYNC)], ids=["cupy", "jax", "torch"]
)
def test_frameworks_that_are_asked(workspace, framework, env):
    pytest.importorskip(framework)
    script = command("own_figures.py", framework)
    run = workspace.run(
        [BUILD / "cuwarden", "run", "--", *script],
        {**env, "LD_PRELOAD": None, "CUWARDEN_FRAMEWORKS": None},
        timeout_s=TIMEOUT_S,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    (path,) = workspace.reports.glob("python*.json")
    report = Report.read(path)
    run.pid, run.reports = report["process"]["pid"], [report]
    check_figures(run)
    # With several GPUs JAX's profile does not tell whose an array is.
    if framework == "jax" and len(report["frameworks"]) == 1:
        sites = [row for row in report["framework_sites"] if "own_figures.py" in (row["where"] or "")]
        print(sites)
        assert sum(row["bytes"] for row in sites) >= run.figures["array_bytes"]


@pytest.mark.alone
def test_a_device_that_is_full_of_holes_is_told_apart(workspace):
    run = workspace.run(
        [sys.executable, GROWN_SHAPES], {"CUWARDEN_TENSORS": "on"}, timeout_s=TIMEOUT_S
    )
    assert run.returncode == 1, run.stderr[-3000:]
    print(run.stdout)
    incident = run.report["incidents"][-1]
    print(incident["verdict"], incident["advice"], incident["proof"])
    assert incident["verdict"] == "framework_fragmentation"
    assert incident["proof"]["idle_bytes"] > incident["proof"]["reserved_bytes"] // 3
    assert incident["proof"]["largest_free_bytes"] < incident["proof"]["requested_bytes"]
    assert "expandable_segments:True" in incident["advice"]
    # The advice helps.
    again = workspace.run([sys.executable, GROWN_SHAPES], GROWING, timeout_s=TIMEOUT_S)
    assert again.returncode == 0, again.stdout + again.stderr[-3000:]
