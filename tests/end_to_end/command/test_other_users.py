"""`cuwarden recover` and the ledgers of other users: it reads them with their owners' rights only."""

import contextlib
import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import shimmed
from reports import Report
from shimmed import COMMAND, PATIENCE_S, can_mount, dead, only_report, program, sample, start

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="takes root's rights")


NOBODY = 65534


def nobody():
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)


def dead_nobody(workspace, report=None):
    env = {"CUWARDEN_REPORT": report} if report else None
    process = start(workspace, [program("dying"), "kill"], env, preexec_fn=nobody)
    facts = json.loads(process.communicate(timeout=PATIENCE_S)[0])["leaked"]
    (ledger,) = workspace.ledger.iterdir()
    assert ledger.stat().st_uid == NOBODY
    return ledger, facts


@as_root
def test_root_recovers_for_a_user_and_the_report_is_the_users(cuwarden, shared):
    ledger, facts = dead_nobody(shared)
    done = cuwarden("recover", shared.ledger)
    assert done.returncode == 0, done.stderr
    report = only_report(shared)
    report.check_leaks(facts)
    status = report.path.stat()
    assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (NOBODY, NOBODY, 0o600)
    assert not ledger.exists()


@as_root
def test_root_writes_for_a_user_only_where_the_user_could(cuwarden, shared):
    private = shared.folder / "roots_own"
    private.mkdir(mode=0o700)
    ledger, facts = dead_nobody(shared, private / "report.json")
    done = cuwarden("recover", shared.ledger)
    assert done.returncode == 0, done.stderr
    assert list(private.iterdir()) == []
    (path,) = shared.ledger.iterdir()
    assert path.stat().st_uid == NOBODY
    Report.read(path).check_leaks(facts)


@as_root
@pytest.mark.parametrize("user", [NOBODY, 64999], ids=["known", "without_an_account"])
def test_root_takes_a_users_groups_and_not_those_of_the_ledgers_file(cuwarden, shared, user):
    roots = shared.folder / "for_roots_group"
    roots.mkdir()
    roots.chmod(0o770)

    def with_roots_group():
        os.setgroups([])
        os.setresgid(0, 0, 0)
        os.setresuid(user, user, user)

    env = {"CUWARDEN_REPORT": roots / "report.json"}
    process = start(shared, [program("dying"), "kill"], env, preexec_fn=with_roots_group)
    process.communicate(timeout=PATIENCE_S)
    (ledger,) = shared.ledger.iterdir()
    assert (ledger.stat().st_uid, ledger.stat().st_gid) == (user, 0)
    assert cuwarden("recover", shared.ledger).returncode == 0
    assert list(roots.iterdir()) == []
    (path,) = shared.ledger.iterdir()
    assert (path.stat().st_uid, path.stat().st_gid) == (user, NOBODY)


@as_root
def test_another_users_ledger_is_left_alone(shared):
    ledger, _ = dead(shared)
    done = shimmed.cuwarden(shared, "recover", shared.ledger, preexec_fn=nobody)
    assert (done.returncode, done.stderr) == (0, "")
    assert "belongs to root" in done.stdout and "left alone" in done.stdout
    assert ledger.exists()


@as_root
def test_a_ledger_that_another_user_can_read_is_left_alone_too(shared):
    ledger, _ = dead(shared)
    ledger.chmod(0o644)
    for verb in ("recover", "report"):
        done = shimmed.cuwarden(shared, verb, ledger, preexec_fn=nobody)
        assert "belongs to root" in done.stdout + done.stderr
        assert "left alone" in done.stdout + done.stderr
        assert ledger.exists()
        assert list(shared.reports.iterdir()) == []


# Exchanges the two files over and over, so that the file that was checked is not the one that is opened.
EXCHANGE = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
one, other = (os.fsencode(path) for path in sys.argv[1:])
print(libc.renameat2(-100, one, -100, other, 2), flush=True)
while libc.renameat2(-100, one, -100, other, 2) == 0:
    pass
