"""Traps for a library that interposes on CUDA: each has a program that a careless library would break.
Other files have the traps that concern lookups and the life of a process."""

import re
import shutil
import signal
import subprocess

import pytest

from reports import Report
from shimmed import DRIVER, PROGRAMS, RUNTIME, SHIM, SOURCE, killed_by, program

TRAPS = PROGRAMS / "traps"
STAND_IN = TRAPS / "libcuda.so.1"


def trap(name):
    return program(f"traps/{name}")


# --- a driver unlike the simulated one (only LD_LIBRARY_PATH leads to it)


@pytest.fixture
def with_stand_in(run_both, tmp_path):
    folder = tmp_path / "stand_in"
    folder.mkdir()
    shutil.copy(STAND_IN, folder)

    def run(what, *, preloaded=False):
        command = [trap("stand_in_client"), what]
        if preloaded:
            return run_both(command, preload=(folder / "libcuda.so.1",))
        return run_both(command, {"LD_LIBRARY_PATH": folder}, preload=())

    return run


@pytest.mark.parametrize("preloaded", [False, True], ids=["by_path", "preloaded"])
def test_the_driver_finds_its_own_functions_and_not_the_hooks(with_stand_in, preloaded):
    run = with_stand_in("own_lookups", preloaded=preloaded)
    lines = run.stdout.splitlines()
    assert [line for line in lines if line.startswith("its own")] == [
        f"its own, {how}: 1" for how in ("at_load", "handle", "default")
    ]
    assert lines[-1] == "the driver allocated 4 times"
    totals = run.report.totals()
    counted = {kind: (row["allocations"], row["live_bytes"]) for kind, row in totals.items()}
    # The driver's own allocations do not count as the program's, and nothing counts twice.
    assert counted == {"managed": (1, 70000), "device": (1, 1000)}
    assert run.report.calls("cuMemAlloc_v2") == 1


def test_a_call_that_the_driver_makes_through_a_hook_is_part_of_the_programs_own(with_stand_in):
    run = with_stand_in("nested_calls")
    totals = run.report.totals()
    assert {kind: row["allocations"] for kind, row in totals.items()} == {"managed": 1}
    assert run.report.calls("cuMemAlloc_v2") == 0


@pytest.mark.parametrize("way, name", [("proc_address", "cuMemAlloc"), ("name", "cuMemAlloc_v9")])
def test_a_version_that_is_not_known_is_passed_through_and_the_report_says_so(
    with_stand_in, way, name
):
    run = with_stand_in(f"newer_by_{way}")
    assert run.stdout == "allocate: 0\na known one: 0\n"
    assert [row["name"] for row in run.report["unhooked_lookups"]] == [name]
    assert run.report["coverage"]["complete"] is False
    assert any("look" in reason for reason in run.report["coverage"]["reasons"])
    assert run.report["leaks"]["bytes"] == 2000


def test_an_address_that_another_thread_gets_during_the_free_is_not_taken_from_it(with_stand_in):
    run = with_stand_in("reused_address")
    assert run.stdout == "allocate: 0\nfree: 0\nthe same address: 1\n"
    totals = run.report.totals()["device"]
    assert (totals["allocations"], totals["frees"]) == (2, 1)
    assert (totals["live_count"], totals["live_bytes"]) == (1, 2000)
    assert run.report["leaks"]["bytes"] == 2000


def test_a_plain_free_takes_an_imported_pointer(with_stand_in):
    run = with_stand_in("imported_pointer")
    totals = run.report.totals()["imported"]
    assert (totals["allocations"], totals["frees"], totals["live_count"]) == (1, 1, 0)
    assert run.report["leaks"]["count"] == 0


def test_a_plain_free_takes_stream_ordered_managed_and_graph_memory(run_both):
    run = run_both([trap("frees_of_every_kind")])
    assert run.returncode == 0, run.stderr
    totals = run.report.totals()
    account = run.last_line["totals"]
    assert sorted(account) == ["graph", "managed", "stream_ordered"]
    for kind, known in account.items():
        assert {name: totals[kind][name] for name in known} == known, kind
    assert run.report["leaks"]["count"] == 0


# --- the API name of a call that no runtime hook saw


