// The ladder of one process: tries the rungs, in their order, for refused requests. Remembers which
// attempts were in vain, so that they are not repeated at once.
#pragma once

#include <cstdint>

#include "runtime_hooks/core/clock.hpp"
#include "runtime_hooks/rescue/rung.hpp"

namespace cuwarden::rescue {

// Tries rungs (the ordered attempts to serve a refused request). All threads may call the functions
// at any time.
class Ladder {
 public:
  // `settings`, of which the object keeps a copy, says which rungs (attempts to serve a refused
  // request) may be tried. `clock` measures the times of all rungs and outlives the object.
  explicit Ladder(const Settings& settings, Clock& clock) noexcept
      : settings_(settings), clock_(clock) {}

  // Returns true if the settings allow rungs (ordered attempts to serve a refused request) to be
  // tried.
  bool enabled() const noexcept { return settings_.enabled; }
  // Returns true if a rung (an attempt to serve a refused request) may be tried that costs the
  // program something. Such rungs are meshing, waiting and spilling, if they are turned on, and
  // reclaimers, if one is registered and may be called. They run only if
  // RescueConditions::is_last_resort_due is true.
  bool has_last_resorts() const noexcept {
    return settings_.wait_ns != 0 || settings_.spills || settings_.meshes || has_reclaimers();
  }

  // Returns true if rungs (ordered attempts to serve it) should be tried for a refused request, of
  // which `RescueConditions` holds the facts. Returns false if a rescue has found no memory in the
  // last tenth of a second, and another one would find none either. Only rescues of requests for
  // the same thing (RescueConditions::asked) on the same device count. Another rescue is tried if
  // memory was freed since, or if the request is smaller. It is also tried if there are rungs that
  // the earlier rescue has not tried, such as a reclaimer that was registered since.
  bool is_worth_climbing(const RescueConditions&) noexcept;
  // Tries the rungs (ordered attempts to serve a refused request) until the request is served, or
  // the driver fails with an error other than OUT_OF_MEMORY. In a thread that a seccomp filter of
  // the program confines, tries the retry rung only. `RefusedCall`: the request. `RescueConditions`
  // holds the facts by which the rungs are chosen. Enters each rung in `TriedRungs` before it runs,
  // and its outcome afterwards. Remembers for is_worth_climbing() if no memory was found. The
  // result tells if and at which address the request was served.
  Rescued climb(const RefusedCall&, const RescueConditions&, TriedRungs&);

 private:
  // Returns the number of reclaimers (callbacks that empty caches) that were ever registered; 0 if
  // none can be registered.
  std::uint32_t reclaimers() const noexcept {
    return settings_.reclaimers == nullptr ? 0 : settings_.reclaimers->changes();
  }
  // Returns true if a reclaimer (a callback that empties a cache) is registered and the settings
  // allow time to call it.
  bool has_reclaimers() const noexcept {
    return settings_.reclaimers != nullptr && settings_.sync_timeout_ns != 0 &&
           settings_.reclaimers->any();
  }
  // Remembers for is_worth_climbing() that a rescue of the request that `RescueConditions`
  // describes has found no memory. `tried_all`: true if all rungs were tried that the settings turn
  // on.
  void found_nothing(const RescueConditions&, bool tried_all) noexcept;

  // Number of entries of `earlier_` for each thing that a call may ask for. Devices whose ordinals
  // differ by a multiple of 64 share an entry; the host counts as ordinal -1.
  static constexpr std::uint32_t devices = 64;
  // Returns the earlier failures to serve requests for the same thing on the same device.
  EarlierFailures& earlier(const RescueConditions& now) noexcept {
    return earlier_[static_cast<std::size_t>(now.asked)][now.device % devices];
  }
  // Settings that tell which rungs (attempts to serve a refused request) may be tried, and for how
  // long.
  const Settings settings_;
  // Clock by which waits and attempts are measured.
  Clock& clock_;
  // Earlier failures, by RescueConditions::asked, and by RescueConditions::device modulo `devices`.
  EarlierFailures earlier_[ledger::asked_count][devices];
};

}  // namespace cuwarden::rescue
