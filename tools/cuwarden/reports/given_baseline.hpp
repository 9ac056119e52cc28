// Reads the baseline that a person named on a command line.
#pragma once

#include <optional>
#include <string>

#include "reporters/comparison/leaks_by_fingerprint.hpp"

namespace cuwarden {

// Reads the baseline, a list of known leaks, in the file at `path`. Returns null after an error
// line if it cannot be read.
std::optional<LeaksByFingerprint> read_baseline(const std::string& path);

}  // namespace cuwarden
