// The give_back rung: cuwarden's own pool gives back its unused memory.
#include "runtime_hooks/rescue/rungs/order.hpp"

namespace cuwarden::rescue {
namespace {

RungOutcome give_back_and_ask(Rescue& rescue) {
  return rescue.call.parts.pools.give_back_unused(rescue.call.request.device)
             ? rescue.ask()
             : RungOutcome::nothing_to_do;
}

}  // namespace

constinit const Rung give_back{
    .name = ledger::Rung::give_back,
    .obstacle =
        [](Rescue& rescue) {
          return rescue.call.parts.pools.has_memory_of(rescue.call.request.device)
                     ? LeftOut::none
                     : LeftOut::nothing_there;
        },
    .run = give_back_and_ask};

}  // namespace cuwarden::rescue
