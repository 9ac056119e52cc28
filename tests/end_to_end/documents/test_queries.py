"""The queries of docs/queries.md, run by DuckDB on the lines of reports of real runs. Their results are
compared with results that this file computes from the reports themselves.
"""

import collections
import datetime
import filecmp
import json
import os
import re
import shutil
import statistics
import subprocess

import pytest

import shimmed
from pages import blocks
from shimmed import program, sample

PAGE = (shimmed.SOURCE / "docs" / "queries.md").read_text()
DUCKDB = shimmed.BUILD / "duckdb"
LOCK = shimmed.SOURCE / "tests" / "duckdb" / "package-lock.json"


def without_duckdb():
    """Returns the reason why DuckDB cannot be run; an empty text: it can."""
    if shutil.which("node") is None:
        return "DuckDB runs in node, which is not installed (Debian's package nodejs)"
    installed = DUCKDB / "installed-lock.json"
    if not installed.exists() or not filecmp.cmp(installed, LOCK, shallow=False):
        return f"DuckDB is not installed: tests/duckdb/install {DUCKDB}"
    return ""


@pytest.fixture(autouse=True, scope="module")
def duckdb_is_there():
    if reason := without_duckdb():
        (pytest.fail if os.environ.get("NEEDS_DUCKDB") else pytest.skip)(reason)


def sections():
    """Returns the statements under each heading that has some."""
    parts = re.split(r"^## (.*)$", PAGE, flags=re.MULTILINE)[1:]
    found = {heading: blocks("sql", text) for heading, text in zip(parts[::2], parts[1::2])}
    return {heading: statements for heading, statements in found.items() if statements}


def typed(row):
    """Returns the row with numbers in place of DuckDB's texts of whole numbers."""
    return {
        name: int(value) if name != "fingerprint" and re.fullmatch(r"-?\d+", str(value)) else value
        for name, value in row.items()
    }


