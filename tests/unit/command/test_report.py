"""`cuwarden report`: its output and exit status, for whole and for damaged reports."""

import copy
import functools
import json

import pytest

from conftest import one_line

def test_the_sample_report_follows_the_schema(sample_report, schema):
    schema.validate(json.loads(sample_report.read_text()))


@pytest.mark.parametrize(
    "damage",
    [
        lambda report: report.pop("hooks"),
        lambda report: report["leak_groups"][0].update(count=0),
        lambda report: report["leak_groups"][0].update(colour="red"),
        lambda report: report["leak_groups"][0].update(kind="colour"),
        lambda report: report["leak_groups"][0].update(example_address=1234),
        lambda report: report["frames"][0].update(line=0),
        lambda report: report["process"].update(start="yesterday"),
        lambda report: report["tool"].update(complete=True, reasons=["something is missing"]),
        lambda report: report["accounts"][0].update(bytes=-1),
        lambda report: report["totals"][0].update(live_bytes=2**60),
        lambda report: report["hooks"][0].update(calls=0),
        lambda report: report.update(schema="cuwarden.report/2"),
    ],
)
def test_the_schema_catches_mistakes(sample_report, schema, damage):
    report = json.loads(sample_report.read_text())
    assert schema.is_valid(copy.deepcopy(report))
    damage(report)
    assert not schema.is_valid(report)


def test_report_prints_to_stdout_without_colour(cuwarden, sample_report):
    result = cuwarden("report", sample_report)
    assert result.returncode == 0
    assert result.stderr == ""
    assert "LEAKS: 8.0 MiB in 8 allocations" in result.stdout
    assert "\033" not in result.stdout


def test_fail_on_leak_is_status_1_only_with_leaks(cuwarden, sample_report, clean_report):
    assert cuwarden("report", "--fail-on-leak", sample_report).returncode == 1
    clean = cuwarden("report", "--fail-on-leak", clean_report)
    assert clean.returncode == 0
    assert "no leaks" in clean.stdout
    assert cuwarden("report", "--fail-on-leak", clean_report, sample_report).returncode == 1


@pytest.fixture
def doubtful(clean_report, tmp_path):
    """Returns a function that writes a report without leaks, of which one part is not complete."""

    def make(part, reasons):
        report = json.loads(clean_report.read_text())
        for lacking in {part, "tool"} - ({"tool"} if part == "coverage" else set()):
            report[lacking] = {**report[lacking], "complete": False, "reasons": reasons}
        path = tmp_path / "doubtful.json"
        path.write_text(json.dumps(report))
        return path

    return make


@pytest.mark.parametrize("part", ["records", "coverage"])
def test_a_report_that_lacks_records_fails_the_leak_check(cuwarden, doubtful, part):
    path = doubtful(part, ["the moon was full"])
    result = cuwarden("report", "--fail-on-leak", path)
    assert result.returncode == 1
    assert one_line(result.stderr)
    assert str(path) in result.stderr and "the moon was full" in result.stderr
    assert "no leaks:" not in result.stdout and "the moon was full" in result.stdout
    assert cuwarden("report", path).returncode == 0


def test_a_report_that_only_lacks_names_is_judged_by_its_records(cuwarden, doubtful):
    path = doubtful("tool", ["x.so could not be read: its functions are not named"])
    assert cuwarden("report", "--fail-on-leak", path).returncode == 0


def test_an_old_report_without_records_is_judged_by_its_tool_table(cuwarden, doubtful):
    path = doubtful("tool", ["a table of the ledger was full"])
    report = json.loads(path.read_text())
    del report["records"]
    path.write_text(json.dumps(report))
    result = cuwarden("report", "--fail-on-leak", path)
    assert result.returncode == 1 and "table of the ledger was full" in result.stderr


@pytest.mark.parametrize("options", [["--min-bytes", "1TiB"], ["--top", "1"], ["--by", "kind"]])
def test_fail_on_leak_counts_all_leaks_and_not_only_the_rows_that_are_shown(
    cuwarden, sample_report, options
):
    assert cuwarden("report", "--fail-on-leak", *options, sample_report).returncode == 1
    report = json.loads(sample_report.read_text())
    report["leak_groups"] = []
    sample_report.write_text(json.dumps(report))
    assert cuwarden("report", "--fail-on-leak", *options, sample_report).returncode == 1


@pytest.fixture
def two_modules(sample_report, tmp_path):
    """A report with two modules, one of which has all the leaks."""
    report = json.loads(sample_report.read_text())
    leaking = {"id": 9001, "path": "/opt/vendor/libvendor.so.2", "build_id": None}
    clean = {"id": 9002, "path": "/opt/clean/libclean.so", "build_id": None}
    report["modules"] += [leaking, clean]
    for group in report["leak_groups"]:
        group["module"] = 9001
    path = tmp_path / "modules.json"
    path.write_text(json.dumps(report))
    return path


