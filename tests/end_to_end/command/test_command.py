"""The command as used in a shell. `run` acts like the program itself, plus a report and a summary."""

import json
import os
import re
import signal
import subprocess
import sys

import pytest

from reports import Report
from shimmed import BUILD, COMMAND, DRIVER, PATIENCE_S, SOURCE, program, sample


def simulated(workspace, *command, report="report.json"):
    return ("run", "--simulate", "16GiB", "--report", workspace.reports / report, "--", *command)


def test_run_returns_the_programs_status_and_keeps_its_output_apart(cuwarden, workspace):
    bare = workspace.run([program("ending"), "return_7"], shim=False)
    done = cuwarden(*simulated(workspace, program("ending"), "return_7"))
    assert done.returncode == 7
    assert done.stdout == bare.stdout
    assert "allocate_three" in done.stderr
    facts = json.loads(done.stdout.splitlines()[-1])["leaked"]
    Report.read(workspace.reports / "report.json").check_leaks(facts)


@pytest.mark.parametrize("name", ["lost_on_throw", "library_leak", "handle_leak"])
def test_runs_summary_names_the_leaking_function(cuwarden, workspace, name):
    done = cuwarden(*simulated(workspace, sample(name)))
    assert done.returncode == 0, done.stderr
    for fact in json.loads(done.stdout.splitlines()[-1])["leaked"]:
        assert (fact["function"] or fact["module"]) in done.stderr
        assert fact["api"] in done.stderr


def test_run_says_when_a_program_was_killed_and_still_has_its_report(cuwarden, workspace):
    done = cuwarden(*simulated(workspace, program("ending"), "kill"))
    assert done.returncode == 128 + signal.SIGKILL
    report = Report.read(workspace.reports / "report.json")
    assert report["process"]["signal"] == signal.SIGKILL
    assert report["process"]["end_reason"] == "signal"
    report.check_leaks(json.loads(done.stdout.splitlines()[-1])["leaked"])


def test_the_programs_processes_share_the_simulated_device(cuwarden, workspace):
    done = cuwarden(*simulated(workspace, sample("neighbour")))
    request = json.loads(done.stdout.splitlines()[-1])["request"]
    assert request["error"] == "cudaErrorMemoryAllocation", done.stdout
    assert "held_by_other_processes" in done.stderr


def test_the_simulated_device_has_the_size_that_was_asked_for(cuwarden, workspace):
    command = ("run", "--simulate", "2GiB", "--report", workspace.reports / "report.json", "--")
    done = cuwarden(*command, program("answers"), "exhaust")
    assert done.returncode == 0, done.stderr
    report = Report.read(workspace.reports / "report.json")
    assert [device["total_bytes"] for device in report["devices"]] == [2 << 30]


# A program that lists processes by the NVML that any program would find by this name.
LIST_PROCESSES = """
import ctypes
nvml = ctypes.CDLL("libnvidia-ml.so.1")
device, count = ctypes.c_void_p(), ctypes.c_uint(0)
uuid = "simulated-gpu-00".encode().hex()
uuid = "-".join(("GPU", uuid[:8], uuid[8:12], uuid[12:16], uuid[16:20], uuid[20:]))
assert nvml.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(device)) == 1  # not begun
assert nvml.nvmlInit_v2() == 0
assert nvml.nvmlDeviceGetHandleByUUID(b"GPU-0", ctypes.byref(device)) == 6
assert nvml.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(device)) == 0
list_processes = nvml.nvmlDeviceGetComputeRunningProcesses_v3
assert list_processes(device, ctypes.byref(count), None) == 0 and count.value == 0
cuda = ctypes.CDLL("libcuda.so.1")
context = ctypes.c_void_p()
assert cuda.cuInit(0) == 0
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert list_processes(device, ctypes.byref(count), None) == 7 and count.value == 1
print("listed")
"""


def test_a_simulated_devices_processes_are_listed_by_a_simulated_nvml(cuwarden, workspace, run_both):
    command = (sys.executable, "-c", LIST_PROCESSES)
    done = cuwarden(*simulated(workspace, *command))
    assert (done.returncode, done.stdout) == (0, "listed\n"), done.stderr
    assert run_both(command).stdout == "listed\n"


