"""The validator of reports that all end-to-end tests use."""

import functools
import json
import operator

import jsonschema

import report_schema
from shimmed import program


def spoiled_copies(report):
    """Yields copies of the report with a value of another type, or without a field, at each of its keys."""
    others = ("a text", -1, 2.5, True, None, [], {})

    def keys(part, path):
        for key in part if isinstance(part, dict) else range(min(len(part), 1)):
            yield (*path, key)
            if isinstance(part[key], (dict, list)):
                yield from keys(part[key], (*path, key))

    for *path, key in keys(report, ()):
        for other in others:
            copy = json.loads(json.dumps(report))
            within = functools.reduce(operator.getitem, path, copy)
            within[key] = other
            yield copy
        del within[key]
        yield copy


def test_reports_are_refused_for_the_mistakes_that_the_schema_refuses(run_shimmed):
    """The validator of all tests takes ways of its own, so that it is fast."""
    report = run_shimmed([program("allocate")]).report.data
    short = {key: value[:1] if isinstance(value, list) else value for key, value in report.items()}
    plain = jsonschema.Draft202012Validator(report_schema.schema())
    judged = [(report_schema.validator().is_valid(copy), plain.is_valid(copy)) for copy in spoiled_copies(short)]
    assert all(fast == slow for fast, slow in judged)
    assert {fast for fast, _ in judged} == {True, False}
