"""Programs that are built with a sanitizer of GCC or Clang: under the shim they run as without it, find
the same errors, and leave a report.
"""

import functools
import itertools
import re
import shutil
import subprocess

import pytest

from shimmed import DRIVER, RUNTIME, SHIM, SOURCE, cuwarden, program

LEAKING = SOURCE / "tests" / "end_to_end" / "programs" / "sanitized" / "leaking.c"
COMPILERS = ("gcc", "clang")
SANITIZERS = ("address", "thread", "memory", "undefined", "leak")
BUILDS = [
    build
    for build in itertools.product(COMPILERS, SANITIZERS)
    if build != ("gcc", "memory")  # GCC has no MemorySanitizer
]
# The shared runtime that GCC links must be the first library, also without the shim.
ANY_ORDER = {"ASAN_OPTIONS": "verify_asan_link_order=0"}


@pytest.fixture(scope="session")
def build(tmp_path_factory):
    """Builds each program once. Skips the test if there is no such compiler or runtime."""
    folder = tmp_path_factory.mktemp("sanitized")

    @functools.cache
    def compile_with(compiler, sanitizer, source):
        if shutil.which(compiler) is None:
            return f"{compiler} is not installed"
        path = folder / f"{source.stem}-{compiler}-{sanitizer}"
        command = [compiler, "-g", "-O1", f"-fsanitize={sanitizer}", source, RUNTIME, "-o", path]
        done = subprocess.run([*command, "-pthread"], capture_output=True, text=True)
        if done.returncode != 0 and re.search(r"cannot find .*(libclang_rt|san)", done.stderr):
            return f"{compiler} has no runtime for -fsanitize={sanitizer}"
        assert done.returncode == 0, done.stderr
        return path

    def built(how, source=LEAKING):
        path = compile_with(*how, source)
        if isinstance(path, str):
            pytest.skip(path)
        return path

    return built


@pytest.fixture(scope="session")
def empty_source(tmp_path_factory):
    path = tmp_path_factory.mktemp("source") / "empty.c"
    path.write_text("int main(void) { return 0; }\n")
    return path


def check_bare(workspace, command, env=None):
    run = workspace.run(command, {**ANY_ORDER, **(env or {})}, shim=False)
    if "unexpected memory mapping" in run.stderr:
        pytest.skip("this kernel's address space is too random for the sanitizer")
    return run


@pytest.mark.parametrize("how", BUILDS, ids="-".join)
def test_a_sanitized_program_runs_preloaded_and_its_leak_is_reported(workspace, build, how):
    command = [build(how)]
    bare = check_bare(workspace, command)
    run = workspace.run(command, ANY_ORDER)
    assert (run.returncode, run.stdout, run.stderr) == (0, bare.stdout, bare.stderr)
    run.report.check_leaks(run.last_line["leaked"])


@pytest.mark.parametrize("how", BUILDS, ids="-".join)
def test_a_sanitized_program_runs_where_recording_is_turned_off(workspace, build, how):
    command = [build(how)]
    bare = check_bare(workspace, command)
    run = workspace.run(command, {**ANY_ORDER, "CUWARDEN_ENABLED": "0"})
    assert (run.returncode, run.stdout, run.stderr) == (0, bare.stdout, bare.stderr)
    assert run.reports == []


@pytest.mark.parametrize("how", BUILDS, ids="-".join)
def test_a_sanitized_program_without_cuda_runs_preloaded(workspace, build, how, empty_source):
    command = [build(how, empty_source)]
    check_bare(workspace, command)
    run = workspace.run(command, ANY_ORDER, preload=())
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


@pytest.mark.parametrize("how", BUILDS, ids="-".join)
def test_a_sanitized_program_runs_under_the_command_itself_and_from_a_script(workspace, build, how):
    path = build(how)
    check_bare(workspace, [path])
    for command in [path], ["/bin/sh", "-c", f"{path}; exit $?"]:
        report = workspace.reports / f"{len(command)}.json"
        done = cuwarden(workspace, "run", "--simulate", "2GiB", "--report", report, "--", *command)
        assert done.returncode == 0, done.stderr
        assert "1 allocation never freed" in done.stderr
        assert report.exists()


