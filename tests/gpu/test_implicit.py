"""Memory that no allocation call explains. The program itself reads the device's memory around each
call that takes some."""

import pytest

import preloaded

PROGRAMS = preloaded.BUILD / "tests" / "end_to_end" / "programs"
TAKERS, OBJECTS = PROGRAMS / "implicit_takers", PROGRAMS / "implicit_objects"

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


@pytest.mark.parametrize("end", ["kept", "half", "destroyed"])
@pytest.mark.parametrize(
    ("kind", "api", "count"),
    [
        ("graphs", "cuGraphInstantiateWithFlags", 400),
        ("streams", "cuStreamCreate", 1000),
        ("modules", "cuModuleLoadData", 50),
    ],
)
def test_objects_have_their_number_and_bytes_at_the_stack_that_made_them(
    workspace, kind, api, count, end
):
    run = workspace.run([OBJECTS, kind, count, end])
    assert run.returncode == 0, run.stderr
    facts = run.last_line
    (device,) = run.report["devices"]
    rows = run.report.account(device)
    groups = [row for row in run.report["implicit_groups"] if row["item"] == kind]
    print(kind, end, facts, rows, [(row["api"], row["count"], row["bytes"]) for row in groups])
    made = [row for row in groups if row["api"] == api]
    assert sum(row["count"] for row in made) == facts["live"]
    assert abs(rows["unexplained"]) <= device["used_bytes"] / 100
    in_loop = sum(row["bytes"] for row in groups if "make" in run.report.names(row))
    chunk = 2 << 20
    assert abs(in_loop - facts["left"]) <= max(facts["taken"] / 20, chunk)
