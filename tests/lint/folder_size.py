"""Checks that a folder has at most 25 sources: with more it holds several roles, and needs folders inside
it.

usage: folder_size.py SOURCE_ROOT
"""

import sys
import tempfile
from collections import Counter
from pathlib import Path

from source_files import source_files

LIMIT = 25
SUFFIXES = (".cpp", ".hpp", ".c", ".h", ".S", ".def", ".cu", ".cuh", ".py", ".ts", ".mjs")


def sources_by_folder(root):
    """Returns the number of sources that lie directly in each folder."""
    return Counter(
        path.parent.relative_to(root).as_posix()
        for path in source_files(root, SUFFIXES)
    )


def complaints_about(root):
    return [
        f"{folder}: {count} sources, at most {LIMIT}: give it rooms, each with a role"
        for folder, count in sorted(sources_by_folder(root).items())
        if count > LIMIT
    ]


def check_the_check():
    """Fails unless the check finds a folder with one source too many, and only that folder."""
    with tempfile.TemporaryDirectory() as folder:
        crowded = Path(folder) / "shim" / "crowded"
        (crowded / "room").mkdir(parents=True)
        for number in range(LIMIT):
            (crowded / f"source_{number}.cpp").touch()
        for name in ("meson.build", "room/source.cpp"):
            (crowded / name).touch()
        assert complaints_about(Path(folder)) == [], "a folder at the limit passes"
        (crowded / "one_more.hpp").touch()
        assert len(complaints_about(Path(folder))) == 1, "a folder above the limit does not pass"


def main():
    check_the_check()
    root = Path(sys.argv[1])
    sizes = sources_by_folder(root)
    assert sizes, f"no sources below {root}"
    print(f"{len(sizes)} folders")
    for folder, count in sizes.most_common(3):
        print(f"{folder} has {count} sources")
    complaints = complaints_about(root)
    print("\n".join(complaints))
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
