"""`merge`: one report of many processes, which other verbs read; bad input gives one line each."""

import json
import os
import re
import resource
import shutil
import subprocess

import jsonschema
import pytest

from conftest import built, one_line


@pytest.fixture
def merged_schema():
    schema = json.loads(built("CUWARDEN_SCHEMA").with_name("merged.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.fixture
def merged(cuwarden, ranks, tmp_path):
    path = tmp_path / "merged.json"
    result = cuwarden("merge", ranks, "-o", path)
    assert (result.returncode, result.stdout) == (0, ""), result.stderr
    assert result.stderr == f"merged: {path} (6 processes)\n"
    return path


def test_a_merged_report_has_the_schemas_form_and_a_row_for_each_process(merged, merged_schema):
    report = json.loads(merged.read_text())
    merged_schema.validate(report)
    assert [row["report"] for row in report["processes"]] == [f"rank{rank:04}.json" for rank in range(6)]
    assert [row["rank"] for row in report["processes"]] == list(range(6))
    assert {row["processes"] for row in report["leaks"]} == {6}
    assert report["tool"]["complete"] is True
    assert merged.stat().st_mode & 0o777 == 0o600


def test_the_text_of_a_merged_report_is_that_of_the_folder(cuwarden, merged, ranks):
    for options in ((), ("--top", "1"), ("--full-stacks",)):
        folder, file = cuwarden("report", *options, ranks), cuwarden("report", *options, merged)
        assert (folder.returncode, folder.stderr) == (file.returncode, file.stderr) == (0, "")
        assert folder.stdout == file.stdout and "rank 5" in file.stdout


def test_standard_output_and_input_carry_a_merged_report(cuwarden, merged, ranks, installed, tmp_path):
    assert cuwarden("merge", ranks).stdout == cuwarden("merge", "-o", "-", ranks).stdout == merged.read_text()
    with open(merged, encoding="utf-8") as file:
        shown = subprocess.run(
            [installed / "cuwarden", "report", "-"], stdin=file, capture_output=True, text=True, cwd=tmp_path
        )
    assert shown.stdout == cuwarden("report", merged).stdout


def test_a_file_named_as_standard_input_is_not_taken_for_it(installed, ranks, tmp_path):
    shutil.copy(ranks / "rank0000.json", tmp_path / "-")
    with open(ranks / "rank0001.json", encoding="utf-8") as file:
        result = subprocess.run(
            [installed / "cuwarden", "merge", "-", ranks / "rank0000.json"],
            stdin=file, capture_output=True, text=True, cwd=tmp_path,
        )  # fmt: skip
    assert (result.returncode, result.stderr) == (0, "")
    assert {row["rank"] for row in json.loads(result.stdout)["processes"]} == {0, 1}


def test_standard_input_that_is_no_report_is_named_with_its_reason(cuwarden, installed, tmp_path):
    bad = tmp_path / "bad.json"
    for content in ("garbage", '{"schema": ', ""):
        bad.write_text(content)
        result = subprocess.run(
            [installed / "cuwarden", "merge", "-"], input=content, capture_output=True, text=True, cwd=tmp_path
        )
        of_file = cuwarden("merge", bad)
        assert result.returncode == of_file.returncode == 2 and one_line(result.stderr)
        assert result.stderr == of_file.stderr.replace(str(bad), "standard input")


def test_a_merged_report_without_processes_gives_one_line(cuwarden, merged, tmp_path):
    report = json.loads(merged.read_text())
    empty = {name: [] if isinstance(part, list) else part for name, part in report.items()}
    (tmp_path / "empty.json").write_text(json.dumps(empty | {"first_refusal": None}))
    result = cuwarden("merge", tmp_path / "empty.json")
    assert (result.returncode, result.stdout) == (2, "") and one_line(result.stderr)
    assert "no input has a process" in result.stderr


def test_merged_reports_are_merged_again(cuwarden, merged, ranks, tmp_path):
    parts = []
    for part in range(3):
        parts.append(tmp_path / f"part{part}.json")
        files = (ranks / f"rank{rank:04}.json" for rank in (2 * part, 2 * part + 1))
        assert cuwarden("merge", "-o", parts[-1], *files).returncode == 0
    again = json.loads(cuwarden("merge", *parts).stdout)
    for row in again["processes"]:
        row["report"] = os.path.basename(row["report"])
    assert again == json.loads(merged.read_text())


def test_leaks_of_a_merged_report_are_checked_and_compared_as_those_of_the_folder(
    cuwarden, merged, ranks, sample_report, tmp_path
):
    baselines = [tmp_path / "folder.txt", tmp_path / "merged.txt"]
    for source, baseline in zip((ranks, merged), baselines):
        assert cuwarden("report", "--write-baseline", baseline, source).returncode == 0
    assert baselines[0].read_text() == baselines[1].read_text()
    for options in (
        ("report", "--fail-on-leak"),
        ("report", "--print-suppressions"),
        ("report", "--baseline", baselines[0], "--fail-on-growth"),
        ("diff", "--fail-on-new", sample_report),
        ("diff", "--fail-on-growth", sample_report),
        ("export", "--format", "junit"),
        ("export", "--format", "github"),
    ):
        outcomes = [cuwarden(*options, source) for source in (ranks, merged)]
        assert outcomes[0].stdout == outcomes[1].stdout.replace(str(merged), str(ranks)) != ""
        assert outcomes[0].returncode == outcomes[1].returncode
    assert cuwarden("report", "--fail-on-leak", merged).returncode == 1
    assert cuwarden("diff", "--fail-on-growth", sample_report, merged).returncode == 1
    assert cuwarden("diff", "--fail-on-growth", ranks, merged).returncode == 0


def test_a_merged_report_names_the_tests_that_leaked_and_their_ranks(cuwarden, ranks, merged_schema, tmp_path):
    for rank in (1, 4):
        path = ranks / f"rank{rank:04}.json"
        report = json.loads(path.read_text())
        group = report["leak_groups"][0]
        group["named_steps"] = [{"name": f"test_{rank}", "count": group["count"], "bytes": group["bytes"]}]
        path.write_text(json.dumps(report))
    merged = tmp_path / "steps.json"
    assert cuwarden("merge", "-o", merged, ranks).returncode == 0
    report = json.loads(merged.read_text())
    merged_schema.validate(report)
    (leak,) = [leak for leak in report["leaks"] if leak["named_steps"]]
    assert [step["name"] for step in leak["named_steps"]] == ["test_1", "test_4"]
    text = cuwarden("report", merged).stdout
    assert re.search(r"^ 1\. test_1 in rank 1 on node0: 6\.0 MiB in 6 allocations$", text, re.MULTILINE), text
    assert re.search(r"^ 2\. test_4 in rank 4 on node1: 6\.0 MiB in 6 allocations$", text, re.MULTILINE), text
    assert text == cuwarden("report", ranks).stdout
    assert "made in test_1" in cuwarden("export", "--format", "junit", merged).stdout


def test_options_that_need_the_reports_themselves_say_so(cuwarden, merged, tmp_path):
    rules = tmp_path / "rules.txt"
    rules.write_text("leak:x\n")
    for arguments in (
        ("report", "--module", "app"), ("report", "--suppressions", rules), ("report", "--symbols", tmp_path),
        ("report", "--redact"), ("export", "--format", "junit", "--suppressions", rules),
        ("merge", "--suppressions", rules), ("diff", "--module", "app", merged),
    ):  # fmt: skip
        result = cuwarden(*arguments, merged)
        assert result.returncode == 2 and result.stdout == "", arguments
        lines = result.stderr.splitlines()
        assert lines and all(str(merged) in line and "the reports themselves" in line for line in lines)


def test_suppressions_hold_when_reports_are_merged(cuwarden, ranks, tmp_path):
    rules = tmp_path / "rules.txt"
    rules.write_text(cuwarden("report", "--print-suppressions", ranks).stdout.replace("# leak:", "leak:"))
    report = json.loads(cuwarden("merge", "--suppressions", rules, ranks).stdout)
    assert report["leaks"] == [] and report["suppressed_fingerprints"] != []
    assert {row["leak_count"] for row in report["processes"]} == {0}


def test_a_report_that_is_given_twice_counts_once(cuwarden, merged, ranks, tmp_path):
    shutil.copy(ranks / "rank0003.json", ranks / "copy.json")
    for arguments in ((ranks,), (*sorted(ranks.glob("rank*.json")), ranks / "copy.json"), (merged, ranks / "copy.json")):
        result = cuwarden("merge", *arguments, "-o", tmp_path / "out.json")
        assert result.returncode == 2
        line, outcome = result.stderr.splitlines()
        assert "counts once" in line and outcome.endswith("(6 processes)")
    result = cuwarden("merge", merged, merged)
    assert result.returncode == 2 and one_line(result.stderr) and "6 of its 6 processes" in result.stderr
    assert result.stdout == merged.read_text()


def test_each_bad_file_gives_one_line_and_the_others_are_merged(cuwarden, merged, ranks, merged_schema, tmp_path):
    whole = (ranks / "rank0000.json").read_text()
    bad = {
        "cut.json": whole[: len(whole) // 2],
        "empty.json": "",
        "later.json": '{"schema": "cuwarden.report/7"}',
    }
    for name, content in bad.items():
        (ranks / name).write_text(content)
    out = tmp_path / "out.json"
    result = cuwarden("merge", ranks, "-o", out)
    assert result.returncode == 2
    *lines, outcome = result.stderr.splitlines()
    assert sorted(name for line in lines for name in bad if name in line) == sorted(bad)
    assert outcome.endswith("(6 processes)")
    report = json.loads(out.read_text())
    merged_schema.validate(report)
    assert report["tool"]["complete"] is False and len(report["tool"]["reasons"]) == 3
    shown = cuwarden("report", "--fail-on-new", "--baseline", write_baseline(cuwarden, merged, tmp_path), out)
    assert shown.returncode == 1 and shown.stderr.count("it is incomplete: ") == 3


def write_baseline(cuwarden, merged, folder):
    path = folder / "leaks.txt"
    assert cuwarden("report", "--write-baseline", path, merged).returncode == 0
    return path


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda report: report | {"schema": "cuwarden.merged/2"}, "cuwarden.merged/2"),
        (lambda report: {name: part for name, part in report.items() if name != "devices"}, "devices is missing"),
        (lambda report: report | {"processes": []}, "names no row"),
    ],
)
def test_a_merged_report_that_cannot_be_read_is_named(cuwarden, merged, ranks, change, words):
    merged.write_text(json.dumps(change(json.loads(merged.read_text()))))
    for arguments in (("report", merged), ("merge", merged), ("diff", ranks, merged)):
        result = cuwarden(*arguments)
        assert (result.returncode, result.stdout) == (2, "")
        assert one_line(result.stderr) and str(merged) in result.stderr and words in result.stderr


