"""Devices that share their memory with the host. The driver counts the host's page cache as used, so a request
can fail although the kernel would drop the cache for it."""

from pathlib import Path

import pytest

from shimmed import program

MIB, GIB = 1 << 20, 1 << 30


def available_bytes():
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))


def integrated(cache="2GiB", **changes):
    if available_bytes() < 5 * GIB:
        pytest.skip("the host has no more memory than the device's cache")
    return {
        "CUWARDEN_SIM_MEMORY": "4GiB",
        "CUWARDEN_POOL": "off",
        "CUWARDEN_SIM_INTEGRATED": cache,
        **changes,
    }


def only_incident(run):
    assert run.report["tool"]["complete"] is True, run.report["tool"]
    (incident,) = run.report["incidents"]
    return incident


def account_of(run, incident):
    return {
        row["item"]: row["bytes"] for row in run.report["accounts"] if row["incident"] == incident["id"]
    }


def test_the_page_cache_is_to_blame_if_the_request_would_fit_without_it(run_both, cuwarden):
    run = run_both([program("shortages"), "own", "room=600", "more=100"], integrated())
    incident = only_incident(run)
    assert incident["verdict"] == "held_by_page_cache", incident
    proof = incident["proof"]
    assert proof["free_bytes"] == run.last_line["free_bytes"] < run.last_line["requested_bytes"]
    assert proof["page_cache_bytes"] == pytest.approx(2 * GIB, abs=600 * MIB)
    assert proof["ram_available_bytes"] > proof["page_cache_bytes"]
    account = account_of(run, incident)
    assert account["page_cache"] == proof["page_cache_bytes"]
    facts = {row["fact"]: row["value"] for row in run.report["incident_facts"]}
    assert sum(account.values()) == facts["total_bytes"] - facts["free_bytes"]
    assert facts["integrated"] == 1
    assert "drop_caches" in incident["advice"]
    shown = cuwarden("report", run.report.path).stdout
    assert "held_by_page_cache" in shown and " · page cache " in shown


def test_the_page_cache_is_not_to_blame_if_the_request_would_not_fit_without_it(run_both):
    run = run_both([program("shortages"), "own", "room=600", "more=1000"], integrated(cache="200MiB"))
    assert only_incident(run)["verdict"] == "device_full_own"


def test_a_request_for_which_the_page_cache_would_make_room_does_not_wait_for_other_processes(workspace):
    env = integrated(CUWARDEN_POOL="auto", CUWARDEN_WAIT="20s")
    run = workspace.run([program("shortages"), "own", "room=600", "more=100"], env)
    incident = only_incident(run)
    assert incident["verdict"] == "held_by_page_cache", incident
    reasons = {row["rung"]: row["reason"] for row in run.report["rungs_left_out"]}
    assert reasons["wait"] == "page_cache"
    assert "wait" not in [row["rung"] for row in run.report["rungs"]]


def test_a_device_with_memory_of_its_own_has_no_page_cache(run_both):
    env = integrated(CUWARDEN_SIM_INTEGRATED=None, CUWARDEN_SIM_OTHER_PROCESS="2GiB")
    run = run_both([program("shortages"), "own", "room=600", "more=100"], env)
    incident = only_incident(run)
    assert incident["verdict"] != "held_by_page_cache"
    assert "page_cache" not in account_of(run, incident)
    assert "integrated" not in {row["fact"] for row in run.report["incident_facts"]}
