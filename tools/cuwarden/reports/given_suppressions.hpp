// Reads the file of suppressions that a person named on a command line.
#pragma once

#include <string>
#include <vector>

namespace cuwarden {

// Reads a file of suppressions; sets `patterns` to its patterns. Returns false after an error line
// for the file, or for each line that is no rule.
bool read_suppressions(const std::string& path, std::vector<std::string>& patterns);

}  // namespace cuwarden
