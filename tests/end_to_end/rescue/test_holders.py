"""Other processes that hold the device: the report tells who they are, and the advice what to do about them.
The simulated NVML lists a process of the test's own as their owner."""

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import sys
import time
from datetime import datetime, timezone
from pathlib import Path

import pytest

from memory_cgroup import parent_folder
from shimmed import PATIENCE_S, program, until

GIB = 1 << 30


def full_device(pid, **changes):
    return {
        "CUWARDEN_SIM_MEMORY": "4GiB",
        "CUWARDEN_POOL": "off",
        "CUWARDEN_SIM_OTHER_PROCESS": "3GiB",
        "CUWARDEN_SIM_OTHER_PID": pid,
        **changes,
    }


def refused(run_both, pid, **changes):
    return run_both([program("shortages"), "own", "room=1000", "more=500"], full_device(pid, **changes))


def incident_of(run, verdict="held_by_other_processes"):
    assert run.report["tool"]["complete"] is True, run.report["tool"]
    (incident,) = run.report["incidents"]
    assert incident["verdict"] == verdict, incident
    return incident


def holder_of(run, verdict="held_by_other_processes"):
    """Returns the incident and the only holder of it."""
    incident = incident_of(run, verdict)
    (holder,) = run.report["device_processes"]
    assert holder["incident"] == incident["id"]
    return incident, holder


def own_user():
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def state_of(pid):
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@contextlib.contextmanager
def child_in_state(state, code):
    """Runs Python code in a process of its own process group until /proc shows it in the state."""
    process = subprocess.Popen(
        [sys.executable, "-c", code], start_new_session=True, stdout=subprocess.PIPE, text=True
    )
    try:
        pid = int(process.stdout.readline())
        until(lambda: state_of(pid) == state)
        yield pid, process.pid
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(PATIENCE_S)
        process.stdout.close()


SLEEPER = "import os, time; print(os.getpid(), flush=True); time.sleep(1000)"
# The parent never reaps its child.
ZOMBIE = "import os, time; child = os.fork() or os._exit(0); print(child, flush=True); time.sleep(1000)"
# With CLONE_VFORK (0x4000), the parent waits in the kernel for its child.
WAITS_IN_THE_KERNEL = (
    "import ctypes, os, signal, time; print(os.getpid(), flush=True)\n"
    "child = ctypes.CDLL(None).syscall(56, 0x4000 | signal.SIGCHLD, 0, 0, 0, 0)\n"
    "if child == 0: time.sleep(1000)"
)


def test_a_holder_is_told_with_its_user_start_and_program(run_both, cuwarden):
    begun = time.time()
    with child_in_state("S", SLEEPER) as (pid, _):
        run = refused(run_both, pid)
    incident, holder = holder_of(run)
    assert (holder["pid"], holder["used_bytes"], holder["seen_by"]) == (pid, 3 * GIB, "nvml")
    assert holder["state"] == "alive"
    assert holder["user"] == own_user()
    assert holder["program"] == os.path.realpath(sys.executable)
    assert holder["parent"] == os.getpid()
    start = datetime.strptime(holder["start"][:19], "%Y-%m-%dT%H:%M:%S").replace(tzinfo=timezone.utc)
    assert begun - 2 < start.timestamp() < time.time() + 1
    words = f"pid {pid} ({Path(holder['program']).name}, user {own_user()})"
    assert f"wait until {words} ends (CUWARDEN_" in incident["advice"], incident["advice"]
    assert "end it" in incident["advice"]
    shown = cuwarden("report", run.report.path).stdout
    assert f"{words} held 3.0 GiB · " in shown and "started 20" in shown


def test_the_live_verdict_names_the_holder_as_the_report_does(run_shimmed):
    with child_in_state("S", SLEEPER) as (pid, _):
        run = run_shimmed(
            [program("shortages"), "own", "room=1000", "more=500"], full_device(pid, CUWARDEN_LOG="info")
        )
    incident, _ = holder_of(run)
    assert incident["advice"] in run.said_about("a request was refused")


def test_a_zombie_is_said_to_have_no_memory_itself(run_both, cuwarden):
    with child_in_state("Z", ZOMBIE) as (pid, parent):
        run = refused(run_both, pid)
    holders = {each["pid"]: each for each in run.report["device_processes"] if each["seen_by"] == "nvml"}
    assert (holders[pid]["state"], holders[pid]["parent"]) == ("zombie", parent)
    advice = incident_of(run)["advice"]
    assert "has ended, and its own memory is gone, but a process that it started" in advice
    assert "wait until" not in advice and "parent" not in advice
    assert "a zombie, whose parent is" in cuwarden("report", run.report.path).stdout


def test_a_process_that_waits_in_the_kernel_and_was_not_killed_is_waited_for(run_both):
    if os.uname().machine != "x86_64":
        pytest.skip("the number of the system call is x86_64's")
    with child_in_state("D", WAITS_IN_THE_KERNEL) as (pid, _):
        run = refused(run_both, pid)
    incident, holder = holder_of(run)
    assert holder["state"] == "alive"
    assert f"wait until pid {pid} (" in incident["advice"]


def test_a_holder_that_is_gone_is_told_by_its_pid(run_both):
    gone = subprocess.Popen(["true"])
    gone.wait(PATIENCE_S)
    incident, holder = holder_of(refused(run_both, gone.pid))
    assert holder["pid"] == gone.pid
    unknown = ["program", "state", "user", "start", "job", "container", "pod", "unit", "parent"]
    assert [holder[name] for name in unknown] == [None] * len(unknown)
    assert f"wait until pid {gone.pid} ends" in incident["advice"]


