"""Runs clang-tidy on one part of the project's own translation units, with the checks of .clang-tidy.

A unit that passed is not checked again until it changes: the unit, its command, a header of the project
that it includes, .clang-tidy or clang-tidy itself. Tests are left out. Without TIDY_ALL in the
environment the checks of Clang's analyzer are left out, too, which take as long as all others. So are
the samples and the simulated GPU, which no user's process loads.

Skipped (exit status 77) without clang-tidy 14, since other versions have other checks.

usage: clang_tidy.py SOURCE_ROOT BUILD PART PARTS
"""

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

VERSION = 14
NOT_CHECKED = ["tests"] + ([] if os.environ.get("TIDY_ALL") else ["samples", "tools/simulated_gpu"])
DEAR = "clang-analyzer-*"

INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)
# Meson's includes of the sources that are compiled together, in a file that it generates.
TOGETHER = re.compile(rb"^#include<([^>\n]+\.(?:cpp|c))>$", re.MULTILINE)


def clang_tidy():
    for name in (f"clang-tidy-{VERSION}", "clang-tidy"):
        program = shutil.which(name)
        if program is None:
            continue
        said = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
        if re.search(rf"version {VERSION}\.", said):
            return program
    return None


def units_of(root, build):
    """Yields (file, sources, command) for each unit of the project, in the order of the build: the file
    that is compiled, and the sources in it. A unit is left out if all of its sources have come before."""
    seen = set()
    for entry in json.loads((build / "compile_commands.json").read_text()):
        file = Path(os.path.normpath(Path(entry["directory"]) / entry["file"]))
        if file.suffix not in (".cpp", ".c"):
            continue
        sources = [file]
        if file.is_relative_to(build):
            together = TOGETHER.findall(file.read_bytes()) if "-unity" in file.name else []
            sources = [Path(os.path.normpath(name.decode())) for name in together]
        # Other files that the build generates are no sources of the project.
        sources = [
            source
            for source in sources
            if source.is_relative_to(root)
            and not source.is_relative_to(build)
            and not any(source.is_relative_to(root / folder) for folder in NOT_CHECKED)
        ]
        if seen.issuperset(sources):
            continue
        seen.update(sources)
        yield file, sources, entry["command"]


class Contents:
    """The files of the project that a unit is made of, each read once."""

    def __init__(self, build):
        self.build = build
        self.read = {}

    def of(self, path):
        """Returns the digest of a file and the names that it includes; None if there is no such file."""
        if path not in self.read:
            text = path.read_bytes() if path.is_file() else None
            self.read[path] = None if text is None else (hashlib.sha256(text).digest(), INCLUDE.findall(text))
        return self.read[path]

    def digest_of(self, sources, command):
        folders = [
            Path(os.path.normpath(self.build / word[2:]))
            for word in shlex.split(command)
            if word.startswith("-I")
        ]
        whole = hashlib.sha256(command.encode())
        reached, to_read = set(sources), list(sources)
        while to_read:
            path = to_read.pop()
            digest, names = self.of(path)
            whole.update(digest)
            for name in names:
                for folder in [path.parent, *folders]:
                    header = Path(os.path.normpath(folder / name.decode()))
                    if header in reached:
                        break
                    if self.of(header) is not None:
                        reached.add(header)
                        to_read.append(header)
                        break
        return whole


def main():
    root, build = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    part, parts = int(sys.argv[3]), int(sys.argv[4])
    program = clang_tidy()
    if program is None:
        print(f"no clang-tidy {VERSION}")
        return 77
    left_out = [] if os.environ.get("TIDY_ALL") else [f"-{DEAR}"]
    passed = build / "clang-tidy-passed"
    passed.mkdir(exist_ok=True)
    # The largest unit is in the first part, so that it does not begin last.
    units = sorted(units_of(root, build), key=lambda unit: -sum(source.stat().st_size for source in unit[1]))
    units = units[part - 1 :: parts]
    assert units, f"no units in {build}/compile_commands.json"
    contents, checked, failed = Contents(build), 0, 0
    rules = (root / ".clang-tidy").read_bytes() + Path(program).resolve().as_posix().encode()
    for file, sources, command in units:
        key = contents.digest_of(sources, command)
        # A unit of several sources includes .cpp files, which this check reports.
        unwanted = left_out + ([] if sources == [file] else ["-bugprone-suspicious-include"])
        checks = [f"--checks={','.join(unwanted)}"] if unwanted else []
        key.update(rules + " ".join(checks).encode())
        name = os.path.relpath(file, root)
        stamp = passed / name.replace("/", "!")
        if stamp.is_file() and stamp.read_text() == key.hexdigest():
            continue
        checked += 1
        print(name, flush=True)
        done = subprocess.run(
            [program, "--quiet", "-p", build, *checks, file], capture_output=True, text=True
        )
        if done.returncode == 0:
            stamp.write_text(key.hexdigest())
        else:
            failed += 1
            print(done.stdout, done.stderr, flush=True)
    print(f"{len(units)} units, {checked} of them new or changed, {failed} with findings")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
