// Facts by which a rescue of a refused request chooses its rungs.
#pragma once

#include <cstdint>

#include "runtime_hooks/rescue/rungs/tried_rungs.hpp"

namespace cuwarden::rescue {

// Facts about the process and the device at the moment of a refusal. Together with the request,
// they decide which rungs may run, and if rungs are worth trying although an earlier rescue has
// tried them in vain.
struct RescueConditions {
  // Bytes of this process's live allocations on the device; for a request for host memory, those of
  // its live pinned memory (Kind::pinned).
  std::uint64_t live_bytes = 0;
  // The value of PendingFrees::noted() at the refusal. If it differs from the value at an earlier
  // rescue, memory was freed in a further stream (cuMemFreeAsync) in between.
  std::uint32_t noted = 0;
  // Bytes of the device that this process's implicit memory takes, as far as they are known:
  // contexts, code, local memory, heaps, streams and executable graphs.
  std::uint64_t implicit_bytes = 0;
  // True if rungs that cost the program something may be tried: meshing, reclaimers (functions that
  // empty caches), waiting, spilling. False if all of these are turned off. False, too, at the
  // first refusal of an allocator that empties its own cache and asks again when it is refused.
  bool is_last_resort_due = true;
  // The reason why host memory cannot serve the request; LeftOut::none if it can.
  LeftOut spill_obstacle = LeftOut::turned_off;
  bool fits_device = true;  // false if the request is larger than the whole device

  // Returns true if host memory can serve the request.
  bool can_spill() const noexcept { return spill_obstacle == LeftOut::none; }
};

}  // namespace cuwarden::rescue
