"""No suite may need more than a minute on an idle machine: what one waits for, all wait for.

The limit that Meson gives a test is a multiple of its timeout (see tests/meson.build). The fuzzers
run for a time of their own.

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