@pytest.mark.parametrize(
    ("how", "defect", "status", "words"),
    [
        (("gcc", "thread"), "race", 66, "data race"),
        (("clang", "thread"), "race", 66, "data race"),
        (("gcc", "address"), "host_leak", 1, "LeakSanitizer: detected memory leaks"),
        (("clang", "address"), "host_leak", 1, "LeakSanitizer: detected memory leaks"),
        (("clang", "leak"), "host_leak", 23, "LeakSanitizer: detected memory leaks"),
        (("gcc", "undefined"), "overflow", 0, "signed integer overflow"),
        (("clang", "undefined"), "overflow", 0, "signed integer overflow"),
    ],
)  # fmt: skip
def test_the_sanitizer_finds_what_it_finds_without_the_shim(
    workspace, build, how, defect, status, words
):
    command = [build(how), defect]
    bare = check_bare(workspace, command)
    if "LeakSanitizer has encountered a fatal error" in bare.stderr:
        pytest.skip("LeakSanitizer may not trace here")
    run = workspace.run(command, ANY_ORDER)
    assert words in run.stderr
    assert run.returncode == bare.returncode == status, run.stderr
    # LeakSanitizer ends a process during its exit. The report from before the last readings exists, and
    # the ledger stays, since the shim did not see the end.
    assert len(run.reports) == 1
    assert len(run.ledgers) == (1 if defect == "host_leak" else 0)
    done = cuwarden(workspace, "run", "--simulate", "2GiB", "--", *command)
    assert words in done.stderr
    assert done.returncode == status
    assert "4.9 KiB in 1 allocation " in done.stderr


def shared_runtime(path):
    """Returns the path of the AddressSanitizer runtime that the program is linked with."""
    listed = subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout
    return re.search(r"=> (\S*/libasan\.so\S*)", listed)[1]


def test_a_user_who_preloads_the_sanitizers_runtime_keeps_it_in_front(workspace, build):
    path = build(("gcc", "address"))
    runtime = shared_runtime(path)
    env = {"LD_PRELOAD": runtime, "ASAN_OPTIONS": "verify_asan_link_order=1:detect_leaks=0"}
    done = cuwarden(workspace, "run", "--simulate", "2GiB", "--", path, env=env)
    assert done.returncode == 0, done.stderr
    assert "1 allocation never freed" in done.stderr


def test_children_of_a_sanitized_program_do_not_get_the_sanitizer(workspace, build):
    done = cuwarden(
        workspace, "run", "--simulate", "2GiB", "--", "/bin/sh", "-c",
        f"{build(('gcc', 'address'))}; echo preloaded: $LD_PRELOAD, options: $ASAN_OPTIONS",
        env={"ASAN_OPTIONS": "detect_leaks=0"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("preloaded: ")]
    assert "asan" not in line.partition(",")[0]
    assert line.endswith("options: detect_leaks=0:verify_asan_link_order=0")


def test_doctor_says_what_a_sanitized_program_needs_where_the_shim_is_preloaded(workspace, build):
    path = build(("gcc", "address"))
    done = cuwarden(workspace, "doctor", "--", path)
    assert "is built with AddressSanitizer" in done.stdout
    assert "ASAN_OPTIONS=verify_asan_link_order=0" in done.stdout
    advised = re.search(r"LD_PRELOAD=(\S+)", done.stdout)[1]
    assert advised == f"{shared_runtime(path)}:{SHIM}"
    run = workspace.run([path], {"LD_PRELOAD": f"{advised}:{DRIVER}:{RUNTIME}"})
    assert run.returncode == 0, run.stderr
    run.report.check_leaks(run.last_line["leaked"])


def test_doctor_names_the_runtimes_of_the_other_sanitizers(workspace, build):
    for sanitizer, name in [("thread", "ThreadSanitizer"), ("leak", "LeakSanitizer")]:
        done = cuwarden(workspace, "doctor", "--", build(("gcc", sanitizer)))
        assert f"is built with {name}" in done.stdout
        assert "LD_PRELOAD=" not in done.stdout
    assert "is built with" not in cuwarden(workspace, "doctor", "--", program("allocate")).stdout
