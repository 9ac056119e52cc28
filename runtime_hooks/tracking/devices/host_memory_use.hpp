// Reads how much host memory the process holds, and how much the host has left.
#pragma once

#include <cstdint>

namespace cuwarden::tracking {

// Returns the bytes of host memory that the process holds (resident set, from /proc/self/statm); 0
// if the file cannot be read.
std::uint64_t host_memory_in_use() noexcept;
// Returns the bytes of host memory that programs can have without swapping, page cache included
// (MemAvailable of /proc/meminfo); 0 if the file cannot be read.
std::uint64_t host_memory_available() noexcept;

}  // namespace cuwarden::tracking
