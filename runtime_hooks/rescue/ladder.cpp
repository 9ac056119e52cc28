#include "runtime_hooks/rescue/ladder.hpp"

namespace cuwarden::rescue {
namespace {

constexpr auto relaxed = std::memory_order_relaxed;
constexpr std::uint64_t again_after_ns = 100'000'000;

}  // namespace

bool Ladder::is_worth_climbing(const Situation& now) const noexcept {
  const Failed& before = failed_[now.device % places];
  const std::uint64_t time = before.time_ns.load(relaxed);
  return time == 0 || now_ns() - time >= again_after_ns || now.bytes < before.bytes.load(relaxed) ||
         now.live_bytes < before.live_bytes.load(relaxed) ||
         now.noted != before.noted.load(relaxed) ||
         (settings_.wait_ns != 0 && now.may_wait && !before.waited.load(relaxed));
}

void Ladder::found_nothing(const Situation& now) noexcept {
  Failed& here = failed_[now.device % places];
  here.live_bytes.store(now.live_bytes, relaxed);
  here.bytes.store(now.bytes, relaxed);
  here.noted.store(now.noted, relaxed);
  here.waited.store(now.may_wait, relaxed);
  here.time_ns.store(now_ns(), relaxed);
}

// From what costs nothing to what costs the program time. Pools come after pending frees: what they
// keep is the program's own provision, and the driver takes it by itself for most requests.
bool Ladder::climb(const Attempt& attempt, const Situation& now,
                   FunctionRef<void(const Climbed&)> climbed) {
  RungOutcome last{};
  bool timed_out = false;
  const auto ends = [&](Rung rung, auto&& take) {
    const std::uint64_t begun_ns = now_ns();
    last = take();
    climbed({rung, last, now_ns() - begun_ns});
    timed_out = timed_out || last == RungOutcome::timed_out;
    return last == RungOutcome::served || last == RungOutcome::other_error;
  };
  const bool ended =
      ends(Rung::retry, [&] { return retry(attempt); }) ||
      (attempt.on_device &&
       (ends(Rung::synchronise,
             [&] { return synchronise(attempt, now_ns() + settings_.sync_timeout_ns); }) ||
        ends(Rung::trim, [&] { return trim(attempt); }))) ||
      (now.may_wait && settings_.wait_ns != 0 &&
       ends(Rung::wait, [&] { return wait(attempt, now_ns() + settings_.wait_ns); }));
  // What the device had not come to by then it may have come to soon.
  if (!ended && !(timed_out && last != RungOutcome::timed_out)) found_nothing(now);
  return last == RungOutcome::served;
}

}  // namespace cuwarden::rescue
