"""Checks that names of files, types, functions and variables use the project's words.

A word of the list stands as a part of a name: `ledger_place`, `PlaceOf` and `places_` have it, `replace` does not.

usage: names.py SOURCE_ROOT
"""

import io
import re
import sys
import tokenize
from pathlib import Path

FOLDERS = ("glibc_floor", "include", "shim", "runtime_hooks", "reporters", "tools", "samples", "tests")
SUFFIXES = (".cpp", ".hpp", ".c", ".h", ".cu", ".cuh", ".def", ".py")
# part of a name -> the project's word for it
WORDS = {
    "lane": "shard",
    "cell": "shard",
    "period": "epoch, interval",
    "trouble": "failure, incident",
    "news": "message, notice",
    "place": "location, offset, slot, current context, pc",
    "family": "hook",
    "families": "hook",
}
NO_ROLES = ("utils", "util", "helper", "helpers", "manager", "common")  # names of files that say no role
# Names that others gave, and the words for which "in place" stands.
ALLOWED = re.compile(r"in_place|inplace|NOREPLACE|(?:takes|took)_the_place", re.IGNORECASE)
NOT_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/|"""(?:.|\n)*?"""|"(?:\\.|[^"\\\n])*"|(?m:^\s*#(?!define|include)[^\n]*$)', re.DOTALL
)


def parts(name):
    return [part.lower() for part in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", ALLOWED.sub("", name))]


def wrong_parts(name):
    for part in parts(name):
        word = part if part in WORDS else part.removesuffix("s")
        if word in WORDS:
            yield part, WORDS[word]


def names_in(path):
    text = path.read_text()
    if path.suffix == ".py":
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.NAME:
                yield token.start[0], token.string
        return
    code = NOT_CODE.sub(lambda match: "\n" * match[0].count("\n"), text)
    for number, line in enumerate(code.splitlines(), 1):
        for name in re.findall(r"[A-Za-z_]\w*", line):
            yield number, name


def main():
    root = Path(sys.argv[1])
    complaints, names = {}, 0
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            where = path.relative_to(root).as_posix()
            if "__pycache__" in where:
                continue
            for part, instead in wrong_parts(path.stem):
                complaints[f"{where}: the file's name has «{part}»: say {instead}"] = True
            if path.stem in NO_ROLES:
                complaints[f"{where}: the file's name says no role"] = True
            if path.suffix not in SUFFIXES or not path.is_file():
                continue
            for number, name in names_in(path):
                names += 1
                for part, instead in wrong_parts(name):
                    complaints[f"{where}:{number}: {name} has «{part}»: say {instead}"] = True
    assert names > 100_000, f"too few names below {root}: {names}"
    print("\n".join(complaints))
    print(f"{len(complaints)} complaints about {names} names")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
