"""Names and folders at the system's length limits: the records of every process can still be reached."""

import os
import re
import shutil
import signal
from pathlib import Path

import pytest

from reports import Report
from shimmed import only_report, program

NAME_MAX = 255
NAMES = ["x" * 240, "x" * NAME_MAX, "é" * (NAME_MAX // 2), "🚀" * (NAME_MAX // 4)]


def named(workspace, name, what="dying"):
    path = workspace.folder / name
    shutil.copy(program(what), path)
    return path


def checked(path, program_path):
    report = Report.read(path)
    assert report["process"]["program"] == str(program_path)
    assert len(path.name.encode()) <= NAME_MAX
    assert path.name.endswith(f"-{report['process']['pid']}.json")
    return report


@pytest.mark.parametrize("name", NAMES)
def test_a_program_with_a_long_name_leaves_its_report(workspace, name):
    command = named(workspace, name, "allocate")
    run = workspace.run_both([command, "3"], {"CUWARDEN_REPORT": None})
    assert run.said == [] and run.ledgers == []
    checked(run.report.path, command).check_leaks(run.last_line["leaked"])


@pytest.mark.parametrize("name", NAMES)
def test_a_killed_program_with_a_long_name_has_its_report_made_by_run(workspace, cuwarden, name):
    command = named(workspace, name)
    done = cuwarden(
        "run", "--simulate", "16GiB", "--report", workspace.reports, "--", command, "kill"
    )  # fmt: skip
    assert done.returncode == 128 + signal.SIGKILL
    (path,) = workspace.reports.iterdir()
    assert checked(path, command)["leaks"]["count"] > 0
    assert f"report: {path}\n" in done.stderr


@pytest.mark.parametrize("verb", ["recover", "report"])
def test_a_killed_program_with_a_long_name_has_its_report_made_later(workspace, cuwarden, verb):
    command = named(workspace, NAMES[0])
    run = workspace.run([command, "kill"])
    (ledger,) = run.ledgers
    done = cuwarden(verb, ledger)
    assert done.returncode == 0, done.stderr
    checked(only_report(workspace).path, command).check_leaks(run.last_line["leaked"])
    assert not ledger.exists()


def test_processes_whose_long_names_begin_alike_have_a_report_each(workspace):
    env = {"CUWARDEN_REPORT": workspace.reports / ("%e" * 3 + ".json")}
    for letter in "ab":
        command = named(workspace, "x" * 200 + letter + "x" * 40, "allocate")
        for count in (1, 2):
            assert workspace.run([command, "1"], env).returncode == 0
            assert len(list(workspace.reports.iterdir())) == count + (2 if letter == "b" else 0)


def test_folders_of_a_path_are_shortened_too(workspace):
    command = named(workspace, NAMES[0], "allocate")
    run = workspace.run([command, "1"], {"CUWARDEN_REPORT": workspace.reports / "%e%e" / "%p.json"})
    assert run.said == [] and run.report["leaks"]["count"] == 1


@pytest.fixture
def deep_folder(workspace):
    """Returns a descriptor of a folder whose path is longer than the system accepts."""
    top = workspace.folder / "deep"
    top.mkdir()
    folder = os.open(top, os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(20):
        os.mkdir("d" * 250, dir_fd=folder)
        below = os.open("d" * 250, os.O_RDONLY | os.O_DIRECTORY, dir_fd=folder)
        os.close(folder)
        folder = below
    yield folder
    os.close(folder)
    shutil.rmtree(top)


@pytest.fixture
def removed_folder(workspace):
    gone = workspace.folder / "gone"
    gone.mkdir()
    folder = os.open(gone, os.O_RDONLY | os.O_DIRECTORY)
    gone.rmdir()
    yield folder
    os.close(folder)


@pytest.mark.parametrize("folder", ["deep_folder", "removed_folder"])
def test_in_a_folder_without_a_path_the_report_goes_to_the_temporary_folder(workspace, request, folder):
    where = request.getfixturevalue(folder)
    run = workspace.run(
        [program("allocate"), "3"],
        {"CUWARDEN_REPORT": None, "CUWARDEN_LEDGER_DIR": None, "TMPDIR": workspace.reports},
        preexec_fn=lambda: os.fchdir(where),
    )
    run.report.check_leaks(run.last_line["leaked"])
    assert run.said_about("CUWARDEN_REPORT", str(run.report.path)) and len(run.said) == 1
    assert list(workspace.reports.iterdir()) == [run.report.path]


@pytest.mark.parametrize("folder", ["deep_folder", "removed_folder"])
def test_where_the_folder_has_no_path_the_report_goes_beside_a_ledger_that_has_a_folder(
    workspace, request, folder
):
    where = request.getfixturevalue(folder)
    env = {"CUWARDEN_REPORT": None, "CUWARDEN_LEDGER_DIR": workspace.reports, "TMPDIR": workspace.work}
    run = workspace.run([program("allocate"), "3"], env, preexec_fn=lambda: os.fchdir(where))
    assert run.said_about("CUWARDEN_REPORT", str(run.report.path)) and len(run.said) == 1
    assert list(workspace.reports.iterdir()) == [run.report.path]


def test_without_a_temporary_folder_the_report_of_a_removed_one_goes_to_tmp(workspace, removed_folder):
    env = {"CUWARDEN_REPORT": None, "CUWARDEN_LEDGER_DIR": None, "TMPDIR": None}
    run = workspace.run(
        [program("allocate"), "3"], env, preexec_fn=lambda: os.fchdir(removed_folder)
    )
    (line,) = run.said
    path = Path(re.search(r"Going on with (\S+);", line)[1])
    assert path.parent == Path("/tmp")
    path.unlink()


@pytest.mark.parametrize("options", [[], ["--report", "x.json", "--ledger-dir", "here"]])
@pytest.mark.parametrize("folder", ["deep_folder", "removed_folder"])
def test_a_program_killed_in_a_folder_without_a_path_has_its_report_made_by_run(
    workspace, cuwarden, request, folder, options
):
    where = request.getfixturevalue(folder)
    done = cuwarden(
        "run", "--simulate", "16GiB", *options, "--", program("dying"), "kill",
        env={"TMPDIR": workspace.reports}, preexec_fn=lambda: os.fchdir(where),
    )  # fmt: skip
    assert done.returncode == 128 + signal.SIGKILL
    report = only_report(workspace)
    assert f"report: {report.path}\n" in done.stderr and report["leaks"]["count"] > 0
    assert not options or report.path.name == "x.json"
    assert all(len(line) < 1000 for line in done.stderr.splitlines())
