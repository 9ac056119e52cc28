"""Checks that clang-format would change no C++ file. Skipped (exit status 77) if the version of
clang-format that the style is written for is missing, since other versions format differently.

usage: formatting.py SOURCE_ROOT
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

VERSION = 14
FOLDERS = ("glibc_floor", "shim", "runtime_hooks", "reporters", "tools", "samples", "tests")


def clang_format():
    for name in (f"clang-format-{VERSION}", "clang-format"):
        program = shutil.which(name)
        if program is None:
            continue
        said = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
        if re.search(rf"version {VERSION}\.", said):
            return program
    return None


def main():
    root = Path(sys.argv[1])
    program = clang_format()
    if program is None:
        print(f"no clang-format {VERSION}")
        return 77
    sources = [
        str(path)
        for folder in FOLDERS
        for path in sorted((root / folder).rglob("*"))
        if path.suffix in (".cpp", ".hpp", ".c", ".h")
    ]
    assert sources, f"no sources below {root}"
    print(f"{len(sources)} files")
    return subprocess.run([program, "--dry-run", "--Werror", *sources]).returncode


if __name__ == "__main__":
    sys.exit(main())
