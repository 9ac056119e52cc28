"""The samples that run out of memory: each gets into its situation, also under the shim, and the report
has the facts that the sample itself prints.
"""

import json
import signal

import pytest

from fragmentation_checks import check_stacks_of_slabs
from memory_cgroup import LIMIT, Cgroup
from shimmed import SOURCE, only_report, sample

PAGE = 2 << 20
MIB = 1 << 20
OUT_OF_MEMORY = "cudaErrorMemoryAllocation"
SIZES = ["3GiB", "40GiB"]

DEVICE_SAMPLES = [
    "churn",
    "adaptive_mesh",
    "odd_sizes",
    "streams",
    "two_libraries",
    "too_large",
    "batch_of_one",
    "oversubscribe",
    "local_memory",
]
FRAGMENTS = ["mappings", "limit", "context"]


def sized(size, tmp_path=None):
    env = {"CUWARDEN_SIM_MEMORY": size, "CUWARDEN_POOL": "off"}
    if tmp_path is not None:
        env["CUWARDEN_SIM_SHARED"] = tmp_path / "shared_device"
    return env


def call_at(name, function_called, line):
    """Returns true if the sample's source has a call of `function_called` in this line."""
    return f"{function_called}(" in (SOURCE / "samples" / f"{name}.cpp").read_text().splitlines()[
        line - 1
    ]


def check_request(name, run, called=None):
    """Checks and returns the failed request that the sample's last line describes."""
    assert run.returncode == 0, run.stderr
    assert run.other_stderr == ""
    request = run.last_line["request"]
    assert request["error"] == OUT_OF_MEMORY
    assert call_at(name, called or request["api"], request["line"]), request
    return request


def check_complete(report, failures):
    assert report["coverage"] == {"complete": True, "reasons": []}
    assert report["tool"]["complete"] is True, report["tool"]
    assert {
        kind: total["failures"] for kind, total in report.totals().items() if total["failures"]
    } == failures


def check_account(run, kind="device", failed="device"):
    """Checks that the report counts the same bytes as the program, and at most one failed request."""
    facts = run.last_line
    check_complete(run.report, {failed: 1} if failed else {})
    total = run.report.totals()[kind]
    assert total["live_bytes"] == facts["live_bytes"]
    assert total["live_count"] == total["allocations"] - total["frees"] == facts["live_count"]
    assert total["frees"] == facts["freed_count"]


def check_incident(report, request, verdict):
    """Checks that the only incident is the sample's request, at its line, with the given verdict."""
    (incident,) = report["incidents"]
    assert incident["verdict"] == verdict, incident
    assert incident["outcome"] == "failed" and incident["repeats"] == 0
    assert incident["device"] == request["device"]
    names = [(name, frame["line"]) for name, frame in report.functions(incident)]
    assert (request["function"], request["line"]) in names, names
    return incident


