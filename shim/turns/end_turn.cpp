#include "shim/turns/end_turn.hpp"

#include "runtime_hooks/core/thread_id.hpp"

namespace cuwarden::shim {
namespace {

// Longest time in which a large ledger's report is read and written on a busy machine, without
// naming its functions.
constexpr std::uint64_t longest_writing_ns = 10'000'000'000;
// Longest time from libc's call of the handler that writes to the handler's first line.
constexpr std::uint64_t longest_beginning_ns = 500'000'000;
// Longest time that code other than the shim's takes at the end: the driver's exit handlers, the
// destructors of libraries, the last flush of files.
constexpr std::uint64_t longest_foreign_ns = 2'000'000'000;
// Longest wait for the program's own exit handlers, which mostly run before the shim's.
constexpr std::uint64_t longest_wait_for_first_ns = 50'000'000;
constexpr std::uint64_t look_soon_ns = 1'000'000, look_again_ns = 50'000'000;

}  // namespace

EndTurn::Thread EndTurn::self() noexcept { return static_cast<Thread>(own_thread_id()); }

bool EndTurn::has_ended(Thread thread) noexcept {
  return thread_has_ended(static_cast<int>(thread));
}

bool EndTurn::is_first(std::atomic<Thread>& first) noexcept {
  const Thread caller = self();
  Thread present = 0;
  return first.compare_exchange_strong(present, caller) || present == caller;
}

std::uint64_t EndTurn::longest_wait_ns() const noexcept {
  return longest_writing_ns + symbol_time_ns_;
}

bool EndTurn::take(bool is_last) noexcept {
  if (over_.load(std::memory_order_acquire) != 0) return false;
  using enum WritingTurn::Answer;
  switch (writing_.take(longest_wait_ns())) {
    case not_given:
      return false;
    case interrupted:  // by a signal handler that ends the process
      return is_last && !writes_last_.exchange(true);
    case taken:
    case taken_over:
      break;
  }
  if (over_.load(std::memory_order_acquire) != 0) {
    writing_.give_back();
    return false;
  }
  writes_last_.store(is_last);
  return true;
}

void EndTurn::give_back(bool is_last) noexcept {
  if (is_last) over_.store(1, std::memory_order_release);
  writing_.give_back();
}

void EndTurn::wait_until(std::atomic<std::uint32_t>& done) noexcept {
  const std::uint64_t begun_ns = clock_.now_ns();
  while (done.load(std::memory_order_acquire) == 0) {
    const std::uint64_t waited_ns = clock_.now_ns() - begun_ns;
    if (writing_.is_callers() || waited_ns >= longest_wait_ns()) return;
    if (waited_ns >= longest_beginning_ns && writing_.is_free_or_ended()) return;
    clock_.wait_ns(done, 0, look_again_ns);
  }
}

bool EndTurn::is_first_in_quick_exit() noexcept { return is_first(first_in_quick_exit_); }

void EndTurn::enter_exit() noexcept {
  if (is_first(first_in_exit_)) return;
  const std::uint64_t deadline_ns = clock_.now_ns() + longest_wait_for_first_ns;
  while (leader_.load(std::memory_order_acquire) == 0 && clock_.now_ns() < deadline_ns)
    clock_.wait_ns(leader_, 0, look_soon_ns);
}

void EndTurn::leads_the_end() noexcept {
  Thread none = 0;
  leader_.compare_exchange_strong(none, self(), std::memory_order_acq_rel);
}

bool EndTurn::another_leads_the_end() const noexcept {
  const Thread leader = leader_.load(std::memory_order_acquire);
  return leader != 0 && leader != self() && !has_ended(leader);
}

void EndTurn::wait_for_leader() noexcept {
  std::uint64_t begun_ns = clock_.now_ns(), last_ns = begun_ns, foreign_ns = 0;
  while (another_leads_the_end()) {
    Thread leader = leader_.load(std::memory_order_acquire);
    clock_.sleep_ns(look_again_ns);
    const std::uint64_t at_ns = clock_.now_ns();
    if (writing_.is_free()) foreign_ns += at_ns - last_ns;
    last_ns = at_ns;
    if (foreign_ns < longest_foreign_ns && at_ns - begun_ns < longest_wait_ns()) continue;
    // Without a leader, each handler that this thread still reaches would wait. The handlers
    // that it registers for the leader would never come to an end.
    if (leader_.compare_exchange_strong(leader, self(), std::memory_order_acq_rel)) return;
    begun_ns = at_ns;
    foreign_ns = 0;
  }
}

void EndTurn::reset() noexcept {
  writing_.reset();
  over_.store(0, std::memory_order_relaxed);
  first_in_exit_.store(0, std::memory_order_relaxed);
  first_in_quick_exit_.store(0, std::memory_order_relaxed);
  leader_.store(0, std::memory_order_relaxed);
}

}  // namespace cuwarden::shim
