// The baseline: a file of known leaks that a team keeps with its sources. It has a line for each
// fingerprint. It has no host, path, line number or time, so that it changes only if the leaks do.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "reporters/comparison/leaks_by_fingerprint.hpp"

namespace cuwarden {

// Returns the text of a baseline with these leaks: a heading, then a line for each leak, sorted by
// fingerprint, such as
//
//     6c62272e07bb0142 count=3 bytes=3145728  # device cudaMalloc: Cache::insert in libcache.so
std::string baseline_text(const LeaksByFingerprint&);

// Parses the text of a baseline. After the heading, blank lines and lines that begin with '#' are
// ignored. If a fingerprint occurs twice, as after a merge of two branches, the larger figures
// count. Returns null, with `error` set to one line that begins with `path`, if the text has no
// heading or a line is malformed. `path`: path of the file.
std::optional<LeaksByFingerprint> parse_baseline(std::string_view text, const std::string& path,
                                                 std::string& error);

}  // namespace cuwarden
