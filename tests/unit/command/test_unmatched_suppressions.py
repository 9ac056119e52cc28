"""Suppressions that matched nothing are told once for all reports that a command has read."""

import json

import pytest

NONE = "suppressions that matched nothing in {} reports:\n    leak:nowhere\n"


@pytest.fixture
def rules(ranks, tmp_path):
    """A file with a rule that matches in rank 3 alone, and one that matches nothing."""
    path = ranks / "rank0003.json"
    report = json.loads(path.read_text())
    for frame in report["frames"]:
        frame["function"] = "only_in_rank_3"
    path.write_text(json.dumps(report))
    rules = tmp_path / "rules.txt"
    rules.write_text("leak:nowhere\nleak:^only_in_rank_3$\n")
    return rules


def test_the_text_of_a_folder_ends_with_lines_that_matched_in_no_report(cuwarden, ranks, rules):
    shown = cuwarden("report", "--suppressions", rules, ranks)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.endswith("\n\n" + NONE.format(6))
    assert "suppressions that" not in cuwarden("report", ranks).stdout
    checked = cuwarden("report", "--suppressions", rules, "--fail-on-leak", ranks)
    assert checked.stdout.splitlines()[-1].startswith("FAIL: ")
    printed = cuwarden("report", "--suppressions", rules, "--print-suppressions", ranks)
    assert "nowhere" not in printed.stdout + printed.stderr


def test_texts_of_several_files_leave_it_to_lines_at_the_end(cuwarden, ranks, rules):
    files = sorted(ranks.iterdir())[2:4]
    shown = cuwarden("report", "--suppressions", rules, *files)
    assert shown.stdout.endswith("\n\n" + NONE.format(2)) and "matched nothing\n" not in shown.stdout
    assert "    leak:^only_in_rank_3$: " in shown.stdout
    for path, unmatched in zip(files, (["nowhere", "^only_in_rank_3$"], ["nowhere"])):
        alone = cuwarden("report", "--suppressions", rules, path).stdout
        assert [line.strip() for line in alone.splitlines() if line.endswith(" matched nothing")] == [
            f"leak:{pattern} matched nothing" for pattern in unmatched
        ]
        assert "suppressions that" not in alone


def test_nothing_is_said_if_a_report_cannot_be_read(cuwarden, ranks, rules):
    path = ranks / "rank0003.json"
    text = path.read_text()
    path.write_text(text[: len(text) * 9 // 10])
    for command in (("report",), ("merge",), ("diff", ranks)):
        result = cuwarden(*command, "--suppressions", rules, ranks)
        assert result.returncode == 2 and "rank0003.json" in result.stderr
        assert "suppressions that" not in result.stdout + result.stderr


def test_a_comparison_counts_the_reports_of_both_sides(cuwarden, ranks, rules, tmp_path):
    compared = cuwarden("diff", "--suppressions", rules, ranks / "rank0003.json", ranks / "rank0004.json")
    assert (compared.returncode, compared.stderr) == (0, "")
    assert compared.stdout.startswith(NONE.format(2) + "\nCOMPARED WITH ")
    assert "suppressions that" not in cuwarden("diff", ranks, ranks).stdout
    baseline = cuwarden("diff", "--suppressions", rules, "--write-baseline", "-", ranks, ranks)
    assert "nowhere" not in baseline.stdout and NONE.format(12) in baseline.stderr


def test_a_merge_says_it_beside_the_merged_report(cuwarden, ranks, rules, tmp_path):
    path = tmp_path / "merged.json"
    merged = cuwarden("merge", "--suppressions", rules, ranks, "-o", path)
    assert (merged.returncode, merged.stdout) == (0, "")
    assert merged.stderr == NONE.format(6) + f"merged: {path} (6 processes)\n"
    rules.write_text("leak:only_in_rank_3\n")
    assert cuwarden("merge", "--suppressions", rules, ranks).stderr == ""