def test_a_runtime_that_is_linked_in_gives_calls_their_names(run_both):
    run = run_both([trap("static_runtime")], preload=(DRIVER,))
    assert run.returncode == 0, run.stderr
    assert run.report.calls("cudaMalloc") == 0  # no runtime hook was called
    assert run.report.calls("cuMemAlloc_v2") == 3
    facts = run.last_line["leaked"]
    assert run.report["leaks"]["count"] == sum(fact["count"] for fact in facts)
    for fact in facts:
        # If the compiler has unrolled a loop, there are several stacks.
        groups = [group for group in run.report.leaks() if group["api"] == fact["api"]]
        assert {group["kind"] for group in groups} == {fact["kind"]}
        assert sum(group["bytes"] for group in groups) == fact["bytes"]
        for group in groups:
            lines = {name: frame["line"] for name, frame in run.report.functions(group)}
            assert lines["main"] == fact["line"]
            assert run.report.module_name(group["module"]) == "static_runtime"


# --- the loader's lock


@pytest.mark.parametrize("beside", ["alone", "beside"])
@pytest.mark.parametrize("first", ["holder", "waited_for"])
@pytest.mark.parametrize("before", ["cold", "warm"])
def test_a_thread_that_holds_the_loader_may_wait_for_one_that_uses_cuda(
    run_both, before, first, beside
):
    library = TRAPS / "libuses_cuda_when_loaded.so"
    run = run_both([trap("loader_lock"), library, before, beside], {"LOADER_LOCK_FIRST": first})
    assert not killed_by(run, signal.SIGALRM), "a deadlock"
    assert run.stdout == "open\nclosed: 0, failures: 0\n"
    totals = run.report.totals()["device"]
    assert totals["live_count"] == 0
    pairs = 2 * (8 if first == "holder" else 5) + (1 if before == "warm" else 0)
    if beside == "alone":
        assert totals["allocations"] == totals["frees"] == pairs
    else:
        assert totals["allocations"] == totals["frees"] >= pairs + 2


# --- functions that the hooked path calls


@pytest.mark.parametrize("order", ["before_the_shim", "behind_the_shim"])
def test_a_recorded_call_asks_neither_the_heap_nor_the_loader(workspace, order):
    counting = TRAPS / "libcounting_libc.so"
    bare = workspace.run([trap("counted_calls")], shim=False, preload=(counting, DRIVER, RUNTIME))
    assert bare.returncode == 0, bare.stderr
    preload = [counting, SHIM] if order == "before_the_shim" else [SHIM, counting]
    run = workspace.run(
        [trap("counted_calls")],
        {"LD_PRELOAD": ":".join(map(str, [*preload, DRIVER, RUNTIME]))},
    )
    assert run.report.totals()["device"]["frees"] == 2 * 1100
    assert int(run.stdout) == int(bare.stdout)


# --- the program's own spdlog


@pytest.mark.parametrize("level", ["off", "warn", "debug"])
def test_the_hosts_own_spdlog_logs_as_without_the_shim(run_both, level):
    run = run_both(
        [trap("host_spdlog")], {"CUWARDEN_LOG": level, "CUWARDEN_STACK_DEPTH": "deep"}
    )
    assert run.returncode == 0
    assert run.stdout.splitlines()[-1] == "host [debug] destructor, level 1"
    assert len(run.stdout.splitlines()) == 6
    # The program's lines went to its own log, at its own level.
    assert {"off": 0, "warn": 1}.get(level, len(run.said)) == len(run.said)
    assert level != "debug" or len(run.said) > 1
    assert run.report["leaks"]["bytes"] == 1000


# --- the end of the process


def test_memory_that_a_linked_librarys_destructor_frees_is_no_leak(run_both):
    run = run_both([trap("linked_destructor")])
    assert run.returncode == 0, run.stderr
    run.report.check_leaks(run.last_line["leaked"])
    totals = run.report.totals()["device"]
    account = run.last_line["totals"]["device"]
    assert {name: totals[name] for name in account} == account
    assert totals["frees"] == 1


def test_the_last_readings_are_taken_while_the_driver_still_answers(run_both):
    run = run_both([trap("linked_destructor")])
    (device,) = run.report["devices"]
    assert device["at"] == "exit"
    assert device["used_bytes"] == int(run.stdout.splitlines()[0])


def report_at_death(workspace, die_before):
    """Runs a program that is killed before call number `die_before`. Returns the run and its reports."""
    for path in workspace.reports.iterdir():
        path.unlink()
    run = workspace.run(
        [program("allocate"), "4", "6000"],
        {
            "DIE_BEFORE": die_before,
            "LD_PRELOAD": f"{SHIM}:{TRAPS / 'libdying_libc.so'}:{DRIVER}:{RUNTIME}",
        },
    )
    return run, [Report.read(path) for path in workspace.reports.glob("*.json")]


