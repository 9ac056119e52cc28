// The spill rung serves the request with host memory for the part that the device lacks.
#include "runtime_hooks/rescue/rungs/order.hpp"

namespace cuwarden::rescue {
namespace {

LeftOut obstacle_to_spilling(Rescue& rescue) {
  if (!rescue.conditions.can_spill()) return rescue.conditions.spill_obstacle;
  return rescue.conditions.is_last_resort_due ? LeftOut::none : LeftOut::asks_again;
}

RungOutcome serve_with_host_memory(Rescue& rescue) {
  const RefusedCall& call = rescue.call;
  const auto [outcome, address] =
      call.parts.pools.spill_to_host(call.asked_for, call.here, call.request.device);
  rescue.served_at = address;
  const bool device_has_room = outcome == RungOutcome::served && address == 0;
  return device_has_room ? rescue.ask() : outcome;
}

}  // namespace

constinit const Rung spill{
    .name = ledger::Rung::spill, .obstacle = obstacle_to_spilling, .run = serve_with_host_memory};

}  // namespace cuwarden::rescue
