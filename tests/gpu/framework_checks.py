"""Runs a framework's program and compares the report with the framework's own figures."""

import importlib.util
import sys

import pytest

from preloaded import FRAMEWORKS, PLANTED_LEAK, check_covered

TIMEOUT_S = 150


def command(script, *arguments):
    return [sys.executable, FRAMEWORKS / script, *arguments]


def needs(*modules):
    """Returns a mark that skips a module's tests if one of these modules cannot be imported."""
    absent = [name for name in modules if importlib.util.find_spec(name) is None]
    if not PLANTED_LEAK.exists():
        absent.append(str(PLANTED_LEAK))
    return pytest.mark.skipif(bool(absent), reason=f"no {', '.join(absent)}")


def check_planted(run):
    facts = run.fact_lines
    assert facts, run.stdout
    for fact in facts:
        if fact["function"] is not None:
            run.report.check_leak(fact)
            continue
        # A call straight from ctypes has no frame of a library of ours, but those of the script.
        found = [
            group
            for group in run.report.groups([fact["kind"]])
            if group["bytes"] == fact["bytes"] and group["api"] == fact["api"]
        ]
        assert len(found) == 1, run.report.describe()
        assert run.report.passes_through(found[0], r"libffi|_ctypes"), run.report.describe()
        lines = run.report.python_frames(found[0])
        assert lines[0] == ("figures.py", "plant_through_ctypes"), lines
        assert lines[-1] == (fact["script"], "<module>"), lines


def run_to_figures(workspace, script, *arguments, env=None):
    """Runs a framework's program bare and under the shim, and checks that both print the same.

    The program ends right after it has printed its figures, so that live memory agrees with them.
    """
    run = workspace.run_both(
        command(script, *arguments, "--end", "_exit"), env, timeout_s=TIMEOUT_S
    )
    check_planted(run)
    check_covered(run.report)
    print(run.figures)
    print(run.report.describe())
    return run


def run_to_natural_end(workspace, script, *arguments, env=None):
    """Lets the interpreter and the framework tidy up as always; the report is whole."""
    run = workspace.run(command(script, *arguments), env, timeout_s=TIMEOUT_S)
    assert run.returncode == 0, run.stderr[-3000:]
    assert run.said == []
    check_planted(run)
    check_covered(run.report)
    assert run.report["process"]["end_reason"] == "exit"
    return run


def made_in(report, pattern, *, anywhere=False):
    """Returns a predicate for groups, which is true if the path of a module in the group's stack matches
    `pattern`.

    This is the innermost module outside CUDA's own libraries; with `anywhere`, any module of the stack.
    """
    import re

    if anywhere:
        return lambda group: report.passes_through(group, pattern)
    return lambda group: re.search(pattern, report.first_module(group)) is not None
