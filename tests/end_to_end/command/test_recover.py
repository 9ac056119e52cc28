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
def waiting(live, place):
    """Starts a process that waits, and returns it with its ledger."""

    def begin(how="wait", **popen):
        process = live(program("dying"), how, **popen)
        facts = json.loads(process.stdout.readline())["leaked"]
        (ledger,) = set(place.ledger.iterdir())
        return process, ledger, facts

    return begin


def test_each_ledger_is_one_line_and_becomes_its_processs_report(cuwarden, place):
    facts = [dead(place)[1] for _ in range(3)]
    done = cuwarden("recover", place.ledger)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 3
    assert list(place.ledger.iterdir()) == []
    paths = sorted(place.reports.iterdir())
    assert len(paths) == 3
    for path in paths:
        report = Report.read(path)
        report.check_leaks(facts[0])
        assert report["process"]["end_reason"] is None
        assert str(path) in done.stdout


def test_the_killed_sample_has_its_report_afterwards(cuwarden, place):
    run = place.run([sample("killed"), "9", "70000"])
    assert run.returncode == -signal.SIGKILL
    assert run.reports == []
    assert cuwarden("recover", place.ledger).returncode == 0
    report = only_report(place)
    report.check_leaks(run.last_line["leaked"])
    assert report.totals()["device"]["frees"] == 9
    (group,) = report.leaks()
    assert group["growth"] == "growing"


def test_the_times_of_a_recovered_report_end_with_the_process(cuwarden, place):
    ledger, _ = dead(place)
    dead_since = time.time()
    then = dead_since - 3600
    os.utime(ledger, (then, then))
    until(lambda: time.time() > dead_since + 0.1)
    cuwarden("recover", place.ledger)
    process = only_report(place)["process"]
    started = datetime.datetime.fromisoformat(process["start"]).timestamp()
    assert started + process["end_ns"] / 1e9 < dead_since + 0.05, process


@pytest.mark.parametrize("how", ["wait", "wait_without_main_thread"])
def test_a_process_that_still_runs_keeps_its_ledger(cuwarden, place, waiting, how):
    process, ledger, facts = waiting(how)
    if how == "wait_without_main_thread":
        until(lambda: "State:\tZ" in open(f"/proc/{process.pid}/status").read())
    done = cuwarden("recover", place.ledger)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"process {process.pid} is still running" in done.stdout
    assert ledger.exists() and list(place.reports.iterdir()) == []
    process.kill()
    process.wait()
    assert cuwarden("recover", place.ledger).returncode == 0
    only_report(place).check_leaks(facts)


def test_a_process_that_became_another_program_is_recovered_while_that_runs(
    cuwarden, place, waiting
):
    process, ledger, facts = waiting("exec")
    until(lambda: not os.readlink(f"/proc/{process.pid}/exe").endswith("/dying"), process)
    assert cuwarden("recover", place.ledger).returncode == 0
    assert process.poll() is None
    only_report(place).check_leaks(facts)
    assert not ledger.exists()


def test_a_copy_of_a_running_processs_ledger_is_no_sign_of_its_end(cuwarden, place, waiting):
    process, ledger, facts = waiting()
    copy = ledger.with_name(ledger.name + "-copy")
    subprocess.run(["cp", "--sparse=always", ledger, copy], check=True)
    done = cuwarden("recover", copy)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"process {process.pid} is still running" in done.stdout
    assert copy.exists() and list(place.reports.iterdir()) == []
    process.kill()
    process.wait()
    ledger.unlink()
    assert cuwarden("recover", copy).returncode == 0
    only_report(place).check_leaks(facts)


def test_a_child_that_keeps_its_dead_parents_lock_does_not_keep_the_ledger(cuwarden, place):
    ledger, facts = dead(place)
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
        assert cuwarden("recover", place.ledger).returncode == 0
        only_report(place).check_leaks(facts)
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
    """Returns true if the process keeps the file open. It may also open it for a moment, to see its kind."""
    for _ in range(3):
        if not has_open(pid, path):
            return False
        time.sleep(0.01)
    return True


