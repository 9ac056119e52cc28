"""Steps with names, such as tests: the report says in which of them leaked memory was allocated."""

import textwrap

import shimmed

PYTHON = shimmed.SOURCE / "tools" / "python"
MIB = 1 << 20

# A module that takes device memory, as libraries of the user's do.
TAKING = shimmed.TAKE + """
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
    """Returns the named steps of each leak, as pairs of name and count. The keys are the mean sizes of the allocations."""
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


def run_python(workspace, program, **how):
    (workspace.work / "taking.py").write_text(TAKING)
    (workspace.work / "program.py").write_text("import cuwarden\n" + textwrap.dedent(program))
    return workspace.run(["/usr/bin/python3", "program.py"], {"PYTHONPATH": str(PYTHON)}, **how)


def test_the_name_of_the_step_before_the_first_call_of_cuda_is_kept(workspace):
    run = run_python(
        workspace,
        """
        cuwarden.step("before")
        cuwarden.step("first")
        import taking
        taking.take(1 << 20)
        """,
    )
    assert run.returncode == 0 and run.report["process"]["steps"] == 2
    assert steps_by_size(run.report) == {1 * MIB: [("first", 1)]}


def test_a_name_of_many_bytes_is_cut_between_two_characters(workspace):
    run = run_python(workspace, "import taking; cuwarden.step('a' + 300 * 'é'); taking.take(1 << 20)")
    assert steps_by_size(run.report) == {1 * MIB: [("a" + 127 * "é", 1)]}


def test_steps_without_names_do_not_end_a_named_step(workspace):
    run = run_python(
        workspace,
        """
        import taking
        cuwarden.step("test of a training loop")
        for _ in range(3):
            cuwarden.step()
            taking.take(1 << 20)
        cuwarden.step("")
        taking.take(2 << 20)
        """,
    )
    assert run.report["process"]["steps"] == 4
    assert steps_by_size(run.report) == {1 * MIB: [("test of a training loop", 3)], 2 * MIB: []}


def test_a_forked_child_goes_on_in_the_named_step(workspace):
    run = run_python(
        workspace,
        """
        import os
        cuwarden.step("parent's test")
        if os.fork() == 0:
            import taking
            taking.take(1 << 20)
            os._exit(0)
        os.wait()
        """,
    )
    (report,) = run.reports
    assert steps_by_size(report) == {1 * MIB: [("parent's test", 1)]}


def test_each_test_is_one_step(workspace):
    (workspace.work / "taking.py").write_text(TAKING)
    tests = "import pytest, taking\n@pytest.mark.parametrize('n', range(40))\n"
    tests += "def test_leaks(n):\n    taking.take(1 << 20)\n"
    (workspace.work / "test_many.py").write_text(tests)
    plugin = ["-p", "cuwarden_pytest", "-p", "no:cacheprovider"]
    env = {"PYTHONPATH": str(PYTHON)}
    run = workspace.run(["/usr/bin/python3", "-m", "pytest", *plugin, "test_many.py"], env)
    assert run.report["process"]["steps"] == 40
    (group,) = [group for group in run.report["leak_groups"] if group["count"] == 40]
    assert (group["growth"], group["first_step"], group["growth_bytes_per_step"]) == ("growing", 1, MIB)
    assert len(group["named_steps"]) == 40


def test_a_test_that_made_a_small_part_of_a_leak_is_not_blamed_for_it(workspace):
    run = run_python(
        workspace,
        """
        import taking
        def keep():
            taking.take(1 << 20)
        for number in range(9):
            cuwarden.step("innocent" if number == 4 else "")
            keep()
        """,
    )
    (path,) = workspace.reports.iterdir()
    text = shimmed.cuwarden(workspace, "report", "--fail-on-leak", path).stdout
    assert "made in innocent (1.0 MiB in 1 allocation); 8 allocations outside of named steps" in text
    assert "innocent" not in text.splitlines()[-1]
    assert run.returncode == 0