def test_a_module_filter_restricts_the_leaks_that_are_judged(cuwarden, two_modules):
    for module, status in (("libvendor", 1), ("/opt/vendor/", 1), ("libclean", 0)):
        result = cuwarden("report", "--fail-on-leak", "--module", module, two_modules)
        assert (result.returncode, result.stderr) == (status, ""), module


@pytest.mark.parametrize("options", [["--fail-on-leak"], []])
def test_a_module_that_no_report_knows_is_wrong_usage(cuwarden, two_modules, options):
    result = cuwarden("report", *options, "--module", "libvndor", two_modules)
    assert result.returncode == 2 and result.stdout == ""
    assert one_line(result.stderr)
    assert "--module libvndor" in result.stderr and "libvendor.so.2" in result.stderr


def test_a_module_that_one_of_the_reports_knows_is_a_filter(cuwarden, clean_report, two_modules):
    for files in ([clean_report, two_modules], [two_modules, clean_report]):
        result = cuwarden("report", "--fail-on-leak", "--module", "libclean", *files)
        assert (result.returncode, result.stderr) == (0, "")
        assert result.stdout.count("\nMEMORY ") == 2


def test_a_leak_of_an_unknown_module_fails_the_check_of_any_module(cuwarden, two_modules):
    report = json.loads(two_modules.read_text())
    leaks = [group for group in report["leak_groups"] if group["released_by"] is None]
    leaks[0]["module"] = None
    two_modules.write_text(json.dumps(report))
    result = cuwarden("report", "--fail-on-leak", "--module", "libclean", two_modules)
    assert result.returncode == 1
    assert one_line(result.stderr) and "not known" in result.stderr


def test_bad_input_gives_one_line_and_the_other_files_are_shown(cuwarden, sample_report, tmp_path):
    (tmp_path / "bad.json").write_text("{")
    result = cuwarden("report", tmp_path / "bad.json", sample_report)
    assert result.returncode == 2
    assert one_line(result.stderr)
    assert "LEAKS" in result.stdout


def spoiled(report, path, value):
    """Returns the report with another value at `path`; None if the report has no such path."""
    report = copy.deepcopy(report)
    *way, last = path
    node = report
    for step in way:
        node = node[step]
    node[last] = value
    return report


def paths_in(node, path=()):
    """Yields the path of every object, every table's first row and every field of a report."""
    if path:
        yield path
    if isinstance(node, dict):
        for name, child in node.items():
            yield from paths_in(child, (*path, name))
    elif isinstance(node, list) and node:
        yield from paths_in(node[0], (*path, 0))


def test_a_report_with_a_value_of_the_wrong_type_gives_one_line_that_names_it(
    cuwarden, sample_report, tmp_path
):
    report = json.loads(sample_report.read_text())
    fields = {}
    for at in paths_in(report):
        for value in ({"a": 1}, [[]], "text", -1.5, True, None):
            right = functools.reduce(lambda node, step: node[step], at, report)
            if type(value) is type(right) or at == ("schema",):
                continue
            path = tmp_path / f"spoiled-{len(fields)}.json"
            path.write_text(json.dumps(spoiled(report, at, value)))
            fields[str(path)] = [step for step in at if isinstance(step, str)][-1]
    result = cuwarden("report", *fields)
    assert result.returncode == 2
    named = 0
    for line in result.stderr.splitlines():  # fields that are never shown give no line
        _, path, said = line.split(": ", 2)
        assert said.startswith("a damaged report (") and fields.pop(path) in said, line
        named += 1
    assert named > 150
    assert result.stdout.count("\nMEMORY ") == len(fields)


@pytest.mark.parametrize(
    "at, value, words",
    [
        (("leak_groups", 1, "bytes"), "many", "leak_groups[1].bytes"),
        (("totals", 0), 7, "totals[0]"),
        (("stacks", 0, "frames", 0), "x", "stacks[0].frames[0]"),
        (("process",), None, "process"),
        (("timeline",), {}, "timeline"),
        (("tool", "reasons"), [1], "tool.reasons[0]"),
    ],
)
def test_the_line_about_a_damaged_report_names_the_damaged_field(
    cuwarden, sample_report, tmp_path, at, value, words
):
    path = tmp_path / "spoiled.json"
    path.write_text(json.dumps(spoiled(json.loads(sample_report.read_text()), at, value)))
    result = cuwarden("report", "--fail-on-leak", path)
    assert result.returncode == 2 and result.stdout == ""
    assert one_line(result.stderr) and words in result.stderr


def test_a_report_that_lacks_a_table_or_a_field_gives_one_line(cuwarden, sample_report, tmp_path):
    report = json.loads(sample_report.read_text())
    path = tmp_path / "lacking.json"
    for lost in ("process", "leak_groups", "stacks", "tool"):
        path.write_text(json.dumps({name: part for name, part in report.items() if name != lost}))
        result = cuwarden("report", path)
        assert result.returncode == 2 and one_line(result.stderr) and lost in result.stderr
    del report["leak_groups"][0]["count"]
    path.write_text(json.dumps(report))
    result = cuwarden("report", path)
    assert result.returncode == 2 and "leak_groups[0].count" in result.stderr
