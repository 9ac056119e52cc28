"""`cuwarden snapshot --format`: running processes in the formats of other programs, also those that this
process cannot see, by their ledgers.
"""

import json
import os
import pty
import subprocess

import pytest

from consumers import Profile, by_label, metrics
from shimmed import COMMAND, PATIENCE_S, program

IN_A_PID_NAMESPACE = ["unshare", "-pf", "--kill-child"]


def waiting(live, **popen):
    process = live(program("dying"), "wait", **popen)
    return process, json.loads(process.stdout.readline())["leaked"]


def live_bytes(found):
    return {key: int(value) for key, value in by_label(found["cuwarden_live_bytes"], "pid", "kind").items()
            if value != "0"}  # fmt: skip


def bytes_of(pid, facts):
    sums = {}
    for row in facts:
        sums[str(pid), row["kind"]] = sums.get((str(pid), row["kind"]), 0) + row["bytes"]
    return sums


def test_the_metrics_of_a_live_process_are_printed(cuwarden, workspace, live):
    process, facts = waiting(live)
    done = cuwarden("snapshot", process.pid, "--format", "prometheus")
    assert (done.returncode, done.stderr) == (0, "")
    found = metrics(done.stdout)
    assert live_bytes(found) == bytes_of(process.pid, facts)
    assert set(found["cuwarden_process_running"].values()) == {"1"} and "cuwarden_leaked_bytes" not in found
    owners = by_label(found["cuwarden_device_owner_bytes"], "device", "owner")
    (used,) = by_label(found["cuwarden_device_used_bytes"], "device").values()
    assert sum(map(int, owners.values())) == int(used)
    assert process.poll() is None and list(workspace.work.iterdir()) == []


def test_a_file_is_written_as_a_whole(cuwarden, workspace, live):
    process, facts = waiting(live)
    done = cuwarden("snapshot", process.pid, "--format", "prometheus", "-o", "gpu.prom")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert [path.name for path in workspace.work.iterdir()] == ["gpu.prom"]
    assert live_bytes(metrics((workspace.work / "gpu.prom").read_text())) == bytes_of(process.pid, facts)
    done = cuwarden("snapshot", process.pid, "--format", "pprof", "-o", "gpu.pb.gz")
    assert (done.returncode, done.stderr) == (0, "")
    profile = Profile(workspace.work / "gpu.pb.gz")
    assert sum(profile.sums("inuse_space/bytes").values()) == sum(row["bytes"] for row in facts)
    done = cuwarden("snapshot", process.pid, "--format", "prometheus", "-o", "none/gpu.prom")
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "none/gpu.prom" in done.stderr


def test_a_ledgers_path_stands_for_its_process(cuwarden, workspace, live):
    process, facts = waiting(live)
    (ledger,) = workspace.ledger.iterdir()
    done = cuwarden("snapshot", ledger, "--format", "prometheus")
    assert (done.returncode, done.stderr) == (0, "")
    assert live_bytes(metrics(done.stdout)) == bytes_of(process.pid, facts)
    assert json.loads(cuwarden("snapshot", ledger, "-o", "-").stdout)["process"]["end_reason"] == "running"


def test_a_folder_stands_for_all_running_processes_with_a_ledger_in_it(cuwarden, workspace, live):
    running = [waiting(live) for _ in range(2)]
    killed, _ = waiting(live)
    killed.kill()
    killed.wait(PATIENCE_S)
    assert len(list(workspace.ledger.iterdir())) == 3
    done = cuwarden("snapshot", workspace.ledger, "--format", "prometheus", "-o", "all.prom")
    assert (done.returncode, done.stderr) == (0, "")
    wanted = {}
    for process, facts in running:
        wanted |= bytes_of(process.pid, facts)
    assert live_bytes(metrics((workspace.work / "all.prom").read_text())) == wanted
    assert len(list(workspace.ledger.iterdir())) == 3, "recover can still make the killed one's report"


def test_a_path_without_a_running_process_gives_one_line(cuwarden, workspace, live, tmp_path):
    process, _ = waiting(live)
    (ledger,) = workspace.ledger.iterdir()
    process.kill()
    process.wait(PATIENCE_S)
    empty = tmp_path / "empty"
    empty.mkdir()
    for path, words in (
        (ledger, "cuwarden recover"), (workspace.ledger, "no running process"), (empty, "no running process"),
        (tmp_path / "none" / "x", "no such file"), (__file__, "ledger"),
    ):  # fmt: skip
        done = cuwarden("snapshot", path, "--format", "prometheus")
        assert (done.returncode, done.stdout) == (2, "") and done.stderr.count("\n") == 1, done.stderr
        assert str(path) in done.stderr and words in done.stderr, done.stderr
    done = cuwarden("snapshot", workspace.ledger)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "folder" in done.stderr
    done = cuwarden("snapshot", os.getpid(), "--format", "junit")
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "prometheus" in done.stderr


def can_unshare():
    return (
        os.geteuid() == 0
        and subprocess.run([*IN_A_PID_NAMESPACE, "--mount-proc", "true"], capture_output=True).returncode == 0
    )


@pytest.mark.skipif(not can_unshare(), reason="takes namespaces")
def test_a_sidecar_in_another_pid_namespace_reads_the_ledgers_of_a_shared_folder(workspace, live):
    process, facts = waiting(live)
    done = subprocess.run(
        [*IN_A_PID_NAMESPACE, "--mount-proc", COMMAND, "snapshot", str(workspace.ledger) + "/", "--format",
         "prometheus"],
        cwd=workspace.work, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert live_bytes(metrics(done.stdout)) == bytes_of(process.pid, facts)


def test_a_binary_format_is_not_written_to_a_terminal(workspace, live):
    process, _ = waiting(live)
    terminal, other = pty.openpty()
    done = subprocess.run(
        [COMMAND, "snapshot", str(process.pid), "--format", "pprof"],
        cwd=workspace.work, stdout=other, stderr=subprocess.PIPE, text=True, timeout=60,
    )  # fmt: skip
    os.close(other)
    os.close(terminal)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "-o FILE" in done.stderr
