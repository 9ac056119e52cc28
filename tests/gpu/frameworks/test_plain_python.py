"""Python without a framework: the base of the planted leaks in all frameworks' programs."""

import pytest

from framework_checks import needs, run_to_figures, run_to_natural_end
from preloaded import SIMULATED

pytestmark = needs()


def test_planted_leaks_are_reported_with_their_stacks(workspace):
    run = run_to_figures(workspace, "plain_python.py")
    if not SIMULATED:
        assert f"sum {7 * (4 << 20)}" in run.output
    live = {kind: row["live_bytes"] for kind, row in run.report.totals().items()}
    planted = {}
    for fact in run.fact_lines:
        planted[fact["kind"]] = planted.get(fact["kind"], 0) + fact["bytes"]
    assert live == planted


@pytest.mark.alone
def test_live_bytes_are_what_the_device_lost(workspace):
    run = run_to_natural_end(workspace, "plain_python.py")
    size = run.report.live(["device"])[1]
    # Each request above 1 MiB is rounded up to pages of 2 MiB.
    assert size <= run.figures["taken_bytes"] <= size + (2 << 20) * run.report.live(["device"])[0]