def test_a_merged_report_that_was_cut_is_named(cuwarden, merged):
    merged.write_text(merged.read_text()[:-40])
    for verb in ("report", "merge"):
        result = cuwarden(verb, merged)
        assert (result.returncode, result.stdout) == (2, "") and one_line(result.stderr)


def test_a_folder_without_reports_and_no_argument_are_wrong_usage(cuwarden, merged, tmp_path):
    folder = tmp_path / "none"
    folder.mkdir()
    for arguments in ((), (folder,), (tmp_path / "missing.json",)):
        result = cuwarden("merge", *arguments)
        assert (result.returncode, result.stdout) == (2, "") and one_line(result.stderr), arguments
    shutil.copy(merged, folder / "m.json")
    for verb in ("merge", "report"):
        result = cuwarden(verb, folder)
        assert result.returncode == 2 and one_line(result.stderr) and "m.json" in result.stderr


def test_a_merged_report_in_the_folder_of_reports_is_passed_over(cuwarden, merged, ranks):
    before = cuwarden("report", ranks).stdout
    shutil.copy(merged, ranks / "all.json")
    result = cuwarden("merge", ranks)
    assert result.returncode == 0 and result.stdout == merged.read_text()
    assert "all.json: a merged report in a folder is passed over" in result.stderr
    assert cuwarden("report", ranks).stdout == before


