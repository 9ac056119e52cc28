"""Memory that no allocation call explains. The program itself reads the device's memory around each
call that takes some."""

import pytest

import preloaded

TAKERS = preloaded.BUILD / "tests" / "end_to_end" / "programs" / "implicit_takers"

pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(not TAKERS.exists(), reason=f"{TAKERS} was not built"),
]


@pytest.mark.parametrize("what", ["all", "captured", "in_graph"])
def test_every_step_has_a_row_of_its_size(workspace, what):
    run = workspace.run([TAKERS, what])
    assert run.returncode == 0, run.stderr
    facts = run.last_line
    (device,) = run.report["devices"]
    rows = run.report.account(device)
    print(what, rows, facts)
    hundredth = device["used_bytes"] / 100
    assert abs(rows["unexplained"]) <= hundredth
    assert abs(rows["context"] - facts["first_context"] - facts["second_context"]) <= hundredth
    for row in ("modules", "local_memory", "heap", "streams"):
        # At first launch code is loaded, and a graph takes memory of its own: rows are such sums.
        assert abs(rows.get(row, 0) - facts[row]) <= max(hundredth, facts[row] / 100), row
