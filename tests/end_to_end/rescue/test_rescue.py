"""Requests that would have failed and are served: the rung that helped, the program's result, the report."""

import json
import re
import shutil
import subprocess
import sys

import pytest

from shimmed import (
    BUILD,
    DRIVEN,
    DRIVEN_WITH_DEVICE,
    DRIVER,
    PATIENCE_S,
    only_report,
    program,
    sample,
    until,
)
from test_incidents import environment

GIB = 1 << 30


def rescued(report, rung, mode="rescue"):
    """Checks the report's only incident, and returns it with its rungs in order."""
    (incident,) = report["incidents"]
    assert (incident["outcome"], incident["rescued_by"]) == ("rescued", rung), incident
    assert incident["rescued_count"] == incident["repeats"] + 1
    assert report["pool"]["mode"] == mode
    assert report["pool"]["rescued_count"] == incident["rescued_count"]
    rungs = sorted(report["rungs"], key=lambda row: row["order"])
    assert [row["order"] for row in rungs] == list(range(1, len(rungs) + 1))
    assert {row["incident"] for row in rungs} == {incident["id"]}
    assert (rungs[-1]["rung"], rungs[-1]["outcome"]) == (rung, "served")
    assert all(row["outcome"] != "served" for row in rungs[:-1])
    assert all(total["failures"] == 0 for total in report["totals"])
    return incident, rungs


@pytest.mark.parametrize(
    "command",
    [["streams=1"], ["streams=5"], ["streams=17", "more=64"], ["streams=3", "api=driver", "thread=1"],
     ["streams=2", "device=1"], ["streams=2", "own=1"], ["streams=1", "own=1", "thread=1"],
     # Streams that the thread cannot name, or of another context.
     ["streams=2", "own=1", "freer=1"], ["streams=2", "freer=1"], ["streams=3", "elsewhere=1"]],
    ids="-".join,
)
def test_a_request_is_served_after_pending_frees_are_synchronised(workspace, cuwarden, command):
    bare = workspace.run([program("shortages"), "pending", *command], environment(), shim=False)
    assert (bare.last_line["served"], bare.last_line["failures"]) == (0, 1)
    run = workspace.run([program("shortages"), "pending", *command], environment(CUWARDEN_POOL="rescue"))
    assert (run.last_line["served"], run.last_line["failures"]) == (1, 0)
    assert run.said == [] and run.returncode == 0
    incident, rungs = rescued(run.report, "synchronise")
    assert incident["verdict"] == "pending_frees"
    assert incident["proof"]["pending_free_bytes"] == pytest.approx(run.last_line["figure"], rel=0.01)
    assert [row["rung"] for row in rungs] == ["retry", "synchronise"]
    assert run.report["pool"]["rescued_bytes"] == run.last_line["requested_bytes"]
    assert run.report.totals()["device"]["live_bytes"] == run.last_line["requested_bytes"]
    text = cuwarden("report", run.report.path).stdout
    assert "RESCUED" in text and "OUT OF MEMORY" not in text
    assert re.search(r"and was served by synchronise in [0-9.]+ .?s\n", text), text


@pytest.mark.parametrize(
    "command, settings",
    [
        (["streams"], {}),
        (["two_libraries", "register"], {}),
        (["churn"], {"CUWARDEN_MESH_PAUSE": "1m"}),
        (["adaptive_mesh"], {"CUWARDEN_POOL": "on", "CUWARDEN_MESH_PAUSE": "1m"}),
        (["too_large"], {"CUWARDEN_SPILL": "8GiB"}),
        (["neighbour", "1"], {"CUWARDEN_WAIT": "1m"}),
    ],
    ids=lambda each: each[0] if isinstance(each, list) else "",
)
def test_a_sample_frees_what_it_was_served_so_that_its_report_begins_with_the_rescue(
    workspace, tmp_path, cuwarden, command, settings
):
    name, *arguments = command
    env = {"CUWARDEN_SIM_MEMORY": "2GiB", "CUWARDEN_SIM_SHARED": tmp_path / "device", **settings}
    run = workspace.run([sample(name), *arguments], env)
    assert run.returncode == 1 and "was to fail, and was served" in run.own_stderr
    facts = run.last_line
    (report,) = [each for each in run.reports if each["process"]["pid"] != facts.get("other_pid")]
    assert cuwarden("report", report.path).stdout.startswith("RESCUED: cuwarden served 1 request")
    (incident,) = report["incidents"]
    assert (incident["outcome"], incident["bytes"]) == ("rescued", facts["request"]["bytes"])
    assert incident["stack"] not in {group["stack"] for group in report.leaks()}


