"""The report of each leak sample has the leaks that the sample itself prints."""

import pytest

from shimmed import DRIVEN_WITH_SLEEPS, sample
from test_situations import MIB, call_at, check_account, run_alike

SAMPLES = {
    "lost_on_throw": ["7", "70000"],
    "reachable_cache": ["5", "70000"],
    "library_leak": ["200", "7"],
    "context_reset": ["5", "4194304"],
    "pinned_leak": ["12", "262144"],
    "handle_leak": ["4", "3"],
}


@pytest.mark.parametrize("arguments", ["defaults", "given"])
@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_is_the_same_with_the_shim_and_its_leaks_are_reported(run_both, name, arguments):
    run = run_both([sample(name), *(SAMPLES[name] if arguments == "given" else [])])
    assert run.returncode == 0
    assert run.said == []
    assert run.ledgers == []
    facts = run.last_line["leaked"]
    assert facts and all(fact["count"] > 0 for fact in facts)
    run.report.check_leaks(facts)
    assert run.report["coverage"] == {"complete": True, "reasons": []}
    assert run.report["tool"]["complete"] is True


def test_lost_on_throw_counts_the_buffers_that_were_freed_too(run_shimmed):
    run = run_shimmed([sample("lost_on_throw"), "6", "1000"])
    assert run.report.totals() == {
        "device": {
            "allocations": 24,
            "allocated_bytes": 24 * 1000,
            "frees": 18,
            "failures": 0,
            "live_count": 6,
            "live_bytes": 6000,
            "peak_count": 6,
            "peak_bytes": 6000,
        }
    }


def test_context_reset_is_told_apart_from_leaks(run_shimmed):
    run = run_shimmed([sample("context_reset"), "3", "5000000"])
    assert run.report["leaks"] == {
        "bytes": 0,
        "count": 0,
        "suppressed_bytes": 0,
        "released_by_context_bytes": 2 * 3 * 5000000,
    }
    assert {group["released_by"] for group in run.report["leak_groups"]} == {"context"}
    assert run.report.totals()["device"]["live_bytes"] == 0


def test_pinned_leak_shows_growth_and_the_hosts_own_memory(run_shimmed):
    steps, step_bytes = 100, 512 << 10
    command = [sample("pinned_leak"), str(steps), str(step_bytes)]
    run = run_shimmed(command, preload=DRIVEN_WITH_SLEEPS)
    pinned, registered = run.last_line["leaked"]
    (group,) = run.report.check_leak(pinned)
    assert group["growth"] == "growing"
    # The leak grows evenly from the first step to the end.
    minutes = (run.report["process"]["end_ns"] - group["first_ns"]) / 60e9
    assert group["growth_bytes_per_minute"] == pytest.approx(steps * step_bytes / minutes, rel=0.05)
    (group,) = run.report.check_leak(registered)
    assert group["growth"] == "one_time" and group["growth_bytes_per_minute"] is None
    rss = [row for row in run.report["timeline"] if row["kind"] == "host_rss"]
    assert rss
    assert max(row["max_bytes"] for row in rss) >= run.last_line["host_bytes"]
    pinned_line = [row for row in run.report["timeline"] if row["kind"] == "pinned"]
    assert max(row["max_bytes"] for row in pinned_line) == pinned["bytes"]


def test_handle_leak_finds_handles_whose_ranges_are_gone(run_shimmed):
    run = run_shimmed([sample("handle_leak"), "5", "2"])
    assert {group["kind"] for group in run.report.leaks()} == {"vmm"}
    totals = run.report.totals()["vmm"]
    assert (totals["live_count"], totals["allocations"], totals["frees"]) == (7, 7, 0)


def test_pinned_churn_makes_a_buffer_for_each_step_and_the_report_counts_them(workspace, cuwarden):
    times = {"steps_ns", "longest_step_ns", "pinning_ns"}
    run = run_alike(workspace, [sample("pinned_churn"), "40", str(4 * MIB)], None, times)
    assert run.returncode == 0 and run.stderr == ""
    facts = run.last_line
    assert 0 < facts["pinning_ns"] < facts["steps_ns"]
    assert call_at("pinned_churn", "cudaMallocHost", facts["line"])
    check_account(run, "pinned", failed=None)
    total = run.report.totals()["pinned"]
    assert (total["allocations"], total["peak_count"]) == (facts["steps"], 1)
    assert total["peak_bytes"] == facts["bytes_a_step"] == facts["freed_bytes"] / facts["steps"]
    assert run.report["leaks"]["count"] == 0 and run.report["incidents"] == []
    (holder,) = [row for row in run.report["peak_holders"] if row["kind"] == "pinned"]
    (name, frame), *_ = run.report.functions(holder)
    assert (name, frame["line"]) == (facts["function"], facts["line"])
    assert (holder["count"], holder["allocations"]) == (1, facts["steps"])
    # Only parts of the outermost two steps lie outside the time between their allocations. The clock
    # that times allocations ticks every few milliseconds.
    tick_ns = 10_000_000
    between = holder["last_ns"] - holder["first_ns"]
    shortest = facts["steps_ns"] - 2 * facts["longest_step_ns"]
    assert shortest - tick_ns < between <= facts["steps_ns"] + tick_ns
    text = cuwarden("report", run.report.path).stdout
    assert "no leaks" in text and "40 made" in text
    assert "4.0 MiB in 1 allocation · pinned host memory · 40 made here between" in text


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_without_a_device_says_so_in_a_line(run_both, name):
    run = run_both([sample(name)], {"CUWARDEN_SIM_DEVICES": "0"})
    assert run.returncode == 1
    assert len(run.own_stderr.splitlines()) == 1
