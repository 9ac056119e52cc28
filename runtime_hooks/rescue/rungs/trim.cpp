// The trim rung has the driver's memory pools and graphs give back their unused memory.
#include "runtime_hooks/rescue/rungs/order.hpp"

namespace cuwarden::rescue {

constinit const Rung trim{
    .name = ledger::Rung::trim,
    .applies = [](Rescue& rescue, std::size_t) { return rescue.is_on_device(); },
    .run =
        [](Rescue& rescue, std::size_t) {
          const Parts& parts = rescue.call.parts;
          return parts.memory_pools.trim(parts.real, rescue.call.request.device)
                     ? rescue.ask()
                     : RungOutcome::nothing_to_do;
        }};

}  // namespace cuwarden::rescue