def test_a_failure_at_a_call_site_that_was_served_before_has_a_cause_of_its_own(workspace, cuwarden):
    run = workspace.run([program("shortages"), "changing", "times=4"], environment(CUWARDEN_POOL="rescue"))
    assert (run.last_line["served"], run.last_line["failures"]) == (1, 3)
    served, failed = sorted(run.report["incidents"], key=lambda incident: incident["time_ns"])
    assert served["stack"] == failed["stack"]
    assert (served["outcome"], served["rescued_by"]) == ("rescued", "synchronise")
    assert (served["verdict"], served["repeats"]) == ("pending_frees", 0)
    assert (failed["outcome"], failed["rescued_by"]) == ("failed", None)
    assert (failed["verdict"], failed["repeats"]) == ("device_full_own", 2)
    assert (served["failed_count"], failed["failed_count"]) == (0, 3)
    assert served["bytes"] == served["last_bytes"] > 3 * GIB
    assert served["time_ns"] == served["last_ns"] < failed["time_ns"] < failed["last_ns"]
    # The incident's request asked for 128 MiB more than was free, and each later one for 128 MiB more.
    assert failed["last_bytes"] == run.last_line["requested_bytes"]
    assert failed["bytes"] == failed["last_bytes"] - (256 << 20)
    rungs = {
        incident["id"]: [
            (row["order"], row["rung"], row["outcome"])
            for row in run.report["rungs"]
            if row["incident"] == incident["id"]
        ]
        for incident in (served, failed)
    }
    assert rungs[served["id"]][-1][1:] == ("synchronise", "served")
    assert rungs[failed["id"]][0] == (1, "retry", "no_memory")
    assert all(outcome != "served" for _, _, outcome in rungs[failed["id"]])
    holders = {row["incident"] for row in run.report["incident_holders"]}
    assert failed["id"] in holders
    assert run.report["pool"]["rescued_count"] == 1
    assert sum(total["failures"] for total in run.report["totals"]) == 3
    text = cuwarden("report", run.report.path).stdout
    assert re.search(r"OUT OF MEMORY at ..:..:.., .* into the run: .* failed 3 times from then on .*\n.*\(device_full_own\)\n", text), text
    assert re.search(r"RESCUED: .* would have failed at ..:..:.., .* into the run: pending_frees, and was served by synch", text), text


def kill_once(process, is_time):
    until(is_time, process)
    process.kill()
    process.wait(PATIENCE_S)


def wait_of(process, cuwarden):
    """Returns the rung on which a live process waits, or None."""
    done = cuwarden("snapshot", "--output", "-", process.pid)
    rungs = json.loads(done.stdout)["rungs"] if done.returncode == 0 else []
    return rungs[-1] if rungs and rungs[-1]["rung"] == "wait" else None


def test_the_wait_of_a_process_that_was_killed_meanwhile_is_in_the_report(workspace, live, cuwarden):
    env = environment(CUWARDEN_SIM_OTHER_PROCESS="3GiB", CUWARDEN_WAIT="1000s")
    process = live(program("shortages"), "own", "room=10000", "more=900", env=env)
    waited = []

    def has_waited():
        if rung := wait_of(process, cuwarden):
            waited.append(rung["duration_ns"])
        return waited and waited[-1] > 1_000_000

    kill_once(process, has_waited)
    assert cuwarden("recover", workspace.ledger).returncode == 0
    report = only_report(workspace)
    (incident,) = report["incidents"]
    counts = [incident[f"{count}_count"] for count in ("rescued", "failed", "recovered")]
    assert (incident["repeats"], counts) == (0, [0, 0, 0])
    assert incident["verdict"] == "held_by_other_processes"
    assert report["rungs"][-1]["outcome"] == "under_way"
    # Rungs behind the one that the kill interrupted had not had their turn.
    assert {row["rung"] for row in report["rungs_left_out"]} == {"pool", "mesh", "reclaim"}
    assert all(total["failures"] == 0 for total in report["totals"])
    text = cuwarden("report", report.path).stdout
    assert re.search(r"wait [\d.]+ m?s \(under way\)\n", text) and "FAILED" not in text, text
    # The wait lasted until the kill, which came after the snapshot.
    assert report["process"]["end_ns"] >= report["rungs"][-1]["duration_ns"] >= waited[-1]
    assert incident["outcome"] == "under_way"
    assert "the request was still being tried: the program had not got an answer yet\n" in text


