"""Steps with names, such as tests: the report says in which of them leaked memory was allocated."""

import textwrap

import shimmed

PYTHON = shimmed.SOURCE / "tools" / "python"
MIB = 1 << 20

# A module that takes device memory, as libraries of the user's do.
TAKING = """
import ctypes
cudart = ctypes.CDLL("libcudart.so.13")
cudart.cudaMalloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]

def take(size):
    out = ctypes.c_void_p()
    assert cudart.cudaMalloc(ctypes.byref(out), size) == 0
    return out

def give_back(taken):
    assert cudart.cudaFree(taken) == 0
"""

TESTS = """
import pytest
from taking import give_back, take

@pytest.fixture
def kept_by_fixture():
    yield take(16 << 20)
    take(32 << 20)

def test_gives_back():
    give_back(take(1 << 20))

@pytest.mark.parametrize("count", [1, 2])
def test_keeps(count):
    for _ in range(count):
        take(2 << 20)

def test_uses_fixture(kept_by_fixture):
    pass

def test_fails():
    take(4 << 20)
    assert False

take(64 << 20)
"""


def steps_by_size(report):
    """Returns the named steps of each leak, as pairs of name and count, by the size of an allocation."""
    return {
        group["bytes"] // group["count"]: [(step["name"], step["count"]) for step in group["named_steps"]]
        for group in report["leak_groups"]
    }


def run_tests(workspace, *options, shim=True):
    (workspace.work / "taking.py").write_text(TAKING)
    (workspace.work / "test_leaks.py").write_text(textwrap.dedent(TESTS))
    plugin = ["-p", "cuwarden_pytest", "-p", "no:cacheprovider", *options]
    env = {"PYTHONPATH": str(PYTHON)}
    return workspace.run(["/usr/bin/python3", "-m", "pytest", *plugin, "test_leaks.py"], env, shim=shim)


def test_the_plugin_of_pytest_names_the_tests_that_leak(workspace):
    run = run_tests(workspace)
    assert run.returncode == 1 and "1 failed, 4 passed" in run.stdout
    assert steps_by_size(run.report) == {
        2 * MIB: [("test_leaks.py::test_keeps[2]", 2), ("test_leaks.py::test_keeps[1]", 1)],
        4 * MIB: [("test_leaks.py::test_fails", 1)],
        16 * MIB: [("test_leaks.py::test_uses_fixture", 1)],
        32 * MIB: [("test_leaks.py::test_uses_fixture", 1)],
        64 * MIB: [],
    }
    (path,) = workspace.reports.iterdir()
    text = shimmed.cuwarden(workspace, "report", path).stdout
    assert (
        "made in test_leaks.py::test_keeps[2] (4.0 MiB in 2 allocations), "
        "test_leaks.py::test_keeps[1] (2.0 MiB in 1 allocation)"
    ) in text
    assert "made in test_leaks.py::test_fails\n" in text


def test_the_plugin_of_pytest_does_nothing_in_a_bare_process(workspace):
    bare = run_tests(workspace, shim=False)
    assert bare.returncode == 1 and "1 failed, 4 passed" in bare.stdout
    assert bare.stderr == ""


def test_the_listener_of_google_test_names_the_tests_that_leak(workspace):
    run = workspace.run_both([shimmed.program("leaking_tests"), "--gtest_print_time=0"])
    assert run.returncode == 0
    assert steps_by_size(run.report) == {
        1 * MIB: [("Cache.keeps_one_block", 1)],
        2 * MIB: [("Pool.keeps_two_blocks_of_a_thread", 2), ("Pool.keeps_a_block_of_a_thread", 1)],
        4 * MIB: [],
        8 * MIB: [],
    }


def test_a_check_that_fails_names_the_test_with_the_leak(workspace):
    run = workspace.run([shimmed.program("leaking_tests"), "--gtest_filter=*one_block"])
    (path,) = workspace.reports.iterdir()
    checked = shimmed.cuwarden(workspace, "report", "--fail-on-leak=all", path)
    assert run.returncode == 0 and checked.returncode == 1
    last = checked.stdout.splitlines()[-1]
    assert last.startswith("FAIL: 1 leak: ") and last.endswith(", in Cache.keeps_one_block"), last
    junit = shimmed.cuwarden(workspace, "export", "--format", "junit", path).stdout
    assert "made in Cache.keeps_one_block\n" in junit


def test_the_name_of_the_step_before_the_first_call_of_cuda_is_kept(workspace):
    (workspace.work / "taking.py").write_text(TAKING)
    program = "import cuwarden; cuwarden.step('before'); cuwarden.step('first'); import taking; "
    program += "taking.take(1 << 20); cuwarden.step('second ' + 300 * 'é'); taking.take(2 << 20); cuwarden.step()"
    run = workspace.run(["/usr/bin/python3", "-c", program], {"PYTHONPATH": str(PYTHON)})
    assert run.returncode == 0 and run.report["process"]["steps"] == 4
    steps = steps_by_size(run.report)
    assert steps[1 * MIB] == [("first", 1)]
    ((name, count),) = steps[2 * MIB]
    assert count == 1 and name.startswith("second ééé") and len(name.encode()) <= 258
