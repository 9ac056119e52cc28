"""Lost allocations are told from those to which a pointer is left when the process begins to end."""

import collections
import json
import os
import re

import pytest

from shimmed import program, sample

FOUND = ("lost", "interior", "reachable", "unknown")
# Forms of pointers, and the result for memory that the program keeps in this form alone.
HIDDEN = {"inverted": "lost", "marked_high": "lost", "marked_low": "interior", "distance": "lost", "packed": "lost"}


def found_by_function(report):
    """Returns, for each of the functions lost(), held() and so on, how many allocations had each result."""
    sums = collections.defaultdict(collections.Counter)
    for group in report["leak_groups"]:
        names = " ".join(name or "" for name, _ in report.functions(group))
        match = re.search(r"\b(lost|held|inside|freed|" + "|".join(HIDDEN) + r")_(device|pinned|managed|virtual|ordered)\b", names)
        for found in FOUND:
            sums[match[1]][found] += group[f"{found}_count"]
    return sums


@pytest.mark.parametrize("pool", ["off", "on"])
@pytest.mark.parametrize("end", ["return", "exit"])
def test_lost_memory_is_told_from_memory_that_containers_hold(run_both, end, pool):
    total = collections.defaultdict(collections.Counter)
    for seed in range(3):
        run = run_both([program("kept_pointers"), str(seed), end], {"CUWARDEN_POOL": pool})
        assert run.returncode == (3 if end == "exit" else 0), run.stderr
        assert run.report["pointer_search"]["is_complete"], run.report["pointer_search"]
        for function, sums in found_by_function(run.report).items():
            total[function] += sums
    # An old word in the memory of a container may look like a pointer.
    held, lost = total["held"], total["lost"]
    assert held["lost"] <= 0.01 * held.total(), total
    assert lost["lost"] >= 0.98 * lost.total(), total
    assert total["inside"]["interior"] >= 0.9 * total["inside"].total(), total
    assert total["freed"]["lost"] >= 0.9 * total["freed"].total(), total


def test_pointers_in_other_forms_have_the_result_that_the_documents_name(run_both):
    total = collections.defaultdict(collections.Counter)
    for seed in range(200 if "LARGE_COUNTS" in os.environ else 3):
        run = run_both([program("kept_pointers"), str(seed), "hide"], {"CUWARDEN_POOL": "off"})
        for function, sums in found_by_function(run.report).items():
            total[function] += sums
    # A chunk of numbers may have the form of one of the driver's records, whose addresses do not count.
    for form, result in HIDDEN.items():
        assert total[form][result] >= 0.85 * total[form].total(), (form, total[form])
    # Pointers that are not hidden are found as in the other programs.
    assert total["held"]["lost"] <= 0.01 * total["held"].total(), total
    assert total["lost"]["lost"] >= 0.98 * total["lost"].total(), total
    lost = sum(sums["lost"] for sums in total.values())
    right = total["lost"]["lost"] + total["freed"]["lost"]
    truly = total["lost"].total() + total["freed"].total()
    print(f"lost: precision {right / lost:.3f}, recall {right / truly:.3f}, {dict(total)}")


PYTHON = """
import atexit, ctypes, os, sys

rt = ctypes.CDLL("libcudart.so.13")


def new(place):
    assert rt.cudaMalloc(place, ctypes.c_size_t(65536)) == 0


def held_device(places):
    for index in range(16):
        new(ctypes.byref(places, 8 * index))


def lost_device():
    place = ctypes.c_void_p()
    new(ctypes.byref(place))
    place.value = 0


if "late" in sys.argv:
    atexit.register(lost_device)
table = (ctypes.c_void_p * 16)()
held_device(table)
lost_device()
if "cleared" in sys.argv:
    atexit._clear()
if "forked" in sys.argv:
    print(os.waitstatus_to_exitcode(os.waitpid(os.fork() or os._exit(0), 0)[1]))
"""


@pytest.mark.parametrize("how", ["plain", "late", "forked"])
def test_memory_is_searched_before_python_frees_its_objects(workspace, how):
    run = workspace.run_both(["python3", "-c", PYTHON, how])
    assert run.report["pointer_search"]["is_complete"] == (how != "late"), run.report["pointer_search"]
    sums = found_by_function(run.report)
    assert +sums["held"] == {"reachable": 16}, sums
    # A function of atexit that was registered before the first CUDA call runs after the search. An
    # object that Python has freed may have held what the function allocated.
    late = {"unknown": 1} if how == "late" else {}
    assert +sums["lost"] == {"lost": 1, **late}, sums


def test_nothing_is_called_lost_after_python_has_freed_its_objects(workspace):
    run = workspace.run_both(["python3", "-c", PYTHON, "cleared"])
    search = run.report["pointer_search"]
    assert not search["is_complete"]
    assert search["reason"].startswith("Python had freed its objects")
    assert +found_by_function(run.report)["lost"] == {"unknown": 1}


