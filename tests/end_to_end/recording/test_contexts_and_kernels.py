"""Contexts, kernels' local memory and the heap of device-side malloc: the device memory that the driver
takes for them, by the call stack that made it do so. The program itself reads the device around."""

import pytest

from shimmed import DRIVEN, program

OTHERS = 3 << 30


def account(report):
    rows = {row["item"]: row["bytes"] for row in report["accounts"] if row["incident"] is None}
    (device,) = report["devices"]
    assert sum(rows.values()) == device["used_bytes"]
    return rows


def groups_of(report, item):
    """Returns the groups of an item, summed up by the function in FUNCTIONS that their stacks have. Checks
    that they add up to the account's item."""
    found = {}
    rows = [row for row in report["implicit_groups"] if row["item"] == item]
    for row in rows:
        assert row["bytes"] >= 0 and row["count"] >= 0
        names = [name for name, _ in report.functions(row)]
        (name,) = [name for name in names if name in FUNCTIONS]
        known = found.setdefault(name, {"count": 0, "bytes": 0, "released_count": 0})
        for number in ("count", "bytes", "released_count"):
            known[number] += row[number]
        known["api"] = row["api"]
    bytes_of_all = sum(row["bytes"] for row in rows)
    assert bytes_of_all == close_to(account(report).get(item, 0))
    return found


FUNCTIONS = (
    ["first_context", "make_context", "retain_context"]
    + ["launch_shallow", "launch_deep", "launch_list", "set_stack"]
)


def close_to(expected):
    return pytest.approx(expected, rel=0.05)


def check_explained(report):
    (device,) = report["devices"]
    assert abs(account(report)["unexplained"]) <= device["used_bytes"] / 100


def ran(run_both, *command, env=None, **how):
    run = run_both([program("contexts_and_kernels"), *command], env, **how)
    assert run.returncode == 0, run.stderr
    assert run.report["records"]["complete"], run.report["records"]
    return run, run.last_line


def test_contexts_have_their_number_and_bytes_at_the_stack_that_made_them(run_both, cuwarden):
    run, facts = ran(run_both, "kept", 8)
    groups = groups_of(run.report, "context")
    assert groups.keys() == {"first_context", "make_context"}
    first, made = groups["first_context"], groups["make_context"]
    assert (first["count"], first["bytes"]) == (1, close_to(facts["first"]))
    assert (made["count"], made["bytes"]) == (8, close_to(facts["taken"]))
    assert made["api"].startswith("cuCtxCreate")
    check_explained(run.report)
    text = cuwarden("report", run.report.path).stdout
    assert "in 8 contexts" in text and "in 1 context ·" in text
    assert run.report["leak_groups"] == []


@pytest.mark.parametrize("how", ["destroyed", "half"])
def test_contexts_that_are_destroyed_take_their_bytes_with_them(run_both, how):
    run, facts = ran(run_both, how, 8)
    groups = groups_of(run.report, "context")
    made = groups["make_context"]
    assert (made["count"], made["released_count"]) == (facts["live"], 8 - facts["live"])
    assert made["bytes"] == close_to(facts["left"] - facts["first"])
    assert groups["first_context"]["bytes"] == close_to(facts["first"])
    check_explained(run.report)
    assert run.report["leak_groups"] == []


def test_when_a_devices_first_context_ends_the_others_keep_their_bytes(run_both):
    run, facts = ran(run_both, "first_ended", 3)
    groups = groups_of(run.report, "context")
    first, made = groups["first_context"], groups["make_context"]
    assert (first["count"], first["bytes"], first["released_count"]) == (0, 0, 1)
    assert (made["count"], made["bytes"]) == (3, close_to(facts["left"]))
    check_explained(run.report)


def test_a_number_of_contexts_that_grows_is_a_leak(run_both, cuwarden):
    run, facts = ran(run_both, "slowly", 20, preload=DRIVEN)
    (leak,) = run.report["leak_groups"]
    assert (leak["kind"], leak["growth"], leak["count"]) == ("context", "growing", 20)
    assert leak["bytes"] == close_to(facts["taken"])
    assert cuwarden("report", "--fail-on-leak", run.report.path).returncode == 1


