// Ways to make room for one refused request, as the rungs use them. The real ones are in
// process_means.hpp; tests have their own.
#pragma once

#include <optional>
#include <string_view>

#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/ledger/format/layout.hpp"
#include "runtime_hooks/serving/serving_pools.hpp"

namespace cuwarden::rescue {

// Functions that call the driver are not noexcept: a thread that is cancelled there leaves through
// them.
class Means {
 public:
  // Returns true while a stream is being captured: asking the driver again might end the capture.
  virtual bool is_captured() = 0;
  // Returns true where a context that is not current is alive, and memory that was freed there may
  // be what lacks.
  virtual bool may_enter(ContextId) = 0;
  // Has memory pools and graphs give back what they keep. False: they keep nothing.
  virtual bool trim() = 0;
  virtual bool has_pool() = 0;
  // Has cuwarden's pool give back what it keeps unused. False: it keeps nothing; none: giving back
  // is not allowed now. Called only where has_pool().
  virtual std::optional<bool> give_back_unused() = 0;
  virtual bool can_mesh() = 0;
  // Moves the pool's blocks into fewer pages. `served`: some pages went back to the device. Called
  // only where can_mesh().
  virtual ledger::RungOutcome mesh() = 0;
  // Returns true where a reclaimer of these modules (a comma-separated list) must not run: the
  // requesting thread has one of them on its stack, so it may hold a lock that the reclaimer wants,
  // or a capture forbids giving memory back.
  virtual bool is_unsafe_to_reclaim(std::string_view modules) = 0;
  // Returns true where the device could serve the request, were it not for other processes.
  virtual bool may_others_help() = 0;
  // Serves the request with host memory for what the device lacks.
  virtual serving::SpillAttempt spill() = 0;

 protected:
  ~Means() = default;
};

}  // namespace cuwarden::rescue
