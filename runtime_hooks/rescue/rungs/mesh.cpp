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

// Makes room for `bytes` more bytes, and asks the driver again.
RungOutcome mesh_for(Rescue& rescue, std::uint64_t bytes) {
  const RungOutcome meshed = rescue.call.parts.pools.mesh(rescue.call.here, bytes);
  if (meshed == RungOutcome::unsafe && rescue.call.parts.captures.any()) rescue.has_left_out = true;
  return meshed == RungOutcome::served ? rescue.ask() : meshed;
}

// If the call does not say how much memory it needs, room is made in growing steps. Measured: a
// stream needs 2 MiB, a graph of 2,000 branches 229 MiB, a context 542 MiB.
RungOutcome run(Rescue& rescue) {
  constexpr std::uint64_t first_step = std::uint64_t{32} << 20, growth = 4,
                          last_step = std::uint64_t{8} << 30;
  if (rescue.call.request.bytes != 0) return mesh_for(rescue, rescue.call.request.bytes);
  RungOutcome outcome = RungOutcome::no_memory;
  for (std::uint64_t step = first_step; step <= last_step; step *= growth) {
    const RungOutcome now = mesh_for(rescue, step);
    // The driver was asked after an earlier step if there is no more memory to be moved.
    if (now == RungOutcome::nothing_to_do && step != first_step) return outcome;
    outcome = now;
    if (outcome != RungOutcome::no_memory) return outcome;
  }
  return outcome;
}

}  // namespace

constinit const Rung mesh{
    .name = ledger::Rung::mesh, .applies = applies, .run = run, .obstacles_last = true};

}  // namespace cuwarden::rescue
