"""PyTorch's message beside cuwarden's verdict, in five ways to run out of memory."""

import re

import pytest

from framework_checks import TIMEOUT_S, command, needs
from preloaded import SIMULATED

pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(SIMULATED, reason="the framework needs the genuine driver"),
    needs("torch"),
]

# The verdict of each case, and words that its advice must have.
CASES = {
    "too_large": ("larger_than_device", r"GiB"),
    "growing": ("device_full_own", r"."),
    "cache_of_cupy": ("held_by_framework", r"CuPy holds .*PyTorch asked for more"),
    "other_process": ("held_by_other_processes", r"pid \d+"),
    "holes": ("framework_fragmentation", r"\d+ holes.*expandable_segments:True"),
}


@pytest.mark.parametrize("case", CASES)
def test_the_verdict_says_what_to_do(workspace, case):
    if case == "cache_of_cupy":
        pytest.importorskip("cupy")
    verdict, advice = CASES[case]
    env = {"CUWARDEN_POOL": "off", "CUWARDEN_TENSORS": "on", "CUWARDEN_FRAMEWORKS": "on"}
    run = workspace.run(command("torch_out_of_memory.py", case), env, timeout_s=TIMEOUT_S)
    assert run.returncode == 0, run.stderr[-3000:]
    # PyTorch empties its cache and asks again from another line: the last refusal counts.
    incident = run.report["incidents"][-1]
    print(f"PyTorch: {run.stdout.strip()}")
    print(f"cuwarden: {incident['verdict']}: {incident['advice']}")
    assert incident["verdict"] == verdict
    assert re.search(advice, incident["advice"])
    if case == "growing":
        blocks = [
            row
            for row in run.report["incident_holders"]
            if row["incident"] == incident["id"] and row["kind"] == "framework_block"
        ]
        lines = [run.report.python_frames(row) for row in blocks]
        assert ("torch_out_of_memory.py", "growing") in lines[0], lines
