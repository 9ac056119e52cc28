"""Compares native stacks in a Python process: of the interpreter, of C extensions and the functions that
they call back, and of threads.

The process runs with a library preloaded (probe.hpp) whose getppid() compares the walks of its caller's
stack. The process fails at its end if the walks of a stack differed.
"""

import bisect
import ctypes
import functools
import json
import os
import re
import sqlite3
import threading


def compare(*_):
    return os.getppid()


def deep(levels, work=compare):
    return work() if levels == 0 else deep(levels - 1, work)


class Compares:
    def __lt__(self, other):
        compare()
        return id(self) < id(other)

    def __del__(self):
        compare()


def by_extensions():
    json.loads('{"a": [1, 2, {"b": 3}]}', object_hook=lambda found: compare() and found)
    re.sub("[a-c]", lambda found: str(compare()), "abcabc")
    database = sqlite3.connect(":memory:")
    database.create_function("look", 1, compare)
    database.execute("select look(1), look(2)").fetchall()
    functools.reduce(lambda a, b: compare(), range(5))
    sorted(Compares() for _ in range(5))
    bisect.insort([Compares() for _ in range(3)], Compares())
    in_c = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    numbers = (ctypes.c_int * 8)(*range(8))
    ctypes.CDLL(None).qsort(numbers, 8, 4, in_c(lambda a, b: compare() & 1))


def main():
    count = 2000 if os.environ.get("LARGE_COUNTS") else 20
    for times in range(count):
        deep(times % 30)
        deep(times % 7, by_extensions)
    threads = [threading.Thread(target=deep, args=(20, by_extensions)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


main()
