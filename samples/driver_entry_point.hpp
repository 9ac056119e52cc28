// Finds functions of the driver without linking libcuda: through the runtime, at a fixed CUDA
// version. So the function has the type that the caller names, whatever toolkit or driver is
// installed.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "samples/planted_leaks.hpp"

namespace sample {

// Returns the driver's function `name` in the form that it has in CUDA `version` (12020 is 12.2).
// If the driver has no such function, ends the program with status 1 and one line on stderr.
// `Function`: type of a pointer to the function.
template <typename Function>
Function driver_entry_point(const char* name, unsigned int version) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult status{};
#if CUDART_VERSION >= 12050
  require(cudaGetDriverEntryPointByVersion(name, &found, version, cudaEnableDefault, &status),
          name);
#else
  // cudaGetDriverEntryPointByVersion is new in 12.5. Before, only the driver's lookup takes a
  // version.
  using Lookup =
      CUresult (*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);
  void* lookup = nullptr;
  require(cudaGetDriverEntryPoint("cuGetProcAddress", &lookup, cudaEnableDefault, &status),
          "cuGetProcAddress");
  reinterpret_cast<Lookup>(lookup)(name, &found, static_cast<int>(version), 0, nullptr);
#endif
  if (found == nullptr) {
    std::fprintf(stderr, "the CUDA driver has no %s\n", name);
    std::exit(1);
  }
  return reinterpret_cast<Function>(found);
}

// If `result` is an error of the driver, ends the program with status 1 and one line on stderr.
// `what`: name of the call that gave the result.
inline void require(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "%s failed: driver error %d\n", what, static_cast<int>(result));
  std::exit(1);
}

}  // namespace sample