@pytest.mark.parametrize("path", ["nowhere/m.json", "folder", "/dev/full"])
def test_an_output_that_cannot_be_written_is_named(cuwarden, ranks, tmp_path, path):
    (tmp_path / "folder").mkdir()
    result = cuwarden("merge", ranks, "-o", path)
    assert result.returncode == 2 and one_line(result.stderr) and path in result.stderr
    assert list((tmp_path / "folder").iterdir()) == []


def test_no_input_is_overwritten_by_the_output(cuwarden, ranks, tmp_path):
    files = sorted(ranks.iterdir())
    rules, link = tmp_path / "rules.txt", tmp_path / "link.json"
    rules.write_text("leak:x\n")
    link.symlink_to(files[0])
    for output, *inputs in ((files[0], *files), (files[0], ranks), (link, ranks), (rules, "--suppressions", rules, ranks)):
        before = output.read_text()
        result = cuwarden("merge", *inputs, "-o", output)
        assert result.returncode == 2 and one_line(result.stderr) and str(output) in result.stderr
        assert output.read_text() == before


def test_the_merged_report_of_an_earlier_run_in_the_folder_is_replaced(cuwarden, ranks):
    for _ in range(2):
        result = cuwarden("merge", ranks, "-o", ranks / "all.json")
        assert result.returncode == 0 and result.stderr.endswith("(6 processes)\n")


