"""The command seen from outside: exit statuses, one-line errors, and the streams that it writes to."""

import json
import os
import re
import signal
import stat
import subprocess

import pytest

from conftest import one_line


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


def test_help_and_version_are_also_verbs(cuwarden):
    assert cuwarden("help").stdout == cuwarden("--help").stdout
    assert "snapshot" in cuwarden("help").stdout
    for verb in ("run", "report", "snapshot", "recover", "top", "doctor", "help", "version"):
        shown = cuwarden("help", verb)
        assert (shown.returncode, shown.stdout) == (0, cuwarden(verb, "--help").stdout)
        assert f"Usage: cuwarden {verb}" in shown.stdout
    assert cuwarden("version").stdout == cuwarden("--version").stdout
    for words in (("help", "frobnicate"), ("help", "run", "more"), ("version", "more")):
        result = cuwarden(*words)
        assert result.returncode == 2 and one_line(result.stderr) and words[-1] in result.stderr


@pytest.mark.parametrize("path", ["-", "/dev/stdout", "/dev/full"])
def test_the_report_option_of_run_takes_a_file_and_no_stream(cuwarden, tmp_path, path):
    result = cuwarden("run", "--report", path, "--", "sh", "-c", "echo ran")
    assert (result.returncode, result.stdout) == (2, "")
    assert one_line(result.stderr) and "--report takes a path" in result.stderr
    assert not (tmp_path / "-").exists()


@pytest.mark.parametrize("words", [["run", "--", ""], ["doctor", ""], ["recover", ""], ["report", ""]])
def test_an_error_line_shows_an_empty_name(cuwarden, words):
    result = cuwarden(*words)
    assert result.returncode in (2, 127)
    assert one_line(result.stderr) and "''" in result.stderr


def test_an_unknown_verb_is_answered_with_the_known_verbs(cuwarden):
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
def test_wrong_usage_gives_one_line_and_status_2(cuwarden, arguments):
    result = cuwarden(*arguments)
    assert result.returncode == 2
    assert one_line(result.stderr), result.stderr
    assert result.stdout == ""


# --- run


def test_the_programs_status_and_streams_are_its_own(cuwarden):
    result = cuwarden("run", "--", "sh", "-c", "echo out; echo err >&2; exit 3")
    assert result.returncode == 3
    assert result.stdout == "out\n"
    assert result.stderr.startswith("err\n")
    assert "no CUDA call" in result.stderr


def test_a_killed_program_gives_status_128_plus_the_signal_and_names_it(cuwarden):
    result = cuwarden("run", "--", "sh", "-c", "kill -KILL $$")
    assert result.returncode == 128 + signal.SIGKILL
    assert one_line(result.stderr) and "killed by signal 9 (SIGKILL)" in result.stderr
    assert "signal 11 (SIGSEGV)" in cuwarden("run", "--", "sh", "-c", "kill -SEGV $$").stderr


def test_a_missing_program_gives_status_127_and_a_plain_file_126(cuwarden, tmp_path):
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


def test_the_list_of_reports_is_private_and_is_removed(cuwarden, tmp_path):
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


def test_a_process_without_report_that_was_not_killed_ended_for_an_unknown_reason(
    cuwarden, leave_ledger, tmp_path
):
    result = cuwarden("run", "--", leave_ledger, tmp_path, tmp_path / "r.json", "exit")
    assert result.returncode == 7
    assert json.loads((tmp_path / "r.json").read_text())["process"]["end_reason"] is None


def test_the_ledger_of_a_process_that_still_runs_is_left_alone(cuwarden, leave_ledger, tmp_path):
    os.mkfifo(tmp_path / "told")
    script = f'"{leave_ledger}" "{tmp_path}" "{tmp_path}/r.json" sleep >told 2>&1 & read ready <told && echo $!'
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


def test_a_missing_shim_gives_one_error_line(cuwarden, installed):
    (installed / "libcuwarden.so").unlink()
    result = cuwarden("run", "--", "true")
    assert result.returncode == 2
    assert one_line(result.stderr)


# --- the simulated GPU


@pytest.fixture
def simulated(installed):
    folder = installed / "tools" / "simulated_gpu"
    folder.mkdir(parents=True)
    # Fake libraries that load everywhere: the tests look at what is preloaded, not at what it does.
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
    # The text is in the error table of every cudart, stripped or not.
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
