"""Each way to look up a driver function leads to the hooks. Lookups of other functions are not changed."""

import shutil

import pytest

from shimmed import BUILD, DRIVER, PROGRAMS, RUNTIME, SHIM, program

WAYS = [
    "dlsym",
    "default",
    "next",
    "runtime_dlsym",
    "runtime_dlvsym",
    "absolute_path",
    "deepbind",
    "proc_address_4",
    "proc_address_4_from_4",
    "proc_address_5",
    "proc_address_5_null_status",
    "proc_address_5_from_5",
    "per_thread",
    "entry_point",
    "entry_point_by_version",
]

NO_CUDA = ()


@pytest.fixture
def library_path(tmp_path):
    """A folder with the simulated driver and runtime, for LD_LIBRARY_PATH instead of a preload."""
    folder = tmp_path / "cuda"
    folder.mkdir()
    shutil.copy(DRIVER, folder / "libcuda.so.1")
    shutil.copy(RUNTIME, folder / "libcudart.so.13")
    return folder


@pytest.mark.parametrize("loaded", ["preloaded", "by_path"])
@pytest.mark.parametrize("way", WAYS)
def test_an_allocation_is_recorded_whatever_way_led_to_it(run_both, library_path, way, loaded):
    command = [program("ways"), way]
    if way in ("absolute_path", "deepbind"):
        command.append(library_path / "libcuda.so.1" if loaded == "by_path" else DRIVER)
    if loaded == "preloaded":
        run = run_both(command)
    else:
        run = run_both(command, {"LD_LIBRARY_PATH": library_path}, preload=NO_CUDA)
    assert run.returncode == 0, run.stdout
    assert run.said == []
    run.report.check_leaks(run.last_line["leaked"])
    assert run.report["coverage"]["complete"] is True
    assert run.report["unhooked_lookups"] == []


def test_a_driver_in_a_namespace_of_its_own_is_not_covered_and_the_report_says_so(
    run_both, library_path
):
    run = run_both(
        [program("ways"), "dlmopen", library_path / "libcuda.so.1"],
        {"LD_LIBRARY_PATH": library_path},
        preload=NO_CUDA,
    )
    assert run.returncode == 0, run.stdout
    assert run.report["coverage"]["complete"] is False
    assert run.report["coverage"]["reasons"]


def test_linked_symbols_are_recorded_where_the_libraries_are_found_by_path(run_both, library_path):
    run = run_both(
        [program("allocate"), "5", "3000"], {"LD_LIBRARY_PATH": library_path}, preload=NO_CUDA
    )
    run.report.check_leaks(run.last_line["leaked"])


def test_a_client_that_resolves_the_driver_as_static_cudart_does_is_recorded(run_both):
    client = BUILD / "tests" / "contract" / "static_cudart_client"
    assert client.exists(), "built by tests/contract"
    run = run_both([client])
    assert run.returncode == 0, run.stderr
    totals = run.report.totals()
    assert sum(total["allocations"] for total in totals.values()) > 0
    assert run.report["coverage"]["complete"] is True


def test_the_per_thread_default_streams_entries_are_hooked(run_both):
    run = run_both([program("per_thread_stream")])
    assert run.returncode == 0, run.stderr
    account = run.last_line["totals"]["stream_ordered"]
    totals = run.report.totals()["stream_ordered"]
    assert {name: totals[name] for name in account} == account
    run.report.check_leaks(run.last_line["leaked"])


@pytest.mark.parametrize("setting, recorded", [(None, 1), ("drop", 1), ("keep", 0)])
def test_deepbind_is_dropped_so_that_the_hooks_are_seen_unless_told_to_keep_it(
    run_both, setting, recorded
):
    run = run_both(
        [program("deepbound"), PROGRAMS / "libdeepbound_library.so"],
        {"CUWARDEN_DEEPBIND": setting},
    )
    assert run.stdout == "result 0\n"
    totals = run.report.totals().get("device", {"live_count": 0})
    assert totals["live_count"] == recorded


def test_a_function_that_is_not_hooked_is_the_drivers_own(run_both):
    run = run_both([program("names"), "unhooked"])
    assert "cuDriverGetVersion: libcuda.so.1\n" in run.stdout
    assert "cuNoSuchFunction: null\n" in run.stdout


def test_names_that_only_look_like_cudas_are_left_alone(run_both):
    run = run_both([program("names"), "lookalikes", PROGRAMS / "liblookalike_library.so"])
    assert [line.split(": ")[1] for line in run.stdout.splitlines()] == [
        str(number) for number in range(101, 107)
    ]


