"""`cuwarden recover` and the ledgers of other users: with their rights, or not at all."""

import json
import os
import stat
import subprocess
import tempfile
from pathlib import Path

import pytest

import shimmed
from reports import Report
from shimmed import dead, only_report, program, start

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="takes root's rights")


NOBODY = 65534


@pytest.fixture
def shared():
    """A place in which nobody may write, too. Not below pytest's own folder, which it closes."""
    with tempfile.TemporaryDirectory(prefix="cuwarden-test-") as folder:
        os.chmod(folder, 0o755)
        place = shimmed.Place(Path(folder))
        for part in (place.work, place.reports, place.ledger):
            part.chmod(0o1777)
        yield place


def nobody():
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)


def dead_nobody(place, report=None):
    env = {"CUWARDEN_REPORT": report} if report else None
    process = start(place, [program("dying"), "kill"], env, preexec_fn=nobody)
    facts = json.loads(process.communicate(timeout=60)[0])["leaked"]
    (ledger,) = place.ledger.iterdir()
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
    process.communicate(timeout=60)
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


# Exchanges the two files over and over, so that what was looked at is not what is opened.
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
    hostile.chmod(0)  # its owner's rights are not enough, so that it stays to be tried again
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
        exchange.wait()
        exchange.stdout.close()
    assert len(list(shared.ledger.iterdir())) == 2
