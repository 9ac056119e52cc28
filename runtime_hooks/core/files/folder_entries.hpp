// The names in a folder, read without libc's opendir(), which allocates from the host's heap.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace cuwarden {

// Calls visit(name) for each entry of a folder, "." and ".." included, until visit returns false.
// `name` is a C string that is valid during the call. `descriptor`: number of the folder's
// descriptor, open for reading, which stays open. It must be newly opened, since entries are read
// from its present position on. Returns false if the folder could not be read; true if all entries
// were visited, or if visit returned false.
template <class Visit>
bool each_folder_entry(int descriptor, const Visit& visit) {
  constexpr std::size_t name_at = 19;  // offset in bytes of d_name in the kernel's linux_dirent64
  alignas(std::uint64_t) char buffer[16 * 1024];
  for (;;) {
    const long count = syscall(SYS_getdents64, descriptor, buffer, sizeof buffer);
    if (count <= 0) return count == 0;
    for (std::size_t at = 0; at + name_at < static_cast<std::size_t>(count);) {
      std::uint16_t bytes = 0;
      std::memcpy(&bytes, buffer + at + 16, sizeof bytes);
      if (bytes == 0) return false;
      if (!visit(static_cast<const char*>(buffer + at + name_at))) return true;
      at += bytes;
    }
  }
}

}  // namespace cuwarden
