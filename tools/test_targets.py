#!/usr/bin/env python3
"""Prints the build targets that the tests of some suites need, one a line, as ninja names them. With
them, a build folder need not be built as a whole.

usage: test_targets.py FOLDER --suite NAME [--suite NAME...]
"""

import json
import subprocess
import sys
from pathlib import Path


def introspect(what, folder):
    """Returns a fact about the build folder as Meson tells it. `what` is an option such as "--tests"."""
    done = subprocess.run(
        ["meson", "introspect", what, folder], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def main():
    folder = Path(sys.argv[1]).resolve()
    suites = {name for flag, name in zip(sys.argv[2:], sys.argv[3:]) if flag == "--suite"}
    made_by = {}
    for target in introspect("--targets", folder):
        made_by[target["id"]] = target["filename"]
    made = {path for paths in made_by.values() for path in paths}
    needed = set()
    for test in introspect("--tests", folder):
        if not suites & {name.split(":")[-1] for name in test["suite"]}:
            continue
        needed.update(part for part in test["cmd"] if part in made)
        for target in test["depends"]:
            needed.update(made_by.get(target, []))
    print("\n".join(sorted(str(Path(path).relative_to(folder)) for path in needed)))


if __name__ == "__main__":
    main()
