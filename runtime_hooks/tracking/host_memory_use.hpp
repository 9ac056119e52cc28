// Reads how much host memory the process holds.
#pragma once

#include <cstdint>

namespace cuwarden::tracking {

// Resident set in bytes, from /proc/self/statm; 0 where it cannot be read.
std::uint64_t host_memory_in_use() noexcept;

}  // namespace cuwarden::tracking
