"""`cuwarden export --format jsonl`: the lines are compared with what this file reads from the reports."""

import datetime
import itertools
import json
import re
import subprocess
import sys

import pytest

from conftest import built, one_line

LEFT_OUT = {"stacks", "frames", "slab_map", "worst_slab_map", "incident_slab_map"}
NAMES_A_CALL = {"incidents", "implicit_groups", "allocation_sites"}
ON_ALL_LINES = (
    "device", "incident", "time_ns", "kind", "api", "count", "bytes", "stack", "device_uuid", "where", "fingerprint",
)  # fmt: skip


def lines_of(text):
    assert text.endswith("\n") or not text
    return [json.loads(line) for line in text.split("\n")[:-1]]


def unix_ns(start):
    second, fraction = start.removesuffix("Z").split(".")
    time = datetime.datetime.fromisoformat(second).replace(tzinfo=datetime.timezone.utc)
    return int(time.timestamp()) * 10**9 + int(fraction)


def identity(report, path):
    process = report["process"]
    return {
        "report": str(path),
        "host": process["host"],
        "program": process["program"],
        "pid": process["pid"],
        "rank": report["job"]["rank"],
        "start": process["start"],
        "start_unix_ns": unix_ns(process["start"]),
    }


class MadeUp:
    """Makes up rows that have all fields of the schema, each with a value of its own."""

    def __init__(self, report):
        self.schema = json.loads(built("CUWARDEN_SCHEMA").read_text())
        self.stack, self.module = report["stacks"][0]["id"], report["modules"][0]["id"]
        self.numbers = itertools.count(1000)

    def value(self, schema, name):
        while not schema.keys() & {"enum", "const", "type"}:
            choices = schema.get("anyOf") or schema.get("oneOf")
            schema = choices[0] if choices else self.schema["$defs"][schema["$ref"].split("/")[-1]]
        if name in ("stack", "module", "device"):
            return {"stack": self.stack, "module": self.module, "device": 0}[name]
        if name == "proof":
            return {"figure": next(self.numbers), "words": "proved", "unknown": None}
        if "enum" in schema or "const" in schema:
            return schema["enum"][0] if "enum" in schema else schema["const"]
        kind = schema["type"][0] if isinstance(schema["type"], list) else schema["type"]
        if kind == "object":
            return {field: self.value(part, field) for field, part in schema.get("properties", {}).items()}
        if kind == "array":
            if name == "shared_with":
                return [self.stack, self.stack]
            return [self.value(schema["items"], "entry") for _ in range(schema.get("minItems", 2))]
        return {"integer": next(self.numbers), "boolean": True, "string": f"{name} {next(self.numbers)}"}[kind]

    def row(self, table):
        return self.value(self.schema["properties"][table].get("items", self.schema["properties"][table]), table)


def full(report):
    """Returns the report with a made-up row in each table that lines are made of."""
    made = MadeUp(report)
    for name, schema in made.schema["properties"].items():
        if name in LEFT_OUT | {"schema", "process", "job", "devices", "modules", "coverage", "records", "names", "tool"}:
            continue
        elif schema.get("type") == "array":
            report[name] = [*report.get(name, []), made.row(name)]
        elif name == "redacted":
            report[name] = True
        else:
            report[name] = made.row(name)
    return report, made


