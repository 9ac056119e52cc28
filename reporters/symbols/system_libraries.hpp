// The libraries of the system itself. Distributions ship them without debug information, and leaks
// are not looked for in them: a report is complete without their names.
#pragma once

#include <string_view>

namespace cuwarden {

// By file name: glibc's own libraries, those of GCC's and Clang's runtimes, the vDSO, and CUDA's.
bool is_system_library(std::string_view module_path) noexcept;

}  // namespace cuwarden
