// Finds the parts of cuwarden from the path of the command's own file. It may lie in a build
// folder, in an install prefix, or in one folder with all parts.
#pragma once

#include <optional>
#include <string>

namespace cuwarden {

// Returns the path of libcuwarden.so; null if it is not found.
std::optional<std::string> find_shim();
// Returns the folder of the simulated GPU's libraries, such as libcuda.so.1; null if it is not
// found.
std::optional<std::string> find_simulated_gpu();

}  // namespace cuwarden
