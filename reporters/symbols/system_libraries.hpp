// The libraries of the system itself. Distributions ship them without debug information, and leaks
// are not looked for in them: a report is complete without their names.
#pragma once

#include <string_view>

namespace cuwarden {

// True if the file name is that of a library of glibc, of GCC's or Clang's runtime, or of CUDA, or
// of the vDSO.
bool is_system_library(std::string_view module_path) noexcept;

}  // namespace cuwarden