def test_a_thread_is_not_cancelled_by_a_wait(workspace):
    env = environment(CUWARDEN_SIM_OTHER_PROCESS="3GiB", CUWARDEN_WAIT="100ms")
    run = workspace.run([program("ending"), "cancelled_in_wait"], env)
    assert run.returncode == 0 and run.stdout == "refused: 1\ncancelled: 1\n", run.stdout


def test_a_rung_that_a_kill_interrupted_is_no_failure_of_another_incident(workspace, live, cuwarden):
    env = environment(CUWARDEN_SIM_OTHER_PROCESS="1GiB", CUWARDEN_WAIT="1000s")
    process = live(program("shortages"), "changing", "times=2", env=env)

    def second():
        done = cuwarden("snapshot", "--output", "-", process.pid)
        incidents = json.loads(done.stdout)["incidents"] if done.returncode == 0 else []
        return incidents and incidents[0]["repeats"] == 1

    kill_once(process, second)
    assert cuwarden("recover", workspace.ledger).returncode == 0
    report = only_report(workspace)
    (incident,) = report["incidents"]
    counts = [incident[f"{count}_count"] for count in ("rescued", "failed", "recovered")]
    assert (incident["outcome"], incident["repeats"], counts) == ("under_way", 1, [1, 0, 0])
    # The rung belongs to the incident during which the process was killed.
    assert incident["last_ns"] > incident["time_ns"]
    assert incident["last_bytes"] < incident["bytes"]
    text = cuwarden("report", report.path).stdout
    assert re.search(r"OUT OF MEMORY at ..:..:.., .* into the run: .* was refused 2 times from then on .*\n", text), text
    assert "1 of them was served all the same, by synchronise; the program saw 0 fail\n" in text
    assert "1 of them was still being tried: the program had not got an answer yet\n" in text


def test_a_kernel_that_runs_on_is_waited_for_and_no_longer_than_is_allowed(workspace):
    # Kernels run on until the shim waits for them, so the request comes before the short kernel ends.
    env = environment(CUWARDEN_POOL="rescue")
    command = [program("shortages"), "pending", "busy=300"]
    short = {"CUWARDEN_SIM_KERNEL_TIME": "2s", "CUWARDEN_SYNC_TIMEOUT": "1000s"}
    run = workspace.run(command, {**env, **short}, preload=DRIVEN_WITH_DEVICE)
    assert (run.last_line["served"], run.last_line["failures"]) == (1, 0)
    rescued(run.report, "synchronise")
    (waited,) = [row for row in run.report["rungs"] if row["rung"] == "synchronise"]
    assert waited["duration_ns"] > 1_900_000_000
    endless = {"CUWARDEN_SIM_KERNEL_TIME": "1000s", "CUWARDEN_SYNC_TIMEOUT": "50ms"}
    run = workspace.run(command, {**env, **endless}, preload=DRIVEN_WITH_DEVICE)
    assert (run.last_line["served"], run.last_line["failures"]) == (0, 1)
    (incident,) = [i for i in run.report["incidents"]]
    assert incident["outcome"] == "failed" and incident["rescued_by"] is None
    (waited,) = [row for row in run.report["rungs"] if row["rung"] == "synchronise"]
    assert waited["outcome"] == "timed_out" and waited["duration_ns"] >= 50_000_000


def served_after_a_wait(workspace, cuwarden, neighbour, process):
    """Returns the report and the last line of a process that waited until its neighbour had ended."""
    until(lambda: wait_of(process, cuwarden), process)
    neighbour.stdin.close()
    said, _ = process.communicate(timeout=PATIENCE_S)
    neighbour.wait(PATIENCE_S)
    facts = json.loads(said.splitlines()[-1])
    assert (facts["served"], facts["failures"]) == (1, 0)
    report = only_report(workspace)
    return rescued(report, "wait", "auto")[1]


