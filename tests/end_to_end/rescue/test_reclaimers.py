"""Reclaimers, the program's functions that give memory back: when they are called, and the results."""

import subprocess
import sys

import pytest

from shimmed import BUILD, DRIVEN, SOURCE, program, sample
from test_incidents import environment
from test_rescue import rescued
from test_rungs_left_out import left_out

RESCUE = environment(CUWARDEN_POOL="rescue")
RECLAIMING = program("reclaiming")


def reclaims(report):
    return [row for row in report["rungs"] if row["rung"] == "reclaim"]


@pytest.mark.parametrize("options", [[], ["thread=1"], ["modules=libnobody.so"]], ids="-".join)
def test_a_cache_of_the_programs_own_is_emptied_where_a_request_would_fail(workspace, cuwarden, options):
    bare = workspace.run([RECLAIMING, "empties", *options], RESCUE, shim=False)
    assert (bare.last_line["registered"], bare.last_line["failures"]) == (0, 1)
    run = workspace.run([RECLAIMING, "empties", *options], RESCUE)
    facts = run.last_line
    assert (facts["served"], facts["failures"], facts["calls"]) == (1, 0, 1)
    assert (facts["device"], facts["asked_for"]) == (0, facts["requested_bytes"])
    assert facts["given_back"] == facts["held"] > 0
    assert facts["signals_are_held"] and run.said == []
    _, rungs = rescued(run.report, "reclaim")
    assert [row["rung"] for row in rungs] == ["retry", "synchronise", "trim", "reclaim"]
    assert [row["reclaimer"] for row in rungs] == [None, None, None, "own cache"]
    # The memory that was given back was recorded as freed.
    totals = run.report.totals()["device"]
    assert totals["live_bytes"] == facts["requested_bytes"]
    shown = cuwarden("report", run.report.path).stdout
    assert "and was served by reclaim (own cache) in " in shown


def test_without_rescues_no_reclaimer_is_called(workspace):
    run = workspace.run([RECLAIMING, "empties"], environment(CUWARDEN_POOL="off"))
    assert (run.last_line["failures"], run.last_line["calls"]) == (1, 0)
    assert run.last_line["registered"] > 0 and run.said == []


def test_a_program_without_recording_registers_no_reclaimer(workspace):
    run = workspace.run([RECLAIMING, "empties"], {**RESCUE, "CUWARDEN_ENABLED": "0"})
    assert (run.last_line["registered"], run.last_line["failures"]) == (0, 1)


def test_reclaimers_get_device_minus_one_for_page_locked_memory(workspace):
    run = workspace.run([RECLAIMING, "empties_host"], {**RESCUE, "CUWARDEN_SIM_PINNED_LIMIT": "1GiB"})
    facts = run.last_line
    assert (facts["served"], facts["device"], facts["given_back"]) == (1, -1, facts["held"])
    (row,) = reclaims(run.report)
    assert row["outcome"] == "served"


@pytest.mark.parametrize(
    ("how", "outcome", "said"),
    [
        ("nothing", "nothing_given_back", "gave nothing back"),
        ("throws", "failed", "ended by an exception"),
        ("exits", "failed", "ended by an exception"),
        ("hangs", "timed_out", "does not return"),
    ],
)
def test_a_reclaimer_that_does_not_help_gives_a_line_and_the_drivers_own_error(workspace, how, outcome, said):
    # The reclaimer that hangs lets 100 ms pass. Another one takes none of the driven time.
    env = {**RESCUE, "CUWARDEN_SYNC_TIMEOUT": "100ms"}
    run = workspace.run([RECLAIMING, how, "times=3"], env, preload=DRIVEN)
    assert (run.returncode, run.last_line["failures"]) == (0, 3)
    assert run.said_about("own cache", said) and len(run.said) == 1
    assert how != "hangs" or run.said_about("after 100.")
    (row,) = reclaims(run.report)
    assert (row["outcome"], row["reclaimer"]) == (outcome, "own cache")
    (incident,) = run.report["incidents"]
    assert (incident["outcome"], incident["rescued_by"]) == ("failed", None)
    if how == "hangs":
        assert run.last_line["calls"] == 1, "it is left alone while it hangs"
        assert row["duration_ns"] >= 100_000_000


