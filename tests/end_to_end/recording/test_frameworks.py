"""PyTorch's figures of its own memory: its sums in every report, and its blocks with CUWARDEN_TENSORS=on.

The programs get their memory from an allocator that reports it as PyTorch's does, and print what that
allocator knows.
"""

import json
import re
import signal

import pytest

import shimmed
from shimmed import killed_by

FRAMEWORKS = shimmed.PROGRAMS / "frameworks"
TENSORS = FRAMEWORKS / "tensors"
MIB = 1 << 20
DEVICE = {"CUWARDEN_SIM_MEMORY": "1GiB"}
ON = {"CUWARDEN_TENSORS": "on"}
SOURCE = (
    shimmed.SOURCE / "tests/end_to_end/programs/frameworks/tensors.cpp"
).read_text().splitlines()


def line_of(words):
    (number,) = [i for i, line in enumerate(SOURCE, 1) if line.endswith("// line of " + words)]
    return f"tensors.cpp:{number}"


def latest(report):
    (row,) = [row for row in report["frameworks"] if row["incident"] is None]
    return row


@pytest.mark.parametrize("build", [".", "signed_sizes"])
@pytest.mark.parametrize("env", [{}, ON], ids=["sums", "blocks"])
def test_the_sums_of_pytorch_are_in_the_report(workspace, build, env):
    # The output has the number of reports that PyTorch's own function got.
    run = workspace.run_both([FRAMEWORKS / build / "tensors", "keep"], env)
    told, row = run.last_line, latest(run.report)
    assert (row["framework"], row["device"], row["pool"]) == ("PyTorch", 0, None)
    assert row["source"] == "framework"
    assert row["reserved_bytes"] == told["reserved"]
    assert row["allocated_bytes"] == told["allocated"]
    assert row["peak_allocated_bytes"] == told["allocated"] + 3 * (3 * MIB + 512)
    holes = [row[name] for name in ("hole_count", "hole_bytes", "largest_free_bytes")]
    known = [told["holes"], told["hole_bytes"], told["largest_free"]]
    assert holes == (known if env else [None, None, None])
    assert bool(run.report["framework_sites"]) == bool(env)


def test_the_sums_of_a_killed_process_are_those_of_its_end(workspace):
    run = workspace.run([TENSORS, "keep", "kill"], ON)
    assert killed_by(run, signal.SIGKILL)
    done = shimmed.cuwarden(workspace, "recover", workspace.ledger)
    assert done.returncode == 0, done.stderr
    report = shimmed.only_report(workspace)
    assert not any("damaged" in reason for reason in report["tool"]["reasons"])
    row, told = latest(report), run.last_line
    assert (row["reserved_bytes"], row["allocated_bytes"]) == (told["reserved"], told["allocated"])
    assert row["hole_bytes"] == told["hole_bytes"]


def test_segments_that_were_given_back_do_not_count(workspace):
    run = workspace.run([TENSORS, "empty"])
    told, row = run.last_line, latest(run.report)
    assert told["reserved"] == 20 * MIB
    assert (row["reserved_bytes"], row["allocated_bytes"]) == (told["reserved"], told["allocated"])


def test_live_blocks_are_listed_by_the_line_that_asked_for_them(workspace):
    run = workspace.run([TENSORS, "keep"], ON)
    sites = {}
    for row in run.report["framework_sites"]:
        line = tuple(re.sub(r".*/", "", row["where"]).split(" in "))
        count, size = sites.get(line, (0, 0))
        sites[line] = (count + row["count"], size + row["bytes"])
    assert sites == {
        (line_of("activations"), "activation"): (2, 2 * (3 * MIB + 512)),
        (line_of("weights"), "weight"): (3, 3 * MIB),
    }
    # No sum counts them beside the segments in which they lie.
    assert {total["kind"] for total in run.report["totals"]} == {"device"}
    assert {group["kind"] for group in run.report["leak_groups"]} == {"device"}
    assert run.report["leaks"]["bytes"] == run.last_line["reserved"]
    assert run.report["records"]["complete"], run.report["records"]


def test_the_text_lists_tensors_in_place_of_segments(workspace):
    run = workspace.run([TENSORS, "keep"], ON)
    (path,) = run.report_files
    text = shimmed.cuwarden(workspace, "report", path).stdout
    told = run.last_line
    assert "MEMORY OF FRAMEWORKS" in text
    assert re.search(r"PyTorch \(GPU 0\): holds 20\.0 MiB, 9\.0 MiB of it in use", text)
    assert f"in {told['holes']} holes, largest free block" in text
    assert run.report["tool"]["complete"], run.report["tool"]
    tensors = text[text.index("LIVE TENSORS") :]
    assert tensors.startswith("LIVE TENSORS: 9.0 MiB in 5 blocks")
    assert line_of("weights") in tensors
    assert "20.0 MiB of these are segments of PyTorch's" in tensors


def test_free_memory_in_holes_is_the_verdict_of_a_refused_request(workspace):
    run = workspace.run([TENSORS, "fill"], {**ON, **DEVICE, "CUWARDEN_POOL": "off"})
    told = json.loads(run.stdout.splitlines()[0])
    assert "granted" not in run.stdout
    incident = run.report["incidents"][-1]
    proof = incident["proof"]
    assert incident["verdict"] == "framework_fragmentation"
    assert proof["framework"] == "PyTorch"
    assert proof["reserved_bytes"] == told["reserved"]
    assert proof["idle_bytes"] == told["reserved"] - told["allocated"]
    assert proof["hole_count"] == told["holes"]
    assert proof["largest_free_bytes"] == told["largest_free"] == 10 * MIB
    assert "expandable_segments:True" in incident["advice"]
    assert f"largest free block has 10.0 MiB ({told['holes']} holes" in incident["advice"]
    holders = [
        row
        for row in run.report["incident_holders"]
        if row["incident"] == incident["id"] and row["kind"] == "framework_block"
    ]
    assert sum(holder["bytes"] for holder in holders) == told["allocated"]
    lines = {frame["line"] for frame in run.report.stack_frames(holders[0])}
    assert {number for number, line in enumerate(SOURCE, 1) if "raw_alloc(10 * mib)" in line} & lines
    (row,) = [r for r in run.report["frameworks"] if r["incident"] == incident["id"]]
    assert row["hole_bytes"] == told["hole_bytes"]


def test_the_verdict_needs_no_blocks(workspace):
    run = workspace.run([TENSORS, "fill"], {**DEVICE, "CUWARDEN_POOL": "off"})
    incident = run.report["incidents"][-1]
    assert incident["verdict"] == "framework_fragmentation"
    assert "hole_count" not in incident["proof"]


def test_a_cache_that_others_need_is_known_to_be_idle(workspace):
    run = workspace.run([TENSORS, "other"], {**DEVICE, "CUWARDEN_POOL": "off"})
    assert "granted" not in run.stdout
    incident = run.report["incidents"][-1]
    assert incident["verdict"] == "held_by_framework"
    told = run.last_line
    assert incident["proof"]["idle_bytes"] == told["reserved"] - told["allocated"]
    assert "of it not in use" in incident["advice"]
