"""The command from the outside: exit statuses, one-line errors, what goes to which stream."""

import copy
import functools
import json
import os
import re
import signal
import stat
import subprocess

import pytest


def one_line(text):
    return text.startswith("cuwarden: ") and text.count("\n") == 1


# --- usage


def test_without_arguments_it_shows_help_and_fails(cuwarden):
    result = cuwarden()
    assert result.returncode == 2
    assert result.stdout == ""
    assert all(verb in result.stderr for verb in ("run", "report", "doctor"))


def test_help_and_version_succeed(cuwarden):
    assert cuwarden("--help").returncode == 0
    assert re.fullmatch(r"cuwarden \d+\.\d+\.\d+\n", cuwarden("--version").stdout)
    assert "--simulate" in cuwarden("run", "--help").stdout


def test_an_unknown_verb_names_those_there_are(cuwarden):
    result = cuwarden("frobnicate")
    assert result.returncode == 2
    assert one_line(result.stderr)
    assert all(verb in result.stderr for verb in ("frobnicate", "run", "report", "doctor"))


@pytest.mark.parametrize(
    "arguments",
    [
        ["report"],
        ["report", "--by", "colour", "x"],
        ["report", "--top", "many", "x"],
        ["report", "--min-bytes", "12 parsecs", "x"],
        ["report", "--frobnicate", "x"],
        ["run"],
        ["run", "--"],
        ["run", "--frobnicate", "--", "true"],
        ["run", "--frobnicate", "true"],
        ["run", "--simulate", "lots", "--", "true"],
        ["doctor", "--frobnicate"],
        ["doctor", "--", "no-such-command"],
        ["--frobnicate"],
    ],
)
def test_wrong_usage_is_one_line_and_status_2(cuwarden, arguments):
    result = cuwarden(*arguments)
    assert result.returncode == 2
    assert one_line(result.stderr), result.stderr
    assert result.stdout == ""


# --- report


def test_the_sample_report_follows_the_schema(sample_report, schema):
    schema.validate(json.loads(sample_report.read_text()))


