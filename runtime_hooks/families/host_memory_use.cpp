// Reads /proc/self/statm without stdio, malloc or a descriptor that stays open.
#include "runtime_hooks/families/host_memory_use.hpp"

#include <fcntl.h>
#include <unistd.h>

#include "runtime_hooks/core/uncancelled.hpp"

namespace cuwarden::families {

std::uint64_t host_memory_in_use() noexcept {
  const Uncancelled keep;
  const int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char text[128];
  const ssize_t length = read(fd, text, sizeof text);
  close(fd);
  // "size resident shared …", in pages.
  std::uint64_t pages = 0;
  ssize_t i = 0;
  while (i < length && text[i] != ' ') ++i;
  for (++i; i < length && text[i] >= '0' && text[i] <= '9'; ++i)
    pages = pages * 10 + static_cast<std::uint64_t>(text[i] - '0');
  return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace cuwarden::families