def test_a_slow_reclaimer_is_named_with_its_time(workspace):
    run = workspace.run([RECLAIMING, "tarries"], {**RESCUE, "CUWARDEN_SYNC_TIMEOUT": "100s"}, preload=DRIVEN)
    assert run.last_line["served"] == 1
    assert run.said_about("reclaimer own cache took 1.2 s, and") and len(run.said) == 1
    (row,) = reclaims(run.report)
    assert row["outcome"] == "served" and row["duration_ns"] >= 1.2e9


def test_the_next_reclaimer_is_called_after_one_that_did_not_help(workspace):
    run = workspace.run([RECLAIMING, "empties", "beside=1"], RESCUE)
    assert (run.last_line["served"], run.last_line["beside"], run.last_line["calls"]) == (1, 1, 1)
    assert [(row["reclaimer"], row["outcome"]) for row in reclaims(run.report)] == [
        ("beside", "nothing_given_back"),
        ("own cache", "served"),
    ]


def test_a_reclaimers_own_refused_request_calls_no_reclaimer(workspace):
    run = workspace.run([RECLAIMING, "asks"], RESCUE)
    assert run.last_line["asked_in_vain"] and run.last_line["calls"] == 1
    assert run.last_line["served"] == 1
    (failed,) = [each for each in run.report["incidents"] if each["outcome"] == "failed"]
    assert set(left_out(run.report, failed).values()) == {("in_reclaimer", None)}


def test_a_reclaimer_may_unregister_itself(workspace):
    run = workspace.run([RECLAIMING, "unregisters"], RESCUE)
    assert (run.returncode, run.last_line["served"]) == (0, 1), run.stderr


def test_each_registration_that_is_not_accepted_gives_one_line(workspace):
    run = workspace.run([RECLAIMING, "bad"], RESCUE)
    assert run.last_line["registered"] == -1  # one of 17 was refused: there is room for 16
    lines = [line for line in run.said if "not registered" in line]
    assert len(lines) == 5, run.stderr
    for part in ("longer than 63", "longer than 255", "name is missing", "is null", "16 already"):
        assert run.said_about("not registered", part)
    # Each registered reclaimer has nothing to give back.
    assert len(run.said) == 5 + 16 and run.last_line["beside"] == 16


def test_during_a_capture_no_reclaimer_is_called(workspace):
    run = workspace.run([RECLAIMING, "empties", "capture=open"], RESCUE)
    assert (run.last_line["failures"], run.last_line["calls"]) == (1, 0)
    assert [row["outcome"] for row in reclaims(run.report)] == ["unsafe"]


@pytest.mark.parametrize("end", ["ended", "destroyed"])
def test_after_a_capture_reclaimers_are_called_again(workspace, end):
    run = workspace.run([RECLAIMING, "empties", f"capture={end}"], RESCUE)
    assert (run.last_line["served"], run.last_line["calls"]) == (1, 1)


@pytest.mark.parametrize("depth", ["0", "1"])
def test_reclaimers_do_not_depend_on_the_recorded_stack_depth(workspace, depth):
    run = workspace.run([RECLAIMING, "empties"], {**RESCUE, "CUWARDEN_STACK_DEPTH": depth})
    assert (run.last_line["served"], run.last_line["calls"]) == (1, 1)
    run = workspace.run(
        [RECLAIMING, "empties", "modules=reclaiming"], {**RESCUE, "CUWARDEN_STACK_DEPTH": depth}
    )
    assert (run.last_line["failures"], run.last_line["calls"]) == (1, 0)


