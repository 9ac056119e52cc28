"""Refused contexts and refused host memory: each gets the right verdict, with figures that the program's
own count confirms. All variations were written after the rules of the verdicts."""

import pytest

from memory_cgroup import LIMIT, Cgroup
from shimmed import program
from test_incidents import MIB, OTHERS, check_account, only_incident, option, refused

# --- contexts on a full device

CONTEXTS = [
    ["context", "room=100"],
    ["context", "room=500", "device=1"],
    ["context", "room=3", "thread=1"],
    ["context", "room=300", "api=driver"],
    ["context", "room=450", "api=driver", "device=1", "thread=1"],
]


@pytest.mark.parametrize("command", CONTEXTS, ids="-".join)
def test_a_context_is_refused_on_a_device_full_of_the_programs_own_memory(run_both, command):
    run = run_both([program("shortages"), *command], refused())
    incident = only_incident(run.report)
    assert (incident["verdict"], incident["asked_for"]) == ("device_full_own", "context"), incident
    assert incident["api"].startswith("cuCtxCreate") and incident["bytes"] is None
    assert incident["device"] == int(option(command, "device", 0))
    assert incident["proof"]["own_bytes"] == run.last_line["held_beside"]
    assert incident["proof"]["free_bytes"] == run.last_line["free_bytes"]
    assert [name for name, _ in run.report.functions(incident)][0] == "make_context"
    check_account(run.report, incident)


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("nvml", [None, "refuse", "hide_others"])
def test_a_further_context_is_refused_on_a_device_full_of_others_memory(run_both, other, nvml):
    changes = {"CUWARDEN_SIM_NVML": nvml} if nvml else {}
    run = run_both(
        [program("shortages"), "context", "room=200"],
        refused(CUWARDEN_SIM_OTHER_PROCESS=other, **changes),
    )
    held = int(other[:-3]) << (30 if other.endswith("GiB") else 20)
    incident = only_incident(run.report)
    own = run.last_line["held_beside"]
    verdict = "held_by_unlisted_owner" if nvml else "held_by_other_processes"
    # Unless other processes are listed, the context's size cannot be told apart from their memory.
    close = nvml is not None and held - own < 1 << 30
    assert incident["verdict"] in ([verdict, "device_full_own"] if close else [verdict]), incident
    if incident["verdict"] == "device_full_own":
        return
    if nvml is None:
        assert incident["proof"]["other_processes_bytes"] == held
    else:
        assert incident["proof"]["unlisted_bytes"] == pytest.approx(held, abs=1 << 30)
    check_account(run.report, incident)


@pytest.mark.parametrize("other", ["3600MiB", "3700MiB", "3800MiB", "4000MiB", "4GiB"])
@pytest.mark.parametrize("api", ["runtime", "driver"])
@pytest.mark.parametrize("nvml", [None, "refuse", "hide_others"])
def test_a_first_context_is_refused_on_a_device_full_of_others_memory(run_both, other, api, nvml):
    """Without a context, CUDA does not say how full a device is; NVML does."""
    changes = {"CUWARDEN_SIM_NVML": nvml} if nvml else {}
    run = run_both(
        [program("shortages"), "first_context", f"api={api}", "device=1"],
        refused(CUWARDEN_SIM_OTHER_PROCESS=other, **changes),
    )
    held = int(other[:-3]) << (30 if other.endswith("GiB") else 20)
    assert (run.last_line["figure"], run.last_line["failures"]) == (2, 1)
    incident = only_incident(run.report)
    assert incident["device"] == 1 and incident["asked_for"] == "context"
    assert incident["proof"].get("free_bytes") == (4 << 30) - held
    if nvml is None:
        assert incident["verdict"] == "held_by_other_processes", incident
        assert incident["proof"]["other_processes_bytes"] == held
        assert [row["used_bytes"] for row in run.report["device_processes"]] == [held]
    else:
        assert incident["verdict"] == "held_by_unlisted_owner", incident
        assert incident["proof"]["unlisted_bytes"] == pytest.approx(held, abs=1 << 30)


# --- the host's memory

HOST = [
    ["pinned"],
    ["pinned", "alloc=1", "more=1"],
    ["pinned", "api=driver", "more=100000"],
    ["pinned", "thread=1", "more=5000"],
    ["pinned", "alloc=1", "device=1", "more=20"],
    ["registered"],
    ["registered", "more=1", "thread=1"],
    ["registered", "api=driver", "more=30000", "device=1"],
]
ADDRESSES = [
    ["pinned", "by=limit", f"bytes={256 * MIB}"],
    ["pinned", "by=limit", f"bytes={64 * MIB}", "alloc=1"],
    ["pinned", "by=limit", f"bytes={500 * MIB}", "api=driver", "thread=1"],
    ["managed", "by=limit", f"bytes={4096 * MIB}", "device=1"],
    ["managed", "by=limit", f"bytes={100 * MIB}", "api=driver"],
    ["pinned", "by=gap", f"bytes={1024 * MIB}"],
    ["pinned", "by=gap", f"bytes={512 * MIB}", "alloc=1", "thread=1"],
    ["managed", "by=gap", f"bytes={2048 * MIB}"],
    ["managed", "by=gap", f"bytes={16384 * MIB}", "api=driver", "device=1"],
]
HOST_APIS = {
    ("pinned", "driver"): "cuMemHostAlloc",
    ("pinned", "runtime"): "cudaMallocHost",
    ("pinned", "alloc"): "cudaHostAlloc",
    ("registered", "driver"): "cuMemHostRegister_v2",
    ("registered", "runtime"): "cudaHostRegister",
    ("managed", "driver"): "cuMemAllocManaged",
    ("managed", "runtime"): "cudaMallocManaged",
}


