#include "runtime_hooks/rescue/ladder.hpp"

namespace cuwarden::rescue {
namespace {

constexpr auto relaxed = std::memory_order_relaxed;
constexpr std::uint64_t again_after_ns = 100'000'000;

}  // namespace

bool Ladder::is_worth_climbing(const Situation& now) const noexcept {
  const Failed& before = failed_[now.device % places];
  const std::uint64_t time = before.time_ns.load(relaxed);
  return time == 0 || now_ns() - time >= again_after_ns ||
         now.live_bytes < before.live_bytes.load(relaxed) ||
         now.pending != before.pending.load(relaxed);
}

void Ladder::found_nothing(const Situation& now) noexcept {
  Failed& here = failed_[now.device % places];
  here.live_bytes.store(now.live_bytes, relaxed);
  here.pending.store(now.pending, relaxed);
  here.time_ns.store(now_ns(), relaxed);
}

// From what costs nothing to what costs the program time. Pools come after pending frees: what they
// keep is the program's own provision, and the driver takes it by itself for most requests.
bool Ladder::climb(const Attempt& attempt, bool patient,
                   FunctionRef<void(const Climbed&)> climbed) {
  const auto step = [&](Rung rung, auto&& take) {
    const std::uint64_t begun_ns = now_ns();
    const RungOutcome outcome = take();
    climbed({rung, outcome, now_ns() - begun_ns});
    return outcome == RungOutcome::served;
  };
  if (step(Rung::retry, [&] { return retry(attempt); })) return true;
  if (attempt.on_device) {
    const std::uint64_t deadline_ns = now_ns() + settings_.sync_timeout_ns;
    if (step(Rung::synchronise, [&] { return synchronise(attempt, deadline_ns); }) ||
        step(Rung::trim, [&] { return trim(attempt); }))
      return true;
  }
  if (!patient || settings_.wait_ns == 0) return false;
  const std::uint64_t deadline_ns = now_ns() + settings_.wait_ns;
  return step(Rung::wait, [&] { return wait(attempt, deadline_ns); });
}

}  // namespace cuwarden::rescue
