#include "shim/support/ready_unwinder.hpp"

#include <atomic>

#include "runtime_hooks/core/confinement.hpp"
#include "runtime_hooks/core/errno_guard.hpp"

namespace cuwarden::shim {

void make_unwinder_ready() noexcept {
  static constinit std::atomic<bool> is_ready{false};
  if (is_ready.load(std::memory_order_relaxed) || is_confined()) return;
  const ErrnoGuard keep;
  try {
    throw 0;
  } catch (...) {
    is_ready.store(true, std::memory_order_relaxed);
  }
}

}  // namespace cuwarden::shim
