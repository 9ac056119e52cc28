"""Two other processes take and release memory at random on the device, while a program makes objects
for which the driver takes memory. None of the others' memory may count as the program's."""

import contextlib
import subprocess

import pytest

import preloaded
from framework_checks import TIMEOUT_S, command, needs

PROGRAMS = preloaded.BUILD / "tests" / "end_to_end" / "programs"
OBJECTS, NEIGHBOUR = PROGRAMS / "implicit_objects", PROGRAMS / "moving_neighbour"
CHUNK = 2 << 20  # the driver takes memory for such objects in pieces of this size

# The driver holds up to 15 MiB of a device that several processes use, and NVML counts it to none
# of them (measured on an H200).
OF_THE_DEVICE = 16 << 20

pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(not NEIGHBOUR.exists(), reason=f"{NEIGHBOUR} was not built"),
]


MOVING, RESTING = (("2048",), ("700",)), (("64", "resting"),)


@contextlib.contextmanager
def neighbours(workspace, arguments):
    """Runs a process for each element of `arguments`."""
    processes = []
    try:
        for own in arguments:
            process = subprocess.Popen(
                [NEIGHBOUR, *own],
                env=workspace.environment(shim=False),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            processes.append(process)
            assert process.stdout.readline() == "ready\n"
        yield
        for process in processes:
            process.stdin.close()
        assert [process.wait(preloaded.PATIENCE_S) for process in processes] == [0] * len(arguments)
    finally:
        for process in processes:
            process.kill()
            process.wait(preloaded.PATIENCE_S)


def checked_rows(run):
    """Returns the device's account. Checks that at most a hundredth of the bytes in use stays
    unexplained, or what the driver holds of the device, and that at most two chunks count twice."""
    assert run.returncode == 0, run.stderr[-3000:]
    assert run.said == []
    (device,) = run.report["devices"]
    rows = run.report.account(device)
    groups = run.report["implicit_groups"]
    print(
        device["used_bytes"],
        rows,
        [(g["item"], g["api"], g["count"], g["bytes"], g["uncertain"]) for g in groups],
    )
    assert -2 * CHUNK <= rows["unexplained"] <= max(device["used_bytes"] / 100, OF_THE_DEVICE), rows
    assert all(group["bytes"] >= 0 for group in groups)
    return rows


@pytest.mark.parametrize(("kind", "count"), [("graphs", 100), ("streams", 1000), ("modules", 50)])
def test_objects_beside_moving_processes_have_their_bytes(workspace, kind, count):
    # A device's first context may take 126 MiB more than the others (measured on an H200).
    with neighbours(workspace, RESTING):
        resting = checked_rows(workspace.run([OBJECTS, kind, count]))
    with neighbours(workspace, MOVING):
        beside = checked_rows(workspace.run([OBJECTS, kind, count]))
    for item in ("context", kind):
        assert beside[item] == pytest.approx(resting[item], rel=0.05, abs=2 * CHUNK), item
    # Both have a context, the memory that they hold, and at most eight blocks of 65 MiB. The resting
    # process has a context, too.
    others = beside["other_processes"] - resting["other_processes"]
    assert 2748 << 20 <= others <= (2748 + 2 * (8 * 65 + 1024)) << 20


@needs("torch")
@pytest.mark.parametrize("script", ["torch_training.py", "torch_graphs.py"])
def test_pytorch_beside_moving_processes_is_explained(workspace, script):
    env = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
    with neighbours(workspace, RESTING):
        resting = checked_rows(workspace.run(command(script), env, timeout_s=TIMEOUT_S))
    with neighbours(workspace, MOVING):
        beside = checked_rows(workspace.run(command(script), env, timeout_s=TIMEOUT_S))
    implicit = ("context", "modules", "graphs", "streams", "local_memory", "heap")
    found, expected = (sum(rows.get(item, 0) for item in implicit) for rows in (beside, resting))
    assert found == pytest.approx(expected, rel=0.05, abs=8 * CHUNK)
