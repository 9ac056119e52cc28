// Reads the baseline that a person named on a command line.
#pragma once

#include <optional>
#include <string>

#include "reporters/comparison/leaks_by_fingerprint.hpp"

namespace cuwarden {

// Reads the baseline at the path. Returns null after an error line.
std::optional<LeaksByFingerprint> read_baseline(const std::string& path);

}  // namespace cuwarden
