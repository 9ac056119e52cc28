"""`cuwarden snapshot`: the report of a running process, which does not notice it."""

import json
import os
import signal
import subprocess
import threading
from pathlib import Path

import pytest

from reports import Report
from shimmed import COMMAND, PATIENCE_S, PROGRAMS, program, until


def waiting(live, how="wait", **popen):
    process = live(program("dying"), how, **popen)
    return process, json.loads(process.stdout.readline())["leaked"]


@pytest.mark.parametrize("how", ["wait", "wait_without_main_thread"])
def test_a_live_processs_report_lies_in_this_folder_and_says_that_it_runs(
    cuwarden, workspace, live, how
):
    process, facts = waiting(live, how)
    done = cuwarden("snapshot", process.pid)
    assert (done.returncode, done.stderr) == (0, "")
    path = workspace.work / f"dying-{process.pid}.snapshot.json"
    assert done.stdout == f"report: ./{path.name}\n"
    report = Report.read(path)
    report.check_leaks(facts)
    told = report["process"]
    assert (told["end_reason"], told["exit_status"], told["signal"]) == ("running", None, None)
    assert told["pid"] == process.pid
    assert process.poll() is None
    assert len(list(workspace.ledger.iterdir())) == 1
    shown = cuwarden("report", path).stdout
    assert "was still running" in shown
    # Live allocations of a running process are no leaks.
    assert "STILL ALLOCATED: 6.0 MiB in 2 allocations" in shown
    assert not any(word in shown for word in ("LEAK", "leak", "LOST", "never freed", "at the end")), shown


def test_the_report_can_go_to_standard_output_or_to_a_path(cuwarden, workspace, live):
    process, facts = waiting(live)
    done = cuwarden("snapshot", "--output", "-", process.pid)
    assert (done.returncode, done.stderr) == (0, "")
    Report(json.loads(done.stdout)).check_leaks(facts)
    assert list(workspace.work.iterdir()) == []
    for name in ("mine.json", "mine.1.json"):  # the second report does not overwrite the first
        done = cuwarden("snapshot", process.pid, "--output", workspace.reports / "mine.json")
        assert done.stdout == f"report: {workspace.reports / name}\n"
        Report.read(workspace.reports / name).check_leaks(facts)
    done = cuwarden("snapshot", process.pid, "-o", workspace.reports)
    Report.read(workspace.reports / f"dying-{process.pid}.snapshot.json")


def test_the_report_can_be_shown_without_a_file(cuwarden, workspace, live):
    process, facts = waiting(live)
    done = cuwarden("snapshot", "--format", "text", process.pid)
    assert (done.returncode, done.stderr) == (0, "")
    shown = [line for line in done.stdout.splitlines() if "STILL ALLOCATED" in line]
    assert shown and f"in {sum(row['count'] for row in facts)} allocations" in shown[0]
    assert list(workspace.work.iterdir()) == []
    done = cuwarden("snapshot", "--format", "text", "-o", "x.json", process.pid)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1 and "--output" in done.stderr


def test_a_path_that_cannot_be_written_gives_one_line(cuwarden, workspace, live):
    process, _ = waiting(live)
    (workspace.folder / "file").write_text("")
    done = cuwarden("snapshot", process.pid, "--output", workspace.folder / "file" / "x.json")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1 and "--output" in done.stderr


def test_a_named_pipe_or_a_device_is_written_without_a_temporary_file(cuwarden, workspace, live):
    process, _ = waiting(live)
    fifo = workspace.folder / "fifo"
    os.mkfifo(fifo)
    got = []
    reader = threading.Thread(target=lambda: got.append(fifo.read_text()))
    reader.start()
    done = cuwarden("snapshot", process.pid, "--output", fifo)
    reader.join(60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert json.loads(got[0])["process"]["pid"] == process.pid
    assert cuwarden("snapshot", process.pid, "--output", "/dev/null").returncode == 0
    done = cuwarden("snapshot", process.pid, "--output", "/dev/full")
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1 and "/dev/full" in done.stderr
    assert not Path("/dev/full.1").exists()
    with open("/dev/full", "w") as full:
        words = [str(COMMAND), "snapshot", "-o", "/dev/stdout", str(process.pid)]
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1 and "standard output" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="is what root is told")
def test_root_is_not_told_that_only_root_may_look(cuwarden):
    """Process 1 has no shim, and in some containers not even root may inspect it."""
    done = cuwarden("snapshot", 1)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1 and "only root" not in done.stderr


