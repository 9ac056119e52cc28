"""A program or a preloaded library may wrap functions of libc that the shim uses. Its wrapper looks up the
function behind it when it is first called, and this lookup goes through the shim's dlsym.
"""

import os

import pytest

from shimmed import COMMAND, DRIVER, PROGRAMS, RUNTIME, SHIM, program

WRAPPERS = PROGRAMS / "wrapped_libc" / "libwrapped_libc.so"
WRAPPING_PROGRAM = PROGRAMS / "wrapped_libc" / "wraps_libc"


def preloaded(*libraries):
    return {"LD_PRELOAD": ":".join(map(str, [*libraries, DRIVER, RUNTIME]))}


ORDERS = {
    "before_the_shim": ([program("allocate"), "3"], preloaded(WRAPPERS, SHIM)),
    "behind_the_shim": ([program("allocate"), "3"], preloaded(SHIM, WRAPPERS)),
    "in_the_program": ([WRAPPING_PROGRAM, "3"], preloaded(SHIM)),
}


@pytest.mark.parametrize("where", ORDERS)
def test_wrappers_of_libc_neither_stop_the_program_nor_are_called_by_the_shim(workspace, where):
    command, env = ORDERS[where]
    run = workspace.run(command, env)
    assert run.returncode == 0, run.stderr
    run.report.check_leaks(run.last_line["leaked"])
    assert run.stderr == ""


@pytest.mark.parametrize("where", ORDERS)
def test_wrappers_of_libc_do_not_stop_a_program_that_is_not_recorded(workspace, where):
    command, env = ORDERS[where]
    run = workspace.run(command, {**env, "CUWARDEN_ENABLED": "0"})
    assert run.returncode == 0, run.stderr
    assert run.reports == [] and run.stderr == ""


@pytest.mark.parametrize("where", ORDERS)
def test_the_shim_looks_names_up_and_writes_the_report_without_a_wrapper(workspace, where):
    """A shell runs the program twice, first as a child in the background, with debug messages.

    If the shim called a wrapper, the program would end with status 99.
    """
    command, env = ORDERS[where]
    script = '"$@" & wait $!; "$@"'
    run = workspace.run(["/bin/sh", "-c", script, "sh", *command], {**env, "CUWARDEN_LOG": "debug"})
    assert run.returncode == 0, run.stderr
    assert len(run.reports) == 2
    assert any("the driver is" in line for line in run.said)


def test_the_command_runs_a_program_that_wraps_libc(workspace):
    env = {"LD_PRELOAD": None}
    run = workspace.run(
        [COMMAND, "run", "--simulate", "2GiB", "--", WRAPPING_PROGRAM, "3"], env, shim=False
    )
    assert run.returncode == 0, run.stderr
    assert "report: " in run.stderr, os.fspath(workspace.work)
