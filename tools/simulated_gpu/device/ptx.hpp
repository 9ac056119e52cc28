// Reads from PTX text how much memory its kernels and variables need.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>

namespace cuwarden::simulated_gpu {

// Needs of one kernel (an .entry of the PTX text).
struct PtxKernel {
  // Bytes of local memory for each thread that the kernel itself declares, without functions that
  // the kernel calls.
  std::size_t local_bytes = 0;
  bool uses_heap = false;  // True if the kernel calls the device-side malloc.
};

// Needs of one PTX text.
struct PtxCode {
  std::map<std::string, PtxKernel> kernels;  // Kernels that the text declares, by name.
  std::size_t global_bytes = 0;              // Bytes of all variables in global memory.
};

// Returns the needs of a code image; null if the image is not PTX text but, for example, a cubin or
// a fat binary. `image`: the pointer that the program gives to cuModuleLoadData.
std::optional<PtxCode> read_ptx(const void* image);

}  // namespace cuwarden::simulated_gpu
