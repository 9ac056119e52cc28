"""Checks that a function of the product with more than 100 lines is listed below with a reason; others are split.

usage: function_length.py SOURCE_ROOT
"""

import re
import sys
from pathlib import Path

from source_files import source_files

LIMIT = 100
SUFFIXES = (".cpp", ".hpp", ".c", ".h")
NOT_PRODUCT = ("tests/", "samples/")

# file -> the reason why its long function is not split
REASONS = {
    "runtime_hooks/stacks/unwinder.cpp": "Unwinder::walk() keeps the state of a walk in registers",
}

NO_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', re.DOTALL
)
SCOPE = re.compile(r"^\s*(?:template\s*<[^{}]*>\s*)?(?:inline\s+)?(?:namespace|extern|class|struct|union|enum)\b")


def code_of(text):
    """Returns the text without comments and literals; the line numbers stay."""
    return NO_CODE.sub(lambda found: "\n" * found[0].count("\n"), text)


def functions_in(text):
    """Yields the head and the number of lines of each function. A function in a function counts as a part of it."""
    code = re.sub(r"^ *#.*(?:\\\n.*)*$", lambda found: "\n" * found[0].count("\n"), code_of(text), flags=re.M)
    head_at, outer, opened = 0, None, []
    for at, character in enumerate(code):
        if character == "{":
            head = code[head_at:at]
            opened.append((at, head))
            if outer is None and not SCOPE.match(head) and "(" in head:
                outer = len(opened)
        elif character == "}":
            start, head = opened.pop()
            if outer == len(opened) + 1:
                outer = None
                yield " ".join(head.split()), code.count("\n", start, at) + 1
        if character in "{};":
            head_at = at + 1
    assert not opened, "braces do not match"


def main():
    root = Path(sys.argv[1])
    longest = {}
    for path in source_files(root, SUFFIXES):
        name = path.relative_to(root).as_posix()
        if name.startswith(NOT_PRODUCT):
            continue
        functions = sorted(functions_in(path.read_text()), key=lambda function: -function[1])
        if functions:
            longest[name] = functions[0]
    assert longest, f"no functions below {root}"
    complaints = [
        f"{name}: {lines} lines and no reason: {head}"
        for name, (head, lines) in longest.items()
        if lines > LIMIT and name not in REASONS
    ] + [
        f"{name}: a reason, and no function of more than {LIMIT} lines"
        for name in REASONS
        if longest.get(name, ("", 0))[1] <= LIMIT
    ]
    print("\n".join(complaints))
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
