"""Checks that paths are opened only by the functions of runtime_hooks/core/files/open_file.hpp. They never
wait, and they never get a descriptor with the number of a standard stream.

usage: opened_by_open_file.py SOURCE_ROOT
"""

import re
import sys
from pathlib import Path

from source_files import product_sources

FOLDERS = ("shim", "runtime_hooks", "reporters", "tools/cuwarden")
OPENER = "runtime_hooks/core/files/open_file.hpp"

# file -> the reason why it may open paths by itself
REASONS = {
    "runtime_hooks/core/files/standard_numbers.hpp": "stand-in descriptors must get the streams' numbers",
    "shim/process/own_system_calls.hpp": "numbers that filters are asked about; nothing is opened",
    "reporters/files/given_file.cpp": "the command's own pipes count, and the kinds of files have names",
    "tools/cuwarden/ledgers/ledger_search.cpp": "opendir() waits for nothing, and opens folders alone",
    "tools/cuwarden/ledgers/running_processes.cpp": "opendir() of folders of /proc",
    "tools/cuwarden/program/child_process.cpp": "the terminal, which is no regular file",
    "tools/cuwarden/output/command_output.cpp": "stand-in descriptors that stay until the command ends",
    "tools/cuwarden/output/whole_file.cpp": "a named pipe, whose reader is waited for as a shell does",
    "tools/cuwarden/verbs/temporary_file.cpp": "new files, and what killed runs left of them",
}

# Matches calls that open a path, and constructors of streams. Members such as `reader.open(` and
# `Reader::open(` are cuwarden's own functions; `::open(` is libc's.
OPENS = re.compile(
    r"(?<![\w.>:])(?:::)?(?:open|open64|openat|openat64|openat2|creat|fopen|fopen64|freopen|opendir"
    r"|mkstemp|mkostemp|tmpfile|shm_open)\s*\((?!\s*\)|\s*const|\s*std::)"
    r"|\b(?:basic_)?[io]?fstream\b(?!>)|SYS_open(?:at)?2?\b|SYS_creat\b"
)
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
DECLARES = re.compile(r"^\s*(?:static |bool |void |\w[\w:<>]* )open\(")


def opens_in(path):
    text = COMMENT.sub(lambda match: "\n" * match[0].count("\n"), path.read_text())
    for number, line in enumerate(text.splitlines(), 1):
        if OPENS.search(line) and not DECLARES.match(line):
            yield number, line.strip()


def main():
    root = Path(sys.argv[1])
    sources = product_sources(root, FOLDERS)
    found = {path.relative_to(root).as_posix(): list(opens_in(path)) for path in sources}
    complaints = [
        f"{name}:{number}: opens by itself what {OPENER} is for: {line}"
        for name, lines in found.items()
        if name != OPENER and name not in REASONS
        for number, line in lines
    ] + [f"{name}: a reason, and it opens nothing" for name in REASONS if not found.get(name)]
    if not found.get(OPENER):
        complaints.append(f"{OPENER} opens nothing")
    print(f"{len(sources)} files")
    print("\n".join(complaints))
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
