"""CUWARDEN_EXITCODE: the exit status of a process with leaks."""

import subprocess

import pytest

import shimmed

PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <thread>
extern "C" int cudaMalloc(void**, unsigned long);
extern "C" int cudaFree(void*);
int main(int count, char** words) {
  static char buffer[1 << 20];
  setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
  for (int i = 0; i < 100000; ++i) putchar('a' + i % 26);
  void* block = nullptr;
  cudaMalloc(&block, 1 << 20);
  const char* end = words[1];
  const int status = atoi(words[2]);
  if (count > 3 && !strcmp(words[3], "free")) cudaFree(block);
  if (!strcmp(end, "fork")) {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    int child_status = -1;
    waitpid(child, &child_status, 0);
    return WEXITSTATUS(child_status);
  }
  if (!strcmp(end, "many_quick_exits")) {
    fflush(stdout);
    for (int i = 0; i < 8; ++i) std::thread([=] { quick_exit(status); }).detach();
    for (;;) pause();
  }
  if (!strcmp(end, "_exit") || !strcmp(end, "quick_exit")) fflush(stdout);
  if (!strcmp(end, "_exit")) _exit(status);
  if (!strcmp(end, "quick_exit")) quick_exit(status);
  if (!strcmp(end, "thread")) std::thread([=] { exit(status); }).join();
  if (!strcmp(end, "exit")) exit(status);
  return status;
}
"""

OUTPUT = "".join(chr(ord("a") + i % 26) for i in range(100000))


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exit-code")
    (folder / "leaving.cpp").write_text(PROGRAM)
    command = ["c++", "-g", "-pthread", "leaving.cpp", "-o", "leaving", shimmed.RUNTIME, "-Wl,-z,lazy"]
    subprocess.run(command, check=True, cwd=folder)
    return folder / "leaving"


ENDS = ["return", "exit", "_exit", "quick_exit", "thread"]


@pytest.mark.parametrize("end", ENDS)
def test_a_process_with_leaks_ends_with_the_status_and_loses_no_output(workspace, program, end):
    run = workspace.run([program, end, "0"], {"CUWARDEN_EXITCODE": "23"})
    assert run.returncode == 23
    assert run.stdout == OUTPUT
    assert run.report["leaks"]["count"] == 1
    assert run.report["process"]["exit_status"] == 0, "the status that the program gave"


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize(
    "status, env, more",
    [
        ("5", {"CUWARDEN_EXITCODE": "23"}, ()),
        ("0", {"CUWARDEN_EXITCODE": "23"}, ("free",)),
        ("0", {"CUWARDEN_EXITCODE": "0"}, ()),
        ("0", {}, ()),
    ],
)
def test_the_programs_own_status_stays(workspace, program, end, status, env, more):
    run = workspace.run([program, end, status, *more], env)
    assert run.returncode == int(status)
    assert run.stdout == OUTPUT


def test_suppressed_leaks_do_not_change_the_status(workspace, program):
    suppressions = workspace.work / "known.supp"
    suppressions.write_text("leak:leaving\n")
    env = {"CUWARDEN_EXITCODE": "23", "CUWARDEN_SUPPRESSIONS": suppressions}
    assert workspace.run([program, "return", "0"], env).returncode == 0
    suppressions.write_text("leak:none\n")
    assert workspace.run([program, "return", "0"], env).returncode == 23


@pytest.mark.parametrize("report", ["/dev/null", None])
@pytest.mark.parametrize("pattern, status", [("leaving", 0), ("none", 23)])
def test_leaks_count_without_a_report(workspace, program, report, pattern, status):
    suppressions = workspace.work / "known.supp"
    suppressions.write_text(f"leak:{pattern}\n")
    env = {"CUWARDEN_EXITCODE": "23", "CUWARDEN_SUPPRESSIONS": suppressions, "CUWARDEN_REPORT_IF": "abnormal"}
    if report:
        env["CUWARDEN_REPORT"] = report
    run = workspace.run([program, "return", "0"], env)
    assert run.reports == [] and run.returncode == status


def test_a_forked_child_without_cuda_calls_keeps_its_status(workspace, program):
    """The child ends while the parent's block is live; the parent's status is the child's."""
    assert workspace.run([program, "fork", "0"], {"CUWARDEN_EXITCODE": "0"}).returncode == 0
    # The parent's own status is 0, too, unless the child's was not.
    assert workspace.run([program, "fork", "0", "free"], {"CUWARDEN_EXITCODE": "23"}).returncode == 0


def test_threads_that_call_quick_exit_at_once_end_with_the_status(workspace, program):
    for _ in range(10):
        run = workspace.run([program, "many_quick_exits", "0"], {"CUWARDEN_EXITCODE": "23"})
        assert (run.returncode, run.stdout) == (23, OUTPUT)


def test_leaks_count_if_the_report_cannot_be_written(workspace, program):
    limited = ["/bin/bash", "-c", 'ulimit -f 1; exec "$0" return 0', program]
    run = workspace.run(limited, {"CUWARDEN_EXITCODE": "23"})
    assert run.returncode == 23 and run.said_about("cannot write the report")


@pytest.mark.parametrize("value", ["256", "-1", "x", ""])
def test_a_wrong_status_is_one_line(workspace, program, value):
    run = workspace.run([program, "return", "0"], {"CUWARDEN_EXITCODE": value})
    assert run.returncode == 0
    assert "from 0 to 255" in run.said_about("CUWARDEN_EXITCODE")
