// The mesh rung moves blocks of the pool's pages together, so that whole pages go back to the
// device.
#include <algorithm>

#include "runtime_hooks/rescue/rungs/order.hpp"

namespace cuwarden::rescue {
namespace {

bool applies(Rescue& rescue) {
  return rescue.situation.is_last_resort_due && rescue.situation.fits_device &&
         rescue.is_on_device() && rescue.call.request.device == rescue.call.here.device &&
         rescue.call.parts.pools.can_mesh();
}

// Moves memory for one request. All its pauses together are bounded.
class Moves {
 public:
  explicit Moves(Rescue& rescue)
      : rescue_(rescue), pause_left_ns_(rescue.call.parts.pools.mesh_pause_ns()) {}

  // Makes room, and asks the driver again.
  RungOutcome make(serving::ServingPools::Wanted wanted) {
    const Parts& parts = rescue_.call.parts;
    const RungOutcome moved = parts.pools.mesh(rescue_.call.here, wanted, pause_left_ns_);
    if (moved == RungOutcome::unsafe && parts.captures.any()) rescue_.has_left_out = true;
    return moved == RungOutcome::served ? rescue_.ask() : moved;
  }

 private:
  Rescue& rescue_;
  std::uint64_t pause_left_ns_;
};

// Makes room in growing steps if the call is no allocation: at most it is known how much the call
// needs at least. Measured: a stream needs 2 MiB, a graph of 2,000 branches 229 MiB, a context 542
// MiB.
RungOutcome run(Rescue& rescue) {
  constexpr std::uint64_t first_step = std::uint64_t{32} << 20;
  const Request& request = rescue.call.request;
  Moves moves(rescue);
  if (request.asked == ledger::Asked::memory) return moves.make({request.bytes});
  std::uint64_t step = std::max(request.bytes, first_step);
  const bool has_given_back = rescue.call.given_back_bytes != 0;
  RungOutcome outcome = moves.make({step, true, has_given_back});
  while (outcome == RungOutcome::no_memory) {
    step *= 2;
    const RungOutcome now = moves.make({step, true, has_given_back});
    if (now == RungOutcome::nothing_to_do) break;
    outcome = now;
  }
  return outcome;
}

}  // namespace

constinit const Rung mesh{
    .name = ledger::Rung::mesh, .applies = applies, .run = run, .obstacles_last = true};

}  // namespace cuwarden::rescue
