"""Reclaimers: caches that are emptied when another library's request would fail."""

import sys

import pytest

import preloaded
from framework_checks import command, needs

pytestmark = pytest.mark.alone

RESCUE = {"CUWARDEN_POOL": "rescue"}


def rescued_by(report):
    (incident,) = report["incidents"]
    assert (incident["outcome"], incident["rescued_by"]) == ("rescued", "reclaim"), incident
    (row,) = [row for row in report["rungs"] if row["outcome"] == "served"]
    print(f"{row['reclaimer']}: {row['duration_ns'] / 1e6:.1f} ms")
    return row["reclaimer"]


@pytest.mark.parametrize("options", [[], ["thread=1"]], ids="-".join)
def test_a_reclaimer_of_the_program_itself_rescues_a_request(workspace, options):
    program = preloaded.BUILD / "tests/end_to_end/programs/reclaiming"
    bare = workspace.run([program, "empties", *options], RESCUE, shim=False)
    assert (bare.last_line["served"], bare.last_line["failures"]) == (0, 1)
    run = workspace.run([program, "empties", *options], RESCUE)
    assert (run.last_line["served"], run.last_line["calls"]) == (1, 1), run.stderr
    assert run.last_line["given_back"] == run.last_line["held"]
    assert rescued_by(run.report) == "own cache"


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("nothing", "gave nothing back"),
        ("throws", "ended by an exception"),
        ("exits", "ended by an exception"),
        ("hangs", "does not return"),
    ],
)
def test_a_reclaimer_that_does_not_help_leaves_a_message_and_the_drivers_error(workspace, how, said):
    program = preloaded.BUILD / "tests/end_to_end/programs/reclaiming"
    run = workspace.run([program, how], {**RESCUE, "CUWARDEN_SYNC_TIMEOUT": "300ms"})
    assert (run.returncode, run.last_line["failures"]) == (0, 1), run.stderr
    about_reclaimer, about_request = run.said
    assert "own cache" in about_reclaimer and said in about_reclaimer
    assert "cudaMalloc" in about_request and "failed" in about_request


def test_the_cache_of_a_registered_library_rescues_the_programs_request(workspace):
    sample = preloaded.BUILD / "samples" / "two_libraries"
    plain = workspace.run([sample], RESCUE)
    assert plain.last_line["request"]["error"] == "cudaErrorMemoryAllocation"
    run = workspace.run([sample, "register"], RESCUE)
    assert run.last_line["request"]["error"] == "cudaSuccess", run.stdout
    assert rescued_by(run.report) == "tensor cache"


@needs("torch", "cupy")
@pytest.mark.parametrize("how", ["module", "setting"])
@pytest.mark.parametrize("asks", ["cupy", "torch", "raw"])
@pytest.mark.parametrize("holds", ["torch", "cupy"])
def test_a_frameworks_cache_is_emptied_for_another(workspace, holds, asks, how):
    """`python3 -m cuwarden` starts the script, or CUWARDEN_FRAMEWORKS=on brings the module into it."""
    if holds == asks:
        pytest.skip("it empties its own")
    script = command("two_caches.py", holds, asks)
    bare = workspace.run(script, shim=False)
    assert bare.stdout == "refused\n", bare.stderr
    if how == "module":
        env = {**RESCUE, "PYTHONPATH": str(preloaded.SOURCE / "tools" / "python")}
        run = workspace.run([sys.executable, "-m", "cuwarden", *script[1:]], env)
    else:
        run = workspace.run(script, {**RESCUE, "CUWARDEN_FRAMEWORKS": "on"})
    assert run.stdout == "served 14\n", run.stderr
    served = [row["reclaimer"] for row in run.report["rungs"] if row["outcome"] == "served"]
    assert served == [{"torch": "PyTorch", "cupy": "CuPy"}[holds]], run.report["rungs"]
