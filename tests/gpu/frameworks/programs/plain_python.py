"""No framework: Python calls the driver by ctypes."""

import ctypes

import figures

driver = ctypes.CDLL("libcuda.so.1")
context = ctypes.c_void_p()
assert driver.cuInit(0) == 0
assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert driver.cuCtxSetCurrent(context) == 0

pointer = ctypes.c_uint64()
size = 4 << 20
assert driver.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(size)) == 0
assert driver.cuMemsetD8_v2(pointer, 7, ctypes.c_size_t(size)) == 0
back = (ctypes.c_ubyte * size)()
assert driver.cuMemcpyDtoH_v2(back, pointer, ctypes.c_size_t(size)) == 0
print("sum", sum(bytes(back)))
assert driver.cuMemFree_v2(pointer) == 0
before = figures.used_bytes()
figures.plant_leaks()
figures.plant_through_ctypes()
figures.end({"taken_bytes": figures.used_bytes() - before})
