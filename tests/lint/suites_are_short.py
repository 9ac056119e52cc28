"""Checks that no suite has a timeout above a minute, since a run takes as long as its longest suite.

A suite must end within its timeout on an idle machine. Meson kills it only after a multiple of that
(see tests/meson.build). The fuzzers are left out, since they run for a fixed time.

usage: suites_are_short.py BUILD
"""

import json
import subprocess
import sys

SECONDS = 60
OTHERS = {"fuzz"}


def main():
    done = subprocess.run(
        ["meson", "introspect", "--tests", sys.argv[1]], capture_output=True, text=True, check=True
    )
    tests = [
        test
        for test in json.loads(done.stdout)
        if not OTHERS & {suite.rpartition(":")[2] for suite in test["suite"]}
    ]
    assert tests, "no tests"
    long = [test for test in tests if not 0 < test["timeout"] <= SECONDS]
    for test in long:
        print(f"{test['name']}: a timeout of {test['timeout']} s, more than {SECONDS}: split it")
    return 1 if long else 0


if __name__ == "__main__":
    sys.exit(main())
