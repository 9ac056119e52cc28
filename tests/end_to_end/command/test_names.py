"""Function names that the report at exit had no time for are completed later, by the command. It reads the
files that ran, or their debug files. It can also make a redacted copy of a report."""

import json
import os
import re
import shutil
import stat
import subprocess

import pytest
from reports import Report
from shimmed import COMMAND, PROGRAMS, program

PLUGIN = PROGRAMS / "libleaking_plugin.so"
NO_TIME = {"CUWARDEN_SYMBOL_TIME": "0"}
MIB = 1 << 20


@pytest.fixture
def plugin(workspace):
    """Returns a copy of the plugin, which the test may change."""
    folder = workspace.folder / "lib of alice"
    folder.mkdir()
    return shutil.copy(PLUGIN, folder / "plugin.so")


def leaking(plugin):
    return [program("reloading"), "4", "exit", plugin]


def own_frames(report):
    """Returns the report's frames in the plugin and in the program."""
    names = ("plugin.so", "reloading")
    return [f for f in report["frames"] if f["module"] and report.module_name(f["module"]) in names]


def is_named(frame):
    return frame["function"] is not None


def build_id(path):
    text = subprocess.run(["readelf", "-n", path], capture_output=True, text=True).stdout
    return re.search(r"Build ID: ([0-9a-f]+)", text)[1]


def split_off_debug_information(path, into):
    subprocess.run(["objcopy", "--only-keep-debug", path, into], check=True)
    subprocess.run(["objcopy", "--strip-all", path], check=True)


def test_report_finds_names_that_the_process_had_no_time_for(workspace, plugin, cuwarden):
    run = workspace.run(leaking(plugin), NO_TIME)
    assert not any(map(is_named, own_frames(run.report)))
    assert not run.report["names"]["complete"] and run.report["records"]["complete"]
    before = run.report.path.read_bytes()
    text = cuwarden("report", run.report.path).stdout
    assert re.search(r"leaking_plugin\.cpp:\d+ +leak", text), text
    assert "incomplete" not in text
    assert run.report.path.read_bytes() == before, "the file is as it was"


def test_the_systems_own_libraries_are_no_reason_for_incomplete(workspace, plugin):
    assert workspace.run(leaking(plugin)).report["tool"]["complete"]
    report = workspace.run(leaking(plugin), NO_TIME).report
    paths = [module["path"] for module in report["modules"]]
    assert any("/libc.so" in path for path in paths), "libc is in no stack"
    (reason,) = report["tool"]["reasons"]
    small, large = sorted([str(plugin), program("reloading")], key=os.path.getsize)
    assert f"functions of {small} and {large} may lack names" in reason


def test_run_puts_the_names_of_all_ranks_into_their_reports(workspace, plugin, cuwarden):
    rank = " ".join(f"'{word}'" for word in leaking(plugin))
    ranks = "; ".join([f"{rank} &"] * 8).replace("&;", "&") + " wait"
    done = cuwarden(
        "run", "--symbol-time", "0", "--simulate", "16GiB",
        "--report", workspace.reports / "%p.json", "--", "sh", "-c", ranks,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    paths = list(workspace.reports.iterdir())
    assert len(paths) == 8
    for path in paths:
        report = Report.read(path)
        assert report["names"]["complete"] and report["tool"]["complete"]
        assert all(map(is_named, own_frames(report)))
        (group,) = report.groups_of("leak")
        assert group["bytes"] == 16 * MIB
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "incomplete" not in done.stderr


def test_names_come_only_from_the_file_that_ran(workspace, plugin, cuwarden):
    run = workspace.run(leaking(plugin), NO_TIME)
    shutil.copy(PROGRAMS / "libleaking_plugin_rebuilt.so", plugin)
    text = cuwarden("report", run.report.path).stdout
    assert "plugin.so is not the file that ran (its build id differs)" in text
    assert "leaking_plugin.cpp" not in text
    assert "main" in text, "the program's functions are named all the same"


def by_debug_link(folder, identity):
    return folder / ".build-id" / identity[:2] / f"{identity[2:]}.debug"


def by_two_letters(folder, identity):
    return folder / identity[:2] / f"{identity[2:]}.debug"


def by_debuginfod(folder, identity):
    return folder / identity / "debuginfo"


def by_name(folder, _):
    return folder / "deep" / "down" / "plugin.so.debug"


@pytest.mark.parametrize("layout", [by_debug_link, by_two_letters, by_debuginfod, by_name])
def test_symbols_are_found_by_build_id_on_another_machine(workspace, plugin, cuwarden, layout):
    debug = layout(workspace.folder / "symbols", build_id(plugin))
    debug.parent.mkdir(parents=True)
    split_off_debug_information(plugin, debug)
    other = workspace.folder / "symbols" / "plugin.so"
    shutil.copy(PROGRAMS / "libleaking_plugin_rebuilt.so", other)  # has the name, and another build id
    run = workspace.run(leaking(plugin))
    plugin.unlink()
    assert "leaking_plugin.cpp" not in cuwarden("report", run.report.path).stdout
    shown = cuwarden("report", "--symbols", workspace.folder / "symbols", run.report.path)
    assert shown.returncode == 0, shown.stderr
    assert re.search(r"leaking_plugin\.cpp:\d+ +leak", shown.stdout), shown.stdout


def test_symbols_may_be_the_files_that_ran(workspace, plugin, cuwarden):
    run = workspace.run(leaking(plugin), NO_TIME)
    moved = workspace.folder / "elsewhere" / "renamed"
    moved.parent.mkdir()
    plugin.rename(moved)
    text = cuwarden("report", run.report.path).stdout
    assert "leaking_plugin.cpp" not in text and "plugin.so could not be read" in text
    text = cuwarden("report", "--symbols", moved.parent, run.report.path).stdout
    assert "leaking_plugin.cpp" in text and "incomplete" not in text


def test_symbols_takes_a_folder(workspace, plugin, cuwarden):
    run = workspace.run(leaking(plugin))
    wrong = cuwarden("report", "--symbols", workspace.folder / "nowhere", run.report.path)
    assert wrong.returncode == 2
    assert "nowhere' is none" in wrong.stderr and wrong.stderr.count("\n") == 1


# --- redacted copies


def texts(value):
    if isinstance(value, dict):
        for inner in value.values():
            yield from texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner)
    elif isinstance(value, str):
        yield value


