"""CUWARDEN_EXITCODE: the exit status of a process with leaks."""

import subprocess

import pytest

import shimmed

PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
    if (const pid_t child = fork(); child == 0) exit(0);
    cudaFree(block);
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
    """The parent frees its block; the child ends by exit() while the parent's block is live."""
    run = workspace.run([program, "fork", "0"], {"CUWARDEN_EXITCODE": "23"})
    assert run.returncode == 0


@pytest.mark.parametrize("value", ["256", "-1", "x", ""])
def test_a_wrong_status_is_one_line(workspace, program, value):
    run = workspace.run([program, "return", "0"], {"CUWARDEN_EXITCODE": value})
    assert run.returncode == 0
    assert "from 0 to 255" in run.said_about("CUWARDEN_EXITCODE")
