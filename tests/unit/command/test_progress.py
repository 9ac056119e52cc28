"""Work that takes longer than a second shows on the terminal how far it is."""

import hashlib
import json
import os
import re
import subprocess

import pytest

from conftest import built, in_long_seconds, put_ranks, terminal


@pytest.fixture
def shown(installed, tmp_path):
    """Returns a function that runs the command; it returns what the command writes to standard error, a terminal."""

    def call(*words, stdout=subprocess.DEVNULL, **variables):
        with terminal() as (of_command, pieces):
            # A line of progress is cut to the terminal's width.
            subprocess.run(["stty", "cols", "500"], stdin=of_command, check=True)
            subprocess.run(
                [installed / "cuwarden", *map(str, words)], cwd=tmp_path, stdout=stdout or of_command, stderr=of_command,
                env={**os.environ, "TMPDIR": str(tmp_path), **in_long_seconds(), **variables}, timeout=60, check=True,
            )  # fmt: skip
        return b"".join(pieces).decode()

    return call


@pytest.fixture
def has_page(cuwarden, sample_report, tmp_path):
    """False if this build has no format html."""
    done = cuwarden("export", "--format", "html", "-o", tmp_path / "page.html", sample_report)
    return "was built without the page" not in done.stderr


@pytest.fixture
def large_report(sample_report):
    """A report of some MiB, most of them blanks: progress is counted in MiB."""
    content = sample_report.read_text().rstrip()
    sample_report.write_text(content[:-1] + "\n" * (5 << 20) + "}\n")
    return sample_report


def test_run_shows_how_much_of_a_report_it_has_read(shown, large_report):
    text = shown("run", "--", "true", FAKE_REPORT=str(large_report))
    assert f"reading {large_report}: " in text and "MiB of 5.0 MiB" in text, text
    assert "report: " in text


@pytest.mark.parametrize("to_file", [False, True])
def test_redaction_shows_what_it_reads_and_what_it_writes(shown, large_report, tmp_path, to_file):
    content = json.loads(large_report.read_text())
    content["hooks"] = [{"name": f"cuCall{number}", "calls": 1} for number in range(5000)]
    large_report.write_text(json.dumps(content) + "\n" * (5 << 20))
    text = shown("report", "--redact", large_report, "-o", tmp_path / "copy.json" if to_file else "-")
    # The text is read twice, and the JSON is passed over. All three passes are shown.
    read = [float(part.split(" ")[0]) for part in text.split(f"reading {large_report}: ")[1:]]
    assert read and max(read) > 3.5, text
    assert "writing rows of the redacted copy: " in text, text


@pytest.fixture
def report_of_many_leaks(sample_report):
    """A report of 3,000 leaks at different stacks: progress is told for each 1,024 of them."""
    content = json.loads(sample_report.read_text())
    group, stack, frame = content["leak_groups"][0], content["stacks"][0], content["frames"][0]
    numbers = range(1, 3001)
    # Hashes cannot be compressed much, so that a page has several pieces of compressed bytes.
    names = [hashlib.sha256(str(number).encode()).hexdigest() for number in numbers]
    content["frames"] = [{**frame, "id": number, "function": name} for number, name in zip(numbers, names)]
    content["stacks"] = [{**stack, "id": number, "frames": [number]} for number in numbers]
    content["leak_groups"] = [{**group, "stack": number, "fingerprint": f"{number:016x}"} for number in numbers]
    # None of the leaks is in a segment whose blocks the report lists.
    content["framework_sites"] = []
    sample_report.write_text(json.dumps(content))
    return sample_report


# Makes a line of progress in which rows are done and left: "20 of 3,000" and not "0 of 3,000".
ROWS_ARE_DONE = ": [1-9][0-9,]* of 3,0[0-9]+, about "


def test_a_report_shows_of_how_many_leaks_it_has_made_the_text(shown, report_of_many_leaks):
    text = shown("report", report_of_many_leaks)
    assert re.search(f"making the text of {report_of_many_leaks}{ROWS_ARE_DONE}", text), text


def test_run_shows_of_how_many_leaks_it_has_made_the_text(shown, report_of_many_leaks):
    text = shown("run", "--", "true", FAKE_REPORT=str(report_of_many_leaks))
    assert re.search(f"making the text of {report_of_many_leaks}{ROWS_ARE_DONE}", text), text


@pytest.mark.parametrize("name", ["collapsed", "html", "pprof", "pytorch"])
def test_an_export_shows_how_many_leaks_it_has_converted(shown, has_page, report_of_many_leaks, tmp_path, name):
    if name == "html" and not has_page:
        pytest.skip("this build has no format html")
    text = shown("export", "--format", name, report_of_many_leaks, "-o", tmp_path / "out")
    assert re.search(f"converting {report_of_many_leaks}{ROWS_ARE_DONE}", text), text


