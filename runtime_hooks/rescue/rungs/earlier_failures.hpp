// Rescues and waits that found no memory, and how soon such a rescue is tried again.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime_hooks/rescue/rungs/request.hpp"
#include "runtime_hooks/rescue/rungs/rescue_conditions.hpp"

namespace cuwarden::rescue {

// The last failures on one device, of three kinds. A rescue found no memory; or a wait for other
// processes to free memory was in vain; or a wait for the device to reach pending stream-ordered
// frees was in vain.
struct EarlierFailures {
  // End of the last rescue that found no memory, in nanoseconds of the clock that measures rungs;
  // 0: there was none.
  std::atomic<std::uint64_t> time_ns{0};
  // The process's live bytes on the device at the time of the last rescue that found no memory.
  std::atomic<std::uint64_t> live_bytes{0};
  // Size in bytes of the request that the last rescue without memory (`time_ns`) did not serve.
  std::atomic<std::uint64_t> bytes{0};
  // The value of PendingFrees::noted() when the last rescue found no memory. The number changes
  // when memory is freed in a further stream (cuMemFreeAsync).
  std::atomic<std::uint32_t> noted{0};
  // True if the last rescue that found no memory has tried all rungs that are turned on.
  std::atomic<bool> tried_all{false};
  // True if the last rescue that found no memory has tried to serve the request with host memory,
  // too.
  std::atomic<bool> tried_spill{false};
  // Number of reclaimers (functions that empty caches) that had been registered up to the last
  // rescue that found no memory (Reclaimers::changes()).
  std::atomic<std::uint32_t> reclaimers{0};
  // End of the last wait for other processes to free memory, if that wait timed out, in nanoseconds
  // of the clock that measures rungs. Otherwise 0.
  std::atomic<std::uint64_t> waited_ns{0};
  // End of the last wait for the device to reach pending stream-ordered frees, if that wait timed
  // out, in nanoseconds of the clock that measures rungs. Otherwise 0.
  std::atomic<std::uint64_t> synchronised_ns{0};

  // Returns true if a request that was refused now should be rescued, although an earlier rescue
  // may have found no memory. One of these conditions suffices. No rescue has failed in the last
  // tenth of a second. Memory was freed since. The request is smaller than the earlier one. There
  // are rungs that the earlier rescue has not tried, such as a reclaimer (a function that empties a
  // cache) that was registered since. `RescueConditions`: those of the present refusal.
  // `has_last_resorts`: true if there are rungs that cost the program something. `reclaimers_now`:
  // number of reclaimers that were ever registered. `now_ns`: time of the clock that measures
  // rungs.
  bool allow_another(const Request&, const RescueConditions&, bool has_last_resorts,
                     std::uint32_t reclaimers_now, std::uint64_t now_ns) const noexcept;
  // Remembers that a rescue of the request under these conditions has found no memory.
  // `all_were_tried`: true if it has tried all rungs that are turned on. The other arguments are
  // those of allow_another().
  void found_nothing(const Request&, const RescueConditions&, bool all_were_tried,
                     std::uint32_t reclaimers_now, std::uint64_t now_ns) noexcept;
};

}  // namespace cuwarden::rescue