def host_incident(workspace, command, **changes):
    """Runs the command bare and shimmed and returns the incident. Figures of the process's addresses may
    differ between the runs.
    """
    run = workspace.run([program("shortages"), *command], refused(**changes))
    assert run.returncode == 0, run.stderr
    assert run.last_line["failures"] == 1 and run.last_line["served"] == 0
    incident = only_incident(run.report)
    assert incident["kind"] == command[0]
    api = "alloc" if "alloc=1" in command else option(command, "api", "runtime")
    assert incident["api"] == HOST_APIS[command[0], api]
    assert incident["bytes"] == incident["proof"]["requested_bytes"]
    assert incident["bytes"] == run.last_line["requested_bytes"]
    assert incident["device"] is None or command[0] == "managed"
    names = [name for name, _ in run.report.functions(incident)]
    assert names[0] == f"is_{command[0]}"
    return run, incident


@pytest.mark.parametrize("command", HOST, ids="-".join)
def test_a_request_beyond_the_hosts_memory_exhausts_the_host(workspace, command):
    run, incident = host_incident(workspace, command)
    assert incident["verdict"] == "host_ram_exhausted", incident
    assert incident["proof"]["ram_bytes"] == run.last_line["figure"]
    assert incident["bytes"] > incident["proof"]["ram_bytes"]


@pytest.fixture
def cgroup():
    made = Cgroup()
    yield made
    made.remove()


@pytest.mark.parametrize(
    "command", [["pinned"], ["pinned", "alloc=1"], ["pinned", "api=driver", "thread=1"]], ids="-".join
)
@pytest.mark.parametrize("bytes", [LIMIT + MIB, 4 * LIMIT])
def test_a_request_beyond_the_cgroups_limit_meets_that_limit(workspace, cgroup, command, bytes):
    """A real driver that asked for too much would be killed; the simulated one refuses before."""
    env = refused(CUWARDEN_SIM_PINNED_LIMIT="8MiB")
    words = [program("shortages"), *command, f"bytes={bytes}"]
    run = workspace.run(cgroup.entered_by(*words), env)
    assert run.returncode == 0, run.stderr
    incident = only_incident(run.report)
    assert incident["verdict"] == "host_ram_exhausted", incident
    assert incident["proof"]["cgroup_limit_bytes"] == LIMIT
    assert incident["proof"]["cgroup_used_bytes"] + incident["bytes"] > LIMIT
    assert "cgroup" in incident["advice"]


@pytest.mark.parametrize("command", ADDRESSES, ids="-".join)
def test_addresses_lack_though_memory_does_not(workspace, command):
    run, incident = host_incident(workspace, command)
    assert incident["verdict"] == "address_space_gap", incident
    proof = incident["proof"]
    if "by=limit" in command:
        assert proof["address_space_limit_bytes"] == run.last_line["figure"]
        assert proof["address_space_limit_bytes"] - proof["address_space_bytes"] < incident["bytes"]
    else:
        assert proof["largest_gap_bytes"] < incident["bytes"]


@pytest.mark.parametrize(
    "command",
    [
        ["pinned", f"bytes={8 * MIB}"],
        ["pinned", f"bytes={8 * MIB}", "few=3", "alloc=1"],
        ["pinned", f"bytes={64 * MIB}", "few=12", "thread=1", "api=driver"],
        ["registered", f"bytes={8 * MIB}"],
        ["registered", f"bytes={2 * MIB}", "few=5", "api=driver"],
        ["managed", f"bytes={32 * MIB}", "device=1"],
    ],
    ids="-".join,
)
def test_the_greatest_number_of_mappings_leaves_no_address(workspace, command):
    """The process has almost as many mappings as the kernel allows.

    The real driver needs more and refuses; the simulated one needs none, so it is told to refuse.
    """
    refused = {"pinned": "cuMemHostAlloc", "registered": "cuMemHostRegister"}
    name = refused.get(command[0], "cuMemAllocManaged")
    run, incident = host_incident(
        workspace, [*command, "by=mappings"], CUWARDEN_SIM_FAIL=f"{name}:1:2,cuMemAllocHost:1:2"
    )
    assert incident["verdict"] == "address_space_gap", incident
    assert incident["proof"]["mappings"] >= incident["proof"]["max_mappings"] - 16


@pytest.mark.parametrize("command", [c for c in HOST if c[0] == "pinned"], ids="-".join)
def test_a_driver_that_has_a_limit_of_its_own_proves_nothing(workspace, command):
    small = [word for word in command if not word.startswith("more=")]
    run, incident = host_incident(
        workspace, [*small, f"bytes={32 * MIB}"], CUWARDEN_SIM_PINNED_LIMIT="16MiB"
    )
    assert incident["verdict"] == "unknown", incident
    assert incident["advice"]