def test_contexts_that_were_made_at_once_are_no_leak(run_both, cuwarden):
    run, _ = ran(run_both, "early", 20, preload=DRIVEN)
    (group,) = [row for row in run.report["implicit_groups"] if row["count"] == 20]
    assert group["growth"] == "burst"
    assert run.report["leak_groups"] == []
    assert cuwarden("report", "--fail-on-leak", run.report.path).returncode == 0


def test_no_context_has_other_processes_memory(run_both):
    _, alone = ran(run_both, "kept", 2)
    run, facts = ran(run_both, "kept", 2, env={"CUWARDEN_SIM_OTHER_PROCESS": OTHERS})
    groups = groups_of(run.report, "context")
    assert groups["make_context"]["bytes"] == close_to(facts["taken"])
    assert groups["first_context"]["bytes"] == close_to(alone["first"])


def test_memory_for_kernels_belongs_to_the_call_that_made_the_driver_take_it(run_both, cuwarden):
    run, facts = ran(run_both, "kernels")
    local, heap = groups_of(run.report, "local_memory"), groups_of(run.report, "heap")
    assert {name: row["bytes"] for name, row in local.items()} == {
        "launch_shallow": close_to(facts["shallow"]),
        "launch_deep": close_to(facts["deep"]),
        "set_stack": close_to(facts["stack"]),
    }
    assert {name: row["bytes"] for name, row in heap.items()} == {
        "launch_list": close_to(facts["heap"])
    }
    assert all(row["count"] == 1 for row in [*local.values(), *heap.values()])
    assert local["set_stack"]["api"] == "cuCtxSetLimit"
    assert local["launch_deep"]["api"] == "cuLaunchKernel"
    (context,) = groups_of(run.report, "context").values()
    assert (context["api"], context["bytes"]) == ("cuDevicePrimaryCtxRetain", close_to(facts["first"]))
    check_explained(run.report)
    assert run.report["leak_groups"] == []
    assert "in the local memory of kernels" in cuwarden("report", run.report.path).stdout


def test_a_smaller_stack_takes_its_bytes_from_the_newest_calls(run_both):
    run, facts = ran(run_both, "lowered")
    local = groups_of(run.report, "local_memory")
    assert facts["lowered"] < -facts["stack"]
    assert (local["set_stack"]["count"], local["set_stack"]["bytes"]) == (0, 0)
    assert local["set_stack"]["released_count"] == 1
    left = facts["deep"] + facts["stack"] + facts["lowered"]
    assert (local["launch_deep"]["count"], local["launch_deep"]["bytes"]) == (1, close_to(left))
    assert local["launch_shallow"]["bytes"] == close_to(facts["shallow"])
    check_explained(run.report)


def test_memory_for_kernels_ends_with_a_devices_reset(run_both):
    run, facts = ran(run_both, "reset")
    (context,) = groups_of(run.report, "context").values()
    assert (context["count"], context["released_count"]) == (1, 1)
    assert context["bytes"] == close_to(facts["second"])
    local, heap = groups_of(run.report, "local_memory"), groups_of(run.report, "heap")
    shallow = local.pop("launch_shallow")
    assert (shallow["count"], shallow["released_count"]) == (1, 1)
    assert shallow["bytes"] == close_to(facts["again"])
    for row in [*local.values(), *heap.values()]:
        assert (row["count"], row["bytes"], row["released_count"]) == (0, 0, 1)
    check_explained(run.report)


def test_memory_for_kernels_ends_with_its_context(run_both):
    run, facts = ran(run_both, "ended")
    for item in ("local_memory", "heap"):
        for row in groups_of(run.report, item).values():
            assert (row["count"], row["bytes"], row["released_count"]) == (0, 0, 1)
    groups = groups_of(run.report, "context")
    assert groups["first_context"]["bytes"] == close_to(facts["first"])
    assert (groups["make_context"]["count"], groups["make_context"]["bytes"]) == (0, 0)
    check_explained(run.report)


