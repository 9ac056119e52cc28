"""Each command that a document shows works. If a command is not run here, all that it names exists."""

import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys

import pytest

import shimmed
from pages import BLOCKS_RUN_BY, DOCUMENTS, blocks, commands
from shimmed import BUILD, SOURCE


def test_each_page_whose_blocks_are_left_out_has_a_test_that_reads_it():
    here = SOURCE / "tests" / "end_to_end" / "documents"
    for page, file in BLOCKS_RUN_BY.items():
        assert blocks("(?:bash|console)", (SOURCE / page).read_text())
        assert page.removeprefix("docs/") in (here / file).read_text()


# --- commands that are not run: checks of the names in them


def check_options(words, *program):
    """Fails unless the program's help names each option among the words."""
    shown = subprocess.run([*program, "--help"], cwd=SOURCE, capture_output=True, text=True, timeout=60)
    assert shown.returncode == 0, shown.stdout + shown.stderr
    for word in (word for word in words if word.startswith("-")):
        option = word.partition("=")[0] if word.startswith("--") else word[:2]
        assert re.search(rf"(?<![\w-]){option}\b", shown.stdout), f"{option} is no option of {program}"


def check_script(_, words):
    script = SOURCE / words[0]
    python = [sys.executable] if "python" in script.read_text().splitlines()[0] else []
    check_options(words[1:], *python, script)


def folders_of_tests():
    return set(re.findall(r"\[(build[\w-]*)\]", (SOURCE / "tools" / "test").read_text()))


def names_of_tests():
    return {test["name"] for test in json.loads((BUILD / "meson-info" / "intro-tests.json").read_text())}


def names_of_suites():
    files = "\n".join(path.read_text() for path in (SOURCE / "tests").rglob("meson.build"))
    return set(re.findall(r"'(\w+)'", " ".join(re.findall(r"suite: (?:'\w+'|\[[^]]*\])", files))))


def check_meson_test(_, words):
    """Fails unless options, build folder, tests and suites of `meson test ...` exist."""
    need_build_program("meson")
    check_options(words[2:], "meson", "test")
    left = iter(words[2:])
    for word in left:
        if word == "-C":
            assert next(left) in folders_of_tests()
        elif word in ("--suite", "--no-suite"):
            assert next(left) in names_of_suites()
        elif not word.startswith("-"):
            assert word in names_of_tests()


def check_systemd_run(_, words):
    """Fails unless systemd runs a program with these words, or its help names the options."""
    if shutil.which("systemd-run") is None:
        pytest.skip("systemd-run is not installed")
    done = subprocess.run([*words, "true"], capture_output=True, timeout=60, stdin=subprocess.DEVNULL)
    if done.returncode != 0:  # systemd does not run in containers
        check_options(words, "systemd-run")