def test_the_search_brings_in_no_page(run_both):
    run = run_both([program("untouched_pages")])
    assert run.stdout == "mapped: 1, allocated: 2\n"
    assert run.report["pointer_search"]["is_complete"]


def test_the_search_leaves_no_memory_of_the_device_taken(run_both):
    run = run_both([program("full_pool")])
    assert run.report["pointer_search"]["is_complete"], run.report["pointer_search"]
    (device,) = run.report["devices"]
    assert device["used_bytes"] == run.last_line["used_bytes"]


def test_blocks_that_begin_a_slab_are_lost_if_the_slab_is_full_and_if_it_has_room(run_both):
    """The driver's records of a slab hold the address of its first block, and are no pointers to it."""
    run = run_both([program("lost_in_slabs")])
    facts = run.last_line
    assert facts["in_front"] >= 4
    assert run.report["pointer_search"]["is_complete"], run.report["pointer_search"]
    groups = run.report["leak_groups"]
    assert sum(group["count"] for group in groups) == facts["lost"]
    assert sum(group["lost_count"] for group in groups) == facts["lost"]


def test_stream_ordered_blocks_are_lost_though_a_memory_pool_lies_at_freed_addresses(run_both):
    """The search's own memory pool may begin where the program has freed memory. Its records name that
    address, too."""
    run = run_both([program("lost_beside_freed")])
    assert run.report["pointer_search"]["is_complete"], run.report["pointer_search"]
    # A value may still lie in a register or in a dead part of the stack.
    lost = sum(group["lost_count"] for group in run.report["leak_groups"])
    assert lost >= run.last_line["lost"] - 2, run.report["leak_groups"]


def test_mapped_memory_is_lost_although_the_driver_lists_the_ranges_of_addresses(run_both):
    run = run_both([program("lost_ranges")])
    groups = run.report["leak_groups"]
    assert sum(group["lost_count"] for group in groups) == run.last_line["lost"], groups


def test_a_cache_is_reachable_and_what_lies_beside_it_is_lost(run_shimmed, cuwarden):
    run = run_shimmed([sample("reachable_cache")])
    cached, lost = run.last_line["leaked"]
    (group,) = run.report.check_leak(cached)
    assert group["reachability"] == "reachable" and group["reachable_count"] == cached["count"]
    (group,) = run.report.check_leak(lost)
    assert group["reachability"] == "lost" and group["lost_count"] == lost["count"]
    text = cuwarden("report", run.report.path).stdout
    assert "LOST: 8.0 MiB in 8 allocations, since no pointer to them was found" in text
    # Lost memory is listed first.
    assert text.index(" · lost\n") < text.index(" · reachable\n")


@pytest.mark.parametrize(
    "options, line, status",
    [
        ([], "FAIL: 2 leaks: reachable_cache.cpp", 1),
        (["=all"], "FAIL: 2 leaks: reachable_cache.cpp", 1),
        (["=lost"], "FAIL: 2 leaks, 1 lost: reachable_cache.cpp", 1),
    ],
)
def test_a_check_fails_on_lost_memory_alone_if_it_is_asked_to(run_shimmed, cuwarden, options, line, status):
    run = run_shimmed([sample("reachable_cache")])
    done = cuwarden("report", "--fail-on-leak" + "".join(options), run.report.path)
    assert done.returncode == status and done.stdout.splitlines()[-1].startswith(line), done.stdout


def test_reachable_memory_alone_passes_the_check_for_lost_memory(run_shimmed, cuwarden, workspace):
    run = run_shimmed([sample("reachable_cache")])
    data = json.loads(run.report.path.read_text())
    for group in data["leak_groups"]:
        group["reachable_count"], group["lost_count"], group["lost_bytes"] = group["count"], 0, 0
        group["reachable_bytes"] = group["bytes"]
    (workspace.work / "kept.json").write_text(json.dumps(data))
    done = cuwarden("report", "--fail-on-leak=lost", workspace.work / "kept.json")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "OK: 2 leaks, none lost")
    done = cuwarden("report", "--fail-on-leak=some", workspace.work / "kept.json")
    assert done.returncode == 2
    assert done.stderr == (
        "cuwarden: report: --fail-on-leak: takes lost or all, not 'some'; see cuwarden report --help\n"
    )


def test_without_a_search_a_check_for_lost_memory_fails_and_says_why(run_shimmed, cuwarden):
    run = run_shimmed([sample("reachable_cache")], {"CUWARDEN_REACHABILITY": "off"})
    assert run.report["pointer_search"] is None
    assert all(group["reachability"] is None for group in run.report["leak_groups"])
    done = cuwarden("report", "--fail-on-leak=lost", run.report.path)
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1].startswith("FAIL: 2 leaks, none lost (not known of 16.0 MiB in 16 allocations)")
    assert "no search for pointers was made" in done.stdout.splitlines()[-1]
