"""Memory that no allocation call explains: the account's figures are those that the program finds by
reading the device before and after each step."""

import re

import pytest

from shimmed import program

ROWS = ("context", "modules", "local_memory", "heap", "streams")


def account(report):
    rows = {row["item"]: row["bytes"] for row in report["accounts"]}
    (device,) = report["devices"]
    assert sum(rows.values()) == device["used_bytes"]
    return rows


def taken(run_both, what, env=None):
    run = run_both([program("implicit_takers"), what], env)
    assert run.returncode == 0, run.stderr
    return run, account(run.report), run.last_line


CHUNK = 2 << 20  # the driver takes memory for streams in pieces of this size


def close_to(expected, chunks=0):
    return pytest.approx(expected, rel=0.01, abs=chunks * CHUNK)


@pytest.mark.parametrize("what", ["all", "captured", "in_graph"])
def test_every_step_has_a_row_of_its_size(run_both, cuwarden, what):
    run, rows, facts = taken(run_both, what)
    assert rows["context"] == close_to(facts["first_context"] + facts["second_context"])
    for row in ("modules", "local_memory", "heap", "streams"):
        assert facts[row] > 0
        # The stream of a capture takes a piece, which no step of the program counts.
        assert rows[row] == close_to(facts[row], chunks=row == "streams" and what != "all")
    assert abs(rows["unexplained"]) <= sum(rows[row] for row in ROWS) / 100

    (device,) = run.report["devices"]
    assert device["local_memory_kernel"] == "deep(int*, int)"
    assert device["local_memory_kernel_thread_bytes"] == 4096
    text = cuwarden("report", run.report.path).stdout
    assert re.search(r"^  code +\d", text, re.MULTILINE) and "contexts and others" not in text
    assert "the kernel deep(int*, int): 4.0 KiB for each thread" in text


def test_the_end_of_one_of_several_contexts_lowers_their_row_by_its_memory(run_both):
    _, rows, facts = taken(run_both, "second_ended")
    explained = facts["afterwards"] - rows["unexplained"]
    assert explained == close_to(facts["afterwards"])
    assert rows["context"] == close_to(facts["first_context"])


def test_implicit_memory_ends_with_the_last_context(run_both):
    _, rows, facts = taken(run_both, "ended")
    assert rows["context"] == close_to(facts["context_afterwards"])
    assert set(rows) == {"context", "unexplained"}
    assert abs(rows["unexplained"]) <= rows["context"] / 100


def test_a_contexts_size_does_not_include_other_processes_memory(run_both):
    _, rows, facts = taken(run_both, "all", {"CUWARDEN_SIM_OTHER_PROCESS": "3GiB"})
    assert facts["first_context"] > 3 << 30
    assert rows["context"] == close_to(facts["first_context"] - (3 << 30) + facts["second_context"])
    assert rows["other_processes"] == 3 << 30
    assert abs(rows["unexplained"]) <= rows["context"] / 100


def test_memory_of_unlisted_processes_stays_unexplained(run_both):
    env = {"CUWARDEN_SIM_OTHER_PROCESS": "3GiB", "CUWARDEN_SIM_NVML": "refuse"}
    _, rows, facts = taken(run_both, "all", env)
    assert "other_processes" not in rows
    assert rows["unexplained"] == close_to(facts["first_context"])


@pytest.mark.parametrize(
    ("api", "asked_for"),
    [
        ("cuCtxSetLimit", "limit"),
        ("cuModuleLoadData", "module"),
        ("cuStreamCreate", "stream"),
        ("cuLaunchKernel", "launch"),
    ],
)
def test_a_refusal_for_lack_of_memory_is_an_incident_and_reaches_the_program(
    run_both, api, asked_for
):
    run = run_both([program("implicit_takers"), "all"], {"CUWARDEN_SIM_FAIL": f"{api}:from:1:2"})
    assert run.returncode == 3
    assert re.fullmatch(rf"line \d+: {api}\(.*\): error 2\n", run.own_stderr), run.own_stderr
    (incident,) = run.report["incidents"]
    assert (incident["api"], incident["asked_for"]) == (api, asked_for)
    assert incident["verdict"] == "implicit_memory"
    assert incident["bytes"] is None and incident["proof"]["free_bytes"] > 0
    # The call does not ask for memory, so the incident has no number of bytes.
    assert all(total["failures"] == 0 for total in run.report["totals"])


