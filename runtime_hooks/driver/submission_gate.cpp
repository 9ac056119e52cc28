#include "runtime_hooks/driver/submission_gate.hpp"

#include <linux/membarrier.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <new>

#include "runtime_hooks/core/clock.hpp"
#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/core/futex_wait.hpp"
#include "runtime_hooks/core/thread_id.hpp"
#include "runtime_hooks/core/wiped_page.hpp"

namespace cuwarden::driver {
namespace {

bool membarrier(int command) noexcept { return syscall(SYS_membarrier, command, 0, 0) == 0; }

// The kernel's own mask: a bit for each signal. Those stay that an instruction of the thread
// raises.
void set_signal_mask(std::uint64_t mask, std::uint64_t* before) noexcept {
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, before, sizeof mask);
}
constexpr std::uint64_t all_but(std::initializer_list<int> signals) noexcept {
  std::uint64_t mask = ~std::uint64_t{0};
  for (const int signal : signals) mask &= ~(std::uint64_t{1} << (signal - 1));
  return mask;
}

}  // namespace

constinit SubmissionGate submission_gate{};
constinit thread_local SubmissionGate::Thread* SubmissionGate::own_ = nullptr;

bool SubmissionGate::arm() noexcept {
  if (is_armed()) return true;
  const ErrnoGuard keep;
  if (!membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)) return false;
  void* page = make_wiped_page(sizeof(std::atomic<std::uint32_t>));
  if (page == nullptr) return false;
  std::atomic<std::uint32_t>* none = nullptr;
  if (!closed_here_.compare_exchange_strong(none, new (page) std::atomic<std::uint32_t>(0)))
    munmap(page, sizeof *none);
  is_armed_.store(true, std::memory_order_seq_cst);
  return true;
}

// A thread that has ended leaves its place behind; the kernel may have given its number to this
// one.
[[gnu::cold, gnu::noinline]] SubmissionGate::Thread* SubmissionGate::take_place() noexcept {
  const ErrnoGuard keep;
  const std::int32_t mine = own_thread_id();
  const auto take = [&](Thread& place, std::int32_t from) {
    if (!place.id.compare_exchange_strong(from, mine)) return false;
    place.depth.store(0, std::memory_order_relaxed);
    own_ = &place;
    return true;
  };
  for (Thread& place : threads_) {
    const std::int32_t there = place.id.load(std::memory_order_relaxed);
    if ((there == 0 || there == mine) && take(place, there)) return &place;
  }
  for (Thread& place : threads_) {
    const std::int32_t there = place.id.load(std::memory_order_relaxed);
    if (thread_has_ended(there) && take(place, there)) return &place;
  }
  is_too_small_.store(true);
  return nullptr;
}

// A forked child does not have the thread that would open it.
[[gnu::cold, gnu::noinline]] void SubmissionGate::wait_until_open(Thread& mine) noexcept {
  const ErrnoGuard keep;
  constexpr timespec look_again{.tv_sec = 0, .tv_nsec = 100'000'000};
  for (;;) {
    mine.depth.store(0, std::memory_order_release);
    while (state_.load(std::memory_order_acquire) != is_open) {
      if (closed_here_.load()->load() == 0) state_.store(is_open);
      futex_wait(state_, is_closed, &look_again);
    }
    mine.depth.store(1, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (state_.load(std::memory_order_acquire) == is_open) return;
  }
}

bool SubmissionGate::have_all_left(std::uint64_t deadline_ns) noexcept {
  for (Thread& place : threads_) {
    if (&place == own_) continue;
    for (int spins = 0; place.depth.load(std::memory_order_acquire) != 0; ++spins) {
      if (spins < 100) {
        __builtin_ia32_pause();
        continue;
      }
      if (thread_has_ended(place.id.load(std::memory_order_relaxed)))
        place.depth.store(0, std::memory_order_relaxed);
      else if (now_ns() >= deadline_ns)
        return false;
      sleep_ns(20'000);
    }
  }
  return true;
}

bool SubmissionGate::close(std::uint64_t deadline_ns) noexcept {
  const ErrnoGuard keep;
  if (!is_armed() || is_too_small_.load()) return false;
  if (own_ != nullptr && own_->depth.load(std::memory_order_relaxed) != 0) return false;
  while (!lock_.try_lock()) {
    if (now_ns() >= deadline_ns) return false;
    sleep_ns(100'000);
  }
  // Its own submissions pass, and those of wrappers below it.
  Thread* const mine = own_ != nullptr ? own_ : take_place();
  if (mine == nullptr) {
    lock_.unlock();
    return false;
  }
  set_signal_mask(all_but({SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS}), &signals_);
  mine->depth.store(1, std::memory_order_relaxed);
  closed_here_.load()->store(1);
  state_.store(is_closed, std::memory_order_seq_cst);
  if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) && have_all_left(deadline_ns) &&
      !is_too_small_.load())
    return true;
  open();
  return false;
}

void SubmissionGate::open() noexcept {
  leave(*own_);
  state_.store(is_open, std::memory_order_release);
  futex_wake_all(state_);
  const std::uint64_t signals = signals_;
  lock_.unlock();
  set_signal_mask(signals, nullptr);
}

}  // namespace cuwarden::driver