"""


@as_root
def test_root_does_not_act_on_a_users_ledger_that_took_the_place_of_roots_own(cuwarden, shared):
    private = shared.folder / "roots_own"
    private.mkdir(mode=0o700)
    hostile, _ = dead_nobody(shared, private / "report.json")
    hostile.chmod(0)  # the file's owner cannot read it, so it stays and can be tried again
    roots = shared.ledger / "cuwarden-ledger-of-root"
    roots.write_text("no ledger, and root's")
    os.chown(shared.ledger, NOBODY, NOBODY)
    shared.ledger.chmod(0o755)
    exchange = subprocess.Popen(
        ["/usr/bin/python3", "-c", EXCHANGE, hostile, roots],
        preexec_fn=nobody, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert exchange.stdout.readline() == "0\n"
        for _ in range(100):
            cuwarden("recover", shared.ledger)
            assert list(private.iterdir()) == []
        assert exchange.poll() is None
    finally:
        exchange.kill()
        exchange.wait(PATIENCE_S)
        exchange.stdout.close()
    assert len(list(shared.ledger.iterdir())) == 2


# --- users who try to hold root's command up

# Stops every process of the command that has the rights of this user, until it is told to end.
STOP = """
import os, signal, sys
print("ready", flush=True)
while True:
    for entry in os.listdir("/proc"):
        try:
            name = entry.isdigit() and open(f"/proc/{entry}/comm").read().strip()
            if name == sys.argv[1]:
                os.kill(int(entry), signal.SIGSTOP)
        except OSError:
            pass
"""


@contextlib.contextmanager
def stopping_roots_children():
    process = subprocess.Popen(
        ["/usr/bin/python3", "-c", STOP, COMMAND.name],
        preexec_fn=nobody, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout.readline() == "ready\n"
        yield
    finally:
        process.kill()
        process.wait(PATIENCE_S)
        process.stdout.close()


@as_root
def test_a_user_who_stops_roots_children_loses_reports_and_holds_up_nothing_else(shared):
    """There are many ledgers, so that at least one child is stopped; root's own ledger comes last."""
    ledger, _ = dead_nobody(shared)
    for number in range(200):
        copy = f"{ledger}-{number}"
        subprocess.run(["cp", "--sparse=always", "--preserve=ownership", ledger, copy], check=True)
    own = shimmed.Workspace(Path(tempfile.mkdtemp(dir=shared.folder)))
    roots, facts = dead(own)
    with stopping_roots_children():
        done = shimmed.cuwarden(
            shared, "recover", "--timeout", "500ms", shared.ledger, own.ledger
        )
    assert done.returncode == 2
    lines = done.stderr.splitlines()
    assert lines and all("belongs to nobody" in line for line in lines), lines
    late = [line for line in lines if "--timeout" in line]
    assert 1 <= len(late) <= 6, lines
    # The ledgers that are left when a user's time is used up take at most two lines.
    assert len(lines) <= len(late) + 2, lines
    assert not roots.exists()
    only_report(own).check_leaks(facts)
    children = subprocess.run(["pgrep", "-u", str(NOBODY), "-x", COMMAND.name])
    assert children.returncode == 1, "a child was left behind"


# Replaces each report that root makes for the user by a link to root's own report.
EXCHANGE_REPORT = """
import os, sys
path, secret = sys.argv[1:]
print("ready", flush=True)
while True:
    try:
        if not os.path.islink(path):
            os.rename(path, path + ".taken")
            os.symlink(secret, path)
    except OSError:
        pass
"""


