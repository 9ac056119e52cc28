"""Each file of tests in Python has a test of Meson's that runs it. Each source of the page is listed
in its build file, so that a change of it makes the page anew.

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
    build = (root / "page" / "meson.build").read_text()
    for path in sorted((root / "page" / "src").iterdir()):
        if f"'src/{path.name}'" not in build:
            found.append(f"{path.relative_to(root)}: not among the sources in page/meson.build")
    return found


def check_the_check():
    """Fails unless a file is found that no test runs, or that the page's build lacks, and only those."""
    with tempfile.TemporaryDirectory() as top:
        for folder in FOLDERS:
            room = Path(top) / folder / "room"
            room.mkdir(parents=True)
            (room.parent / "meson.build").write_text("names = ['listed']\n")
            (room / "test_listed.py").touch()
        page = Path(top) / "page"
        (page / "src").mkdir(parents=True)
        (page / "src" / "listed.ts").touch()
        (page / "meson.build").write_text("sources = files('src/listed.ts')\n")
        assert complaints_about(Path(top)) == [], "a listed file passes"
        (page / "src" / "forgotten.ts").touch()
        assert len(complaints_about(Path(top))) == 1, "a source that is not listed does not pass"
        (page / "src" / "forgotten.ts").unlink()
        (room / "test_forgotten.py").touch()
        assert len(complaints_about(Path(top))) == 1, "a file that is not listed does not pass"


def main():
    check_the_check()
    complaints = complaints_about(Path(sys.argv[1]))
    print("\n".join(complaints))
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
