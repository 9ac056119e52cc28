"""`cuwarden export --format prometheus`, checked and read by Prometheus's promtool."""

import json
import os

import pytest

from consumers import by_label, metrics
from exported import HOSTILE, rich, write

IDENTITY = {"program": "sample_program.so", "pid": "41233", "host": "node-7", "rank": "3", "job_id": "882113"}


@pytest.fixture
def report(sample_report):
    return rich(json.loads(sample_report.read_text()))


@pytest.fixture
def exported(cuwarden, tmp_path):
    def export(*reports):
        paths = [write(tmp_path / f"{number}.json", report) for number, report in enumerate(reports)]
        done = cuwarden("export", "--format", "prometheus", *paths)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    return export


def by_device(rows, value, *keys):
    return {
        ("host" if row["device"] is None else str(row["device"]), *(row[key] for key in keys)): str(row[value])
        for row in rows if row[value] is not None
    }  # fmt: skip


def test_each_figure_is_that_of_the_report(exported, report):
    found = metrics(exported(report))
    for name, value in (("live_bytes", "live_bytes"), ("live_allocations", "live_count"),
                        ("peak_bytes", "peak_bytes"), ("allocations_total", "allocations"),
                        ("frees_total", "frees"), ("failures_total", "failures")):  # fmt: skip
        wanted = by_device(report["totals"], value, "kind")
        assert by_label(found[f"cuwarden_{name}"], "device", "kind") == wanted and len(wanted) == 3
    for name, value in (("size", "total_bytes"), ("used", "used_bytes"), ("free", "free_bytes")):
        wanted = by_device(report["devices"], value)
        assert by_label(found[f"cuwarden_device_{name}_bytes"], "device") == wanted and len(wanted) == 1
    owners = by_label(found["cuwarden_device_owner_bytes"], "device", "owner")
    assert owners == by_device(report["accounts"], "bytes", "item") and len(owners) == 4
    assert set(by_label(found["cuwarden_leaked_bytes"], "pid").values()) == {str(report["leaks"]["bytes"])}


def test_the_owners_at_refused_requests_are_left_out(exported, report):
    at_refusal = [row | {"incident": 1, "bytes": 12345} for row in report["accounts"]]
    assert metrics(exported(report | {"accounts": report["accounts"] + at_refusal})) == metrics(exported(report))


def test_refused_requests_are_counted_by_cause_and_outcome_with_the_time_of_rungs(exported, report):
    found = metrics(exported(report))
    keys = ("verdict", "outcome")
    assert by_label(found["cuwarden_incidents_total"], *keys) == {
        ("device_full_own", "failed"): "1", ("pending_frees", "rescued"): "1",
    }  # fmt: skip
    assert by_label(found["cuwarden_refusals_total"], *keys)["device_full_own", "failed"] == "3"
    assert by_label(found["cuwarden_rung_seconds_total"], "rung", "outcome") == {
        ("retry", "no_memory"): "0.000003500", ("trim", "served"): "2.000000007",
    }  # fmt: skip
    attempts = {key: int(count) for key, count in by_label(found["cuwarden_rung_attempts_total"], "rung").items()}
    assert attempts == {("retry",): 2, ("trim",): 1}
    assert set(found["cuwarden_rescued_requests_total"].values()) == {"1"}
    assert set(found["cuwarden_rescued_bytes_total"].values()) == {str(1 << 30)}
    assert set(found["cuwarden_mesh_pause_seconds_total"].values()) == {"1.000000001"}


def test_each_value_names_the_process_and_no_call_stack(exported, report):
    text = exported(report)
    for rows in metrics(text).values():
        for labels in map(dict, rows):
            assert {name: labels[name] for name in IDENTITY} == IDENTITY
            assert ("uuid" in labels) == (labels.get("device") == "0")
    assert "train.py" not in text and "inlined" not in text


def test_unknown_figures_have_no_value(exported, report):
    devices = [row | {"used_bytes": None} for row in report["devices"]]
    found = metrics(exported(report | {"devices": devices, "pool": None, "incidents": [], "rungs": []}))
    assert "cuwarden_device_used_bytes" not in found and "cuwarden_rescued_requests_total" not in found
    assert not any("incident" in name or "rung" in name for name in found)


def test_values_of_labels_are_escaped(exported, report):
    hostile = report | {"process": report["process"] | {"host": 'a\\n"b\n{c="d"},é=1 #', "program": "/x/a\tb\u202e"}}
    (identity,) = metrics(exported(hostile))["cuwarden_process_running"]
    assert (dict(identity)["host"], dict(identity)["program"]) == ('a\\n"b\n{c="d"},é=1 #', "a?b???")
    for program in (HOSTILE, "", "\n", "\\"):
        process = report["process"] | {"program": program, "host": program}
        text = exported(report | {"process": process})
        assert metrics(text) and not any(sign in text for sign in "\x1b\u202e")


def test_several_reports_share_the_description_of_each_metric(exported, report):
    others = [report | {"process": report["process"] | {"pid": pid}} for pid in (1, 2)]
    found = metrics(exported(report, *others))
    assert set(by_label(found["cuwarden_process_info"], "pid")) == {("41233",), ("1",), ("2",)}
    assert len(found["cuwarden_live_bytes"]) == 3 * len(report["totals"])


@pytest.mark.parametrize("order", [1, -1])
def test_the_later_of_two_reports_of_one_process_counts(exported, report, order):
    running = {"end_reason": "running", "end_ns": 50_000_000_000, "exit_status": None}
    earlier = report | {"process": report["process"] | running, "totals": []}
    found = metrics(exported(*(earlier, report)[::order]))
    assert set(found["cuwarden_process_running"].values()) == {"0"}
    assert len(found["cuwarden_live_bytes"]) == len(report["totals"])
    assert set(found["cuwarden_read_time_seconds"].values()) == {"1795161701.123456789"}
    assert "cuwarden_leaked_bytes" not in metrics(exported(earlier)), "a running process has no leaks yet"


def test_the_file_is_replaced_as_a_whole(cuwarden, report, tmp_path):
    path = tmp_path / "cuwarden.prom"
    path.write_text("old")
    path.chmod(0o644)
    before = os.stat(path).st_ino
    assert cuwarden("export", "--format", "prometheus", "-o", path, write(tmp_path / "r.json", report)).returncode == 0
    assert metrics(path.read_text()) and os.stat(path).st_ino != before and path.stat().st_mode & 0o777 == 0o644
    assert sorted(each.name for each in tmp_path.glob("*.prom*")) == ["cuwarden.prom"]


def test_a_file_stays_as_it_is_if_no_report_can_be_read(cuwarden, report, tmp_path):
    path, damaged = tmp_path / "cuwarden.prom", tmp_path / "damaged.json"
    path.write_text("old")
    damaged.write_text("{")
    done = cuwarden("export", "--format", "prometheus", "-o", path, damaged)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "damaged.json" in done.stderr
    assert path.read_text() == "old" and list(tmp_path.glob("*.new-*")) == []
    done = cuwarden("export", "--format", "prometheus", "-o", path, damaged, write(tmp_path / "r.json", report))
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and metrics(path.read_text())
