// The spill rungs serve the request with host memory for the part that the device lacks. They run
// after a wait, or before it if another wait on the device was in vain shortly before.
#include "runtime_hooks/rescue/rungs/order.hpp"

namespace cuwarden::rescue {
namespace {

bool can_spill(const Rescue& rescue) {
  return rescue.situation.is_last_resort_due && rescue.situation.can_spill;
}

RungOutcome run(Rescue& rescue) {
  rescue.has_spilled = true;
  const RefusedCall& call = rescue.call;
  const auto [outcome, address] =
      call.parts.pools.spill_to_host(call.asked_for, call.here, call.request.device);
  rescue.served_at = address;
  const bool device_has_room = outcome == RungOutcome::served && address == 0;
  return device_has_room ? rescue.ask() : outcome;
}

}  // namespace

constinit const Rung spill_at_once{
    .name = ledger::Rung::spill,
    .applies = [](Rescue& rescue) { return can_spill(rescue) && rescue.earlier_wait_was_vain; },
    .run = run};

constinit const Rung spill{
    .name = ledger::Rung::spill,
    .applies = [](Rescue& rescue) { return can_spill(rescue) && !rescue.has_spilled; },
    .run = run};

}  // namespace cuwarden::rescue
