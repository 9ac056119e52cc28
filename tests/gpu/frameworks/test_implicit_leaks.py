"""Objects that a PyTorch process leaks, one an iteration: their number and bytes are at the stack
that made them."""

import pytest

from framework_checks import TIMEOUT_S, command, needs
from preloaded import SIMULATED
from report_tables import IMPLICIT_KINDS

pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(SIMULATED, reason="the libraries need the genuine driver"),
    needs("torch"),
]

CHUNK = 2 << 20


def check_account(report):
    (device,) = report["devices"]
    rows = report.account(device)
    print(rows)
    assert abs(rows["unexplained"]) <= max(device["used_bytes"] / 100, 2 * CHUNK), rows


@pytest.mark.parametrize(
    ("kind", "count", "api"),
    [
        ("graphs", 100, "cudaGraphInstantiateWithFlags"),
        ("streams", 300, "cuStreamCreate"),
        ("modules", 40, "cuModuleLoadData"),
    ],
)
def test_leaked_objects_of_the_driver(workspace, kind, count, api):
    run = workspace.run(command("torch_leaked_objects.py", kind, count), timeout_s=TIMEOUT_S)
    assert run.returncode == 0, run.stderr[-3000:]
    taken = run.last_line["taken"]
    groups = [row for row in run.report["implicit_groups"] if row["item"] == kind]
    print(run.last_line, [(g["api"], g["count"], g["bytes"]) for g in groups])
    found = max(groups, key=lambda group: group["count"])
    assert found["api"] == api
    assert found["count"] == count
    # Memory that the driver kept of the object before the loop went to a later one.
    assert found["kept_bytes"] <= CHUNK
    assert abs(found["bytes"] - taken) <= max(taken / 20, CHUNK)
    check_account(run.report)


@pytest.mark.parametrize(
    ("kind", "count", "pattern", "function"),
    [
        ("plans", 10, r"libcufft\.so", "cufftPlan1d"),
        ("handles", 20, r"libcublas\.so", "cublasCreate_v2"),
        ("communicators", 5, r"libnccl\.so", None),
    ],
)
def test_leaked_objects_of_a_library(workspace, kind, count, pattern, function):
    run = workspace.run(command("torch_leaked_objects.py", kind, count), timeout_s=TIMEOUT_S)
    assert run.returncode == 0, run.stderr[-3000:]
    taken, report = run.last_line["taken"], run.report
    allocated = [
        group
        for group in report.groups()
        if group["kind"] not in (*IMPLICIT_KINDS, "pinned", "registered")
    ]
    groups = [
        group
        for group in (*allocated, *report["implicit_groups"])
        if report.passes_through(group, pattern)
        and (function is None or function in report.names(group))
    ]
    print(run.last_line, [(g["api"], g["count"], g["bytes"]) for g in groups])
    # Code that all objects have in common is in the groups, too.
    assert any(group["count"] % count == 0 for group in groups)
    of_objects = sum(
        group["bytes"] for group in groups if group.get("item") not in ("modules", "context")
    )
    assert abs(of_objects - taken) <= max(taken / 20, 2 * CHUNK)
    check_account(report)
