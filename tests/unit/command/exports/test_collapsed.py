"""`cuwarden export --format collapsed`, drawn by the flamegraph.pl that Debian ships."""

import html
import json
import re

import pytest

from consumers import consumer, run
from exported import HOSTILE, PRINTABLE, live_groups, rich, write


@pytest.fixture
def report(sample_report):
    return rich(json.loads(sample_report.read_text()))


def lines_of(text):
    """Returns the bytes by stack, a tuple of frames, outermost first."""
    found = {}
    for line in text.splitlines():
        stack, count = line.rsplit(" ", 1)
        assert tuple(stack.split(";")) not in found, "a stack has one line"
        found[tuple(stack.split(";"))] = int(count)
    return found


def expected_frames(report, stack):
    """Returns the frames of the stack that a line must have, outermost first."""
    tables = {name: {row["id"]: row for row in report[name]} for name in ("stacks", "frames", "modules")}
    if stack is None:
        return ("[no call stack]",)
    names = ["[outer frames not recorded]"] if tables["stacks"][stack]["truncated"] else []
    for frame in (tables["frames"][id] for id in reversed(tables["stacks"][stack]["frames"])):
        if frame["function"]:
            name = PRINTABLE.replace(";", ",") if frame["function"] == HOSTILE else frame["function"]
        elif frame["module"]:
            name = f"{tables['modules'][frame['module']]['path'].split('/')[-1]}+{frame['offset']:#x}"
        else:
            name = frame["address"]
        file = frame["file"] and frame["file"].split("/")[-1]
        names.append(f"{name} ({file}:{frame['line']})" if file else name)
    return tuple(names)


def test_each_stack_with_live_memory_is_a_line_with_its_bytes(cuwarden, report, tmp_path):
    done = cuwarden("export", "--format", "collapsed", write(tmp_path / "r.json", report))
    assert (done.returncode, done.stderr) == (0, "")
    wanted = {}
    for group in live_groups(report):
        frames = expected_frames(report, group["stack"])
        wanted[frames] = wanted.get(frames, 0) + group["bytes"]
    assert len(wanted) > 3
    assert lines_of(done.stdout) == wanted


def test_several_reports_are_told_apart_by_the_program(cuwarden, report, tmp_path):
    other = report | {"process": report["process"] | {"program": "/bin/a;b", "pid": 7}}
    paths = [write(tmp_path / f"{i}.json", each) for i, each in enumerate((report, report, other))]
    one = lines_of(cuwarden("export", "--format", "collapsed", paths[0]).stdout)
    all_three = lines_of(cuwarden("export", "--format", "collapsed", *paths).stdout)
    wanted = {("sample_program.so", *stack): 2 * count for stack, count in one.items()}
    wanted |= {("a,b", *stack): count for stack, count in one.items()}
    assert all_three == wanted


def test_a_report_without_live_memory_makes_no_line(cuwarden, clean_report):
    done = cuwarden("export", "--format", "collapsed", clean_report)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_flamegraph_draws_all_bytes_and_names(cuwarden, report, tmp_path):
    text = cuwarden("export", "--format", "collapsed", write(tmp_path / "r.json", report)).stdout
    drawn = run("perl", consumer("flamegraph.pl"), "--countname", "bytes", "--minwidth", "0", input=text.encode())
    assert drawn.stderr == b""
    titles = re.findall(r"<title>(.*?) \(([\d,]+) bytes", html.unescape(drawn.stdout.decode()))
    boxes = {(name, int(count.replace(",", ""))) for name, count in titles}
    assert ("all", sum(group["bytes"] for group in live_groups(report))) in boxes
    assert ("step (train.py:41)", 2048) in boxes and ("inlined() (in.cpp:7)", 2048) in boxes
    # flamegraph.pl puts round brackets in place of angle brackets.
    assert (PRINTABLE.translate(str.maketrans(";<>", ",()")), 2048) in boxes
