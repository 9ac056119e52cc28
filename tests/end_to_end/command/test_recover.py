"""`cuwarden recover`: processes that died without a report get one. Ledgers of living processes and of
other users are left alone."""

import datetime
import fcntl
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

import shimmed
from reports import Report
from shimmed import COMMAND, PATIENCE_S, dead, only_report, program, sample, until


@pytest.fixture
def waiting(live, workspace):
    """Starts a process that waits, and returns it with its ledger."""

    def begin(how="wait", **popen):
        process = live(program("dying"), how, **popen)
        facts = json.loads(process.stdout.readline())["leaked"]
        (ledger,) = set(workspace.ledger.iterdir())
        return process, ledger, facts

    return begin


def test_each_ledger_gives_one_line_and_becomes_its_processs_report(cuwarden, workspace):
    facts = [dead(workspace)[1] for _ in range(3)]
    done = cuwarden("recover", workspace.ledger)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 3
    assert list(workspace.ledger.iterdir()) == []
    paths = sorted(workspace.reports.iterdir())
    assert len(paths) == 3
    for path in paths:
        report = Report.read(path)
        report.check_leaks(facts[0])
        assert report["process"]["end_reason"] is None
        assert str(path) in done.stdout


def test_the_killed_sample_has_its_report_afterwards(cuwarden, workspace):
    run = workspace.run([sample("killed"), "60", "70000"])
    assert run.returncode == -signal.SIGKILL
    assert run.reports == []
    assert cuwarden("recover", workspace.ledger).returncode == 0
    report = only_report(workspace)
    report.check_leaks(run.last_line["leaked"])
    assert report.totals()["device"]["frees"] == 60
    (group,) = report.leaks()
    assert group["growth"] == "growing"


def test_the_times_of_a_recovered_report_end_with_the_process(cuwarden, workspace):
    ledger, _ = dead(workspace)
    dead_since = time.time()
    then = dead_since - 3600
    os.utime(ledger, (then, then))
    cuwarden("recover", workspace.ledger)
    process = only_report(workspace)["process"]
    started = datetime.datetime.fromisoformat(process["start"]).timestamp()
    assert started + process["end_ns"] / 1e9 < dead_since, process


@pytest.mark.parametrize("how", ["wait", "wait_without_main_thread"])
def test_a_process_that_still_runs_keeps_its_ledger(cuwarden, workspace, waiting, how):
    process, ledger, facts = waiting(how)
    if how == "wait_without_main_thread":
        until(lambda: "State:\tZ" in open(f"/proc/{process.pid}/status").read())
    done = cuwarden("recover", workspace.ledger)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"process {process.pid} is still running" in done.stdout
    assert ledger.exists() and list(workspace.reports.iterdir()) == []
    process.kill()
    process.wait(PATIENCE_S)
    assert cuwarden("recover", workspace.ledger).returncode == 0
    only_report(workspace).check_leaks(facts)


def test_a_process_that_became_another_program_is_recovered_while_that_runs(
    cuwarden, workspace, waiting
):
    process, ledger, facts = waiting("exec")
    until(lambda: not os.readlink(f"/proc/{process.pid}/exe").endswith("/dying"), process)
    assert cuwarden("recover", workspace.ledger).returncode == 0
    assert process.poll() is None
    only_report(workspace).check_leaks(facts)
    assert not ledger.exists()


def test_a_copy_of_a_running_processs_ledger_is_no_sign_of_its_end(cuwarden, workspace, waiting):
    process, ledger, facts = waiting()
    copy = ledger.with_name(ledger.name + "-copy")
    subprocess.run(["cp", "--sparse=always", ledger, copy], check=True)
    done = cuwarden("recover", copy)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"process {process.pid} is still running" in done.stdout
    assert copy.exists() and list(workspace.reports.iterdir()) == []
    line = f"{copy}: it is a copy of a ledger, and process {process.pid} is still running; "
    assert done.stdout.startswith(line) and f"`cuwarden snapshot {process.pid}`" in done.stdout
    refused = cuwarden("snapshot", copy)
    assert (refused.returncode, refused.stdout, refused.stderr) == (2, "", f"cuwarden: {done.stdout}")
    process.kill()
    process.wait(PATIENCE_S)
    ledger.unlink()
    assert "its process has ended" in cuwarden("snapshot", copy).stderr
    assert cuwarden("recover", copy).returncode == 0
    only_report(workspace).check_leaks(facts)