class Flat:
    """Makes the lines of a report anew."""

    def __init__(self, report, path):
        self.report, self.path = report, path
        self.by_id = {
            table: {row["id"]: row for row in report[table]} for table in ("stacks", "frames", "modules")
        }
        self.uuids = {row["device"]: row["uuid"] for row in report["devices"]}

    def where(self, stack):
        frames = [self.by_id["frames"][frame] for frame in self.by_id["stacks"][stack]["frames"]]
        own = [frame for frame in frames if frame["library"] is None and (frame["function"] or frame["module"])]
        users = next(iter(own), None)
        assert users is not None, "the sample has code of the program in each stack"
        if not users["function"]:
            return f"{self.by_id['modules'][users['module']]['path'].split('/')[-1]}+{users['offset']:#x}"
        if users["file"]:
            return f"{users['file']}:{users['line']} in {users['function']}"
        return f"{users['function']} in {self.by_id['modules'][users['module']]['path'].split('/')[-1]}"

    def stack(self, stack):
        lines = []
        for frame in (self.by_id["frames"][frame] for frame in self.by_id["stacks"][stack]["frames"]):
            lines.append((frame["function"] or "", f"{frame['file']}:{frame['line']}" if frame["file"] else ""))
        if self.by_id["stacks"][stack]["truncated"]:
            lines.append(("… outer frames were not recorded", ""))
        return lines

    def row(self, record, row):
        line = {"record": record, **identity(self.report, self.path)}
        process_fields = set(line)
        line |= dict.fromkeys(ON_ALL_LINES)
        for name, value in row.items():
            if name in process_fields:
                name = f"other_{name}"
            if name == "module" and value is not None:
                value = self.by_id["modules"][value]["path"]
            if name == "count_by_quarter":
                line |= {f"{name}_{i + 1}": value and value[i] for i in range(4)}
            elif name == "shared_with":
                line[name] = "\n".join(map(self.where, value))
            elif name == "named_steps":
                line[name] = "\n".join(step["name"] for step in value)
            elif isinstance(value, list):
                line[name] = "\n".join(value)
            elif not isinstance(value, dict):
                line[name] = value
        if "device" in row:
            line["device_uuid"] = self.uuids.get(row["device"])
        # The command judges made-up groups anew.
        if record == "incidents":
            line["incident"] = row["id"]
        if row.get("stack") is not None and row.get("where", "where ").startswith("where "):
            line["where"] = self.where(row["stack"])
        return line

    def lines(self):
        process, job = self.report["process"], self.report["job"]
        known = identity(self.report, self.path)
        yield {"record": "process", **known, **dict.fromkeys(ON_ALL_LINES), **{
            name: "\n".join(value) if isinstance(value, list) else value
            for name, value in (process | job).items() if name not in known
        }, "schema": self.report["schema"], "redacted": self.report["redacted"]}  # fmt: skip
        for name, part in self.report.items():
            if name in LEFT_OUT | {"process", "job"} or not isinstance(part, (list, dict)):
                continue
            for row in part if isinstance(part, list) else [part]:
                yield self.row(name, row)
                if name == "incidents":
                    yield self.row("verdicts", {
                        "incident": row["id"],
                        **{field: row[field] for field in ("time_ns", "verdict", "outcome", "device", "advice")},
                    })  # fmt: skip
                    for figure, value in row["proof"].items():
                        yield self.row("proofs", {"incident": row["id"], "figure": figure, "value": value})


def by_record(lines):
    records = {}
    for line in lines:
        records.setdefault(line["record"], []).append(line)
    return records


def test_each_row_of_each_table_is_a_flat_line(cuwarden, sample_report):
    report, made = full(json.loads(sample_report.read_text()))
    assert {stack["truncated"] for stack in report["stacks"]} == {True, False}
    sample_report.write_text(json.dumps(report))
    done = cuwarden("export", "--format", "jsonl", sample_report)
    assert (done.returncode, done.stderr) == (0, "")
    flat = Flat(report, sample_report)
    written, expected = by_record(lines_of(done.stdout)), by_record(flat.lines())
    assert written.keys() == expected.keys() == made.schema["properties"].keys() - LEFT_OUT - {
        "schema", "redacted", "job"} | {"verdicts", "proofs"}  # fmt: skip
    for record, rows in expected.items():
        assert len(written[record]) == len(rows), record
        for line, wanted in zip(written[record], rows):
            assert not any(isinstance(value, (list, dict)) for value in line.values()), line
            assert line.keys() == rows[-1].keys(), record  # each row has all fields
            stack = wanted["stack"]
            derived = {"stack"} | ({"fingerprint"} if record in NAMES_A_CALL else set())
            given = wanted.keys() - derived
            assert {name: line[name] for name in given} == {name: wanted[name] for name in given}
            assert (line["stack"] is None) == (stack is None)
            if stack is not None:
                shown = line["stack"].split("\n")
                assert len(shown) == len(flat.stack(stack))
                for text, (function, location) in zip(shown, flat.stack(stack)):
                    assert text.startswith(location) and function in text, (text, function, location)
    assert all(line["fingerprint"] for record in NAMES_A_CALL for line in written[record])


def test_duckdb_takes_the_lines_of_any_tables_for_rows_of_one_table(cuwarden, sample_report):
    report, _ = full(json.loads(sample_report.read_text()))
    sample_report.write_text(json.dumps(report))
    lines = lines_of(cuwarden("export", "--format", "jsonl", sample_report).stdout)
    fields = {name for line in lines for name in line}
    # DuckDB's map_inference_threshold and field_appearance_threshold. With more fields, or with fewer
    # on each line, read_json_auto() makes one column of all.
    assert len(fields) < 200
    assert min(len(line) for line in lines) > len(fields) / 10


