// What PTX text says of its kernels and variables, as far as memory is concerned.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>

namespace cuwarden::simulated_gpu {

struct PtxKernel {
  std::size_t local_bytes = 0;  // per thread, of the entry itself; not of functions that it calls
  bool uses_heap = false;       // it calls the device-side malloc
};

struct PtxCode {
  std::map<std::string, PtxKernel> kernels;  // by name
  std::size_t global_bytes = 0;              // of the variables on the device
};

// Nothing where the image is not PTX text (a cubin, a fat binary).
std::optional<PtxCode> read_ptx(const void* image);

}  // namespace cuwarden::simulated_gpu
