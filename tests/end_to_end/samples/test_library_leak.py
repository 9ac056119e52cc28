"""The sample library_leak: of a stripped library's memory, what it loses is told from what it keeps.

The program counts the images that the library has refused, each of which loses a buffer. The library
counts the buffers that it keeps.
"""

import re

import pytest

from shimmed import DRIVER, SAMPLES, SOURCE, sample

LIBRARY = "libvendor_filter.so"
# Number of requests, and the seed from which they are made.
ARGUMENTS = [("300", "1"), ("400", "29"), ("250", "512")]


@pytest.fixture(params=ARGUMENTS, ids=" ".join)
def run(request, workspace):
    done = workspace.run([sample("library_leak"), *request.param], {"CUWARDEN_POOL": "off"})
    assert done.returncode == 0 and done.said == []
    assert done.last_line["refused"] >= 8
    assert done.report["pointer_search"]["is_complete"]
    return done


def lost_group(run):
    (group,) = run.report.groups_of("vendor_filter_sharpen")
    return group


def kept_groups(run):
    """Returns the groups of the library's own functions, which have no names."""
    return run.report.groups_of(None)


def source_line(number):
    return (SOURCE / "samples" / "library_leak.cpp").read_text().splitlines()[number - 1]


def test_each_refused_image_is_lost_memory(run):
    facts, group = run.last_line, lost_group(run)
    assert (group["count"], group["bytes"]) == (facts["refused"], facts["refused_bytes"])
    assert (group["lost_count"], group["lost_bytes"]) == (facts["refused"], facts["refused_bytes"])
    assert group["allocations"] == facts["uploads"]
    assert (group["reachability"], group["growth"]) == ("lost", "growing")


def test_memory_that_the_library_keeps_is_reachable_and_does_not_grow(run):
    kept, _ = run.last_line["leaked"]
    groups = kept_groups(run)
    assert sum(group["reachable_count"] for group in groups) == kept["count"]
    assert sum(group["reachable_bytes"] for group in groups) == kept["bytes"]
    assert all(group["lost_count"] == 0 for group in groups)
    assert all(group["growth"] in ("one_time", "steady") for group in groups)
    (work_space,) = [group for group in groups if group["bytes"] == 2 << 20]
    assert (work_space["allocations"], work_space["growth"]) == (1, "one_time")
    # The buffers that it keeps for later calls replace each other.
    assert sum(group["allocations"] for group in groups) > 2 * kept["count"]


def test_the_lost_memory_has_the_exported_function_and_the_line_that_called_it(run):
    facts, group = run.last_line, lost_group(run)
    assert run.report.module_name(group["module"]) == LIBRARY
    assert group["where"] == f"vendor_filter_sharpen in {LIBRARY}"
    (_, frame), (caller, calling) = run.report.functions(group)[:2]
    assert run.report.module_name(frame["module"]) == LIBRARY
    assert frame["file"] is None and frame["line"] is None and frame["offset"] > 0
    assert (caller, calling["line"]) == (facts["calling_function"], facts["calling_line"])
    assert calling["file"].endswith("library_leak.cpp")
    assert "vendor_filter_sharpen(" in source_line(calling["line"])


def test_the_text_lists_the_lost_memory_first_and_says_how_often_it_is_lost(run, cuwarden):
    facts = run.last_line
    text = cuwarden("report", run.report.path).stdout
    (first,) = re.findall(r"^ 1\. .*$", text, re.MULTILINE)
    often = (facts["uploads"] + facts["refused"] // 2) // facts["refused"]
    assert f" in {facts['refused']} allocations · " in first
    assert f" · growing, 1 in {often} is never freed · lost · {LIBRARY}" in first
    others = re.findall(r"^ [2-9]\. .*$", text, re.MULTILINE)
    assert others and all(" · reachable · " in line for line in others)


def test_requests_without_an_odd_width_lose_nothing(run_shimmed, cuwarden):
    run = run_shimmed([sample("library_leak"), "3", "1"])
    assert run.last_line["refused"] == 0 and run.report["leaks"]["count"] > 0
    checked = cuwarden("report", "--fail-on-leak=lost", run.report.path)
    assert checked.returncode == 0
    assert re.fullmatch(r"OK: \d leaks?, none lost", checked.stdout.splitlines()[-1])


def test_the_next_version_of_the_library_loses_nothing_in_the_same_requests(run, workspace):
    env = {"LD_LIBRARY_PATH": f"{SAMPLES / 'mended'}:{DRIVER.parent}", "CUWARDEN_POOL": "off"}
    command = run.report["process"]["command_line"]
    mended = workspace.run(command, env)
    assert "vendor_filter 2.3.0" in run.stdout and "vendor_filter 2.3.1" in mended.stdout
    assert mended.last_line["refused"] == run.last_line["refused"]
    assert mended.last_line["leaked"] == run.last_line["leaked"][:1]
    mended.report.check_leaks(mended.last_line["leaked"])
    assert all(group["lost_count"] == 0 for group in mended.report["leak_groups"])
