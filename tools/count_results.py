"""Prints the tests and benchmarks that failed in build folders, and the counts of results: `N passed, N
failed, N skipped`. Ends with status 1 if a test or a benchmark failed, or none passed.

Each test inside a test program is counted. Meson's log has those of GoogleTest; pytest writes a file for
each of its runs into BUILD/test-results.

usage: count_results.py BUILD...
"""

import json
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

LONG_S = 60  # seconds after which a test program is reported as slow; fuzzers and benchmarks are not
MESON_RESULTS = {"OK": "passed", "EXPECTEDFAIL": "passed", "SKIP": "skipped"}


def outcome_of(case):
    """Returns "passed", "failed" or "skipped" for a test case, an element of a JUnit file."""
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    if case.find("skipped") is not None or case.get("status") == "notrun":
        return "skipped"
    return "passed"


def cases_in(file):
    """Returns the test cases of a JUnit file; empty if there is no such file."""
    if not file.exists():
        return []
    return list(ElementTree.parse(file).getroot().iter("testcase"))


def gtest_cases(build, test):
    """Returns the test cases inside a test program of GoogleTest; empty if the log has none.

    `build` is the build folder, `test` the program's name in Meson's log, PROJECT:SUITES / NAME. The log names
    the suites of its cases PROJECT.TEST.SUITE.
    """
    log = build / "meson-logs" / "testlog.junit.xml"
    if not log.exists():
        return []
    project = test.partition(":")[0]
    return [
        case
        for suite in ElementTree.parse(log).getroot().iter("testsuite")
        if suite.get("name", "").startswith(f"{project}.{test}.")
        for case in suite.iter("testcase")
    ]


def count(build):
    """Returns a Counter with the keys passed, failed and skipped: the tests and benchmarks, counted together,
    of a build folder's last run. Without a run, one test counts as failed.

    Prints failed tests to stdout. Prints test programs that took longer than LONG_S seconds to stderr, but for
    fuzzers and benchmarks.
    """
    log = build / "meson-logs" / "testlog.json"
    if not log.exists():
        print(f"{build}: no test has run: counted as one that failed", file=sys.stderr)
        return Counter(failed=1)
    benchmarks = log.with_name("benchmarklog.json")
    lines = log.read_text().splitlines() + (benchmarks.read_text().splitlines() if benchmarks.exists() else [])
    total = Counter()
    for line in lines:
        test = json.loads(line)
        suites, _, name = test["name"].rpartition(" / ")
        result = MESON_RESULTS.get(test["result"], "failed")
        suite = suites.rpartition(":")[2]
        cases = cases_in(build / "test-results" / f"{suite}-{name}.xml")
        cases = cases or gtest_cases(build, test["name"])
        counts = Counter(map(outcome_of, cases)) or Counter({result: 1})
        for case in cases:
            if outcome_of(case) == "failed":
                print(f"{build}: {name}: {case.get('classname')}.{case.get('name')} failed")
        if test["duration"] > LONG_S and suite not in ("fuzz", "bench"):
            print(f"{name} took {test['duration']:.0f} s", file=sys.stderr)
        # A program that died before it could say which of its tests failed.
        if result == "failed" and counts["failed"] == 0:
            counts["failed"] = 1
        if result == "failed" and "failed" not in map(outcome_of, cases):
            print(f"{build}: {name} failed")
        total += counts
    return total


def main():
    total = sum((count(Path(build)) for build in sys.argv[1:]), Counter())
    print(f"{total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped")
    return 1 if total["failed"] or not total["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
