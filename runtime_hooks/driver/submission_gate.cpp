#include "runtime_hooks/driver/submission_gate.hpp"

#include <linux/membarrier.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <new>

#include "runtime_hooks/core/clock.hpp"
#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/core/futex_wait.hpp"
#include "runtime_hooks/core/memory/wiped_page.hpp"
#include "runtime_hooks/core/signal_mask.hpp"
#include "runtime_hooks/core/thread_id.hpp"

namespace cuwarden::driver {
namespace {

bool membarrier(int command) noexcept { return syscall(SYS_membarrier, command, 0, 0) == 0; }

}  // namespace

constinit SubmissionGate submission_gate{};

bool SubmissionGate::arm() noexcept {
  if (is_armed()) return true;
  const ErrnoGuard keep;
  if (!membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)) return false;
  void* page = make_wiped_page(sizeof(std::atomic<std::uint32_t>));
  if (page == nullptr) return false;
  std::atomic<std::uint32_t>* none = nullptr;
  if (!closed_here_.compare_exchange_strong(none, new (page) std::atomic<std::uint32_t>(0)))
    munmap(page, sizeof *none);
  calling_threads.all_pass_gate();
  is_armed_.store(true, std::memory_order_seq_cst);
  return true;
}

// A forked child does not have the thread that would open it. While the thread waits, it does not
// count as inside the driver: it may be cancelled here, and leaves no lock of the driver held.
[[gnu::cold, gnu::noinline]] void SubmissionGate::wait_until_open(Thread& mine) {
  const ErrnoGuard keep;
  const std::uint32_t calls = mine.calls.load(std::memory_order_relaxed);
  constexpr timespec look_again{.tv_sec = 0, .tv_nsec = 100'000'000};
  for (;;) {
    mine.submissions.store(0, std::memory_order_release);
    mine.calls.store(calls - (calls != 0 ? 1 : 0), std::memory_order_release);
    while (state_.load(std::memory_order_acquire) != is_open) {
      if (closed_here_.load()->load() == 0) state_.store(is_open);
      futex_wait(state_, is_closed, &look_again);
    }
    mine.calls.store(calls, std::memory_order_relaxed);
    mine.submissions.store(1, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (state_.load(std::memory_order_acquire) == is_open) return;
  }
}

bool SubmissionGate::have_all_left(std::uint64_t deadline_ns, Clock& clock) noexcept {
  return calling_threads.all_of([&](Thread& thread) {
    if (&thread == calling_threads.known()) return true;
    for (int spins = 0; thread.submissions.load(std::memory_order_acquire) != 0; ++spins) {
      if (spins < 100) {
        __builtin_ia32_pause();
        continue;
      }
      if (thread_has_ended(thread.id.load(std::memory_order_relaxed)))
        thread.submissions.store(0, std::memory_order_relaxed);
      else if (clock.now_ns() >= deadline_ns)
        return false;
      clock.sleep_ns(20'000);
    }
    return true;
  });
}

bool SubmissionGate::close(std::uint64_t deadline_ns, Clock& clock) noexcept {
  const ErrnoGuard keep;
  if (!is_armed() || calling_threads.are_too_many()) return false;
  const Thread* const known = calling_threads.known();
  if (known != nullptr && known->submissions.load(std::memory_order_relaxed) != 0) return false;
  while (!lock_.try_lock()) {
    if (clock.now_ns() >= deadline_ns) return false;
    clock.sleep_ns(100'000);
  }
  // Submissions of the thread that closes the gate pass, and those of wrappers that it calls.
  Thread* const mine = calling_threads.own();
  if (mine == nullptr) {
    lock_.unlock();
    return false;
  }
  signals_ = change_blocked_signals(SIG_SETMASK, ~own_signals);
  mine->submissions.store(1, std::memory_order_relaxed);
  closed_here_.load()->store(1);
  state_.store(is_closed, std::memory_order_seq_cst);
  if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) && have_all_left(deadline_ns, clock) &&
      !calling_threads.are_too_many())
    return true;
  open();
  return false;
}

void SubmissionGate::open() noexcept {
  leave(*calling_threads.known());
  state_.store(is_open, std::memory_order_release);
  futex_wake_all(state_);
  const SignalSet signals = signals_;
  lock_.unlock();
  change_blocked_signals(SIG_SETMASK, signals);
}

}  // namespace cuwarden::driver
