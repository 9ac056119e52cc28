"""Fixtures for programs under the shim. Meson gives the build folder in END_TO_END_BUILD."""

import functools
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

import shimmed
import tmux_screen
from standstill import pytest_configure, pytest_runtest_protocol, pytest_terminal_summary  # noqa: F401


sys.path.append(str(shimmed.SOURCE / "tests" / "export_consumers"))


def pytest_report_header(config):
    return f"build folder: {shimmed.BUILD}"


@pytest.fixture
def workspace(tmp_path):
    """Returns the test's own folders for programs, reports and ledgers."""
    made = shimmed.Workspace(tmp_path)
    yield made
    for process in made.started:
        process.kill()
        process.wait(shimmed.PATIENCE_S)
        process.stdout.close()


@pytest.fixture
def shared():
    """Returns a Workspace that all users of the machine can reach.

    The folders are not below pytest's own, which each start of pytest closes to other users.
    """
    with tempfile.TemporaryDirectory(prefix="cuwarden-test-") as folder:
        os.chmod(folder, 0o755)
        made = shimmed.Workspace(Path(folder))
        for part in (made.work, made.reports, made.ledger):
            part.chmod(0o1777)
        yield made


@pytest.fixture
def run_shimmed(workspace):
    """Returns a function that runs a program under the shim and returns a Run."""
    return workspace.run


@pytest.fixture
def run_bare(workspace):
    """Returns a function that runs a program without the shim on the simulated GPU, and returns a Run."""

    def run(command, env=None, **how):
        return workspace.run(command, env, shim=False, **how)

    return run


@pytest.fixture
def run_both(workspace):
    """Returns a function that runs a program bare and under the shim.

    The function checks that output and status are equal, and returns the Run under the shim.
    """
    return workspace.run_both


@pytest.fixture
def cuwarden(workspace):
    """Returns a function that runs the command `cuwarden` with the given arguments."""
    return functools.partial(shimmed.cuwarden, workspace)


@pytest.fixture
def live(workspace):
    """Returns a function that starts a program under the shim and returns its process.

    The program runs beside the test, and is killed at the test's end.
    """

    def begin(*command, env=None, **popen):
        return shimmed.start(workspace, command, env, **popen)

    return begin


@pytest.fixture
def screen(workspace):
    """Returns a function that runs the command `cuwarden` in a terminal and returns a Screen."""
    if shutil.which("tmux") is None:
        pytest.skip("no tmux")
    opened = []

    def begin(*arguments, through=()):
        opened.append(tmux_screen.Screen(workspace, *arguments, through=through))
        return opened[-1]

    yield begin
    for each in opened:
        each.close()


@pytest.fixture
def growing(live):
    """Returns the process of a running program with three functions that allocate.

    One has the most live bytes, one the fastest growth, one the most allocations.
    """
    process = live(shimmed.program("growing"))
    assert process.stdout.readline() == "ready\n"
    return process
