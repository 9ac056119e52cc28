"""Processes that end while they are inside the driver, by many threads at once, confined, or built
with a sanitizer: they end as they do without the shim, and leave a whole report."""

import shutil
import subprocess

import pytest

import preloaded
from report_tables import Report

END_TO_END = preloaded.BUILD / "tests" / "end_to_end" / "programs"
LEAKING = preloaded.SOURCE / "tests" / "end_to_end" / "programs" / "sanitized" / "leaking.c"


def built(path):
    if not path.exists():
        pytest.skip(f"{path} was not built")
    return path


# The moments differ, so that the signal arrives in different parts of a call.
@pytest.mark.parametrize("microseconds", range(20_000, 20_400, 40))
@pytest.mark.parametrize("how", ["exit", "quick_exit", "jump"])
def test_a_signal_that_interrupts_the_driver_may_end_the_process(workspace, how, microseconds):
    command = [preloaded.program("interrupted"), how, microseconds]
    run = workspace.run(command, timeout_s=20, interrupted=True)
    assert (run.returncode, run.stdout, run.said) == (7, "allocated\n", [])
    process = run.report["process"]
    assert process["end_reason"] == ("quick_exit" if how == "quick_exit" else "exit")
    # The block of the interrupted call may be counted or not.
    assert run.report["leaks"]["count"] in (1, 2)


@pytest.mark.parametrize("milliseconds", [1, 20])
@pytest.mark.parametrize("what", ["exit", "abort", "request"])
def test_a_process_that_left_a_report_by_a_jump_goes_on_being_recorded(
    workspace, what, milliseconds
):
    run = workspace.run([built(END_TO_END / "end_left"), what, milliseconds], timeout_s=20)
    if what == "exit" and run.returncode in (1, 2):
        # The report was written before the signal came. Either exit(1) was not left, or the driver's
        # own exit handler was, and the driver refused the later calls.
        assert (run.said, run.report["leaks"]["count"]) == ([], 30_000)
        return
    assert (run.returncode, run.said) == (5, [])
    assert run.report["leaks"]["count"] == 31_000
    assert run.report["process"]["exit_status"] == 5


@pytest.mark.parametrize("ways", ["exit", "return+exit", "handler", "quick_exit", "pthread_exit+exit"])
def test_threads_that_end_the_process_at_once_leave_one_whole_report(workspace, ways):
    for _ in range(5):
        run = workspace.run([built(END_TO_END / "ending_together"), ways, 8], timeout_s=30)
        assert (run.returncode, run.said) == (1, [])
        assert run.report["leaks"]["count"] == 21
        assert "main" in {frame["function"] for frame in run.report["frames"]}
        assert list(workspace.ledger.iterdir()) == []


@pytest.mark.parametrize("way", ["prctl", "syscall", "raw"])
def test_a_confined_program_ends_as_ever_and_leaves_its_ledger_to_recover(workspace, way):
    confined = built(END_TO_END / "confined")
    command = [confined, way, "kill", "renameat2,getcwd", "after", "main", "return"]
    bare = workspace.run(command, shim=False)
    run = workspace.run(command)
    assert (run.returncode, run.stdout) == (bare.returncode, bare.stdout)
    # cuwarden cannot see a raw system-call instruction that installs a filter. It notices the filter
    # when the process ends, which is too late for a message.
    assert way == "raw" or [line for line in run.said if "seccomp" in line]
    (ledger,) = workspace.ledger.iterdir()
    recovered = workspace.run([preloaded.BUILD / "cuwarden", "recover", ledger], shim=False)
    assert recovered.returncode == 0, recovered.stderr
    (path,) = workspace.reports.iterdir()
    assert Report.read(path)["leaks"]["bytes"] > 0


@pytest.mark.parametrize("sanitizer", ["address", "thread", "undefined"])
def test_a_sanitized_program_leaves_a_report(workspace, tmp_path, sanitizer):
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    program = tmp_path / "leaking"
    folders = [f"-L{folder}" for folder in preloaded.library_folders()]
    command = ["gcc", "-g", f"-fsanitize={sanitizer}", LEAKING, *folders, "-lcudart", "-pthread"]
    subprocess.run([*command, "-o", program], check=True)
    # The driver maps memory within AddressSanitizer's shadow gap. The shim stands before the
    # sanitizer's runtime, which the runtime would refuse otherwise.
    env = {"ASAN_OPTIONS": "protect_shadow_gap=0:detect_leaks=0:verify_asan_link_order=0"}
    run = workspace.run_both([program], env)
    assert run.report["leaks"]["bytes"] == 5000
