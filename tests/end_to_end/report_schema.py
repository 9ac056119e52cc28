"""Validates reports by `reporters/report.schema.json`.

A test run validates some thousands of reports. jsonschema makes a validator for each value and resolves each `$ref`
again, which takes longer than most programs that the tests run. References are therefore replaced by their
definitions once, and jsonschema is not asked about a plain value that obviously fits.
"""

import functools
import json
from pathlib import Path

import jsonschema

SCHEMA = Path(__file__).resolve().parents[2] / "reporters" / "report.schema.json"

# Names that JSON Schema has for exactly these types of Python. The subtypes, such as bool, which is an int, do not count.
NAMES = {str: {"string"}, int: {"integer", "number"}, bool: {"boolean"}, type(None): {"null"}}


@functools.cache
def schema():
    """Returns the schema as it is written."""
    return json.loads(SCHEMA.read_text())


def without_references(part):
    """Returns a part of the schema. Definitions replace the references to them."""
    if isinstance(part, list):
        return [without_references(each) for each in part]
    if not isinstance(part, dict):
        return part
    own = {name: without_references(value) for name, value in part.items() if name not in ("$ref", "$defs")}
    if "$ref" not in part:
        return own
    table, _, name = part["$ref"].rpartition("/")
    assert table == "#/$defs", part
    definition = without_references(schema()["$defs"][name])
    if definition.keys() & own.keys() <= {"description"}:
        return {**definition, **own}
    return {**own, "allOf": [definition, *own.get("allOf", [])]}


def obviously_fits(value, wanted):
    """Returns True if the value fits for a reason that is seen at once. False says nothing."""
    names = NAMES.get(type(value))
    if names is None:
        return False
    for keyword, argument in wanted.items():
        if keyword == "type":
            fits = argument in names if isinstance(argument, str) else not names.isdisjoint(argument)
        elif keyword == "minimum":  # bounds numbers alone; another value fits
            fits = value is None or (type(value) is int and value >= argument)
        elif keyword == "maximum":
            fits = value is None or (type(value) is int and value <= argument)
        elif keyword == "enum":
            fits = type(value) is str and value in argument
        elif keyword == "const":
            fits = type(value) is str and value == argument
        elif keyword == "anyOf":
            fits = any(obviously_fits(value, each) for each in argument)
        elif keyword == "allOf":
            fits = all(obviously_fits(value, each) for each in argument)
        else:
            fits = keyword == "description"
        if not fits:
            return False
    return True


def properties(validator, wanted, value, _):
    """Stands in for jsonschema's keyword `properties`.

    Skips values that obviously fit, validates the others as jsonschema does, and yields their errors.
    """
    if not isinstance(value, dict):
        return
    for name, part in wanted.items():
        if name in value and not obviously_fits(value[name], part):
            yield from validator.descend(value[name], part, path=name, schema_path=name)


@functools.cache
def validator():
    """Returns the validator. The unit tests of the command check that the schema itself is valid."""
    plain = jsonschema.validators.validator_for(schema())
    return jsonschema.validators.extend(plain, {"properties": properties})(without_references(schema()))


def validate(report):
    """Raises jsonschema.ValidationError if the report is not valid."""
    validator().validate(report)
