// Reads the file of suppressions that a person named on a command line.
#pragma once

#include <string>
#include <vector>

#include "reporters/model/report.hpp"

namespace cuwarden {

// Reads a file of suppressions; sets `patterns` to its patterns. Returns false after an error line
// for the file, or for each line that is no rule.
bool read_suppressions(const std::string& path, std::vector<std::string>& patterns);

// Suppresses leaks of the report by these patterns, beside those of the report itself.
void suppress_leaks(model::Report&, const std::vector<std::string>& patterns);

}  // namespace cuwarden