@pytest.mark.parametrize("name", ["github", "junit"])
def test_an_export_of_leaks_shows_how_many_it_has_compared(shown, report_of_many_leaks, tmp_path, name):
    text = shown("export", "--format", name, report_of_many_leaks, "-o", tmp_path / "out")
    assert re.search(f"comparing leaks of {report_of_many_leaks}{ROWS_ARE_DONE}", text), text


def test_an_export_of_a_page_shows_how_much_of_it_is_compressed(shown, has_page, report_of_many_leaks, tmp_path):
    if not has_page:
        pytest.skip("this build has no format html")
    text = shown("export", "--format", "html", report_of_many_leaks, "-o", tmp_path / "out")
    assert re.search("compressing: [1-9][0-9.]* [KM]iB of [1-9][0-9.]* [KM]iB, about ", text), text


@pytest.fixture
def many_leaks_twice(report_of_many_leaks, tmp_path):
    """A folder with the reports of two processes, of 3,000 leaks each."""
    return put_ranks(report_of_many_leaks, tmp_path / "ranks", 2)


def test_the_report_of_a_folder_shows_how_many_leaks_of_each_report_it_has_merged(shown, many_leaks_twice):
    text = shown("report", many_leaks_twice)
    assert re.search(f"merging leaks of [^ ]*rank0000.json{ROWS_ARE_DONE}", text), text


def test_a_merge_shows_how_many_leaks_of_each_report_it_has_merged(shown, many_leaks_twice, tmp_path):
    text = shown("merge", many_leaks_twice, "-o", tmp_path / "merged.json")
    assert re.search(f"merging leaks of [^ ]*rank0000.json{ROWS_ARE_DONE}", text), text


@pytest.mark.parametrize("verb", [["report"], ["merge", "-o", "out"], ["export", "--format", "junit", "-o", "out"]])
def test_each_verb_shows_how_much_of_a_merged_report_it_has_read(shown, cuwarden, sample_report, tmp_path, verb):
    merged = tmp_path / "merged.json"
    assert cuwarden("merge", sample_report, "-o", merged).returncode == 0
    merged.write_text(merged.read_text().rstrip()[:-1] + "\n" * (5 << 20) + "}\n")
    text = shown(*verb, merged)
    # Both of the two times that the text is read are shown.
    read = [float(part.split(" ")[0]) for part in text.split(f"reading {merged}: ")[1:] if "MiB of 5.0 MiB" in part]
    assert read and max(read) > 3.5, text


def test_redaction_shows_how_many_rows_it_has_redacted(shown, report_of_many_leaks):
    text = shown("report", "--redact", report_of_many_leaks, "-o", "-")
    assert re.search(f"redacting {report_of_many_leaks}: [1-9][0-9,]* of [0-9,]+, about ", text), text
    # Both of the two passes count: after 1,024 rows of the first one, half as many are done.
    assert f"redacting {report_of_many_leaks}: 512 of " in text, text


@pytest.fixture
def ledger_of_running_process(tmp_path):
    folder, ready = tmp_path / "ledgers", tmp_path / "list"
    folder.mkdir()
    ready.write_text("")
    process = subprocess.Popen(
        [built("CUWARDEN_LEAVE_LEDGER"), folder, tmp_path / "r.json", "sleep"],
        env={**os.environ, "CUWARDEN_REPORT_LIST": str(ready)}, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout.readline() == "ready\n"
    (ledger,) = folder.iterdir()
    yield ledger
    process.kill()
    process.communicate(timeout=60)


@pytest.mark.parametrize("options", [[], ["-o", "-"], ["--format", "text"], ["--format", "collapsed"]], ids=" ".join)
def test_a_snapshot_shows_in_how_many_modules_it_has_found_names(shown, ledger_of_running_process, options):
    text = shown("snapshot", ledger_of_running_process, *options)
    assert "finding names of functions in modules: " in text, text


def test_a_snapshot_shows_how_many_records_it_has_read(shown, ledger_of_running_process):
    text = shown("snapshot", ledger_of_running_process)
    assert "reading records of allocations: " in text, text


def test_no_line_of_progress_is_mixed_into_a_snapshot_on_the_terminal(shown, ledger_of_running_process):
    text = shown("snapshot", ledger_of_running_process, "-o", "-", stdout=None)
    _, start, report = text.rpartition("\r\x1b[K")
    assert start and report.startswith("{") and json.loads(report)["schema"] == "cuwarden.report/1"


def test_no_line_of_progress_is_mixed_into_a_page_of_a_snapshot_on_the_terminal(
    shown, has_page, ledger_of_running_process
):
    if not has_page:
        pytest.skip("this build has no format html")
    text = shown("snapshot", ledger_of_running_process, "--format", "html", stdout=None)
    _, start, page = text.rpartition("\r\x1b[K")
    assert start and page.lower().startswith("<!doctype html>") and page.rstrip().endswith("</html>"), page[:200]
