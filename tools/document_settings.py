#!/usr/bin/env python3
"""Prints docs/settings.md: every setting with its default and its meaning, out of the list of settings.

usage: document_settings.py SETTINGS_DEF >docs/settings.md
"""

import re
import sys

HEAD = """# Settings

All settings are environment variables. `cuwarden run` has an option for each of them except `CUWARDEN_ENABLED` and
`CUWARDEN_DEEPBIND`: `--mesh-pause 1s` sets `CUWARDEN_MESH_PAUSE=1s`. This page is made from `shim/support/settings.def` by
`tools/document_settings.py`.

| variable | default | meaning |
|---|---|---|
"""
FOOT = "\nIf a value is not accepted, one line on stderr says so, and the default is used.\n"
TEXT = r'"(?:\\.|[^"\\])*"'
ROW = re.compile(rf'SETTING\("(\w+)", \w+, (?:{TEXT}|\w+), "([^"]*)",\s*((?:{TEXT}\s*)+)\)')


def settings(text):
    """Returns (name, default, meaning) for each setting for users; one without a meaning is not for them."""
    rows = ROW.findall(text)
    assert len(rows) == text.count("\nSETTING("), "a row of the list cannot be read"
    joined = [(name, default, re.sub(r'"\s*"', "", meaning).strip().strip('"')) for name, default, meaning in rows]
    return [row for row in joined if row[2]]


def document(text):
    yield HEAD
    for name, default, meaning in settings(text):
        yield f"| `{name}` | {default if ' ' in default else f'`{default}`'} | {meaning} |\n"
    yield FOOT


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        sys.stdout.write("".join(document(file.read())))


if __name__ == "__main__":
    main()
