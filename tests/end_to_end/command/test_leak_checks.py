"""Leaks are compared from build to build: `diff`, baselines, and checks that fail a job."""

import re
import subprocess

import pytest

import shimmed
from shimmed import PATIENCE_S, cuwarden

APPLICATION = """{lines}
extern "C" int cudaMalloc(void**, unsigned long);
static void* volatile kept;
namespace cache {{
struct Key {{ {type} size; }};
template <class Size> __attribute__((noinline)) void insert(Size size) {{
  void* block = nullptr;
  cudaMalloc(&block, static_cast<unsigned long>(size));
  kept = block;
}}
static inline void fill(int count, Key key) {{
  for (int i = 0; i < count; ++i) insert(key.size);
  kept = nullptr;
}}
}}
__attribute__((noinline)) void remember() {{
  void* block = nullptr;
  cudaMalloc(&block, 5 << 20);
  kept = block;
}}
int main() {{
  cache::fill({count}, {{1 << 20}});
  {more}
  kept = nullptr;
}}
"""


@pytest.fixture
def build(workspace):
    """Builds the application, each time in a folder of its own; returns its path."""

    def compile(*flags, lines=0, type="int", count=3, more=""):
        folder = workspace.folder / f"build-{len(list(workspace.folder.iterdir()))}"
        folder.mkdir()
        source = folder / "application.cpp"
        source.write_text(APPLICATION.format(lines="\n" * lines, type=type, count=count, more=more))
        program = folder / "application"
        subprocess.run(
            ["c++", "-g", *flags, source, "-o", program, shimmed.RUNTIME, "-Wl,-z,lazy"], check=True
        )
        return program

    return compile


def report_of(workspace, program):
    run = workspace.run([program])
    assert run.returncode == 0, run.stderr
    return run.report


def fingerprints(report):
    return sorted({group["fingerprint"] for group in report["leak_groups"]})


def test_a_fingerprint_is_the_same_in_two_builds(workspace, build):
    """Optimisation, inlining, line numbers, sizes and the arguments of templates differ."""
    builds = [
        report_of(workspace, build("-O0")),
        report_of(workspace, build("-O2", lines=30, type="long")),
        report_of(workspace, build("-O3", "-no-pie", count=40)),
    ]
    assert len({report["leak_groups"][0]["where"] for report in builds}) == 3, "the builds are to differ"
    # A loop that the compiler has unrolled has several call stacks for one line.
    assert len({name for report in builds for name in fingerprints(report)}) == 1


def test_diff_shows_new_grown_and_gone_leaks(workspace, build):
    old = report_of(workspace, build("-O2"))
    new = report_of(workspace, build("-O2", lines=7, count=5, more="remember();"))
    grown = cuwarden(workspace, "diff", old.path, new.path)
    assert (grown.returncode, grown.stderr) == (0, "")
    assert "10.0 MiB in 6 allocations not freed, before 3.0 MiB in 3 allocations" in grown.stdout
    assert "leaks: 1 new, 1 grown\n" in grown.stdout
    added = grown.stdout.split("\nNEW\n")[1].split("\nGROWN\n")[0]
    assert "5.0 MiB in 1 allocation" in added and "remember()" in added
    assert "5.0 MiB in 5 allocations, before 3.0 MiB in 3 allocations" in grown.stdout

    back = cuwarden(workspace, "diff", "--fail-on-new", new.path, old.path)
    assert back.returncode == 0
    assert "leaks: 1 smaller, 1 gone\n" in back.stdout
    assert back.stdout.endswith("\nOK: 1 leak, none new\n")


def test_a_job_fails_only_on_what_it_asks_for(workspace, build):
    old = report_of(workspace, build("-O2"))
    new = report_of(workspace, build("-O2", more="remember();"))
    grown = report_of(workspace, build("-O2", count=4))
    for options, reports, status, line in (
        (["--fail-on-new"], (old, new), 1, "FAIL: 2 leaks, 1 new: application.cpp:18 in remember()"),
        (["--fail-on-growth"], (old, new), 0, "OK: 2 leaks, none grown"),
        (["--fail-on-growth"], (old, grown), 1, "FAIL: 1 leak, 1 grown: application.cpp:8 in "),
        (["--fail-on-new"], (old, grown), 0, "OK: 1 leak, 1 grown, none new"),
        (["--fail-on-leak"], (old, old), 1, "FAIL: 1 leak: application.cpp:8 in "),
        (["--fail-on-new", "--fail-on-growth"], (old, old), 0, "OK: 1 leak, none grown, none new"),
    ):
        done = cuwarden(workspace, "diff", *options, *(report.path for report in reports))
        assert done.returncode == status, done.stdout + done.stderr
        assert done.stdout.splitlines()[-1].startswith(line)


