// What PTX text says of its kernels, as far as memory is concerned.
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

// The kernels by name; nothing where the image is not PTX text (a cubin, a fat binary).
std::optional<std::map<std::string, PtxKernel>> read_ptx(const void* image);

}  // namespace cuwarden::simulated_gpu
