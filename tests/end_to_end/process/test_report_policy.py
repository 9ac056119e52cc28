"""CUWARDEN_REPORT_IF and CUWARDEN_REPORT_KEEP: the processes that get a report, and how many reports stay."""

import json
import os
import shutil
import signal
import subprocess

import pytest

from reports import Report
from shimmed import program

LEAVING = program("leaving")


def left_in(workspace):
    return sorted(path.name for path in (*workspace.reports.iterdir(), *workspace.ledger.iterdir()))


# --- CUWARDEN_REPORT_IF

ENDS = [
    ([], set()),
    (["leak"], {"leak"}),
    (["refused"], {"incident"}),
    (["3"], {"abnormal"}),
    (["abort"], {"abnormal"}),
    (["leak", "refused"], {"leak", "incident"}),
    (["refused", "1"], {"incident", "abnormal"}),
]


@pytest.mark.parametrize("wanted", ["always", "leak", "incident", "abnormal", "leak,abnormal"])
@pytest.mark.parametrize("words, has", ENDS, ids=[" ".join(words) or "clean" for words, _ in ENDS])
def test_a_report_is_kept_only_if_its_condition_is_met(workspace, words, has, wanted):
    run = workspace.run_both([LEAVING, *words], {"CUWARDEN_REPORT_IF": wanted})
    assert run.said == [] and run.ledgers == []
    assert len(run.reports) == int(wanted == "always" or bool(has & set(wanted.split(","))))
    assert len(list(workspace.reports.iterdir())) == len(run.reports), "nothing hidden stays"
    for report in run.reports:
        assert report.setting("CUWARDEN_REPORT_IF")["value"] == wanted


@pytest.mark.parametrize("wanted, reports", [("incident", 1), ("leak", 0), ("abnormal", 1)])
def test_a_killed_process_is_judged_alike_by_run_and_recover(workspace, cuwarden, wanted, reports):
    words = [LEAVING, "refused", "kill"]
    done = cuwarden(
        "run", "--simulate", "16GiB", "--report", workspace.reports / "run.json", "--report-if", wanted,
        "--ledger-dir", workspace.ledger, "--", *words,
    )  # fmt: skip
    assert done.returncode == 128 + signal.SIGKILL
    assert left_in(workspace) == ["run.json"] * reports
    assert ("CUWARDEN_REPORT_IF" in done.stderr) == (reports == 0), done.stderr
    assert "made no CUDA call" not in done.stderr

    env = {"CUWARDEN_REPORT_IF": wanted, "CUWARDEN_REPORT": workspace.reports / "later.json"}
    killed = workspace.run(words, env)
    assert len(killed.ledgers) == 1 and len(killed.reports) == 1, "the incident's own report"
    assert cuwarden("recover", workspace.ledger).returncode == 0
    assert left_in(workspace) == ["later.json", "run.json"] * reports
    for path in workspace.reports.iterdir():
        assert Report.read(path)["process"]["end_reason"] != "running"


def test_a_process_that_wants_no_report_is_not_said_to_have_made_no_call(workspace, cuwarden):
    done = cuwarden(
        "run", "--simulate", "16GiB", "--report", workspace.reports, "--report-if", "leak", "--", LEAVING
    )
    assert done.returncode == 0 and left_in(workspace) == []
    (line,) = done.stderr.splitlines()
    assert "CUWARDEN_REPORT_IF" in line and "no CUDA call" not in line
    done = cuwarden("run", "--simulate", "16GiB", "--report", "/dev/null", "--", LEAVING)
    (line,) = done.stderr.splitlines()
    assert "CUWARDEN_REPORT=/dev/null" in line and "CUWARDEN_REPORT_IF" not in line


@pytest.mark.parametrize("verb", ["report", "recover"])
def test_a_report_that_a_person_asks_for_is_always_made(workspace, cuwarden, verb):
    run = workspace.run([LEAVING, "kill"], {"CUWARDEN_REPORT_IF": "incident"})
    (ledger,) = run.ledgers
    arguments = ["report", ledger]
    if verb == "recover":
        arguments = ["recover", ledger, "--output", workspace.reports / "asked.json"]
    done = cuwarden(*arguments)
    assert done.returncode == 0, done.stderr
    (path,) = workspace.reports.iterdir()
    assert path.name == "asked.json" or verb == "report"
    assert Report.read(path)["leaks"]["count"] == 0