@pytest.mark.parametrize(
    ("path", "column", "name"),
    [
        ("slurmstepd.scope/job_4711/step_0", "job", "4711"),
        (f"docker-{'c0de' * 16}.scope", "container", "c0de" * 16),
        ("cuwarden-test.service", "unit", "cuwarden-test.service"),
    ],
)
def test_a_holders_job_or_container_is_that_of_its_cgroup(run_both, path, column, name):
    above, why_not = parent_folder()
    if above is None:
        pytest.skip(why_not)
    top = above / f"cuwarden-test-{os.getpid()}"
    folder = top / path
    made = [folder, *[parent for parent in folder.parents if top in (parent, *parent.parents)]]
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        pytest.skip(f"no cgroup can be made: {error}")
    try:
        with child_in_state("S", SLEEPER) as (pid, _):
            (folder / "cgroup.procs").write_text(str(pid))
            _, holder = holder_of(refused(run_both, pid))
    finally:
        for each in made:
            until(lambda each=each: removed(each))
    assert {each: holder[each] for each in ("job", "container", "pod", "unit")} == {
        **dict.fromkeys(("job", "container", "pod", "unit")),
        column: name,
    }


def removed(cgroup):
    """Returns True once the cgroup is removed; a dead process stays in it for a moment."""
    with contextlib.suppress(OSError):
        cgroup.rmdir()
        return True
    return False


def test_an_owner_that_no_list_has_is_one_for_the_administrator(run_both):
    run = refused(run_both, 1, CUWARDEN_SIM_NVML="hide_others")
    incident = incident_of(run, "held_by_unlisted_owner")
    assert run.report["device_processes"] == []
    assert "waiting may not help: ask the administrator" in incident["advice"]


# Binds a folder with a file `nvidia0` over /dev in a mount namespace of its own, and opens the file.
OPENER = 'mount --bind "$0" /dev && exec 3</dev/nvidia0 && echo $$ && exec sleep 1000'


@contextlib.contextmanager
def process_with_device_file(folder):
    """Runs a process that has a file of the name /dev/nvidia0 open."""
    (folder / "nvidia0").touch()
    command = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    process = subprocess.Popen(
        [*command, "sh", "-c", OPENER, str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        said = process.stdout.readline()
        if not said:
            pytest.skip(f"no mount namespace can be made: {process.stderr.read()}")
        pid = int(said)
        until(lambda: Path(f"/proc/{pid}/comm").read_text() == "sleep\n")
        yield pid
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE_S)


@pytest.mark.parametrize("nvml", ["hide_others", "refuse"])
def test_a_process_with_the_devices_file_open_is_named_if_no_list_has_the_owner(run_both, tmp_path, nvml):
    with process_with_device_file(tmp_path) as pid:
        run = refused(run_both, 1, CUWARDEN_SIM_NVML=nvml)
    incident, holder = holder_of(run, "held_by_unlisted_owner")
    assert (holder["pid"], holder["used_bytes"], holder["seen_by"]) == (pid, None, "device_file")
    assert "has the device's file open and may hold the memory" in incident["advice"]
    assert f"pid {pid} (" in incident["advice"] and "wait" not in incident["advice"]


def test_a_process_with_the_devices_file_open_may_keep_a_zombies_memory(run_both, tmp_path):
    with child_in_state("Z", ZOMBIE) as (zombie, _), process_with_device_file(tmp_path) as pid:
        run = refused(run_both, zombie)
    found = {each["pid"]: each["seen_by"] for each in run.report["device_processes"]}
    assert found == {zombie: "nvml", pid: "device_file"}
    advice = incident_of(run)["advice"]
    assert f"; pid {pid} (" in advice and "has the device's file open and may hold" in advice


def test_names_of_users_and_programs_can_be_left_out_of_a_copy(run_both, cuwarden):
    with child_in_state("S", SLEEPER) as (pid, _):
        run = refused(run_both, pid)
    done = cuwarden("report", "--redact", run.report.path)
    assert done.returncode == 0, done.stderr
    (copy,) = run.report.path.parent.rglob("*.redacted.json")
    text = copy.read_text()
    assert f"wait until pid {pid} ends" in text
    assert Path(sys.executable).resolve().name not in text


def test_a_program_name_that_is_no_utf_8_is_left_out_of_a_redacted_copy_as_well(run_both, cuwarden, tmp_path):
    """The redacted copy lacks the name of the program that holds the memory.

    The name ends in the middle of a UTF-8 character. The report itself shows the name, with a question
    mark at its end.
    """
    name = os.fsencode(tmp_path) + b"/secret\xc3"
    shutil.copy("/bin/sleep", name)
    holder = subprocess.Popen([name, b"1000"])
    try:
        until(lambda: os.readlink(os.fsencode(f"/proc/{holder.pid}/exe")) == name)
        run = refused(run_both, holder.pid)
    finally:
        holder.kill()
        holder.wait(PATIENCE_S)
    assert f"wait until pid {holder.pid} (secret?, user " in incident_of(run)["advice"]
    done = cuwarden("report", "--redact", run.report.path)
    assert done.returncode == 0, done.stderr
    (copy,) = run.report.path.parent.rglob("*.redacted.json")
    text = copy.read_text()
    assert f"wait until pid {holder.pid} ends" in text and "secret" not in text
