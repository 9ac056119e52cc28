"""Memory that no allocation call explains. The program itself reads the device's memory around each
call that takes some."""

import ctypes

import pytest

import preloaded

PROGRAMS = preloaded.BUILD / "tests" / "end_to_end" / "programs"
TAKERS, OBJECTS = PROGRAMS / "implicit_takers", PROGRAMS / "implicit_objects"
CONTEXTS = PROGRAMS / "contexts_and_kernels"
BYTES_OF_A_CONTEXT = 600 << 20  # 527 MiB on an H200

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
    ("kind", "api", "count", "kernels"),
    [
        ("graphs", "cuGraphInstantiateWithFlags", 400, 200),
        ("graphs", "cuGraphInstantiateWithFlags", 1000, 20),
        ("streams", "cuStreamCreate", 1000, 0),
        ("modules", "cuModuleLoadData", 50, 0),
    ],
)
def test_objects_have_their_number_and_bytes_at_the_stack_that_made_them(
    workspace, kind, api, count, kernels, end
):
    run = workspace.run([OBJECTS, kind, count, end, kernels])
    assert run.returncode == 0, run.stderr
    facts = run.last_line
    (device,) = run.report["devices"]
    rows = run.report.account(device)
    groups = [row for row in run.report["implicit_groups"] if row["item"] == kind]
    print(kind, end, facts, rows, [(row["api"], row["count"], row["bytes"]) for row in groups])
    made = [row for row in groups if row["api"] == api]
    assert sum(row["count"] for row in made) == facts["live"]
    assert abs(rows["unexplained"]) <= device["used_bytes"] / 100
    in_loop = sum(
        row["bytes"] + row["kept_bytes"] for row in groups if "make" in run.report.names(row)
    )
    chunk = 2 << 20
    assert abs(in_loop - facts["left"]) <= max(facts["taken"] / 20, chunk)


def contexts_and_kernels(workspace, *command, env=None):
    run = workspace.run([CONTEXTS, *command], env)
    assert run.returncode == 0, run.stderr
    (device,) = run.report["devices"]
    rows = run.report.account(device)
    groups = run.report["implicit_groups"]
    print(command, run.last_line, rows, [(g["item"], g["api"], g["count"], g["bytes"]) for g in groups])
    assert all(group["bytes"] >= 0 for group in groups)
    for item in ("context", "local_memory", "heap"):
        bytes_of_all = sum(group["bytes"] for group in groups if group["item"] == item)
        assert bytes_of_all == pytest.approx(rows.get(item, 0), rel=0.05), item
    assert abs(rows["unexplained"]) <= device["used_bytes"] / 100
    return run, run.last_line


def rows_of(run, item, function):
    """Returns count and bytes of the item's groups whose stacks have the function."""
    groups = [row for row in run.report["implicit_groups"] if row["item"] == item]
    found = [row for row in groups if function in run.report.names(row)]
    return sum(row["count"] for row in found), sum(row["bytes"] for row in found)


def device_bytes():
    """Returns the size of the first device."""
    driver, device, size = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.c_size_t()
    assert driver.cuInit(0) == 0
    assert driver.cuDeviceGet(ctypes.byref(device), 0) == 0
    assert driver.cuDeviceTotalMem_v2(ctypes.byref(size), device) == 0
    return size.value


def about(expected):
    # The account of a device has an error of a chunk or two in each row.
    return pytest.approx(expected, rel=0.05, abs=8 << 20)


@pytest.mark.parametrize("end", ["kept", "half", "destroyed"])
@pytest.mark.parametrize("count", [6, 30, 100])
def test_contexts_have_their_number_and_bytes_at_the_stack_that_made_them(workspace, count, end):
    env = {"CUWARDEN_SIM_MEMORY": "80GiB"} if preloaded.SIMULATED else None
    if not preloaded.SIMULATED and device_bytes() < count * BYTES_OF_A_CONTEXT:
        pytest.skip(f"{count} contexts do not fit on the device")
    run, facts = contexts_and_kernels(workspace, end, count, env=env)
    assert rows_of(run, "context", "first_context") == (1, about(facts["first"]))
    assert rows_of(run, "context", "make_context") == (
        facts["live"],
        about(facts["left"] - facts["first"]),
    )
    # A context takes long to make, so that a number of them that is kept grows.
    kinds = {group["kind"] for group in run.report["leak_groups"]}
    assert kinds <= {"context"}