def run_queries(folder, statements):
    """Returns the rows of each statement, which runs in the folder."""
    done = subprocess.run(
        ["node", shimmed.SOURCE / "tests" / "duckdb" / "run_queries.cjs", DUCKDB],
        input=json.dumps(statements), cwd=folder, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [[typed(row) for row in json.loads(line)] for line in done.stdout.splitlines()]


def answers(folder):
    """Returns the rows of the page's statements by their heading, of the last statement of each."""
    found = sections()
    rows = iter(run_queries(folder, [sql for statements in found.values() for sql in statements]))
    return {heading: [next(rows) for _ in statements][-1] for heading, statements in found.items()}


# --- two runs of a job


def on_host(name, command):
    """Returns the command, changed so that it sees `name` as the host's name.

    If this process may not set a host's name, or there is no program `hostname`, the command is returned unchanged.
    """
    may = subprocess.run(["unshare", "--uts", "true"], capture_output=True).returncode == 0
    if not may or shutil.which("hostname") is None:
        return command
    return ["unshare", "--uts", "sh", "-c", f'hostname {name} && exec "$0" "$@"', *command]


class Job:
    """A run whose reports lie in a folder of its own."""

    def __init__(self, workspace, name):
        self.workspace, self.folder = workspace, workspace.reports / name

    def run(self, command, host="node-a", **env):
        shared = self.workspace.folder / f"{self.folder.name}-{host}-devices"
        env = {
            "CUWARDEN_REPORT": self.folder / "%h-%r-%p.json",
            "CUWARDEN_SIM_DEVICES": "2",
            "CUWARDEN_SIM_SHARED": shared,
            **env,
        }
        return self.workspace.run(on_host(host, command), env)

    def reports(self):
        """Returns the content of each report by its path, as the lines of an export have it."""
        return {
            str(path.relative_to(self.workspace.reports)): json.loads(path.read_text())
            for path in sorted(self.folder.rglob("*.json"))
        }


@pytest.fixture(scope="module")
def jobs(tmp_path_factory):
    """Returns the workspace with the lines of both runs, and the reports of the earlier and the later run."""
    workspace = shimmed.Workspace(tmp_path_factory.mktemp("jobs"))
    before, now = Job(workspace, "reports-4710"), Job(workspace, "reports-4711")
    before.run([sample("slurm_step"), "3"], CUDA_VISIBLE_DEVICES="1", CUWARDEN_SIM_MEMORY="3GiB")
    now.run([sample("slurm_step"), "3"], CUDA_VISIBLE_DEVICES="0", CUWARDEN_SIM_MEMORY="16GiB")
    now.run([sample("slurm_step"), "4"], "node-b", CUDA_VISIBLE_DEVICES="1", CUWARDEN_SIM_MEMORY="24GiB")
    known = workspace.folder / "known.supp"
    known.write_text("leak:libvendor_filter.so\n")
    for job in (before, now):
        job.run([sample("lost_on_throw")], RANK="20", CUWARDEN_SIM_SHARED=None)
    now.run([sample("pinned_leak")], RANK="21", CUWARDEN_SIM_SHARED=None)
    now.run([sample("context_reset"), "3", "5000000"], RANK="22", CUWARDEN_SIM_SHARED=None)
    now.run([sample("library_leak")], RANK="23", CUWARDEN_SUPPRESSIONS=known, CUWARDEN_SIM_SHARED=None)
    now.run([program("shortages"), "recovers", "rounds=2", "api=runtime"], RANK="24", CUWARDEN_SIM_SHARED=None)
    (commands,) = blocks("bash", PAGE)
    for command in commands.strip().splitlines():
        done = subprocess.run(
            command.replace("cuwarden ", f"{shimmed.COMMAND} ", 1).split(),
            cwd=workspace.reports, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return workspace, before.reports(), now.reports()


@pytest.fixture(scope="module")
def found(jobs):
    return answers(jobs[0].reports)


# --- expected answers, computed from the reports


def unix_ns(day_and_time, fraction):
    """Returns nanoseconds since 1970; `fraction`: digits of the fraction of the second."""
    moment = datetime.datetime.fromisoformat(day_and_time).replace(tzinfo=datetime.timezone.utc)
    return int(moment.timestamp()) * 10**9 + int(fraction.ljust(9, "0"))


def start_ns(report):
    second, fraction = report["process"]["start"].removesuffix("Z").split(".")
    return unix_ns(second, fraction)


def same_moment(text, moment_ns):
    """True if DuckDB's text of a time is this moment, to the nanosecond."""
    second, _, fraction = text.partition(".")
    return unix_ns(second, fraction) == moment_ns


def process(report):
    return {"rank": report["job"]["rank"], "host": report["process"]["host"], "pid": report["process"]["pid"]}


def users_line(report, stack):
    """Returns the line of `leak_groups` with this stack, or a text that the line of a refusal has."""
    for group in report["leak_groups"]:
        if group["stack"] == stack:
            return group["where"]
    return None


def real_leaks(reports):
    for path, report in reports.items():
        for group in report["leak_groups"]:
            if group["released_by"] is None and not group["suppressed"]:
                yield path, report, group


def test_the_rank_that_was_refused_first_comes_first(jobs, found):
    _, _, now = jobs
    rows = found["Which rank was refused first?"]
    refused = []
    for report in now.values():
        failed = [incident for incident in report["incidents"] if incident["outcome"] == "failed"]
        if failed:
            first = min(failed, key=lambda incident: incident["time_ns"])
            refused.append((start_ns(report) + first["time_ns"], report, first))
    assert len(refused) == 7 and any(r["incidents"] and r["job"]["rank"] == 24 for r in now.values())
    began = min(moment for moment, _, _ in refused)
    expected = sorted(
        (
            {
                **process(report),
                "ns_after_the_first": moment - began,
                "where": users_line(report, incident["stack"]),
                **{name: incident[name] for name in ("api", "bytes", "verdict")},
            }
            for moment, report, incident in refused
        ),
        key=lambda row: (row["ns_after_the_first"], row["host"], row["rank"]),
    )
    assert [{name: row[name] for name in row if name != "refused_at"} for row in rows] == expected
    assert all(same_moment(row["refused_at"], began + row["ns_after_the_first"]) for row in rows)
    assert all("slurm_step.cpp" in row["where"] for row in rows)


def test_leaks_are_summed_up_over_ranks_and_the_outlier_is_named(jobs, found):
    _, _, now = jobs
    rows = found["Which leaks do ranks have, and which rank stands out?"]
    held, lines = collections.defaultdict(collections.Counter), collections.defaultdict(set)
    for path, report, group in real_leaks(now):
        held[group["fingerprint"]][path] += group["bytes"]
        lines[group["fingerprint"]].add(group["where"])
    assert len(held) > 3
    assert [row["fingerprint"] for row in rows] == sorted(held, key=lambda name: (-sum(held[name].values()), name))
    for row in rows:
        by_process = held[row["fingerprint"]]
        most = max(by_process.values())
        assert (row["least_bytes"], row["most_bytes"]) == (min(by_process.values()), most)
        assert row["median_bytes"] == statistics.median(by_process.values())
        assert row["processes"] == len(by_process) and row["where"] == min(lines[row["fingerprint"]])
        largest = [process(now[path]) for path, size in by_process.items() if size == most]
        assert (row["rank_with_most"], row["its_host"]) in {(one["rank"], one["host"]) for one in largest}
        assert row["stands_out"] == (most >= 2 * statistics.median(by_process.values()))
    assert rows[0]["processes"] == 7 and rows[0]["stands_out"] and rows[0]["rank_with_most"] == 0


def test_peaks_are_listed_by_device_and_rank(jobs, found):
    _, _, now = jobs
    rows = found["How much of each device did each rank need?"]
    expected = []
    for report in now.values():
        devices = {device["device"]: device for device in report["devices"]}
        for total in report["totals"]:
            if total["device"] is not None:
                device = devices[total["device"]]
                expected.append({
                    "device_uuid": device["uuid"], **process(report), "kind": total["kind"],
                    "peak_bytes": total["peak_bytes"],
                    "percent_of_device": pytest.approx(100 * total["peak_bytes"] / device["total_bytes"], abs=0.06),
                })  # fmt: skip
                moment = start_ns(report) + total["peak_time_ns"]
                (row,) = [row for row in rows if (row["pid"], row["host"], row["kind"]) == (
                    report["process"]["pid"], report["process"]["host"], total["kind"])]  # fmt: skip
                assert same_moment(row["peak_at"], moment)
    expected.sort(key=lambda row: (row["device_uuid"], -row["peak_bytes"], row["host"], row["rank"], row["kind"]))
    assert [{name: row[name] for name in row if name != "peak_at"} for row in rows] == expected
    assert len({row["device_uuid"] for row in rows}) == 2


def test_verdicts_are_counted_by_host(jobs, found):
    _, _, now = jobs
    rows = found["Which verdicts did each host have?"]
    groups = collections.defaultdict(list)
    for path, report in now.items():
        for incident in report["incidents"]:
            groups[report["process"]["host"], incident["verdict"]].append((path, incident))
    expected = [
        {
            "host": host,
            "verdict": verdict,
            "incidents": len(listed),
            "processes": len({path for path, _ in listed}),
            "failed": sum(incident["outcome"] == "failed" for _, incident in listed),
            "an_advice": min(incident["advice"] for _, incident in listed),
        }
        for (host, verdict), listed in groups.items()
    ]
    expected.sort(key=lambda row: (-row["incidents"], row["host"], row["verdict"]))
    assert rows == expected and len(rows) > 2
    assert any(row["failed"] < row["incidents"] for row in rows)


def test_only_leaks_that_have_grown_are_listed_with_both_runs(jobs, found):
    _, before, now = jobs
    rows = found["What has grown since an earlier run?"]
    sums = {}
    for run, reports in (("before", before), ("now", now)):
        for path, _, group in real_leaks(reports):
            leak = sums.setdefault(group["fingerprint"], {
                "bytes_before": 0, "bytes_now": 0, "before": set(), "now": set(), "lines": set()})  # fmt: skip
            leak[f"bytes_{run}"] += group["bytes"]
            leak[run].add(path)
            leak["lines"].add(group["where"])
    expected = [
        {
            "fingerprint": fingerprint,
            "where": min(leak["lines"]),
            "bytes_before": leak["bytes_before"],
            "processes_before": len(leak["before"]),
            "bytes_now": leak["bytes_now"],
            "processes_now": len(leak["now"]),
        }
        for fingerprint, leak in sums.items()
        if leak["bytes_now"] > leak["bytes_before"]
    ]
    expected.sort(key=lambda row: (row["bytes_before"] - row["bytes_now"], row["fingerprint"]))
    assert rows == expected
    # The leak of lost_on_throw is as large in both runs; the first one has grown, and others are new.
    assert any(leak["bytes_now"] == leak["bytes_before"] for leak in sums.values())
    assert rows[0]["processes_before"] == 3 and rows[-1]["processes_before"] == 0


def test_each_query_of_the_page_is_compared_here():
    questions = [heading for heading in sections() if heading.endswith("?")]
    with open(__file__) as source:
        text = source.read()
    assert len(questions) == 5 and all(f'found["{question}"]' in text for question in questions)


def test_the_queries_run_where_no_request_was_refused(jobs, tmp_path):
    workspace, _, _ = jobs
    (clean,) = [path for path in (workspace.reports / "reports-4710").iterdir() if "-20-" in path.name]
    for name in ("before.jsonl", "now.jsonl"):
        export = [shimmed.COMMAND, "export", "--format", "jsonl", "-o", tmp_path / name, clean]
        assert subprocess.run(export, capture_output=True).returncode == 0
    rows = answers(tmp_path)
    assert [len(rows[heading]) for heading in rows if heading.endswith("?")] == [0, 1, 1, 0, 0]


def test_tables_stay_in_the_file_that_duckdb_opens(jobs, tmp_path):
    (file,) = re.findall(r"`duckdb (\S+)`", PAGE)
    tables = jobs[0].reports / "now.jsonl"
    opens = f"ATTACH '{tmp_path / file}' AS jobs"
    run_queries(tmp_path, [opens, f"CREATE TABLE jobs.records AS FROM read_json_auto('{tables}')"])
    _, counted = run_queries(tmp_path, [opens, "SELECT count(*) AS lines FROM jobs.records"])
    assert counted == [{"lines": len(tables.read_text().splitlines())}] and counted[0]["lines"] > 7


def test_columns_that_duckdb_finds_itself_can_be_grouped_by_rank(jobs):
    workspace, _, _ = jobs
    (source,) = re.findall(r"`(FROM read_json_auto\(.*?\))`", PAGE)
    (rows,) = run_queries(workspace.reports, [f"SELECT rank, host, count(*) AS lines {source} GROUP BY rank, host"])
    lines = collections.Counter()
    for path in workspace.reports.glob("*.jsonl"):
        for line in path.read_text().splitlines():
            row = json.loads(line)
            lines[row["rank"], row["host"]] += 1
    assert {(row["rank"], row["host"]): row["lines"] for row in rows} == lines and len(lines) > 7
