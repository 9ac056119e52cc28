// Finds the installed parts of cuwarden, by the path of the `cuwarden` command's own file. The
// parts may lie in a build folder, in an install prefix (bin, lib), or all in one folder.
#pragma once

#include <optional>
#include <string>

namespace cuwarden {

// Returns the path of the installed libcuwarden.so, the library to preload into programs. Searches
// the folder of the `cuwarden` command's own file, and the lib folders beside that folder. Null if
// none has the library.
std::optional<std::string> find_shim();
// Returns the path of the folder with the simulated GPU's libraries, such as its libcuda.so.1,
// without a slash at the end; null if it is not found.
std::optional<std::string> find_simulated_gpu();

}  // namespace cuwarden
