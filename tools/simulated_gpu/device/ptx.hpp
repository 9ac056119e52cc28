// Reads from PTX text how much memory its kernels and variables need.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>

namespace cuwarden::simulated_gpu {

struct PtxKernel {
  // Bytes per thread of the entry itself, without functions that it calls.
  std::size_t local_bytes = 0;
  bool uses_heap = false;  // True if the kernel calls the device-side malloc.
};

struct PtxCode {
  std::map<std::string, PtxKernel> kernels;  // Kernels by name.
  std::size_t global_bytes = 0;              // Bytes of the variables on the device.
};

// Returns the parsed image; none if it is not PTX text (a cubin, a fat binary).
std::optional<PtxCode> read_ptx(const void* image);

}  // namespace cuwarden::simulated_gpu
