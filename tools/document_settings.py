#!/usr/bin/env python3
"""Prints docs/settings.md: every setting with its default, made from the list of settings.

usage: document_settings.py SETTINGS_DEF >docs/settings.md
"""

import ast
import re
import sys

HEAD = """# Settings

All settings are environment variables. `cuwarden run` has an option for most of them: `--mesh-pause 1s` sets
`CUWARDEN_MESH_PAUSE=1s`. [Words](words.md) explains terms such as ledger and slab. This page is made from
`runtime_hooks/core/settings/settings.def` by `tools/document_settings.py`.

| variable | default | option | meaning |
|---|---|---|---|
"""
TAIL = """
If a value is not accepted, one line on stderr says so, and the default is used.
"""

TEXT = r'"(?:\\.|[^"\\])*"(?:\s+"(?:\\.|[^"\\])*")*'
ROW = re.compile(r"^SETTING\((\w+), (\w+),\s+(" + ",\\s+".join([TEXT] * 7) + r")\)$", re.MULTILINE)


def rows_of(text):
    """Yields the seven texts of each SETTING in the text of settings.def.

    These are: variable, default, default in words, option, value, help and meaning.
    """
    for row in ROW.finditer(text):
        yield ast.literal_eval(f"[{row[3]}]")


def document(text):
    """Yields the parts of the Markdown page about the settings. `text` is the text of settings.def."""
    yield HEAD
    for variable, default, in_words, option, _, _, meaning in rows_of(text):
        shown = f"`{default}`" if default else in_words
        yield f"| `{variable}` | {shown} | {f'`{option}`' if option else '–'} | {meaning} |\n"
    yield TAIL


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        text = file.read()
    assert len(list(rows_of(text))) == len(re.findall(r"^SETTING\(", text, re.MULTILINE)), "a row of another form"
    sys.stdout.write("".join(document(text)))


if __name__ == "__main__":
    main()