def test_report_prints_a_reports_summary(cuwarden, workspace):
    run = workspace.run([sample("lost_on_throw")])
    done = cuwarden("report", run.report.path)
    assert done.returncode == 0, done.stderr
    assert "process_batch" in done.stdout
    assert cuwarden("report", "--fail-on-leak", run.report.path).returncode == 1


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("no-such-verb",),
        ("run",),
        ("run", "--no-such-option", "--", "/bin/true"),
        ("run", "--", "/nonexistent/program"),
        ("run", "--simulate", "much", "--", "/bin/true"),
        ("report",),
        ("report", "/nonexistent/report.json"),
    ],
)
def test_wrong_usage_is_an_error_and_status_2(cuwarden, arguments):
    done = cuwarden(*arguments)
    assert done.returncode in (2, 127)
    assert done.stdout == ""
    assert done.stderr.strip()


def test_a_report_in_a_folder_whose_path_is_too_long_is_shown(workspace):
    def go_down():
        for _ in range(22):
            os.mkdir("d" * 200)
            os.chdir("d" * 200)

    done = subprocess.run(
        [str(COMMAND), "run", "--simulate", "2GiB", "--", program("ending"), "return_7"],
        cwd=workspace.work, preexec_fn=go_down, capture_output=True, text=True, timeout=PATIENCE_S,
        env=workspace.environment({"TMPDIR": workspace.reports}, shim=False, preload=()),
    )  # fmt: skip
    assert done.returncode == 7
    assert "LEAKS: 3.0 MiB" in done.stderr and "no CUDA call" not in done.stderr, done.stderr


def test_paths_among_runs_options_are_those_of_the_folder_it_was_called_in(workspace):
    folder = workspace.work / "100%"
    folder.mkdir()
    done = subprocess.run(
        [str(COMMAND), "run", "--log", "warn:said.log", "--report", "x-%p.json", "--", "sh", "-c",
         "cd / && env"],
        cwd=folder, capture_output=True, text=True, env=workspace.environment({}, shim=False),
    )  # fmt: skip
    shown = done.stdout.splitlines()
    assert f"CUWARDEN_LOG=warn:{folder}/said.log" in shown, shown
    assert f"CUWARDEN_REPORT={workspace.work}/100%%/x-%p.json" in shown


def test_a_file_that_is_no_report_gives_one_line(cuwarden, workspace):
    broken = workspace.reports / "broken.json"
    broken.write_text('{"schema": "cuwarden.report/1"')
    done = cuwarden("report", broken)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert str(broken) in done.stderr


