"""Python frames in call stacks: what a report says is compared with what Python itself says.

Each test runs under all interpreters of versions that can be read and that are at hand: those on PATH
and pyenv's.
"""

import collections
import json
import os
import subprocess
import textwrap
from pathlib import Path

import pytest

import shimmed

READ = [(3, minor) for minor in range(9, 15)]


def interpreters():
    """Returns the path of an interpreter for each version at hand, of each way in which it was built."""
    found = {}
    names = ["python3", *(f"python3.{minor}" for _, minor in READ)]
    paths = [Path(folder) / name for folder in os.get_exec_path() for name in names]
    paths += sorted(Path.home().glob(".pyenv/versions/*/bin/python3"))
    for path in paths:
        if not os.access(path, os.X_OK):
            continue
        ask = (
            "import sys, sysconfig; print(*sys.version_info[:2], 'libpython' in open('/proc/self/maps').read(), "
            "sysconfig.get_config_var('Py_GIL_DISABLED') or 0, sys.executable)"
        )
        done = subprocess.run([path, "-I", "-c", ask], capture_output=True, text=True)
        facts = done.stdout.split()
        if done.returncode != 0 or len(facts) != 5 or facts[3] != "0":
            continue
        version = (int(facts[0]), int(facts[1]))
        if version in READ:
            how = "shared" if facts[2] == "True" else "static"
            found.setdefault(f"{version[0]}.{version[1]}-{how}", facts[4])
    return found


INTERPRETERS = interpreters()
every_python = pytest.mark.parametrize(
    "python", INTERPRETERS.values(), ids=INTERPRETERS.keys()
)

WAYS = shimmed.SOURCE / "tests" / "contract" / "stacks"

# Allocations of sizes that occur once. note() keeps the frames that Python itself sees.
START = f"""
import ctypes, json, sys, threading
sys.path.insert(0, {str(WAYS)!r})
sys.dont_write_bytecode = True
import call_ways
from call_ways import through_c
cudart = ctypes.CDLL("libcudart.so.13")
cudart.cudaMalloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
seen, sizes, lock = {{}}, iter(range(4096, 1 << 40, 512)), threading.Lock()

def frames():
    return [
        [frame.f_code.co_filename, frame.f_lineno, call_ways.name_of(frame.f_code)]
        for frame in call_ways.frames(2)
    ]

def note(stack):
    with lock:
        size = next(sizes)
        seen[size] = stack
    return size

out = ctypes.c_void_p()
"""
# The line of the call is that of its innermost frame.
ALLOCATE = "assert cudart.cudaMalloc(ctypes.byref(out), note(frames())) == 0"
END = "\nprint(json.dumps(seen))\n"


def run_script(workspace, python, text, env=None):
    path = workspace.work / "script.py"
    path.write_text(text)
    run = workspace.run([python, "-I", path], env)
    assert run.returncode == 0, run.stderr
    return run


def stacks_of(report):
    """Returns the frames, innermost first, and the bytes of each group of cudaMalloc's."""
    return [
        ([report.frames[frame] for frame in report.stacks[group["stack"]]["frames"]], group["bytes"])
        for group in report["leak_groups"]
        if group["api"] == "cudaMalloc"
    ]


def python_part(frames):
    return [
        [frame["file"], frame["line"], frame["function"]]
        for frame in frames
        if frame["language"] == "python"
    ]


def check_all(run):
    """Compares the bytes of each Python stack with what Python said; returns the number of calls."""
    expected, found = collections.Counter(), collections.Counter()
    for size, stack in run.last_line.items():
        expected[json.dumps(stack)] += int(size)
    for frames, allocated in stacks_of(run.report):
        found[json.dumps(python_part(frames))] += allocated
    assert found == expected
    return len(run.last_line)


@every_python
def test_stacks_have_the_functions_lines_and_files_that_python_names(workspace, python):
    script = START + textwrap.dedent(f"""
        class Model:
            def forward(self, depth):
                if depth:
                    return self.forward(depth - 1)
                {ALLOCATE}
            @staticmethod
            def fixed():
                {ALLOCATE}
        def generated():
            yield 1
            {ALLOCATE}
            yield 2
        def many_lines(
            value,
        ):
            return (
                value,
                Model().forward(2),
            )
        Model().forward(0)
        Model().forward(5)
        Model.fixed()
        list(generated())
        many_lines(1)
        [Model.fixed() for _ in range(1)]
        (lambda: Model.fixed())()
        exec(compile("def made():\\n\\n  Model.fixed()\\nmade()", "made.py", "exec"))
        try:
            raise ValueError
        except ValueError:
            Model.fixed()
        class Body:
            {ALLOCATE}
        {ALLOCATE}
        """) + END
    run = run_script(workspace, python, script)
    assert check_all(run) == 11
    # The interpreter's own functions say nothing more.
    names = [frame["function"] or "" for frame in run.report["frames"] if frame["language"] == "native"]
    assert not [name for name in names if name.startswith(("_PyEval", "PyObject_", "_Py"))]


@every_python
def test_native_and_python_frames_are_in_their_true_order(workspace, python):
    script = START + textwrap.dedent(f"""
        def innermost():
            {ALLOCATE}
        def middle():
            through_c(innermost)
        def outermost():
            sorted([1], key=lambda one: through_c(middle))
        outermost()
        """) + END
    run = run_script(workspace, python, script)
    assert check_all(run) == 1
    ((frames, _),) = stacks_of(run.report)
    order = [
        frame["function"] if frame["language"] == "python" else "C"
        for frame in frames
        if frame["language"] == "python" or (frame["function"] or "").startswith(("qsort", "msort"))
    ]
    short = [name.split(".")[-1] for name in order]
    at = {name: short.index(name) for name in ("innermost", "middle", "outermost")}
    calls = [index for index, name in enumerate(short) if name == "C"]
    assert at["innermost"] < at["middle"] < at["outermost"]
    assert any(at["innermost"] < call < at["middle"] for call in calls), order
    assert any(at["middle"] < call < at["outermost"] for call in calls), order


