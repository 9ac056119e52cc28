"""The archives that tools/release makes work in a root of the oldest Debian that can be had.

The root has glibc and a shell only: no CUDA Toolkit, no C++ runtime, no rights and no network.
"""

import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import jsonschema
import pytest

import bare_root

SOURCE = Path(os.environ["RELEASE_SOURCE"])
BUILD = Path(os.environ["RELEASE_BUILD"])
SAMPLE = "share/cuwarden/samples/lost_on_throw"
LEAKED = 10 << 20


def packed(folder, umask=0o22):
    done = subprocess.run(
        [SOURCE / "tools" / "release", "--build", BUILD, "--quick", folder],
        capture_output=True, text=True, umask=umask,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    debug, usable = sorted(folder.iterdir())
    assert debug.name.endswith("-x86_64-linux-debug.tar.xz"), debug
    assert usable.name.endswith("-x86_64-linux.tar.xz"), usable
    return usable, debug


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    return packed(tmp_path_factory.mktemp("archives"))


def unpacked(archive, folder):
    with tarfile.open(archive) as tar:
        tar.extractall(folder)
    (top,) = folder.iterdir()
    assert top.name == archive.name.removesuffix(".tar.xz").removesuffix("-debug")
    return top


@pytest.fixture
def root(archives, tmp_path):
    """Returns a copy of the bare root with the archive unpacked in /opt/cuwarden."""
    made = bare_root.make(BUILD / "tests" / "release" / "bare")
    copy = tmp_path / "root"
    shutil.copytree(made, copy, symlinks=True)
    for folder in (tmp_path, *tmp_path.parents[:2]):  # pytest makes them for this user only
        folder.chmod(folder.stat().st_mode | 0o111)
    unpacked(archives[0], copy / "opt").rename(copy / "opt" / "cuwarden")
    return copy


def leak_in(report, root):
    """Returns the bytes and the functions (outermost last) of the report's only leak."""
    schema = json.loads((root / "opt/cuwarden/share/cuwarden/report.schema.json").read_text())
    data = json.loads(report.read_text())
    jsonschema.validate(data, schema)
    (leak,) = data["leak_groups"]
    stack = next(stack for stack in data["stacks"] if stack["id"] == leak["stack"])
    frames = {frame["id"]: frame["function"] for frame in data["frames"]}
    return leak["bytes"], [frames[frame] for frame in stack["frames"]]


def test_the_command_reports_a_leak_in_a_bare_root(root):
    done = bare_root.run(
        root, f"/opt/cuwarden/bin/cuwarden run --simulate 4GiB --report r.json -- /opt/cuwarden/{SAMPLE}"
    )
    assert done.returncode == 0, done.stderr
    assert "LEAKS: 10.0 MiB in 10 allocations" in done.stderr
    leaked, functions = leak_in(root / "tmp" / "r.json", root)
    assert leaked == LEAKED
    assert any(function and function.startswith("process_batch") for function in functions)


def test_the_shim_alone_reports_a_leak_in_a_bare_root(root):
    settings = {
        "LD_PRELOAD": "/opt/cuwarden/lib/libcuwarden.so",
        "LD_LIBRARY_PATH": "/opt/cuwarden/lib/cuwarden/simulated_gpu",
        "CUWARDEN_SIM_MEMORY": "4GiB",
        "CUWARDEN_REPORT": "/tmp/alone.json",
    }
    assignments = " ".join(f"{name}={value}" for name, value in settings.items())
    done = bare_root.run(root, f"{assignments} /opt/cuwarden/{SAMPLE}")
    assert done.returncode == 0, done.stderr
    assert leak_in(root / "tmp" / "alone.json", root)[0] == LEAKED


def test_the_other_verbs_work_in_a_bare_root(root):
    made = bare_root.run(
        root, f"/opt/cuwarden/bin/cuwarden run --simulate 4GiB --report r.json -- /opt/cuwarden/{SAMPLE}"
    )
    assert made.returncode == 0, made.stderr
    doctor = bare_root.run(root, "/opt/cuwarden/bin/cuwarden doctor")
    assert "/opt/cuwarden/lib/libcuwarden.so loads" in doctor.stdout
    report = bare_root.run(root, "/opt/cuwarden/bin/cuwarden report --fail-on-leak r.json")
    assert report.returncode == 1, report.stderr
    assert "process_batch" in report.stdout
    top = bare_root.run(root, "/opt/cuwarden/bin/cuwarden top --once")
    assert top.returncode == 0, top.stderr


def test_an_exception_is_caught_in_a_bare_root(root):
    """The unwinder finds the handler by the list of loaded objects; older glibcs have no faster way."""
    (root / "tmp" / "no_report.json").write_text('{"schema": [')
    for arguments in ("report no_report.json", "run --no-such-option"):
        done = bare_root.run(root, f"/opt/cuwarden/bin/cuwarden {arguments}")
        assert done.returncode == 2, done.stderr
        assert done.stderr.startswith("cuwarden: ") and len(done.stderr.splitlines()) == 1


def test_the_debug_files_belong_to_the_products(archives, tmp_path):
    """The debug archive, unpacked over the other one, puts its files where a debugger looks for them."""
    top = unpacked(archives[0], tmp_path)
    unpacked(archives[1], tmp_path)
    for product in (top / "bin" / "cuwarden", top / "lib" / "libcuwarden.so"):
        subprocess.run(
            [sys.executable, SOURCE / "tests" / "lint" / "shared_object.py", "stripped",
             product, f"{product}.debug", "with_lines"],
            check=True,
        )  # fmt: skip


def test_the_archive_has_the_licences_of_what_is_inside(archives, tmp_path):
    top = unpacked(archives[0], tmp_path)
    for name, text in {
        "LICENSE": "Apache License",
        "gcc-runtime-and-libbacktrace": "GCC RUNTIME LIBRARY EXCEPTION",
        "GPL-3": "GNU GENERAL PUBLIC LICENSE",
        "spdlog": "Gabi Melman",
        "fmt": "Victor Zverovich",
        "zlib": "Jean-loup Gailly",
        "nlohmann-json": "Niels Lohmann",
        "CLI11": "University of Cincinnati",
    }.items():
        assert text in (top / "share/doc/cuwarden/licences" / name).read_text(), name


def test_the_suppressions_of_the_archive_are_read_without_complaint(root):
    supp = "/opt/cuwarden/share/cuwarden/suppressions/cuda-libraries.supp"
    done = bare_root.run(
        root,
        f"/opt/cuwarden/bin/cuwarden run --simulate 4GiB --report r.json --suppressions {supp}"
        f" -- /opt/cuwarden/{SAMPLE}",
    )
    assert done.returncode == 0, done.stderr
    assert "a suppression is" not in done.stderr and "no suppressions" not in done.stderr
    assert "leak:^cublasCreate_v2$ matched nothing" in done.stderr
    patterns = [rule["pattern"] for rule in json.loads((root / "tmp/r.json").read_text())["suppressions"]]
    assert "^ncclCommInitRank$" in patterns


def test_the_python_helper_of_the_archive_runs_a_script(archives, tmp_path):
    top = unpacked(archives[0], tmp_path / "archive")
    script = tmp_path / "script.py"
    script.write_text("import sys; print(sys.argv[1])")
    done = subprocess.run(
        [sys.executable, "-m", "cuwarden", script, "it ran"],
        env={**os.environ, "PYTHONPATH": top / "share" / "cuwarden" / "python"},
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.stdout == "it ran\n", done.stderr


def test_an_archive_says_nothing_of_the_machine_that_made_it(archives):
    for archive in archives:
        with tarfile.open(archive) as tar:
            entries = tar.getmembers()
        assert [entry.name for entry in entries] == sorted(entry.name for entry in entries)
        assert {(entry.uid, entry.gid, entry.uname, entry.gname) for entry in entries} == {
            (0, 0, "", "")
        }
        assert len({entry.mtime for entry in entries}) == 1


def test_one_build_gives_the_same_bytes_again(archives, tmp_path):
    again = packed(tmp_path, umask=0o77)
    for first, second in zip(archives, again):
        assert first.read_bytes() == second.read_bytes(), first.name
