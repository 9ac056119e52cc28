// The third-party library of library_leak: built without debug info, stripped, and with only its
// three functions exported. vendor_filter_apply() allocates a work space on each call and forgets
// the one before.
#include "samples/libraries/vendor_filter.hpp"

#include <cuda_runtime_api.h>

#define VENDOR_EXPORT [[gnu::visibility("default")]]

namespace {
void* tables = nullptr;
void* work = nullptr;
}  // namespace

extern "C" {

VENDOR_EXPORT int vendor_filter_open() {
  if (cudaMalloc(&tables, std::size_t{64} << 10) != cudaSuccess) return -1;
  return 0;
}

VENDOR_EXPORT int vendor_filter_apply(std::size_t bytes) {
  work = nullptr;  // The work space of the previous call is forgotten, not freed.
  if (cudaMalloc(&work, bytes) != cudaSuccess) return -1;
  return cudaMemset(work, 0, bytes) == cudaSuccess ? 0 : -1;
}

VENDOR_EXPORT int vendor_filter_close() {
  const cudaError_t result = cudaFree(tables);
  tables = nullptr;
  return result == cudaSuccess ? 0 : -1;
}

}  // extern "C"
