"""Devices whose use is restricted: by the compute mode, to a slice (MIG), by a quota (MPS), or by a limit of
the cgroup. A verdict names the restriction with its proof, and no verdict names one without."""

import pytest

from memory_cgroup import own_paths

from shimmed import program
from test_rungs_left_out import left_out

MIB, GIB = 1 << 20, 1 << 30
MODE = "CUWARDEN_SIM_COMPUTE_MODE"
LIMIT = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"


def environment(**changes):
    return {"CUWARDEN_SIM_MEMORY": "4GiB", "CUWARDEN_SIM_DEVICES": "2", "CUWARDEN_POOL": "off", **changes}


def only_incident(run):
    assert run.report["tool"]["complete"] is True, run.report["tool"]
    (incident,) = run.report["incidents"]
    return incident


def facts_of(report):
    return {row["fact"]: row["value"] for row in report["incident_facts"]}


# --- compute mode

FIRST = [["first_context", "api=runtime"], ["first_context", "api=driver"], ["first_context", "device=1"]]


@pytest.mark.parametrize("command", FIRST, ids="-".join)
@pytest.mark.parametrize("code", [46, 999])
def test_a_prohibited_device_is_reported_as_prohibited(run_both, cuwarden, command, code):
    env = environment(**{MODE: "prohibited"})
    # The driver's answer for a prohibited device is 999 or 46, by its version.
    if code == 46:
        env["CUWARDEN_SIM_FAIL"] = "cuCtxCreate:*:46,cuDevicePrimaryCtxRetain:*:46"
    run = run_both([program("shortages"), *command], env)
    assert (run.last_line["figure"], run.last_line["failures"]) == (code, 1)
    incident = only_incident(run)
    assert incident["verdict"] == "device_restricted", incident
    assert incident["asked_for"] == "context" and incident["bytes"] is None
    assert incident["device"] == int("device=1" in command)
    assert incident["result"] == (
        "CUDA_ERROR_DEVICE_UNAVAILABLE" if code == 46 else "CUDA_ERROR_UNKNOWN"
    )
    assert incident["proof"] == {"compute_mode": "prohibited"}
    assert set(left_out(run.report).values()) == {("compute_mode", None)}
    assert facts_of(run.report)["compute_mode"] == 2
    assert "nvidia-smi -c" in incident["advice"]
    # No memory was lacking, so no failure is counted and no holder is named.
    assert all(total["failures"] == 0 for total in run.report["totals"])
    assert run.report["device_processes"] == run.report["incident_holders"] == []
    shown = cuwarden("report", run.report.path).stdout
    assert shown.startswith("REFUSED at ") and "OUT OF MEMORY" not in shown
    assert "device_restricted" in shown and "compute mode prohibited" in shown


@pytest.mark.parametrize("command", FIRST, ids="-".join)
@pytest.mark.parametrize("nvml", [None, "refuse"])
def test_an_exclusive_device_in_use_by_another_process_is_reported_as_exclusive(run_both, command, nvml):
    env = environment(**{MODE: "exclusive_process", "CUWARDEN_SIM_OTHER_PROCESS": "1GiB"})
    if nvml:
        env["CUWARDEN_SIM_NVML"] = nvml
    run = run_both([program("shortages"), *command], env)
    assert run.last_line["figure"] == 46
    incident = only_incident(run)
    assert incident["verdict"] == "device_restricted", incident
    assert incident["proof"]["compute_mode"] == "exclusive_process"
    processes = [(row["pid"], row["used_bytes"]) for row in run.report["device_processes"]]
    assert processes == ([] if nvml else [(1, GIB)])
    assert incident["proof"].get("other_processes_bytes") == (None if nvml else GIB)


@pytest.mark.parametrize("thread", ["0", "1"])
def test_an_exclusive_device_takes_no_second_context_of_the_program_either(run_both, thread):
    env = environment(**{MODE: "exclusive_process"})
    run = run_both([program("shortages"), "context", "room=3000", f"thread={thread}"], env)
    assert run.last_line["figure"] == 46
    incident = only_incident(run)
    assert incident["verdict"] == "device_restricted", incident
    assert incident["proof"]["compute_mode"] == "exclusive_process"
    assert run.report["device_processes"] == []
    # The program's own context is in use, and has its account.
    assert facts_of(run.report)["free_bytes"] == run.last_line["free_bytes"]


