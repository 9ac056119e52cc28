// The mesh rung moves blocks of cuwarden's pool together, so that whole pages go back to the
// device.
#include <algorithm>

#include "runtime_hooks/ledger/write/devices.hpp"
#include "runtime_hooks/rescue/rungs/order.hpp"

namespace cuwarden::rescue {
namespace {

LeftOut obstacle_to_meshing(Rescue& rescue) {
  const serving::ServingPools& pools = rescue.call.parts.pools;
  if (!rescue.is_on_device()) return LeftOut::host_memory;
  if (!pools.has_memory_of(rescue.call.request.device)) return LeftOut::nothing_there;
  if (pools.mesh_pause_ns() == 0) return LeftOut::turned_off;
  if (!rescue.conditions.fits_device) return LeftOut::too_large;
  if (rescue.call.request.device != rescue.call.here.device) return LeftOut::other_device;
  if (!pools.can_mesh()) return LeftOut::not_supported;
  return rescue.conditions.is_last_resort_due ? LeftOut::none : LeftOut::asks_again;
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
// MiB. A step for which the device has room already moves nothing, and the driver is not asked.
RungOutcome mesh_and_ask(Rescue& rescue) {
  constexpr std::uint64_t first_step = std::uint64_t{32} << 20, largest_guess = first_step << 6;
  const Request& request = rescue.call.request;
  Moves moves(rescue);
  const bool has_given_back =
      rescue.call.given_back_bytes != 0 ||
      rescue.call.parts.ledger.devices.lent_context_bytes(request.device) != 0;
  if (request.asked == ledger::Asked::memory)
    return moves.make(
        {.bytes = request.bytes, .is_guess = false, .has_given_back = has_given_back});
  // Local memory may take all of the device: with 512 KiB for each thread, an H200 needs 138 GiB.
  const bool may_need_all =
      request.asked == ledger::Asked::launch || request.asked == ledger::Asked::limit;
  const std::uint64_t first = std::max(request.bytes, first_step);
  const std::uint64_t last =
      std::max(first, may_need_all ? rescue.call.parts.queries.total_bytes_of(request.device)
                                   : largest_guess);
  RungOutcome outcome = RungOutcome::no_memory;
  for (std::uint64_t step = first; outcome == RungOutcome::no_memory && step <= last; step *= 2) {
    const RungOutcome now =
        moves.make({.bytes = step, .is_guess = true, .has_given_back = has_given_back});
    if (now == RungOutcome::nothing_to_do && step != first) break;
    outcome = now;
  }
  return outcome;
}

}  // namespace

constinit const Rung mesh{.name = ledger::Rung::mesh,
                          .obstacle = obstacle_to_meshing,
                          .run = mesh_and_ask,
                          .obstacles_last = true};

}  // namespace cuwarden::rescue