def test_a_baseline_keeps_what_is_known(workspace, build):
    old = report_of(workspace, build("-O0"))
    baseline = workspace.work / "leaks.txt"
    written = cuwarden(workspace, "report", "--write-baseline", baseline, old.path)
    assert written.returncode == 0
    text = baseline.read_text()
    assert text.splitlines()[1:] == [
        f"{fingerprints(old)[0]} count=3 bytes=3145728  # device cudaMalloc: cache::insert in application"
    ]
    failing = build("-O0", more="return 7;")
    options = ["--simulate", "4GiB", "--write-baseline", workspace.work / "other.txt"]
    failed = cuwarden(workspace, "run", *options, "--", failing)
    assert failed.returncode == 7
    assert failed.stderr.splitlines()[-1].startswith("cuwarden: the program ended with status 7: ")
    for part in (str(workspace.folder), "application.cpp", old["process"]["host"]):
        assert part not in text

    known = cuwarden(workspace, "report", "--baseline", baseline, "--fail-on-new", old.path)
    assert known.returncode == 0
    assert f"\n\nCOMPARED WITH {baseline}: " in known.stdout
    assert known.stdout.endswith("\nOK: 1 leak, none new\n")
    new = report_of(workspace, build("-O2", lines=3, more="remember();"))
    added = cuwarden(workspace, "report", "--baseline", baseline, "--fail-on-new", new.path)
    assert added.returncode == 1
    assert added.stdout.splitlines()[-1] == "FAIL: 2 leaks, 1 new: application.cpp:21 in remember()"


def test_run_checks_the_leaks_of_all_processes(workspace, build):
    leaking, other = build("-O2"), build("-O2", count=0, more="remember();")
    baseline = workspace.work / "leaks.txt"
    both = ["--", "/bin/sh", "-c", f"{leaking}; {other}; exit $STATUS"]

    def run(*options, status=0):
        return cuwarden(workspace, "run", "--simulate", "4GiB", *options, *both, env={"STATUS": status})

    written = run("--write-baseline", baseline)
    assert written.returncode == 0 and len(baseline.read_text().splitlines()) == 3
    known = run("--baseline", baseline, "--fail-on-new", "--fail-on-growth")
    assert known.returncode == 0
    assert known.stderr.endswith("\nOK: 2 leaks, none grown, none new\n")

    baseline.write_text("".join(baseline.read_text().splitlines(keepends=True)[:1]))
    new = run("--baseline", baseline, "--fail-on-new")
    assert new.returncode == 1
    assert "\nFAIL: 2 leaks, 2 new: " in new.stderr
    assert run("--fail-on-leak", "--error-exitcode", 77).returncode == 77
    # The program's own failure says more.
    assert run("--fail-on-leak", "--error-exitcode", 77, status=5).returncode == 5


def test_a_program_without_a_report_fails_the_check(workspace):
    done = cuwarden(workspace, "run", "--simulate", "4GiB", "--fail-on-leak", "--", "/bin/true")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("FAIL: no leaks, but leaks may be missing: ")


def test_a_report_that_is_not_wanted_leaves_the_leaks_unknown(workspace, build):
    leaking = build("-O2")
    clean = build("-O2", count=0, more="void* none = nullptr; cudaMalloc(&none, 0);")

    def check(program, *more):
        options = ["--simulate", "4GiB", "--error-exitcode", 77, *more]
        done = cuwarden(workspace, "run", *options, "--", program)
        return done.returncode, [line for line in done.stderr.splitlines() if line.startswith(("OK", "FAIL"))]

    for option in ("--report-if", "incident"), ("--report", "/dev/null"):
        status, (outcome,) = check(leaking, *option)
        assert status == 77 and outcome.startswith("FAIL: no leaks, but leaks may be missing: ")
    assert check(clean, "--report-if", "leak") == (0, ["OK: no leaks"])
    assert check(leaking, "--report-if", "leak")[0] == 77