def test_whenever_the_process_dies_after_the_first_report_a_whole_one_is_there(workspace):
    without_symbols = 0
    for die_before in range(1, 400):
        run, reports = report_at_death(workspace, die_before)
        assert len(reports) == 1, f"dead before call {die_before}"
        (report,) = reports
        assert report["leaks"]["count"] == 4
        assert len(report.leaks()) > 0 and len(report.stacks) > 0
        if run.returncode == 0:
            break
        assert killed_by(run, signal.SIGKILL)
        named = [frame for frame in report["frames"] if frame["function"] is not None]
        # The report has everything but the names: each frame has its file and offset.
        assert all(frame["module"] is not None for frame in report["frames"])
        without_symbols += not named
    assert run.returncode == 0, "it never got to its end"
    assert any(frame["function"] == "main" for frame in report["frames"])
    assert without_symbols > 3  # at least at opening symbol files, the second report, and its renaming


# --- symbols of several modules


def give_another_build_id(library):
    said = subprocess.run(["readelf", "-n", library], capture_output=True, text=True, check=True)
    own = bytes.fromhex(re.search(r"Build ID: (\w+)", said.stdout)[1])
    content = library.read_bytes()
    assert content.count(own) == 1
    library.write_bytes(content.replace(own, own[::-1]))


@pytest.fixture
def two_libraries(workspace):
    """Makes two builds of one library, whose functions are at the same offsets of two modules."""
    source = SOURCE / "tests" / "end_to_end" / "programs" / "traps" / "allocating_library.cpp"
    lines = source.read_text().splitlines()
    line = next(number for number, text in enumerate(lines, 1) if "cudaMalloc(" in text)
    paths = [workspace.folder / name for name in ("one.so", "other.so")]

    def run(how, build_ids=True, **where):
        for path in paths:
            path.unlink(missing_ok=True)
            shutil.copy(TRAPS / "liballocating_library.so", path)
            if not build_ids:
                subprocess.run(
                    ["objcopy", "--remove-section=.note.gnu.build-id", path], check=True
                )
            shutil.copy(path, f"{path}.new")
        if build_ids:
            give_another_build_id(paths[1])
        return workspace.run([trap("replaced_libraries"), how, *paths], **where)

    return run, paths, line


def test_each_modules_functions_are_named_by_its_own_file(two_libraries):
    run_it, paths, line = two_libraries
    report = run_it("keep").report
    leaks = {group["bytes"]: report.functions(group) for group in report.leaks()}
    assert sorted(leaks) == [1000, 2000]
    for functions, path in zip((leaks[1000], leaks[2000]), paths):
        (deeper, inner), (_, outer), (main, program_frame) = functions[:3]
        assert (deeper, inner["line"]) == ("allocate_deeper", line)
        assert outer["function"] == "allocate_in_library"
        assert main == "main" and program_frame["file"].endswith("/replaced_libraries.cpp")
        for frame in (inner, outer):
            assert frame["file"].endswith("/allocating_library.cpp")
            assert report.modules[frame["module"]]["path"] == str(path)


def test_a_file_without_a_build_id_that_took_a_modules_name_names_nothing(two_libraries):
    run_it, paths, _ = two_libraries
    run = run_it("rename", build_ids=False)
    assert run.returncode == 0
    for path in paths:
        (reason,) = [text for text in run.report["tool"]["reasons"] if str(path) in text]
        assert "may not be the file that ran" in reason
    for group in run.report.leaks():
        functions = [name for name, _ in run.report.functions(group)]
        assert "main" in functions and "allocate_in_library" not in functions


def test_a_module_whose_file_became_a_pipe_holds_up_no_report(two_libraries):
    run_it, paths, _ = two_libraries
    bare = run_it("pipe", shim=False)
    run = run_it("pipe")
    assert not killed_by(run, signal.SIGALRM), "it waits for the pipe"
    assert (run.stdout, run.returncode) == (bare.stdout, 0)
    reasons = run.report["tool"]["reasons"]
    for path in paths:
        assert any(str(path) in reason and "could not be read" in reason for reason in reasons)
    for group in run.report.leaks():
        frames = [f for f in run.report.stack_frames(group) if not run.report.is_cuda(f)]
        assert frames[0]["function"] is None and frames[0]["module"] is not None
        assert any(frame["function"] == "main" for frame in frames)


@pytest.mark.parametrize("how, told", [("throw", "caught"), ("exit", "ended")])
def test_an_exception_or_a_threads_end_passes_through_a_hook(run_both, how, told):
    wrapper = TRAPS / "libthrowing_wrapper.so"
    run = run_both([trap("unwinding"), how], preload=(wrapper, DRIVER, RUNTIME))
    assert (run.returncode, run.stdout) == (3, f"{told}\n")
    assert run.report["leaks"]["bytes"] == 5000