def test_reports_of_several_programs_are_merged_and_the_programs_named(cuwarden, ranks):
    report = json.loads((ranks / "rank0000.json").read_text())
    report["process"]["program"] = "/opt/other/server"
    (ranks / "rank0000.json").write_text(json.dumps(report))
    result = cuwarden("merge", ranks)
    assert result.returncode == 0 and len(json.loads(result.stdout)["processes"]) == 6
    assert result.stderr.startswith("the reports are of 2 programs: ") and "server" in result.stderr


def test_a_ledger_in_the_folder_leaves_the_merged_report_incomplete(cuwarden, ranks):
    (ranks / "cuwarden-ledger-x").write_bytes(b"CWARDEN1" + bytes(5000))
    result = cuwarden("merge", ranks)
    assert result.returncode == 0 and one_line(result.stderr) and "cuwarden recover" in result.stderr
    assert "1 process with a ledger" in json.loads(result.stdout)["tool"]["reasons"][0]
    alone = cuwarden("merge", ranks / "cuwarden-ledger-x")
    assert alone.returncode == 2 and alone.stdout == "" and one_line(alone.stderr)


def put_large_ranks(report, folder, count, size):
    """Writes reports of `size` bytes each, whose leaks are the same in all ranks."""
    content = json.loads(report.read_text())
    stack, frame, group = content["stacks"][0], content["frames"][0], content["leak_groups"][0]

    def rows(number):
        new = 10_000 + number
        return (
            frame | {"id": new, "function": f"Cache::insert_{number:04}(Key const&)"},
            stack | {"id": new, "frames": [new, *stack["frames"]]},
            group | {"stack": new, "fingerprint": f"{number:016x}"},
        )

    for number in range((size - len(json.dumps(content))) // (len(json.dumps(rows(0))) + 2) - 1):
        for table, row in zip(("frames", "stacks", "leak_groups"), rows(number)):
            content[table].append(row)
    content["process"] |= {"pid": 987_654, "host": "node-of-rank"}
    text = json.dumps(content)
    assert text.count("987654") == 1
    text += " " * (size - len(text))  # The rest is shorter than two rows.
    folder.mkdir()
    for rank in range(count):
        own = text.replace("987654", str(100_000 + rank)).replace("node-of-rank", f"node{rank // 8}")
        (folder / f"rank{rank:04}.json").write_text(own)
    return folder


def test_a_thousand_reports_are_merged_in_bounded_memory_and_time(cuwarden, installed, sample_report, tmp_path):
    folder = put_large_ranks(sample_report, tmp_path / "many", 1000, 100 << 10)
    assert sum(file.stat().st_size for file in folder.iterdir()) >= 95 << 20
    done = subprocess.run(
        [installed / "cuwarden", "merge", "-o", tmp_path / "m.json", folder],
        capture_output=True, text=True, check=False,
        preexec_fn=lambda: (
            resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30)),
            resource.setrlimit(resource.RLIMIT_CPU, (20, 20)),
        ),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "m.json").read_text())
    assert len(report["processes"]) == 1000 and len(report["leaks"]) > 50
    assert all(row["processes"] == 1000 for row in report["leaks"])