def situation(run_both, name, size, verdict, kind="device", arguments=()):
    """Runs the sample bare and shimmed. Checks that a cudaMalloc of more than the free bytes failed."""
    run = run_both([sample(name), *arguments], sized(size))
    request = check_request(name, run)
    facts = run.last_line
    assert request["api"] == "cudaMalloc" and request["device"] == 0
    assert facts["free_bytes"] < facts["total_bytes"] == int(size[:-3]) << 30
    # The driver rounds requests above 1 MiB to whole pages.
    assert -(-request["bytes"] // PAGE) * PAGE > facts["free_bytes"]
    check_account(run, kind)
    incident = check_incident(run.report, request, verdict)
    assert incident["bytes"] == request["bytes"] and incident["api"] == "cudaMalloc"
    return run, facts, incident["proof"]


@pytest.mark.parametrize("size", SIZES)
def test_churn_finds_its_room_in_slabs_and_roundings(run_both, size):
    run, facts, proof = situation(run_both, "churn", size, "slab_fragmentation")
    check_stacks_of_slabs(run.report, "remember")
    assert facts["freed_count"] > 5 * facts["live_count"] > 5000
    lost = facts["device_lost_bytes"] - facts["requested_bytes_held"]
    assert lost > facts["requested_bytes_held"] / 10
    assert facts["request"]["bytes"] < facts["free_bytes"] + lost
    waste = proof["slab_locked_bytes"] + proof["rounding_bytes"]
    assert waste == pytest.approx(lost, rel=0.01)
    assert proof["free_bytes"] == facts["free_bytes"]


def test_adaptive_mesh_gets_next_to_nothing_of_what_it_freed_back(run_both):
    _, facts, proof = situation(run_both, "adaptive_mesh", "3GiB", "slab_fragmentation")
    assert facts["patches"] > 100000
    assert facts["freed_count"] == facts["patches"] - facts["live_count"]
    assert facts["request"]["bytes"] == pytest.approx(facts["freed_bytes"] * 3 / 4, rel=0.01)
    assert facts["given_back_bytes"] < facts["freed_bytes"] / 10
    lost = facts["freed_bytes"] - facts["given_back_bytes"]
    assert proof["slab_locked_bytes"] == pytest.approx(lost, rel=0.01)


@pytest.mark.parametrize("size", SIZES)
def test_odd_sizes_loses_a_quarter_to_rounding(run_both, size):
    _, facts, proof = situation(run_both, "odd_sizes", size, "slab_fragmentation")
    assert facts["cached_tiles"] < facts["planned_tiles"]
    assert facts["request"]["bytes"] in (3 * MIB, 3 * MIB // 2)
    lost, held = facts["device_lost_bytes"], facts["requested_bytes_held"]
    assert lost - held == pytest.approx(lost / 4, rel=0.01)
    assert proof["rounding_bytes"] == pytest.approx(lost - held, rel=0.01)


@pytest.mark.parametrize("size", SIZES)
def test_streams_has_freed_everything_and_waited_for_nothing(run_both, size):
    _, facts, proof = situation(run_both, "streams", size, "pending_frees", "stream_ordered")
    pending = facts["freed_and_not_synchronised_bytes"]
    assert pending == facts["freed_bytes"] > facts["request"]["bytes"]
    assert facts["live_bytes"] == 0
    assert proof["pending_free_bytes"] == pytest.approx(pending, rel=0.01)


@pytest.mark.parametrize("size", SIZES)
def test_two_libraries_has_one_that_holds_the_device_and_uses_nothing(run_both, size):
    run, facts, proof = situation(run_both, "two_libraries", size, "held_by_framework")
    assert proof["held_bytes"] == facts["cache_idle_bytes"]
    assert proof["holder"].endswith("/" + facts["cache_module"])
    assert facts["cache_idle_bytes"] == facts["live_bytes"]
    assert facts["cache_idle_bytes"] + facts["free_bytes"] > facts["request"]["bytes"]
    groups = run.report.leaks()
    assert sum(group["bytes"] for group in groups) == facts["cache_idle_bytes"]
    for group in groups:
        assert run.report.module_name(group["module"]) == facts["cache_module"]
        names = [name for name, _ in run.report.functions(group)]
        assert facts["cache_function"] in names[:2] and "train" in names


@pytest.mark.parametrize("size", SIZES)
def test_too_large_asks_for_more_than_any_such_device_has(run_both, size):
    _, facts, proof = situation(run_both, "too_large", size, "larger_than_device")
    assert proof["total_bytes"] == facts["total_bytes"]
    assert facts["request"]["bytes"] == 4 * facts["points"] ** 2 > facts["total_bytes"]


@pytest.mark.parametrize("size", SIZES)
def test_batch_of_one_grows_at_another_line_than_the_one_that_fails(run_both, size):
    run, facts, proof = situation(run_both, "batch_of_one", size, "device_full_own")
    assert proof["own_bytes"] == facts["live_bytes"]
    grown = (facts["steps"] + 1) * facts["bytes_per_step"]
    assert facts["live_bytes"] == grown + facts["batch_bytes"]
    assert facts["freed_bytes"] == facts["steps"] * facts["request"]["bytes"]
    assert call_at("batch_of_one", "cudaMalloc", facts["growing_line"])
    assert facts["growing_line"] != facts["request"]["line"]
    groups = run.report.groups_of(facts["growing_function"], facts["growing_line"])
    assert sum(group["bytes"] for group in groups) == grown
    assert {group["growth"] for group in groups} == {"growing"}
    assert proof["growing_bytes"] == grown
    holders = [row for row in run.report["incident_holders"] if row["growth_bytes_per_minute"]]
    assert [row["stack"] for row in holders] == [group["stack"] for group in groups]


# The simulated device's memory is host memory, so only a part of a large device is written to.
@pytest.mark.parametrize("size, arguments", [("2GiB", []), ("40GiB", [140, 256 * MIB])])
def test_oversubscribe_needs_all_that_it_holds_and_more(run_both, size, arguments):
    run, facts, proof = situation(
        run_both, "oversubscribe", size, "device_full_own", arguments=map(str, arguments)
    )
    assert facts["tiles"] / facts["planned_tiles"] == pytest.approx(1 / 1.4, abs=0.02)
    held = facts["tiles"] * facts["bytes_a_tile"]
    assert facts["freed_count"] == 0 and facts["live_bytes"] == held + facts["other_bytes"]
    assert proof["own_bytes"] == facts["live_bytes"]
    assert proof["growing_bytes"] == held
    # The refused request and the growing leak are in the same line.
    request = facts["request"]
    (group,) = run.report.groups_of(request["function"], request["line"])
    assert (group["bytes"], group["growth"]) == (held, "growing")
    assert [
        row["stack"]
        for row in run.report["incident_holders"]
        if row["growth_bytes_per_minute"] is not None
    ] == [group["stack"]]


@pytest.mark.parametrize("size", SIZES)
def test_local_memory_is_taken_by_launches_until_one_fails(run_both, size):
    run = run_both([sample("local_memory")], sized(size))
    request = check_request("local_memory", run, called="launch")
    check_account(run, failed=None)  # no allocation call failed
    facts = run.last_line
    threads = facts["resident_threads"]
    assert request["api"] == "cuLaunchKernel"
    assert request["bytes"] == threads * facts["local_bytes_per_thread"]
    # The code that calls malloc, and the heap itself, take memory.
    assert facts["free_before_kernels_bytes"] - facts["free_with_heap_bytes"] == 148 * MIB
    # The launches took the local memory that the last of them needs, less 1 KiB that existed before.
    taken = facts["free_with_heap_bytes"] - facts["free_before_launch_bytes"]
    assert taken == threads * (facts["local_bytes_per_thread"] // 2 - 1024) > 0
    assert request["bytes"] - taken - threads * 1024 > facts["free_before_launch_bytes"]
    # The driver gave back all local memory, including the first 414 MiB, and the memory of the code, which
    # did not help. On an H200 it was the same to within 2 MiB.
    given_back = (414 + 138) * MIB
    after = facts["free_before_launch_bytes"] + taken + given_back
    assert facts["free_after_launch_bytes"] == after
    # The account has the same figures.
    incident = check_incident(run.report, request, "implicit_memory")
    assert incident["asked_for"] == "launch" and incident["api"] == "cuLaunchKernel"
    assert incident["proof"]["requested_bytes"] == request["bytes"]
    assert incident["proof"]["free_bytes"] == facts["free_after_launch_bytes"]
    rows = {row["item"]: row["bytes"] for row in run.report["accounts"]}
    assert rows.get("local_memory", 0) == 0
    held = facts["total_bytes"] - facts["free_with_heap_bytes"] - facts["live_bytes"]
    left = rows["context"] + rows.get("modules", 0) + rows.get("heap", 0)
    assert left == pytest.approx(held - given_back, rel=0.01)
    assert abs(rows["unexplained"]) <= held / 100
    (device,) = run.report["devices"]
    granted = facts["local_bytes_per_thread"] // 2
    assert device["local_memory_kernel_thread_bytes"] == granted
    assert device["local_memory_kernel"] == f"step_of_order_{granted.bit_length() - 12}"


def run_alike(workspace, command, env, differing):
    """Runs the command bare and under the shim, compares output and status, and returns the second run. `env`: changes
    to the environment. The last output line is a JSON object; its fields in `differing` are not compared."""

    def apart(run):
        *lines, last = run.stdout.splitlines()
        return lines, {k: v for k, v in json.loads(last).items() if k not in differing}

    bare = workspace.run(command, env, shim=False)
    shimmed = workspace.run(command, env)
    assert apart(shimmed) == apart(bare)
    assert shimmed.own_stderr == bare.own_stderr
    assert shimmed.returncode == bare.returncode
    return shimmed


@pytest.mark.parametrize("size", SIZES)
def test_neighbour_holds_what_the_program_cannot_have(workspace, tmp_path, size):
    run = run_alike(workspace, [sample("neighbour")], sized(size, tmp_path), {"other_pid"})
    request = check_request("neighbour", run)
    facts = run.last_line
    assert facts["free_bytes"] < request["bytes"] < facts["free_bytes"] + facts["other_bytes"]
    assert facts["live_bytes"] == 0
    reports = {report["process"]["pid"]: report for report in run.reports}
    assert len(reports) == 2
    other = reports.pop(facts["other_pid"])
    check_complete(other, {})
    assert other.totals()["device"]["peak_bytes"] == facts["other_bytes"]
    (own,) = reports.values()
    check_complete(own, {"device": 1})
    proof = check_incident(own, request, "held_by_other_processes")["proof"]
    # The memory of the neighbour's context also belongs to the neighbour.
    context = facts["total_bytes"] - facts["free_bytes"] - proof["other_processes_bytes"]
    assert proof["other_processes_bytes"] - context == pytest.approx(facts["other_bytes"], rel=0.01)
    (holder,) = own["device_processes"]
    assert holder["pid"] == facts["other_pid"]
    assert holder["used_bytes"] == proof["other_processes_bytes"]


@pytest.mark.parametrize("nvml", ["refuse", "hide_others"])
def test_a_neighbour_that_no_list_has_is_an_unlisted_owner(workspace, tmp_path, nvml):
    env = {**sized("3GiB", tmp_path), "CUWARDEN_SIM_NVML": nvml}
    run = run_alike(workspace, [sample("neighbour")], env, {"other_pid"})
    request = check_request("neighbour", run)
    (own,) = [r for r in run.reports if r["process"]["pid"] != run.last_line["other_pid"]]
    proof = check_incident(own, request, "held_by_unlisted_owner")["proof"]
    assert proof["unlisted_bytes"] >= run.last_line["other_bytes"] * 0.99
    assert own["device_processes"] == []


def test_a_neighbour_that_shares_no_device_is_no_cause(run_bare):
    run = run_bare([sample("neighbour")], sized("3GiB"))
    assert run.returncode == 1
    assert len(run.stderr.splitlines()) == 1 and "was served" in run.stderr
    assert run.last_line["request"]["error"] == "cudaSuccess"


def test_a_shared_device_that_cannot_be_is_a_line_from_each_process(run_bare, tmp_path):
    run = run_bare([sample("neighbour")], sized("3GiB", tmp_path / "missing"))
    assert run.returncode == 1
    *said, own = run.stderr.splitlines()
    assert len(said) == 2 and "was served" in own
    assert all("CUWARDEN_SIM_SHARED" in line and "No such file" in line for line in said)


def test_pinned_limit_asks_for_more_than_the_host_has_where_there_is_no_limit(run_both):
    run = run_both([sample("pinned_limit")], sized("3GiB"))
    if "too high" in run.own_stderr or run.last_line["limit_bytes"] is not None:
        pytest.skip("these tests run under a memory limit")
    request = check_request("pinned_limit", run)
    assert request["api"] == "cudaMallocHost" and request["device"] is None
    assert request["bytes"] > run.last_line["host_bytes"]
    check_account(run, "pinned", failed="pinned")
    proof = check_incident(run.report, request, "host_ram_exhausted")["proof"]
    assert proof["ram_bytes"] == run.last_line["host_bytes"]
    assert proof["ram_available_bytes"] < request["bytes"]


@pytest.fixture
def cgroup():
    made = Cgroup()
    yield made
    made.remove()


def test_pinned_limit_is_killed_at_its_cgroups_limit(workspace, cuwarden, cgroup):
    command = cgroup.entered_by(sample("pinned_limit"), str(MIB))
    assert workspace.run(command, sized("3GiB"), shim=False).returncode == -signal.SIGKILL
    run = workspace.run(command, sized("3GiB"))
    assert run.returncode == -signal.SIGKILL
    facts = run.last_line
    assert facts["limit_bytes"] == LIMIT
    assert facts["request"]["error"] is None  # the process was killed before the answer
    assert call_at("pinned_limit", "cudaMallocHost", facts["request"]["line"])
    assert LIMIT / 4 <= facts["live_bytes"] <= LIMIT
    (ledger,) = run.ledgers
    assert cuwarden("recover", ledger).returncode == 0
    report = only_report(workspace)
    # The kernel may kill the process in the request, or at the first write to the buffer.
    pinned = report.totals()["pinned"]
    assert pinned["live_bytes"] - facts["live_bytes"] in (0, facts["request"]["bytes"])
    assert pinned["failures"] == 0
    assert report["memory_cgroup"]["oom_kills"] == 1


@pytest.mark.parametrize("mode", FRAGMENTS)
def test_pinned_fragments_leaves_no_room_for_addresses(workspace, mode):
    run = run_alike(
        workspace,
        [sample("pinned_fragments"), mode],
        sized("3GiB"),
        {"largest_gap_bytes", "mappings", "mapped_bytes", "address_limit_bytes"},
    )
    if mode == "context":
        assert run.last_line["request"]["api"] == "cudaFree"
        assert run.last_line["request"]["error"] == OUT_OF_MEMORY
        assert run.returncode == 0
        request = {**run.last_line["request"], "device": 0}
        incident = check_incident(run.report, request, "address_space_gap")
        assert incident["asked_for"] == "context"
        return
    request = check_request("pinned_fragments", run)
    facts = run.last_line
    assert request["api"] == "cudaMallocHost"
    assert request["bytes"] < facts["host_bytes"]
    check_account(run, "pinned", failed="pinned")
    proof = check_incident(run.report, request, "address_space_gap")["proof"]
    if mode == "mappings":
        assert proof["largest_gap_bytes"] == pytest.approx(facts["largest_gap_bytes"], rel=0.01)
        assert proof["mappings"] == pytest.approx(facts["mappings"], rel=0.01)
        assert facts["largest_gap_bytes"] < request["bytes"]
        assert facts["mappings"] > 1000
    else:
        assert facts["largest_gap_bytes"] > request["bytes"]
        assert facts["address_limit_bytes"] - facts["mapped_bytes"] < request["bytes"]
        assert proof["address_space_limit_bytes"] == facts["address_limit_bytes"]
        assert proof["address_space_bytes"] == pytest.approx(facts["mapped_bytes"], rel=0.01)


@pytest.mark.parametrize(
    "command",
    [["too_large", "10"], ["batch_of_one", "2"], ["local_memory", "1"], ["oversubscribe", "50"]],
    ids=lambda command: command[0],
)
def test_a_situation_that_does_not_come_about_is_a_line_and_status_1(run_both, command):
    name, *arguments = command
    run = run_both([sample(name), *arguments], sized("3GiB"))
    assert run.returncode == 1
    assert len(run.own_stderr.splitlines()) == 1 and "was served" in run.own_stderr
    assert run.last_line["request"]["error"] == "cudaSuccess"


@pytest.mark.parametrize(
    "name",
    [*DEVICE_SAMPLES, "neighbour", "slurm_step", "pinned_limit", "pinned_fragments", "pinned_churn"],
)
def test_a_situation_without_a_device_is_a_line_and_status_1(run_both, name):
    run = run_both([sample(name)], {"CUWARDEN_SIM_DEVICES": "0"})
    assert run.returncode == 1
    assert len(run.own_stderr.splitlines()) == 1
