// The retry rung asks the driver again: memory may have been freed since the refusal.
#include "runtime_hooks/rescue/rungs/order.hpp"

namespace cuwarden::rescue {

constinit const Rung retry{.name = ledger::Rung::retry,
                           .applies = [](Rescue&, std::size_t) { return true; },
                           .run = [](Rescue& rescue, std::size_t) { return rescue.ask(); }};

}  // namespace cuwarden::rescue
