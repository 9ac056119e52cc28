// Memory that a forked child finds full of zeros. Locks in it are free in the child, whatever the
// parent's other threads were doing. A word in it tells the child from its parent for less than
// getpid costs. (A vforked child shares its parent's memory.)
#pragma once

#include <sys/mman.h>

#include <cstddef>

#include "runtime_hooks/core/errno_guard.hpp"

namespace cuwarden {

// Maps `bytes` of zeroed memory, which a forked child finds filled with zeros again. The caller
// must not free the memory. Returns null if no memory can be mapped, or before Linux 4.14. Keeps
// errno.
inline void* make_wiped_page(std::size_t bytes) noexcept {
  const ErrnoGuard keep;
  void* page = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return nullptr;
  if (madvise(page, bytes, MADV_WIPEONFORK) == 0) return page;
  munmap(page, bytes);
  return nullptr;
}

}  // namespace cuwarden