def test_a_refused_call_has_the_fingerprint_of_the_leak_that_the_same_call_made(cuwarden, sample_report):
    report, _ = full(json.loads(sample_report.read_text()))
    leak = next(row for row in report["leak_groups"] if row["stack"] and row["fingerprint"])
    report["incidents"][0] |= {name: leak[name] for name in ("stack", "kind", "api")}
    sample_report.write_text(json.dumps(report))
    lines = lines_of(cuwarden("export", "--format", "jsonl", sample_report).stdout)
    (refused,) = [line for line in lines if line["record"] == "incidents"]
    assert refused["fingerprint"] == leak["fingerprint"] and refused["where"] == leak["where"]


def test_numbers_of_64_bits_keep_all_digits(cuwarden, clean_report, tmp_path):
    report = json.loads(clean_report.read_text())
    report["totals"] = report["totals"][:1]
    report["totals"][0] |= {"live_bytes": 2**53 + 1, "peak_bytes": 2**64 - 1}
    report["accounts"] = report["accounts"][:1]
    report["accounts"][0]["bytes"] = -(2**63)
    path = tmp_path / "large.json"
    path.write_text(json.dumps(report))
    text = cuwarden("export", "--format", "jsonl", path).stdout
    lines = lines_of(text)
    (total,) = [line for line in lines if line["record"] == "totals"]
    assert (total["live_bytes"], total["peak_bytes"]) == (2**53 + 1, 2**64 - 1)
    assert [line["bytes"] for line in lines if line["record"] == "accounts"] == [-(2**63)]
    assert f'"start_unix_ns":{unix_ns(report["process"]["start"])}' in text


HOSTILE = 'a"b\\c\nd\x1b[31m\u202e\x7f'


def test_a_name_of_any_characters_stays_in_its_line_and_off_the_terminal(cuwarden, sample_report, tmp_path):
    report, _ = full(json.loads(sample_report.read_text()))
    report["process"]["host"] = HOSTILE
    report["incidents"][0]["proof"] = {HOSTILE: HOSTILE}
    report["frames"][0]["function"] = HOSTILE
    path = tmp_path / "hostile.json"
    path.write_text(json.dumps(report))
    text = cuwarden("export", "--format", "jsonl", path).stdout
    assert not any(sign in text for sign in "\x1b\u202e\x7f")
    lines = lines_of(text)
    assert len(lines) == text.count("\n") and all(line["host"] == HOSTILE for line in lines)
    proofs = [(line["figure"], line["value"]) for line in lines if line["record"] == "proofs"]
    assert proofs == [(HOSTILE, HOSTILE)]


def many(folder, content, count):
    folder.mkdir()
    for number in range(count):
        process = re.sub(r'"pid": \d+', f'"pid": {1000 + number}', content, count=1)
        (folder / f"{number:04}.json").write_text(process)
    return folder


