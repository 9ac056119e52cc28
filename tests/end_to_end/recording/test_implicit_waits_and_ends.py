"""Calls that wait long for the device, and contexts that end while another thread makes objects in them: the
rows of implicit memory stay those of the objects."""

import pytest

from shimmed import DRIVEN_WITH_DEVICE, program

# Fields that are equal in two runs of a program. Times and ids of stacks are not.
FIELDS = ("item", "api", "count", "bytes", "released_count", "kept_bytes", "uncertain", "shared")


def implicit_rows(report):
    return sorted(
        (*(row[name] for name in FIELDS), *(str(name) for name, _ in report.functions(row)))
        for row in report["implicit_groups"]
    )


def test_calls_that_wait_long_take_no_row_and_no_bytes(workspace):
    short = workspace.run([program("waiting_calls")])
    assert short.returncode == 0, short.stderr
    # No kernel ends before the call that waits for it, however slow the machine is.
    env = {"CUWARDEN_SIM_KERNEL_TIME": "100ms"}
    long = workspace.run([program("waiting_calls")], env, preload=DRIVEN_WITH_DEVICE)
    assert long.returncode == 0, long.stderr
    waits = long.last_line["waits"]
    assert waits > 0
    assert long.last_line["long_waits"] == waits
    rows = implicit_rows(long.report)
    assert rows == implicit_rows(short.report)
    apis = {row["api"] for row in long.report["implicit_groups"]}
    makers = {"cuDevicePrimaryCtxRetain", "cuModuleLoadData", "cuStreamCreate"}
    assert apis == makers | {"cuGraphInstantiateWithFlags"}
    assert long.report["leak_groups"] == short.report["leak_groups"] == []
    for report in (long.report, short.report):
        (unexplained,) = [r["bytes"] for r in report["accounts"] if r["item"] == "unexplained"]
        assert unexplained == 0


def numbers_of(report):
    """Returns (table, row, field, value) for each number in the report's tables of memory."""
    for table in ("implicit_groups", "leak_groups", "totals", "accounts"):
        for row in report[table]:
            # By the report's own rules, this row alone may be negative.
            if row.get("item") == "unexplained":
                continue
            for name, value in row.items():
                if isinstance(value, (int, float)) and not isinstance(value, bool):
                    yield table, row, name, value


@pytest.mark.parametrize("how", ["destroyed", "reset"])
def test_no_row_is_negative_when_contexts_end_while_another_thread_makes_objects_in_them(run_both, how):
    rounds = 30
    run = run_both([program("contexts_that_end"), how, rounds])
    assert run.returncode == 0, run.stderr
    assert run.last_line["left"] == run.last_line["before"]
    assert [found for found in numbers_of(run.report) if found[-1] < 0] == []
    rows = {"stay": [], "begin": [], "make_objects": [], "make_last_objects": []}
    for row in run.report["implicit_groups"]:
        (function,) = [name for name, _ in run.report.functions(row) if name in rows]
        rows[function].append(row)
    (own,) = rows["stay"]
    assert (own["count"], own["bytes"]) == (1, run.last_line["before"])
    for row in rows["begin"]:
        assert (row["count"], row["bytes"], row["kept_bytes"]) == (0, 0, 0)
    assert sum(row["released_count"] for row in rows["begin"]) == rounds + 1
    assert {row["item"] for row in rows["make_objects"]} == {"modules", "streams"}
    for row in rows["make_objects"]:
        assert (row["count"], row["bytes"]) == (0, 0), row
    assert {row["item"] for row in rows["make_last_objects"]} == {"modules", "streams"}
    for row in rows["make_last_objects"]:
        assert (row["count"], row["bytes"], row["released_count"]) == (0, 0, 20), row
