"""The last one of several reports of a process counts, such as that of the end beside a snapshot."""

import json
import shutil

import pytest

from conftest import one_line


def test_the_latest_report_of_a_process_counts(cuwarden, ranks, tmp_path):
    final = json.loads((ranks / "rank0003.json").read_text())
    snapshot = json.loads(json.dumps(final))
    snapshot["process"] |= {"end_reason": "running", "exit_status": None}
    final["process"]["end_ns"] = snapshot["process"]["end_ns"] + 5
    (ranks / "rank0003.json").write_text(json.dumps(snapshot))
    (ranks / "z.json").write_text(json.dumps(final))
    result = cuwarden("merge", ranks)
    assert result.returncode == 0
    assert result.stderr == "rank0003.json: an earlier report of the process of z.json; only the later one counts\n"
    rows = json.loads(result.stdout)["processes"]
    assert len(rows) == 6 and [row["report"] for row in rows if row["rank"] == 3] == ["z.json"]


@pytest.fixture
def snapshot_and_final_report(ranks):
    """Paths of a snapshot of rank 3, and of its final report, whose `end_ns` is smaller than the snapshot's."""
    final = json.loads((ranks / "rank0003.json").read_text())
    snapshot = json.loads(json.dumps(final))
    snapshot["process"] |= {"end_reason": "running", "exit_status": None}
    final["process"] |= {"end_reason": None, "exit_status": None, "end_ns": snapshot["process"]["end_ns"] - 5}
    final["leak_groups"][0]["bytes"] += 1
    (ranks / "rank0003.json").write_text(json.dumps(snapshot))
    (ranks / "rank0003.later.json").write_text(json.dumps(final))
    return ranks / "rank0003.json", ranks / "rank0003.later.json"


def test_the_report_of_the_end_counts_beside_a_merged_snapshot(cuwarden, snapshot_and_final_report, ranks, tmp_path):
    snapshot, final = snapshot_and_final_report
    others = sorted(set(ranks.iterdir()) - set(snapshot_and_final_report))
    wanted = json.loads(cuwarden("merge", *others, final).stdout)
    merged_snapshot, merged_final = tmp_path / "early.json", tmp_path / "late.json"
    assert cuwarden("merge", "-o", merged_snapshot, *others, snapshot).returncode == 0
    assert cuwarden("merge", "-o", merged_final, final).returncode == 0
    for arguments in (
        (merged_snapshot, final), (final, merged_snapshot), (merged_snapshot, merged_final),
        (merged_final, merged_snapshot), (*others, merged_final, snapshot), (snapshot, *others, merged_final),
    ):  # fmt: skip
        result = cuwarden("merge", *arguments)
        assert result.returncode == 0 and result.stderr.count("later report") == 1, result.stderr
        got = json.loads(result.stdout)
        assert len(got["processes"]) == 6
        (row,) = [row for row in got["processes"] if row["rank"] == 3]
        assert row["end_reason"] is None
        assert sorted(row["bytes"] for row in got["leaks"]) == sorted(row["bytes"] for row in wanted["leaks"])
        for table in ("devices", "device_uses", "leaks_of_processes"):
            assert len(got[table]) == len(wanted[table]), table


def test_all_commands_that_read_a_folder_count_a_process_once(cuwarden, snapshot_and_final_report, ranks, tmp_path):
    snapshot, final = snapshot_and_final_report
    alone = tmp_path / "alone"
    alone.mkdir()
    for path in set(ranks.iterdir()) - {snapshot}:
        shutil.copy(path, alone / path.name)
    for command in (
        ("report",), ("report", "--fail-on-leak"), ("report", "--print-suppressions"), ("diff", alone),
        ("export", "--format", "junit"), ("export", "--format", "jsonl"), ("export", "--format", "github"),
    ):  # fmt: skip
        of_both, of_one = cuwarden(*command, ranks), cuwarden(*command, alone)
        assert of_both.returncode == of_one.returncode
        assert of_both.stdout.replace(str(ranks), str(alone)) == of_one.stdout != ""
        (line,) = of_both.stderr.splitlines()
        assert "rank0003.json: an earlier report of the process of " in line and "rank0003.later.json" in line