def check_apt_get(_, words):
    """Fails unless apt-get knows the command and its options. Packages are left out, and nothing is changed."""
    need_build_program("apt-get")
    options = [word for word in words[2:] if word.startswith("-")]
    done = subprocess.run(
        [*words[:2], "--simulate", *options], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, done.stdout + done.stderr


def run_by(file):
    """Returns a check that this file of tests runs the commands of the page."""

    def check(document, _):
        assert BLOCKS_RUN_BY.get(document) == file

    return check


# Forms of commands that are not run below, each with the reason, and a check of the names in it.
NOT_RUN = [
    (r"tools/test( .*)?", "this test is a part of it", check_script),
    (r"tools/release( .*)?", "tests/release runs it", check_script),
    (r"tests/gpu/(run|fire|benchmarks/\w+\.py) .*", "needs a GPU", check_script),
    (r"(?:[A-Z_]+=\S+ )*meson test(?! -C build (--list|NAME)).*", "tools/test runs these tests", check_meson_test),
    (r"systemd-run .*", "begins a command", check_systemd_run),
    (r"apt-get .*", "changes the packages of the system", check_apt_get),
    (r"go tool pprof( -http=: .*)?", "test_exports.py", run_by("test_exports.py")),
    (r"duckdb \S+\.db", "test_queries.py", run_by("test_queries.py")),
]
# Forms of commands that are run in a folder like that of the sources. Each has a template for re.sub(), which makes the
# line that is run, a text that this line prints, and the line's exit status.
PYTEST_OPTIONS = "END_TO_END_BUILD=build PYTHONDONTWRITEBYTECODE=1 PYTEST_ADDOPTS='-p no:cacheprovider'"
IN_SOURCES = [
    (r"python3 (-m pytest .*)", rf"{PYTEST_OPTIONS} {sys.executable} \1", "passed", 0),
    (r"python3 (-m cuwarden)", rf"{sys.executable} \1", "usage:", 2),
    (r"build/tests/.*", r"\g<0>", "[  PASSED  ]", 0),
    (r"tools/quickstart", r"\g<0>", "cuwarden report build/quickstart/", 0),
    (
        r"(tools/npm_packages (\S+)) \S+",
        r"\1 packages && cmp \2/package-lock.json packages/installed-lock.json && echo equal",
        "equal",
        0,
    ),
    (r"export PATH=.*", r"\g<0> && command -v cuwarden", "/sources/build/cuwarden", 0),
    (
        r"export PYTHONPATH=.*",
        rf"unset PYTHONPATH; \g<0> && {sys.executable} -c 'import cuwarden as c; print(c.__file__)'",
        "/sources/tools/python/cuwarden.py",
        0,
    ),
    (r"meson test -C build --list", r"\g<0> --no-rebuild", " / keys", 0),
    (r"(meson test .*)NAME(.*)", r"\1life_cycle\2 --no-rebuild", "life_cycle", 0),
    (r"meson install", r"DESTDIR=$PWD/root \g<0> -C build --no-rebuild && find root", "/bin/cuwarden\n", 0),
    (r"meson install .*", r"DESTDIR=$PWD/root \g<0> && find root", "/bin/cuwarden\n", 0),
]
# Commands that are run in an empty folder. `$OLDPWD/app` is a program with debug information. Each has the line that is
# run, and a text that this line prints.
IN_AN_EMPTY_FOLDER = {
    "ls -l": ("truncate -s 8G ledger && ls -l", " 8589934592 "),
    "rm -rf build": ("mkdir build && touch build/file && rm -rf build && test ! -e build && echo gone", "gone"),
    "strip -g": ("cp $OLDPWD/app . && strip -g app && test $(wc -c <app) -lt $(wc -c <$OLDPWD/app) && echo less", "less"),
}
# Forms of commands that are run in a folder with the sources, but without the build folder.
SETS_UP_A_FOLDER = r"(?:[A-Z_]+=\S+ )*meson (setup|configure) .*"


def parameters(is_chosen):
    return [pytest.param(name, line, id=f"{name}: {line}") for name, line in commands() if is_chosen(line)]


def forms(command):
    return [form for form in NOT_RUN if re.fullmatch(form[0], command)]


def is_in_sources(command):
    return any(re.fullmatch(form, command) for form, *_ in IN_SOURCES)


def is_in_an_empty_folder(command):
    return command in IN_AN_EMPTY_FOLDER


def sets_up_a_folder(command):
    return re.fullmatch(SETS_UP_A_FOLDER, command) is not None


def is_gdb(command):
    return command.startswith("gdb ")


def is_jq(command):
    return command.startswith("jq ")


# Predicates of commands that have a test of their own.
HAVE_TESTS = (forms, is_in_sources, is_in_an_empty_folder, sets_up_a_folder, is_gdb, is_jq)


@pytest.mark.parametrize("document, command", parameters(forms))
def test_a_command_that_is_not_run_names_what_exists(document, command):
    ((_, _, check),) = forms(command)
    words = itertools.dropwhile(re.compile(r"[A-Z_]+=").match, shlex.split(command))
    check(document, list(words))


def test_the_tags_in_comments_of_commands_exist():
    plan = json.loads((BUILD / "meson-info" / "intro-install_plan.json").read_text())
    known = {entry["tag"] for kind in plan.values() for entry in kind.values()}
    lines = [line for path in DOCUMENTS for block in blocks("sh", path.read_text()) for line in block.splitlines()]
    found = re.findall(r"#.* --tags ([\w,]+)", "\n".join(lines))
    assert found
    assert {tag for tags in found for tag in tags.split(",")} <= known


# --- commands that are run


def need_build_program(name):
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")


def replace_program(workspace, name, text):
    """Puts a program on the PATH of `shown`, a shell script with this text."""
    program = workspace.folder / "bin" / name
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)


