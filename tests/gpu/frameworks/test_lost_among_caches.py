"""Programs with caches that live until the end, and one leak each: the text names the leak first.

The programs are those in programs/lost, here and in ../programs. A comment, `# planted` or `// planted`,
marks the line that a person would name. Each loses the only pointer to its memory on a path that is
taken now and then. Its caches, and those of the libraries, hold more memory than it loses.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from framework_checks import TIMEOUT_S
from preloaded import BUILD, FRAMEWORKS, SIMULATED, SOURCE, program

pytestmark = pytest.mark.skipif(SIMULATED, reason="the libraries need the genuine driver")

SCRIPTS = FRAMEWORKS / "lost"
SOURCES = SOURCE / "tests" / "gpu" / "programs" / "lost"
JAX = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
CASES = {
    "torch_trainer": {},
    "cupy_spectra": {},
    "jax_model": JAX,
    "triton_rows": {},
    "sparse_solver": {},
    "gradient_buckets": {},
    "inference_service": {},
    "tile_server": {},
}


def planted_line(source):
    (number,) = [
        number
        for number, line in enumerate(source.read_text().splitlines(), 1)
        if re.search(r"(?:#|//) planted\b", line)
    ]
    return f"{source.name}:{number}"


@pytest.mark.parametrize("name", CASES)
def test_the_first_entry_of_the_text_is_the_planted_leak(workspace, name):
    script, source = SCRIPTS / f"{name}.py", SOURCES / f"{name}.cu"
    if script.exists():
        pytest.importorskip(name.split("_")[0])
        command, source = [sys.executable, script], script
    else:
        command = [program(name)]
    # raw_memory.py passes requests on, as an allocator of the user's does.
    env = {**CASES[name], "CUWARDEN_LIBRARIES": "raw_memory.py"}
    run = workspace.run(command, env, timeout_s=TIMEOUT_S)
    assert run.returncode == 0, run.stderr[-3000:]
    # Lines through a pipe are whole, unless COLUMNS says how long they may be.
    without_columns = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    text = subprocess.run(
        [BUILD / "cuwarden", "report", run.report.path],
        env=without_columns, capture_output=True, text=True,
    ).stdout
    print(text)
    headline = text.split("\n\n")[0]
    assert "lost" in headline.splitlines()[0] and planted_line(source) in headline, headline
    leaks = re.split(r"\n +\d+\. ", text.split("LEAKS: ")[1])
    first = leaks[1]
    assert planted_line(source) in first, first
    assert "lost" in first.splitlines()[0], first
    planted = [
        group for group in run.report.groups() if planted_line(source) in (group["where"] or "")
    ]
    lost = sum(group["lost_bytes"] for group in planted)
    assert lost > 0, "`where` is another line"
    assert sum(group["bytes"] for group in run.report.groups()) > 2 * lost, "the caches are too small"
    counts = [f"{group['lost_count']} of {group['count']}" for group in planted]
    print(f"{name}: first of {len(leaks) - 1}, lost: {', '.join(counts)}")
