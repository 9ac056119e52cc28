// Recognises libraries of the system. Distributions ship them without debug information, and users
// do not look for leaks in them. So a report without the names of their functions counts as
// complete.
#pragma once

#include <string_view>

namespace cuwarden {

// True if the path is that of a system library: the vDSO, or a library of glibc, of the runtime of
// GCC or Clang, of CUDA, or of cuwarden.
bool is_system_library(std::string_view module_path) noexcept;

}  // namespace cuwarden
