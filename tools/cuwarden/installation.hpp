// Where the parts of cuwarden lie, seen from the command's own file: a build folder, an install
// prefix, or one folder that holds everything.
#pragma once

#include <optional>
#include <string>

namespace cuwarden {

std::optional<std::string> find_shim();           // libcuwarden.so
std::optional<std::string> find_simulated_gpu();  // folder of libcuda.so.1 and the others

}  // namespace cuwarden
