// Links the driver, and is opened with RTLD_DEEPBIND: its calls then prefer its own dependencies to
// anything preloaded.
#include <cuda.h>

extern "C" [[gnu::visibility("default")]] int deepbound_allocate(unsigned long bytes) {
  CUdeviceptr memory = 0;
  return static_cast<int>(cuMemAlloc(&memory, bytes));
}
