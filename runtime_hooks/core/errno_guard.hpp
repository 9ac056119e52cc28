// A hooked call must leave the caller's errno as the real call left it.
#pragma once

#include <cerrno>

namespace cuwarden {

class [[nodiscard]] ErrnoGuard {
 public:
  ErrnoGuard() noexcept : saved_(errno) {}
  ~ErrnoGuard() { errno = saved_; }
  ErrnoGuard(const ErrnoGuard&) = delete;
  ErrnoGuard& operator=(const ErrnoGuard&) = delete;

 private:
  int saved_;
};

}  // namespace cuwarden
