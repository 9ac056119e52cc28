"""Stands in for a profiler: it is the one CUPTI subscriber that a process may have, and counts the
driver's allocating calls as CUPTI sees them."""

import collections
import ctypes
import glob
import os
import sys

import figures

DRIVER_API = 1  # CUPTI_CB_DOMAIN_DRIVER_API.


class CallbackData(ctypes.Structure):
    _fields_ = [("site", ctypes.c_int), ("function_name", ctypes.c_char_p)]


def load_cupti():
    folders = [
        "/usr/local/cuda/extras/CUPTI/lib64",
        "/usr/local/cuda/lib64",
        *glob.glob(os.path.join(sys.prefix, "lib/python3*/site-packages/nvidia/*/lib")),
    ]
    for folder in folders:
        for path in glob.glob(os.path.join(folder, "libcupti.so.*")):
            return ctypes.CDLL(path)
    return None


cupti = load_cupti()
if cupti is None:
    print("no CUPTI")
    sys.exit(0)

calls = collections.Counter()


@ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.c_void_p)
def count(_user, _domain, _id, data):
    call = ctypes.cast(data, ctypes.POINTER(CallbackData)).contents
    if call.site == 0:
        calls[call.function_name.decode()] += 1


driver = ctypes.CDLL("libcuda.so.1")
context = ctypes.c_void_p()
assert driver.cuInit(0) == 0
subscriber, second = ctypes.c_void_p(), ctypes.c_void_p()
print("subscribe", cupti.cuptiSubscribe(ctypes.byref(subscriber), count, None))
print("subscribe again", cupti.cuptiSubscribe(ctypes.byref(second), count, None))
print("enable", cupti.cuptiEnableDomain(1, subscriber, DRIVER_API))
assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert driver.cuCtxSetCurrent(context) == 0

pointer = ctypes.c_uint64()
for _ in range(10):
    assert driver.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(4 << 20)) == 0
    assert driver.cuMemFree_v2(pointer) == 0
figures.plant_leaks()
figures.plant_through_ctypes()
for name in ("cuMemAlloc_v2", "cuMemFree_v2", "cuMemHostAlloc"):
    print(name, calls[name])
print("unsubscribe", cupti.cuptiUnsubscribe(subscriber))
figures.end({})
