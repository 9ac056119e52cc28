"""A pytest plugin that names the tests whose GPU memory leaks.

    cuwarden run --fail-on-leak=all python3 -m pytest -p cuwarden_pytest

Each test is a step of the recording, with the test's node id as its name. The report, which is made when
pytest has ended, says of each leak in which tests its allocations were made. In a process that does not
run under cuwarden, the plugin does nothing.

A test lasts from the set-up of its fixtures to the end of their tear-down. Allocations of a fixture of a
module or of the session belong to the first test that uses it. Allocations between tests, such as during
collection, belong to none. A process that a test forks goes on in the test.
"""

import pytest

import cuwarden


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    cuwarden.step(item.nodeid)
    yield
    cuwarden.step("")
