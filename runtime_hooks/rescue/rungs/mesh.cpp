// The mesh rung moves blocks of the pool's pages together, so that whole pages go back to the
// device.
#include "runtime_hooks/rescue/rungs/order.hpp"

namespace cuwarden::rescue {
namespace {

bool applies(Rescue& rescue) {
  return rescue.situation.is_last_resort_due && rescue.situation.fits_device &&
         rescue.is_on_device() && rescue.call.request.device == rescue.call.here.device &&
         rescue.call.parts.pools.can_mesh();
}

RungOutcome run(Rescue& rescue) {
  const RungOutcome meshed =
      rescue.call.parts.pools.mesh(rescue.call.here, rescue.call.request.bytes);
  if (meshed == RungOutcome::unsafe && rescue.call.parts.captures.any()) rescue.has_left_out = true;
  return meshed == RungOutcome::served ? rescue.ask() : meshed;
}

}  // namespace

constinit const Rung mesh{
    .name = ledger::Rung::mesh, .applies = applies, .run = run, .obstacles_last = true};

}  // namespace cuwarden::rescue