def signals_of(process):
    """Returns the lines of /proc about the process's signals and tracer, by name.

    While glibc starts a thread, it blocks all signals for a moment; such a moment is waited out. SigQ is
    left out, since it counts the signals of all the user's processes.
    """

    def now():
        lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
        found = dict(line.split(":\t") for line in lines if line.startswith(("Sig", "Shd", "Tracer")))
        del found["SigQ"]
        return found if int(found["SigBlk"], 16) == 0 else None

    return until(now, process)


def test_the_process_is_neither_stopped_nor_signalled_and_its_own_report_follows(
    cuwarden, workspace, live
):
    account = workspace.folder / "account"
    process = live(program("under_load"), "load", account, "7")
    operations = lambda: int.from_bytes(account.read_bytes()[:8], "little")  # noqa: E731
    until(lambda: account.exists() and operations() > 0, process)
    pending = signals_of(process)
    reports = []
    for number in range(5):
        before = operations()
        path = workspace.reports / f"{number}.json"
        assert cuwarden("snapshot", process.pid, "-o", path).returncode == 0
        reports.append(Report.read(path))
        assert operations() > before
    assert signals_of(process) == pending
    made = [sum(row["allocations"] for row in report["totals"]) for report in reports]
    assert made == sorted(made) and made[0] < made[-1]
    assert all(report["process"]["end_reason"] == "running" for report in reports)
    for report in reports:
        assert report["records"] == {"complete": True, "reasons": []}
        for row in report["totals"]:
            groups = [
                group
                for group in report.leaks()
                if (group["kind"], group["device"]) == (row["kind"], row["device"])
            ]
            assert row["live_bytes"] == sum(group["bytes"] for group in groups)
            assert row["live_count"] == sum(group["count"] for group in groups)


def test_a_process_without_a_ledger_is_told_apart(cuwarden, workspace, live):
    plain = subprocess.Popen(["/bin/sleep", "100"])
    try:
        done = cuwarden("snapshot", plain.pid)
        assert (done.returncode, done.stdout) == (2, "")
        assert "does not run under the shim" in done.stderr and len(done.stderr.splitlines()) == 1
    finally:
        plain.kill()
        plain.wait(PATIENCE_S)
    idle = live("/bin/sleep", "100")
    until(lambda: "libcuwarden" in open(f"/proc/{idle.pid}/maps").read(), idle)
    done = cuwarden("snapshot", idle.pid)
    assert done.returncode == 2
    assert "no CUDA call yet" in done.stderr
    dead = subprocess.Popen(["/bin/true"])
    dead.wait(PATIENCE_S)
    done = cuwarden("snapshot", dead.pid)
    assert done.returncode == 2
    assert f"no process {dead.pid}" in done.stderr


def test_a_ledger_that_was_deleted_is_still_root_s_to_read(cuwarden, workspace, live):
    process, facts = waiting(live)
    (ledger,) = workspace.ledger.iterdir()
    ledger.unlink()
    done = cuwarden("snapshot", process.pid, "-o", "-")
    if done.returncode == 0:
        Report(json.loads(done.stdout)).check_leaks(facts)
    else:  # the test is not root, or root may not read there
        assert "deleted" in done.stderr and len(done.stderr.splitlines()) == 1


def can_unshare():
    return (
        os.geteuid() == 0
        and subprocess.run(["unshare", "-mpf", "--mount-proc", "true"], capture_output=True).returncode == 0
    )


