"""Objects that a PyTorch process leaks, one an iteration: their number and bytes are at the stack
that made them."""

import re

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
SCRIPT = "torch_leaked_objects.py"
GROUP_KINDS = {"graphs": "graph_exec", "streams": "stream", "modules": "module"}


def planted_among(report, groups, count):
    """Returns those of the groups that hold `count` live objects, which the script's loop has made."""
    loop = {(SCRIPT, "make"), (SCRIPT, "leak")}
    return [
        group
        for group in groups
        if group["count"] == count > 0 and loop <= set(report.python_frames(group))
    ]


def check_grows(report, planted):
    """Checks that the number of objects of one of these groups grows, as the table of leaks says. Returns
    that group's row there."""
    stacks = {group["stack"] for group in planted}
    counts = {group["count"] for group in planted}
    rows = [
        row
        for row in report.groups()
        if row["stack"] in stacks and row["count"] in counts and row["growth"] == "growing"
    ]
    assert rows, report.describe()
    return rows[0]


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
    run = workspace.run(command(SCRIPT, kind, count), timeout_s=TIMEOUT_S)
    assert run.returncode == 0, run.stderr[-3000:]
    taken = run.last_line["taken"]
    groups = [row for row in run.report["implicit_groups"] if row["item"] == kind]
    print(run.last_line, [(g["api"], g["count"], g["bytes"]) for g in groups])
    found = max(groups, key=lambda group: group["count"])
    assert found["api"] == api
    assert found["count"] == count
    assert planted_among(run.report, groups, count) == [found], run.report.names(found)
    leak = check_grows(run.report, [found])
    # The two tables may name different functions of the runtime or the driver for one stack.
    assert (leak["kind"], leak["bytes"]) == (GROUP_KINDS[kind], found["bytes"])
    # Memory that the driver kept of the object before the loop went to a later one.
    assert found["kept_bytes"] <= CHUNK
    assert abs(found["bytes"] - taken) <= max(taken / 20, CHUNK)
    check_account(run.report)


@pytest.mark.parametrize(
    ("kind", "count", "pattern", "function", "maker"),
    [
        ("plans", 10, r"libcufft\.so", "cufftPlan1d", r"cufftPlan1d"),
        ("handles", 20, r"libcublas\.so", "cublasCreate_v2", r"cublasCreate_v2"),
        # Threads of NCCL's own make parts of a communicator. Its functions have a second name with a p.
        ("communicators", 10, r"libnccl\.so", None, r"p?ncclCommInitRank\w*"),
    ],
)
def test_leaked_objects_of_a_library(workspace, kind, count, pattern, function, maker):
    run = workspace.run(command(SCRIPT, kind, count), timeout_s=TIMEOUT_S)
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
    planted = [
        group
        for group in planted_among(report, groups, count)
        if any(re.fullmatch(maker, name or "") for name in report.names(group))
    ]
    assert planted, [(g["api"], g["count"], report.names(g)) for g in groups]
    check_grows(report, planted)
    of_objects = sum(
        group["bytes"] for group in groups if group.get("item") not in ("modules", "context")
    )
    assert abs(of_objects - taken) <= max(taken / 20, 2 * CHUNK)
    check_account(report)
