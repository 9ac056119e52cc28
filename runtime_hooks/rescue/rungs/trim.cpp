// The trim rung has the driver's memory pools and graphs give back their unused memory.
#include "runtime_hooks/rescue/rungs/order.hpp"

namespace cuwarden::rescue {
namespace {

RungOutcome trim_and_ask(Rescue& rescue) {
  const Parts& parts = rescue.call.parts;
  const driver::RelaxedCaptures relaxed(parts.real);
  return parts.memory_pools.trim(parts.real, rescue.call.request.device)
             ? rescue.ask()
             : RungOutcome::nothing_to_do;
}

}  // namespace

constinit const Rung trim{
    .name = ledger::Rung::trim, .obstacle = unless_on_device, .run = trim_and_ask};

}  // namespace cuwarden::rescue