SECRETS = {
    "SLURM_JOB_ID": "job-of-alice",
    "CUDA_VISIBLE_DEVICES": "0",
    "CUDA_CACHE_PATH": "/scratch/alice/cache",
}


def test_a_redacted_copy_names_no_host_user_or_folder(workspace, plugin, cuwarden):
    shutil.rmtree(workspace.ledger)  # so that the report has a message with the path of this folder
    run = workspace.run(leaking(plugin), SECRETS | NO_TIME)
    plugin.unlink()
    original = run.report
    done = cuwarden("report", "--redact", original.path)
    assert done.returncode == 0, done.stderr
    path = original.path.with_name(original.path.stem + ".redacted.json")
    assert done.stderr == f"report: {path}\n" and done.stdout == ""
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    copy, text = Report.read(path), path.read_text()

    process = original["process"]
    secret = {process["host"], str(workspace.folder), "alice", os.fspath(PROGRAMS), *SECRETS.values()}
    secret |= set(process["command_line"][3:])
    secret |= {row["value"] for row in original["environment"]}
    secret |= {t.rsplit("/", 1)[0] for t in texts(original.data) if t.startswith("/")}
    for word in secret - {"", "0"}:
        assert json.dumps(word)[1:-1] not in text, word
    assert copy["process"]["command_line"] == [] and copy["environment"] == []
    assert copy["redacted"] is True and "redacted" not in original.data
    assert not [t for t in texts(copy.data) if re.search(r"/[\w.-]+/", t)]

    # The copy has everything else, and it is shown.
    for table in ("totals", "timeline", "peak_holders", "leaks"):
        assert copy[table] == original[table]
    # The stack that made the context gets frames of the runtime's inlined functions.
    leaking_stacks = {group["stack"] for group in original["leak_groups"]}
    assert all(copy.stacks[stack] == original.stacks[stack] for stack in leaking_stacks)
    assert {f["offset"] for f in copy["frames"]} == {f["offset"] for f in original["frames"]}
    shown = cuwarden("report", path).stdout
    assert "16.0 MiB in 4 allocations" in shown and "unknown host" in shown
    # The receiver can complete the names by build ids.
    named = cuwarden("report", "--symbols", PROGRAMS, path).stdout
    assert "leaking_plugin.cpp" in named


def test_a_redacted_copy_has_all_function_names_that_can_be_found(workspace, plugin, cuwarden):
    run = workspace.run(leaking(plugin), NO_TIME)
    output = workspace.folder / "copy.json"
    assert cuwarden("report", "--redact", "--output", output, run.report.path).returncode == 0
    (group,) = Report.read(output).groups_of("leak")
    assert group["count"] == 4
    assert {f["file"] for f in Report.read(output)["frames"]} >= {"leaking_plugin.cpp"}


def test_a_redacted_copy_replaces_no_file(workspace, plugin, cuwarden):
    run = workspace.run(leaking(plugin))
    output = workspace.folder / "copy.json"
    output.write_text("precious")
    done = cuwarden("report", "--redact", "--output", output, run.report.path)
    assert done.stderr == f"report: {workspace.folder / 'copy.1.json'}\n"
    assert output.read_text() == "precious"
    assert Report.read(workspace.folder / "copy.1.json")["redacted"] is True
    piped = cuwarden("report", "--redact", "--output", "-", run.report.path)
    assert Report(json.loads(piped.stdout))["redacted"] is True
    wrong = cuwarden("report", "--redact", "--output", "/nonexistent/x.json", run.report.path)
    assert wrong.returncode == 2 and wrong.stderr.count("\n") == 1, wrong.stderr
    full = subprocess.run(
        [str(COMMAND), "report", "--redact", "--output", "-", run.report.path],
        stdout=open("/dev/full", "w"), stderr=subprocess.PIPE, text=True, timeout=60,
    )  # fmt: skip
    assert full.returncode == 2, full.stderr


def test_a_redacted_copy_does_not_act_on_a_terminal(workspace, cuwarden):
    run = workspace.run([program("allocate"), "4", "6000"])
    hostile = "\u009b31m \u202e \x7f"
    data = {**run.report.data, "tool": {**run.report["tool"], "name": hostile}}
    path = workspace.folder / f"{'n' * 240}.json"
    path.write_text(json.dumps(data, ensure_ascii=False))
    done = cuwarden("report", "--redact", "-o", "-", path)
    assert done.returncode == 0, done.stderr
    assert not any(letter in done.stdout for letter in "\u009b\u202e\x7f")
    assert json.loads(done.stdout)["tool"]["name"] == hostile
    assert cuwarden("report", "--redact", path).returncode == 0  # the copy's name is shortened