@pytest.mark.parametrize(
    "damage",
    [
        lambda report: report.pop("hooks"),
        lambda report: report["leak_groups"][0].update(count=0),
        lambda report: report["leak_groups"][0].update(colour="red"),
        lambda report: report["leak_groups"][0].update(kind="heap"),
        lambda report: report["leak_groups"][0].update(example_address=1234),
        lambda report: report["frames"][0].update(line=0),
        lambda report: report["process"].update(start="yesterday"),
        lambda report: report["tool"].update(complete=True, reasons=["something is missing"]),
        lambda report: report["accounts"][0].update(bytes=-1),
        lambda report: report["totals"][0].update(live_bytes=2**60),
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
    """A report without leaks in which a part is not complete."""

    def make(part, reasons):
        report = json.loads(clean_report.read_text())
        for lacking in {part, "tool"} - ({"tool"} if part == "coverage" else set()):
            report[lacking] = {**report[lacking], "complete": False, "reasons": reasons}
        path = tmp_path / "doubtful.json"
        path.write_text(json.dumps(report))
        return path

    return make


@pytest.mark.parametrize("part", ["records", "coverage"])
def test_a_report_that_lacks_records_does_not_pass_for_free_of_leaks(cuwarden, doubtful, part):
    path = doubtful(part, ["the moon was full"])
    result = cuwarden("report", "--fail-on-leak", path)
    assert result.returncode == 1
    assert one_line(result.stderr)
    assert str(path) in result.stderr and "the moon was full" in result.stderr
    assert "no leaks:" not in result.stdout and "the moon was full" in result.stdout
    assert cuwarden("report", path).returncode == 0


def test_a_report_that_lacks_names_only_is_judged_by_its_records(cuwarden, doubtful):
    path = doubtful("tool", ["x.so could not be read: its functions are not named"])
    assert cuwarden("report", "--fail-on-leak", path).returncode == 0


def test_a_report_of_before_there_were_records_is_judged_by_the_tool(cuwarden, doubtful):
    path = doubtful("tool", ["a table of the ledger was full"])
    report = json.loads(path.read_text())
    del report["records"]
    path.write_text(json.dumps(report))
    result = cuwarden("report", "--fail-on-leak", path)
    assert result.returncode == 1 and "table of the ledger was full" in result.stderr


def test_fail_on_leak_goes_by_what_the_filters_let_through(cuwarden, sample_report):
    arguments = ("report", "--fail-on-leak", "--module", "no-such-module", sample_report)
    assert cuwarden(*arguments).returncode == 0


def test_bad_input_is_one_line_and_the_other_files_are_shown(cuwarden, sample_report, tmp_path):
    (tmp_path / "bad.json").write_text("{")
    result = cuwarden("report", tmp_path / "bad.json", sample_report)
    assert result.returncode == 2
    assert one_line(result.stderr)
    assert "LEAKS" in result.stdout


def spoiled(report, path, value):
    """The report with another value at this place; None where there is no such place."""
    report = copy.deepcopy(report)
    *way, last = path
    place = report
    for step in way:
        place = place[step]
    place[last] = value
    return report


def places(node, path=()):
    """Every object, first row and field of a report."""
    if path:
        yield path
    if isinstance(node, dict):
        for name, child in node.items():
            yield from places(child, (*path, name))
    elif isinstance(node, list) and node:
        yield from places(node[0], (*path, 0))


def test_a_report_with_a_value_of_the_wrong_type_is_one_line_that_names_it(
    cuwarden, sample_report, tmp_path
):
    report = json.loads(sample_report.read_text())
    fields = {}
    for place in places(report):
        for value in ({"a": 1}, [[]], "text", -1.5, True, None):
            right = functools.reduce(lambda node, step: node[step], place, report)
            if type(value) is type(right) or place == ("schema",):
                continue
            path = tmp_path / f"spoiled-{len(fields)}.json"
            path.write_text(json.dumps(spoiled(report, place, value)))
            fields[str(path)] = [step for step in place if isinstance(step, str)][-1]
    result = cuwarden("report", *fields)
    assert result.returncode == 2
    named = 0
    for line in result.stderr.splitlines():  # what is not shown may be as it likes
        _, path, said = line.split(": ", 2)
        assert said.startswith("a damaged report (") and fields.pop(path) in said, line
        named += 1
    assert named > 150
    assert result.stdout.count("\nMEMORY ") == len(fields)


@pytest.mark.parametrize(
    "place, value, words",
    [
        (("leak_groups", 1, "bytes"), "many", "leak_groups[1].bytes"),
        (("totals", 0), 7, "totals[0]"),
        (("stacks", 0, "frames", 0), "x", "stacks[0].frames[0]"),
        (("process",), None, "process"),
        (("timeline",), {}, "timeline"),
        (("tool", "reasons"), [1], "tool.reasons[0]"),
    ],
)
def test_what_is_wrong_with_a_report_is_said_where(
    cuwarden, sample_report, tmp_path, place, value, words
):
    path = tmp_path / "spoiled.json"
    path.write_text(json.dumps(spoiled(json.loads(sample_report.read_text()), place, value)))
    result = cuwarden("report", "--fail-on-leak", path)
    assert result.returncode == 2 and result.stdout == ""
    assert one_line(result.stderr) and words in result.stderr


def test_a_report_that_lacks_a_table_or_a_field_is_one_line(cuwarden, sample_report, tmp_path):
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


# --- run


def test_the_programs_status_and_streams_are_its_own(cuwarden):
    result = cuwarden("run", "--", "sh", "-c", "echo out; echo err >&2; exit 3")
    assert result.returncode == 3
    assert result.stdout == "out\n"
    assert result.stderr.startswith("err\n")
    assert "no CUDA call" in result.stderr


def test_a_killed_program_is_128_and_the_signal_is_named(cuwarden):
    result = cuwarden("run", "--", "sh", "-c", "kill -KILL $$")
    assert result.returncode == 128 + signal.SIGKILL
    assert one_line(result.stderr) and "killed by signal 9 (SIGKILL)" in result.stderr
    assert "signal 11 (SIGSEGV)" in cuwarden("run", "--", "sh", "-c", "kill -SEGV $$").stderr


def test_no_program_is_127_and_a_plain_file_126(cuwarden, tmp_path):
    for command in ("no-such-command", "/no/such/command"):
        result = cuwarden("run", "--", command)
        assert result.returncode == 127
        assert one_line(result.stderr)
    (tmp_path / "plain").write_text("x")
    result = cuwarden("run", "--", "./plain")
    assert result.returncode == 126
    assert one_line(result.stderr)


def test_settings_reach_the_program(cuwarden, installed, tmp_path):
    result = cuwarden(
        "run", "--report", "sub/r-%p.json", "--stack-depth", "7", "--log", "info",
        "--ledger-dir", "ledgers", "--", "env", LD_PRELOAD="/other.so",
    )
    variables = dict(line.split("=", 1) for line in result.stdout.splitlines() if "=" in line)
    assert variables["LD_PRELOAD"] == f"{installed}/libcuwarden.so:/other.so"
    assert variables["CUWARDEN_REPORT"] == f"{tmp_path}/sub/r-%p.json"
    assert variables["CUWARDEN_STACK_DEPTH"] == "7"
    assert variables["CUWARDEN_LOG"] == "info"
    assert variables["CUWARDEN_LEDGER_DIR"] == f"{tmp_path}/ledgers"
    assert "CUWARDEN_SIM_MEMORY" not in variables


def test_a_programs_own_options_and_separator_are_left_alone(cuwarden):
    assert cuwarden("run", "--", "printf", "%s ", "-x", "--", "--log").stdout == "-x -- --log "
    assert cuwarden("run", "printf", "%s ", "--report").stdout == "--report "


def test_the_list_of_reports_is_private_and_goes(cuwarden, tmp_path):
    result = cuwarden("run", "--", "sh", "-c", 'stat -c %a "$CUWARDEN_REPORT_LIST"')
    assert result.stdout == "600\n"
    assert not list(tmp_path.glob("cuwarden-run-*"))


def test_the_reports_that_the_run_wrote_are_shown_on_stderr(cuwarden, sample_report):
    result = cuwarden("run", "--", "true", FAKE_REPORT=str(sample_report))
    assert result.returncode == 0
    assert result.stdout == ""
    assert "LEAKS: 8.0 MiB" in result.stderr
    assert result.stderr.endswith(f"report: {sample_report}\n")
    assert result.stderr.count("LEAKS") == 1


def test_a_killed_process_gets_its_report_from_its_ledger(
    cuwarden, leave_ledger, tmp_path, schema
):
    report_path = tmp_path / "killed.json"
    result = cuwarden("run", "--", leave_ledger, tmp_path, report_path, "kill")
    assert result.returncode == 128 + signal.SIGKILL
    assert "killed by signal 9" in result.stderr
    report = json.loads(report_path.read_text())
    schema.validate(report)
    assert report["process"]["end_reason"] == "signal"
    assert report["process"]["signal"] == signal.SIGKILL
    assert report["leaks"]["count"] == 2
    assert report["leaks"]["bytes"] == 2000
    assert [frame["function"] for frame in report["frames"]] == ["main"]
    assert stat.S_IMODE(report_path.stat().st_mode) == 0o600
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"installed", "killed.json"}, "the ledger and the list are gone"


def test_a_process_that_ended_without_a_word_ended_for_an_unknown_reason(
    cuwarden, leave_ledger, tmp_path
):
    result = cuwarden("run", "--", leave_ledger, tmp_path, tmp_path / "r.json", "exit")
    assert result.returncode == 7
    assert json.loads((tmp_path / "r.json").read_text())["process"]["end_reason"] is None


def test_the_ledger_of_a_process_that_still_runs_is_left_alone(cuwarden, leave_ledger, tmp_path):
    script = f'"{leave_ledger}" "{tmp_path}" "{tmp_path}/r.json" sleep >/dev/null 2>&1 & echo $!; sleep 1'
    result = cuwarden("run", "--", "sh", "-c", script)
    survivor = int(result.stdout)
    try:
        assert not (tmp_path / "r.json").exists()
    finally:
        os.kill(survivor, signal.SIGKILL)


def test_a_signal_to_the_command_reaches_the_program(installed, tmp_path):
    run = subprocess.Popen(
        [installed / "cuwarden", "run", "--", "sh", "-c",
         "trap 'echo got it; exit 5' TERM; echo ready; while :; do sleep 0.05; done"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )
    assert run.stdout.readline() == "ready\n"
    run.send_signal(signal.SIGTERM)
    assert run.communicate(timeout=20)[0] == "got it\n"
    assert run.returncode == 5


def test_an_ignored_signal_stays_ignored(installed, tmp_path):
    result = subprocess.run(
        [installed / "cuwarden", "run", "--", "sh", "-c", "kill -HUP $$; echo alive"],
        cwd=tmp_path, capture_output=True, text=True, timeout=20,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )
    assert result.stdout == "alive\n"


def test_a_shim_that_is_missing_is_one_line(cuwarden, installed):
    (installed / "libcuwarden.so").unlink()
    result = cuwarden("run", "--", "true")
    assert result.returncode == 2
    assert one_line(result.stderr)


# --- the simulated GPU


@pytest.fixture
def simulated(installed):
    folder = installed / "tools" / "simulated_gpu"
    folder.mkdir(parents=True)
    # Stand-ins that load everywhere: this is about what is preloaded, not about what it does.
    for name in ("libcuda.so.1", "libcudart.so.13"):
        (folder / name).write_bytes((installed / "libcuwarden.so").read_bytes())
    return folder


def test_simulate_preloads_the_simulated_libraries_after_the_shim(cuwarden, installed, simulated):
    result = cuwarden("run", "--simulate", "1.5GiB", "--", "env", LD_LIBRARY_PATH="/old")
    variables = dict(line.split("=", 1) for line in result.stdout.splitlines() if "=" in line)
    assert variables["LD_PRELOAD"] == (
        f"{installed}/libcuwarden.so:{simulated}/libcuda.so.1:{simulated}/libcudart.so.13"
    )
    assert variables["LD_LIBRARY_PATH"] == f"{simulated}:/old"
    assert variables["CUWARDEN_SIM_MEMORY"] == str(3 << 29)


MARK = "CUDA driver version is insufficient for CUDA runtime version"


def compile_program(folder, name, text, *flags):
    source = folder / f"{name}.c"
    source.write_text(text)
    subprocess.run(["cc", "-o", folder / name, source, *flags], check=True)
    return folder / name


@pytest.mark.parametrize("flags", [[], ["-s"]])
def test_simulate_refuses_a_static_runtime(cuwarden, simulated, tmp_path, flags):
    # The text stands in the error table of every cudart, stripped or not.
    program = compile_program(
        tmp_path, "carrier", f'#include <stdio.h>\nint main(void) {{ puts("{MARK}"); }}', *flags
    )
    result = cuwarden("run", "--simulate", "1GiB", "--", program)
    assert result.returncode == 2
    assert one_line(result.stderr)
    assert "static CUDA runtime" in result.stderr
    assert result.stdout == "", "the program was not run"


def test_simulate_refuses_a_static_program(cuwarden, simulated, tmp_path):
    program = compile_program(tmp_path, "fixed", "int main(void) { return 0; }", "-static")
    result = cuwarden("run", "--simulate", "1GiB", "--", program)
    assert result.returncode == 2
    assert one_line(result.stderr)
    assert "linked statically" in result.stderr


def test_simulate_refuses_an_unknown_runtime(cuwarden, simulated, tmp_path):
    compile_program(tmp_path, "libcudart.so.12", "void runtime(void) {}", "-shared", "-fPIC",
                    "-Wl,-soname,libcudart.so.12")
    program = compile_program(tmp_path, "old", "void runtime(void); int main(void) { runtime(); }",
                              tmp_path / "libcudart.so.12", f"-Wl,-rpath,{tmp_path}")
    result = cuwarden("run", "--simulate", "1GiB", "--", program)
    assert result.returncode == 2
    assert "libcudart.so.12" in result.stderr


# --- doctor


def test_doctor_says_how_a_program_reaches_cuda(cuwarden, tmp_path):
    program = compile_program(
        tmp_path, "carrier", f'#include <stdio.h>\nint main(void) {{ puts("{MARK}"); }}'
    )
    out = cuwarden("doctor", "--", program).stdout
    assert "libcuwarden.so loads" in out
    assert "carries a static CUDA runtime: covered" in out


def test_doctor_fails_for_programs_that_cannot_be_covered(cuwarden, tmp_path):
    program = compile_program(tmp_path, "fixed", "int main(void) { return 0; }", "-static")
    result = cuwarden("doctor", "--", program)
    assert result.returncode == 1
    assert "linked statically: nothing can be preloaded" in result.stdout


def test_doctor_follows_a_script_to_its_interpreter(cuwarden, tmp_path):
    script = tmp_path / "script"
    script.write_text("#!/usr/bin/env -S sh -e\ntrue\n")
    script.chmod(0o755)
    out = cuwarden("doctor", "--", "./script").stdout
    assert re.search(r"is a script run by \S*/sh", out)


def test_doctor_says_when_the_shim_does_not_load(cuwarden, installed):
    (installed / "libcuwarden.so").write_text("not a library")
    result = cuwarden("doctor")
    assert result.returncode == 1
    assert "does not load" in result.stdout
