// The retry rung asks the driver again: memory may have been freed since the refusal.
#include "runtime_hooks/rescue/rungs/order.hpp"

namespace cuwarden::rescue {

constinit const Rung retry{.name = ledger::Rung::retry,
                           .obstacle = [](Rescue&) { return LeftOut::none; },
                           .run = [](Rescue& rescue) { return rescue.ask(); },
                           .suits_confined_threads = true};

}  // namespace cuwarden::rescue