def test_an_exclusive_device_that_is_free_is_used_as_any_other(run_both):
    env = environment(**{MODE: "exclusive_process"})
    run = run_both([program("shortages"), "own"], env)
    assert only_incident(run)["verdict"] == "device_full_own"


@pytest.mark.parametrize("code", [46, 999, 101, 719])
@pytest.mark.parametrize("mode", ["default", "exclusive_process"])
def test_a_context_that_is_refused_for_another_reason_is_no_incident(run_both, code, mode):
    if (code, mode) == (46, "exclusive_process"):
        pytest.skip("that is the mode's")
    fail = f"cuCtxCreate:*:{code},cuDevicePrimaryCtxRetain:*:{code}"
    env = environment(**{MODE: mode, "CUWARDEN_SIM_FAIL": fail})
    for api in ("runtime", "driver"):
        run = run_both([program("shortages"), "first_context", f"api={api}"], env)
        assert run.last_line["figure"] == code
        assert run.reports == [] or run.report["incidents"] == []


# --- a slice


def sliced(whole="80GiB", **changes):
    return environment(CUWARDEN_SIM_MIG=whole, **changes)


@pytest.mark.parametrize("more", ["1", "100", "5000", "70000"])
@pytest.mark.parametrize("how", [["device=0"], ["device=1", "api=driver"]], ids="-".join)
def test_a_slice_is_to_blame_if_the_whole_device_could_serve_the_request(run_both, cuwarden, more, how):
    run = run_both([program("shortages"), "larger", f"more={more}", *how], sliced())
    incident = only_incident(run)
    assert incident["verdict"] == "device_restricted", incident
    assert incident["proof"] == {
        "slice": "Simulated GPU MIG 1g.5gb",
        "total_bytes": 4 * GIB,
        "whole_device_bytes": 80 * GIB,
        "requested_bytes": run.last_line["requested_bytes"],
    }
    shown = cuwarden("report", run.report.path).stdout
    assert shown.startswith("OUT OF MEMORY at ") and "a slice (MIG) of 4.0 GiB" in shown


@pytest.mark.parametrize("more", ["4097", "100000"])
def test_a_request_larger_than_the_whole_device_could_never_fit(run_both, more):
    run = run_both([program("shortages"), "larger", f"more={more}"], sliced("8GiB"))
    incident = only_incident(run)
    assert incident["verdict"] == "larger_than_device", incident
    assert incident["proof"]["whole_device_bytes"] == 8 * GIB


def test_a_slice_is_named_even_if_the_whole_device_cannot_be_seen(run_both):
    run = run_both(
        [program("shortages"), "larger"], sliced(CUWARDEN_SIM_NVML="refuse")
    )
    incident = only_incident(run)
    assert incident["verdict"] == "larger_than_device", incident
    assert "whole_device_bytes" not in incident["proof"]
    assert incident["proof"]["slice"] == "Simulated GPU MIG 1g.5gb"
    assert "slice (MIG)" in incident["advice"]


@pytest.mark.parametrize("other", [None, "3400MiB"])
def test_a_slice_that_is_full_is_as_any_other_device(run_both, other):
    env = sliced(CUWARDEN_SIM_OTHER_PROCESS=other) if other else sliced()
    run = run_both([program("shortages"), "own", *(["room=10000", "more=900"] if other else [])], env)
    incident = only_incident(run)
    assert incident["verdict"] == ("held_by_other_processes" if other else "device_full_own")
    assert len(run.report["device_processes"]) == bool(other)


# --- a quota


