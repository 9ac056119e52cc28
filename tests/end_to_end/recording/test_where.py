"""The line that a person would name: `where` of a group, and how the text folds what libraries do."""

import re
import textwrap

import pytest

import shimmed

# A Python package that stands in for PyTorch: it lies in site-packages/torch.
FRAMEWORK = """
import ctypes
cudart = ctypes.CDLL("libcudart.so.13")
cudart.cudaMalloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]

def take(size):
    out = ctypes.c_void_p()
    assert cudart.cudaMalloc(ctypes.byref(out), size) == 0

def empty(size):
    take(size)
"""

TRAIN = """
import sys
sys.path.insert(0, "{packages}")
{imports}

def step(size):
    {empty}(size)

class Trainer:
    def fit(self):
        for _ in range(3):
            step(4 << 20)

Trainer().fit()
"""


def train(workspace, package="site-packages/torch", env=None):
    """Runs a script that allocates through a package; returns the run and the script's path."""
    folder = workspace.work / package
    folder.mkdir(parents=True)
    (folder / "memory.py").write_text(FRAMEWORK)
    script = workspace.work / "train.py"
    name = folder.name
    script.write_text(
        textwrap.dedent(TRAIN).format(
            packages=folder.parent, imports=f"from {name} import memory", empty="memory.empty"
        )
    )
    run = workspace.run(["/usr/bin/python3", "-I", script], env)
    assert run.returncode == 0, run.stderr
    return run, script


def leak_of(run):
    (leak,) = [group for group in run.report["leak_groups"] if group["api"] == "cudaMalloc"]
    return leak


def text_of(workspace, *options):
    (path,) = workspace.reports.iterdir()
    done = shimmed.cuwarden(workspace, "report", *options, path)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_where_is_the_line_that_called_the_framework(workspace):
    run, script = train(workspace)
    line = script.read_text().splitlines().index("    memory.empty(size)") + 1
    assert leak_of(run)["where"] == f"{script}:{line} in step"
    libraries = {frame["function"]: frame["library"] for frame in run.report["frames"]}
    assert libraries["take"] == libraries["empty"] == "PyTorch"
    assert libraries["step"] is None and libraries["Trainer.fit"] is None


def test_the_text_begins_with_that_line_and_folds_frames_of_libraries(workspace):
    run, script = train(workspace)
    text = text_of(workspace)
    leaks = text[text.index("LEAKS:") :].splitlines()
    headline = next(number for number, line in enumerate(leaks) if "cudaMalloc" in line)
    assert re.fullmatch(r" +at train\.py:\d+ in step", leaks[headline + 1]), text
    assert "… 2 frames of PyTorch" in text
    assert "take  " not in text and "empty  " not in text
    assert re.search(r"\S*train\.py:\d+ +Trainer\.fit\n", text)


def test_full_stacks_show_each_frame(workspace):
    run, _ = train(workspace)
    text = text_of(workspace, "--full-stacks")
    assert re.search(r"\S*memory\.py:\d+ +take\n", text)
    assert re.search(r"\S*memory\.py:\d+ +empty\n", text)
    assert "frames of PyTorch" not in text and "in the report" not in text
    assert re.search(r" {7}\S+ +cudaMalloc\n", text)


def test_code_of_an_unknown_library_is_the_programs_own(workspace):
    run, _ = train(workspace, "packages/own")
    assert re.fullmatch(r".*/own/memory\.py:\d+ in take", leak_of(run)["where"])


def test_further_libraries_are_passed_over(workspace):
    run, script = train(workspace, "packages/own", {"CUWARDEN_LIBRARIES": "libother*,/own/"})
    assert re.fullmatch(rf"{re.escape(str(script))}:\d+ in step", leak_of(run)["where"])
    assert "… 2 frames of /own/" in text_of(workspace)


@pytest.mark.parametrize("value", ["/", "libown*,*", ",", "a,,b", "/mylib/*", "liba, libb"])
def test_a_pattern_that_matches_everything_is_refused_in_one_line(workspace, value):
    run, _ = train(workspace, env={"CUWARDEN_LIBRARIES": value})
    (line,) = [line for line in run.stderr.splitlines() if "CUWARDEN_LIBRARIES" in line]
    assert "patterns of files with commas and no spaces between them" in line
    assert leak_of(run)["where"].endswith(" in step")


def test_where_of_a_native_program_is_its_own_line(workspace):
    run = workspace.run([shimmed.sample("pinned_leak")])
    for group in run.report["leak_groups"]:
        assert re.search(r"pinned_leak\.cpp:\d+ in ", group["where"]), group
