"""With bad paths, full disks, missing drivers or wrong arguments, a program behaves as without the shim."""

import resource
import shutil
import sys

import pytest

from shimmed import DRIVER, RUNTIME, can_mount, program

ALLOCATE = [program("allocate"), "4", "6000"]


# --- paths of reports


@pytest.mark.parametrize("path", ["file/report.json", "file/deeper/report.json"])
def test_a_report_path_that_cannot_be_written_is_a_line_and_the_ledger_stays(workspace, path):
    (workspace.folder / "file").write_text("not a folder")
    target = workspace.folder / path
    run = workspace.run_both(ALLOCATE, {"CUWARDEN_REPORT": target})
    assert len(run.said) == 1
    assert str(target) in run.said[0] or str(workspace.folder / "file") in run.said[0]
    assert run.reports == []
    assert len(run.ledgers) == 1
    assert (workspace.folder / "file").read_text() == "not a folder"


def test_a_report_path_that_is_a_folder_means_the_default_name_in_it(workspace):
    target = workspace.reports / "folder.json"
    target.mkdir()
    run = workspace.run_both(ALLOCATE, {"CUWARDEN_REPORT": target})
    assert run.report.path.parent == target
    assert run.report.path.name.startswith("cuwarden-allocate-")


@pytest.mark.parametrize("dangling", [False, True])
def test_a_report_is_never_written_through_a_symbolic_link(workspace, dangling):
    precious = workspace.folder / "precious"
    if not dangling:
        precious.write_text("precious")
    link = workspace.reports / "link.json"
    link.symlink_to(precious)
    run = workspace.run(ALLOCATE, {"CUWARDEN_REPORT": link})
    assert run.returncode == 0
    assert link.is_symlink()
    assert precious.exists() is not dangling
    if not dangling:
        assert precious.read_text() == "precious"
    assert sorted(p.name for p in workspace.reports.iterdir()) == ["link.1.json", "link.json"]
    assert not (workspace.reports / "link.1.json").is_symlink()


def test_an_existing_file_is_never_overwritten(workspace):
    target = workspace.reports / "report.json"
    target.write_text("mine")
    (workspace.reports / "report.1.json").write_text("mine too")
    run = workspace.run(ALLOCATE, {"CUWARDEN_REPORT": target})
    assert run.report.path.name == "report.2.json"
    assert target.read_text() == "mine"
    assert (workspace.reports / "report.1.json").read_text() == "mine too"


@pytest.mark.skipif(not can_mount(), reason="a small file system needs the right to mount one")
def test_a_full_disk_is_a_line_and_the_ledger_stays(workspace):
    full = workspace.folder / "full"
    full.mkdir()
    script = (
        f"mount -t tmpfs -o size=64k none {full} && "
        f"head -c 65536 /dev/zero > {full}/filler && exec {' '.join(ALLOCATE)}"
    )
    run = workspace.run_both(
        ["unshare", "-m", "/bin/sh", "-c", script], {"CUWARDEN_REPORT": full / "report.json"}
    )
    assert run.returncode == 0
    assert len(run.said) == 1 and str(full) in run.said[0]
    assert len(run.ledgers) == 1


@pytest.mark.skipif(not can_mount(), reason="a small file system needs the right to mount one")
def test_a_full_disk_under_the_ledger_loses_nothing(workspace):
    full = workspace.folder / "full"
    full.mkdir()
    script = (
        f"mount -t tmpfs -o size=64k none {full} && "
        f"head -c 65536 /dev/zero > {full}/filler && exec {' '.join(ALLOCATE)}"
    )
    run = workspace.run_both(
        ["unshare", "-m", "/bin/sh", "-c", script], {"CUWARDEN_LEDGER_DIR": full}
    )
    run.report.check_leaks(run.last_line["leaked"])


@pytest.mark.parametrize("limit", [0, 4096, 1 << 20])
def test_a_limit_on_file_sizes_never_kills_the_program(workspace, limit):
    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    run = workspace.run_both(ALLOCATE, preexec_fn=limited)
    assert run.returncode == 0
    if not run.reports:
        run.said_about(str(workspace.reports))
    for report in run.reports:
        report.check_leaks(run.last_line["leaked"])


# --- missing parts


