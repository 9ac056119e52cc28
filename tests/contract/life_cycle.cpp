// The end of the process: handlers registered after cuInit may still call the driver; handlers
// registered before it get CUDA_ERROR_DEINITIALIZED. Without GoogleTest: the exit status is 0, or
// the number of the fact that did not hold.
#include <cuda.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/contract/numbered_facts.hpp"

namespace {

bool late_handler_ran = false;

void before_init() {
  std::size_t free = 0, total = 0;
  require(late_handler_ran, 1);
  require(cuMemGetInfo(&free, &total) == CUDA_ERROR_DEINITIALIZED, 2);
  require(cuInit(0) == CUDA_ERROR_DEINITIALIZED, 3);
  int version = 0;
  require(cuDriverGetVersion(&version) == CUDA_ERROR_DEINITIALIZED, 4);
}

void after_init() {
  std::size_t free = 0, total = 0;
  require(cuMemGetInfo(&free, &total) == CUDA_SUCCESS, 5);
  late_handler_ran = true;
}

}  // namespace

int main() {
  CUcontext context = nullptr, again = nullptr;
  CUdeviceptr address = 0;
  require(cuMemAlloc(&address, 4096) == CUDA_ERROR_NOT_INITIALIZED, 6);
  std::atexit(before_init);
  const CUresult started = cuInit(0);
  if (started == CUDA_ERROR_NO_DEVICE) _exit(77);
  require(started == CUDA_SUCCESS, 7);
  require(cuMemAlloc(&address, 4096) == CUDA_ERROR_INVALID_CONTEXT, 8);
  require(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS, 9);
  require(cuCtxSetCurrent(context) == CUDA_SUCCESS, 10);
  require(cuMemAlloc(&address, 4096) == CUDA_SUCCESS, 11);
  require(cuDevicePrimaryCtxReset(0) == CUDA_SUCCESS, 12);
  require(cuMemAlloc(&address, 4096) == CUDA_ERROR_CONTEXT_IS_DESTROYED, 13);
  require(cuDevicePrimaryCtxRetain(&again, 0) == CUDA_SUCCESS, 14);
  require(cuCtxSetCurrent(again) == CUDA_SUCCESS, 15);
  require(cuMemAlloc(&address, 4096) == CUDA_SUCCESS, 16);
  std::atexit(after_init);
  return 0;
}
