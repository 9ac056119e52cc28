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
        process.wait()
        process.stdout.close()


@pytest.fixture
def shared():
    """Returns folders that all users can reach. They are not below pytest's own folder: each start of
    pytest closes that to other users.
    """
    with tempfile.TemporaryDirectory(prefix="cuwarden-test-") as folder:
        os.chmod(folder, 0o755)
        made = shimmed.Workspace(Path(folder))
        for part in (made.work, made.reports, made.ledger):
            part.chmod(0o1777)
        yield made


@pytest.fixture
def run_shimmed(workspace):
    """Runs a program under the shim; returns its output, status, reports and leftovers."""
    return workspace.run


@pytest.fixture
def run_bare(workspace):
    """Runs a program without the shim, on the simulated GPU."""

    def run(command, env=None, **how):
        return workspace.run(command, env, shim=False, **how)

    return run


@pytest.fixture
def run_both(workspace):
    """Runs a program bare and under the shim, and checks that its output and status are equal."""
    return workspace.run_both


@pytest.fixture
def cuwarden(workspace):
    """Runs the command."""
    return functools.partial(shimmed.cuwarden, workspace)


@pytest.fixture
def live(workspace):
    """Starts a program under the shim beside the test; the program is ended with the test."""

    def begin(*command, env=None, **popen):
        return shimmed.start(workspace, command, env, **popen)

    return begin


@pytest.fixture
def screen(workspace):
    """Runs the command in a terminal of its own."""
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
    """A program in which one function leads in live bytes, one in growth, one in allocations."""
    process = live(shimmed.program("growing"))
    assert process.stdout.readline() == "ready\n"
    return process