def test_a_child_that_keeps_its_dead_parents_lock_does_not_keep_the_ledger(cuwarden, workspace):
    ledger, facts = dead(workspace)
    ours, theirs = os.pipe()
    locker = os.fork()
    if locker == 0:
        with open(ledger) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if (child := os.fork()) == 0:
                signal.pause()
            else:
                os.write(theirs, child.to_bytes(4, "little"))
        os._exit(0)
    os.waitpid(locker, 0)
    child = int.from_bytes(os.read(ours, 4), "little")
    try:
        assert cuwarden("recover", workspace.ledger).returncode == 0
        only_report(workspace).check_leaks(facts)
        assert not ledger.exists()
    finally:
        os.kill(child, signal.SIGKILL)
        os.close(ours)
        os.close(theirs)


def has_open(pid, path):
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        try:
            if os.readlink(descriptor) == str(path):
                return True
        except FileNotFoundError:
            pass  # the file was closed meanwhile
    return False


def keeps_open(pid, path):
    """Returns true if the process has the file open at three looks in a row, 10 ms apart.

    A process that opens the file only for a moment, to see its kind, thus does not count.
    """
    for _ in range(3):
        if not has_open(pid, path):
            return False
        time.sleep(0.01)
    return True


def test_run_makes_no_second_report_of_a_ledger_that_was_recovered_meanwhile(workspace):
    run = subprocess.Popen(
        [COMMAND, "run", program("dying"), "wait"],
        env=workspace.environment({"LD_PRELOAD": f"{shimmed.DRIVER}:{shimmed.RUNTIME}"}), cwd=workspace.work,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    run.stdout.readline()
    (ledger,) = workspace.ledger.iterdir()
    pid = int(ledger.name.rsplit("-", 1)[1])
    run.send_signal(signal.SIGSTOP)  # so that the test is the first to act on the death
    os.kill(pid, signal.SIGKILL)
    with open(ledger) as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # as a `recover` at the same time does
        run.send_signal(signal.SIGCONT)
        until(lambda: keeps_open(run.pid, ledger), run)
        ledger.unlink()
    _, said = run.communicate(timeout=PATIENCE_S)
    assert "has just recovered it" in said
    assert list(workspace.reports.iterdir()) == []


def can_choose_pids():
    return (
        os.geteuid() == 0
        and os.access("/proc/sys/kernel/ns_last_pid", os.W_OK)
        and shutil.which("unshare") is not None
        and subprocess.run(["unshare", "-pf", "--mount-proc", "true"], capture_output=True).returncode == 0
    )


@pytest.mark.skipif(not can_choose_pids(), reason="takes a pid namespace")
def test_a_pid_that_was_given_to_another_process_does_not_keep_the_ledger(workspace):
    script = f"""
env LD_PRELOAD={workspace.environment()["LD_PRELOAD"]} {program("dying")} kill
pid=$(basename {workspace.ledger}/* | sed 's/.*-//')
echo $((pid - 1)) > /proc/sys/kernel/ns_last_pid
sleep 100 &
[ $! = $pid ] || exit 3
{COMMAND} recover {workspace.ledger}
"""
    env = workspace.environment()
    del env["LD_PRELOAD"]
    done = subprocess.run(
        ["unshare", "-pf", "--mount-proc", "/bin/sh", "-c", script],
        env=env, cwd=workspace.work, capture_output=True, text=True, timeout=PATIENCE_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert list(workspace.ledger.iterdir()) == []
    assert only_report(workspace)["leaks"]["count"] == 2


@pytest.mark.skipif(not can_choose_pids(), reason="takes a pid namespace")
def test_a_process_in_a_container_is_known_to_live_and_recovered_beside_its_ledger(
    cuwarden, workspace
):
    env = workspace.environment()
    preload = env.pop("LD_PRELOAD")
    container = subprocess.Popen(
        ["unshare", "-pf", "--mount-proc", "--kill-child",
         "env", f"LD_PRELOAD={preload}", program("dying"), "wait"],
        env=env, cwd=workspace.work, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        facts = json.loads(container.stdout.readline())["leaked"]
        done = cuwarden("recover", workspace.ledger)
        assert "still running" in done.stdout
        assert len(list(workspace.ledger.iterdir())) == 1
    finally:
        container.kill()
        container.wait(PATIENCE_S)
        container.stdout.close()
    until(lambda: "still running" not in cuwarden("recover", workspace.ledger).stdout)
    assert list(workspace.reports.iterdir()) == []
    (path,) = workspace.ledger.iterdir()
    Report.read(path).check_leaks(facts)


def test_two_recoveries_at_once_make_one_report(workspace):
    for _ in range(4):
        dead(workspace)
    env = workspace.environment(shim=False, preload=())
    both = [
        subprocess.Popen(
            [COMMAND, "recover", workspace.ledger], env=env, cwd=workspace.work,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for _ in range(4)
    ]  # fmt: skip
    said = [process.communicate(timeout=PATIENCE_S) for process in both]
    assert [process.returncode for process in both] == [0] * 4, said
    reports = [Report.read(path) for path in workspace.reports.iterdir()]
    assert len(reports) == 4
    assert len({report["process"]["pid"] for report in reports}) == 4
    assert sum(out.count(": report: ") for out, _ in said) == 4
    assert list(workspace.ledger.iterdir()) == []


def test_without_a_folder_the_usual_folders_are_searched(cuwarden, workspace):
    run = workspace.run([program("dying"), "kill"], {"CUWARDEN_LEDGER_DIR": None, "CUWARDEN_REPORT": None})
    (ledger,) = workspace.work.iterdir()
    assert ledger.name.startswith("cuwarden-ledger-")
    done = cuwarden("recover", env={"TMPDIR": workspace.folder})
    assert "cuwarden-dying-" in done.stdout
    (path,) = workspace.work.iterdir()
    Report.read(path).check_leaks(run.last_line["leaked"])


def test_a_folder_without_ledgers_and_a_missing_folder_give_a_line_each(cuwarden, workspace):
    done = cuwarden("recover", workspace.reports)
    line = (
        f"no ledgers in {workspace.reports}: a process that ended by itself has written its report, "
        "unless its settings want none\n"
    )
    assert (done.returncode, done.stdout) == (0, line)
    done = cuwarden("recover", workspace.folder / "missing")
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1 and str(workspace.folder / "missing") in done.stderr


def test_a_single_ledger_can_be_named(cuwarden, workspace):
    ledger, facts = dead(workspace)
    other, _ = dead(workspace)
    assert cuwarden("recover", ledger).returncode == 0
    only_report(workspace).check_leaks(facts)
    assert other.exists()


def test_a_ledger_behind_a_symbolic_link_is_not_touched(cuwarden, workspace):
    ledger, _ = dead(workspace)
    moved = workspace.folder / "elsewhere"
    ledger.rename(moved)
    ledger.symlink_to(moved)
    done = cuwarden("recover", workspace.ledger)
    assert "no ledgers" in done.stdout
    assert moved.exists() and list(workspace.reports.iterdir()) == []


def test_a_report_never_goes_through_a_symbolic_link(cuwarden, workspace):
    run = workspace.run([program("dying"), "kill"], {"CUWARDEN_REPORT": workspace.reports / "report.json"})
    precious = workspace.folder / "precious"
    precious.write_text("precious")
    (workspace.reports / "report.json").symlink_to(precious)
    assert cuwarden("recover", workspace.ledger).returncode == 0
    assert precious.read_text() == "precious"
    report = Report.read(workspace.reports / "report.1.json")
    report.check_leaks(run.last_line["leaked"])


def test_where_the_reports_folder_cannot_be_written_the_report_goes_beside_the_ledger(
    cuwarden, workspace
):
    blocked = workspace.folder / "gone"
    run = workspace.run([program("dying"), "kill"], {"CUWARDEN_REPORT": blocked / "report.json"})
    blocked.write_text("a file where a folder was meant")
    done = cuwarden("recover", workspace.ledger)
    assert done.returncode == 0, done.stderr
    (path,) = workspace.ledger.iterdir()
    assert path.name == "report.json"
    Report.read(path).check_leaks(run.last_line["leaked"])


def test_the_summary_says_that_how_it_ended_is_unknown(cuwarden, workspace):
    dead(workspace)
    cuwarden("recover", workspace.ledger)
    shown = cuwarden("report", *workspace.reports.iterdir())
    assert "in a way that was not seen" in shown.stdout


def test_names_are_looked_up_for_some_tens_of_seconds_and_no_longer(cuwarden, workspace):
    dead(workspace)
    hurried = {"LD_PRELOAD": shimmed.PROGRAMS / "libhurrying.so"}
    assert cuwarden("recover", workspace.ledger, env=hurried).returncode == 0
    report = only_report(workspace)
    assert any("took too long" in reason for reason in report["tool"]["reasons"])
    assert report["records"]["complete"] and report["leaks"]["count"] == 2