def test_a_baseline_that_is_missing_stops_run_before_the_program(workspace):
    mark = workspace.work / "ran"
    done = cuwarden(
        workspace, "run", "--simulate", "4GiB", "--baseline", "nowhere.txt", "--", "/bin/touch", mark
    )
    assert done.returncode == 2 and not mark.exists()
    assert done.stderr.startswith("cuwarden: nowhere.txt: ") and done.stderr.count("\n") == 1


def test_two_snapshots_of_a_process_that_never_ends_are_compared(workspace):
    script = workspace.work / "server.py"
    script.write_text(
        "import ctypes, sys\n"
        "cudart = ctypes.CDLL('libcudart.so.13')\n"
        "def serve():\n"
        "    cudart.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(1 << 20))\n"
        "for line in sys.stdin:\n"
        "    serve()\n"
        "    print('served', flush=True)\n"
    )
    server = shimmed.start(
        workspace, ["/usr/bin/python3", script], stdin=subprocess.PIPE
    )

    def serve_and_look(name):
        server.stdin.write("request\n")
        server.stdin.flush()
        assert server.stdout.readline() == "served\n"
        path = workspace.work / name
        done = cuwarden(workspace, "snapshot", "-o", path, server.pid)
        assert done.returncode == 0, done.stderr
        return path

    first, second = serve_and_look("first.json"), serve_and_look("second.json")
    done = cuwarden(workspace, "diff", "--fail-on-growth", first, second)
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "FAIL: 1 leak, 1 grown: server.py:4 in serve"
    assert re.match(r"two looks at one process, with [\d.]+ m?s between them\n", done.stdout)
    server.stdin.close()
    assert server.wait(PATIENCE_S) == 0


def rules(report):
    return {rule["pattern"]: rule["count"] for rule in report["suppressions"]}


def test_suppressed_leaks_do_not_count(workspace, build):
    suppressions = workspace.work / "known.supp"
    suppressions.write_text("# Known.\nleak:^void cache::*insert\nleak:libnone.so\n")
    program = build("-O2", more="remember();")
    run = workspace.run([program], {"CUWARDEN_SUPPRESSIONS": "known.supp"})
    report = run.report
    assert run.said == []
    assert rules(report) == {"^void cache::*insert": 3, "libnone.so": 0}
    assert report["leaks"]["bytes"] == 5 << 20 and report["leaks"]["count"] == 1
    assert report["leaks"]["suppressed_bytes"] == 3 << 20
    assert {row["suppressed"] for row in report["leak_groups"] if row["bytes"] == 5 << 20} == {False}
    shown = cuwarden(workspace, "report", "--fail-on-leak", report.path)
    assert "LEAKS: 5.0 MiB in 1 allocation never freed" in shown.stdout
    assert "suppressed: 3.0 MiB\n    leak:^void cache::*insert: 3.0 MiB in 3 allocations\n" in shown.stdout
    assert "leak:libnone.so matched nothing\n" in shown.stdout
    assert shown.stdout.splitlines()[-1] == "FAIL: 1 leak: application.cpp:18 in remember()"


def test_the_lines_that_report_prints_suppress_all_leaks(workspace, build):
    report = report_of(workspace, build("-O2", more="remember();"))
    printed = cuwarden(workspace, "report", "--print-suppressions", report.path)
    lines = printed.stdout.splitlines()
    assert [line for line in lines if not line.startswith("#")] == ["leak:^cache::insert$", "leak:^remember$"]
    suppressions = workspace.work / "known.supp"
    suppressions.write_text("leak:^remember$\n")
    one = cuwarden(workspace, "report", "--suppressions", suppressions, "--fail-on-leak", report.path)
    assert one.stdout.splitlines()[-1].startswith("FAIL: 1 leak: application.cpp:8 in ")
    suppressions.write_text(printed.stdout)
    checked = cuwarden(
        workspace, "report", "--suppressions", suppressions, "--fail-on-leak", report.path
    )
    assert checked.returncode == 0
    assert "no leaks: every recorded allocation was freed or is suppressed\n" in checked.stdout
    assert checked.stdout.endswith("\nOK: no leaks\n")
    exported = cuwarden(workspace, "export", "--format", "github", "--suppressions", suppressions, report.path)
    assert (exported.returncode, exported.stdout) == (0, "")
    compared = cuwarden(workspace, "diff", "--suppressions", suppressions, report.path, report.path)
    assert compared.stdout.startswith(f"COMPARED WITH {report.path}: no leaks, before nothing\n")
    assert cuwarden(workspace, "report", "--fail-on-leak", report.path).returncode == 1