def test_a_neighbour_that_leaves_is_waited_for(workspace, live, cuwarden, tmp_path):
    shared = tmp_path / "shared_device"
    env = environment(CUWARDEN_SIM_SHARED=shared)
    other = subprocess.Popen(
        [str(sample("neighbour")), "hold", "30"],
        env=workspace.environment(env, shim=False),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    held = int(other.stdout.readline())
    assert held > GIB
    # CUWARDEN_POOL is not set: rescues are on by default.
    process = live(
        program("shortages"), "own", "room=10000", "more=900", env={**env, "CUWARDEN_WAIT": "1000s"}
    )
    rungs = served_after_a_wait(workspace, cuwarden, other, process)
    assert [row["rung"] for row in rungs] == ["retry", "synchronise", "trim", "wait"]


# The sample's cache makes a request, empties itself when it fails, and makes the request again.
ASKS = """
import ctypes, sys
allocate = ctypes.CDLL(sys.argv[1]).tensor_cache_allocate
allocate.argtypes, allocate.restype = [ctypes.c_size_t], ctypes.c_void_p
print(allocate(2 << 30))
"""


@pytest.mark.parametrize(("name", "waits"), [("libc10_cuda.so", 2), ("libother.so", 1)])
def test_an_allocator_that_retries_by_itself_waits_at_its_retry(workspace, tmp_path, name, waits):
    library = tmp_path / name
    shutil.copy(BUILD / "samples" / "libtensor_cache.so", library)
    env = environment(CUWARDEN_SIM_OTHER_PROCESS="3GiB", CUWARDEN_WAIT="500ms")
    run = workspace.run([sys.executable, "-c", ASKS, library], env, preload=DRIVEN)
    assert (run.returncode, run.stdout) == (0, "None\n"), run.stderr
    incidents = sorted(run.report["incidents"], key=lambda incident: incident["time_ns"])
    assert [incident["outcome"] for incident in incidents] == ["failed", "failed"]
    rungs = [
        [row["rung"] for row in run.report["rungs"] if row["incident"] == incident["id"]]
        for incident in incidents
    ]
    tried = ["retry", "synchronise", "trim"]
    # After one vain wait, an equal request does not wait again until something was freed.
    assert rungs == ([tried, [*tried, "wait"]] if waits == 2 else [[*tried, "wait"], []])


# A program that holds device memory without having a context.
HOLDS = """
import ctypes, sys
driver, handle = ctypes.CDLL(sys.argv[1]), ctypes.c_uint64()
pinned_on_device_0 = (ctypes.c_int * 8)(1, 0, 1, 0)
begun = driver.cuInit(0)
print(begun, driver.cuMemCreate(ctypes.byref(handle), ctypes.c_size_t(int(sys.argv[2])), pinned_on_device_0, ctypes.c_ulonglong(0)), flush=True)
sys.stdin.read()
"""


def test_a_neighbour_of_less_than_a_context_is_waited_for(workspace, live, cuwarden, tmp_path):
    """Memory that is in use when the first context is made may belong to the neighbour."""
    shared = tmp_path / "shared_device"
    env = environment(CUWARDEN_SIM_SHARED=shared)
    other = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(DRIVER), str(300 << 20)],
        env=workspace.environment(env, shim=False),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert other.stdout.readline() == "0 0\n"
    process = live(
        program("shortages"), "own", "room=1000", "more=200", env={**env, "CUWARDEN_WAIT": "1000s"}
    )
    served_after_a_wait(workspace, cuwarden, other, process)


def test_a_wait_that_ends_without_memory_gives_the_drivers_own_error(workspace, cuwarden):
    env = environment(CUWARDEN_SIM_OTHER_PROCESS="3GiB", CUWARDEN_WAIT="200s")
    command = [program("shortages"), "own", "room=10000", "more=900"]
    run = workspace.run(command, env, preload=DRIVEN)
    assert (run.last_line["served"], run.last_line["failures"]) == (0, 1)
    (incident,) = run.report["incidents"]
    assert incident["outcome"] == "failed" and incident["verdict"] == "held_by_other_processes"
    rungs = {row["rung"]: row for row in run.report["rungs"]}
    assert rungs["wait"]["outcome"] == "timed_out"
    assert 200 <= rungs["wait"]["duration_ns"] / 1e9 < 201
    assert run.report.totals()["device"]["failures"] == 1
    text = cuwarden("report", run.report.path).stdout
    assert "OUT OF MEMORY" in text and "RESCUED" not in text
    assert re.search(r"tried: retry .*wait 3 min 20 s \(timed out\)", text), text
    assert run.said_about("CUWARDEN_WAIT", "no room for", "GPU 0", "cuwarden snapshot")
    assert run.said_about("CUWARDEN_WAIT", "GPU 0", "when the time was up") and len(run.said) == 2


