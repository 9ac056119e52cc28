"""Each file of tests in Python has a test of Meson's that runs it.

usage: test_files_run.py SOURCE_ROOT
"""

import re
import sys
import tempfile
from pathlib import Path

# Folders whose build file has a Meson test for each file of tests in the folder or a room of it.
FOLDERS = ("tests/end_to_end", "tests/gpu")


def complaints_about(root):
    found = []
    for folder in FOLDERS:
        listed = set(re.findall(r"'(\w+)'", (root / folder / "meson.build").read_text()))
        for path in sorted((root / folder).rglob("test_*.py")):
            if path.stem.removeprefix("test_") not in listed:
                found.append(f"{path.relative_to(root)}: no test in {folder}/meson.build runs it")
    return found


def check_the_check():
    """Fails unless a file is found that no test runs, and only that one."""
    with tempfile.TemporaryDirectory() as top:
        for folder in FOLDERS:
            room = Path(top) / folder / "room"
            room.mkdir(parents=True)
            (room.parent / "meson.build").write_text("names = ['listed']\n")
            (room / "test_listed.py").touch()
        assert complaints_about(Path(top)) == [], "a listed file passes"
        (room / "test_forgotten.py").touch()
        assert len(complaints_about(Path(top))) == 1, "a file that is not listed does not pass"


def main():
    check_the_check()
    complaints = complaints_about(Path(sys.argv[1]))
    print("\n".join(complaints))
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
