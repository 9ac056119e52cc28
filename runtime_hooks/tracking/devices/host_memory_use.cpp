// Reads files of /proc without stdio, malloc or a descriptor that stays open.
#include "runtime_hooks/tracking/devices/host_memory_use.hpp"

#include "runtime_hooks/core/files/meminfo.hpp"
#include "runtime_hooks/core/files/small_file.hpp"
#include "runtime_hooks/core/uncancelled.hpp"

namespace cuwarden::tracking {

std::uint64_t host_memory_in_use() noexcept {
  const Uncancelled keep;
  char buffer[128];
  std::string_view text = read_small_file("/proc/self/statm", buffer);
  // "size resident shared …", in pages.
  take_number(text);
  return take_number(text).value_or(0) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

std::uint64_t host_memory_available() noexcept {
  const Uncancelled keep;
  char buffer[1024];  // MemAvailable is the third line
  return meminfo_bytes(read_small_file("/proc/meminfo", buffer), "MemAvailable").value_or(0);
}

}  // namespace cuwarden::tracking
