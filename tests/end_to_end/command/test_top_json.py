"""`cuwarden top --json`: the contents of the view as JSON that follows its schema."""

import copy
import functools
import json
import re
import subprocess

import jsonschema
import pytest

import shimmed
from shimmed import COMMAND, program, until

CALL_SITES = ("holds_most", "grows_fastest", "allocates_most")


@functools.cache
def top_schema():
    return json.loads((shimmed.SOURCE / "tools" / "cuwarden" / "top.schema.json").read_text())


def read_json(done):
    assert (done.returncode, done.stderr) == (0, "")
    answer = json.loads(done.stdout)
    jsonschema.validate(answer, top_schema())
    return answer


def test_a_process_is_an_object_for_machines(cuwarden, growing):
    answer = read_json(cuwarden("top", "--once", "--json", growing.pid))
    (process,) = answer["processes"]
    assert process["pid"] == growing.pid and process["program"] == program("growing")
    assert process["growth_bytes_per_minute"] > 0
    stacks = {row["where"].split("(")[0].split()[0]: row for row in answer["stacks"]}
    assert set(CALL_SITES) <= set(stacks)
    held = stacks["holds_most"]
    assert (held["live_bytes"], held["live_count"]) == (4 << 30, 1)
    assert (held["kind"], held["device"], held["api"]) == ("device", 0, "cudaMalloc")
    assert held["growth_bytes_per_minute"] == 0 and held["keeps_growing"] is False
    assert stacks["grows_fastest"]["device"] is None
    assert stacks["grows_fastest"]["growth_bytes_per_minute"] > 0
    totals = {row["kind"]: row for row in answer["totals"]}
    assert totals["device"]["live_bytes"] >= 4 << 30
    assert totals["pinned"]["live_bytes"] > 0
    assert [row["device"] for row in answer["devices"]] == [0]


def test_all_processes_are_an_object_for_machines(cuwarden, growing):
    answer = read_json(cuwarden("top", "--json"))
    assert growing.pid in [row["pid"] for row in answer["processes"]]
    assert "stacks" not in answer


def test_the_objects_schema_catches_mistakes(cuwarden, growing):
    answer = read_json(cuwarden("top", "--json", growing.pid))
    for table in ("processes", "totals", "stacks"):
        for field in answer[table][0]:
            spoiled = copy.deepcopy(answer)
            del spoiled[table][0][field]
            with pytest.raises(jsonschema.ValidationError):
                jsonschema.validate(spoiled, top_schema())


def test_output_for_machines_that_cannot_be_written_is_a_line(workspace, growing):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [COMMAND, "top", "--json", str(growing.pid)],
            stdout=full, stderr=subprocess.PIPE, text=True, timeout=60,
        )  # fmt: skip
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1


def test_a_frame_of_cudas_headers_is_not_the_users(cuwarden, workspace, live):
    process = live(program("through_header"), stdin=subprocess.PIPE)
    assert process.stdout.readline() == "ready\n"
    (stack,) = read_json(cuwarden("top", "--json", process.pid))["stacks"]
    assert stack["where"].startswith("through_header ") and stack["api"] == "cudaMalloc"
    process.stdin.close()
    assert process.wait(timeout=60) == 0
    (report,) = workspace.reports.iterdir()
    shown = cuwarden("report", report).stdout
    first = re.search(r"^ 1\. .*\n +(.*)", shown, re.MULTILINE)[1]
    assert "through_header" in first and "cuda_runtime" not in first, shown


def test_a_request_that_waits_is_shown_with_its_call_site_while_it_waits(cuwarden, live, growing):
    env = {"CUWARDEN_SIM_MEMORY": "8GiB", "CUWARDEN_SIM_OTHER_PROCESS": "3GiB", "CUWARDEN_WAIT": "1000s"}
    process = live(program("shortages"), "own", "room=10000", "more=900", env=env)

    def waiting(*arguments):
        rows = read_json(cuwarden("top", "--json", *arguments))["waiting"]
        return [row for row in rows if row["rung"] == "wait"]

    until(lambda: cuwarden("top", "--json", process.pid).returncode == 0, process)
    until(lambda: waiting(process.pid), process)
    (first,) = waiting(process.pid)
    assert first["pid"] == first["thread"] == process.pid
    assert (first["kind"], first["device"], first["asked_for"]) == ("device", 0, "memory")
    assert first["api"] == "cudaMalloc" and first["where"].startswith("shortages::allocate")
    assert first["bytes"] > 900 << 20
    (later,) = [row for row in waiting() if row["pid"] == process.pid]
    assert {**later, "duration_ns": 0} == {**first, "duration_ns": 0}
    assert later["duration_ns"] > first["duration_ns"] > 0
    assert waiting(growing.pid) == []
    line = rf"waits for memory: cudaMalloc of \d\.\d GiB \(GPU 0\), rung wait for [\d.]+ m?s: shortages.cpp:\d+ in shortages::allocate"
    assert re.search(rf"^{line}.*$", cuwarden("top", process.pid).stdout, re.M)
    assert re.search(rf"^shortages \(pid {process.pid}\) {line}", cuwarden("top").stdout, re.M)
    assert "waits for memory" not in cuwarden("top", growing.pid).stdout