def test_any_other_failure_of_a_launch_is_no_incident(run_both):
    run = run_both([program("implicit_takers"), "all"], {"CUWARDEN_SIM_FAIL": "cuLaunchKernel:1:1"})
    assert run.returncode == 3
    assert run.report["incidents"] == []
    assert all(total["failures"] == 0 for total in run.report["totals"])


# These cases were written after the rules of the verdicts.
SHORTAGES = [
    ["launch", "local=65536"],
    ["launch", "local=20000", "room=1000", "device=1"],
    ["launch", "local=4096", "room=300", "thread=1"],
    ["launch", "local=2048", "room=10", "api=driver", "device=1", "thread=1"],
    ["launch", "local=100000", "room=3000"],
    ["heap", f"bytes={1 << 30}"],
    ["heap", f"bytes={100 << 20}", "room=50", "api=driver"],
    ["heap", f"bytes={3 << 30}", "room=2000", "device=1"],
    ["stack", "bytes=16384"],
    ["stack", "bytes=2048", "room=20", "thread=1", "api=driver"],
    ["module", f"bytes={128 << 20}"],
    ["module", f"bytes={20 << 20}", "room=10", "device=1"],
    ["module", f"bytes={2 << 30}", "room=1500", "thread=1", "api=driver"],
    ["streams", "room=4"],
    ["streams", "room=30", "device=1", "api=driver"],
    ["streams", "room=1", "thread=1"],
]
GIVEN_BACK = 414 << 20  # by the simulated GPU, as measured
ASKED_FOR = {"heap": "launch", "stack": "limit", "streams": "stream"}
FUNCTIONS = {"heap": "launch", "stack": "set_stack", "module": "load", "streams": "make_stream"}
OUT_OF_MEMORY, OUT_OF_RESOURCES = 2, 701  # 701 is the driver's answer if the heap does not fit


@pytest.mark.parametrize("command", SHORTAGES, ids="-".join)
def test_a_call_that_fails_for_implicit_memory_is_an_incident(run_both, command):
    env = {"CUWARDEN_SIM_MEMORY": "4GiB", "CUWARDEN_SIM_DEVICES": "2"}
    run = run_both([program("shortages"), *command], env)
    known = run.last_line
    of_heap = command[0] == "heap"
    assert (known["figure"], known["failures"]) == (OUT_OF_RESOURCES if of_heap else OUT_OF_MEMORY, 1)
    (incident,) = run.report["incidents"]
    assert incident["verdict"] == "implicit_memory", incident
    assert incident["asked_for"] == ASKED_FOR.get(command[0], command[0])
    needs = {"heap": known["requested_bytes"], "launch": known["requested_bytes"]}
    assert incident["bytes"] == needs.get(command[0])
    assert incident["repeats"] == 0
    assert incident["device"] == int("device=1" in command)
    # If local memory is lacking, the driver gives back memory that the context had from its start.
    given_back = GIVEN_BACK if command[0] in ("launch", "stack") else 0
    assert incident["proof"]["free_bytes"] == known["free_bytes"] + given_back
    assert incident["proof"].get("given_back_bytes", 0) == given_back
    error = "LAUNCH_OUT_OF_RESOURCES" if of_heap else "OUT_OF_MEMORY"
    assert incident["result"] == f"CUDA_ERROR_{error}"
    names = [name for name, _ in run.report.functions(incident)]
    assert names[0] == FUNCTIONS.get(command[0], command[0])
    assert all(total["failures"] == 0 for total in run.report["totals"])
    rows = {r["item"]: r["bytes"] for r in run.report["accounts"] if r["incident"] is not None}
    facts = {row["fact"]: row["value"] for row in run.report["incident_facts"]}
    assert sum(rows.values()) == facts["total_bytes"] - facts["free_bytes"]
    # All other memory is the program's own, or the context's.
    assert rows["live_device"] == known["held_beside"] + (2 << 20) * (command[0] == "launch")
    assert abs(rows["unexplained"]) <= facts["total_bytes"] / 100