@pytest.mark.parametrize("enabled", ["1", "0"])
def test_the_hooks_are_not_found_where_no_driver_is_in_the_process(run_both, enabled):
    run = run_both([program("names"), "absent"], {"CUWARDEN_ENABLED": enabled}, preload=NO_CUDA)
    assert run.stdout.count(": null") == 6
    assert run.stdout.endswith("an error: yes\n")
    assert run.reports == []


def test_a_lookup_that_depends_on_its_caller_still_sees_its_caller(run_both):
    run = run_both([program("names"), "next", PROGRAMS / "libnext_library.so"], preload=NO_CUDA)
    assert run.stdout == "next of the library: 2\nnext of a versioned name: 2\ndefault: 1\n"


def test_a_librarys_runpath_still_counts_when_it_calls_dlopen(run_both, tmp_path):
    (tmp_path / "private").mkdir()
    shutil.copy(PROGRAMS / "librunpath_library.so", tmp_path)
    shutil.copy(PROGRAMS / "libprivate_part.so", tmp_path / "private")
    run = run_both(
        [program("names"), "runpath", tmp_path / "librunpath_library.so"], preload=NO_CUDA
    )
    assert run.stdout == "from here: not found\nthrough the library's RUNPATH: 42\n"


def test_dlvsym_still_tells_versions_apart(run_both):
    run = run_both([program("names"), "versions"], preload=NO_CUDA)
    assert "two versions of memcpy: yes" in run.stdout
    assert "an absent version: null" in run.stdout


@pytest.mark.parametrize("loaded", ["preloaded", "by_path"])
@pytest.mark.parametrize("order", ["own_first", "other_first"])
def test_each_library_reaches_the_runtime_that_it_was_linked_with(
    run_both, library_path, loaded, order
):
    own = PROGRAMS / "libuses_own_cudart.so"
    other = PROGRAMS / "libuses_other_cudart.so"
    command = [program("two_cudarts"), own, other, PROGRAMS / "libcudart.so.12"]
    if order == "other_first":
        command[1:3] = [other, own]
    if loaded == "preloaded":
        run = run_both(command)
    else:
        run = run_both(command, {"LD_LIBRARY_PATH": library_path}, preload=NO_CUDA)
    counted = run.stdout.splitlines()[-1]
    # The other runtime counts its calls: they are its own library's, including the two of its pair.
    assert counted.endswith(": 6" if order == "own_first" else ": 4"), run.stdout
    totals = run.report.totals()["device"]
    mib = 1 << 20
    assert (totals["allocations"], totals["frees"], totals["live_count"]) == (7, 2, 5)
    assert totals["live_bytes"] == (2 * 1 + 3 * 2) * mib
    assert totals["failures"] == 1
    assert {group["api"] for group in run.report.leaks()} == {"cudaMalloc"}


def test_code_of_no_module_reaches_the_runtime_however_much_of_it_there_is(run_both):
    run = run_both([program("generated_code"), "2000"])
    assert run.stdout == "4000 calls worked\n"
    totals = run.report.totals()["device"]
    assert (totals["allocations"], totals["frees"]) == (4000, 4000)


def test_threads_that_race_for_the_first_call_are_all_recorded(run_both):
    for _ in range(5):
        run = run_both([program("racing_threads")])
        facts = run.last_line
        assert facts["failed"] == 0
        totals = run.report.totals()["device"]
        assert totals["live_count"] == facts["count"]
        assert totals["live_bytes"] == facts["bytes"]


@pytest.mark.parametrize("wrapped", ["runtime", "driver"])
@pytest.mark.parametrize("order", ["before_the_shim", "behind_the_shim"])
@pytest.mark.parametrize("enabled", ["1", "0"])
def test_another_preloaded_wrapper_works_as_without_the_shim(workspace, wrapped, order, enabled):
    wrapper = PROGRAMS / f"libwrapping_{wrapped}.so"
    command = [program("wrapped_calls"), wrapped]
    bare = workspace.run(command, shim=False, preload=(wrapper, DRIVER, RUNTIME))
    preload = [wrapper, SHIM] if order == "before_the_shim" else [SHIM, wrapper]
    preload = ":".join(map(str, [*preload, DRIVER, RUNTIME]))
    run = workspace.run(command, {"LD_PRELOAD": preload, "CUWARDEN_ENABLED": enabled})
    assert (run.stdout, run.returncode) == (bare.stdout, 0)
    assert run.said == []
    assert len(run.reports) == int(enabled)
    if enabled == "1":
        assert run.report["leaks"]["bytes"] == (0 if wrapped == "runtime" else 1000)


