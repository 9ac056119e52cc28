// The ladder of one process: climbs its rungs for refused requests, and remembers which attempts
// were in vain, so that they are not repeated at once.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime_hooks/core/clock.hpp"
#include "runtime_hooks/rescue/rung.hpp"

namespace cuwarden::rescue {

class Ladder {
 public:
  // `clock` outlives the object.
  explicit Ladder(const Settings& settings, Clock& clock = system_clock) noexcept
      : settings_(settings), clock_(clock) {}

  bool enabled() const noexcept { return settings_.enabled; }
  // True if meshing, reclaimers, waiting or spilling is turned on: rungs that run only if
  // Situation::is_last_resort_due.
  bool has_last_resorts() const noexcept {
    return settings_.wait_ns != 0 || settings_.spills || settings_.meshes || has_reclaimers();
  }

  // Returns true where no rescue on that device was in vain yet, or a new one may find
  // something: memory was freed, a tenth of a second has passed, more rungs are open than before,
  // or less is asked for.
  bool is_worth_climbing(const Situation&) const noexcept;
  // Climbs until the request is served or all rungs were tried, and reports each.
  Rescued climb(const RefusedCall&, const Situation&, TriedRungs&);

 private:
  std::uint32_t reclaimers() const noexcept {
    return settings_.reclaimers == nullptr ? 0 : settings_.reclaimers->changes();
  }
  bool has_reclaimers() const noexcept {
    return settings_.reclaimers != nullptr && settings_.sync_timeout_ns != 0 &&
           settings_.reclaimers->any();
  }
  void found_nothing(const Situation&, bool tried_all) noexcept;

  static constexpr std::uint32_t devices = 64;  // ordinals beyond share the memory of others
  const Settings settings_;
  Clock& clock_;
  VainAttempts before_[devices];
};

}  // namespace cuwarden::rescue
