// Reads from PTX text how much device memory its kernels and variables need.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>

namespace cuwarden::simulated_gpu {

// Memory that one kernel (an .entry of a PTX text) needs when it runs.
struct PtxKernel {
  // Bytes of local memory that the kernel declares for each of its threads, without the local
  // memory of functions that the kernel calls.
  std::size_t local_bytes = 0;
  bool uses_heap = false;  // True if the kernel calls the device-side malloc.
};

// Kernels that one PTX text declares, and device memory that its variables need.
struct PtxCode {
  std::map<std::string, PtxKernel> kernels;  // By the kernel's name, mangled as in the text.
  std::size_t global_bytes = 0;              // Bytes of all variables in global memory together.
};

// Returns the kernels of a code image and the device memory that its code needs. Returns null if
// the image is not PTX text but, for example, a cubin or a fat binary. `image`: the pointer that
// the program gives to cuModuleLoadData, or the contents of the file of cuModuleLoad; PTX text ends
// with a null byte.
std::optional<PtxCode> read_ptx(const void* image);

}  // namespace cuwarden::simulated_gpu
