#!/usr/bin/env python3
"""Writes the verdicts of verdicts.def, with their meanings, into the JSON Schema of the report.

usage: write_verdicts.py reporters/verdicts/verdicts.def reporters/report.schema.json

The rest of the schema stays as it is, byte for byte.
"""

import json
import re
import sys
from pathlib import Path

ROW = re.compile(r'^VERDICT\((\w+), \w+, \w+, \w+, ("(?:\\.|[^"\\])*")\)$', re.MULTILINE)
# The list of values of the field `verdict`: its head, its rows and its end.
VALUES = re.compile(r'(^ *"verdict": \{\n *"description": "[^\n]*",\n *"anyOf": \[\n)(.*?)(^ *\])', re.MULTILINE | re.DOTALL)


def verdicts_in(text):
    """Returns the name and the meaning of each row in the text of verdicts.def, in the order of rows."""
    rows = [(name, json.loads(meaning)) for name, meaning in ROW.findall(text)]
    assert len(rows) == len(re.findall(r"^VERDICT\(", text, re.MULTILINE)), "a row of another form"
    return rows


def with_verdicts(schema, verdicts):
    """Returns the text of the schema, in which the field `verdict` of incidents has these values."""
    (found,) = VALUES.finditer(schema)
    head, _, end = found.groups()
    indent = " " * (len(end) - len("]") + 2)
    values = [json.dumps({"const": name, "description": meaning}, ensure_ascii=False) for name, meaning in verdicts]
    rows = ",\n".join(indent + value for value in values) + "\n"
    return schema[: found.start()] + head + rows + end + schema[found.end() :]


def main():
    verdicts, schema = (Path(path) for path in sys.argv[1:])
    text = with_verdicts(schema.read_text(encoding="utf-8"), verdicts_in(verdicts.read_text(encoding="utf-8")))
    schema.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