def test_memory_for_kernels_belongs_to_the_call_that_made_the_driver_take_it(workspace):
    run, facts = contexts_and_kernels(workspace, "kernels")
    assert rows_of(run, "context", "retain_context") == (1, about(facts["first"]))
    local = {"launch_shallow": "shallow", "launch_deep": "deep", "set_stack": "stack"}
    for function, step in local.items():
        assert rows_of(run, "local_memory", function)[1] == about(facts[step]), function
    # A kernel's first launch may load code, too.
    assert rows_of(run, "heap", "launch_list")[1] == about(facts["heap"])
    assert run.report["leak_groups"] == []


@pytest.mark.parametrize("end", ["lowered", "reset", "ended"])
def test_memory_for_kernels_leaves_its_rows_when_the_driver_gives_it_back(workspace, end):
    run, facts = contexts_and_kernels(workspace, end)
    if end == "ended":
        assert rows_of(run, "context", "make_context") == (0, 0)
        assert rows_of(run, "local_memory", "main") == (0, 0)
    if end == "reset":
        assert rows_of(run, "context", "retain_context") == (1, about(facts["second"]))
        assert rows_of(run, "local_memory", "launch_deep") == (0, 0)
    if end == "lowered" and facts["lowered"] < 0:
        steps = sum(facts[step] for step in ("shallow", "deep", "stack", "lowered"))
        assert rows_of(run, "local_memory", "main")[1] == about(steps)


def test_calls_of_two_threads_that_overlap_name_each_other(workspace):
    run = workspace.run([PROGRAMS / "overlapping_makers", 30, "long"])
    assert run.returncode == 0, run.stderr
    (device,) = run.report["devices"]
    rows = run.report.account(device)
    groups = [row for row in run.report["implicit_groups"] if row["item"] in ("modules", "streams")]
    print(run.last_line, rows, [(g["api"], g["count"], g["bytes"], g["shared_with"]) for g in groups])
    assert abs(rows["unexplained"]) <= device["used_bytes"] / 100
    taken = sum(row["bytes"] for row in groups)
    assert taken == pytest.approx(run.last_line["taken"], rel=0.05, abs=2 * (2 << 20))
    stacks = {row["stack"] for row in groups}
    for row in groups:
        assert set(row["shared_with"]) <= stacks - {row["stack"]}
        if row["shared_with"]:
            assert row["shared"]


@pytest.mark.parametrize("end", ["kept", "destroyed"])
@pytest.mark.parametrize("beside", [[], ["beside"]])
def test_green_contexts_have_their_number_and_bytes_at_the_stack_that_made_them(workspace, end, beside):
    count = 10
    run = workspace.run([PROGRAMS / "green_contexts", count, end, *beside])
    assert run.returncode == 0, run.stderr
    facts = run.last_line
    (device,) = run.report["devices"]
    rows = run.report.account(device)
    groups = [row for row in run.report["implicit_groups"] if row["item"] == "context"]
    print(facts, rows, [(g["api"], g["count"], g["bytes"], g["kept_bytes"]) for g in groups])
    further = [row for row in groups if "further_green" in run.report.names(row)]
    assert sum(row["count"] for row in further) == (count - 1 if end == "kept" else 0)
    assert sum(row["bytes"] + row["kept_bytes"] for row in further) == about(facts["taken"])
    assert rows_of(run, "context", "use_primary" if beside else "first_green")[0] == 1
    assert abs(rows["unexplained"]) <= device["used_bytes"] / 100