@every_python
def test_equal_native_stacks_of_different_python_stacks_are_told_apart(workspace, python):
    """Calls between Python functions leave no trace on the C stack from Python 3.11 on."""
    script = START + textwrap.dedent("""
        def allocate(): cudart.cudaMalloc(ctypes.byref(out), 4096)
        def one(): allocate()
        def other(): allocate()
        def each():
            for _ in range(3):
                one()
                one(); other()
        each()
        print()
        """)
    run = run_script(workspace, python, script)
    groups = [group for group in run.report["leak_groups"] if group["api"] == "cudaMalloc"]
    assert sorted(group["count"] for group in groups) == [3, 3, 3]


@every_python
def test_code_at_an_address_that_other_code_had_keeps_its_own_name(workspace, python):
    script = START + textwrap.dedent("""
        def go():
            for number in range(300):
                text = "def f%03d(): cudart.cudaMalloc(ctypes.byref(out), %d)\\nfor _ in range(3): f%03d()"
                size = 4096 + 512 * number
                name = "file%03d.py" % number
                exec(compile(text % (number, size, number), name, "exec"), globals().copy())
        go()
        print()
        """)
    run = run_script(workspace, python, script)
    named = stacks_of(run.report)
    assert len(named) == 300
    for frames, allocated in named:
        number = (allocated // 3 - 4096) // 512
        innermost = python_part(frames)[0]
        assert innermost == [f"file{number:03}.py", 1, f"f{number:03}"], allocated


@every_python
def test_code_that_differs_in_its_lines_alone_is_told_apart(workspace, python):
    script = START + textwrap.dedent("""
        def go():
            for number in range(200):
                size = 4096 if number % 2 else 8192
                text = "\\n" * (number % 2 * 2) + "if 1:\\n  cudart.cudaMalloc(ctypes.byref(out), size)\\n" + "\\n" * 4
                exec(compile(text, "<string>", "exec"), {**globals(), "size": size})
        go()
        print()
        """)
    run = run_script(workspace, python, script)
    found = {}
    for frames, allocated in stacks_of(run.report):
        line = python_part(frames)[0][1]
        found[line] = found.get(line, 0) + allocated
    assert found == {2: 100 * 8192, 4: 100 * 4096}


@every_python
def test_a_constructor_has_no_frames_of_the_interpreters_own(workspace, python):
    script = START + textwrap.dedent("""
        class Tensor:
            def __init__(self): cudart.cudaMalloc(ctypes.byref(out), 4096)
        def make():
            for _ in range(100): Tensor()
        make()
        print()
        """)
    run = run_script(workspace, python, script)
    lines = {tuple(line for _, line, _ in python_part(frames)) for frames, _ in stacks_of(run.report)}
    assert len(lines) == 1 and None not in lines.pop()


@every_python
def test_a_deep_recursion_keeps_its_innermost_frames(workspace, python):
    script = START + textwrap.dedent("""
        def deep(left):
            if left:
                return deep(left - 1)
            cudart.cudaMalloc(ctypes.byref(out), 4096)
        deep(100)
        deep(300)
        print()
        """)
    run = run_script(workspace, python, script, {"CUWARDEN_STACK_DEPTH": "1024"})
    depths = sorted(len(python_part(frames)) for frames, _ in stacks_of(run.report))
    assert depths == [102, 256]


@every_python
def test_stacks_that_differ_far_outside_alone_are_told_apart(workspace, python):
    """The interpreter's own frames are many times as many as those that a stack keeps."""
    script = START + textwrap.dedent("""
        class Nested:
            def __init__(self, inner): self.inner = inner
            def __call__(self, *arguments): return self.inner()
        def innermost(): cudart.cudaMalloc(ctypes.byref(out), size)
        nested = innermost
        for _ in range(58): nested = Nested(nested)
        def go():
            global size
            for _ in range(20):
                size = 4096
                sorted([1], key=nested)
                size = 8192
                sorted([1], key=nested)
        go()
        print()
        """)
    run = run_script(workspace, python, script)
    found = {}
    for frames, allocated in stacks_of(run.report):
        line = python_part(frames)[-2][1]  # line of go()
        found[line] = found.get(line, 0) + allocated
    assert sorted(found.values()) == [20 * 4096, 20 * 8192]


TREES = """
import random
def leaf():
    ALLOCATE
def work(seed):
    chance = random.Random(seed)
    for _ in range(COUNT):
        call_ways.tree(chance, chance.randrange(1, 12), leaf)()
threads = [threading.Thread(target=work, args=[seed]) for seed in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


@every_python
def test_random_trees_of_calls_in_eight_threads(workspace, python):
    count = 500 if os.environ.get("LARGE_COUNTS") else 40
    script = START + TREES.replace("ALLOCATE", ALLOCATE.replace("byref(out)", "byref(ctypes.c_void_p())"))
    run = run_script(workspace, python, script.replace("COUNT", str(count)) + END)
    assert check_all(run) > 6 * count  # some ways call twice, or not at all


@every_python
def test_off_leaves_native_frames_alone(workspace, python):
    run = run_script(workspace, python, START + ALLOCATE + END, {"CUWARDEN_PYTHON": "off"})
    assert {frame["language"] for frame in run.report["frames"]} == {"native"}
