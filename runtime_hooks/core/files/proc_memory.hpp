// Reads how much host memory the process holds, and how much the host has left. Reads files of
// /proc without stdio, malloc or a descriptor that stays open.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <string_view>

#include "runtime_hooks/core/files/meminfo.hpp"
#include "runtime_hooks/core/files/small_file.hpp"
#include "runtime_hooks/core/uncancelled.hpp"

namespace cuwarden {

// Returns the bytes of host memory that the process holds (resident set, from /proc/self/statm); 0
// if the file cannot be read.
inline std::uint64_t host_memory_in_use() noexcept {
  const Uncancelled keep;
  char buffer[128];
  std::string_view text = read_small_file("/proc/self/statm", buffer);
  // "size resident shared …", in pages.
  take_number(text);
  return take_number(text).value_or(0) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

// Returns the bytes of host memory that programs can have without swapping, page cache included
// (MemAvailable of /proc/meminfo); 0 if the file cannot be read.
inline std::uint64_t host_memory_available() noexcept {
  const Uncancelled keep;
  char buffer[1024];  // MemAvailable is the third line
  return meminfo_bytes(read_small_file("/proc/meminfo", buffer), "MemAvailable").value_or(0);
}

}  // namespace cuwarden