def test_a_forked_child_has_rows_of_its_own_contexts_only(run_both):
    run = run_both([program("contexts_and_kernels"), "forks", 3])
    assert run.returncode == 0, run.stderr
    facts = run.last_line
    assert facts["status"] == 0
    counts = []
    for report in run.reports:
        if not report["implicit_groups"]:
            continue
        made = groups_of(report, "context")["make_context"]
        counts.append(made["count"])
        assert made["bytes"] == close_to(made["count"] * facts["taken"])
        has_kernels = made["count"] == 3
        assert len(groups_of(report, "local_memory")) == 3 * has_kernels
        assert len(groups_of(report, "heap")) == has_kernels
        check_explained(report)
    assert sorted(counts) == [1, 3]


def check_sums(report):
    for device in report["devices"]:
        rows = [row for row in report["accounts"] if row["incident"] is None]
        for item in ("context", "local_memory", "heap"):
            mine = [row for row in rows if (row["item"], row["device"]) == (item, device["device"])]
            groups = [
                row
                for row in report["implicit_groups"]
                if (row["item"], row["device"]) == (item, device["device"])
            ]
            bytes_of_all = sum(row["bytes"] for row in groups)
            assert bytes_of_all == close_to(sum(row["bytes"] for row in mine)), (item, groups)


@pytest.mark.parametrize("what", ["all", "captured", "in_graph", "second_ended", "ended"])
def test_the_rows_of_an_item_add_up_to_it(run_both, what):
    run = run_both([program("implicit_takers"), what])
    assert run.returncode == 0, run.stderr
    check_sums(run.report)
    apis = {row["api"] for row in run.report["implicit_groups"] if row["item"] == "local_memory"}
    by = "cuGraphInstantiateWithFlags" if what == "in_graph" else "cuLaunchKernel"
    assert apis == {by, "cuCtxSetLimit"}


@pytest.mark.parametrize(
    "command",
    [["launch", "local=65536"], ["launch", "local=4096", "room=300"], ["stack", "bytes=16384"]],
    ids="-".join,
)
def test_the_rows_add_up_after_a_refusal_that_gave_memory_back(run_both, command):
    env = {"CUWARDEN_SIM_MEMORY": "4GiB", "CUWARDEN_SIM_DEVICES": "2"}
    run = run_both([program("shortages"), *command], env)
    assert run.report["incidents"][0]["proof"]["given_back_bytes"] > 0
    check_sums(run.report)


@pytest.mark.parametrize("end", ["kept", "destroyed"])
@pytest.mark.parametrize("beside", [[], ["beside"]])
def test_green_contexts_have_their_number_and_bytes_at_the_stack_that_made_them(run_both, end, beside):
    count = 10
    run = run_both([program("green_contexts"), count, end, *beside])
    assert run.returncode == 0, run.stderr
    facts = run.last_line
    if not facts:
        pytest.skip("the toolkit has no green contexts")
    groups = [row for row in run.report["implicit_groups"] if row["item"] == "context"]

    def found(function):
        rows = [row for row in groups if function in [name for name, _ in run.report.functions(row)]]
        return sum(row["count"] for row in rows), sum(row["bytes"] + row["kept_bytes"] for row in rows)

    live = count - 1 if end == "kept" else 0
    assert found("further_green") == (live, pytest.approx(facts["taken"], rel=0.05))
    maker = "use_primary" if beside else "first_green"
    assert found(maker)[0] == 1
    assert found("use_primary")[1] + found("first_green")[1] == pytest.approx(facts["first"], rel=0.05)
    rows = {row["item"]: row["bytes"] for row in run.report["accounts"] if row["incident"] is None}
    (device,) = run.report["devices"]
    assert abs(rows["unexplained"]) <= device["used_bytes"] / 100
