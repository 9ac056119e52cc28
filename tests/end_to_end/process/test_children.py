"""Processes that make child processes: each process that used CUDA has one report with its own records
only, while the parent's threads go on."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from shimmed import program

LARGE = "LARGE_COUNTS" in os.environ


def by_pid(reports):
    found = {report["process"]["pid"]: report for report in reports}
    assert len(found) == len(reports), "two reports of one process"
    return found


@pytest.mark.parametrize("round", range(20 if LARGE else 1))
def test_fifty_forks_while_threads_allocate_mix_no_reports(workspace, round):
    run = workspace.run([program("forking"), "50", program("allocate")])
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("0 children did not end well\n")
    assert run.said == [] and run.ledgers == []

    (parent,) = [r for r in run.reports if r["process"]["parent"] == os.getpid()]
    parent_pid = parent["process"]["pid"]
    total = parent.totals()["device"]
    facts = run.last_line
    assert total["allocations"] == facts["allocations"]
    assert total["live_count"] == facts["live"] == parent["leaks"]["count"]
    assert parent["coverage"]["complete"] and parent["tool"]["complete"]

    children = [r for r in by_pid(run.reports).values() if r is not parent]
    assert all(child["process"]["parent"] == parent_pid for child in children)
    after_exec = [r for r in children if r["process"]["program"].endswith("/allocate")]
    turns = range(1, 51)
    # Each child allocates another number of times: by fork and exec 2, 6, …; by vfork 4, 8, …
    assert sorted(r["leaks"]["count"] for r in after_exec) == [n for n in turns if n % 2 == 0]
    tried = [r for r in children if r["process"]["program"].endswith("/forking")]
    assert len(tried) <= len([n for n in turns if n % 4 == 3])
    for report in tried:  # CUDA refused these children's calls; the reports have no parent's record
        assert report["leak_groups"] == []
        assert sum(total["allocations"] for total in report["totals"]) == 0
    assert len(children) == len(after_exec) + len(tried)


WORKERS = """
import ctypes, json, multiprocessing, os, sys

def allocate(count, size):
    runtime, pointer = ctypes.CDLL("libcudart.so.13"), ctypes.c_void_p()
    for _ in range(count):
        assert runtime.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(size)) == 0

def work(queue, count, size):
    allocate(count, size)
    queue.put((os.getpid(), count, size))

if __name__ == "__main__":
    method, parent_first = sys.argv[1], sys.argv[2] == "parent_first"
    context = multiprocessing.get_context(method)
    if parent_first:
        allocate(2, 7000)
    queue = context.SimpleQueue()
    workers = [context.Process(target=work, args=(queue, n, 1000 * n)) for n in range(1, 5)]
    for worker in workers: worker.start()
    facts = [queue.get() for _ in workers]
    for worker in workers: worker.join()
    if not parent_first:
        allocate(2, 7000)
    assert [worker.exitcode for worker in workers] == [0] * 4
    print(json.dumps({"pids": [[os.getpid(), 2, 7000], *facts]}))