@as_root
def test_root_shows_the_report_that_was_made_whatever_its_path_leads_to(shared):
    secret = shared.folder / "secret.json"
    run = shared.run([program("ending"), "return_7"], {"CUWARDEN_REPORT": secret})
    assert run.returncode == 7 and secret.stat().st_mode & 0o77 == 0
    target = shared.reports / "report.json"
    ledger, _ = dead_nobody(shared, target)
    copy = shared.folder / "copy"
    subprocess.run(["cp", "--sparse=always", ledger, copy], check=True)
    exchange = subprocess.Popen(
        ["/usr/bin/python3", "-c", EXCHANGE_REPORT, target, secret],
        preexec_fn=nobody, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert exchange.stdout.readline() == "ready\n"
        for _ in range(15):
            done = shimmed.cuwarden(shared, "report", ledger)
            assert "allocate_three" not in done.stdout, "root's own report was shown"
            assert "allocate_two" in done.stdout or done.returncode == 2, done.stderr
            with contextlib.suppress(OSError):
                target.unlink()
            if not ledger.exists():
                subprocess.run(["cp", "--sparse=always", copy, ledger], check=True)
                os.chown(ledger, NOBODY, NOBODY)
    finally:
        exchange.kill()
        exchange.wait(PATIENCE_S)
        exchange.stdout.close()


# --- processes that take another user's rights, under `run`

AS_NOBODY = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")


def run_as_nobody(workspace, report, how):
    return shimmed.cuwarden(
        workspace, "run", "--simulate", "2GiB", "--report", report, "--ledger-dir", workspace.ledger,
        "--", *AS_NOBODY, program("ending"), how,
    )  # fmt: skip


@as_root
def test_a_process_of_another_user_has_its_report_shown(shared):
    done = run_as_nobody(shared, shared.reports / "%e-%p.json", "return_7")
    assert done.returncode == 7
    assert "no CUDA call" not in done.stderr
    assert "LEAKS: 3.0 MiB in 3 allocations" in done.stderr and "allocate_three" in done.stderr
    assert only_report(shared).path.stat().st_uid == NOBODY


@as_root
def test_a_killed_process_of_another_user_has_its_report_made_and_shown(shared):
    done = run_as_nobody(shared, shared.reports / "%e-%p.json", "kill")
    assert done.returncode == 128 + signal.SIGKILL
    assert "no CUDA call" not in done.stderr
    assert "3.0 MiB in 3 allocations" in done.stderr
    assert only_report(shared).path.stat().st_uid == NOBODY


@as_root
def test_a_process_of_another_user_that_cannot_write_its_report_has_one_made(shared):
    private = shared.folder / "roots_own"
    private.mkdir(mode=0o700)
    done = run_as_nobody(shared, private / "report.json", "return_7")
    assert done.returncode == 7
    assert "3.0 MiB in 3 allocations" in done.stderr
    assert list(private.iterdir()) == []


@as_root
def test_a_process_in_another_root_folder_is_not_said_to_have_made_no_call(shared):
    inside = shared.folder / "inside"
    (inside / "tmp").mkdir(parents=True)
    code = f"""
import ctypes, os
rt = ctypes.CDLL("libcudart.so.13")
os.chroot({str(inside)!r})
os.chdir("/")
p = ctypes.c_void_p()
print(rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(12345)))
"""
    done = shimmed.cuwarden(
        shared, "run", "--simulate", "2GiB", "--", sys.executable, "-c", code
    )
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr
    assert "chroot" in done.stderr.splitlines()[-1], done.stderr


# Enters the path of a ledger, $0, in the list of `cuwarden run`, as the ledger's process does.
ENTER = r"""printf '%s\0' "$0" >> "$CUWARDEN_REPORT_LIST" """


@as_root
def test_run_tells_of_a_ledger_that_only_another_user_can_recover(shared):
    ledger, _ = dead(shared)
    ledger.chmod(0o644)
    done = shimmed.cuwarden(shared, "run", "--", "sh", "-c", ENTER, ledger, preexec_fn=nobody)
    line = f"cuwarden: {ledger}: it belongs to root, and only its owner or root can recover it: left alone\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, "", line)
    assert ledger.exists()


@pytest.mark.skipif(not can_mount(), reason="takes the right to make namespaces")
def test_run_tells_of_a_ledger_whose_process_it_cannot_see(workspace, live):
    process = live(program("dying"), "wait")
    process.stdout.readline()
    (ledger,) = workspace.ledger.iterdir()
    copy = workspace.folder / "copy"
    subprocess.run(["cp", "--sparse=always", ledger, copy], check=True)
    done = subprocess.run(
        ["unshare", "--pid", "--fork", "--mount-proc", COMMAND, "run", "--", "sh", "-c", ENTER, copy],
        env=workspace.environment(shim=False, preload=()), cwd=workspace.work, capture_output=True, text=True,
        timeout=PATIENCE_S,
    )  # fmt: skip
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"cuwarden: {copy}: process {process.pid} belongs to a container that cannot be seen")
    assert done.returncode == 0 and copy.exists()


def test_a_file_that_cannot_be_read_is_not_replaced_by_a_page(shared):
    shared.reports.chmod(0o777)  # so that another user may replace the file
    text = shared.reports / "report.html"
    text.write_text("mine")
    text.chmod(0)
    # Root may read any file.
    how = {"preexec_fn": nobody} if os.geteuid() == 0 else {}
    done = shimmed.cuwarden(
        shared, "run", "--html", "--simulate", "16GiB", "--report", shared.reports / "report.json", "--",
        sample("lost_on_throw"), **how,
    )  # fmt: skip
    if "built without the page" in done.stderr:
        pytest.skip("cuwarden is built without the page")
    assert (shared.reports / "report.json").exists(), done.stderr
    (line,) = [line for line in done.stderr.splitlines() if str(text) in line]
    assert line.startswith(f"cuwarden: {text}: ") and "permission denied" in line and "stays as it is" in line
    text.chmod(0o600)
    assert text.read_text() == "mine"
