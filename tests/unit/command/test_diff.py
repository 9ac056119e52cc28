"""`diff`, baselines and checks of leaks: wrong usage and bad input, each in one line."""

import json
import re
import xml.etree.ElementTree

import pytest

from conftest import one_line


def test_diff_takes_two_reports(cuwarden, sample_report):
    for arguments in ((), (sample_report,), (sample_report, sample_report, sample_report)):
        result = cuwarden("diff", *arguments)
        assert result.returncode == 2 and one_line(result.stderr), arguments
    assert cuwarden("diff", sample_report, sample_report).returncode == 0
    assert cuwarden("diff", sample_report, "--", sample_report).returncode == 0


@pytest.mark.parametrize("content", ["", "{", '{"schema": "cuwarden.report/9"}', "[]", None])
def test_a_report_that_cannot_be_read_is_named(cuwarden, sample_report, tmp_path, content):
    path = tmp_path / "other.json"
    if content is not None:
        path.write_text(content)
    for arguments in ((sample_report, path), (path, sample_report)):
        result = cuwarden("diff", "--fail-on-new", *arguments)
        assert result.returncode == 2 and result.stdout == ""
        assert one_line(result.stderr) and str(path) in result.stderr


def test_an_empty_folder_is_no_report(cuwarden, sample_report, tmp_path):
    folder = tmp_path / "reports"
    folder.mkdir()
    result = cuwarden("diff", sample_report, folder)
    assert result.returncode == 2 and one_line(result.stderr) and str(folder) in result.stderr


def test_reports_of_different_programs_are_compared_only_if_they_share_a_leak(
    cuwarden, sample_report, tmp_path
):
    report = json.loads(sample_report.read_text())
    report["process"]["program"] = "/opt/other/server"
    other = tmp_path / "other.json"
    other.write_text(json.dumps(report))
    assert cuwarden("diff", sample_report, other).returncode == 0
    for group in report["leak_groups"]:
        group["fingerprint"] = "00" + group["fingerprint"][2:]
    other.write_text(json.dumps(report))
    result = cuwarden("diff", sample_report, other)
    assert result.returncode == 2 and result.stdout == ""
    assert one_line(result.stderr) and "server" in result.stderr


def test_a_folder_with_several_processes_is_summed(cuwarden, sample_report, tmp_path):
    folder = tmp_path / "reports"
    folder.mkdir()
    report = json.loads(sample_report.read_text())
    for rank in range(3):
        report["process"]["pid"] = 1000 + rank
        (folder / f"rank{rank}.json").write_text(json.dumps(report))
    result = cuwarden("diff", "--fail-on-growth", sample_report, folder)
    assert result.returncode == 1
    assert "24.0 MiB in 24 allocations not freed, before 8.0 MiB in 8 allocations" in result.stdout


def test_a_new_leak_is_seen_among_a_thousand_processes(cuwarden, clean_report, sample_report, tmp_path):
    folder = tmp_path / "reports"
    folder.mkdir()
    report = json.loads(clean_report.read_text())
    for number in range(1000):
        report["process"]["pid"] = 1000 + number
        (folder / f"{number}.json").write_text(json.dumps(report))
    (folder / "sub").mkdir()
    report = json.loads(sample_report.read_text())
    report["process"]["pid"] = 999
    (folder / "sub" / "last.json").write_text(json.dumps(report))
    baseline = tmp_path / "leaks.txt"
    assert cuwarden("report", "--write-baseline", baseline, clean_report).returncode == 0
    result = cuwarden("report", "--baseline", baseline, "--fail-on-new", folder)
    assert result.returncode == 1
    outcome = result.stdout.splitlines()[-1]
    assert re.match(r"FAIL: (\d+) leaks?, \1 new: ", outcome), outcome


@pytest.mark.parametrize("verb", ["report", "run"])
def test_new_leaks_are_told_by_a_baseline_only(cuwarden, sample_report, verb):
    result = cuwarden(verb, "--fail-on-new", sample_report)
    assert result.returncode == 2 and one_line(result.stderr) and "--baseline" in result.stderr


def test_a_malformed_baseline_is_named_with_its_line(cuwarden, sample_report, tmp_path):
    baseline = tmp_path / "leaks.txt"
    baseline.write_text("# cuwarden baseline 1\n<<<<<<< HEAD\n")
    result = cuwarden("report", "--baseline", baseline, "--fail-on-new", sample_report)
    assert result.returncode == 2 and result.stdout == ""
    assert one_line(result.stderr) and f"{baseline}:2: " in result.stderr


@pytest.mark.parametrize("path", ["nowhere/leaks.txt", "folder", "/dev/full"])
def test_a_baseline_that_cannot_be_written_is_wrong_usage(cuwarden, sample_report, tmp_path, path):
    (tmp_path / "folder").mkdir()
    result = cuwarden("report", "--write-baseline", path, sample_report)
    assert result.returncode == 2 and one_line(result.stderr) and path in result.stderr
    assert sorted(entry.name for entry in (tmp_path / "folder").iterdir()) == []


def test_a_baseline_is_replaced_whole_and_keeps_its_permissions(cuwarden, sample_report, tmp_path):
    kept, link = tmp_path / "kept.txt", tmp_path / "leaks.txt"
    kept.write_text("old\n")
    kept.chmod(0o640)
    link.symlink_to(kept)
    assert cuwarden("report", "--write-baseline", link, sample_report).returncode == 0
    assert link.is_symlink() and kept.stat().st_mode & 0o777 == 0o640
    assert kept.read_text().startswith("# cuwarden baseline 1")
    shown = cuwarden("report", "--top", "1", "--write-baseline", "-", sample_report)
    assert shown.stdout == kept.read_text()