@pytest.mark.parametrize("preload", [(), (DRIVER, RUNTIME)], ids=["no_libraries", "libraries"])
@pytest.mark.parametrize(
    "command",
    [["/bin/true"], ["/bin/sh", "-c", "exit 3"], [sys.executable, "-c", "print('hello')"]],
    ids=["true", "sh", "python"],
)
def test_a_process_without_cuda_calls_leaves_no_trace(workspace, command, preload):
    run = workspace.run_both(command, {"CUWARDEN_LEDGER_DIR": None}, preload=preload)
    assert run.said == [] and run.reports == []
    assert list(workspace.reports.iterdir()) == [] and list(workspace.work.iterdir()) == []


def test_without_a_driver_a_program_gets_the_same_errors(workspace, tmp_path):
    alone = tmp_path / "alone"
    alone.mkdir()
    shutil.copy(RUNTIME, alone / "libcudart.so.13")
    # The program is linked with the driver, too, so a fake driver would change the answer.
    run = workspace.run_both(
        [sys.executable, "-c", WITHOUT_DRIVER], preload=(alone / "libcudart.so.13",)
    )
    assert run.returncode == 4
    assert "cudaMalloc: 0" not in run.stdout


WITHOUT_DRIVER = """
import ctypes, sys
rt = ctypes.CDLL("libcudart.so.13")
p, n = ctypes.c_void_p(), ctypes.c_int()
print("cudaMalloc:", rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(4096)))
print("cudaGetDeviceCount:", rt.cudaGetDeviceCount(ctypes.byref(n)), n.value)
print("cudaFree:", rt.cudaFree(None))
try:
    ctypes.CDLL("libcuda.so.1")
except OSError:
    print("no driver")
sys.exit(4)
"""


@pytest.mark.parametrize("version, text", [("12000", "12.0"), ("12040", "12.4"), ("14020", "14.2")])
def test_a_driver_older_or_newer_than_the_headers_is_recorded(run_both, version, text):
    run = run_both(ALLOCATE, {"CUWARDEN_SIM_DRIVER_VERSION": version})
    if run.returncode == 0:
        run.report.check_leaks(run.last_line["leaked"])
        assert run.report["process"]["cuda_driver_version"] == text
    assert run.said == []


def test_without_a_device_a_program_gets_the_same_errors(run_both):
    run = run_both(ALLOCATE, {"CUWARDEN_SIM_DEVICES": "0"})
    assert run.returncode == 3
    assert run.said == []
    assert all(report["leaks"]["count"] == 0 for report in run.reports)


# --- wrong arguments


@pytest.mark.parametrize("what", ["frees", "sizes"])
def test_wrong_frees_and_sizes_get_the_drivers_own_answers(run_both, what):
    run = run_both([program("answers"), what])
    assert run.returncode == 0
    assert run.said == []
    totals = run.report.totals()
    for kind, account in run.last_line["totals"].items():
        assert {name: totals[kind][name] for name in account} == account
    assert run.report["leaks"]["count"] == 0, run.report.describe_leaks()


@pytest.mark.parametrize(
    "function, code", [("cuMemAlloc_v2", 2), ("cuMemAlloc_v2", 700), ("cuMemFree_v2", 716)]
)
def test_an_error_of_the_driver_reaches_the_program_and_changes_no_count(run_both, function, code):
    env = {"CUWARDEN_SIM_FAIL": f"{function}:1:{code}", "CUWARDEN_POOL": "off"}
    run = run_both([program("answers"), "frees"], env)
    for report in run.reports:
        for kind, total in report.totals().items():
            assert total["allocations"] - total["frees"] == total["live_count"], kind


REFUSED_FREES = """
import ctypes
rt = ctypes.CDLL("libcudart.so.13")
pointers = [ctypes.c_void_p() for _ in range(4)]
for p in pointers:
    assert rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(1000)) == 0
print([rt.cudaFree(p) for p in pointers])
"""


def test_a_free_that_the_driver_refuses_leaves_the_allocation_live(run_both):
    run = run_both([sys.executable, "-c", REFUSED_FREES], {"CUWARDEN_SIM_FAIL": "cuMemFree_v2:2:700"})
    assert run.stdout == "[0, 700, 0, 0]\n"
    totals = run.report.totals()["device"]
    assert (totals["allocations"], totals["frees"]) == (4, 3)
    assert (totals["live_count"], totals["live_bytes"]) == (1, 1000)
