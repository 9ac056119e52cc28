#include "runtime_hooks/rescue/ladder.hpp"

#include "runtime_hooks/core/confinement.hpp"
#include "runtime_hooks/rescue/rungs/order.hpp"

namespace cuwarden::rescue {
namespace {

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
  return earlier(request).allow_another(request, now, has_last_resorts(), reclaimers(),
                                        clock_.now_ns());
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
    rescue.earlier.found_nothing(call.request, now, now.is_last_resort_due && !outcomes.unsafe,
                                 reclaimers(), clock_.now_ns());
  return {outcomes.last == RungOutcome::served, rescue.served_at};
}

}  // namespace cuwarden::rescue