@pytest.fixture
def dry_ninja(workspace, shown):
    """Puts a `ninja` on the PATH that lists what it would build, and builds nothing."""
    if ninja := shutil.which("ninja"):
        replace_program(workspace, "ninja", f'exec {ninja} -n "$@"')


@pytest.fixture
def in_sources(shown, workspace, dry_ninja):
    """Runs a line of shell in a folder with the sources' scripts and tests, and a copy of the build folder. All packages
    seem to be installed, and there is no GPU. npm and ninja do nothing.
    """
    sources, build = workspace.folder / "sources", workspace.folder / "sources" / "build"
    (build / "meson-logs").mkdir(parents=True)
    for name in ("tests", "tools"):
        (sources / name).symlink_to(SOURCE / name)
    # Tests that run now write their logs and results to the build folder.
    for path in BUILD.iterdir():
        if path.name not in ("meson-logs", "quickstart") and path.suffix != ".xml":
            (build / path.name).symlink_to(path)
    replace_program(workspace, "npm", "")
    replace_program(workspace, "dpkg-query", "echo install ok installed")
    replace_program(workspace, "apt-get", "exit 1")
    replace_program(workspace, "ldconfig", "")
    return lambda line: shown(f"cd {sources} && unset NINJA && {line}")


@pytest.mark.parametrize("document, command", parameters(is_in_sources))
def test_a_command_in_the_folder_of_the_sources_works(document, command, in_sources):
    form, line, said, status = next(row for row in IN_SOURCES if re.fullmatch(row[0], command))
    for program in {"meson": ("meson", "ninja"), "tools/quickstart": ("ninja",)}.get(command.split()[0], ()):
        need_build_program(program)
    run = in_sources(re.sub(form, line, command))
    assert run.returncode == status, run.stdout + run.stderr
    assert said in run.stdout + run.stderr and "Running 0 tests" not in run.stdout


@pytest.mark.parametrize("_, command", parameters(is_in_an_empty_folder))
def test_a_command_about_files_works(_, command, shown, workspace):
    if command.startswith("strip "):
        need_build_program("strip")
    line, said = IN_AN_EMPTY_FOLDER[command]
    (workspace.folder / "empty").mkdir()
    run = shown(f"cd ../empty && {line}")
    assert run.returncode == 0 and said in run.stdout, run.stdout + run.stderr


def test_commands_that_set_up_a_build_folder_work(shown, workspace, dry_ninja):
    for program in ("meson", "ninja"):
        need_build_program(program)
    sources = workspace.folder / "sources"
    sources.mkdir()
    for path in SOURCE.iterdir():
        if not path.name.startswith("build"):
            (sources / path.name).symlink_to(path)
    found = dict.fromkeys(command for _, command in commands() if sets_up_a_folder(command))
    assert any("ninja -C build usable" in command for command in found)
    for command in sorted(found, key=lambda command: not command.startswith("meson setup build")):
        run = shown(f"cd {sources} && unset NINJA && {command}")
        assert run.returncode == 0, command + run.stdout + run.stderr
        assert "ninja" not in command or "libcuwarden.so" in run.stdout


def need(program):
    """Skips the test if the program is missing, or fails it under tools/test."""
    if shutil.which(program) is None:
        (pytest.fail if os.environ.get(f"NEEDS_{program.upper()}") else pytest.skip)(f"{program} is not installed")


