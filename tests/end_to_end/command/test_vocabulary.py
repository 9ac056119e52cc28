"""Kinds of memory and devices have one name in all that people read."""

import re

from shimmed import DRIVER

NAMES = {"device memory (GPU 0)", "pinned host memory"}


def test_report_top_trace_and_doctor_use_the_same_words(cuwarden, workspace, growing):
    totals = cuwarden("top", growing.pid).stdout.split("WHERE\n")[0]
    in_top = re.findall(r"^(\S.*?) {2,}\S+ \S+ live in ", totals, re.MULTILINE)
    assert set(in_top) == NAMES
    snapshot = workspace.work / "snapshot.json"
    done = cuwarden("snapshot", "-o", snapshot, growing.pid)
    assert done.returncode == 0, done.stderr
    text = cuwarden("report", snapshot).stdout
    memory = text.split("\nMEMORY ")[1].split("\n\n")[0]
    assert set(re.findall(r"^  (\S.*?) {2,}", memory, re.MULTILINE)) == NAMES
    account = text.split("\nGPU 0 of ")[1].split("\n\n")[0]
    assert re.search(r"^  live device memory {2,}", account, re.MULTILINE), account
    trace = workspace.work / "trace"
    done = cuwarden("export", "--format", "perfetto", "-o", trace, snapshot)
    assert done.returncode == 0, done.stderr
    words = trace.read_bytes()
    assert all(name.encode() in words for name in (*NAMES, "held at the end: GPU 0", "held at the end: host"))
    assert b"device 0" not in words
    machine = cuwarden("doctor", env={"LD_LIBRARY_PATH": str(DRIVER.parent)}).stdout
    assert re.search(r"\bGPU 0: .*, 16\.0 GiB$", machine, re.MULTILINE), machine
    assert "device 0" not in machine