def test_no_reclaimer_is_called_for_a_stack_that_ends_at_undescribed_code(workspace):
    run = workspace.run([RECLAIMING, "empties", "jit=1"], RESCUE)
    assert (run.last_line["failures"], run.last_line["calls"]) == (1, 0)
    assert [row["outcome"] for row in reclaims(run.report)] == ["unsafe"]


def test_a_thread_that_may_hold_the_caches_lock_does_not_call_its_reclaimer(workspace):
    run = workspace.run([RECLAIMING, "empties", "modules=libother.so,reclaiming,libmore.so"], RESCUE)
    assert (run.last_line["failures"], run.last_line["calls"]) == (1, 0)


# --- the sample


def test_two_libraries_are_served_once_the_ones_cache_can_be_emptied(workspace, cuwarden):
    plain = workspace.run([sample("two_libraries")], RESCUE)
    assert plain.last_line["request"]["error"] == "cudaErrorMemoryAllocation"
    run = workspace.run([sample("two_libraries"), "register"], RESCUE)
    assert run.last_line["request"]["error"] == "cudaSuccess", run.stdout
    assert run.last_line["cache_idle_bytes"] == 0
    incident, rungs = rescued(run.report, "reclaim")
    assert incident["verdict"] == "held_by_framework"
    assert rungs[-1]["reclaimer"] == "tensor cache"
    assert "RESCUED" in cuwarden("report", run.report.path).stdout


# The library with the cache makes the request itself, and empties its cache under its own lock.
LIBRARY_ASKS = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
library.tensor_cache_allocate.argtypes = [ctypes.c_size_t]
library.tensor_cache_allocate.restype = ctypes.c_void_p
library.tensor_cache_release.argtypes = [ctypes.c_void_p]
function = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_int, ctypes.c_size_t, ctypes.c_void_p)
called = []
def empty(device, wanted, argument):
    called.append(device)
    library.tensor_cache_empty()
    return 1
empty = function(empty)
register = ctypes.CDLL(None).cuwarden_1_register_reclaimer
assert register(b"tensor cache", b"libtensor_cache.so", empty, None) > 0
library.tensor_cache_release(library.tensor_cache_allocate(3 << 30))
print(library.tensor_cache_allocate(55 << 26) is not None, called)
"""


def test_a_request_by_the_cache_itself_calls_no_reclaimer(workspace):
    library = BUILD / "samples" / "libtensor_cache.so"
    run = workspace.run([sys.executable, "-c", LIBRARY_ASKS, library], RESCUE)
    assert (run.returncode, run.stdout) == (0, "True []\n"), run.stderr
    (incident,) = run.report["incidents"]
    assert incident["outcome"] == "recovered_by_caller"
    assert [row["outcome"] for row in reclaims(run.report)] == ["unsafe"]


# --- the header


@pytest.mark.parametrize(
    "compiler", [["cc", "-std=c99"], ["cc", "-std=c11"], ["c++", "-std=c++11"], ["c++", "-std=c++20"]]
)
def test_the_header_compiles_and_works_alone(tmp_path, compiler):
    source = tmp_path / ("use.c" if compiler[0] == "cc" else "use.cpp")
    source.write_text(
        '#include <cuwarden.h>\n'
        "static size_t none(int device, size_t bytes, void *argument) {\n"
        "  (void)device, (void)bytes, (void)argument;\n  return 0;\n}\n"
        "int main(void) {\n"
        '  int number = cuwarden_register_reclaimer("none", NULL, none, NULL);\n'
        "  return number != 0 || cuwarden_unregister_reclaimer(number) != -1;\n}\n"
    )
    strict = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", f"-I{SOURCE / 'include'}"]
    built = tmp_path / "use"
    subprocess.run([*compiler, *strict, source, "-o", built, "-ldl"], check=True)
    assert subprocess.run([built]).returncode == 0  # without cuwarden, the functions do nothing
