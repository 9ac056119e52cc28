"""Checks that each NOLINT names checks that .clang-tidy enables, and gives a reason behind a colon.

Skipped (exit status 77) without clang-tidy 14, which knows the names.

usage: suppressions.py SOURCE_ROOT
"""

import re
import subprocess
import sys
from pathlib import Path

from clang_tidy import VERSION, clang_tidy
from source_files import source_files

SUPPRESSION = re.compile(r"NOLINT(NEXTLINE|BEGIN|END)?\b(?:\(([^)]*)\))?(.*)")


def main():
    root = Path(sys.argv[1])
    program = clang_tidy()
    if program is None:
        print(f"no clang-tidy {VERSION}")
        return 77
    listed = subprocess.run(
        [program, "--list-checks", f"--config-file={root / '.clang-tidy'}"],
        capture_output=True, text=True, check=True,
    ).stdout
    enabled = set(listed.split()[2:])
    assert "bugprone-use-after-move" in enabled, listed
    complaints, count = [], 0
    for path in source_files(root, (".cpp", ".hpp", ".c", ".h", ".cu", ".cuh")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if (found := SUPPRESSION.search(line)) is None:
                continue
            count += 1
            where = f"{path.relative_to(root).as_posix()}:{number}"
            checks = [check.strip() for check in (found[2] or "").split(",")]
            complaints += [
                f"{where}: NOLINT names «{check}», which .clang-tidy does not enable"
                for check in checks
                if check not in enabled
            ]
            if found[1] != "END" and not re.match(r":\s*\w", found[3]):
                complaints.append(f"{where}: NOLINT gives no reason")
    print("\n".join(complaints))
    print(f"{count} suppressions")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