def test_a_baseline_behind_a_link_that_leads_nowhere_is_not_written(cuwarden, sample_report, tmp_path):
    link = tmp_path / "leaks.txt"
    link.symlink_to("nowhere")
    result = cuwarden("report", "--write-baseline", link, sample_report)
    assert result.returncode == 2 and one_line(result.stderr) and link.is_symlink()


def test_a_baseline_is_kept_if_leaks_may_be_missing(cuwarden, sample_report, tmp_path):
    baseline = tmp_path / "leaks.txt"
    baseline.write_text("old\n")
    result = cuwarden("report", "--write-baseline", baseline, sample_report, tmp_path / "nowhere.json")
    assert result.returncode == 2 and baseline.read_text() == "old\n"
    assert "is not written, because leaks may be missing" in result.stderr
    result = cuwarden("run", "--write-baseline", baseline, "--", "/bin/true")
    assert result.returncode == 2 and baseline.read_text() == "old\n"


@pytest.mark.parametrize("option", ["--baseline", "--write-baseline", "--suppressions"])
def test_an_empty_path_is_wrong_usage(cuwarden, sample_report, option):
    result = cuwarden("report", option, "", sample_report)
    assert result.returncode == 2 and one_line(result.stderr) and option in result.stderr


def test_a_redacted_copy_excludes_checks(cuwarden, sample_report):
    result = cuwarden("report", "--redact", "--fail-on-leak", sample_report)
    assert result.returncode == 2 and one_line(result.stderr)


def test_a_module_that_no_report_knows_is_wrong_usage(cuwarden, sample_report):
    result = cuwarden("diff", "--module", "no-such-module", sample_report, sample_report)
    assert result.returncode == 2 and result.stdout == "" and one_line(result.stderr)


def test_a_ledger_in_a_folder_fails_the_check(cuwarden, clean_report, tmp_path):
    folder = tmp_path / "reports"
    folder.mkdir()
    (folder / "a.json").write_text(clean_report.read_text())
    (folder / "cuwarden-ledger-x").write_bytes(b"CWARDEN1" + bytes(5000))
    result = cuwarden("diff", "--fail-on-new", clean_report, folder)
    assert result.returncode == 1
    assert one_line(result.stderr) and "1 process with a ledger" in result.stderr
    ledger = cuwarden("diff", clean_report, folder / "cuwarden-ledger-x")
    assert ledger.returncode == 2 and one_line(ledger.stderr) and "it is a ledger" in ledger.stderr
    exported = cuwarden("export", "--format", "junit", folder)
    assert exported.returncode == 2 and exported.stdout == ""


@pytest.mark.parametrize("status", ["0", "256", "x", "-1"])
def test_an_exit_status_is_a_number_from_1_to_255(cuwarden, status):
    result = cuwarden("run", "--fail-on-leak", "--error-exitcode", status, "--", "true")
    assert result.returncode == 2 and one_line(result.stderr) and "--error-exitcode" in result.stderr


def test_exports_are_read_by_other_programs(cuwarden, sample_report, clean_report, tmp_path):
    junit = cuwarden("export", "--format", "junit", sample_report, clean_report)
    assert (junit.returncode, junit.stderr) == (0, "")
    (suite,) = xml.etree.ElementTree.fromstring(junit.stdout)
    assert suite.get("tests") == suite.get("failures") == str(len(suite)) != "0"
    baseline, path = tmp_path / "leaks.txt", tmp_path / "leaks.xml"
    assert cuwarden("report", "--write-baseline", baseline, sample_report).returncode == 0
    known = cuwarden("export", "--format", "junit", "--baseline", baseline, "-o", path, sample_report)
    assert (known.returncode, known.stdout) == (0, "")
    (suite,) = xml.etree.ElementTree.parse(path).getroot()
    assert suite.get("failures") == "0" and suite.get("skipped") == str(len(suite))
    github = cuwarden("export", "--format", "github", sample_report)
    assert all(line.startswith("::error ") for line in github.stdout.splitlines())


def test_annotations_name_files_of_the_checked_out_repository_by_their_path_in_it(cuwarden, sample_report):
    report = json.loads(sample_report.read_text())
    for frame in report["frames"]:
        frame["file"] = "/home/u/app/build/../src/cache.cpp"
    sample_report.write_text(json.dumps(report))
    github = ("export", "--format", "github", sample_report)
    assert "file=src/cache.cpp," in cuwarden(*github, GITHUB_WORKSPACE="/home/u/app").stdout
    assert "file=/home/u/app/src/cache.cpp," in cuwarden(*github, GITHUB_WORKSPACE="").stdout
    junit = cuwarden("export", "--format", "junit", sample_report, GITHUB_WORKSPACE="/home/u/app").stdout
    assert 'file="/home/u/app/src/cache.cpp"' in junit


@pytest.mark.parametrize("arguments", [(), ("--format", "junit"), ("--format", "yaml", "a.json")])
def test_an_export_needs_a_format_and_a_report(cuwarden, arguments):
    result = cuwarden("export", *arguments)
    assert result.returncode == 2 and one_line(result.stderr)


def test_an_export_of_a_part_is_none(cuwarden, sample_report, tmp_path):
    result = cuwarden("export", "--format", "junit", sample_report, tmp_path / "nowhere.json")
    assert result.returncode == 2 and result.stdout == "" and one_line(result.stderr)
