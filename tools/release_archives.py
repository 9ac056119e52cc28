"""Packs the files that `meson install` installs into two archives: one to use, and one with the debug
files. The bytes of the archives depend on the installed files and the commit's time only.

usage: release_archives.py BUILD OUTPUT_FOLDER [--quick]

With --quick, xz compresses with its least effort.
"""

import json
import lzma
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent
# Debian's packages of the libraries that are inside the products. GCC's has the texts for libstdc++,
# libgcc and libbacktrace.
LIBRARIES = {
    "spdlog": "libspdlog-dev",
    "zlib": "zlib1g-dev",
    "fmt": "libfmt-dev",
    "nlohmann-json": "nlohmann-json3-dev",
    "CLI11": "libcli11-dev",
    "gcc-runtime-and-libbacktrace": "libstdc++-{gcc}-dev",
}
GPL = Path("/usr/share/common-licenses/GPL-3")  # GCC's runtime exception is an addition to it


def stop(message):
    print(f"release: {message}", file=sys.stderr)
    sys.exit(1)


def output_of(*command):
    """Returns the standard output of a command; ends the program with a message if the command fails."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        stop(f"{' '.join(map(str, command))} failed: {done.stderr.strip()}")
    return done.stdout


def introspect(build, what):
    return json.loads(output_of("meson", "introspect", build, what))


def commit_time():
    """Returns the time of all files in the archives, in seconds since 1970.

    This is SOURCE_DATE_EPOCH, or the time of the last commit.
    """
    if os.environ.get("SOURCE_DATE_EPOCH"):
        return int(os.environ["SOURCE_DATE_EPOCH"])
    said = subprocess.run(
        ["git", "-C", SOURCE, "log", "-1", "--format=%ct"], capture_output=True, text=True
    )
    if said.returncode != 0:
        stop(f"no commit gives the files' time; set SOURCE_DATE_EPOCH ({said.stderr.strip()})")
    return int(said.stdout)


def installed(build, stage):
    """Installs the build into the folder `stage`; returns the installed files by their paths in the archive.

    The archive has bin, lib, include and share at its top, wherever the build's prefix has them.
    """
    output_of("meson", "install", "-C", build, "--no-rebuild", "--quiet", "--destdir", stage)
    options = {option["name"]: option["value"] for option in introspect(build, "--buildoptions")}
    prefix = stage / options["prefix"].lstrip("/")
    tops = {options["bindir"]: "bin", options["libdir"]: "lib",
            options["includedir"]: "include", options["datadir"]: "share"}  # fmt: skip
    files = {}
    for path in sorted(prefix.rglob("*")):
        if path.is_dir():
            continue
        name = path.relative_to(prefix).as_posix()
        top = next((top for top in tops if name.startswith(top + "/")), None)
        if top is None:
            stop(f"{name}: installed outside of bin, lib, include and share")
        files[tops[top] + name.removeprefix(top)] = path
    return files


def licences():
    """Returns the texts of licences by their paths in the archive."""
    gcc_version = output_of("gcc", "-dumpversion").strip().partition(".")[0]
    files = {"LICENSE": SOURCE / "LICENSE", "GPL-3": GPL}
    for library, package in LIBRARIES.items():
        files[library] = Path("/usr/share/doc") / package.format(gcc=gcc_version) / "copyright"
    for file in files.values():
        if not file.exists():
            stop(f"{file} is missing: a release is made on Debian, whose packages have the licences")
    return {f"share/doc/cuwarden/licences/{name}": file for name, file in files.items()}


def without_debug_information(files):
    """Strips the simulated GPU's libraries; the shim and the command are stripped when they are built."""
    for name, path in files.items():
        if "/simulated_gpu/" in name and not path.is_symlink():
            output_of("strip", "--strip-debug", path)


def pack(archive, top, files, time, preset):
    """Writes a .tar.xz archive and prints its size.

    `top` is the folder in the archive that contains all files. `files` has the files on disk by their paths
    below it. `time` is the time of each entry, in seconds since 1970. `preset` is xz's effort, 0 to 9.
    """
    with lzma.open(archive, "wb", preset=preset) as packed, tarfile.open(
        fileobj=packed, mode="w", format=tarfile.GNU_FORMAT
    ) as tar:
        for name in sorted(files):
            path = files[name]
            entry = tarfile.TarInfo(f"{top}/{name}")
            entry.mtime = time
            if path.is_symlink():
                entry.type, entry.linkname = tarfile.SYMTYPE, os.readlink(path)
                tar.addfile(entry)
                continue
            entry.size = path.stat().st_size
            entry.mode = 0o755 if path.stat().st_mode & 0o100 else 0o644
            with path.open("rb") as content:
                tar.addfile(entry, content)
    print(f"{archive}  {archive.stat().st_size / 1e6:.1f} MB")


def main():
    build, output = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    quick = "--quick" in sys.argv[3:]
    version = introspect(build, "--projectinfo")["version"]
    top = f"cuwarden-{version}-x86_64-linux"
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="cuwarden-release-") as stage:
        files = installed(build, Path(stage))
        without_debug_information(files)
        debug = {name: path for name, path in files.items() if name.endswith(".debug")}
        usable = {name: path for name, path in files.items() if name not in debug}
        usable |= licences()
        usable["README.md"] = SOURCE / "README.md"
        usable["INSTALL"] = SOURCE / "tools" / "release_install.txt"
        pack(output / f"{top}.tar.xz", top, usable, commit_time(), preset=0 if quick else 6)
        # Higher presets take four times as long and save a fifteenth.
        pack(output / f"{top}-debug.tar.xz", top, debug, commit_time(), preset=0 if quick else 1)


if __name__ == "__main__":
    main()