def test_run_makes_no_second_report_of_what_was_recovered_meanwhile(place):
    run = subprocess.Popen(
        [COMMAND, "run", program("dying"), "wait"],
        env=place.environment({"LD_PRELOAD": f"{shimmed.DRIVER}:{shimmed.RUNTIME}"}), cwd=place.work,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    run.stdout.readline()
    (ledger,) = place.ledger.iterdir()
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
    assert list(place.reports.iterdir()) == []


def can_choose_pids():
    return (
        os.geteuid() == 0
        and os.access("/proc/sys/kernel/ns_last_pid", os.W_OK)
        and shutil.which("unshare") is not None
        and subprocess.run(["unshare", "-pf", "--mount-proc", "true"], capture_output=True).returncode == 0
    )


@pytest.mark.skipif(not can_choose_pids(), reason="takes a pid namespace")
def test_a_pid_that_was_given_to_another_process_does_not_keep_the_ledger(place):
    script = f"""
env LD_PRELOAD={place.environment()["LD_PRELOAD"]} {program("dying")} kill
pid=$(basename {place.ledger}/* | sed 's/.*-//')
echo $((pid - 1)) > /proc/sys/kernel/ns_last_pid
sleep 100 &
[ $! = $pid ] || exit 3
{COMMAND} recover {place.ledger}
"""
    env = place.environment()
    del env["LD_PRELOAD"]
    done = subprocess.run(
        ["unshare", "-pf", "--mount-proc", "/bin/sh", "-c", script],
        env=env, cwd=place.work, capture_output=True, text=True, timeout=PATIENCE_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert list(place.ledger.iterdir()) == []
    assert only_report(place)["leaks"]["count"] == 2


@pytest.mark.skipif(not can_choose_pids(), reason="takes a pid namespace")
def test_a_process_in_a_container_is_known_to_live_and_recovered_beside_its_ledger(
    cuwarden, place
):
    env = place.environment()
    preload = env.pop("LD_PRELOAD")
    container = subprocess.Popen(
        ["unshare", "-pf", "--mount-proc", "--kill-child",
         "env", f"LD_PRELOAD={preload}", program("dying"), "wait"],
        env=env, cwd=place.work, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        facts = json.loads(container.stdout.readline())["leaked"]
        done = cuwarden("recover", place.ledger)
        assert "still running" in done.stdout
        assert len(list(place.ledger.iterdir())) == 1
    finally:
        container.kill()
        container.wait()
        container.stdout.close()
    until(lambda: "still running" not in cuwarden("recover", place.ledger).stdout)
    assert list(place.reports.iterdir()) == []
    (path,) = place.ledger.iterdir()
    Report.read(path).check_leaks(facts)


def test_two_at_once_make_one_report(place):
    for _ in range(4):
        dead(place)
    env = place.environment(shim=False, preload=())
    both = [
        subprocess.Popen(
            [COMMAND, "recover", place.ledger], env=env, cwd=place.work,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for _ in range(4)
    ]  # fmt: skip
    said = [process.communicate(timeout=PATIENCE_S) for process in both]
    assert [process.returncode for process in both] == [0] * 4, said
    reports = [Report.read(path) for path in place.reports.iterdir()]
    assert len(reports) == 4
    assert len({report["process"]["pid"] for report in reports}) == 4
    assert sum(out.count(": report: ") for out, _ in said) == 4
    assert list(place.ledger.iterdir()) == []


def test_without_a_folder_the_usual_folders_are_searched(cuwarden, place):
    run = place.run([program("dying"), "kill"], {"CUWARDEN_LEDGER_DIR": None, "CUWARDEN_REPORT": None})
    (ledger,) = place.work.iterdir()
    assert ledger.name.startswith("cuwarden-ledger-")
    done = cuwarden("recover", env={"TMPDIR": place.folder})
    assert "cuwarden-dying-" in done.stdout
    (path,) = place.work.iterdir()
    Report.read(path).check_leaks(run.last_line["leaked"])


def test_a_folder_without_ledgers_and_a_missing_one_are_a_line_each(cuwarden, place):
    done = cuwarden("recover", place.reports)
    assert (done.returncode, done.stdout) == (0, f"no ledgers in {place.reports}\n")
    done = cuwarden("recover", place.folder / "missing")
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1 and str(place.folder / "missing") in done.stderr


def test_a_single_ledger_can_be_named(cuwarden, place):
    ledger, facts = dead(place)
    other, _ = dead(place)
    assert cuwarden("recover", ledger).returncode == 0
    only_report(place).check_leaks(facts)
    assert other.exists()


def test_a_ledger_behind_a_symbolic_link_is_not_touched(cuwarden, place):
    ledger, _ = dead(place)
    moved = place.folder / "elsewhere"
    ledger.rename(moved)
    ledger.symlink_to(moved)
    done = cuwarden("recover", place.ledger)
    assert "no ledgers" in done.stdout
    assert moved.exists() and list(place.reports.iterdir()) == []


def test_a_report_never_goes_through_a_symbolic_link(cuwarden, place):
    run = place.run([program("dying"), "kill"], {"CUWARDEN_REPORT": place.reports / "report.json"})
    precious = place.folder / "precious"
    precious.write_text("precious")
    (place.reports / "report.json").symlink_to(precious)
    assert cuwarden("recover", place.ledger).returncode == 0
    assert precious.read_text() == "precious"
    report = Report.read(place.reports / "report.1.json")
    report.check_leaks(run.last_line["leaked"])


def test_where_the_reports_folder_cannot_be_written_the_report_goes_beside_the_ledger(
    cuwarden, place
):
    blocked = place.folder / "gone"
    run = place.run([program("dying"), "kill"], {"CUWARDEN_REPORT": blocked / "report.json"})
    blocked.write_text("a file where a folder was meant")
    done = cuwarden("recover", place.ledger)
    assert done.returncode == 0, done.stderr
    (path,) = place.ledger.iterdir()
    assert path.name == "report.json"
    Report.read(path).check_leaks(run.last_line["leaked"])


def test_the_summary_says_that_how_it_ended_is_unknown(cuwarden, place):
    dead(place)
    cuwarden("recover", place.ledger)
    shown = cuwarden("report", *place.reports.iterdir())
    assert "how is unknown" in shown.stdout


def test_names_are_looked_up_for_some_tens_of_seconds_and_no_longer(cuwarden, place):
    dead(place)
    hurried = {"LD_PRELOAD": shimmed.PROGRAMS / "libhurrying.so"}
    assert cuwarden("recover", place.ledger, env=hurried).returncode == 0
    report = only_report(place)
    assert any("took too long" in reason for reason in report["tool"]["reasons"])
    assert report["records"]["complete"] and report["leaks"]["count"] == 2
