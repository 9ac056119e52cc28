// Recognises libraries of the system. Distributions ship them without debug information, and users
// do not look for leaks in them. So a report without the names of their functions counts as
// complete.
#pragma once

#include <string_view>

namespace cuwarden {

// True if the path is that of a system library: the vDSO, a usual library of glibc, libgcc_s,
// libgomp, libstdc++, libc++, libc++abi, libcuda, libcudart, a library libnvidia-*, or cuwarden's
// shared object. False for other libraries of CUDA, such as libcublas.
bool is_system_library(std::string_view module_path) noexcept;

}  // namespace cuwarden