@pytest.mark.parametrize("value", ["leaks", "leak,", ",leak", "always,leak", "", "leak incident"])
def test_an_unknown_condition_gives_a_line_and_the_default(workspace, cuwarden, value):
    run = workspace.run([LEAVING], {"CUWARDEN_REPORT_IF": value})
    assert run.said_about("CUWARDEN_REPORT_IF", "incident", "abnormal") and len(run.reports) == 1
    done = cuwarden("run", "--report-if", value, "--", "true")
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1


# --- CUWARDEN_REPORT_KEEP


def kept(workspace, count, words=(), keep="2", **env):
    """Runs the program `count` times. Returns the pids of the remaining reports, the oldest first."""
    pids = []
    for _ in range(count):
        run = workspace.run([LEAVING, *words], {"CUWARDEN_REPORT_KEEP": keep, **env})
        assert run.said == []
        pids += [report["process"]["pid"] for report in run.reports]
    there = {Report.read(path)["process"]["pid"] for path in workspace.reports.glob("leaving*.json")}
    return pids, [pid for pid in pids if pid in there]


def test_the_newest_reports_stay(workspace):
    pids, left = kept(workspace, 5)
    assert left == pids[-2:]
    assert len(list(workspace.reports.iterdir())) == 2


def test_the_newest_reports_with_one_name_stay(workspace):
    path = workspace.reports / "leaving-ci.json"
    pids, left = kept(workspace, 5, CUWARDEN_REPORT=path)
    assert left == pids[-2:]
    assert len(list(workspace.reports.iterdir())) == 2


def test_nothing_but_finished_reports_of_this_program_is_removed(workspace, cuwarden, live):
    first = workspace.run([LEAVING]).report.path
    content = json.loads(first.read_text())

    def written(name, **changes):
        path = workspace.reports / name
        path.write_text(json.dumps({**content, **changes}))
        return path

    process = content["process"]
    others = [
        written("leaving-other-program.json", process={**process, "program": "/bin/leaving"}),
        written("leaving-unknown.json", process={**process, "program": None}),
        written("leaving-live.json", process={**process, "end_reason": "running"}),
        written("leaving-foreign.json", schema="foreign.report/1"),
        written("leaving-1.snapshot.json"),
        written("kept-by-hand.json"),
        written("leaving-1.txt"),
    ]
    (workspace.reports / "leaving-empty.json").touch()
    (workspace.reports / "leaving-list.json").write_text("[]")
    (workspace.reports / "leaving-folder.json").mkdir()
    os.mkfifo(workspace.reports / "leaving-fifo.json")
    outside = shutil.copy(first, workspace.folder / "outside.json")
    (workspace.reports / "leaving-link.json").symlink_to(outside)
    before = set(workspace.reports.iterdir())

    run = workspace.run([LEAVING], {"CUWARDEN_REPORT_KEEP": "1"})
    assert run.said == []
    assert set(workspace.reports.iterdir()) - {run.report.path} == before - {first}
    assert all(path.exists() for path in others) and os.path.exists(outside)


def test_processes_that_end_together_leave_as_many_as_are_kept(workspace):
    env = workspace.environment({"CUWARDEN_REPORT_KEEP": "3"})
    processes = [
        subprocess.Popen([LEAVING], env=env, stdout=subprocess.DEVNULL) for _ in range(12)
    ]
    assert [process.wait(60) for process in processes] == [0] * 12
    assert len(list(workspace.reports.iterdir())) == 3 and list(workspace.ledger.iterdir()) == []


