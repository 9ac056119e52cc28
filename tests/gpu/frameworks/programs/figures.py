"""Shared by all frameworks' programs: plants leaks of known size and source line, prints the
framework's own figures of memory last, and ends as the caller asks.

"planted:" lines are facts that a report must contain; a "memory:" line may differ between runs.
"""

import ctypes
import json
import os
import sys

PINNED_BYTES = 3_141_592
DRIVER_BYTES = 7_654_321
RUNTIME_BYTES = 5_432_109
CTYPES_BYTES = 9_876_543


def plant_leaks(extra_bytes=0):
    """Leaks memory through the planted library. `extra_bytes` are added to each leak, to tell the
    leaks of processes apart."""
    library = ctypes.CDLL(os.environ["PLANTED_LEAK"])
    for function, size, count, api, kind in (
        ("planted_driver_leak", DRIVER_BYTES, 3, "cuMemAlloc_v2", "device"),
        ("planted_runtime_leak", RUNTIME_BYTES, 2, "cudaMalloc", "device"),
        ("planted_pinned_leak", PINNED_BYTES, 1, "cuMemHostAlloc", "pinned"),
    ):
        _plant(library, function, size + extra_bytes, count, api, kind)


def plant_through_ctypes():
    """Leaks memory by a call from Python's own foreign function interface, without a library
    between. Needs a current context in this thread."""
    driver = ctypes.CDLL("libcuda.so.1")
    pointer = ctypes.c_uint64()
    result = driver.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(CTYPES_BYTES))
    assert result == 0, result
    _say({"api": "cuMemAlloc_v2", "kind": "device", "function": None, "line": None, "count": 1,
          "bytes": CTYPES_BYTES, "script": os.path.basename(sys.argv[0])})


def _plant(library, function, size, count, api, kind):
    for _ in range(count):
        result = getattr(library, function)(ctypes.c_size_t(size))
        if result == -1:  # The library finds no libcudart in this process.
            print(f"{function}: not in this process")
            return
        assert result == 0, (function, result)
    line = ctypes.c_int.in_dll(library, function + "_line").value
    _say({"api": api, "kind": kind, "function": function, "line": line, "count": count,
          "bytes": count * size})


def _say(fact):
    print("planted: " + json.dumps(fact))


def used_bytes():
    """Returns the bytes in use on device 0, by cuMemGetInfo; None without a current context in this
    thread."""
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    driver = ctypes.CDLL("libcuda.so.1")
    if driver.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)) != 0:
        return None
    return total.value - free.value


def end(figures):
    """Prints the figures as the last act.

    `--end _exit` ends the process at once, so that live memory is as the figures say. Otherwise the
    interpreter and the framework tidy up as they always do.
    """
    print("memory: " + json.dumps({**figures, "used_bytes": used_bytes()}))
    sys.stdout.flush()
    sys.stderr.flush()
    if "_exit" in sys.argv:
        os._exit(0)