def test_a_second_file_with_the_same_report_is_named_and_fails_merge_alone(cuwarden, ranks):
    statuses = {"report": 0, "export": 0, "merge": 2}
    words = {"report": ("report",), "export": ("export", "--format", "jsonl"), "merge": ("merge",)}
    alone = {name: cuwarden(*words[name], ranks) for name in words}
    shutil.copy(ranks / "rank0003.json", ranks / "rank0003.copy.json")
    for name, status in statuses.items():
        result = cuwarden(*words[name], ranks)
        assert result.returncode == status and alone[name].returncode == 0
        assert result.stderr.count("the same report as") == 1 == result.stderr.count("\n")
        assert result.stdout.count("rank") == alone[name].stdout.count("rank")


@pytest.mark.parametrize("name", ["a.json", "z.json"])
def test_an_original_counts_rather_than_its_redacted_copy(cuwarden, ranks, name):
    statuses = {"report": 0, "export": 0, "merge": 2}
    words = {"report": ("report",), "export": ("export", "--format", "jsonl"), "merge": ("merge",)}
    alone = {verb: cuwarden(*words[verb], ranks) for verb in words}
    assert cuwarden("report", "--redact", ranks / "rank0003.json", "-o", ranks / name).returncode == 0
    for verb, status in statuses.items():
        result = cuwarden(*words[verb], ranks)
        assert result.returncode == status and alone[verb].returncode == 0, result.stderr
        assert f"{name}: a redacted copy of " in result.stderr and result.stderr.count("\n") == 1, result.stderr
        assert "rank0003.json" in result.stdout and name not in result.stdout
        assert result.stdout.count("rank") == alone[verb].stdout.count("rank")


def test_a_redacted_copy_counts_if_its_original_cannot_be_read(cuwarden, ranks):
    original = ranks / "rank0003.json"
    assert cuwarden("report", "--redact", original, "-o", ranks / "a.json").returncode == 0
    text = original.read_text()
    original.write_text(text[: len(text) * 9 // 10])
    result = cuwarden("export", "--format", "jsonl", ranks)
    assert result.returncode == 2 and "rank0003.json" in result.stderr and one_line(result.stderr)
    assert "a.json" in result.stdout


def test_an_earlier_report_counts_if_the_later_one_cannot_be_read(cuwarden, snapshot_and_final_report, ranks):
    snapshot, final = snapshot_and_final_report
    text = final.read_text()
    final.write_text(text[: len(text) * 9 // 10])
    for command in (("report",), ("export", "--format", "jsonl"), ("merge",)):
        result = cuwarden(*command, ranks)
        assert result.returncode == 2 and "later.json" in result.stderr and one_line(result.stderr)
        assert "rank0003.json" in result.stdout


@pytest.mark.parametrize("order", [1, -1])
def test_a_merged_snapshot_counts_if_the_report_of_the_end_cannot_be_read(
    cuwarden, snapshot_and_final_report, tmp_path, order
):
    snapshot, final = snapshot_and_final_report
    merged = tmp_path / "merged.json"
    assert cuwarden("merge", "-o", merged, snapshot).returncode == 0
    text = final.read_text()
    final.write_text(text[: len(text) * 9 // 10])
    result = cuwarden("merge", *(merged, final)[::order])
    assert result.returncode == 2 and one_line(result.stderr) and "later.json" in result.stderr
    got = json.loads(result.stdout)
    assert [row["end_reason"] for row in got["processes"]] == ["running"] and got["leaks"]
    assert got["tool"]["complete"] is False


@pytest.mark.parametrize("order", [1, -1])
def test_a_report_counts_if_the_merged_report_of_its_end_is_refused(
    cuwarden, snapshot_and_final_report, tmp_path, order
):
    snapshot, final = snapshot_and_final_report
    merged, rules = tmp_path / "merged.json", tmp_path / "rules.txt"
    rules.write_text("leak:nothing_has_this_name\n")
    assert cuwarden("merge", "-o", merged, final).returncode == 0
    for option in (("--suppressions", rules), ("--symbols", tmp_path)):
        result = cuwarden("merge", *option, *(merged, snapshot)[::order])
        assert result.returncode == 2 and one_line(result.stderr) and str(merged) in result.stderr
        assert [row["end_reason"] for row in json.loads(result.stdout)["processes"]] == ["running"]
