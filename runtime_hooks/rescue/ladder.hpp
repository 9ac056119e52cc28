// The ladder of one process: tries the rungs, in their order, for refused requests. Remembers which
// attempts were in vain, so that they are not repeated at once.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime_hooks/core/clock.hpp"
#include "runtime_hooks/rescue/rung.hpp"

namespace cuwarden::rescue {

// Tries rungs (the ordered attempts to serve a refused request). All threads may call the functions
// at any time.
class Ladder {
 public:
  // `clock` outlives the object.
  explicit Ladder(const Settings& settings, Clock& clock) noexcept
      : settings_(settings), clock_(clock) {}

  // Returns true if rungs are tried for refused requests at all.
  bool enabled() const noexcept { return settings_.enabled; }
  // Returns true if meshing, waiting or spilling is turned on, or if a reclaimer is registered.
  // These rungs run only if Situation::is_last_resort_due is true.
  bool has_last_resorts() const noexcept {
    return settings_.wait_ns != 0 || settings_.spills || settings_.meshes || has_reclaimers();
  }

  // Returns true if rungs should be tried for a request. Returns false if a rescue on the device
  // has found nothing in the last tenth of a second, and nothing is better now. That is so if no
  // memory was freed since, the request is not smaller, and no further rungs may be tried.
  bool is_worth_climbing(const Situation&) const noexcept;
  // Tries the rungs in order until the request is served or fails with another error. Adds each
  // rung to the last argument, before and after it runs.
  Rescued climb(const RefusedCall&, const Situation&, TriedRungs&);

 private:
  // Returns Reclaimers::changes(); 0 without reclaimers.
  std::uint32_t reclaimers() const noexcept {
    return settings_.reclaimers == nullptr ? 0 : settings_.reclaimers->changes();
  }
  // Returns true if a reclaimer is registered and may be called.
  bool has_reclaimers() const noexcept {
    return settings_.reclaimers != nullptr && settings_.sync_timeout_ns != 0 &&
           settings_.reclaimers->any();
  }
  // Remembers a rescue in vain for is_worth_climbing(). `tried_all`: true if all rungs were tried
  // that the settings turn on.
  void found_nothing(const Situation&, bool tried_all) noexcept;

  static constexpr std::uint32_t devices = 64;  // number of entries of before_
  const Settings settings_;
  Clock& clock_;
  VainAttempts before_[devices];  // by Situation::device modulo `devices`
};

}  // namespace cuwarden::rescue
