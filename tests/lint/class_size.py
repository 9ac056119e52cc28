"""Checks that a class has at most 25 public functions: with more it has several roles, and is to be split.

usage: class_size.py SOURCE_ROOT
"""

import re
import sys
from pathlib import Path

from source_files import source_files

LIMIT = 25
SUFFIXES = (".cpp", ".hpp", ".h", ".cu", ".cuh")
HEAD = re.compile(r"\b(class|struct)\s+(?:alignas\([^)]*\)\s*)?(?:\[\[\w+\]\]\s*)?(\w[\w:]*)[^;{}()=]*\{")


def without_comments_and_texts(text):
    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\])\'', "", text, flags=re.DOTALL)


def end_of(text, start):
    """Returns the index behind the brace that closes the brace at `start`."""
    depth = 0
    for at in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return at + 1
    return len(text)


def own_text(body):
    """Returns the class's own declarations: the contents of function definitions and nested types become `{}`."""
    text, at = "", 0
    while at < len(body):
        if body[at] == "{":
            text, at = text + "{};", end_of(body, at)
        else:
            text, at = text + body[at], at + 1
    return text


def public_functions(kind, body):
    names, is_public = [], kind == "struct"
    for statement in re.split(r"[;]", own_text(body)):
        for access in re.findall(r"\b(public|protected|private)\s*:(?!:)", statement):
            is_public = access == "public"
        statement = re.sub(r"\b(public|protected|private)\s*:(?!:)", "", statement)
        found = re.search(r"(~?\w+|operator\s*[^\s(]+|operator\(\))\s*\(", statement)
        if is_public and found and not re.search(r"\b(using|typedef|friend|static_assert)\b", statement):
            before = statement[: found.start()]
            if "=" not in before and "{" not in before:
                names.append(found[1])
    return names


def classes_in(text):
    for head in HEAD.finditer(text):
        start = head.end() - 1
        if not re.search(r"\benum\s+$", text[: head.start()]):
            yield head[1], head[2], text[start + 1 : end_of(text, start) - 1]


def main():
    root = Path(sys.argv[1])
    sizes = [
        (len(public_functions(kind, body)), path.relative_to(root).as_posix(), name)
        for path in source_files(root, SUFFIXES)
        for kind, name, body in classes_in(without_comments_and_texts(path.read_text()))
    ]
    assert sizes, f"no classes below {root}"
    print(f"{len(sizes)} classes")
    for size, path, name in sorted(sizes, reverse=True)[:3]:
        print(f"{path}: {name} has {size} public functions")
    return 1 if max(sizes)[0] > LIMIT else 0


if __name__ == "__main__":
    sys.exit(main())
