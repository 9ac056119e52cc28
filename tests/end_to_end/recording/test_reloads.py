"""Stacks keep their identity when libraries are unloaded and loaded again: by file, and offset in it."""

import shutil
import signal

from shimmed import DRIVEN, PROGRAMS, killed_by, only_report, program

PLUGIN = PROGRAMS / "libleaking_plugin.so"
REBUILT = PROGRAMS / "libleaking_plugin_rebuilt.so"
MIB = 1 << 20


def leaks_of(report, count, groups=1):
    """Returns the groups of the plugin's leak. Checks that there are `groups`, with `count` each."""
    found = report.groups_of("leak")
    assert len(found) == groups, report.describe_leaks()
    for group in found:
        assert group["count"] == group["allocations"] == count
        assert group["bytes"] == count * 4 * MIB
        assert sum(group["count_by_quarter"]) == count
    return found


def test_a_plugin_that_leaks_each_time_that_it_is_loaded_is_one_growing_group(run_both, cuwarden):
    run = run_both([program("reloading"), 40, "exit", PLUGIN], preload=DRIVEN)
    assert int(run.stdout) > 1, "it was loaded at one address only"
    (group,) = leaks_of(run.report, 40)
    assert group["growth"] == "growing"
    assert run.report.totals()["device"]["live_count"] == 40
    (holder,) = [
        row for row in run.report.data["peak_holders"] if row["stack"] == group["stack"]
    ]
    assert holder["count"] == 40
    text = cuwarden("report", run.report.path).stdout
    assert "1. 160.0 MiB in 40 allocations" in text
    assert "growing" in text
    assert " 2. " not in text


def test_a_killed_processs_reloaded_plugin_is_also_one_growing_group(run_shimmed, workspace, cuwarden):
    run = run_shimmed([program("reloading"), 40, "kill", PLUGIN], preload=DRIVEN)
    assert killed_by(run, signal.SIGKILL)
    cuwarden("recover", workspace.ledger)
    (group,) = leaks_of(only_report(workspace), 40)
    assert group["growth"] == "growing"


def test_copies_of_a_plugin_are_one_plugin(run_both, workspace):
    copies = []
    for number in range(10):
        copies.append(workspace.work / f"plugin{number}.so")
        shutil.copy(PLUGIN, copies[-1])
    run = run_both([program("reloading"), 40, "exit", *copies], preload=DRIVEN)
    (group,) = leaks_of(run.report, 40)
    assert group["growth"] == "growing"
    assert run.report.module_name(group["module"]) == "plugin0.so"


def test_a_plugin_that_was_built_anew_has_stacks_of_its_own(run_both, workspace):
    old, new = workspace.work / "old" / "plugin.so", workspace.work / "new" / "plugin.so"
    for path, source in ((old, PLUGIN), (new, REBUILT)):
        path.parent.mkdir()
        shutil.copy(source, path)
    run = run_both([program("reloading"), 40, "exit", old, new], preload=DRIVEN)
    groups = leaks_of(run.report, 20, groups=2)
    assert {group["growth"] for group in groups} == {"growing"}
    paths = {run.report.modules[group["module"]]["path"] for group in groups}
    assert paths == {str(old), str(new)}


def test_calls_in_one_line_are_one_group_in_the_text(run_both, cuwarden):
    run = run_both([program("one_line"), PLUGIN])
    line = int(run.stdout)
    groups = run.report.groups_of("leak_three_times_in_a_line", line)
    assert len(groups) >= 3, "the calls are not at different offsets"
    assert len({group["stack"] for group in groups}) == len(groups)
    text = cuwarden("report", run.report.path).stdout
    assert "1. 6.0 MiB in 6 allocations" in text
    assert " 2. " not in text
    assert "from 1 stack\n" in cuwarden("report", "--by", "kind", run.report.path).stdout
    checked = cuwarden("report", "--fail-on-leak", "--min-bytes", "5MiB", run.report.path)
    assert checked.returncode == 1, "the groups are counted as they are shown"
