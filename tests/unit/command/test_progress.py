"""Work that takes longer than a second shows on the terminal how far it is."""

import json
import os
import pty
import subprocess
import threading

import pytest

from conftest import built, in_long_seconds


@pytest.fixture
def shown(installed, tmp_path):
    """Returns a function that runs the command; it returns what the command writes to standard error, a terminal."""

    def call(*words, stdout=subprocess.DEVNULL, **variables):
        terminal, of_command = pty.openpty()
        # A line of progress is cut to the terminal's width.
        subprocess.run(["stty", "cols", "500"], stdin=of_command, check=True)
        process = subprocess.Popen(
            [installed / "cuwarden", *map(str, words)], cwd=tmp_path, stdout=stdout or of_command, stderr=of_command,
            env={**os.environ, "TMPDIR": str(tmp_path), **in_long_seconds(), **variables},
        )  # fmt: skip
        os.close(of_command)
        pieces = []

        def read():
            try:
                while piece := os.read(terminal, 4096):
                    pieces.append(piece)
            except OSError:  # the terminal is closed
                pass

        reading = threading.Thread(target=read)
        reading.start()
        assert process.wait(60) == 0
        reading.join(60)
        os.close(terminal)
        return b"".join(pieces).decode()

    return call


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
    # Both of the two times that the text is read are shown.
    read = [float(part.split(" ")[0]) for part in text.split(f"reading {large_report}: ")[1:]]
    assert read and max(read) > 3.5, text
    assert "writing rows of the redacted copy: " in text, text


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
    process.communicate()


@pytest.mark.parametrize("options", [[], ["-o", "-"], ["--format", "text"], ["--format", "collapsed"]], ids=" ".join)
def test_a_snapshot_shows_in_how_many_modules_it_has_found_names(shown, ledger_of_running_process, options):
    text = shown("snapshot", ledger_of_running_process, *options)
    assert "finding names of functions in modules: " in text, text


def test_no_line_of_progress_is_mixed_into_a_snapshot_on_the_terminal(shown, ledger_of_running_process):
    text = shown("snapshot", ledger_of_running_process, "-o", "-", stdout=None)
    _, start, report = text.rpartition("\r\x1b[K")
    assert start and report.startswith("{") and json.loads(report)["schema"] == "cuwarden.report/1"
