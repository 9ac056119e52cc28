#include "shim/support/ready_unwinder.hpp"

#include <unwind.h>

#include <atomic>

#include "runtime_hooks/core/confinement.hpp"
#include "runtime_hooks/core/errno_guard.hpp"

namespace cuwarden::shim {

void make_unwinder_ready() noexcept {
  static constinit std::atomic<bool> is_ready{false};
  if (is_ready.load(std::memory_order_relaxed) || is_confined()) return;
  const ErrnoGuard keep;
  // Unlike an exception, this takes no memory and so no lock, with which a signal handler could
  // jump away.
  _Unwind_Backtrace([](_Unwind_Context*, void*) { return _URC_NORMAL_STOP; }, nullptr);
  is_ready.store(true, std::memory_order_relaxed);
}

}  // namespace cuwarden::shim