@pytest.mark.parametrize(
    ("limit", "command"),
    [
        ("0=2G", ["own", "room=2300", "more=-1800"]),
        ("0=1024M,1=3G", ["own", f"bytes={8 * MIB}", "room=3200", "more=-2500"]),
        ("1=2GB", ["own", "device=1", "room=2300", "more=-1500", "thread=1"]),
        ("0=1500MB", ["own", "bytes=1048576", "room=2800", "more=-2000", "api=driver"]),
        ("0=3G", ["own", f"bytes={5 * MIB // 2}", "room=1300", "more=-900"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value[1:]),
)
def test_a_quota_that_the_request_would_pass_is_to_blame(run_both, limit, command):
    env = environment(**{LIMIT: limit, "CUWARDEN_SIM_MPS": "1"})
    run = run_both([program("shortages"), *command], env)
    known = run.last_line
    incident = only_incident(run)
    assert incident["verdict"] == "device_restricted", incident
    proof = incident["proof"]
    assert proof["own_bytes"] == known["figure"]
    assert proof["free_bytes"] == known["free_bytes"] > known["requested_bytes"]
    assert proof["held_bytes"] + proof["requested_bytes"] > proof["mps_limit_bytes"]
    assert proof["held_bytes"] <= proof["mps_limit_bytes"]
    assert facts_of(run.report)["mps_limit_bytes"] == proof["mps_limit_bytes"]
    assert LIMIT in incident["advice"]
    variables = {row["name"]: row["value"] for row in run.report["environment"]}
    assert variables[LIMIT] == limit


def test_a_quota_that_is_not_enforced_is_not_to_blame(run_both):
    env = environment(**{LIMIT: "0=1G"})
    run = run_both([program("shortages"), "own"], env)
    assert only_incident(run)["verdict"] == "device_full_own"


@pytest.mark.parametrize("limit", ["1=1G", "nonsense", "0=", "0=99999999999999999999999G", ""])
def test_a_quota_that_is_of_another_device_or_nonsense_proves_nothing(run_both, limit):
    env = environment(**{LIMIT: limit, "CUWARDEN_SIM_FAIL": "cuMemAlloc_v2:1:2"})
    run = run_both([program("shortages"), "enough"], env)
    incident = only_incident(run)
    assert incident["verdict"] == "unknown", incident
    assert "mps_limit_bytes" not in facts_of(run.report)


# --- a limit of the cgroup


def limited(limit="2GiB", version="13040", **changes):
    if "" not in own_paths():
        pytest.skip("these limits are for cgroups of version 2")
    return environment(
        **{"CUWARDEN_SIM_CGROUP_LIMIT": limit, "CUWARDEN_SIM_DRIVER_VERSION": version, **changes}
    )


@pytest.mark.parametrize("more", ["100", "3000"])
def test_a_limit_of_the_cgroup_that_the_request_would_pass_is_to_blame(run_both, cuwarden, more):
    """A request of 3000 MiB more than the limit seems larger than the device, too: the driver shows the limit
    as the device's size."""
    run = run_both([program("shortages"), "own", f"more={more}"], limited())
    incident = only_incident(run)
    assert incident["verdict"] == "device_restricted", incident
    proof = incident["proof"]
    assert proof["cgroup_device_limit_bytes"] == 2 * GIB
    assert proof["own_bytes"] <= proof["cgroup_device_used_bytes"] <= 2 * GIB
    assert proof["cgroup_device_used_bytes"] + proof["requested_bytes"] > 2 * GIB
    assert proof["free_bytes"] == run.last_line["free_bytes"]
    assert facts_of(run.report)["cgroup_device_limit_bytes"] == 2 * GIB
    assert "nvidia-smi memory-limits" in incident["advice"]
    assert "may have 2.0 GiB of this device" in cuwarden("report", run.report.path).stdout


def test_without_a_limit_of_the_cgroup_the_program_itself_is_to_blame(run_both):
    run = run_both([program("shortages"), "own"], limited(limit="0"))
    assert only_incident(run)["verdict"] == "device_full_own"
    assert "cgroup_device_limit_bytes" not in facts_of(run.report)


def test_a_driver_without_limits_of_cgroups_is_not_asked_for_them(run_both):
    run = run_both([program("shortages"), "own"], limited(version="13030"))
    assert only_incident(run)["verdict"] != "device_restricted"
    assert "cgroup_device_limit_bytes" not in facts_of(run.report)
