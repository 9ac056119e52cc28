"""The commands of docs/exports.md, on reports of real runs: each format is read by the program that it is for."""

import json
import os
import pickle
import re
import shutil
import subprocess
import urllib.parse
import urllib.request

import pytest

import shimmed
from consumers import Profile, Trace, by_label, consumer, metrics
from pages import blocks, commands_in_sentences
from shimmed import PATIENCE_S, program, sample

PAGE = (shimmed.SOURCE / "docs" / "exports.md").read_text()


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """Runs the page's commands in a folder that has the files of which the page speaks. Returns the folder and
    the reports in it, by their paths.
    """
    pprof = consumer("pprof")
    workspace = shimmed.Workspace(tmp_path_factory.mktemp("exports"))
    folder = workspace.reports / "reports-4711"
    env = {"CUWARDEN_REPORT": folder / "%r.json"}
    workspace.run([sample("pinned_leak")], env | {"RANK": "0"})
    workspace.run([sample("lost_on_throw")], env | {"RANK": "1"})
    workspace.run([program("shortages"), "recovers", "rounds=2", "api=runtime"], env | {"RANK": "2"})
    shutil.copy(folder / "2.json", workspace.reports / "report.json")
    tools = workspace.folder / "bin"
    tools.mkdir()
    for name, line in {
        "go": f'shift 2; exec {pprof} "$@"',
        "flamegraph.pl": f'exec perl {consumer("flamegraph.pl")} "$@"',
        "promtool": f'exec {consumer("promtool")} "$@"',
        "cuwarden": f'exec {shimmed.COMMAND} "$@"',
    }.items():
        (tools / name).write_text(f"#!/bin/sh\n{line}\n")
        (tools / name).chmod(0o755)
    process = shimmed.start(workspace, [program("dying"), "wait"])
    process.stdout.readline()  # the program prints it after its allocations
    outputs = {}
    for line in (line for block in blocks("bash", PAGE) for line in block.splitlines()):
        command = line.replace("PID", str(process.pid)).replace("LEDGERS", str(workspace.ledger))
        done = subprocess.run(
            ["bash", "-c", f"set -o pipefail; {command}"], cwd=workspace.reports, text=True, capture_output=True,
            timeout=60, env=os.environ | {"PATH": f"{tools}:{os.environ['PATH']}", "HOME": str(workspace.folder)},
        )  # fmt: skip
        assert done.returncode == 0, f"{line}: {done.stderr}"
        outputs[line] = done.stdout
    process.kill()
    process.wait(PATIENCE_S)
    process.stdout.close()
    paths = [*folder.iterdir(), workspace.reports / "report.json"]
    reports = {str(path.relative_to(workspace.reports)): json.loads(path.read_text()) for path in paths}
    return workspace.reports, reports, outputs


def live_bytes(reports):
    return sum(row["live_bytes"] for report in reports for row in report["totals"])


def of_job(job):
    return [report for path, report in job[1].items() if path.startswith("reports-4711")]


def test_profiles_have_the_live_bytes_of_the_reports(job):
    folder, reports, outputs = job
    one, all_three = Profile(folder / "heap.pb.gz"), Profile(folder / "job.pb.gz")
    assert sum(one.sums("inuse_space/bytes").values()) == live_bytes([reports["report.json"]]) > 0
    ranks = {(str(report["job"]["rank"]),): live_bytes([report]) for report in of_job(job)}
    assert all_three.sums("inuse_space/bytes", "rank") == ranks and len(ranks) == 3
    assert "Type: peak_space" in next(text for line, text in outputs.items() if "peak_space" in line)


def test_pprof_shows_the_profile_in_a_browser(job):
    """Runs pprof with a script as the browser, which writes the address of the page into a file."""
    folder = job[0]
    tools, address = folder.parent / "bin", folder / "address"
    (tools / "browser").write_text(f'#!/bin/sh\nprintf %s "$1" >{address}.new && mv {address}.new {address}\n')
    (tools / "browser").chmod(0o755)
    env = os.environ | {"PATH": f"{tools}:{os.environ['PATH']}", "BROWSER": "browser", "HOME": str(folder.parent)}
    (command,) = [line for line in commands_in_sentences(PAGE) if line.startswith("go tool pprof -http")]
    silent = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    network = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with subprocess.Popen(command.split(), cwd=folder, env=env, **silent) as server:
        try:
            shimmed.until(address.exists, server)
            page = urllib.parse.urljoin(address.read_text(), "/ui/flamegraph")
            with network.open(page, timeout=60) as shown:
                assert "<title>shortages inuse_space</title>" in shown.read().decode()
        finally:
            server.kill()


def test_flame_graphs_have_the_live_bytes_of_the_reports(job):
    folder, reports, _ = job
    for name, given in (("live.svg", [reports["report.json"]]), ("job.svg", of_job(job))):
        assert f"<title>all ({live_bytes(given):,} bytes, 100%)</title>" in (folder / name).read_text()


def test_the_trace_has_the_processes_their_memory_and_their_refused_requests(job):
    trace = Trace(job[0] / "job.pftrace")
    pids = {report["process"]["pid"] for report in of_job(job)}
    assert trace.processes.keys() == pids and len(pids) == 3
    for report in of_job(job):
        counters = [row for row in trace.counters if row["process"]["pid"] == report["process"]["pid"]]
        last = {row["name"]: int(row["value"]) for row in counters}
        for total in report["totals"]:
            kind = total["kind"]
            name = "device memory" if kind == "device" else f"{kind} host memory"
            device = "" if total["device"] is None else f" (GPU {total['device']})"
            assert last[name + device] == total["live_bytes"]
    shown = [row for row in trace.slices if row["track"] == "refused requests" and row["depth"] == 0]
    assert len(shown) == sum(len(report["incidents"]) for report in of_job(job)) > 0


def test_the_snapshot_has_the_live_bytes_of_each_device(job):
    folder, reports, _ = job
    snapshot, report = pickle.loads((folder / "snapshot.pickle").read_bytes()), reports["report.json"]
    assert sum(segment["total_size"] for segment in snapshot["segments"]) == live_bytes([report])
    actions = [event["action"] for events in snapshot["device_traces"] for event in events]
    assert actions.count("oom") == len([row for row in report["incidents"] if row["device"] is not None]) > 0


def test_metrics_are_of_the_running_process_in_the_end(job):
    folder, _, outputs = job
    found = metrics((folder / "cuwarden.prom").read_text())
    assert set(found["cuwarden_process_running"].values()) == {"1"} and len(found["cuwarden_process_info"]) == 1
    printed = metrics(next(text for line, text in outputs.items() if "snapshot PID" in line))
    assert by_label(printed["cuwarden_live_bytes"], "kind") == by_label(found["cuwarden_live_bytes"], "kind")


def test_the_page_lists_each_metric(job):
    folder, _, _ = job
    command = [shimmed.COMMAND, "export", "--format", "prometheus", "reports-4711"]
    exported = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)
    row = r"^\| (`cuwarden_[^|]*) \|"
    listed = set(re.findall(r"(?:cuwarden_|…)\w+", " ".join(re.findall(row, PAGE, re.MULTILINE))))
    listed = {name.replace("…", "cuwarden_device") for name in listed}
    assert metrics(exported.stdout).keys() == listed