@pytest.mark.skipif(not can_unshare(), reason="takes namespaces")
def test_a_process_in_a_container_with_its_own_files_is_found(cuwarden, workspace, live):
    env = workspace.environment()
    preload = env.pop("LD_PRELOAD")
    script = (
        f"mount -t tmpfs none {workspace.ledger} && exec env LD_PRELOAD={preload} {program('dying')} wait"
    )
    container = subprocess.Popen(
        ["unshare", "-mpf", "--mount-proc", "--kill-child", "/bin/sh", "-c", script],
        env=env, cwd=workspace.work, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        facts = json.loads(container.stdout.readline())["leaked"]
        assert list(workspace.ledger.iterdir()) == []
        children = f"/proc/{container.pid}/task/{container.pid}/children"
        pid = int(open(children).read())
        done = cuwarden("snapshot", pid, "-o", "-")
        assert done.returncode == 0, done.stderr
        report = Report(json.loads(done.stdout))
        report.check_leaks(facts)
        assert report["process"]["pid"] == 1
    finally:
        container.kill()
        container.wait(PATIENCE_S)
        container.stdout.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="takes root's rights")
def test_a_snapshot_of_another_users_process_gives_one_line(workspace, live):
    process, _ = waiting(live)

    # Not the user whose commands test_other_users.py stops.
    stranger = 65533

    def become_stranger():
        os.setgroups([])
        os.setresgid(stranger, stranger, stranger)
        os.setresuid(stranger, stranger, stranger)

    workspace.folder.chmod(0o755)
    done = subprocess.run(
        [COMMAND, "snapshot", str(process.pid)],
        cwd="/", capture_output=True, text=True, preexec_fn=become_stranger, timeout=PATIENCE_S,
    )  # fmt: skip
    if done.returncode == 126 or "Permission" in done.stderr:
        pytest.skip("others may not run what was built here")
    assert done.returncode == 2
    assert "root" in done.stderr and len(done.stderr.splitlines()) == 1


def snapshot_of_ending(workspace, live, before, *words):
    """Runs `cuwarden snapshot` for a process that ends by itself right before the command opens `before`.

    `before`: part of a path; "{pid}" stands for the process's id. Returns the command's (status, output,
    lines of errors).
    """
    process = live(program("many_stacks"), "3", stdin=subprocess.PIPE)
    assert json.loads(process.stdout.readline())["count"] == 3
    preload = {"LD_PRELOAD": PROGRAMS / "libstopped.so", "STOP_BEFORE": before.format(pid=process.pid)}
    command = subprocess.Popen(
        [COMMAND, "snapshot", str(process.pid), *map(str, words)],
        env=workspace.environment(preload, shim=False, preload=()),
        cwd=workspace.work, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    stat = Path(f"/proc/{command.pid}/stat")
    until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T", command)
    process.stdin.close()
    assert process.wait(timeout=PATIENCE_S) == 0
    assert list(workspace.ledger.iterdir()) == [], "the ledger of a process that has ended is gone"
    assert len(Report.read(workspace.reports / f"many_stacks-{process.pid}.json").leaks()) == 3
    command.send_signal(signal.SIGCONT)
    output, errors = command.communicate(timeout=PATIENCE_S)
    return command.returncode, output, errors.splitlines()


@pytest.mark.parametrize("before", ["/{pid}/maps", "cuwarden-ledger-"])
def test_a_process_that_ends_before_its_ledger_is_open_leaves_a_line(workspace, live, before):
    status, output, errors = snapshot_of_ending(workspace, live, before, "-o", "-")
    assert (status, output, len(errors)) == (2, "", 1), errors


def test_a_process_that_ends_while_its_ledger_is_read_leaves_a_report(workspace, live):
    path = workspace.folder / "snapshot.json"
    # A report is written under such a name first.
    status, output, errors = snapshot_of_ending(workspace, live, ".cuwarden-", "-o", path)
    assert (status, output, errors) == (0, f"report: {path}\n", [])
    report = Report.read(path)
    assert report["process"]["end_reason"] == "running"
    assert len(report.leaks()) == 3


def test_a_ledger_is_not_replaced_by_what_is_written_about_it(cuwarden, workspace, live):
    process, _ = waiting(live)
    (ledger,) = workspace.ledger.iterdir()
    for told in (process.pid, ledger, workspace.ledger):
        done = cuwarden("snapshot", "--format", "prometheus", "-o", ledger, told)
        assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, done.stderr
    assert cuwarden("snapshot", "-o", "-", process.pid).returncode == 0, "the ledger can still be read"
