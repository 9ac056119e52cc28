"""Checks that text reaches a terminal only through functions that remove control characters from it.

usage: terminal_text.py SOURCE_ROOT
"""

import re
import sys
from pathlib import Path

from source_files import product_sources

FOLDERS = ("tools/cuwarden", "reporters", "runtime_hooks", "shim")

# Matches the ways to write to standard output or standard error.
WAYS = re.compile(
    r"\bstd::(?:cout|cerr|clog|print|println|puts|printf|fputs|perror)\b"
    r"|\b(?:printf|fprintf|vfprintf|puts|fputs|fputc|putchar|fwrite|perror|psignal|dprintf|vdprintf)"
    r"\s*\("
    r"|(?<![\w.>])(?:write|writev)\s*\(\s*(?:fd|descriptor|answer|\w+\[\d\]|\w+_FILENO|\d)\s*,"
    r"|\bOutput>?\s*\(\s*(?:STD(?:OUT|ERR)_FILENO|[12])\b"
)
# file -> the reason why it may use them
MAY_WRITE = {
    "tools/cuwarden/output/command_output.cpp": "the functions themselves",
    "tools/cuwarden/verbs/doctor_verb.cpp": "a pipe to itself",
    "tools/cuwarden/ledgers/acting_as.cpp": "a pipe to itself",
    "tools/cuwarden/program/child_process.cpp": "a pipe to itself",
    "tools/cuwarden/output/progress.cpp": "controls of the terminal, and a line that passed printable()",
    "tools/cuwarden/output/terminal.cpp": "controls of the terminal, of its own",
    "tools/cuwarden/top/once.cpp": "JSON, which escapes all controls",
    "tools/cuwarden/verbs/export_verb.cpp": "lines of JSON, which escapes all controls",
    "tools/cuwarden/verbs/merge_verb.cpp": "JSON, which escapes all controls",
    "tools/cuwarden/verbs/redact_reports.cpp": "a report in JSON, which escapes all controls",
    "tools/cuwarden/verbs/snapshot_verb.cpp": "a report in JSON, which escapes all controls",
    "shim/support/message_output.cpp": "the log itself, which passes lines through printable()",
}

# Matches calls of print(), which lets line feeds pass. A line with a foreign name in it must go through
# print_line().
MANY_LINES = re.compile(r"(?<![\w.>:])print\s*\(\s*STD(?:OUT|ERR)_FILENO\b|(?<![\w.>:])print\s*\(")
MAY_PRINT_LINES = {
    "tools/cuwarden/output/command_output.cpp": "the function itself",
    "tools/cuwarden/output/command_output.hpp": "the function itself",
    "tools/cuwarden/verbs/doctor_verb.cpp": "lines that line() has made",
    "tools/cuwarden/main.cpp": "help",
    "tools/cuwarden/reports/leak_checks.cpp": "the text of a comparison and a baseline, of printable names",
    "tools/cuwarden/verbs/diff_verb.cpp": "patterns of suppressions, which are made printable",
    "tools/cuwarden/verbs/export_verb.cpp": "leaks in a format of lines, of printable names",
    "tools/cuwarden/verbs/merge_verb.cpp": "patterns of suppressions, which are made printable",
    "tools/cuwarden/verbs/report_verb.cpp": "the text of a report",
    "tools/cuwarden/verbs/run_verb.cpp": "the text of a report",
    "tools/cuwarden/verbs/snapshot_verb.cpp": "the text of a report",
    "tools/cuwarden/top/once.cpp": "the view",
}


def without_comments(text):
    return re.sub(r"//[^\n]*", "", text)


def main():
    root = Path(sys.argv[1])
    sources = product_sources(root, FOLDERS)
    complaints, used = [], set()
    for path in sources:
        name = path.relative_to(root).as_posix()
        for number, line in enumerate(without_comments(path.read_text()).splitlines(), 1):
            for way, reasons in ((WAYS, MAY_WRITE), (MANY_LINES, MAY_PRINT_LINES)):
                if not (found := way.search(line)):
                    continue
                used.add((id(reasons), name))
                if name not in reasons:
                    complaints.append(f"{name}:{number}: {found[0].strip()} goes round print_line()")
    for reasons in (MAY_WRITE, MAY_PRINT_LINES):
        complaints += [
            f"{name}: a reason, and no use of it"
            for name in reasons
            if (id(reasons), name) not in used
        ]
    print(f"{len(sources)} files")
    print("\n".join(complaints))
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
