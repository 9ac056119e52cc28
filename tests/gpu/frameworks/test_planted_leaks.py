"""Leaks as people plant them: the line that a person would name is the line that the report names.

The programs are the samples for Python and those in programs/leaks. A comment, `# planted` or
`# the leak`, marks the line that a person would name.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from framework_checks import TIMEOUT_S, needs
from preloaded import BUILD, FRAMEWORKS, SIMULATED, SOURCE
from report_tables import Report

pytestmark = [
    pytest.mark.skipif(SIMULATED, reason="the frameworks need the genuine driver"),
    needs("torch"),
]

SAMPLES = SOURCE / "samples" / "python"
LEAKS = FRAMEWORKS / "leaks"
JAX = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
MARK = re.compile(r"(?:#|//) (?:planted|the leak)\b")


def marked_lines(*sources):
    """Returns FILE:LINE, without a folder, of each marked line."""
    return {
        f"{source.name}:{number}"
        for source in sources
        for number, line in enumerate(source.read_text().splitlines(), 1)
        if MARK.search(line)
    }


def line_of(group):
    """Returns FILE:LINE of a group's `where`, without the folder; "" if there is none."""
    return Path((group["where"] or "").split(" in ")[0]).name


CASES = [
    (SAMPLES / "kept_losses.py", {}, []),
    (SAMPLES / "cupy_cache.py", {}, []),
    (SAMPLES / "pinned_loader.py", {}, []),
    (SAMPLES / "kept_traceback.py", {}, []),
    (LEAKS / "raw_ctypes.py", {}, []),
    (LEAKS / "global_list.py", {}, []),
    (LEAKS / "cupy_cycle.py", {}, []),
    (LEAKS / "jax_cache.py", JAX, []),
    (LEAKS / "pinned_buffers.py", {}, []),
    (LEAKS / "graph_pool.py", {}, []),
    (LEAKS / "extension_leak.py", {}, [LEAKS / "encoder_extension.cpp"]),
    (LEAKS / "worker_leak.py", {}, []),
]


def rows_as_the_text_ranks_them(report):
    """Returns the rows that may be leaks: blocks of frameworks in place of the segments in which they
    lie; those that grow come first, then the largest."""
    blocks = report["framework_sites"]
    groups = [
        group
        for group in report.groups()
        if not (blocks and "libc10_cuda" in report.first_module(group))
    ]
    return sorted(blocks + groups, key=lambda row: (row["growth"] != "growing", -row["bytes"]))


@pytest.mark.parametrize(("script", "env", "more"), CASES, ids=[case[0].stem for case in CASES])
def test_the_planted_line_is_where_the_report_says(workspace, script, env, more):
    framework = script.stem.split("_")[0]
    if framework in ("cupy", "jax"):
        pytest.importorskip(framework)
    env = {**env, "CUWARDEN_TENSORS": "on", "CUWARDEN_FRAMEWORKS": "on"}
    run = workspace.run([sys.executable, script], env, timeout_s=TIMEOUT_S)
    assert run.returncode == 0, run.stderr[-3000:]
    assert run.said == []
    report = run.report
    if script.stem == "worker_leak":
        pid = run.figures["worker"]
        (path,) = workspace.reports.glob(f"*-{pid}.json")
        report = Report.read(path)
    planted = marked_lines(script, *more)
    assert planted
    rows = rows_as_the_text_ranks_them(report)
    found = [rank for rank, row in enumerate(rows, 1) if line_of(row) in planted]
    for rank, row in enumerate(rows[:8], 1):
        print(rank, row.get("kind", "block"), row["count"], row["bytes"] >> 10, "KiB",
              row["growth"], row["where"])  # fmt: skip
    text = subprocess.run([BUILD / "cuwarden", "report", report.path], capture_output=True, text=True)
    print(text.stdout[:6000])
    print(f"planted at {planted}: ranks {found} of {len(rows)}")
    assert found, report.describe()
    for row in report["frameworks"]:
        print(row)
