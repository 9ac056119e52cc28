"""CuPy: kernels, a reduction, a product and a sort, with its pool or with stream-ordered memory."""

import sys

import cupy
import figures

if "async" in sys.argv:
    pool = cupy.cuda.MemoryAsyncPool()
    cupy.cuda.set_allocator(pool.malloc)
else:
    pool = cupy.get_default_memory_pool()

square = cupy.ElementwiseKernel("int64 x", "int64 y", "y = x * x % 1000003", "square")


def work():
    x = cupy.arange(1 << 21, dtype=cupy.int64)
    y = square(x)
    print("sum", int(y.sum()), "sorted", int(cupy.sort(y)[12345]))
    a = (cupy.arange(512 * 512, dtype=cupy.float64) % 7).reshape(512, 512)
    print("product", float((a @ a.T).sum()))  # The values are whole numbers: exact in any order.
    return y, a


kept = work()
kept_too = [cupy.zeros(size, dtype=cupy.uint8) for size in (2 << 20, 24 << 20, 700)]
cupy.cuda.Device().synchronize()
figures.plant_leaks()
figures.plant_through_ctypes()
cupy.cuda.Device().synchronize()
figures.end({"used_by_pool_bytes": pool.used_bytes(), "total_bytes": pool.total_bytes()})
