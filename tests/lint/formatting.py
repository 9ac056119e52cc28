"""Checks that clang-format would change no C, C++ or CUDA file. Skipped (exit status 77) if the version of
clang-format that the style is written for is missing, since other versions format differently.

usage: formatting.py SOURCE_ROOT
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from source_files import source_files

VERSION = 14
SUFFIXES = (".cpp", ".hpp", ".c", ".h", ".cu", ".cuh")


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
    sources = [str(path) for path in source_files(root, SUFFIXES)]
    assert sources, f"no sources below {root}"
    print(f"{len(sources)} files")
    return subprocess.run([program, "--dry-run", "--Werror", *sources]).returncode


if __name__ == "__main__":
    sys.exit(main())
