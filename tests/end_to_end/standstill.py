"""Runs a failed test again if the machine stood still during the test.

A virtual machine may not be scheduled for a second, or disks may block it. Tests that depend on time
then fail without a fault. A thread that sleeps briefly, again and again, notices such a moment. If there
was none, the test is not run again.
"""

import threading
import time

import pytest
from _pytest.runner import runtestprotocol

SLEEP_S = 0.05
LONGEST_S = 0.4  # a sleep that takes longer is a standstill
ATTEMPTS = 3  # most runs of a test


class Watch:
    """Notices when the machine stands still during a run of pytest, by a thread that sleeps briefly again
    and again.
    """

    def __init__(self):
        self.standstills = []  # length of each, in seconds
        self.repeated = []
        threading.Thread(target=self.watch, daemon=True).start()

    def watch(self):
        before = time.monotonic()
        while True:
            time.sleep(SLEEP_S)
            now = time.monotonic()
            if now - before > LONGEST_S:
                self.standstills.append(now - before)
            before = now


KEY = pytest.StashKey[Watch]()


def pytest_configure(config):
    config.stash[KEY] = Watch()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    watch = item.config.stash[KEY]
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for attempt in range(1, ATTEMPTS + 1):
        before = len(watch.standstills)
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        # Waits until the watching thread has had time to notice a standstill.
        time.sleep(2 * SLEEP_S if any(report.failed for report in reports) else 0)
        still = watch.standstills[before:]
        if not any(report.failed for report in reports) or not still or attempt == ATTEMPTS:
            break
        watch.repeated.append(f"{item.nodeid}: the machine stood still for {max(still):.1f} s")
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def pytest_terminal_summary(terminalreporter, config):
    for line in config.stash[KEY].repeated:
        terminalreporter.write_line(f"failed and run again: {line}")
