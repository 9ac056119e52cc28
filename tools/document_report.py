#!/usr/bin/env python3
"""Prints docs/report.md or docs/merged-report.md: every table and field, made from the JSON Schema.

usage: document_report.py reporters/report.schema.json >docs/report.md
       document_report.py reporters/merged.schema.json >docs/merged-report.md
"""

import json
import sys

# The head of the page of each schema, by the name of the format.
HEADS = {}
HEADS["cuwarden.report/1"] = """# Fields of the report

A report is one JSON object. [Words](words.md) explains terms such as ledger, incident, rung, slab and verdict. This page is
made from `reporters/report.schema.json` by `tools/document_report.py`.

- Units are in names: `_bytes`, `_ns`. Times are nanoseconds since `process.start`.
- Addresses are strings in hexadecimal. No number exceeds 2^53.
- Tables are arrays of flat objects, which refer to each other by id. `stack`, and each id in a list `stacks` of a row, is the id of a row of the table `stacks`. The `frames` of
  that row are ids of rows of `frames`, and their `module` is the id of a row of `modules`.
- An incident is the entry for the requests of one call stack, function, kind of memory and device that were refused for lack of
  memory. Its row describes the first one, and counts the others. Rows of `rungs`, `incident_holders` and `incident_facts` have the
  number of their incident in `incident`.
- Unknown is null, never 0.
- A later version may add tables and fields. Those that are here keep their meaning.
"""

HEADS["cuwarden.merged/1"] = """# Fields of the merged report

`cuwarden merge` writes many reports as one JSON object: a merged report. It has the facts that
`cuwarden report FOLDER` prints, as data. [Words](words.md) explains terms such as incident and verdict, and
[commands](commands.md#merge) describes the command. This page is made from `reporters/merged.schema.json` by `tools/document_report.py`.

- Units are in names: `_bytes`, `_ns`. Times are texts in UTC (ISO 8601), by the clock of the host. No number exceeds 2^53.
- Tables are arrays of flat objects, which refer to each other by id. `process` is the id of a row of `processes`, and
  `device` that of a row of `devices`. `leak` and `stack` are ids of rows of `leaks` and `stacks`.
- An unknown value is null. A sum is null if one of its parts is unknown.
- If no search for pointers was made, `lost_count` is 0, and `unknown_count` counts all allocations.
- Details of one process, such as its timeline and the account of a device, are in the process's own report only.
- A later version may add tables and fields. Those that are here keep their meaning.
"""


def definition_of(field, definitions):
    """Returns the part of the schema that the field refers to; the field itself if it refers to none.

    `definitions` are the schema's $defs, in which references are looked up.
    """
    return definitions[field["$ref"].rsplit("/", 1)[-1]] if "$ref" in field else field


def fields_of(schema, definitions):
    """Returns the fields of an object, or of a table's rows, with their schemas; empty for other types.

    `definitions` are the schema's $defs, in which references are looked up.
    """
    return definition_of(schema.get("items", schema), definitions).get("properties", {})


def values_of(field, definitions):
    """Returns the values that a field of an enumeration may have, in Markdown; "" for other fields.

    `definitions` are the schema's $defs, in which references are looked up.
    """
    field = definition_of(field, definitions)
    values = field.get("enum", [])
    described = [f"`{value['const']}`: {value['description']}" for value in field.get("anyOf", []) if "description" in value]
    return ", ".join("null" if value is None else f"`{value}`" for value in values) or "<br>".join(["", *described])


def rows_of(fields, definitions, prefix=""):
    """Yields the line of a Markdown table for each field.

    Fields of an object whose schema stands in the field itself follow; those of array items or of a referred
    definition do not.

    `fields` has the schemas of the fields by their names. `definitions` are the schema's $defs, in which
    references are looked up. `prefix` stands before the names, such as "process." for an object's fields.
    """
    for field, meaning in fields.items():
        values = values_of(meaning, definitions)
        values = " Values: " + values + "." * (not values.endswith(".")) if values else ""
        description = meaning.get("description") or definition_of(meaning, definitions)["description"]
        yield f"| `{prefix}{field}` | {description}{values} |\n"
        yield from rows_of(meaning.get("properties", {}), definitions, f"{prefix}{field}.")


def document(schema):
    """Yields the parts of the Markdown page about a schema."""
    yield HEADS[schema["properties"]["schema"]["const"]]
    for name, table in schema["properties"].items():
        yield f"\n## {name}\n\n{table['description']}\n"
        fields = fields_of(table, schema["$defs"])
        if not fields:
            continue
        yield "\n| field | is |\n|---|---|\n"
        yield from rows_of(fields, schema["$defs"])


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        sys.stdout.write("".join(document(json.load(file))))


if __name__ == "__main__":
    main()
