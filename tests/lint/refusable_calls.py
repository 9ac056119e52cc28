"""Compares the tables of docs/rescue-calls.md with cuda.h: each function whose documentation has
CUDA_ERROR_OUT_OF_MEMORY among its results is in one of them.

Contract tests that the tables name must be there and call the functions of the row: for the table "Never refused"
all of them, for other tables one of them.

usage: refusable_calls.py SOURCE_ROOT CUDA_INCLUDE_FOLDER
"""

import re
import sys
from pathlib import Path

DOCUMENT = "docs/rescue-calls.md"
ERROR = "CUDA_ERROR_OUT_OF_MEMORY"
TABLES = ("Served", "Never refused", "Not repeated")
NEVER_REFUSED = "Never refused"
COMMENT = re.compile(r"/\*\*(.*?)\*/\s*([^;{]*)", re.DOTALL)
DECLARATION = re.compile(r"CUresult\s+CUDAAPI\s+(cu[A-Z]\w*)\s*\(")
ROW = re.compile(r"^\| (cu[^|]*) \|(.*)\|$", re.MULTILINE)
FUNCTION = re.compile(r"\bcu[A-Z]\w*")
TEST_NAME = re.compile(r"`(\w+)\.([a-z]\w+_\w+)`")
TEST = re.compile(r"^TEST_F\((\w+), (\w+)\)(.*?)^\}", re.MULTILINE | re.DOTALL)
# Older headers lack functions, and document others differently.
OLDEST_COMPARED_BOTH_WAYS = 13000


def without_version(name):
    return re.sub(r"_v\d+$", "", name)


def documented(header):
    """Returns the names of functions whose documentation has the error, and complaints about other comments with it."""
    names, complaints = set(), []
    for comment, following in COMMENT.findall(header):
        if ERROR in comment:
            declared = DECLARATION.search(following)
            if declared:
                names.add(without_version(declared[1]))
            else:
                complaints.append(f"cuda.h: a comment with {ERROR} stands before no function: {following[:60].strip()}")
    return names, complaints


def rows_of(document):
    """Yields (table, functions, rest of the row) for each row of the tables."""
    for section in re.split(r"^## ", document, flags=re.MULTILINE)[1:]:
        title, _, text = section.partition("\n")
        for functions, rest in ROW.findall(text):
            yield title, FUNCTION.findall(functions), rest


def complaints_about_tests(rows, tests):
    for table, functions, rest in rows:
        called = set()
        for suite, name in TEST_NAME.findall(rest):
            if (suite, name) not in tests:
                yield f"{DOCUMENT}: there is no test {suite}.{name}"
                continue
            in_test = set(FUNCTION.findall(tests[suite, name])) & set(functions)
            if not in_test:
                yield f"{DOCUMENT}: {suite}.{name} calls no function of its row"
            called |= in_test
        for function in functions if table == NEVER_REFUSED else ():
            if function not in called:
                yield f"{DOCUMENT}: no test of its row calls {function}"


def complaints_about(header, document, tests):
    names, complaints = documented(header)
    rows = list(rows_of(document))
    listed = [function for _, functions, _ in rows for function in functions]
    complaints += [f"{DOCUMENT}: no table of this name: {table}" for table, _, _ in rows if table not in TABLES]
    complaints += [f"{DOCUMENT}: {name} is in two rows" for name in sorted(set(listed)) if listed.count(name) > 1]
    complaints += [f"{DOCUMENT} lacks {name}, which may lack memory by cuda.h" for name in sorted(names - set(listed))]
    (version,) = re.findall(r"^#define CUDA_VERSION (\d+)", header, re.MULTILINE)
    if int(version) >= OLDEST_COMPARED_BOTH_WAYS:
        complaints += [f"{DOCUMENT}: {name} never lacks memory by cuda.h" for name in sorted(set(listed) - names)]
    return complaints + list(complaints_about_tests(rows, tests)), len(names)


HEADER = """#define CUDA_VERSION 13000
/** \\return ::CUDA_SUCCESS, ::CUDA_ERROR_OUT_OF_MEMORY */
CUresult CUDAAPI cuMake(int *made);
/** \\return ::CUDA_SUCCESS, ::CUDA_ERROR_OUT_OF_MEMORY */
__CUDA_DEPRECATED CUresult CUDAAPI cuMake_v2(int *made);
/** \\return ::CUDA_SUCCESS */
CUresult CUDAAPI cuAsk(int made);
/** \\return
 * ::CUDA_ERROR_OUT_OF_MEMORY
 */
CUresult CUDAAPI cuKeep(int made);
"""
RIGHT = """
# Functions
## Served
| functions | need |
|---|---|
| cuMake | memory |
## Never refused
| functions | tests |
|---|---|
| cuKeep | `Facts.a_thing_that_is_kept` |
"""
TESTS = {("Facts", "a_thing_that_is_kept"): "{ cuKeep(1); }", ("Facts", "a_thing_that_is_made"): "{ cuMake(&made); }"}
WRONG = (
    ("| cuMake | memory |\n", ""),
    ("| cuMake |", "| cuMake, cuAsk |"),
    ("| cuMake |", "| cuMake, cuKeep |"),
    ("a_thing_that_is_kept", "a_thing_that_is_made"),
    ("a_thing_that_is_kept", "a_thing_that_is_gone"),
    ("## Served", "## Helped"),
)


def check_the_check():
    """Fails unless each wrong table is found, and the right one is not."""
    assert complaints_about(HEADER, RIGHT, TESTS) == ([], 2)
    for right, wrong in WRONG:
        document = RIGHT.replace(right, wrong)
        assert document != RIGHT
        assert complaints_about(HEADER, document, TESTS)[0], wrong
    older = HEADER.replace("13000", "12060")
    assert complaints_about(older, RIGHT.replace("| cuMake |", "| cuMake, cuNewer |"), TESTS)[0] == []
    newer = HEADER.replace("cuAsk(int made)", "cuAsk(int made);\n/** CUDA_ERROR_OUT_OF_MEMORY */ CUresult CUDAAPI cuNew()")
    assert complaints_about(newer, RIGHT, TESTS)[0] != []
    assert complaints_about(f"{HEADER}/** {ERROR} */\n#define NOTHING\n", RIGHT, TESTS)[0] != []


def main():
    check_the_check()
    root, include = map(Path, sys.argv[1:])
    tests = {
        (suite, name): body
        for path in sorted((root / "tests" / "contract").glob("*.cpp"))
        for suite, name, body in TEST.findall(path.read_text())
    }
    complaints, count = complaints_about((include / "cuda.h").read_text(), (root / DOCUMENT).read_text(), tests)
    if count < 40:
        sys.exit(f"only {count} functions of cuda.h in {include} have the error")
    print("\n".join(complaints) or f"{count} functions that may lack memory are in the tables")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
