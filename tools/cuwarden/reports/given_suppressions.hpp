// Reads the file of suppressions that a person named on a command line.
#pragma once

#include <string>
#include <vector>

#include "reporters/model/report.hpp"

namespace cuwarden {

// Reads the file of suppressions at `path`, and sets `patterns` to its patterns. Returns false if
// the file cannot be read or one of its lines is no rule; prints an error line about each.
bool read_suppressions(const std::string& path, std::vector<std::string>& patterns);

// Suppresses leaks of the report that the patterns match, in addition to the report's own
// suppressions.
void suppress_leaks(model::Report&, const std::vector<std::string>& patterns);

}  // namespace cuwarden