def test_run_passes_settings_on(cuwarden, workspace):
    done = cuwarden(
        "run", "--simulate", "1GiB", "--report", workspace.reports / "deep.json", "--stack-depth", "3",
        "--", program("allocate"), "1", "100", "20",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = Report.read(workspace.reports / "deep.json")
    # The stacks of the allocation and of the context.
    assert [stack["truncated"] for stack in report.stacks.values()] == [True, True]


def test_run_says_that_a_program_without_cuda_has_no_report(cuwarden, workspace):
    done = cuwarden(*simulated(workspace, "/bin/echo", "hello"))
    assert (done.returncode, done.stdout) == (0, "hello\n")
    assert list(workspace.reports.iterdir()) == []


def test_run_works_for_an_interpreter(cuwarden, workspace):
    code = (
        "import ctypes; rt = ctypes.CDLL('libcudart.so.13'); p = ctypes.c_void_p(); "
        "print(rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(12345)))"
    )
    done = cuwarden(*simulated(workspace, sys.executable, "-c", code))
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr
    assert Report.read(workspace.reports / "report.json")["leaks"]["bytes"] == 12345


def test_a_ledger_that_was_left_behind_is_shown_as_its_report(cuwarden, workspace):
    run = workspace.run([program("ending"), "kill"])
    assert run.returncode == -signal.SIGKILL
    (ledger,) = run.ledgers
    done = cuwarden("report", ledger)
    assert done.returncode == 0
    assert "killed" in done.stdout or "not seen" in done.stdout
    assert "STILL ALLOCATED: 3.0 MiB in 3 allocations when the process ended" in done.stdout
    assert not ledger.exists()
    (line,) = done.stderr.splitlines()
    assert line.startswith("report: ") and "the ledger, which is removed" in line


def test_a_ledger_whose_report_was_written_leads_to_that_report(cuwarden, workspace):
    run = workspace.run([program("ending"), "abort_killed_in_handler"])
    assert run.returncode == -signal.SIGKILL
    assert len(run.reports) == 1
    (ledger,) = run.ledgers
    done = cuwarden("report", ledger)
    assert done.returncode == 0
    assert "STILL ALLOCATED" in done.stdout
    assert str(run.report_files[0]) in done.stderr


def test_nothing_recorded_is_not_called_free_of_leaks(cuwarden, workspace):
    done = cuwarden(*simulated(workspace, program("answers"), "nothing"))
    assert "no allocation was recorded" in done.stderr
    assert "no leaks" not in done.stderr


@pytest.mark.parametrize("size", ["8", "5MiB"])
def test_a_simulated_device_too_small_for_a_context_is_refused(cuwarden, size):
    done = cuwarden("run", "--simulate", size, "--", "true")
    assert done.returncode == 2
    assert "1GiB" in done.stderr


def test_failed_requests_are_said_in_words(cuwarden, workspace):
    run = workspace.run(
        [program("answers"), "sizes"], {"CUWARDEN_SIM_FAIL": "cuMemAlloc_v2:1:2"}
    )
    failures = run.report.totals()["device"]["failures"]
    assert failures > 0
    shown = cuwarden("report", run.report.path).stdout
    # Incidents tell of their failures themselves, so that a line about them would say nothing new.
    told = sum(incident["failed_count"] for incident in run.report["incidents"])
    said = re.search(r"FAILED: (\d+) requests? for device memory \(GPU 0\): the program saw (?:it|them) fail", shown)
    assert (said is None) == (told >= failures), shown
    assert not said or int(said[1]) == failures, shown


def test_help_shows_each_usage_once(cuwarden):
    for verb in ("run", "report", "snapshot", "recover", "top", "doctor"):
        shown = cuwarden(verb, "--help")
        assert shown.returncode == 0
        assert shown.stdout.count("Usage:") == 1
        assert f"Usage: cuwarden {verb}" in shown.stdout
    assert cuwarden("--help").stdout.count("Usage:") == 1


@pytest.mark.parametrize(
    "arguments, parts",
    [
        (("report",), ("no file", "cuwarden report FILE")),
        (("report", "--by"), ("--by needs a value",)),
        (("report", "--by", "colour", "x"), ("'colour'", "stack, module, api or kind")),
        (("report", "--by", "api", "--by", "kind", "x"), ("--by is given twice",)),
        (("report", "--top", "many", "x"), ("--top", "'many'", "whole number")),
        (("report", "--frobnicate", "x"), ("no option --frobnicate", "report --help")),
        (("run", "--simulate", "much", "--", "true"), ("--simulate", "'much'", "64MiB")),
        (("run", "--simulate", "800MiB", "--", "true"), ("--simulate", "800.0 MiB", "527 MiB", "on top", "1GiB")),
        (("run", "--simulate", "99999999GiB", "--", "true"), ("--simulate", "1024TiB")),
        (("run", "--pool", "maybe", "--", "true"), ("--pool", "'maybe'", "off, rescue, on or auto")),
        (("run", "--wait", "30", "--", "true"), ("--wait", "'30'", "30s")),
        (("run", "--spill", "8", "--", "true"), ("--spill", "'8'", "8GiB", "25%")),
        (("run", "--mesh", "maybe", "--", "true"), ("--mesh", "'maybe'", "on, off or verify")),
        (("run", "--mesh-pause", "1.5s", "--", "true"), ("--mesh-pause", "'1.5s'", "500ms")),
        (("run", "--log", "loud", "--", "true"), ("--log", "'loud'", "debug")),
        (("run", "--stack-depth", "1025", "--", "true"), ("--stack-depth", "'1025'", "1024")),
        (("run", "--report", "x%q", "--", "true"), ("--report", "'x%q'", "%p")),
        (("run", "--report", "", "--", "true"), ("--report", "''", "path")),
        (("run",), ("no program", "cuwarden run [options] -- CMD")),
        (("snapshot",), ("no process", "cuwarden snapshot PID")),
        (("snapshot", "x"), ("PID", "'x'")),
        (("snapshot", "1", "2"), ("unexpected word: 2",)),
        (("--frobnicate",), ("no option --frobnicate",)),
    ],
)
def test_wrong_usage_gives_one_line_that_says_what_where_and_what_to_do(cuwarden, arguments, parts):
    done = cuwarden(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert all(part in done.stderr for part in parts), done.stderr


def test_a_report_that_cannot_be_written_leads_to_the_ledger_and_to_recover(cuwarden, workspace):
    (workspace.reports / "file").write_text("")
    env = {"CUWARDEN_REPORT": str(workspace.reports / "file" / "r.json")}
    run = workspace.run([sample("lost_on_throw")], env)
    assert run.returncode == 0
    (ledger,) = run.ledgers
    line = run.said_about("cannot", "r.json")
    assert str(ledger) in line and f"`cuwarden recover {workspace.ledger}`" in line
    assert cuwarden("recover", workspace.ledger).returncode == 0
    (report,) = workspace.ledger.iterdir()
    Report.read(report).check_leaks(run.last_line["leaked"])


def test_the_peak_s_holders_are_shown_where_the_peak_was_far_above_the_end(cuwarden, workspace):
    run = workspace.run([program("peaking")])
    shown = cuwarden("report", run.report.path).stdout
    at_peak = shown[shown.index("PEAK of "):]
    assert re.match(r"PEAK of device memory \(GPU 0\): 65\.0 MiB at .* into the run, held by\n", at_peak)
    first, second = at_peak.index("48.0 MiB in 3 allocations"), at_peak.index("16.0 MiB in 1 allocation")
    assert first < at_peak.index("hold_most") < second < at_peak.index("hold_less")
    # If no memory was freed before the end, the leaks already show the peak's holders.
    run = workspace.run([sample("lost_on_throw")])
    assert "PEAK of" not in cuwarden("report", run.report.path).stdout


def test_memory_released_with_its_context_is_shown_with_its_stacks(cuwarden, workspace):
    run = workspace.run([sample("context_reset")])
    released = [fact for fact in run.last_line["leaked"] if fact.get("released_by") == "context"]
    shown = cuwarden("report", run.report.path).stdout
    apart = shown[shown.index("apart from leaks"):]
    largest = sorted(released, key=lambda fact: -fact["bytes"])[:3]
    assert largest and all(fact["function"] in apart for fact in largest), apart


def test_page_locked_leaks_have_the_processs_memory_beside_them(cuwarden, workspace):
    run = workspace.run([sample("pinned_leak")])
    shown = cuwarden("report", run.report.path).stdout
    rows = {line[:28].strip(): line[28:].split("  ") for line in shown.splitlines()}
    assert "HOST MEMORY over time" in rows
    assert "pinned and registered" in rows and "the process's RSS" in rows
    leaked = sum(fact["bytes"] for fact in run.last_line["leaked"])
    assert rows["pinned and registered"][-1].strip() == f"{leaked / 2**20:.1f} MiB"
    run = workspace.run([sample("lost_on_throw")])
    assert "HOST MEMORY" not in cuwarden("report", run.report.path).stdout


def test_a_debug_log_says_what_is_recorded_from_when_on_and_where(workspace):
    run = workspace.run([sample("lost_on_throw")], {"CUWARDEN_LOG": "debug"})
    run.said_about("the driver is", str(DRIVER))
    run.said_about("from the first CUDA call on", "cuda")
    run.said_about("the ledger is", str(workspace.ledger))
    run.said_about("the report will be", str(run.report.path))
    run.said_about("report written to", str(run.report.path))


@pytest.mark.parametrize(
    "preload, why", [((), "no libcuda.so.1 is loaded"), ((DRIVER,), "no call to it was seen")]
)
def test_a_debug_log_says_why_nothing_was_recorded(workspace, preload, why):
    hello = ["/bin/sh", "-c", "echo hello"]  # not /bin/echo, which closes its stderr at the end
    run = workspace.run(hello, {"CUWARDEN_LOG": "debug"}, preload=preload)
    assert run.stdout == "hello\n" and run.reports == []
    run.said_about("nothing was recorded", why)
    quiet = workspace.run(hello, {"CUWARDEN_LOG": "info"}, preload=preload)
    assert quiet.stderr == ""


def test_a_check_of_a_folder_sees_every_process_that_wrote_to_one_path(workspace, cuwarden):
    env = {"CUWARDEN_REPORT": workspace.reports / "ci.json"}
    leaving = program("leaving")
    script = f"{leaving} && {leaving} leak && {leaving}"
    run = workspace.run(["/bin/sh", "-c", script], env)
    assert [path.name for path in run.report_files] == ["ci.1.json", "ci.2.json", "ci.json"]
    done = cuwarden("report", "--fail-on-leak", workspace.reports)
    assert done.returncode == 1 and len(done.stdout.split("\n\n")[0].splitlines()) == 3
    for module, status in (("leaving", 1), ("libcudart", 0), ("levaing", 2)):
        assert cuwarden("report", "--fail-on-leak", "--module", module, workspace.reports).returncode == status


def test_a_module_without_leaks_is_known_to_the_report(workspace, cuwarden):
    run = workspace.run([program("leaving")])
    for module, status in (("leaving", 0), ("levaing", 2)):
        done = cuwarden("report", "--fail-on-leak", "--module", module, run.report.path)
        assert done.returncode == status, done.stderr
    assert "leaving" in done.stderr


def test_a_staged_tree_runs_on_a_machine_with_a_gpu(workspace):
    folder = workspace.folder / "staged"
    stage = [SOURCE / "tests" / "gpu" / "stage", folder, BUILD]
    subprocess.run(stage, check=True, capture_output=True, timeout=PATIENCE_S)
    done = subprocess.run(
        [folder / "cuwarden", "run", "--report", "report.json", "--", folder / "samples" / "lost_on_throw"],
        env=workspace.environment({"LD_PRELOAD": None}), cwd=workspace.work,
        capture_output=True, text=True, timeout=PATIENCE_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = Report.read(workspace.work / "report.json")
    report.check_leaks(json.loads(done.stdout.splitlines()[-1])["leaked"])


def test_doctor_names_the_simulated_gpu_if_there_is_no_other(cuwarden, workspace):
    (workspace.folder / "libcuda.so.1").write_text("")
    done = cuwarden("doctor", env={"LD_LIBRARY_PATH": workspace.folder})
    assert done.returncode == 1
    assert done.stdout.count("`cuwarden run --simulate 16GiB -- PROGRAM`") == 1
    done = cuwarden("doctor", env={"LD_LIBRARY_PATH": DRIVER.parent})
    assert "GPU 0" in done.stdout and "--simulate" not in done.stdout


def test_a_page_is_written_beside_each_report(cuwarden, workspace):
    done = cuwarden(
        "run", "--html", "--simulate", "16GiB", "--report", workspace.reports / "report.json", "--", sample("lost_on_throw")
    )  # fmt: skip
    if "built without the page" in done.stderr:
        assert done.returncode == 2 and not done.stdout
        pytest.skip("cuwarden is built without the page")
    assert done.returncode == 0, done.stderr
    page = workspace.reports / "report.html"
    assert f"\npage: {page}\n" in done.stderr
    assert page.read_text().startswith("<!doctype html>")
    assert page.stat().st_mode & 0o777 == 0o600
