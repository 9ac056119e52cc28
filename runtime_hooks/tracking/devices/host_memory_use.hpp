// Reads how much host memory the process holds.
#pragma once

#include <cstdint>

namespace cuwarden::tracking {

// Returns the bytes of host memory that the process holds (resident set, from /proc/self/statm); 0
// if the file cannot be read.
std::uint64_t host_memory_in_use() noexcept;

}  // namespace cuwarden::tracking
