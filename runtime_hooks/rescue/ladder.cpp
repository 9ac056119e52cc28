#include "runtime_hooks/rescue/ladder.hpp"

#include "runtime_hooks/core/atomic_field.hpp"
#include "runtime_hooks/core/confinement.hpp"
#include "runtime_hooks/rescue/rungs/order.hpp"

namespace cuwarden::rescue {
namespace {

constexpr std::uint64_t again_after_ns = 100'000'000;

void climb_rung(const Rung& rung, Rescue& rescue) {
  const LeftOut obstacle = rescue.is_confined && !rung.suits_confined_threads
                               ? LeftOut::confined
                               : rung.obstacle(rescue);
  if (obstacle != LeftOut::none)
    rescue.tried.leave_out(rung.name, obstacle);
  else if (rung.run_each != nullptr)
    rung.run_each(rescue);
  else
    rescue.attempt(rung, [&] { return rung.run(rescue); });
}

}  // namespace

bool Ladder::is_worth_climbing(const Request& request, const RescueConditions& now) noexcept {
  const EarlierFailures& earlier = this->earlier(request);
  const std::uint64_t time = earlier.time_ns.load(relaxed);
  return time == 0 || clock_.now_ns() - time >= again_after_ns ||
         request.bytes < earlier.bytes.load(relaxed) ||
         now.live_bytes < earlier.live_bytes.load(relaxed) ||
         now.noted != earlier.noted.load(relaxed) ||
         (has_last_resorts() && now.is_last_resort_due &&
          (!earlier.tried_all.load(relaxed) || reclaimers() != earlier.reclaimers.load(relaxed) ||
           (now.can_spill() && !earlier.tried_spill.load(relaxed))));
}

void Ladder::found_nothing(const Request& request, const RescueConditions& now,
                           bool tried_all) noexcept {
  EarlierFailures& here = earlier(request);
  here.live_bytes.store(now.live_bytes, relaxed);
  here.bytes.store(request.bytes, relaxed);
  here.noted.store(now.noted, relaxed);
  here.tried_all.store(tried_all, relaxed);
  here.tried_spill.store(tried_all && now.can_spill(), relaxed);
  here.reclaimers.store(reclaimers(), relaxed);
  here.time_ns.store(clock_.now_ns(), relaxed);
}

Rescued Ladder::climb(const RefusedCall& call, const RescueConditions& now, TriedRungs& tried) {
  Rescue rescue{.call = call,
                .conditions = now,
                .settings = settings_,
                .reclaimers = reclaimers_,
                .earlier = earlier(call.request),
                .clock = clock_,
                .tried = tried,
                .is_confined = is_confined()};
  const AttemptOutcomes& outcomes = rescue.outcomes;
  for (const Turn& turn : rungs_in_order) {
    if (!turn.is_due(rescue.earlier_wait_was_vain)) continue;
    climb_rung(turn.rung, rescue);
    if (outcomes.has_ended()) break;
  }
  // The rung that has served the request stands before the wait rung only because of the vain wait.
  if (rescue.earlier_wait_was_vain && outcomes.last == RungOutcome::served &&
      tried.last() == ledger::Rung::spill)
    tried.leave_out(ledger::Rung::wait, LeftOut::in_vain_before);
  // A pending free may be reached soon, and a capture ends. So after these outcomes the next
  // request tries the rungs at once.
  if (!outcomes.has_ended() && !rescue.has_left_out && !rescue.is_confined &&
      !(outcomes.timed_out && outcomes.last_that_counts != RungOutcome::timed_out))
    found_nothing(call.request, now, now.is_last_resort_due && !outcomes.unsafe);
  return {outcomes.last == RungOutcome::served, rescue.served_at};
}

}  // namespace cuwarden::rescue
