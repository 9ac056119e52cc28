#include "runtime_hooks/rescue/ladder.hpp"

#include "runtime_hooks/core/confinement.hpp"
#include "runtime_hooks/rescue/rungs/order.hpp"

namespace cuwarden::rescue {
namespace {

constexpr auto relaxed = std::memory_order_relaxed;
constexpr std::uint64_t again_after_ns = 100'000'000;

// Outcomes of one rescue that tell if the ladder is worth climbing again soon.
struct Tally {
  RungOutcome last{};
  // The last outcome of a rung other than mesh: an obstacle to moving memory may last for ever.
  RungOutcome last_but_mesh{};
  bool timed_out = false, unsafe = false;

  void add(ledger::Rung rung, RungOutcome outcome) noexcept {
    last = outcome;
    if (rung != ledger::Rung::mesh) last_but_mesh = outcome;
    timed_out = timed_out || last_but_mesh == RungOutcome::timed_out;
    unsafe = unsafe || last_but_mesh == RungOutcome::unsafe;
  }
  bool has_ended() const noexcept {
    return last == RungOutcome::served || last == RungOutcome::other_error;
  }
};

// Returns true if a turn of the rung ended the rescue.
bool climb_rung(const Rung& rung, Rescue& rescue, Tally& tally) {
  bool ran = false;
  for (std::size_t turn = 0; turn < rung.turns; ++turn) {
    if (!rung.applies(rescue, turn)) continue;
    ran = true;
    const std::string_view reclaimer =
        rung.name == ledger::Rung::reclaim ? rescue.reclaimer.name : std::string_view();
    const std::uint64_t begun_ns = rescue.clock.now_ns();
    rescue.tried.add({rung.name, RungOutcome::under_way, 0, reclaimer});
    const RungOutcome outcome = rung.run(rescue, turn);
    rescue.tried.add({rung.name, outcome, rescue.clock.now_ns() - begun_ns, reclaimer});
    if (rung.told != nullptr) rung.told(rescue, turn);
    tally.add(rung.name, outcome);
    if (tally.has_ended()) return true;
  }
  if (ran && rung.in_vain != nullptr) rung.in_vain(rescue);
  return false;
}

}  // namespace

bool Ladder::is_worth_climbing(const Situation& now) const noexcept {
  const VainAttempts& before = before_[now.device % devices];
  const std::uint64_t time = before.time_ns.load(relaxed);
  return time == 0 || clock_.now_ns() - time >= again_after_ns ||
         now.bytes < before.bytes.load(relaxed) ||
         now.live_bytes < before.live_bytes.load(relaxed) ||
         now.noted != before.noted.load(relaxed) ||
         (has_last_resorts() && now.is_last_resort_due &&
          (!before.tried_all.load(relaxed) || reclaimers() != before.reclaimers.load(relaxed) ||
           (now.can_spill && !before.tried_spill.load(relaxed))));
}

void Ladder::found_nothing(const Situation& now, bool tried_all) noexcept {
  VainAttempts& here = before_[now.device % devices];
  here.live_bytes.store(now.live_bytes, relaxed);
  here.bytes.store(now.bytes, relaxed);
  here.noted.store(now.noted, relaxed);
  here.tried_all.store(tried_all, relaxed);
  here.tried_spill.store(tried_all && now.can_spill, relaxed);
  here.reclaimers.store(reclaimers(), relaxed);
  here.time_ns.store(clock_.now_ns(), relaxed);
}

Rescued Ladder::climb(const RefusedCall& call, const Situation& now, TriedRungs& tried) {
  Rescue rescue{.call = call,
                .situation = now,
                .settings = settings_,
                .before = before_[now.device % devices],
                .clock = clock_,
                .tried = tried};
  Tally tally;
  // In a confined thread only the retry rung runs. Other rungs need threads, time or system calls
  // that the program itself never makes.
  if (is_confined()) {
    climb_rung(retry, rescue, tally);
    return {tally.last == RungOutcome::served};
  }
  bool ended = false;
  for (const Rung* const rung : rungs_in_order)
    if ((ended = climb_rung(*rung, rescue, tally))) break;
  // A pending free may be reached soon, and a capture ends. So after these outcomes the next
  // request tries the rungs at once.
  if (!ended && !rescue.pool_must_wait &&
      !(tally.timed_out && tally.last_but_mesh != RungOutcome::timed_out))
    found_nothing(now, now.is_last_resort_due && !tally.unsafe);
  return {tally.last == RungOutcome::served, rescue.served_at};
}

}  // namespace cuwarden::rescue