@pytest.mark.parametrize(
    "order",
    ["before_the_shim", "twice_before_the_shim", "behind_the_shim", "twice_behind_the_shim"],
)
@pytest.mark.parametrize("enabled", ["1", "0"])
def test_a_wrapper_that_asks_for_the_next_function_is_never_led_back_to_itself(
    workspace, tmp_path, order, enabled
):
    wrapper = PROGRAMS / "libcounting_driver.so"
    wrappers = [wrapper]
    if order.startswith("twice"):
        wrappers.append(shutil.copy(wrapper, tmp_path / "libanother.so"))
    command = [program("frees_in_child")]
    bare = workspace.run(command, shim=False, preload=(*wrappers, DRIVER))
    preload = [*wrappers, SHIM] if order.endswith("before_the_shim") else [SHIM, *wrappers]
    preload = ":".join(map(str, [*preload, DRIVER]))
    run = workspace.run(command, {"LD_PRELOAD": preload, "CUWARDEN_ENABLED": enabled})
    assert (run.stdout, run.returncode) == (bare.stdout, 0)
    assert "the child's status: 0" in run.stdout
    if enabled == "1":
        totals = run.report.totals()["device"]
        assert (totals["allocations"], totals["frees"]) == (2, 2)


def test_a_runtime_that_is_opened_after_the_first_driver_call_is_reached(run_both, library_path):
    run = run_both([program("late_runtime")], {"LD_LIBRARY_PATH": library_path}, preload=NO_CUDA)
    assert run.stdout.endswith("cudaMalloc: 0\n")
    assert run.report.totals()["device"]["allocations"] == 1


def test_a_library_finds_cuda_once_an_extension_that_needs_both_is_opened(run_both, library_path):
    helper, extension = PROGRAMS / "libasking_helper.so", PROGRAMS / "libasking_extension.so"
    script = (
        f"import ctypes; helper = ctypes.CDLL('{helper}'); print(helper.finds_cuda());"
        f"ctypes.CDLL('{extension}'); print(helper.finds_cuda())"
    )
    command = [shutil.which("python3", path="/usr/bin"), "-c", script]
    run = run_both(command, {"LD_LIBRARY_PATH": library_path}, preload=NO_CUDA)
    assert run.stdout == "0\n1\n"


# The libraries that a program opens, and if its requests then reach the wrapper.
OPENED = {
    "local:wrapper_asks_next": True,
    "global:CUDA local:wrapper_asks_next": False,
    "global:CUDA local:wrapper_asks_default": False,
    "global:wrapper_asks_next": True,
}


@pytest.mark.parametrize("opened", OPENED)
@pytest.mark.parametrize("wrapped", ["runtime", "driver"])
def test_a_wrapper_that_is_opened_by_dlopen_works_as_without_the_shim(
    run_both, library_path, wrapped, opened
):
    cuda = {"runtime": "libcudart.so.13", "driver": "libcuda.so.1"}[wrapped]
    free = {"runtime": "cudaFree", "driver": "cuMemFree_v2"}[wrapped]

    def path(library):
        how, name = library.split(":")
        return f"{how}:{cuda if name == 'CUDA' else PROGRAMS / f'lib{name}_{wrapped}.so'}"

    command = [program("opened_wrapper"), free, *map(path, opened.split())]
    # run_both compares the outputs, which show each call of the wrapper.
    run = run_both(command, {"LD_LIBRARY_PATH": library_path}, preload=NO_CUDA)
    assert run.returncode == 0, run.stdout
    assert run.said == []
    assert ("the wrapper allocates" in run.stdout.splitlines()[:2]) == OPENED[opened]
    # A driver call is recorded before the wrapper, a runtime call in the driver calls behind it.
    in_front = wrapped == "driver" or not OPENED[opened]
    recorded = run.stdout.count("taken" if in_front else "the wrapper allocates")
    assert run.report.totals()["device"]["allocations"] == recorded


def test_a_driver_that_the_program_unloads_stays_good_for_the_report(run_both, library_path):
    run = run_both(
        [program("unloading"), "driver", library_path / "libcuda.so.1"],
        {"LD_LIBRARY_PATH": library_path},
        preload=NO_CUDA,
    )
    assert run.returncode == 0
    assert "allocate 0" in run.stdout
    assert run.report["leaks"]["bytes"] == 1000


def test_a_runtime_that_goes_with_its_plugin_is_not_called_again(run_both, library_path):
    run = run_both(
        [program("unloading"), "plugin", PROGRAMS / "libuses_own_cudart.so"],
        {"LD_LIBRARY_PATH": library_path},
        preload=NO_CUDA,
    )
    assert run.returncode == 0
    assert "allocate and free 0" in run.stdout
    assert run.report.totals()["device"]["frees"] >= 1
