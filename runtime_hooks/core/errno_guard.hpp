// Restores errno at the end of a scope: a hooked call must leave the caller's errno as the real
// call left it.
#pragma once

#include <cerrno>

namespace cuwarden {

// Keeps errno over a scope: the destructor sets errno to the value that it had at the construction.
class [[nodiscard]] ErrnoGuard {
 public:
  // Saves errno, and its address, because each use of `errno` is a function call.
  ErrnoGuard() noexcept : errno_(errno), saved_(errno_) {}
  ~ErrnoGuard() { errno_ = saved_; }
  ErrnoGuard(const ErrnoGuard&) = delete;
  ErrnoGuard& operator=(const ErrnoGuard&) = delete;

 private:
  int& errno_;       // errno of the thread that made this object
  const int saved_;  // value that errno had at the construction
};

}  // namespace cuwarden