@pytest.mark.parametrize("damage, reason", [
    (lambda text: text[: len(text) // 2], "it is cut off after"),
    (lambda text: text.replace('"leaks": {', '"leaks": [], "x": {', 1), "a damaged report (leaks"),
    (lambda text: text.replace("cuwarden.report/1", "cuwarden.report/9", 1), "its schema is cuwarden.report/9"),
    (lambda text: "", "is empty"),
])  # fmt: skip
@pytest.mark.parametrize("to_file", [False, True])
def test_a_damaged_report_among_many_gets_a_line_and_the_rest_is_written(
    cuwarden, clean_report, tmp_path, damage, reason, to_file
):
    folder = many(tmp_path / "reports", clean_report.read_text(), 3)
    (folder / "0001.json").write_text(damage(clean_report.read_text()))
    path = tmp_path / "all.jsonl"
    done = cuwarden("export", "--format", "jsonl", *(["-o", path] if to_file else []), folder)
    assert done.returncode == 2 and one_line(done.stderr), done.stderr
    assert "0001.json" in done.stderr and reason in done.stderr, done.stderr
    assert not to_file or done.stdout == ""
    lines = lines_of(path.read_text() if to_file else done.stdout)
    assert {line["report"] for line in lines} == {str(folder / "0000.json"), str(folder / "0002.json")}


def test_nothing_is_written_where_the_file_cannot_be(cuwarden, clean_report, tmp_path):
    done = cuwarden("export", "--format", "jsonl", "-o", tmp_path / "none" / "a.jsonl", clean_report)
    assert done.returncode == 2 and one_line(done.stderr) and "a.jsonl" in done.stderr
    before = sorted(tmp_path.iterdir())
    assert cuwarden("export", "--format", "jsonl", "-o", tmp_path, clean_report).returncode == 2
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("name", ["jsonl", "junit"])
def test_no_input_is_overwritten_by_the_output(cuwarden, clean_report, tmp_path, name):
    folder = many(tmp_path / "reports", clean_report.read_text(), 2)
    rules, baseline, report = tmp_path / "rules.txt", tmp_path / "leaks.txt", folder / "0001.json"
    rules.write_text("leak:x\n")
    assert cuwarden("report", "--write-baseline", baseline, folder).returncode == 0
    cases = [(report, report), (report, folder), (rules, "--suppressions", rules, folder)]
    if name == "junit":
        cases.append((baseline, "--baseline", baseline, folder))
    for output, *inputs in cases:
        before = output.read_text()
        done = cuwarden("export", "--format", name, *inputs, "-o", output)
        assert done.returncode == 2 and one_line(done.stderr) and str(output) in done.stderr
        assert output.read_text() == before


def test_a_baseline_is_refused(cuwarden, clean_report, tmp_path):
    baseline = tmp_path / "leaks.txt"
    assert cuwarden("report", "--write-baseline", baseline, clean_report).returncode == 0
    done = cuwarden("export", "--format", "jsonl", "--baseline", baseline, clean_report)
    assert done.returncode == 2 and done.stdout == "" and one_line(done.stderr) and "leave it out" in done.stderr


def test_a_reader_that_has_enough_ends_the_export(installed, clean_report, tmp_path):
    folder = many(tmp_path / "reports", clean_report.read_text(), 100)
    (folder / "0099.json").write_text("{")
    process = subprocess.Popen(
        [installed / "cuwarden", "export", "--format", "jsonl", folder],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout.readline().startswith(b'{"record":"process"')
    process.stdout.close()
    # The last report, which is damaged, is not reached.
    assert process.stderr.read() == b""
    assert process.wait(60) == 0


# Runs the command that is its arguments, without its output, and prints its status and the most memory that it had.
MEASURE = """
import os, sys
pid = os.fork()
if pid == 0:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.execv(sys.argv[1], sys.argv[1:])
_, status, usage = os.wait4(pid, 0)
print(status, usage.ru_maxrss)
"""


def most_memory_kib(command):
    """Runs the command, which must succeed, and returns the most resident memory that it had, in KiB.

    Linux counts in what the process had before it executed the command. So it is a small process that does.
    """
    done = subprocess.run([sys.executable, "-c", MEASURE, *command], stdout=subprocess.PIPE, text=True, check=True)
    status, kib = map(int, done.stdout.split())
    assert status == 0
    return kib


def test_a_report_of_many_stacks_takes_little_more_memory_than_to_read_it(installed, sample_report, tmp_path):
    report = json.loads(sample_report.read_text())
    frames = [frame["id"] for frame in report["frames"]]
    stacks, depth = 10_000, 64
    deep = [frames[at % len(frames)] for at in range(depth)]
    report["stacks"] = [{"id": at + 1, "frames": deep, "truncated": False} for at in range(stacks)]
    group = report["leak_groups"][0]
    report["leak_groups"] = [group | {"stack": at + 1} for at in range(stacks)]
    path = tmp_path / "large.json"
    path.write_text(json.dumps(report))
    command = str(installed / "cuwarden")
    exporting = most_memory_kib([command, "export", "--format", "jsonl", str(path)])
    reading = most_memory_kib([command, "report", "--by", "kind", str(path)])
    assert exporting - reading < 32 * 1024, (exporting, reading)


def test_many_reports_take_the_memory_of_one(installed, sample_report, tmp_path):
    report = json.loads(sample_report.read_text())
    report["leak_groups"] = [report["leak_groups"][0]] * 300
    content = json.dumps(report)
    command = [str(installed / "cuwarden"), "export", "--format", "jsonl"]
    sizes = {
        count: most_memory_kib([*command, str(many(tmp_path / str(count), content, count))]) for count in (4, 100)
    }
    lines = len(content) * 96 // 1024
    assert sizes[100] - sizes[4] < lines / 8, sizes
