"""`cuwarden report FOLDER`: one line for each process. All reports are judged, other files passed over."""

import json
import os
import shutil

import pytest

from conftest import one_line


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "reports"
    made.mkdir()
    return made


def put(report, path, **process):
    content = json.loads(report.read_text())
    content["process"].update(process)
    path.write_text(json.dumps(content))
    return path


def test_each_process_has_a_line_and_each_device_too(cuwarden, folder, sample_report, clean_report):
    put(sample_report, folder / "b.json", pid=11)
    put(clean_report, folder / "a.json", pid=12)
    put(clean_report, folder / "named-otherwise", pid=13)
    result = cuwarden("report", folder)
    assert result.returncode == 0 and result.stderr == ""
    lines = result.stdout.splitlines()
    assert [line.split(": ")[0] for line in lines[:3]] == ["a.json", "b.json", "named-otherwise"]
    assert "pid 12" in lines[0] and "no leaks" in lines[0]
    assert "pid 11" in lines[1] and "8.0 MiB in 8 allocations leaked" in lines[1]
    sections = result.stdout.split("\n\n")
    assert lines[3] == "" and sections[1].startswith("To do: ") and "3 processes" in sections[2]


def test_a_single_report_in_a_folder_is_shown_whole(cuwarden, folder, sample_report):
    shutil.copy(sample_report, folder / "only.json")
    assert cuwarden("report", folder).stdout == cuwarden("report", sample_report).stdout


def test_one_leak_among_all_fails_the_check(cuwarden, folder, sample_report, clean_report):
    for number in range(3):
        put(clean_report, folder / f"ci.{number}.json", pid=number + 1)
    assert cuwarden("report", "--fail-on-leak", folder).returncode == 0
    shutil.copy(sample_report, folder / "child.json.1")
    result = cuwarden("report", "--fail-on-leak", folder, "--top", "1", "--min-bytes", "1TiB")
    assert result.returncode == 1


@pytest.mark.parametrize("missing", [True, False])
def test_a_folder_without_reports_is_wrong_input(cuwarden, folder, missing):
    (folder / "package.json").write_text('{"name": "x"}')
    (folder / "notes.txt").write_text("cuwarden.report/1")
    if missing:
        shutil.rmtree(folder)
    result = cuwarden("report", "--fail-on-leak", folder)
    assert result.returncode == 2 and result.stdout == ""
    assert one_line(result.stderr) and str(folder) in result.stderr


def test_each_unreadable_file_gives_one_line_and_the_other_reports_are_shown(
    cuwarden, folder, sample_report, clean_report
):
    whole = sample_report.read_text()
    (folder / "cut.json").write_text(whole[: len(whole) // 2])
    (folder / "empty.json").touch()
    (folder / "later.json").write_text('{"schema": "cuwarden.report/7"}')
    for pid, name in enumerate(("first.json", "second.json"), 1):
        put(clean_report, folder / name, pid=pid)
    result = cuwarden("report", folder)
    assert result.returncode == 2
    assert sorted(
        name for line in result.stderr.splitlines() for name in os.listdir(folder) if name in line
    ) == ["cut.json", "empty.json", "later.json"]
    assert len(result.stderr.splitlines()) == 3
    assert "first.json: " in result.stdout and "second.json: " in result.stdout


def test_a_file_that_is_no_report_is_passed_over(cuwarden, folder, clean_report):
    for pid, name in enumerate(("a.json", "b.json"), 1):
        put(clean_report, folder / name, pid=pid)
    (folder / "link.json").symlink_to("a.json")
    (folder / "lost.json").symlink_to("nowhere")
    (folder / "sub.json").mkdir()
    (folder / "package.json").write_text('{"name": "x"}')
    shutil.copy(clean_report, folder / ".cuwarden-1-2-3-4.tmp")
    os.mkfifo(folder / "fifo.json")
    result = cuwarden("report", "--fail-on-leak", folder)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.split("\n\n")[0].count("\n") == 1


def test_a_ledger_in_the_folder_is_mentioned_and_left_there(
    cuwarden, folder, clean_report
):
    shutil.copy(clean_report, folder / "a.json")
    # A ledger as a killed process leaves it.
    (folder / "cuwarden-ledger-x").write_bytes(b"CWARDEN1" + bytes(5000))
    before = set(os.listdir(folder))
    result = cuwarden("report", "--fail-on-leak", folder)
    assert result.returncode == 1
    assert one_line(result.stderr) and "cuwarden recover" in result.stderr
    assert "no leaks" in result.stdout and set(os.listdir(folder)) == before
    assert cuwarden("report", folder).returncode == 0


def test_a_module_filter_holds_for_the_whole_folder(cuwarden, folder, sample_report, clean_report):
    for pid, (name, report) in enumerate((("a.json", sample_report), ("b.json", clean_report)), 1):
        put(report, folder / name, pid=pid)
    result = cuwarden("report", "--fail-on-leak", "--module", "no-such-module", folder)
    assert result.returncode == 2 and result.stdout == "" and one_line(result.stderr)


def test_folders_beyond_the_limit_of_depth_are_named(cuwarden, folder, clean_report):
    deepest = folder.joinpath(*"12345678")
    (deepest / "9" / "more").mkdir(parents=True)
    shutil.copy(clean_report, folder / "a.json")
    shutil.copy(clean_report, deepest / "9" / "lost.json")
    put(clean_report, deepest / "b.json", pid=12)
    shown, merged = cuwarden("report", folder), cuwarden("merge", folder)
    for result in (shown, merged):
        assert result.returncode == 2 and one_line(result.stderr) and str(deepest / "9") in result.stderr
    assert "b.json: " in shown.stdout and "lost.json" not in shown.stdout
    tool = json.loads(merged.stdout)["tool"]
    assert tool["complete"] is False and str(deepest / "9") in tool["reasons"][0]
    for verb in (("diff", folder), ("export", "--format", "jsonl")):
        result = cuwarden(*verb, folder)
        assert result.returncode == 2 and str(deepest / "9") in result.stderr
    shutil.rmtree(deepest / "9")
    assert json.loads(cuwarden("merge", folder).stdout)["tool"]["complete"] is True


def test_folders_beyond_the_limit_of_number_are_named(cuwarden, folder, clean_report):
    shutil.copy(clean_report, folder / "a.json")
    for number in range(10_000):
        (folder / f"{number:05}").mkdir()
    result = cuwarden("merge", folder)
    assert result.returncode == 2 and one_line(result.stderr) and str(folder / "09999") in result.stderr
    assert json.loads(result.stdout)["tool"]["complete"] is False
    (folder / "00000").rmdir()
    assert cuwarden("merge", folder).returncode == 0
