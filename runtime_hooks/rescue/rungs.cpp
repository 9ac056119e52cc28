#include "runtime_hooks/rescue/rungs.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>

#include "runtime_hooks/core/errno_guard.hpp"

namespace cuwarden::rescue {
namespace {

// An answer other than a lack of memory is the next call's matter: the program gets the first one.
bool is_served(const Attempt& attempt) { return attempt.request() == CUDA_SUCCESS; }

RungOutcome outcome(bool served) { return served ? RungOutcome::served : RungOutcome::no_memory; }

}  // namespace

std::uint64_t now_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

void sleep_ns(std::uint64_t ns) noexcept {
  const ErrnoGuard keep;
  const timespec time{.tv_sec = static_cast<time_t>(ns / 1'000'000'000),
                      .tv_nsec = static_cast<long>(ns % 1'000'000'000)};
  syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &time, nullptr);
}

RungOutcome retry(const Attempt& attempt) { return outcome(is_served(attempt)); }

RungOutcome synchronise(const Attempt& attempt, std::uint64_t deadline_ns) {
  constexpr std::uint64_t first_sleep_ns = 20'000, longest_sleep_ns = 1'000'000;
  bool any = false;
  for (std::uint64_t sleep = first_sleep_ns;; sleep = std::min(2 * sleep, longest_sleep_ns)) {
    const PendingFrees::Found found =
        attempt.pending.synchronise_idle(attempt.real, attempt.context);
    if (found.synchronised) {
      any = true;
      if (is_served(attempt)) return RungOutcome::served;
    }
    if (!found.busy) return any ? RungOutcome::no_memory : RungOutcome::nothing_to_do;
    if (now_ns() >= deadline_ns) return RungOutcome::timed_out;
    sleep_ns(sleep);
  }
}

RungOutcome trim(const Attempt& attempt) {
  if (!attempt.trim()) return RungOutcome::nothing_to_do;
  return outcome(is_served(attempt));
}

RungOutcome wait(const Attempt& attempt, std::uint64_t deadline_ns) {
  constexpr std::uint64_t first_sleep_ns = 5'000'000, longest_sleep_ns = 200'000'000;
  for (std::uint64_t sleep = first_sleep_ns;; sleep = std::min(2 * sleep, longest_sleep_ns)) {
    const std::uint64_t now = now_ns();
    if (now >= deadline_ns) return RungOutcome::timed_out;
    sleep_ns(std::min(sleep, deadline_ns - now));
    // What this process freed meanwhile may pend as well.
    if (attempt.on_device) attempt.pending.synchronise_idle(attempt.real, attempt.context);
    if (is_served(attempt)) return RungOutcome::served;
  }
}

}  // namespace cuwarden::rescue