"""


# A process that has used CUDA cannot fork workers that do, with or without the shim.
@pytest.mark.parametrize(
    "method, order",
    [
        ("fork", "workers_first"),
        ("forkserver", "workers_first"),
        ("forkserver", "parent_first"),
        ("spawn", "workers_first"),
        ("spawn", "parent_first"),
    ],
)
def test_each_of_pythons_workers_has_a_report_of_its_own_and_its_helpers_have_none(
    workspace, method, order
):
    script = workspace.folder / "workers.py"
    script.write_text(WORKERS)
    run = workspace.run([sys.executable, script, method, order])
    assert run.returncode == 0, run.stderr
    assert run.said == [] and run.own_stderr == "" and run.ledgers == []
    reports = by_pid(run.reports)
    expected = {pid: (count, count * size) for pid, count, size in run.last_line["pids"]}
    assert len(expected) == 5
    leaks = {pid: (r["leaks"]["count"], r["leaks"]["bytes"]) for pid, r in reports.items()}
    assert leaks == expected
    for pid, report in reports.items():
        assert report.path.name.endswith(f"-{pid}.json")
        assert report["process"]["end_reason"] in ("exit", "_exit")
        assert report["process"]["exit_status"] == 0


def test_a_vforked_child_that_becomes_another_program_has_a_report_of_its_own(workspace):
    # subprocess uses vfork if it can.
    code = (
        "import ctypes, json, subprocess, sys\n"
        "rt, p = ctypes.CDLL('libcudart.so.13'), ctypes.c_void_p()\n"
        "for i in range(3):\n"
        "    assert rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(1000)) == 0\n"
        "    subprocess.run([sys.argv[1], str(i + 5), '512'], check=True, capture_output=True)\n"
    )
    run = workspace.run_both([sys.executable, "-c", code, program("allocate")])
    assert run.returncode == 0
    found = by_pid(run.reports)
    assert sorted(r["leaks"]["count"] for r in found.values()) == [3, 5, 6, 7]
    assert run.said == [] and run.ledgers == []


@pytest.mark.skipif(not Path("/lib/ld-linux.so.2").exists(), reason="no libc6-i386 here")
def test_a_32_bit_child_runs_as_without_the_shim_but_for_the_linkers_own_line(workspace):
    try:
        subprocess.run([program("traps/of_32_bits")], capture_output=True)
    except OSError:
        pytest.skip("this kernel runs no 32-bit programs")
    code = (
        "import ctypes, json, subprocess, sys\n"
        "rt, p = ctypes.CDLL('libcudart.so.13'), ctypes.c_void_p()\n"
        "assert rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(1000)) == 0\n"
        "child = subprocess.run([sys.argv[1]], capture_output=True, text=True)\n"
        "print(json.dumps([child.returncode, child.stdout, child.stderr.splitlines()]))\n"
    )
    run = workspace.run([sys.executable, "-c", code, program("traps/of_32_bits")])
    assert run.returncode == 0, run.stderr
    status, stdout, stderr = run.last_line
    assert (status, stdout) == (7, "32\n")
    # The linker writes one line for each preloaded library; cuwarden writes none.
    assert len(stderr) == 3 and all("wrong ELF class" in line for line in stderr)
    assert run.report["leaks"]["count"] == 1
    assert run.said == [] and run.ledgers == []
# --- processes that share their memory


def test_a_first_call_by_a_child_in_the_same_memory_is_recorded_with_its_parent(run_both):
    run = run_both([program("ending"), "first_call_in_child"])
    assert run.stdout.startswith("child: 0\n") and run.returncode == 4
    process = run.report["process"]
    assert (process["end_reason"], process["exit_status"]) == ("exit", 4)
    assert process["parent"] == os.getpid()
    assert run.report.path.name == f"ending-{process['pid']}.json"
    assert run.report["leaks"]["count"] == 4
    assert sum(group["count"] for group in run.report.groups_of("allocate_in_child")) == 1
    assert sum(group["count"] for group in run.report.groups_of("allocate_three")) == 3
    assert run.ledgers == []


def test_a_forked_childs_memory_is_reported_by_the_child_where_its_own_child_called_first(workspace):
    run = workspace.run([program("ending"), "first_call_in_childs_child"])
    assert run.returncode == 0
    assert run.report["leaks"]["count"] == 4
    assert run.report["process"]["exit_status"] == 4
    assert run.ledgers == []


def test_a_child_that_takes_the_exit_handlers_of_its_parents_memory_writes_the_report(run_both):
    run = run_both([program("ending"), "first_call_in_child_that_exits"])
    assert run.stdout.startswith("child: 0\n") and run.returncode == 4
    assert run.report["leaks"]["count"] == 1
    assert run.report["process"]["parent"] == os.getpid()
    assert len(run.ledgers) == 1, "what its parent may still record"