@pytest.mark.parametrize("document, command", parameters(is_gdb))
def test_gdb_has_the_symbols_of_the_preloaded_shim(document, command, shown, workspace):
    need("gdb")
    simulated = f"{shimmed.SHIM}:{shimmed.DRIVER}:{shimmed.RUNTIME}"
    (setting,) = re.findall(r"`(set environment [^`]+)`", (SOURCE / document).read_text())
    setting = re.sub(r"/path/\S*libcuwarden\.so", simulated, setting)
    typed = [setting, "start", "info sharedlibrary cuwarden", "continue"]
    batch = " ".join(f"-ex {shlex.quote(line)}" for line in typed)
    run = shown(command.replace("gdb ", f"gdb -nx -batch {batch} ", 1))
    if "Operation not permitted" in run.stderr:
        pytest.skip("no process may be traced here")
    assert run.returncode == 0 and "exited normally" in run.stdout, run.stdout + run.stderr
    assert len(list(workspace.work.glob("cuwarden-app-*.json"))) == 1
    (line,) = [line for line in run.stdout.splitlines() if line.endswith(f" {shimmed.SHIM}")]
    has_debug_file = shimmed.SHIM.with_name("libcuwarden.so.debug").exists()
    assert "Yes  " in line or not has_debug_file, "gdb has not found libcuwarden.so.debug"


@pytest.mark.parametrize("document, command", parameters(is_jq))
@pytest.mark.parametrize("program, status", [("./app", 0), ("build/samples/churn", 1)])
def test_jq_ends_with_1_if_the_report_has_a_request_that_failed(document, command, program, status, shown):
    need("jq")
    report = command.split()[-1]
    assert shown(f"cuwarden run --pool off --report {report} -- {program}").returncode == 0
    run = shown(command)
    assert run.returncode == status, run.stdout + run.stderr


@pytest.mark.parametrize(
    "document, command",
    parameters(lambda line: not any(test(line) for test in HAVE_TESTS)),
)
def test_a_command_that_a_document_shows_works(document, command, shown, workspace, live):
    assert not re.search(r"\b(meson|ninja) ", command), "a form of a command that builds, which has no test"
    line = command.replace("build/cuwarden run -- ./app", "cuwarden run -- ./app")
    if line.startswith("LD_PRELOAD=/path/to/libcuwarden.so "):
        simulated = f"{shimmed.SHIM}:{shimmed.DRIVER}:{shimmed.RUNTIME}"
        line = line.replace("/path/to/libcuwarden.so", f'"{simulated}"')
    if line.startswith(("cuwarden report ", "cuwarden merge ", "cuwarden export ")):
        made = shown("cuwarden run -- ./app")
        assert made.returncode == 0, made.stderr
    for node in re.findall(r"node\d\.json", line):
        assert shown(f"cuwarden run --report {node} -- ./app").returncode == 0
    if line == "cuwarden report job.json":
        assert shown("cuwarden merge cuwarden-*.json -o job.json").returncode == 0
    line = line.replace("HOST-PID", "*")
    line = line.replace("PREFIX/share/cuwarden/", f"{shimmed.SOURCE}/")
    if "PID" in line:
        process = live(shimmed.program("dying"), "wait")
        process.stdout.readline()  # the program prints it after its allocations
        line = line.replace("PID", str(process.pid))
    line = line.replace("/var/reports/", f"{workspace.work}/reports/").replace("./job", "./app")
    # A sample ends with 1 if its request is served.
    ends_with_1 = ("--fail-on-leak", "--pool on --mesh-pause 1m -- build/samples/", "SIM_FAIL")
    if "FOLDER" in line:
        line = line.replace("FOLDER", str(workspace.work))
    if "OLD NEW" in line:
        assert shown("cuwarden run --report old.json -- ./app").returncode == 0
        line = line.replace("OLD NEW", "old.json old.json")
    # A loaded machine may need longer to copy memory than the program is paused by default.
    line = line.replace("--pool on -- build/samples/", "--pool on --mesh-pause 1m -- build/samples/")
    run = shown(line)
    expected = 1 if any(part in line for part in ends_with_1) else 0
    assert run.returncode == expected, run.stdout + run.stderr
    written = re.findall(r" -o (\S+)", line)
    assert run.stdout + run.stderr or written, "a command that says nothing"
    assert [name for name in written if not (workspace.work / name).exists()] == []