def test_names_that_are_found_later_count_for_suppressions(workspace, build):
    suppressions = workspace.work / "known.supp"
    suppressions.write_text("leak:application.cpp$\n")
    env = {"CUWARDEN_SUPPRESSIONS": suppressions, "CUWARDEN_SYMBOL_TIME": "0"}
    report = workspace.run([build("-O2")], env).report
    assert report["leaks"]["count"] == 3 and rules(report) == {"application.cpp$": 0}
    checked = cuwarden(workspace, "report", "--fail-on-leak", report.path)
    assert checked.returncode == 0
    assert "leak:application.cpp$: 3.0 MiB in 3 allocations" in checked.stdout


def test_a_killed_process_has_its_suppressions(workspace, build):
    suppressions = workspace.work / "known.supp"
    suppressions.write_text("leak:cache::insert\n")
    program = build("-O2", more="__builtin_trap();")
    options = ["--simulate", "4GiB", "--suppressions", suppressions, "--fail-on-leak"]
    done = cuwarden(workspace, "run", *options, "--report", "killed.json", "--", program)
    assert done.returncode == 128 + 4
    assert "    leak:cache::insert: 3.0 MiB in 3 allocations\n" in done.stderr
    assert done.stderr.endswith("\nOK: no leaks\n")


def test_run_tells_suppressions_that_matched_in_no_process(workspace, build):
    """The fifth process has no summary of its own, and alone matches one of the lines."""
    suppressions = workspace.work / "known.supp"
    suppressions.write_text("leak:cache::insert\nleak:libnone.so\nleak:^remember$\n")
    inserts, remembers = build("-O2"), build("-O2", count=0, more="remember();")
    options = ["--simulate", "4GiB", "--suppressions", suppressions]
    script = f"for i in 1 2 3 4; do {inserts}; done; {remembers}"
    done = cuwarden(workspace, "run", *options, "--", "sh", "-c", script)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("    leak:cache::insert: 3.0 MiB in 3 allocations\n") == 4
    assert done.stderr.endswith("\n\nsuppressions that matched nothing in 5 reports:\n    leak:libnone.so\n")
    assert "leak:^remember$" not in done.stderr and " matched nothing\n" not in done.stderr
    alone = cuwarden(workspace, "run", *options, "--", inserts)
    for pattern in ("libnone.so", "^remember$"):
        assert f"    leak:{pattern} matched nothing\n" in alone.stderr
    assert "suppressions that" not in alone.stderr


@pytest.mark.parametrize(
    "text, line, rest",
    [
        (None, "{path}: no such file or folder. No leak is suppressed.", 3),
        ("leak:\nleak:insert\n", "{path}:1: a suppression is leak:PATTERN, not 'leak:'", 0),
        ("leak:insert\nrace:f\n", "{path}:2: a suppression is leak:PATTERN, not 'race:f'", 0),
    ],
)
def test_a_wrong_file_of_suppressions_is_one_line(workspace, build, text, line, rest):
    path = workspace.work / "known.supp"
    if text is not None:
        path.write_text(text)
    program = build("-O2")
    run = workspace.run([program], {"CUWARDEN_SUPPRESSIONS": path})
    assert run.returncode == 0
    assert line.format(path=path) in run.said_about(str(path))
    assert run.report["leaks"]["count"] == rest
    for arguments in (("run", "--simulate", "4GiB", "--suppressions", path, "--", program),
                      ("report", "--suppressions", path, run.report.path)):  # fmt: skip
        done = cuwarden(workspace, *arguments)
        assert done.returncode == 2 and done.stdout == ""
        assert done.stderr.startswith(f"cuwarden: {path}:") and done.stderr.count("\n") == 1
