// Holds back the calling thread's signals for the length of a scope.
#pragma once

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#include "runtime_hooks/core/errno_guard.hpp"

namespace cuwarden::shim {

// Blocks all signals of the calling thread that do not come from one of its own instructions, nor
// from libc itself. They stay pending and arrive at the end of the scope. Leaves errno alone.
class [[nodiscard]] HeldSignals {
 public:
  HeldSignals() noexcept {
    constexpr int of_libc[] = {32, 33};  // they cancel a thread, or change the user of all threads
    std::uint64_t held = ~std::uint64_t{0};
    const auto leave_out = [&](int signal) { held &= ~(std::uint64_t{1} << (signal - 1)); };
    for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT})
      leave_out(signal);
    for (const int signal : of_libc) leave_out(signal);
    change(SIG_BLOCK, &held, &before_);
  }
  ~HeldSignals() { change(SIG_SETMASK, &before_, nullptr); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

 private:
  // The kernel's call: libc's may be a sanitizer's, which is not ready before the program runs.
  static void change(int how, const std::uint64_t* mask, std::uint64_t* before) noexcept {
    const ErrnoGuard keep;
    syscall(SYS_rt_sigprocmask, how, mask, before, sizeof *mask);
  }

  std::uint64_t before_ = 0;
};

}  // namespace cuwarden::shim