# The simulated GPU's first context takes 527 MiB: the whole device less 256 MiB is never free.
@pytest.mark.parametrize(("less", "waits"), [(256, False), (1024, True)])
def test_a_request_that_the_device_can_never_serve_does_not_wait(workspace, less, waits):
    env = environment(CUWARDEN_SIM_OTHER_PROCESS="1GiB", CUWARDEN_WAIT="5s")
    run = workspace.run([program("shortages"), "larger", f"more=-{less}"], env, preload=DRIVEN)
    assert (run.last_line["served"], run.last_line["failures"]) == (0, 1)
    assert ("wait" in [row["rung"] for row in run.report["rungs"]]) == waits


@pytest.mark.parametrize(
    ("command", "verdict", "settings"),
    [(["own", "room=100", "more=300"], "device_full_own", {}),
     (["own", "room=100", "more=1500", "device=1"], "device_full_own", {"CUWARDEN_POOL": "off"}),
     (["larger", "more=700"], "larger_than_device", {}),
     (["larger", "more=1"], "larger_than_device", {"CUWARDEN_POOL": "off", "CUWARDEN_SPILL": "32GiB"})],
)
def test_the_settings_that_the_advice_names_have_the_request_served(workspace, command, verdict, settings):
    run = workspace.run([program("shortages"), *command], environment(**settings), preload=DRIVEN)
    assert (run.last_line["served"], run.last_line["failures"]) == (0, 1)
    (incident,) = run.report["incidents"]
    assert incident["verdict"] == verdict
    advised = dict(re.findall(r"(CUWARDEN_\w+)=(\w+)", incident["advice"]))
    assert advised.keys() <= {"CUWARDEN_POOL", "CUWARDEN_SPILL"} and advised, incident["advice"]
    again = workspace.run(
        [program("shortages"), *command], environment(**{**settings, **advised}), preload=DRIVEN
    )
    assert (again.last_line["served"], again.last_line["failures"]) == (1, 0)
    rescued(again.report, "spill", mode="auto")


def test_a_program_that_asks_in_vain_without_end_is_not_held_up(run_both):
    run = run_both(
        [program("shortages"), "repeats", "times=20000"], environment(CUWARDEN_POOL="rescue")
    )
    (incident,) = run.report["incidents"]
    assert incident["repeats"] == 19999 and incident["outcome"] == "failed"
    assert len(run.report["rungs"]) == 3
    assert run.report["pool"]["rescued_count"] == 0


@pytest.mark.parametrize("situation", ["slabs", "rounding", "own", "larger", "absurd", "library"])
def test_a_request_that_no_rung_helps_fails_as_without_the_shim(run_both, situation):
    run = run_both([program("shortages"), situation], environment(CUWARDEN_POOL="rescue"))
    (incident,) = run.report["incidents"]
    assert incident["outcome"] == "failed" and incident["rescued_by"] is None


@pytest.mark.parametrize(
    ("name", "value"),
    [("CUWARDEN_POOL", "yes"), ("CUWARDEN_WAIT", "soon"), ("CUWARDEN_WAIT", "30"),
     ("CUWARDEN_WAIT", "-3s"), ("CUWARDEN_WAIT", "99999999999999999999s"),
     ("CUWARDEN_WAIT", "9999999999h"), ("CUWARDEN_SYNC_TIMEOUT", "2 s")],
)
def test_a_bad_value_gives_one_line_and_the_default_is_used(workspace, name, value):
    run = workspace.run([program("shortages"), "pending"], environment(**{name: value}))
    (line,) = run.said
    assert f"{name}={value}: not accepted" in line
    assert run.report["pool"]["mode"] == "auto"
    assert (run.last_line["served"], run.last_line["failures"]) == (1, 0)


def test_requests_are_rescued_by_default_and_not_with_the_pool_off(workspace):
    run = workspace.run([program("shortages"), "pending"], environment())
    assert run.report["pool"]["mode"] == "auto" and run.last_line["served"] == 1
    env = environment(CUWARDEN_POOL="off", CUWARDEN_WAIT="1s")
    run = workspace.run([program("shortages"), "pending"], env)
    assert run.report["pool"]["mode"] == "off" and run.last_line["served"] == 0


@pytest.mark.parametrize("situation", ["larger", "absurd"])
def test_a_request_that_the_device_can_never_serve_does_not_wait(run_both, situation):
    run = run_both([program("shortages"), situation], environment(CUWARDEN_WAIT="60s"))
    assert [row["rung"] for row in run.report["rungs"]] == ["retry", "synchronise", "trim"]
