"""Checks that a source file of more than 400 lines is listed below with a reason; others are split.

usage: file_length.py SOURCE_ROOT
"""

import sys
from pathlib import Path

from source_files import source_files

LIMIT = 400
SUFFIXES = (".cpp", ".hpp", ".c", ".h", ".cu", ".cuh", ".S", ".py", ".def")

# file -> the reason why it is not split
REASONS = {
    "tests/unit/reporters/growth/make_histories.py": "one data set, by an author who did not know the rule under test",
}


def main():
    root = Path(sys.argv[1])
    lengths = {
        path.relative_to(root).as_posix(): path.read_text().count("\n")
        for path in source_files(root, SUFFIXES)
    }
    assert lengths, f"no sources below {root}"
    complaints = [
        f"{name}: {lines} lines and no reason"
        for name, lines in lengths.items()
        if lines > LIMIT and name not in REASONS
    ] + [
        f"{name}: a reason, and {lengths.get(name, 0)} lines"
        for name in REASONS
        if lengths.get(name, 0) <= LIMIT
    ]
    print("\n".join(complaints))
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
