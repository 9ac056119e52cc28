"""Threads and signals that meet a request in the middle of a mesh, at a certain call of the driver: the
program goes on or ends as without the shim."""

import signal

import pytest

from reports import Report
from shimmed import killed_by, program
from test_pool import pooled
from test_spill import account_adds_up

STATUS = 7

# Functions of the driver, each with the number of its call in the mesh. The first cuMemUnmap ends the
# comparison of two addresses. Before cuMemMap, a page of blocks has no memory; before cuMemSetAccess, it
# cannot be read.
UNMAP = ("cuMemUnmap", 3)
STOPS = [("cuMemUnmap", 1), UNMAP, ("cuMemMap", 3), ("cuMemSetAccess", 3)]


def name_of_stop(stop):
    return f"{stop[0]}-{stop[1]}"


at_each_stop = pytest.mark.parametrize("stop", STOPS, ids=name_of_stop)


@pytest.fixture
def in_mesh(workspace):
    """Returns a function that runs the program in_mesh, and returns the Run and the number of allocations
    that were live before the request.
    """

    def run(how, stop, *way):
        function, call = stop
        env = pooled(CUWARDEN_MESH_PAUSE="1m", CUWARDEN_SIM_FAIL=f"{function}:*:tell")
        done = workspace.run([program("in_mesh"), how, function, call, *way], env)
        first = done.stdout.splitlines()[0]
        return done, int(first.removeprefix("live: "))

    return run


def report_of(run, name):
    (report,) = [each for each in run.reports if each["process"]["program"].endswith(f"/{name}")]
    return report


def check_served(run, live, report, answer="cudaSuccess"):
    """Checks that the request was served by the mesh, and that all bytes are right."""
    assert run.returncode == 0, run.stderr
    assert (run.last_line["request"], run.last_line["wrong"]) == (answer, 0)
    assert run.said == [] and run.ledgers == []
    (incident,) = report["incidents"]
    assert (incident["outcome"], incident["rescued_by"]) == ("rescued", "mesh")
    assert report["pool"]["meshed_pages"] > 0
    assert report["leaks"]["count"] == live + 1
    account_adds_up(report)


def check_unfinished(report, live):
    """Checks the report of a process that ended while its request was under way."""
    assert report["leaks"]["count"] == live
    assert report["records"]["complete"]
    (incident,) = report["incidents"]
    assert incident["outcome"] == "under_way"
    assert (report["rungs"][-1]["rung"], report["rungs"][-1]["outcome"]) == ("mesh", "under_way")


# --- children


@at_each_stop
@pytest.mark.parametrize("way", ["_exit", "exit"])
def test_a_child_that_is_forked_goes_on_without_the_thread_that_moves_memory(in_mesh, stop, way):
    """A child that calls exit() first finds its calls of CUDA refused, as without the shim."""
    run, live = in_mesh("fork", stop, way)
    assert run.last_line["child"] == STATUS
    check_served(run, live, run.report)


def test_a_child_that_is_forked_may_become_another_program(in_mesh):
    run, live = in_mesh("fork", UNMAP, program("allocate"))
    assert run.last_line["child"] == 0
    assert report_of(run, "allocate")["leaks"]["count"] == 3
    assert len(run.reports) == 2
    check_served(run, live, report_of(run, "in_mesh"))


def test_the_process_may_become_another_program(in_mesh, cuwarden, workspace):
    run, live = in_mesh("exec", UNMAP, program("allocate"))
    assert (run.returncode, run.said) == (0, [])
    assert run.report["process"]["program"].endswith("/allocate")
    assert run.report["leaks"]["count"] == 3
    (ledger,) = run.ledgers
    assert cuwarden("recover", ledger).returncode == 0
    (recovered,) = set(workspace.reports.iterdir()) - {run.report.path}
    check_unfinished(Report.read(recovered), live)


# --- cancelled threads


@at_each_stop
@pytest.mark.parametrize(("way", "answer"), [("deferred", "cudaSuccess"), ("asynchronous", "none")])
def test_a_thread_that_moves_memory_is_cancelled_after_its_request(in_mesh, stop, way, answer):
    """A thread of asynchronous type ends before the request returns, but after it was recorded."""
    run, live = in_mesh("cancel", stop, way)
    check_served(run, live, run.report, answer)
    assert run.last_line["cancelled"] == [True, False]


@pytest.mark.parametrize(("way", "filled"), [("deferred", True), ("asynchronous", False)])
def test_a_thread_that_waits_until_memory_was_moved_is_cancelled(in_mesh, way, filled):
    """A thread of asynchronous type ends before it submits its fill."""
    run, live = in_mesh("cancel_at_gate", UNMAP, way)
    check_served(run, live, run.report)
    assert run.last_line["cancelled"] == [False, True]
    assert run.last_line["filled"] == filled


# --- ends of the process


@pytest.mark.parametrize("way", ["exit", "_exit"])
@pytest.mark.parametrize("how", ["end", "end_at_gate", "end_after", "end_inside"])
def test_a_signal_handler_may_end_the_process(in_mesh, how, way):
    run, live = in_mesh(how, UNMAP, way)
    assert (run.returncode, run.said, run.ledgers) == (STATUS, [], [])
    process = run.report["process"]
    assert (process["end_reason"], process["exit_status"]) == (way, STATUS)
    check_unfinished(run.report, live)


@pytest.mark.parametrize("stop", [("cuMemUnmap", 1), UNMAP, ("cuMemMap", 3)], ids=name_of_stop)
def test_memory_is_no_more_moved_once_the_driver_has_ended(in_mesh, stop):
    """Another thread calls exit(), and the request goes on after the driver's exit handler."""
    run, live = in_mesh("end_without_driver", stop)
    assert (run.returncode, run.said, run.ledgers) == (STATUS, [], [])
    process = run.report["process"]
    assert (process["end_reason"], process["exit_status"]) == ("exit", STATUS)
    assert run.report["leaks"]["count"] == live
    assert [incident["outcome"] for incident in run.report["incidents"]] == ["failed"]


def test_the_records_of_a_process_that_is_killed_are_recovered(in_mesh, cuwarden, workspace):
    run, live = in_mesh("kill", UNMAP)
    assert killed_by(run, signal.SIGKILL)
    (ledger,) = run.ledgers
    assert cuwarden("recover", ledger).returncode == 0
    (recovered,) = workspace.reports.iterdir()
    check_unfinished(Report.read(recovered), live)