def test_a_program_that_is_killed_again_and_again_fills_no_disk(workspace, cuwarden):
    for number in range(6):
        run = workspace.run([LEAVING, "refused", "kill"], {"CUWARDEN_REPORT_KEEP": "2"})
        assert run.said == []
        assert len(list(workspace.ledger.iterdir())) <= 3
        assert len(list(workspace.reports.iterdir())) <= 3, "incidents' own reports"
    newest = sorted(workspace.ledger.iterdir())[-1]
    assert cuwarden("recover", workspace.ledger).returncode == 0
    assert list(workspace.ledger.iterdir()) == []
    assert len(list(workspace.reports.iterdir())) == 2
    pids = [Report.read(path)["process"]["pid"] for path in workspace.reports.iterdir()]
    assert int(newest.name.rsplit("-", 1)[1]) in pids


def test_the_ledgers_of_other_programs_and_of_living_ones_stay(workspace, live):
    process = live(program("dying"), "wait", env={"CUWARDEN_REPORT_KEEP": "1"})
    process.stdout.readline()
    workspace.run([program("dying"), "kill"])
    before = set(workspace.ledger.iterdir())
    assert len(before) == 2
    for _ in range(3):
        workspace.run([LEAVING, "kill"], {"CUWARDEN_REPORT_KEEP": "1"})
    assert before <= set(workspace.ledger.iterdir())


@pytest.mark.parametrize("value", ["0", "-1", "many", "1000001", ""])
def test_a_bad_number_gives_a_line_and_all_reports_stay(workspace, value):
    workspace.run([LEAVING])
    run = workspace.run([LEAVING], {"CUWARDEN_REPORT_KEEP": value})
    run.said_about("CUWARDEN_REPORT_KEEP", "1000000")
    assert len(list(workspace.reports.iterdir())) == 2


# --- cuwarden recover --output


def test_one_ledgers_report_goes_to_a_path_of_choice(workspace, cuwarden):
    ledger = workspace.run([LEAVING, "leak", "refused", "kill"]).ledgers[0]
    done = cuwarden("recover", ledger, "--output", workspace.work / "new" / "here.json")
    assert done.returncode == 0, done.stderr
    assert Report.read(workspace.work / "new" / "here.json")["leaks"]["count"] == 1
    assert left_in(workspace) == [], "the incident's own report is in the other one"


def test_the_reports_of_several_ledgers_go_to_a_folder_of_choice(workspace, cuwarden):
    for _ in range(2):
        workspace.run([LEAVING, "kill"])
    blocked = cuwarden("recover", workspace.ledger, "--output", workspace.work / "one.json")
    assert blocked.returncode == 2 and "folder" in blocked.stderr
    assert len(list(workspace.ledger.iterdir())) == 2
    done = cuwarden("recover", workspace.ledger, "--output", f"{workspace.work}/both/")
    assert done.returncode == 0, done.stderr
    assert len(list((workspace.work / "both").glob("leaving-*.json"))) == 2 and left_in(workspace) == []


def test_a_ledger_whose_report_cannot_be_written_stays_and_the_line_names_the_option(
    workspace, cuwarden
):
    (ledger,) = workspace.run([LEAVING, "kill"]).ledgers
    for output in (workspace.work / "file" / "x.json", "-"):
        (workspace.work / "file").touch()
        done = cuwarden("recover", ledger, "--output", output)
        assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
        assert "--output" in done.stderr and ledger.exists()


def test_reports_and_ledgers_in_folders_below_the_one_that_is_named_are_found(workspace, cuwarden):
    deep = workspace.reports / "job" / "step"
    env = {"CUWARDEN_REPORT": deep / "%p.json", "CUWARDEN_LEDGER_DIR": None}
    workspace.run([LEAVING, "leak"], env)
    workspace.run([LEAVING], {"CUWARDEN_REPORT": workspace.reports / "%p.json"})
    (deep / "loop").symlink_to(workspace.reports)
    done = cuwarden("report", "--fail-on-leak", workspace.reports)
    assert done.returncode == 1
    names = [line.split(":")[0] for line in done.stdout.split("\n\n")[0].splitlines()]
    assert len(names) == 2 and [name.startswith("job/step/") for name in sorted(names)] == [False, True]
    workspace.run([LEAVING, "leak", "kill"], env)
    assert "1 process with a ledger but no report" in cuwarden("report", workspace.reports).stderr
    assert cuwarden("recover", workspace.reports).returncode == 0
    assert len(list(deep.glob("*.json"))) == 2
